"""Runs a plan for a caller who has in one array what the plan has in parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import jax

from alpa_runtime.analysis import MemoryStats
from alpa_runtime.checkpoint import Leaf, read_part
from alpa_runtime.errors import InputError
from alpa_runtime.executable import Executable
from alpa_runtime.inputs import (
    check_input,
    check_shared,
    checked_aval,
    deleted_error,
    input_avals,
)
from alpa_runtime.plan import Plan
from alpa_runtime.stacked_signature import StackedSignature
from alpa_runtime.stacks import JoinedSharding, Stack, StackedArray, StackedSharding

_Placement: TypeAlias = JoinedSharding | StackedSharding


class StackedExecutable:
    """An `Executable` of the flat inputs and outputs of a caller.

    A stack whose parts lie alike is one ``jax.Array``, of others there is a `StackedArray`. What a
    step returns is cut again without a copy, unless a mesh has several parts of it.
    """

    def __init__(self, executable: Executable, signature: StackedSignature) -> None:
        """Takes what runs the plan.

        Args:
            executable: of the plan's inputs and outputs.
            signature: inputs and outputs of the caller.
        """
        self._executable = executable
        avals = input_avals(executable.plan)
        self._inputs = [
            _Input(
                executable.plan,
                name,
                one,
                _placement(one, executable.in_shardings),
                one.whole_aval([avals[number] for number in one.numbers]),
            )
            for name, one in zip(signature.names, signature.inputs, strict=True)
        ]
        self._donated = frozenset(i for i, one in enumerate(self._inputs) if one.is_donated)
        self._is_compiled = False
        self._outputs = [
            (one, _placement(one, executable.out_shardings)) for one in signature.outputs
        ]

    @property
    def plan(self) -> Plan:
        """See `Executable`."""
        return self._executable.plan

    @property
    def meshes(self) -> tuple[Any, ...]:
        """See `Executable`."""
        return self._executable.meshes

    @property
    def mesh(self) -> Any:
        """See `Executable`."""
        return self._executable.mesh

    @property
    def in_shardings(self) -> tuple[Any, ...]:
        """See `Executable`; of what is no one array a `StackedSharding`."""
        shardings = self._executable.in_shardings
        return tuple(_sharding(one.stack, one.placement, shardings) for one in self._inputs)

    @property
    def out_shardings(self) -> tuple[Any, ...]:
        """See `Executable`."""
        return tuple(_sharding(*one, self._executable.out_shardings) for one in self._outputs)

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        """See `Executable`."""
        if len(args) != len(self._inputs):
            raise InputError(f"{self.plan.name} takes {len(self._inputs)} arrays, got {len(args)}")
        # All of them before the first is taken: a call that is refused leaves its state as it was.
        for one, arg in zip(self._inputs, args, strict=True):
            one.check(arg)
        check_shared(self.plan.name, args, self._donated, lambda i: self._inputs[i].name)
        if not self._is_compiled:
            self.compile()
        given: dict[int, Any] = {}
        for one, arg in zip(self._inputs, args, strict=True):
            given |= zip(one.stack.numbers, one.taken(arg), strict=True)
        results = self._executable(*(given[number] for number in range(len(given))))
        return tuple(
            _joined(*one, [results[number] for number in one[0].numbers]) for one in self._outputs
        )

    def compile(self) -> None:
        """See `Executable`."""
        self._executable.compile()
        self._is_compiled = True

    def feed(self, index: int, array: Any) -> Any:
        """See `Executable`."""
        own = self._inputs[index]
        if own.placement is None:
            return self._executable.feed(own.stack.numbers[0], array)
        own.check(array)
        parts = zip(own.stack.numbers, own.placement.cut(array), strict=True)
        return StackedArray(own.stack, [self._executable.feed(*one) for one in parts])

    def create(
        self, make: Callable[..., Any], leaves: Sequence[Any], argnums: Sequence[int]
    ) -> list[Any]:
        """See `Executable`."""
        chosen = [self._inputs[index] for index in argnums]

        def make_parts(*args: Any) -> list[Any]:
            made: list[Any] = []
            for one, whole in zip(chosen, make(*args), strict=True):
                made += [whole] if one.stack.is_whole else one.stack.cut(whole)
            return made

        numbers = [number for one in chosen for number in one.stack.numbers]
        parts = iter(self._executable.create(make_parts, leaves, numbers))
        return [
            _joined(one.stack, one.placement, islice(parts, len(one.stack.numbers)))
            for one in chosen
        ]

    def restore(self, folder: Path, leaves: Sequence[Leaf], argnums: Sequence[int]) -> list[Any]:
        """See `Executable`."""
        here = jax.sharding.SingleDeviceSharding(jax.local_devices(backend="cpu")[0])
        whole: dict[int, int] = {}
        parts: dict[int, tuple[Leaf, Any]] = {}
        for position, (leaf, index) in enumerate(zip(leaves, argnums, strict=True)):
            placement = self._inputs[index].placement
            if placement is None:
                whole[position] = self._inputs[index].stack.numbers[0]
            else:
                joined = placement.sharding if isinstance(placement, JoinedSharding) else here
                parts[position] = leaf, joined
        own = self._executable.restore(
            folder, [leaves[position] for position in whole], list(whole.values())
        )
        found = dict(zip(whole, own, strict=True)) | read_part(folder, parts)
        return [found[position] for position in range(len(leaves))]

    def as_text(self, program: int | str | None = None) -> str:
        """See `Executable`."""
        return self._executable.as_text(program)

    def memory_analysis(self) -> tuple[MemoryStats, ...]:
        """See `Executable`."""
        return self._executable.memory_analysis()

    def cost_analysis(self) -> tuple[Mapping[str, float], ...]:
        """See `Executable`."""
        return self._executable.cost_analysis()

    def close(self) -> None:
        """See `Executable`."""
        self._executable.close()


def stacked(executable: Executable, path: str | os.PathLike[str]) -> Executable:
    """What runs a saved plan, for inputs and outputs as the function has them.

    Args:
        executable: of the plan's inputs and outputs, of which some may be parts of the function's.
        path: the file of the plan.

    Returns:
        what takes stacks of layers as a whole; ``executable`` where the plan has none in parts.

    Raises:
        ProgramError: the file is damaged, or of another plan.
    """
    signature = StackedSignature.read(path, executable.plan)
    return executable if signature is None else StackedExecutable(executable, signature)


@dataclass(frozen=True)
class _Input:
    """An argument of the caller.

    Attributes:
        plan: whose inputs are its parts.
        name: as messages spell it.
        stack: the parts.
        placement: how they lie; None of what is whole.
        aval: of the whole.
    """

    plan: Plan
    name: str
    stack: Stack
    placement: _Placement | None
    aval: jax.ShapeDtypeStruct

    @property
    def is_donated(self) -> bool:
        """Whether a step takes the argument."""
        return self.plan.inputs[self.stack.numbers[0]].is_donated

    def check(self, arg: Any) -> None:
        """Refuses an argument of another shape or dtype, and one that is gone."""
        found = checked_aval(self.plan.name, self.name, arg)
        check_input(self.plan.name, self.name, self.aval, found)
        if hasattr(arg, "is_deleted") and arg.is_deleted():
            raise deleted_error(self.plan.name, self.name)

    def taken(self, arg: Any) -> Sequence[Any]:
        """The parts of an argument of a step, which takes it where it is donated."""
        if self.placement is None:
            return [arg]
        parts = self.placement.cut(arg)
        joined = self.placement if isinstance(self.placement, JoinedSharding) else None
        if self.is_donated and joined is not None and joined.copies(arg):
            # Not with its parts in memory while the step runs.
            arg.delete()
        return parts


def _placement(stack: Stack, shardings: Sequence[Any]) -> _Placement | None:
    """How the parts of a stack lie; None of what is whole."""
    if stack.is_whole:
        return None
    own = [shardings[number] for number in stack.numbers]
    return JoinedSharding.find(stack, own) or StackedSharding(stack, tuple(own))


def _sharding(stack: Stack, placement: _Placement | None, shardings: Sequence[Any]) -> Any:
    if placement is None:
        return shardings[stack.numbers[0]]
    return placement.sharding if isinstance(placement, JoinedSharding) else placement


def _joined(stack: Stack, placement: _Placement | None, parts: Iterable[Any]) -> Any:
    own = list(parts)
    return own[0] if placement is None else placement.joined(own)
