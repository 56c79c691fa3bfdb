"""A step cut into single layers, from which every run of layers is priced."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from stablehlo_alpa.compiler import Module, Signature, Values, tensor_bytes
from stablehlo_alpa.inter_op.slicing import LayeredStep, merge
from stablehlo_alpa.planning.stage import Slot, SlotKind
from stablehlo_alpa.store import Record

# What is there for the whole step.
_STAYING = (SlotKind.INPUT, SlotKind.BATCH)

# Sizes and bits per number. No layouts that kernels are told, of `index`.
_TENSOR = re.compile(r"tensor<((?:\d+x)+)(complex<)?(?:bf|f|ui|i)(\d+)")
# What differs between equal layers: where they come from, not what they are.
_POSITIONS = re.compile(r'(alpa\.(?:input|output|transfer|layer) = |sym_name = "stage_)\d+')


def content_digest(text: str) -> str:
    """Equal for modules of stages that differ in numbers of inputs, transfers and layers alone.

    Args:
        text: of a module, without locations.
    """
    # What is split off is the group: everything but the numbers.
    return hashlib.sha256("".join(_POSITIONS.split(text)).encode()).hexdigest()


# What equal layers have in common: a digest, and which arguments are theirs.
LayerKind: TypeAlias = tuple[str, tuple[bool, ...]]


@dataclass(frozen=True, eq=False)
class LayerPart:
    """One layer of a step: its forward and backward phases, and the updates of its parameters.

    Attributes:
        merged: its module, with roles; of equal layers that of the first.
        digest: of the module; equal layers have equal ones.
        inputs, outputs: what each argument and result is.
        input_types: of the arguments, ``"8x4xf32"``.
        is_once: per argument whether it arrives once per step, not once per micro-batch.
        is_owned: per argument whether no layer before this one reads it; of what other layers make,
            only what one before this one makes.
    """

    merged: str
    digest: str
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    input_types: tuple[str, ...]
    is_once: tuple[bool, ...]
    is_owned: tuple[bool, ...] = ()

    @classmethod
    def of(cls, sliced: Module, merged: dict[str, str]) -> LayerPart:
        """The layer of a module that was cut out of a step.

        Args:
            sliced: the module; its operators are merged.
            merged: by digest, of the layers so far.
        """
        digest = content_digest(sliced.text(locations=False))
        signature = Signature.of(sliced)
        if digest not in merged:
            merge(sliced)
            merged[digest] = sliced.text(locations=False)
        return cls(
            merged=merged[digest],
            digest=digest,
            inputs=_slots(signature.inputs),
            outputs=_slots(signature.outputs),
            input_types=signature.inputs.types,
            is_once=signature.input_once,
        )

    @classmethod
    def from_record(cls, record: Record, merged: Mapping[str, str]) -> LayerPart:
        """One that was kept; see `record`."""
        return cls(
            merged[record["digest"]],
            record["digest"],
            tuple(map(Slot.parse, record["inputs"])),
            tuple(map(Slot.parse, record["outputs"])),
            tuple(record["types"]),
            tuple(record["once"]),
        )

    def record(self) -> Record:
        """It, but for its module, and for what is its own."""
        return {
            "digest": self.digest,
            "inputs": list(map(str, self.inputs)),
            "outputs": list(map(str, self.outputs)),
            "types": list(self.input_types),
            "once": list(self.is_once),
        }

    @property
    def kind(self) -> LayerKind:
        """Equal for layers that cost the same and hold the same."""
        return self.digest, self.is_owned


@dataclass(frozen=True, eq=False)
class LayerParts:
    """The layers of a step in order.

    Attributes:
        parts: the layers.
        num_micro_batches: of a step.
    """

    parts: tuple[LayerPart, ...]
    num_micro_batches: int

    @classmethod
    def of(cls, layered: LayeredStep, num_micro_batches: int) -> LayerParts:
        """Cuts a step, which is parsed once, into its layers."""

        def made() -> Record:
            merged: dict[str, str] = {}
            modules = layered.slice(tuple(range(layered.num_layers))).values()
            parts = [LayerPart.of(module, merged).record() for module in modules]
            return {"merged": merged, "parts": parts}

        found = layered.store.remember("layer parts", layered.content, made)
        parts = [LayerPart.from_record(one, found["merged"]) for one in found["parts"]]
        return cls(_owned(parts), num_micro_batches)

    @cached_property
    def crossings(self) -> tuple[tuple[tuple[bool, int, bool, int], ...], ...]:
        """Per layer but the last, values that it shares with the next.

        Each is (is a result, position) in the one and in the other: what one makes and the other
        takes, what both take from elsewhere, and arguments of the step that both have.
        """
        return tuple(
            _shared(one, two) for one, two in zip(self.parts[:-1], self.parts[1:], strict=True)
        )

    def divisible(self, size: int) -> float:
        """How much of what the step computes has a dimension that ``size`` divides, by bytes."""
        total = sum(self._computed.values())
        found = sum(
            bytes_
            for shape, bytes_ in self._computed.items()
            if any(dimension and dimension % size == 0 for dimension in shape)
        )
        return found / total if total else 0.0

    @cached_property
    def _computed(self) -> dict[tuple[int, ...], float]:
        """Bytes of what layers of each kind read and write, by shape."""
        found: dict[tuple[int, ...], float] = {}
        for text in {part.kind: part.merged for part in self.parts}.values():
            for (sizes, is_complex, bits), count in Counter(_TENSOR.findall(text)).items():
                shape = tuple(map(int, sizes.split("x")[:-1]))
                number = max(int(bits), 8) / 8 * (2 if is_complex else 1)
                found[shape] = found.get(shape, 0.0) + count * number * math.prod(shape)
        return found

    def received_bytes(self, first: int, last: int) -> float:
        """Bytes that a run of layers receives from others per micro-batch."""
        made = {slot for part in self.parts[first : last + 1] for slot in part.outputs}
        arriving: dict[Slot, float] = {}
        for part in self.parts[first : last + 1]:
            for slot, type_, is_once in zip(
                part.inputs, part.input_types, part.is_once, strict=True
            ):
                if slot.kind is SlotKind.TRANSFER and slot not in made:
                    arriving[slot] = tensor_bytes(type_) / (
                        self.num_micro_batches if is_once else 1
                    )
        return sum(arriving.values())


def _slots(values: Values) -> tuple[Slot, ...]:
    return tuple(map(Slot.parse, values.kinds))


def _owned(parts: Sequence[LayerPart]) -> tuple[LayerPart, ...]:
    """The layers, each owning what the step and layers before it give and none before it reads."""
    seen: set[Slot] = set()
    made_by = {slot: number for number, part in enumerate(parts) for slot in part.outputs}
    found = []
    for number, part in enumerate(parts):
        is_owned = tuple(
            (slot.kind in _STAYING or made_by.get(slot, number) < number) and slot not in seen
            for slot in part.inputs
        )
        seen.update(part.inputs)
        found.append(replace(part, is_owned=is_owned))
    return tuple(found)


def _shared(one: LayerPart, two: LayerPart) -> tuple[tuple[bool, int, bool, int], ...]:
    def positions(part: LayerPart) -> dict[Slot, tuple[bool, int]]:
        arguments = {slot: (False, at) for at, slot in enumerate(part.inputs)}
        made = {slot: (True, at) for at, slot in enumerate(part.outputs)}
        kinds = (SlotKind.TRANSFER, SlotKind.INPUT)
        return {slot: at for slot, at in (arguments | made).items() if slot.kind in kinds}

    first, second = positions(one), positions(two)
    return tuple((*first[slot], *second[slot]) for slot in first if slot in second)
