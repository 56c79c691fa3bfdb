"""Pipelines of stages on submeshes."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from alpa_runtime import RuntimeOptions

from stablehlo_alpa.api.methods.method import Method
from stablehlo_alpa.errors import MeshError, OptionError
from stablehlo_alpa.inter_op import (
    AutoStages,
    ManualStages,
    OwnSchedule,
    ScheduleName,
    StageOption,
    UniformStages,
)
from stablehlo_alpa.inter_op.options import MOST_STAGES
from stablehlo_alpa.layers import AutoLayers, FollowModuleLayers, LayerOption, ManualLayers
from stablehlo_alpa.option_checks import (
    checked_flag,
    checked_instance,
    checked_integer,
    restated,
    settle,
)
from stablehlo_alpa.planning.ordering import (
    SEVERAL_STAGES,
    ScheduleKind,
    is_asynchronous,
    num_updates,
    schedule_kind,
)


@dataclass(frozen=True)
class PipeshardParallel(Method):
    """A pipeline: runs of layers on submeshes, each split by the ILP.

    A function without gradients is a pipeline that runs forward only. Gradients that jax takes are
    cut where it takes them once, and nothing is computed again; those of ``stablehlo_alpa.grad``
    and ``value_and_grad`` have neither limit. ``mesh_shape`` is not used: stages have theirs.

    Attributes:
        layers: how the forward function is cut into layers.
        stages: how layers become stages.
        schedule: ``"1f1b"``, ``"gpipe"``, ``"zero_bubble"``, ``"interleaved"``, ``"dualpipe_v"`` or
            an `OwnSchedule` (`pipedream` and `pipedream_2bw` update the state several times in a
            call, the function being traced for the part of the batch of one update); None
            searches.
        num_chunks: stages per mesh under the interleaved schedule; two under dualpipe_v.
        runtime: how it is run, e.g. traced.
        pad: sizes of products that the devices of a stage do not divide may be padded inside of
            the step by an eighth, where that makes it faster; see `ShardParallel`.
    """

    layers: LayerOption = field(default_factory=AutoLayers)
    stages: StageOption = field(default_factory=AutoStages)
    schedule: ScheduleKind | None = None
    num_chunks: int = 1
    runtime: RuntimeOptions = field(default_factory=RuntimeOptions)
    pad: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_parts()
        if self.backend != "alpa":
            raise OptionError(
                f"backend={self.backend!r} splits one program over one mesh; a pipeline has "
                'several and takes "alpa"'
            )
        if self.schedule == ScheduleName.DUALPIPE_V and self.num_chunks == 1:
            object.__setattr__(self, "num_chunks", 2)
        if self.num_chunks > 1 and self.schedule not in SEVERAL_STAGES:
            raise OptionError(
                f"schedule {str(self.schedule)!r} has one stage per mesh, num_chunks="
                f'{self.num_chunks} needs "interleaved"; ManualStages(meshes=...) places the '
                "stages of one's own"
            )
        if self.schedule == ScheduleName.DUALPIPE_V and self.num_chunks != 2:
            raise OptionError(
                f"schedule 'dualpipe_v' has two stages per mesh, got num_chunks={self.num_chunks}"
            )
        if self.mesh_shape is not None:
            raise MeshError(
                f"mesh_shape={self.mesh_shape} is of one mesh: a pipeline takes "
                "UniformStages(mesh_shape=...) or ManualStages(mesh_shapes=...)"
            )
        self._check_stage_methods()
        self._check_chunks()
        if is_asynchronous(self.schedule) and self.num_micro_batches is None:
            raise OptionError(
                f"schedule {str(self.schedule)!r} updates the state several times in a call, and "
                "gives another result for every number of micro-batches: pass num_micro_batches"
            )
        # Refuses micro-batches that do not divide into updates.
        with restated():
            num_updates(self.schedule, self.num_micro_batches or 1)

    def _check_parts(self) -> None:
        """What it is made of, each by itself."""
        settle(self, checked_layers, "layers")
        checked_instance(
            "stages",
            self.stages,
            (AutoStages, UniformStages, ManualStages),
            "AutoStages(), ProfiledStages(), UniformStages(...) or ManualStages(...)",
        )
        checked_instance("runtime", self.runtime, RuntimeOptions, "RuntimeOptions(...)")
        settle(self, checked_integer, "num_chunks", least=1, most=MOST_STAGES)
        settle(self, checked_flag, "pad")
        if self.schedule is not None:
            what = "the name of a schedule, an OwnSchedule(...) or None"
            checked_instance("schedule", self.schedule, (str, OwnSchedule), what)
            # Refuses a name that there is not.
            with restated():
                schedule_kind(self.schedule)

    def _check_stage_methods(self) -> None:
        """Methods of stages say how one mesh is split; all else is of the pipeline."""
        for number, method in enumerate(self.stages.stage_methods):
            if not isinstance(method, Method):
                raise OptionError(
                    f"stage {number} has the method {method!r}, must be DataParallel() or another "
                    "method"
                )
            if not method.has_one_mesh or method.follows_inputs:
                raise OptionError(
                    f"stage {number} has the method {method.brief()}, which is no method of one "
                    "mesh: take ShardParallel, DataParallel, Zero2Parallel, Zero3Parallel, "
                    "ManualSharding or ExpertParallel"
                )
            if method.is_open:
                raise OptionError(
                    f"stage {number} has the method {method.brief()}, which looks at the whole "
                    "function: pass ExpertParallel(expert=...) with its number of devices, or "
                    "MegatronParallel(pipeline=...) as the method of the function"
                )
            shared = [one.name for one in fields(Method) if one.name != "mesh_shape"]
            given = [name for name in shared if getattr(method, name) != getattr(Method(), name)]
            if given:
                raise OptionError(
                    f"stage {number} has the method {method.brief()}, whose {', '.join(given)} is "
                    "of the whole function: pass it to PipeshardParallel"
                )

    def _check_chunks(self) -> None:
        """Stages that are given, and no meshes of theirs, are so many on each."""
        stages, chunks = self.stages, self.num_chunks
        count = stages.num_stages if isinstance(stages, UniformStages) else 0
        if isinstance(stages, ManualStages) and stages.meshes is None:
            count = len(stages.layers)
        if count % chunks:
            raise OptionError(f"num_chunks={chunks} does not divide {count} stages")

    @property
    def num_parts(self) -> int:
        """Parts of a batch of which the function is traced for one; those of updates at least."""
        return max(super().num_parts, num_updates(self.schedule, self.num_micro_batches or 1))

    @property
    def has_one_mesh(self) -> bool:
        """It has one for each stage."""
        return False

    @property
    def runtime_options(self) -> RuntimeOptions:
        """As given."""
        return self.runtime

    @property
    def has_layers(self) -> bool:
        """It is."""
        return True


def checked_layers(name: str, layers: Any) -> LayerOption:
    """A way to cut a function into layers.

    Raises:
        OptionError: it is none.
    """
    kinds = (AutoLayers, ManualLayers, FollowModuleLayers)
    what = "AutoLayers(...), ManualLayers(...) or FollowModuleLayers(...)"
    found: LayerOption = checked_instance(name, layers, kinds, what)
    return found
