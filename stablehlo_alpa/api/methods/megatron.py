"""Tensor, data and pipeline parallelism as Megatron-LM combines them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from jax.sharding import PartitionSpec

from stablehlo_alpa.api.methods.column_row import (
    ColumnRow,
    checked_splits,
    find_pairs,
    named_splits,
)
from stablehlo_alpa.api.methods.method import Method
from stablehlo_alpa.api.methods.pipeline import PipeshardParallel, checked_layers
from stablehlo_alpa.api.methods.prescribed import Prescribed, shared_options
from stablehlo_alpa.api.methods.program_dimensions import ProgramDimensions
from stablehlo_alpa.errors import MeshError, OptionError, ShardingError
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.inter_op import ScheduleName, UniformStages
from stablehlo_alpa.inter_op.options import MOST_STAGES
from stablehlo_alpa.layers import AutoLayers, LayerOption
from stablehlo_alpa.option_checks import (
    checked_choice,
    checked_flag,
    checked_integer,
    settle,
)
from stablehlo_alpa.planning import Confinement, Near, Prescription, Role, Whole, Wish

DATA, TENSOR = "data", "tensor"
_REMAT: Mapping[str, bool | Literal["attention"]] = {
    "none": False,
    "selective": "attention",
    "full": True,
}


@dataclass(frozen=True)
class MegatronParallel(Method):
    """Three dimensions of parallelism, the first two on the mesh of every stage.

    Pairs of matrices are split by columns and by rows over the axis ``tensor``, the batch over the
    axis ``data``; inside of the program these axes split what goes together with that and nothing
    else, and the ILP finds the collectives that this takes. Pairs are found by what the program
    does with its parameters, in any model.

    Attributes:
        tensor: devices over which matrices are split.
        data: devices over which batches are split; None for all that are left.
        pipeline: meshes of a pipeline, one behind the other.
        micro_batch: examples that one device works on at a time; None for the whole batch (or, on
            one mesh, as much of it as fits the memory), and in a pipeline for a search.
        interleave: stages on each mesh, under the interleaved schedule if there are several.
        sequence_parallel: whether operators between the pairs are split along the sequence,
            dimension 1 of the batch, over ``tensor``.
        zero_1: whether the state of the optimiser is split over ``data``.
        recompute: what the backward pass computes again: ``"none"``, ``"selective"`` for scores and
            softmax of attention, ``"full"`` for all that is between layers. It, and a pipeline,
            need gradients by ``stablehlo_alpa.grad`` or ``value_and_grad``.
        layers: how the model is cut for ``pipeline`` and ``recompute``; None for as many layers of
            about equal FLOPs as there are equal pairs, or stages.
        patterns: pairs of a regular expression over the paths of parameters
            (``"state/params/layer_0/up/kernel"``) and ``"column"``, ``"row"`` or ``"vocabulary"``,
            instead of the search for pairs.

    References:
        Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
        Megatron-LM", SC 2021; Korthikanti et al., "Reducing Activation Recomputation in Large
        Transformer Models", MLSys 2023.
    """

    tensor: int = 1
    data: int | None = None
    pipeline: int = 1
    micro_batch: int | None = None
    interleave: int = 1
    sequence_parallel: bool = False
    zero_1: bool = False
    recompute: str = "none"
    layers: LayerOption | None = None
    patterns: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, checked_integer, "tensor", least=1)
        settle(self, checked_integer, "pipeline", "interleave", least=1, most=MOST_STAGES)
        settle(self, checked_integer, "data", "micro_batch", is_optional=True, least=1)
        settle(self, checked_flag, "sequence_parallel", "zero_1")
        settle(self, checked_choice, "recompute", choices=_REMAT)
        settle(self, checked_layers, "layers", is_optional=True)
        settle(self, checked_splits, "patterns")
        if self.mesh_shape is not None:
            raise MeshError(
                f"mesh_shape={self.mesh_shape} follows from tensor, data and pipeline: leave it out"
            )
        if self.micro_batch is not None and self.num_micro_batches is not None:
            raise OptionError(
                f"micro_batch={self.micro_batch} and num_micro_batches={self.num_micro_batches} "
                "say one thing: pass one of both"
            )
        if self.interleave > 1 and self.pipeline == 1:
            raise OptionError(
                f"interleave={self.interleave} is of a pipeline, pipeline=1 is none: pass "
                "pipeline=2 or more, or leave interleave out"
            )
        if self.has_layers and self.backend != "alpa":
            raise OptionError(
                f"backend={self.backend!r} partitions one program; pipeline={self.pipeline} and "
                f'recompute={self.recompute!r} take several: pass backend="alpa"'
            )

    @property
    def has_layers(self) -> bool:
        """Whether the function is cut."""
        return self.pipeline > 1 or self.recompute != "none"

    @property
    def has_one_mesh(self) -> bool:
        """Whether it becomes one program."""
        return not self.has_layers

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Of every stage."""
        return DATA, TENSOR

    @property
    def leaner(self) -> tuple[str, ...]:
        """What Megatron has for memory and this one leaves out."""
        found = (
            ("sequence_parallel=True", self.tensor > 1 and not self.sequence_parallel),
            ("zero_1=True", self.data != 1 and not self.zero_1),
            ('recompute="full"', self.recompute != "full"),
        )
        return tuple(text for text, is_left_out in found if is_left_out)

    @property
    def is_open(self) -> bool:
        """What is split depends on the function."""
        return True

    def concrete(self, program: TracedProgram, num_devices: int) -> Method:
        """The method for a function.

        Raises:
            MeshError: there are more or fewer devices than it is for.
            ShardingError: there is nothing to split, or a pattern is found nowhere.
            OptionError: the batch does not divide.
        """
        data = self._data(num_devices)
        dims = ProgramDimensions.of(program)
        split = named_splits(dims, self.patterns) if self.patterns else find_pairs(dims)
        if self.tensor > 1 and not split.dimensions:
            raise ShardingError(
                f"tensor={self.tensor}: {program.name} has no two matrices of which the second "
                "takes the features that the first makes, and no table that is looked up; "
                'patterns=((regular expression, "column" or "row"), ...) says what is split'
            )
        count = self._num_micro_batches(dims, data)
        shape = (data, self.tensor)
        made = self._prescription(dims, split)
        if not self.has_layers:
            options = shared_options(self, mesh_shape=shape, num_micro_batches=count)
            return Prescribed(**options, names=self.axis_names, made=made)
        stages = self.pipeline * self.interleave
        schedule = ScheduleName.INTERLEAVED if self.interleave > 1 else ScheduleName.ONE_F_ONE_B
        # One mesh has no bubble that more micro-batches would shrink.
        count = count or (1 if self.pipeline == 1 else None)
        return PipeshardParallel(
            **shared_options(self, num_micro_batches=count),
            layers=self._layers(max(split.num_layers, stages)),
            stages=UniformStages(
                stages, shape, Prescribed(mesh_shape=shape, names=self.axis_names, made=made)
            ),
            schedule=str(schedule) if program.has_gradients else None,
            num_chunks=self.interleave,
        )

    def _data(self, num_devices: int) -> int:
        """Devices over which batches are split."""
        others = self.tensor * self.pipeline
        data = self.data or max(num_devices // others, 1)
        if others * data != num_devices:
            given = f" data={self.data}," if self.data else ""
            raise MeshError(
                f"tensor={self.tensor},{given} pipeline={self.pipeline} are for "
                f"{'' if self.data else 'a multiple of '}{others * (self.data or 1)} devices, "
                f"{num_devices} are there"
            )
        return data

    def _num_micro_batches(self, dims: ProgramDimensions, data: int) -> int | None:
        if self.micro_batch is None:
            return self.num_micro_batches
        size = dims.batch_size
        if size is None:
            raise OptionError(
                f"micro_batch={self.micro_batch}: {dims.program.name} has no batch; "
                "batch_argnums= names the arguments that hold one"
            )
        count, rest = divmod(size, data * self.micro_batch)
        if rest:
            own, odd = divmod(size, data)
            mend = f"a batch that {data} divides" if odd else f"{math.gcd(own, self.micro_batch)}"
            raise OptionError(
                f"a batch of {size} does not divide into micro-batches of micro_batch="
                f"{self.micro_batch} examples on each of {data} devices along data; {mend} would"
            )
        return count

    def _layers(self, count: int) -> LayerOption:
        remat = _REMAT[self.recompute]
        if self.layers is None:
            return AutoLayers(num_layers=count, remat=remat)
        return replace(self.layers, remat=remat or self.layers.recomputations[0])

    def _prescription(self, dims: ProgramDimensions, split: ColumnRow) -> Prescription:
        wishes: dict[int, Wish] = {i: Whole() for i in range(len(dims.program.inputs))}
        wishes |= {index: Near(PartitionSpec(DATA)) for index, _ in dims.examples}
        further = (DATA,) if self.zero_1 else ()
        for index in dims.others():
            spec = dims.spec(index, split.dimensions, TENSOR)
            wishes[index] = Near(spec, further, Role.OTHER)
        remarks = split.remarks if self.tensor > 1 else ()
        if self.sequence_parallel and not dims.positions:
            remarks += ("sequence_parallel: no batch has a dimension 1, nothing is split along it",)
        return Prescription(
            wishes,
            confinement=Confinement(
                batch=dims.examples,
                axes={DATA: dims.examples, TENSOR: split.dimensions},
                light={TENSOR: dims.positions} if self.sequence_parallel else {},
                idle=frozenset(further),
            ),
            remarks=remarks,
        )
