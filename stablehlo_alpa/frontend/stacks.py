"""Programs whose stacks of layers are inputs and outputs in parts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
from alpa_runtime import StackedSignature
from alpa_runtime.stacks import Stack

from stablehlo_alpa.compiler import Module, Signature, parse_tensor_type
from stablehlo_alpa.layers.scopes import STACK_SCOPE

if TYPE_CHECKING:
    from stablehlo_alpa.frontend.traced_program import TracedProgram, TracedValue


@dataclass(frozen=True, eq=False)
class Stacks:
    """What a program with stacks in parts is made of.

    Attributes:
        whole: the program as its caller sees it.
        inputs, outputs: per flat input and output of that one its parts.
    """

    whole: TracedProgram
    inputs: tuple[Stack, ...]
    outputs: tuple[Stack, ...]

    @property
    def signature(self) -> StackedSignature:
        """What the caller passes and gets, for the runtime."""
        names = tuple(value.name for value in self.whole.inputs)
        return StackedSignature(self.inputs, self.outputs, names)


def split_stacks(program: TracedProgram, batch: Collection[int]) -> TracedProgram:
    """The program with a part of each stack per layer that needs one; itself without stacks.

    Args:
        program: traced in layers.
        batch: flat inputs that are left whole because they hold examples.

    Raises:
        CompileError: a pass refused the program.
    """
    if STACK_SCOPE not in program.text:
        return program
    keys = {i for i, value in enumerate(program.inputs) if value.key_impl is not None}
    whole = ",".join(map(str, sorted({*batch, *keys})))
    aliases = ",".join(f"{i}:{o}" for i, o in sorted(program.aliases.items()))
    module = Module(program.text, program.name)
    module.run(f"alpa-stacks-pipeline{{aliases={aliases} whole={whole}}}")
    signature = Signature.of(module)
    inputs = _stacks(program.inputs, signature.inputs.kinds, signature.inputs.types)
    outputs = _stacks(program.outputs, signature.outputs.kinds, signature.outputs.types)
    if all(one.is_whole for one in (*inputs, *outputs)):
        return program
    return _parted(program, module.text(), Stacks(program, inputs, outputs))


def _parted(program: TracedProgram, text: str, stacks: Stacks) -> TracedProgram:
    """The program of a caller who has lists of parts in the place of stacks."""
    inputs = _values(program.inputs, stacks.inputs)
    return replace(
        program,
        text=text,
        inputs=inputs,
        outputs=_values(program.outputs, stacks.outputs),
        in_tree=_structure(program.in_tree, stacks.inputs),
        out_tree=_structure(program.out_tree, stacks.outputs),
        input_argnum=tuple(
            number
            for number, stack in zip(program.input_argnum, stacks.inputs, strict=True)
            for _ in stack.numbers
        ),
        donated=tuple(n for i in program.donated for n in stacks.inputs[i].numbers),
        batch=_parts_of(program.batch, stacks.inputs),
        declared_batch=_parts_of(program.declared_batch, stacks.inputs),
        aliases=_aliases(program.aliases, stacks),
        stacks=stacks,
    )


def _parts_of(inputs: Collection[int], stacks: Sequence[Stack]) -> frozenset[int]:
    return frozenset(number for index in inputs for number in stacks[index].numbers)


def _stacks(
    values: Sequence[TracedValue], kinds: Sequence[str], types: Sequence[str]
) -> tuple[Stack, ...]:
    """Per value its parts, of what the compiler says which value each is a part of."""
    numbers: list[list[int]] = [[] for _ in values]
    for number, kind in enumerate(kinds):
        numbers[int(kind.split()[1])].append(number)
    shapes = [parse_tensor_type(one)[0] for one in types]
    return tuple(
        _stack(value.shape, tuple(own), [shapes[number] for number in own])
        for value, own in zip(values, numbers, strict=True)
    )


def _stack(shape: Sequence[int], numbers: tuple[int, ...], parts: Sequence[Sequence[int]]) -> Stack:
    if len(numbers) == 1:
        return Stack(numbers)
    pairs = enumerate(zip(shape, parts[0], strict=True))
    dim = next(dim for dim, (size, own) in pairs if size != own)
    return Stack(numbers, dim, tuple(part[dim] for part in parts))


def _values(values: Sequence[TracedValue], stacks: Sequence[Stack]) -> tuple[TracedValue, ...]:
    found = []
    for value, stack in zip(values, stacks, strict=True):
        if stack.is_whole:
            found.append(value)
        start = 0
        for size in stack.sizes:
            rows = f"{':, ' * stack.dim}{start}:{start + size}"
            shape = (*value.shape[: stack.dim], size, *value.shape[stack.dim + 1 :])
            found.append(replace(value, name=f"{value.name}[{rows}]", shape=shape))
            start += size
    return tuple(found)


def _structure(tree: Any, stacks: Sequence[Stack]) -> Any:
    leaves = [0 if stack.is_whole else list(stack.numbers) for stack in stacks]
    return jax.tree.structure(jax.tree.unflatten(tree, leaves[: tree.num_leaves]))


def _aliases(aliases: Mapping[int, int], stacks: Stacks) -> dict[int, int]:
    """A stack and its next value are cut alike."""
    pairs = ((stacks.inputs[i].numbers, stacks.outputs[o].numbers) for i, o in aliases.items())
    return {i: o for inputs, outputs in pairs for i, o in zip(inputs, outputs, strict=True)}
