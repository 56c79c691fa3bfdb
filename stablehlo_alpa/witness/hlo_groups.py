"""How many devices take part in a collective of HLO together."""

from __future__ import annotations

import math
import re

from stablehlo_alpa.witness.hlo_text import HloError, Instruction

_IOTA = re.compile(r"^\[(?P<groups>\d+),(?P<size>\d+)\]<=")
_LISTED = re.compile(r"\{(?P<group>\d+(?:,\d+)*)\}")
_MESH = re.compile(r"^mesh\[(?P<mesh>.*?)\][^{]*\{(?P<axes>.*?)\}")
_MESH_AXIS = re.compile(r"('\w+')=(\d+)")
# An axis may be split: 'a':(before)size takes a part of it.
_USED_AXIS = re.compile(r"('\w+')(?::\(\d+\)(\d+))?")
_PAIR = re.compile(r"\{(\d+),(\d+)\}")


def group_size(instruction: Instruction, num_devices: int) -> int:
    """Devices of the largest group.

    Args:
        instruction: with ``replica_groups``.
        num_devices: of the module.

    Raises:
        HloError: the groups are not understood.
    """
    attributes = instruction.attributes
    # Axes of a mesh stand behind the order of its devices, if that is written.
    text = attributes.get("replica_groups", "") + attributes.get("device_ids", "")
    if match := _IOTA.match(text):
        return int(match.group("size"))
    if listed := _LISTED.findall(text):
        return max(group.count(",") + 1 for group in listed)
    if match := _MESH.match(text):
        sizes = dict(_MESH_AXIS.findall(match.group("mesh")))
        axes = _USED_AXIS.findall(match.group("axes"))
        return math.prod(int(part or sizes[axis]) for axis, part in axes)
    if text == "{}":
        return num_devices
    raise HloError(f"replica groups are not understood: {instruction.line[:200]}")


def moves(instruction: Instruction) -> bool:
    """Whether a permutation takes anything from one device to another.

    Raises:
        HloError: it has no pairs.
    """
    text = instruction.attributes.get("source_target_pairs")
    if text is None:
        raise HloError(f"permutation has no pairs: {instruction.line[:200]}")
    return any(source != target for source, target in _PAIR.findall(text))
