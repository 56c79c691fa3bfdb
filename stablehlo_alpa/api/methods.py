"""How a function is to be parallelised: frozen descriptions, validated when made."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import jax
from alpa_runtime import RuntimeOptions
from jax.sharding import NamedSharding, PartitionSpec

from stablehlo_alpa.api.batches import batch_inputs, is_key
from stablehlo_alpa.cluster import DeviceSpec, logical_mesh_shapes, preset_for
from stablehlo_alpa.errors import MeshError, ShardingError
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.inter_op import AutoStages, ScheduleName, StageOption
from stablehlo_alpa.layers import AutoLayers, LayerOption
from stablehlo_alpa.planning import (
    Exactly,
    Finest,
    Near,
    Prescription,
    Role,
    SplitBatch,
    Whole,
    Wish,
)
from stablehlo_alpa.units import parse_bytes

BACKENDS = ("alpa", "shardy", "gspmd")


@dataclass(frozen=True)
class Method:
    """What every method has in common.

    Attributes:
        mesh_shape: sizes of the mesh axes; None leaves the choice to the method.
        memory_budget: bytes per device that live tensors may take, a number or text such as
            ``"10GiB"``; None for the memory of the device.
        device: a device preset (``"h100-80gb"``) or description to plan for; None for the devices
            that are there.
        time_limit_s: seconds the solver may take for one mesh shape.
        backend: who writes the program of each device: ``"alpa"``, our own passes, or XLA's
            partitioner under the plan's shardings, ``"shardy"`` or ``"gspmd"`` (the one that jax is
            configured to use).
        num_micro_batches: equal parts of the batch, one after the other, that a step works on;
            gradients are reduced once, behind the last. None searches: on one mesh only when the
            whole batch does not fit the memory.
        micro_batches: ``"shards"``: what a step computes is what it computes on the whole batch,
            and is refused where that takes more than one micro-batch at a time (batch statistics).
            ``"independent"``: the differentiated function is traced for one micro-batch and what it
            returns, and the gradients, are joined as ``reduction`` says; ``num_micro_batches`` has
            to be given.
        reduction: of independent micro-batches: ``"mean"`` of floating-point numbers, ``"sum"``, or
            the name of the result that is the weight of each (``"result[1]['tokens']"``), a number
            that leaves the differentiated function: it is added up, and all else is the mean
            weighted by it. What does not depend on the batch is handed on.
        keys: single PRNG keys of the differentiated function in independent micro-batches:
            ``"same"`` for all, or ``"split"``: each has its own of
            ``jax.random.split(key, num_micro_batches)``.
    """

    mesh_shape: tuple[int, ...] | None = None
    memory_budget: float | str | None = None
    device: str | DeviceSpec | None = None
    time_limit_s: float = 600.0
    backend: str = "alpa"
    num_micro_batches: int | None = None
    micro_batches: str = "shards"
    reduction: str = "mean"
    keys: str = "same"

    def __post_init__(self) -> None:
        _check_choice("backend", self.backend, BACKENDS)
        _check_choice("micro_batches", self.micro_batches, ("shards", "independent"))
        _check_choice("keys", self.keys, ("same", "split"))
        self._check_micro_batches()
        if self.mesh_shape is not None:
            shape = tuple(int(size) for size in self.mesh_shape)
            if not shape or any(size < 1 for size in shape):
                raise MeshError(f"mesh_shape has at least one axis, all sizes >= 1, got {shape}")
            object.__setattr__(self, "mesh_shape", shape)
        if self.memory_budget is not None:
            object.__setattr__(self, "memory_budget", parse_bytes(self.memory_budget))
        if not self.time_limit_s > 0:
            raise ValueError(f"time_limit_s must be > 0, got {self.time_limit_s}")
        if self.device is not None:
            object.__setattr__(self, "device", _device(self.device))

    def _check_micro_batches(self) -> None:
        count = self.num_micro_batches
        if count is not None and count < 1:
            raise ValueError(f"num_micro_batches must be >= 1, got {count}")
        if self.micro_batches == "independent" and count is None:
            raise ValueError(
                'micro_batches="independent" gives another result for every number of them: pass '
                "num_micro_batches"
            )
        for name, usual in (("reduction", "mean"), ("keys", "same")):
            if self.micro_batches != "independent" and getattr(self, name) != usual:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is of independent micro-batches: pass "
                    'micro_batches="independent", or leave it out (shards of a batch compute what '
                    "the step has)"
                )
        if (count or 1) > 1 and self.backend != "alpa":
            raise ValueError(
                f"num_micro_batches={count} makes several programs, backend={self.backend!r} "
                'partitions one: pass backend="alpa"'
            )

    @property
    def num_parts(self) -> int:
        """Parts of a batch of which the function is traced for one."""
        return (self.num_micro_batches or 1) if self.micro_batches == "independent" else 1

    @property
    def num_key_parts(self) -> int | None:
        """Micro-batches that keys are split for; None where they are the same."""
        return self.num_parts if self.keys == "split" and self.num_parts > 1 else None

    @property
    def axis_names(self) -> tuple[str, ...] | None:
        """Names of the mesh axes, None for the usual ones."""
        return None

    def mesh_shapes(self, num_devices: int, num_hosts: int) -> tuple[tuple[int, ...], ...]:
        """The mesh shapes to try."""
        if self.mesh_shape is not None:
            return (self.mesh_shape,)
        return tuple(logical_mesh_shapes(num_devices, num_hosts))

    def prescription(self, program: TracedProgram) -> Prescription:
        """What the method prescribes for the inputs of a program."""
        return Prescription()

    @property
    def follows_inputs(self) -> bool:
        """Whether the plan depends on where the inputs lie."""
        return False

    @property
    def has_layers(self) -> bool:
        """Whether the function may be cut into stages."""
        return self.follows_inputs

    def bind(self, flat: Sequence[Any]) -> Method:
        """The method for these flat inputs; only one that follows its inputs changes."""
        return self

    def brief(self) -> str:
        """The method with the attributes that are not at their defaults."""
        default = type(self)()
        given = [
            f"{one.name}={getattr(self, one.name)!r}"
            for one in fields(self)
            if getattr(self, one.name) != getattr(default, one.name)
        ]
        return f"{type(self).__name__}({', '.join(given)})"


@dataclass(frozen=True)
class ShardParallel(Method):
    """The ILP chooses everything; all logical mesh shapes are tried unless one is given."""


@dataclass(frozen=True)
class DataParallel(Method):
    """Batches are split over all devices, everything else is replicated."""

    def mesh_shapes(self, num_devices: int, num_hosts: int) -> tuple[tuple[int, ...], ...]:
        """One axis, unless a shape is given."""
        return (self.mesh_shape or (num_devices,),)

    def prescription(self, program: TracedProgram) -> Prescription:
        """Batches split on dimension 0, state as the method says, the rest whole."""
        batch, others = batch_inputs(program)
        wishes: dict[int, Wish] = {}
        for index, value in enumerate(program.inputs):
            if index in batch and value.shape:
                wishes[index] = SplitBatch()
            elif index in program.aliases:
                wishes[index] = self._state_wish
            elif is_key(value):
                wishes[index] = Whole()
            else:
                wishes[index] = self._other_wish(others.get(index, ""))
        return Prescription(inputs=wishes, splits_work=True)

    @property
    def _state_wish(self) -> Wish:
        """For parameters and optimiser state."""
        return Whole()

    def _other_wish(self, remark: str) -> Wish:
        """For what is neither state nor a batch: parameters that the program does not change."""
        return Whole(remark)


@dataclass(frozen=True)
class Zero2Parallel(DataParallel):
    """Data parallelism whose optimiser state is split wherever a dimension divides."""

    @property
    def _state_wish(self) -> Wish:
        return Finest(Role.OTHER)


@dataclass(frozen=True)
class Zero3Parallel(DataParallel):
    """Data parallelism whose optimiser state and parameters are split."""

    @property
    def _state_wish(self) -> Wish:
        return Finest()

    def _other_wish(self, remark: str) -> Wish:
        return Finest(Role.PARAMETER)


@dataclass(frozen=True)
class ManualSharding(Method):
    """Some inputs are pinned, the ILP does the rest.

    Attributes:
        in_specs: argument number -> pytree prefix of ``PartitionSpec`` (None leaves a part to the
            ILP, ``PartitionSpec()`` replicates it), or name of an input or of a part of an
            argument, as error messages spell it (``"state.params"``) -> one ``PartitionSpec``.
        names: names of the mesh axes; x, y, z when not given.
    """

    in_specs: Mapping[int | str, Any] = field(default_factory=dict, hash=False)
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for key, spec in self.in_specs.items():
            if not isinstance(key, int | str):
                raise ShardingError(f"in_specs has key {key!r}, must be a number or a name")
            if isinstance(key, str) and not isinstance(spec, PartitionSpec):
                raise ShardingError(f"in_specs[{key!r}] is {spec!r}, must be a PartitionSpec")
        if self.names is not None:
            object.__setattr__(self, "names", tuple(self.names))
            if self.mesh_shape is None or len(self.names) != len(self.mesh_shape):
                raise MeshError(
                    f"names {self.names} and mesh_shape {self.mesh_shape} must have as many axes"
                )

    @property
    def axis_names(self) -> tuple[str, ...] | None:
        """As given."""
        return self.names

    def prescription(self, program: TracedProgram) -> Prescription:
        """The inputs named in ``in_specs``."""
        pinned: dict[int, PartitionSpec] = {}
        for key, spec in self.in_specs.items():
            specs = (
                _by_name(program, key, spec)
                if isinstance(key, str)
                else _by_argument(program, key, spec)
            )
            for index, one in specs.items():
                before = pinned.setdefault(index, one)
                if _trimmed(before) != _trimmed(one):
                    raise ShardingError(
                        f"in_specs pins {program.inputs[index].name} twice, to {before} and to "
                        f"{one}; leave one of them out"
                    )
        return Prescription({index: Exactly(one) for index, one in pinned.items()})


@dataclass(frozen=True)
class FollowedMesh:
    """A mesh that inputs lie on.

    Attributes:
        axes: names and sizes.
        devices: of this process, flattened; None where there are none.
        number: of the mesh in the session of a cluster; None in this process.
    """

    axes: tuple[tuple[str, int], ...]
    devices: tuple[jax.Device, ...] | None
    number: int | None = None

    @classmethod
    def of(cls, sharding: Any) -> FollowedMesh | None:
        """The mesh of a sharding; None of one that names no mesh."""
        if isinstance(sharding, NamedSharding):
            mesh = sharding.mesh
            is_there = isinstance(mesh, jax.sharding.Mesh)
            devices = tuple(mesh.devices.flat) if is_there else None
            return cls(tuple(mesh.shape.items()), devices)
        if hasattr(sharding, "mesh_axes"):
            return cls(tuple(sharding.mesh_axes), None, sharding.mesh)
        return None

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Names of the axes."""
        return tuple(name for name, _ in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return tuple(size for _, size in self.axes)

    def __str__(self) -> str:
        ids = [device.id for device in self.devices or ()]
        return f"{dict(self.axes)}" + (f" of devices {ids}" if ids else "")


@dataclass(frozen=True)
class FollowParallel(Method):
    """Inputs keep the shardings that they have, on the meshes that they lie on.

    Arrays with other shardings, or on another mesh, get a plan of their own. The state of a
    pipeline lies on several meshes: its stages are those of the function as well.

    Attributes:
        flat_specs: per flat input its sharding, None for arrays that have none; filled in from the
            arrays of a call.
        names: names of the axes of their mesh.
        devices: of their mesh, flattened; None where they lie on an abstract one.
        meshes: the meshes, where there are several.
        flat_meshes: per flat input the number of its mesh.
    """

    flat_specs: tuple[PartitionSpec | None, ...] = ()
    names: tuple[str, ...] | None = None
    devices: tuple[jax.Device, ...] | None = None
    meshes: tuple[FollowedMesh, ...] = ()
    flat_meshes: tuple[int | None, ...] = ()

    @property
    def follows_inputs(self) -> bool:
        """It does."""
        return True

    @property
    def axis_names(self) -> tuple[str, ...] | None:
        """Those of the mesh of the inputs."""
        return self.names

    def mesh_shapes(self, num_devices: int, num_hosts: int) -> tuple[tuple[int, ...], ...]:
        """The mesh of the inputs."""
        return (self.mesh_shape or (num_devices,),)

    def bind(self, flat: Sequence[Any]) -> Method:
        """Reads mesh and shardings off the inputs."""
        shardings = [getattr(leaf, "sharding", None) for leaf in flat]
        placed = [None if s is None else FollowedMesh.of(s) for s in shardings]
        meshes = tuple(dict.fromkeys(mesh for mesh in placed if mesh is not None))
        if not meshes:
            raise ShardingError(
                "no input of a function that follows its inputs has a NamedSharding, pass arrays "
                "(or ShapeDtypeStructs) that are sharded already"
            )
        specs = tuple(
            None if s is None or mesh is None else s.spec
            for s, mesh in zip(shardings, placed, strict=True)
        )
        if len(meshes) > 1:
            _check_apart(meshes)
            numbers = tuple(None if mesh is None else meshes.index(mesh) for mesh in placed)
            return replace(self, flat_specs=specs, meshes=meshes, flat_meshes=numbers)
        (mesh,) = meshes
        return replace(
            self,
            mesh_shape=mesh.shape,
            flat_specs=specs,
            names=mesh.axis_names,
            devices=mesh.devices,
        )

    def prescription(self, program: TracedProgram) -> Prescription:
        """Every input that came with a sharding keeps it, where the program allows that."""
        return Prescription(
            inputs={i: Near(spec) for i, spec in enumerate(self.flat_specs) if spec is not None}
        )


@dataclass(frozen=True)
class PipeshardParallel(Method):
    """A pipeline: runs of layers on submeshes, each split by the ILP.

    The function must take its gradients by ``stablehlo_alpa.grad`` or ``value_and_grad``; one
    without gradients is a pipeline that runs forward only. ``mesh_shape`` is not used: stages have
    theirs.

    Attributes:
        layers: how the forward function is cut into layers.
        stages: how layers become stages.
        schedule: ``"1f1b"``, ``"gpipe"``, ``"zero_bubble"`` or ``"interleaved"``; None searches.
        num_chunks: stages per mesh under the interleaved schedule.
        runtime: how it is run, e.g. traced.
    """

    layers: LayerOption = field(default_factory=AutoLayers)
    stages: StageOption = field(default_factory=AutoStages)
    schedule: str | None = None
    num_chunks: int = 1
    runtime: RuntimeOptions = field(default_factory=RuntimeOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.backend != "alpa":
            raise ValueError(
                f"backend={self.backend!r} splits one program over one mesh; a pipeline has "
                'several and takes "alpa"'
            )
        if self.num_chunks < 1:
            raise ValueError(f"num_chunks must be >= 1, got {self.num_chunks}")
        if self.num_chunks > 1 and self.schedule != "interleaved":
            raise ValueError(
                f"schedule {self.schedule!r} has one stage per mesh, num_chunks={self.num_chunks} "
                'needs "interleaved"'
            )
        if self.mesh_shape is not None:
            raise MeshError(
                f"mesh_shape={self.mesh_shape} is of one mesh: a pipeline takes "
                "UniformStages(mesh_shape=...) or ManualStages(mesh_shapes=...)"
            )
        if self.schedule is not None:
            # Refuses a name that there is not.
            ScheduleName(self.schedule)

    @property
    def has_layers(self) -> bool:
        """It is."""
        return True


def _check_apart(meshes: Sequence[FollowedMesh]) -> None:
    """Meshes of one function are the submeshes of a pipeline."""
    for one, other in itertools.combinations(meshes, 2):
        is_apart = one.number is not None and other.number is not None
        if one.devices is not None and other.devices is not None:
            is_apart = not set(one.devices) & set(other.devices)
        if not is_apart:
            raise MeshError(
                f"inputs lie on different meshes with devices in common: {one} and {other}; bring "
                "them to one with jax.device_put"
            )
    longest = max((mesh.axis_names for mesh in meshes), key=len)
    for mesh in meshes:
        if mesh.axis_names != longest[: len(mesh.axis_names)]:
            raise MeshError(
                f"inputs lie on meshes whose axes have different names: {longest} and "
                f"{mesh.axis_names}; bring them to meshes with equal names with "
                "jax.device_put"
            )


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}, must be one of {', '.join(choices)}")


def _device(device: str | DeviceSpec) -> DeviceSpec:
    return device if isinstance(device, DeviceSpec) else preset_for(device)


def _trimmed(spec: PartitionSpec) -> tuple[Any, ...]:
    """A spec without the dimensions at its end that it leaves whole."""
    entries = list(spec)
    while entries and entries[-1] is None:
        entries.pop()
    return tuple(entries)


def _by_name(program: TracedProgram, name: str, spec: PartitionSpec) -> dict[int, PartitionSpec]:
    found = dict.fromkeys(program.inputs_of(name), spec)
    if not found:
        raise ShardingError(
            f"in_specs names {name!r}, inputs of {program.name} are "
            + ", ".join(value.name for value in program.inputs[:8])
            + (", ..." if len(program.inputs) > 8 else "")
        )
    return found


def _by_argument(program: TracedProgram, argnum: int, spec: Any) -> dict[int, PartitionSpec]:
    """Broadcasts a pytree prefix of specs over the leaves of an argument."""
    leaves = program.inputs_of(argnum)
    if not leaves:
        raise ShardingError(
            f"in_specs names argument {argnum}, {program.name} has no array in that position"
        )
    positional, named = jax.tree.unflatten(program.in_tree, range(len(program.inputs)))
    arguments = (*positional, *named.values())
    argument = next(a for a in arguments if leaves[0] in jax.tree.leaves(a))

    def is_spec(node: Any) -> bool:
        return node is None or isinstance(node, PartitionSpec)

    found: dict[int, PartitionSpec] = {}

    def spread(one: PartitionSpec | None, part: Any) -> None:
        if one is not None:
            found.update(dict.fromkeys(jax.tree.leaves(part), one))

    try:
        jax.tree.map(spread, spec, argument, is_leaf=is_spec)
    except ValueError as error:
        raise ShardingError(
            f"in_specs[{argnum}] is no prefix of the argument of {program.name}: {error}"
        ) from error
    return found


def mesh_size(shape: Sequence[int]) -> int:
    """Devices of a mesh shape."""
    return math.prod(shape)
