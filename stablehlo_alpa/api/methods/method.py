"""What every method of parallelising a function has in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from alpa_runtime import RuntimeOptions

from stablehlo_alpa.cluster import DeviceSpec, logical_mesh_shapes, preset_for
from stablehlo_alpa.errors import MeshError, OptionError
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.inter_op.options import mesh_sizes
from stablehlo_alpa.option_checks import (
    checked_choice,
    checked_flag,
    checked_instance,
    checked_integer,
    checked_number,
    checked_text,
    restated,
    settle,
)
from stablehlo_alpa.planning import Prescription
from stablehlo_alpa.units import parse_bytes

BACKENDS = ("alpa", "shardy", "gspmd")

LONG_ATTENTION = 8192
"""Keys from which on attention is planned in blocks of keys as well (heuristic): where scores are
fewer there is room for them, and blocks send as much and read them as often."""


@dataclass(frozen=True)
class Method:
    """What every method has in common.

    Attributes:
        mesh_shape: sizes of the mesh axes; None leaves the choice to the method.
        memory_budget: bytes per device that live tensors may take, a number or text such as
            ``"10GiB"``; None for the memory of the device.
        device: a device preset (``"h100-80gb"``) or description to plan for; None for the devices
            that are there.
        time_limit_s: seconds of work that the solver may do for one mesh shape, counted: the plan
            does not depend on how busy the machine is.
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
        attention_keys: attention over that many keys and more may be computed in blocks of keys,
            its queries, keys and values split along one sequence, where that is faster or all
            that fits; None leaves attention as the step has it. Only our own passes do so: with
            another ``backend`` it stays as it is.
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
    attention_keys: int | None = LONG_ATTENTION

    def __post_init__(self) -> None:
        settle(self, checked_choice, "backend", choices=BACKENDS)
        settle(self, checked_choice, "micro_batches", choices=("shards", "independent"))
        settle(self, checked_choice, "keys", choices=("same", "split"))
        settle(self, checked_text, "reduction")
        settle(self, checked_integer, "num_micro_batches", is_optional=True, least=1)
        _check_micro_batches(self)
        settle(self, checked_integer, "attention_keys", is_optional=True)
        if self.attention_keys is not None and self.attention_keys < 1:
            raise OptionError(f"attention_keys is {self.attention_keys}, must be None or >= 1")
        settle(self, _mesh_shape, "mesh_shape", is_optional=True)
        settle(self, _memory_size, "memory_budget", is_optional=True)
        settle(self, checked_number, "time_limit_s", above=0)
        settle(self, _device, "device", is_optional=True)

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
    def is_open(self) -> bool:
        """Whether something follows from the function that only `concrete` fills in."""
        return False

    def concrete(self, program: TracedProgram, num_devices: int) -> Method:
        """The method for one function on so many devices, nothing left open."""
        return self

    @property
    def has_one_mesh(self) -> bool:
        """Whether the function runs on one mesh."""
        return True

    @property
    def leaner(self) -> tuple[str, ...]:
        """Attributes that take less memory than what the method has, as one would write them."""
        return ()

    @property
    def runtime_options(self) -> RuntimeOptions:
        """How it is run."""
        return RuntimeOptions()

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
    """The ILP chooses everything; all logical mesh shapes are tried unless one is given.

    Attributes:
        pad: sizes of products that the devices do not divide (a vocabulary of 50257, a batch of 6)
            may be padded inside of the step, where that makes it faster; arguments and results
            keep their shapes.
    """

    pad: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, checked_flag, "pad")


def _check_micro_batches(method: Method) -> None:
    count = method.num_micro_batches
    if method.micro_batches == "independent" and count is None:
        raise OptionError(
            'micro_batches="independent" gives another result for every number of them: pass '
            "num_micro_batches"
        )
    for name, usual in (("reduction", "mean"), ("keys", "same")):
        if method.micro_batches != "independent" and getattr(method, name) != usual:
            raise OptionError(
                f"{name}={getattr(method, name)!r} is of independent micro-batches: pass "
                'micro_batches="independent", or leave it out (shards of a batch compute what '
                "the step has)"
            )
    if (count or 1) > 1 and method.backend != "alpa":
        raise OptionError(
            f"num_micro_batches={count} makes several programs, backend={method.backend!r} "
            'partitions one: pass backend="alpa"'
        )


def mesh_size(shape: Sequence[int]) -> int:
    """Devices of a mesh shape."""
    return math.prod(shape)


def _mesh_shape(name: str, shape: Any) -> tuple[int, ...]:
    if isinstance(shape, int | np.integer):
        raise MeshError(
            f"{name} has one size per axis, got {shape}: write {name}=({shape},), and what was "
            "meant to be another argument by its name"
        )
    return mesh_sizes(name, shape)


def _memory_size(name: str, size: Any) -> float:
    """Bytes of a number or of text."""
    if not isinstance(size, str):
        size = checked_number(name, size)
    with restated(f"{name} is {size!r}: "):
        return parse_bytes(size)


def _device(name: str, device: Any) -> DeviceSpec:
    what = 'the name of a preset such as "h100-80gb", or a DeviceSpec'
    checked_instance(name, device, (str, DeviceSpec), what, error=MeshError)
    return device if isinstance(device, DeviceSpec) else preset_for(device)
