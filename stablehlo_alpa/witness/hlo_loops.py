"""How often loops of HLO run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from stablehlo_alpa.witness.hlo_text import HloModule, Instruction

_KNOWN = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_INTEGER = re.compile(r"\bconstant\((-?\d+)\)")
_INDEX = re.compile(r"\bindex=(\d+)")
# What hands a value on as it is.
_COPIES = ("bitcast", "copy", "copy-start", "copy-done")


def trip_count(
    module: HloModule, loop: Instruction, computation: Sequence[Instruction]
) -> int | None:
    """Executions of a loop's body: as XLA says, or counted; None where neither can be told.

    A counted loop is ``for i = start; i < end; i += step``, all three constants, with i an element
    of what the loop carries.

    Args:
        module: the module.
        loop: a ``while``.
        computation: that it is in.
    """
    if known := _KNOWN.search(loop.rest):
        return int(known.group(1))
    (condition,), (body,) = loop.computations("condition"), loop.computations("body")
    index, end = _limit(module.computations[condition])
    if index is None or end is None:
        return None
    start = _element(_by_name(computation), loop.operands[0], index)
    step = _step(module.computations[body], index)
    if start is None or step is None or step < 1:
        return None
    return max(0, -((start - end) // step))


def _limit(condition: Sequence[Instruction]) -> tuple[int | None, int | None]:
    """Which element of the carried tuple is below what, as long as the loop goes on."""
    named, root = _by_name(condition), _root(condition)
    if root.opcode != "compare" or root.attributes.get("direction") != "LT":
        return None, None
    left, right = root.operands
    return _carried(named, left), _constant(named, right)


def _step(body: Sequence[Instruction], index: int) -> int | None:
    """What is added to an element of the carried tuple."""
    named, root = _by_name(body), _root(body)
    if root.opcode != "tuple":
        return None
    added = _origin(named, root.operands[index])
    if added is None or added.opcode != "add":
        return None
    first, second = added.operands
    for value, step in ((first, second), (second, first)):
        if _carried(named, value) == index:
            return _constant(named, step)
    return None


def _element(named: Mapping[str, Instruction], name: str, index: int) -> int | None:
    """An element of a tuple, if that is a constant."""
    made = _origin(named, name)
    if made is None or made.opcode != "tuple":
        return None
    return _constant(named, made.operands[index])


def _carried(named: Mapping[str, Instruction], name: str) -> int | None:
    """Which element of the only parameter a value is."""
    read = _origin(named, name)
    if read is None or read.opcode != "get-tuple-element":
        return None
    source, match = named.get(read.operands[0]), _INDEX.search(read.rest)
    if source is None or source.opcode != "parameter" or match is None:
        return None
    return int(match.group(1))


def _constant(named: Mapping[str, Instruction], name: str) -> int | None:
    made = _origin(named, name)
    if made is None or made.opcode != "constant":
        return None
    match = _INTEGER.search(made.line)
    return None if match is None else int(match.group(1))


def _origin(named: Mapping[str, Instruction], name: str) -> Instruction | None:
    """What makes a value, copies aside."""
    made = named.get(name)
    while made is not None and made.opcode in _COPIES:
        made = named.get(made.operands[0])
    return made


def _root(computation: Sequence[Instruction]) -> Instruction:
    return next(one for one in computation if one.is_root)


def _by_name(computation: Sequence[Instruction]) -> Mapping[str, Instruction]:
    return {one.name: one for one in computation}
