"""The collectives that an optimised HLO module executes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from stablehlo_alpa.witness.collective import Collective, Kind, sent_bytes
from stablehlo_alpa.witness.hlo_groups import group_size, moves
from stablehlo_alpa.witness.hlo_text import HloError, HloModule, Instruction
from stablehlo_alpa.witness.hlo_types import type_bytes

_KINDS = {kind.replace("_", "-"): kind for kind in Kind}
# Attributes that every operation has which takes part in an exchange between devices.
_EXCHANGES = ("channel_id=", "replica_groups=", "source_target_pairs=")
# Operations and the attributes that name what they run once.
_CALLERS = {
    "call": ("to_apply", "called_computations"),
    "fusion": ("calls",),
    "async": ("calls", "called_computation"),
    "custom-call": ("called_computations",),
}
_TRIP_COUNT = re.compile(r'"known_trip_count":\{"n":"(\d+)"')


def collectives(hlo: str, num_devices: int) -> list[Collective]:
    """The collectives of one call of a module.

    Programs of XLA for CPU, GPU and TPU are understood: an asynchronous operation counts where it
    starts; a combined one is the sum of its operands; what is fused counts as what it is.

    Args:
        hlo: text of the module, e.g. of ``jax.stages.Compiled.as_text()``.
        num_devices: devices that it runs on.

    Returns:
        One entry per instruction that some device communicates in, loops by their trip counts. Of
        a conditional the branch that sends most counts.

    Raises:
        HloError: what a device sends cannot be told.
    """
    module = HloModule.parse(hlo)
    return _Walk(module, num_devices).collectives(module.entry)


# What only changes shapes and layouts.
_RESHAPES = ("bitcast", "copy", "reshape", "transpose")


class _Walk:
    """Reads computations, each once."""

    def __init__(self, module: HloModule, num_devices: int) -> None:
        self._module, self._num_devices = module, num_devices
        self._found: dict[str, list[Collective]] = {}
        self._fused = {
            name
            for own in module.computations.values()
            for one in own
            if one.opcode == "fusion"
            for name in one.computations("calls")
        }

    def collectives(self, computation: str) -> list[Collective]:
        """Those of one run of a computation."""
        if computation not in self._found:
            if computation not in self._module.computations:
                raise HloError(f"computation {computation} is not in the module")
            own = self._module.computations[computation]
            types = {one.name: one.type for one in own}
            found = {one.name: self._executed(one, types) for one in own}
            if computation in self._fused:
                found |= _scattered(own, types, found)
            self._found[computation] = [one for executed in found.values() for one in executed]
        return self._found[computation]

    def _executed(self, one: Instruction, types: dict[str, str]) -> list[Collective]:
        """Those of one run of an instruction."""
        opcode = one.opcode.removesuffix("-start")
        if opcode.endswith(("-done", "-update")):
            return []
        if opcode in _KINDS:
            return self._collective(_KINDS[opcode], one, types)
        if opcode == "while":
            return self._loop(one)
        if opcode == "conditional":
            names = one.computations("branch_computations", "true_computation", "false_computation")
            return max(map(self.collectives, names), key=sent_bytes, default=[])
        if any(exchange in one.rest for exchange in _EXCHANGES):
            raise HloError(f"communication is not understood: {one.line[:200]}")
        called = one.computations(*_CALLERS[opcode]) if opcode in _CALLERS else ()
        return [found for name in called for found in self.collectives(name)]

    def _loop(self, one: Instruction) -> list[Collective]:
        found = [
            c for name in one.computations("body", "condition") for c in self.collectives(name)
        ]
        if not found:
            return []
        trips = _TRIP_COUNT.search(one.rest)
        if trips is None:
            raise HloError(f"loop {one.name} communicates and has no known trip count")
        return [replace(c, count=c.count * int(trips.group(1))) for c in found]

    def _collective(self, kind: Kind, one: Instruction, types: dict[str, str]) -> list[Collective]:
        if "slice_sizes" in one.attributes:
            raise HloError(f"parts of arrays are sent in place: {one.line[:200]}")
        if kind is Kind.COLLECTIVE_PERMUTE:
            size = 2 if moves(one) else 1
        else:
            size = group_size(one, self._num_devices)
        if size == 1:
            return []
        # Behind its data a ragged exchange has the place of its result, offsets and sizes.
        sent = one.operands[:1] if kind is Kind.RAGGED_ALL_TO_ALL else one.operands
        payload = sum(type_bytes(types[operand]) for operand in sent)
        if kind is Kind.ALL_GATHER:
            payload *= size
        return [Collective(kind, size, payload)]


def _scattered(
    computation: Sequence[Instruction],
    types: Mapping[str, str],
    found: Mapping[str, list[Collective]],
) -> dict[str, list[Collective]]:
    """All-reduces of which a fusion keeps one part per device: reduce-scatters.

    before: %sum = f32[128] all-reduce(%x), replica_groups={{0,1,2,3}}
            ROOT %part = f32[32] dynamic-slice(%sum, %offset)
    """
    users: dict[str, list[Instruction]] = {}
    for one in computation:
        for operand in one.operands:
            users.setdefault(operand, []).append(one)
    scattered = {}
    for name, executed in found.items():
        if [one.kind for one in executed] != [Kind.ALL_REDUCE]:
            continue
        (reduced,) = executed
        last, used = name, users.get(name, [])
        while len(used) == 1 and used[0].opcode in _RESHAPES:
            last, used = used[0].name, users.get(used[0].name, [])
        parts = [one for one in used if one.opcode == "dynamic-slice" and one.operands[0] == last]
        if len(used) == len(parts) == 1:
            part_bytes = type_bytes(types[parts[0].name])
            if part_bytes * reduced.group_size == reduced.payload_bytes:
                scattered[name] = [replace(reduced, kind=Kind.REDUCE_SCATTER)]
    return scattered
