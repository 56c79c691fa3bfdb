"""How a pipeline is wanted: layers become stages, stages get their submeshes."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

from stablehlo_alpa.cluster import Cluster, ClusterSpec, cluster_text, logical_mesh_shapes
from stablehlo_alpa.cluster.mesh import check_sizes
from stablehlo_alpa.errors import MeshError, OptionError, StageError
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.inter_op.next_cuts import ConsideredStages
from stablehlo_alpa.inter_op.submeshes import first_devices
from stablehlo_alpa.intra_op import CarriedStrategies, Solution, SolveOptions
from stablehlo_alpa.option_checks import (
    checked_instance,
    checked_integer,
    checked_integers,
    checked_sequence,
    settle,
)
from stablehlo_alpa.planning.bracket import Bracket
from stablehlo_alpa.planning.cut import parts_of
from stablehlo_alpa.planning.ordering import ScheduleKind, num_updates, schedule_kind
from stablehlo_alpa.planning.prescription import Prescription
from stablehlo_alpa.planning.schedules import ScheduleName
from stablehlo_alpa.store import OFF, Store

MOST_STAGES = 1 << 16
"""Stages of a pipeline at most (heuristic): tables have an entry for each."""


@runtime_checkable
class StageMethod(Protocol):
    """How one stage is split over its mesh."""

    @property
    def axis_names(self) -> tuple[str, ...] | None:
        """Names of the axes of its mesh, None for the usual ones."""

    def mesh_shapes(self, num_devices: int, num_hosts: int) -> tuple[tuple[int, ...], ...]:
        """The mesh shapes to try."""

    def prescription(self, program: TracedProgram) -> Prescription:
        """What is prescribed for the inputs of the step, as far as the stage reads them."""


StageMethods: TypeAlias = StageMethod | Sequence[StageMethod] | None
"""One for all stages, or one for each; None searches."""


@dataclass(frozen=True)
class StageOption:
    """Base of the ways to form stages."""

    @property
    def stage_methods(self) -> tuple[StageMethod, ...]:
        """How stages are split, one for each; empty where that is searched."""
        return ()


@dataclass(frozen=True)
class AutoStages(StageOption):
    """The partition of least predicted latency, found by the dynamic programme of the paper."""


@dataclass(frozen=True)
class ProfiledStages(AutoStages):
    """Of the partitions that are best by prices the one that is fastest when it is run.

    The programs of every stage are compiled and timed on the devices at hand, on arguments that are
    zero; what depends on values (a loop that ends when one is small) takes what it takes on these.
    Sends between stages are priced.

    Attributes:
        num_cuts: partitions that are run.
        store: a folder that keeps what was measured, by program, device kind and version of jax;
            None keeps it for one search.
    """

    num_cuts: int = 4
    store: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        settle(self, checked_integer, "num_cuts", least=1)
        if self.store is not None:
            checked_instance("store", self.store, (str, os.PathLike), "a folder or None")


@dataclass(frozen=True)
class UniformStages(StageOption):
    """As many layers and as many devices for every stage, as far as they divide.

    Attributes:
        num_stages: how many.
        mesh_shape: logical mesh of every stage; None takes those of the methods, or tries all.
        methods: how a stage is split over its mesh: a method of one mesh (``DataParallel()``) for
            all stages, or one for each; None searches.
    """

    num_stages: int
    mesh_shape: tuple[int, ...] | None = None
    methods: StageMethods = None

    def __post_init__(self) -> None:
        settle(self, checked_integer, "num_stages", least=1, most=MOST_STAGES)
        settle(self, mesh_sizes, "mesh_shape", is_optional=True)
        object.__setattr__(self, "methods", _per_stage(self.methods, self.num_stages))

    @property
    def stage_methods(self) -> tuple[StageMethod, ...]:
        """See `StageOption`."""
        return _per_stage(self.methods, self.num_stages) or ()


@dataclass(frozen=True)
class ManualStages(StageOption):
    """Stages as given.

    Attributes:
        layers: how many layers each stage has, in order.
        submeshes: hosts and devices per host of each stage.
        mesh_shapes: logical mesh of each stage; None takes those of the methods, or tries all
            shapes, for all or for one.
        methods: as of `UniformStages`.
        meshes: number of the submesh that each stage runs on, where several run on one; by default
            every stage has one of its own, or, with ``num_chunks=n``, shares it as the schedule
            has it.
        parts: number of the part of an unlike cluster that the submesh of each stage is of; None
            for the first.
    """

    layers: tuple[int, ...]
    submeshes: tuple[tuple[int, int], ...]
    mesh_shapes: tuple[tuple[int, ...] | None, ...] | None = None
    methods: StageMethods = None
    meshes: tuple[int, ...] | None = None
    parts: tuple[int, ...] | None = None

    @property
    def stage_methods(self) -> tuple[StageMethod, ...]:
        """See `StageOption`."""
        return _per_stage(self.methods, len(self.layers)) or ()

    @property
    def places(self) -> tuple[tuple[int, int, int], ...]:
        """Per stage hosts and devices of each, and their part."""
        parts = self.parts or (0,) * len(self.layers)
        return tuple((*size, part) for size, part in zip(self.submeshes, parts, strict=True))

    def __post_init__(self) -> None:
        settle(self, checked_integers, "layers")
        settle(self, _submeshes, "submeshes")
        settle(self, _mesh_shapes, "mesh_shapes", is_optional=True)
        settle(self, checked_integers, "meshes", "parts", is_optional=True, least=0)
        object.__setattr__(self, "methods", _per_stage(self.methods, len(self.layers)))
        if not self.layers or any(count < 1 for count in self.layers):
            raise OptionError(f"every stage has at least one layer, got layers={self.layers}")
        if len(self.submeshes) != len(self.layers):
            raise MeshError(
                f"{len(self.layers)} stages need as many submeshes, got {len(self.submeshes)}"
            )
        if self.parts is not None and len(self.parts) != len(self.layers):
            raise MeshError(f"{len(self.layers)} stages need as many parts, got parts={self.parts}")
        if self.meshes is not None:
            _by_mesh(self.meshes, self.places)
        if self.mesh_shapes is not None:
            if len(self.mesh_shapes) != len(self.layers):
                raise MeshError(
                    f"{len(self.layers)} stages need as many mesh_shapes, got "
                    f"{len(self.mesh_shapes)}"
                )
            for shape, submesh in zip(self.mesh_shapes, self.submeshes, strict=True):
                if shape is not None and math.prod(shape) != math.prod(submesh):
                    raise MeshError(
                        f"mesh_shapes: logical mesh {shape} has {math.prod(shape)} devices, its "
                        f"submesh {submesh} has {math.prod(submesh)}"
                    )


def mesh_sizes(name: str, value: Any) -> tuple[int, ...]:
    """The sizes of the axes of a mesh, as an option gives them.

    Raises:
        MeshError: they are none.
    """
    found = checked_integers(name, value, error=MeshError)
    check_sizes(name, found)
    return found


def _mesh_shapes(name: str, value: Any) -> tuple[tuple[int, ...] | None, ...]:
    """A mesh, or None, for each stage."""
    shapes = checked_sequence(name, value, "mesh shapes", error=MeshError)
    return tuple(
        None if shape is None else mesh_sizes(f"{name}[{number}]", shape)
        for number, shape in enumerate(shapes)
    )


def _submeshes(name: str, value: Any) -> tuple[tuple[int, int], ...]:
    """Hosts and devices of each, for each stage."""
    pairs = []
    for number, one in enumerate(checked_sequence(name, value, "pairs", error=MeshError)):
        pair = mesh_sizes(f"{name}[{number}]", one)
        if len(pair) != 2:
            raise MeshError(
                f"{name}[{number}] must be hosts and devices of each, such as (1, 4), got {pair}"
            )
        pairs.append((pair[0], pair[1]))
    return tuple(pairs)


def _by_mesh(
    meshes: Sequence[int], submeshes: Sequence[tuple[int, int, int]]
) -> list[tuple[int, int, int]]:
    """By number of a mesh the submesh that its stages share.

    Args:
        meshes: per stage the number of its mesh.
        submeshes: per stage hosts and devices per host, and their part of the cluster.

    Raises:
        MeshError: a number is left out, or stages of one mesh have different submeshes.
    """
    if not meshes or len(meshes) != len(submeshes) or set(meshes) != set(range(max(meshes) + 1)):
        raise MeshError(
            f"meshes of {len(submeshes)} stages are numbers from 0 on, one per stage and none left "
            f"out, got {tuple(meshes)}"
        )
    found: dict[int, tuple[int, int, int]] = {}
    for mesh, submesh in zip(meshes, submeshes, strict=True):
        own = found.setdefault(mesh, submesh)
        if own[:2] != submesh[:2]:
            raise MeshError(
                f"stages of mesh {mesh} share a submesh, got {own[:2]} and {submesh[:2]}"
            )
        if own != submesh:
            raise MeshError(
                f"stages of mesh {mesh} share a submesh, got parts {own[2]} and {submesh[2]}"
            )
    return [found[mesh] for mesh in range(len(found))]


@dataclass(frozen=True)
class PipelineOptions:
    """What a pipeline is planned under.

    Attributes:
        cluster: all devices.
        stages: how stages are formed.
        num_micro_batches: of a step.
        schedule: of the tasks, by its name or one's own.
        num_chunks: stages per mesh, for the interleaved schedule.
        reduction: how results of independent micro-batches are joined: ``"mean"``, ``"sum"`` or the
            name of the result that is their weight.
        prescription: what is prescribed for inputs of the step.
        mesh_shapes: logical meshes of a stage to try; None for all.
        axis_names: names of their axes, at least as many as they have; None for the usual ones.
        solve: budget and limits of the intra-operator plans.
        budgets: bytes per device of each part of an unlike cluster; empty for that of ``solve``,
            which otherwise is the largest of them.
        carried: per stage strategies of a plan for other sizes, to be taken where they exist; empty
            where strategies are searched.
        pads_sizes: sizes that the devices do not divide may be padded inside of the step.
        attention_keys: attention over that many keys and more may be computed in blocks of keys;
            None leaves all as it is.
        known: per stage strategies of the same stage under another schedule, to be taken where it
            keeps as much; empty where there are none.
        memory_price_s: seconds per step that a byte per device costs, where it is roughly known.
        most_s: what a search for stages must undercut, by its own measure: seconds of a step.
        most_step_s: seconds of a step that must be undercut before stages that exceed the memory
            are planned with less of it.
        is_trial: whether others are tried as well: what does not fit need not say all that it
            lacks.
        store: keeps what is computed on the way.
    """

    cluster: Cluster
    stages: StageOption
    num_micro_batches: int = 1
    schedule: ScheduleKind = ScheduleName.ONE_F_ONE_B
    num_chunks: int = 1
    reduction: str = "mean"
    prescription: Prescription = field(default_factory=Prescription)
    mesh_shapes: tuple[tuple[int, ...], ...] | None = None
    axis_names: tuple[str, ...] | None = None
    solve: SolveOptions = field(default_factory=SolveOptions)
    budgets: tuple[float, ...] = ()
    carried: tuple[CarriedStrategies, ...] = ()
    pads_sizes: bool = False
    attention_keys: int | None = None
    known: tuple[Solution, ...] = ()
    memory_price_s: float | None = None
    most_s: float = math.inf
    most_step_s: float = math.inf
    is_trial: bool = False
    store: Store = OFF

    def __post_init__(self) -> None:
        object.__setattr__(self, "schedule", schedule_kind(self.schedule))

    def budget_of(self, part: int) -> float | None:
        """Bytes per device of a part of the cluster; None for any."""
        return self.budgets[part] if self.budgets else self.solve.memory_budget

    def within(self, share: float) -> PipelineOptions:
        """The same with a part of the memory budget."""
        budget = self.solve.memory_budget
        if budget is None or share == 1:
            return self
        solve = replace(self.solve, memory_budget=share * budget)
        return replace(self, solve=solve, budgets=tuple(share * one for one in self.budgets))

    @property
    def num_updates(self) -> int:
        """Updates of the weights in a step."""
        return num_updates(self.schedule, self.num_micro_batches)


@dataclass(frozen=True)
class StageAssignment:
    """Stages of layers on submeshes.

    Attributes:
        stage_of_layer: per layer its stage, ascending.
        submeshes: per stage hosts and devices per host.
        mesh_shapes: per stage its logical mesh; None where it is still to be chosen.
        meshes: per stage the number of its submesh.
        solutions: per stage its strategies, where a search has found them.
        received_s: in which each stage receives its input, per micro-batch, where a search has
            found them.
        bracket: what a search for stages proved.
        considered: what a search for stages has chosen from.
        parts: per stage the part of an unlike cluster that its submesh is of; empty for the first.
    """

    stage_of_layer: tuple[int, ...]
    submeshes: tuple[tuple[int, int], ...]
    mesh_shapes: tuple[tuple[int, ...] | None, ...]
    meshes: tuple[int, ...]
    solutions: tuple[Solution, ...] = ()
    received_s: tuple[float, ...] = ()
    bracket: Bracket | None = None
    considered: ConsideredStages | None = None
    parts: tuple[int, ...] = ()

    def part_of(self, stage: int) -> int:
        """Number of the part that a stage is on."""
        return self.parts[stage] if self.parts else 0

    @property
    def num_stages(self) -> int:
        """Stages."""
        return len(self.submeshes)

    def layers_of(self, stage: int) -> tuple[int, ...]:
        """Numbers of a stage's layers."""
        return tuple(i for i, number in enumerate(self.stage_of_layer) if number == stage)

    def first_devices(self, cluster: Cluster) -> list[int]:
        """Where the devices of each mesh begin in a cluster."""
        places = [(*size, self.part_of(stage)) for stage, size in enumerate(self.submeshes)]
        found = [(hosts * size, part) for hosts, size, part in _by_mesh(self.meshes, places)]
        return first_devices(found, cluster)


def _per_stage(methods: StageMethods, num_stages: int) -> tuple[StageMethod, ...] | None:
    """One for each stage.

    Raises:
        OptionError: there are more or fewer, or one is none.
    """
    if methods is None:
        return None
    found = tuple(methods) if isinstance(methods, Sequence) else (methods,) * num_stages
    for number, method in enumerate(found):
        if isinstance(method, type) or not isinstance(method, StageMethod):
            what = f"methods: stage {number} has the method {method!r}"
            raise OptionError(f"{what}, must be DataParallel() or another method")
    if len(found) != num_stages:
        raise OptionError(
            f"{num_stages} stages need as many methods, got {len(found)}: pass one for each, or "
            "one that is no sequence for all"
        )
    return found


def _most_stages(num_layers: int, cluster: Cluster, num_chunks: int) -> int:
    """Stages of as many devices each, with a layer at least, on meshes that have several each."""
    counts = (cluster.num_devices, *(part.num_devices for part in cluster.parts))

    def is_even(num_meshes: int) -> bool:
        size, rest = divmod(cluster.num_devices, num_meshes)
        return rest == 0 and all(count % size == 0 for count in counts)

    most = max(filter(is_even, range(1, num_layers // num_chunks + 1)), default=0)
    return num_chunks * most or 1


def uniform(
    option: UniformStages, num_layers: int, cluster: Cluster, meshes: tuple[int, ...]
) -> StageAssignment:
    """Spreads layers over stages and devices over meshes evenly, parts in their order.

    Args:
        option: how many stages.
        num_layers: of the model.
        cluster: all devices.
        meshes: per stage the number of its submesh.

    Raises:
        StageError: there are more stages than layers.
        MeshError: the devices do not divide.
    """
    stages = option.num_stages
    num_meshes = max(meshes) + 1
    if stages > num_layers:
        most = _most_stages(num_layers, cluster, stages // num_meshes)
        raise StageError(
            f"{stages} stages need as many layers, the model has {num_layers}: pass UniformStages("
            f"{most}), the most that {cluster.num_devices} devices divide into, or let it have "
            f"more layers: layers=AutoLayers(num_layers={stages}), of gradients that are taken by "
            "stablehlo_alpa.grad or value_and_grad, outside of loops and branches (what runs once "
            "per step, not once per micro-batch, is of no layer), and that are made by as many "
            "operators"
        )
    size, rest = divmod(cluster.num_devices, num_meshes)
    if rest:
        raise MeshError(
            f"{cluster.num_devices} devices do not divide into {num_meshes} equal submeshes"
        )
    found: list[tuple[int, int, int]] = []
    for number, part in enumerate(cluster.parts):
        count, rest = divmod(part.num_devices, size)
        if rest:
            raise MeshError(
                f"part {number} of the cluster ({cluster_text(part)}) does not divide into "
                f"submeshes of {size} devices: ManualStages(parts=...) places stages of other sizes"
            )
        found += [(*_submesh(size, part), number)] * count
    places = [found[mesh] for mesh in meshes]
    return StageAssignment(
        tuple(layer * stages // num_layers for layer in range(num_layers)),
        tuple((hosts, per_host) for hosts, per_host, _ in places),
        (option.mesh_shape,) * stages,
        meshes,
        parts=parts_of([part for _, _, part in places]),
    )


def manual(
    option: ManualStages, num_layers: int, cluster: Cluster, meshes: tuple[int, ...]
) -> StageAssignment:
    """Takes stages as they are given.

    Args:
        option: the stages.
        num_layers: of the model.
        cluster: all devices.
        meshes: per stage the number of its submesh.

    Raises:
        StageError: the layers do not add up.
        MeshError: the submeshes do not.
    """
    if sum(option.layers) != num_layers:
        raise StageError(
            f"layers {option.layers} of the stages sum to {sum(option.layers)}, the model has "
            f"{num_layers}: name as many, or cut it into {sum(option.layers)} by layers=AutoLayers("
            f"num_layers={sum(option.layers)})"
        )
    num_stages = len(option.layers)
    _check_covered(_by_mesh(meshes, option.places), cluster)
    stage_of_layer = [stage for stage, count in enumerate(option.layers) for _ in range(count)]
    shapes: Sequence[tuple[int, ...] | None] = option.mesh_shapes or (None,) * num_stages
    parts = parts_of(option.parts or ())
    return StageAssignment(
        tuple(stage_of_layer), tuple(option.submeshes), tuple(shapes), meshes, parts=parts
    )


def _check_covered(places: Sequence[tuple[int, int, int]], cluster: Cluster) -> None:
    """Raises ``MeshError`` unless submeshes have the devices of every part of a cluster."""
    if not all(0 <= part < len(cluster.parts) for _, _, part in places):
        raise MeshError(
            f"parts {tuple(part for _, _, part in places)} of the submeshes are numbers from 0 on, "
            f"the cluster has {len(cluster.parts)}"
        )
    for number, one in enumerate(cluster.parts):
        own = tuple((hosts, size) for hosts, size, part in places if part == number)
        total = sum(hosts * size for hosts, size in own)
        if total != one.num_devices:
            where = f"part {number} of the cluster" if len(cluster.parts) > 1 else "the cluster"
            raise MeshError(f"submeshes {own} have {total} devices, {where} has {one.num_devices}")


def _submesh(size: int, cluster: ClusterSpec) -> tuple[int, int]:
    """Hosts and devices per host of a submesh of some devices."""
    per_host = cluster.devices_per_host
    if size <= per_host:
        if per_host % size:
            raise MeshError(f"submeshes of {size} devices do not divide hosts of {per_host}")
        return (1, size)
    if size % per_host:
        raise MeshError(f"submeshes of {size} devices are no multiple of hosts of {per_host}")
    return (size // per_host, per_host)


def tried_shapes(
    options: PipelineOptions, assignment: StageAssignment, number: int
) -> tuple[tuple[int, ...], ...]:
    """The logical meshes that a stage may have.

    Args:
        options: what the pipeline is planned under.
        assignment: its stages.
        number: of the stage.
    """
    hosts, per_host = assignment.submeshes[number]
    shape, methods = assignment.mesh_shapes[number], options.stages.stage_methods
    if shape is not None:
        return (shape,)
    if methods:
        shapes = methods[number].mesh_shapes(hosts * per_host, hosts)
    else:
        shapes = options.mesh_shapes or tuple(logical_mesh_shapes(hosts * per_host, hosts))
    # Stages of one mesh share it: its shape must not depend on the stage.
    is_shared = len(set(assignment.meshes)) < assignment.num_stages
    return shapes[:1] if is_shared else shapes
