"""Runs a plan for a caller who has in one array what the plan has in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import jax

from alpa_runtime.analysis import MemoryStats
from alpa_runtime.checkpoint import Leaf, read_part
from alpa_runtime.errors import InputError
from alpa_runtime.executable import Executable
from alpa_runtime.inputs import check_input, checked_aval, deleted_error
from alpa_runtime.plan import Plan
from alpa_runtime.stacks import JoinedSharding, Stack, StackedArray, StackedSharding

_Placement: TypeAlias = JoinedSharding | StackedSharding


class StackedExecutable:
    """An `Executable` of the flat inputs and outputs of a caller.

    A stack whose parts lie alike is one ``jax.Array``, of others there is a `StackedArray`. What a
    step returns is cut again without a copy, unless a mesh has several parts of it.
    """

    def __init__(
        self,
        executable: Executable,
        inputs: Sequence[Stack],
        outputs: Sequence[Stack],
        names: Sequence[str],
    ) -> None:
        """Takes what runs the plan.

        Args:
            executable: of the plan's inputs and outputs.
            inputs: those of the caller.
            outputs: those of the caller.
            names: of the inputs.
        """
        self._executable, self._names = executable, tuple(names)
        self._inputs = [(one, _placement(one, executable.in_shardings)) for one in inputs]
        self._outputs = [(one, _placement(one, executable.out_shardings)) for one in outputs]

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
        return tuple(_sharding(*one, self._executable.in_shardings) for one in self._inputs)

    @property
    def out_shardings(self) -> tuple[Any, ...]:
        """See `Executable`."""
        return tuple(_sharding(*one, self._executable.out_shardings) for one in self._outputs)

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        """See `Executable`."""
        if len(args) != len(self._inputs):
            raise InputError(f"{self.plan.name} takes {len(self._inputs)} arrays, got {len(args)}")
        for index, arg in enumerate(args):
            self._check(index, arg)
        given: dict[int, Any] = {}
        for index, arg in enumerate(args):
            given |= zip(self._inputs[index][0].numbers, self._taken(index, arg), strict=True)
        results = self._executable(*(given[number] for number in range(len(given))))
        return tuple(
            _joined(*one, [results[number] for number in one[0].numbers]) for one in self._outputs
        )

    def _check(self, index: int, arg: Any) -> None:
        """Refuses an argument of another shape or dtype, by the name that the caller knows."""
        stack, name = self._inputs[index][0], self._names[index]
        values = [self.plan.inputs[number].value for number in stack.numbers]
        aval = values[0].aval({})
        if not stack.is_whole:
            shape = list(aval.shape)
            shape[stack.dim] = sum(stack.sizes)
            aval = jax.ShapeDtypeStruct(tuple(shape), aval.dtype)
            check_input(self.plan.name, name, aval, checked_aval(self.plan.name, name, arg))
            if hasattr(arg, "is_deleted") and arg.is_deleted():
                raise deleted_error(self.plan.name, name)

    def _taken(self, index: int, arg: Any) -> Sequence[Any]:
        """The parts of an argument of a step, which takes it where it is donated."""
        stack, placement = self._inputs[index]
        if placement is None:
            return [arg]
        parts = placement.cut(arg)
        is_donated = self.plan.inputs[stack.numbers[0]].is_donated
        if is_donated and isinstance(placement, JoinedSharding) and placement.copies(arg):
            # Not with its parts in memory while the step runs.
            arg.delete()
        return parts

    def compile(self) -> None:
        """See `Executable`."""
        self._executable.compile()

    def feed(self, index: int, array: Any) -> Any:
        """See `Executable`."""
        stack, placement = self._inputs[index]
        if placement is None:
            return self._executable.feed(stack.numbers[0], array)
        self._check(index, array)
        parts = zip(stack.numbers, placement.cut(array), strict=True)
        return StackedArray(stack, [self._executable.feed(*one) for one in parts])

    def create(
        self, make: Callable[..., Any], leaves: Sequence[Any], argnums: Sequence[int]
    ) -> list[Any]:
        """See `Executable`."""
        chosen = [self._inputs[index] for index in argnums]

        def make_parts(*args: Any) -> list[Any]:
            made: list[Any] = []
            for (stack, _), whole in zip(chosen, make(*args), strict=True):
                made += [whole] if stack.is_whole else stack.cut(whole)
            return made

        numbers = [number for stack, _ in chosen for number in stack.numbers]
        parts = iter(self._executable.create(make_parts, leaves, numbers))
        return [
            _joined(stack, placement, islice(parts, len(stack.numbers)))
            for stack, placement in chosen
        ]

    def restore(self, folder: Path, leaves: Sequence[Leaf], argnums: Sequence[int]) -> list[Any]:
        """See `Executable`."""
        here = jax.sharding.SingleDeviceSharding(jax.local_devices(backend="cpu")[0])
        whole: dict[int, int] = {}
        parts: dict[int, tuple[Leaf, Any]] = {}
        for position, (leaf, index) in enumerate(zip(leaves, argnums, strict=True)):
            stack, placement = self._inputs[index]
            if placement is None:
                whole[position] = stack.numbers[0]
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
