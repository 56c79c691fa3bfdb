"""Reads the collectives out of generic StableHLO text, without the compiler's help."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

# In the compiler's order: the position is the number of the kind.
KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute")
_BYTES = {"i1": 1, "bf16": 2, "f16": 2, "complex<f32>": 8, "complex<f64>": 16}


@dataclass
class Operation:
    """One operation of a printed module.

    Attributes:
        name: with its dialect, e.g. ``stablehlo.while``.
        text: what stands before its regions and what stands behind them.
        inside: the operations of its regions.
    """

    name: str
    text: str
    inside: list[Operation] = field(default_factory=list)


def parse(text: str) -> list[Operation]:
    """The operations of generic text, one per line, regions nested."""
    stack: list[list[Operation]] = [[]]
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("})"):
            stack.pop()
            stack[-1][-1].text += " " + stripped
            continue
        match = re.match(r'(?:%[\w:, #%]+ = )?"([\w.]+)"', stripped)
        if match is None:
            continue
        stack[-1].append(Operation(match.group(1), stripped))
        if stripped.endswith("({"):
            stack.append(stack[-1][-1].inside)
    return stack[0]


def trip_counts(planned: str) -> list[int | None]:
    """Trip counts of the loops of a planned module, in the order in which they begin."""
    counts: list[int | None] = []

    def visit(operations: Sequence[Operation]) -> None:
        for op in operations:
            if op.name == "stablehlo.while":
                found = re.search(r"alpa\.trip_count = (\d+)", op.text)
                counts.append(int(found.group(1)) if found else None)
            visit(op.inside)

    visit(parse(planned))
    return counts


def collective_bytes(
    local: str, mesh_shape: Sequence[int], loops: Sequence[int | None]
) -> Counter[tuple[int, int]]:
    """Payload bytes of a device per step, by kind and by mesh axes as a bit mask.

    Args:
        local: per-device module.
        mesh_shape: sizes of the mesh axes.
        loops: trip counts of its loops in the order in which they begin; None counts once.
    """
    total: Counter[tuple[int, int]] = Counter()
    remaining = iter(loops)

    def visit(operations: Sequence[Operation], runs: int) -> None:
        for op in operations:
            kind = op.name.removeprefix("stablehlo.")
            if kind in KINDS:
                key = KINDS.index(kind), _axes(op, mesh_shape)
                total[key] += runs * _payload(op, kind)
            trips = (next(remaining) or 1) if kind == "while" else 1
            visit(op.inside, runs * trips)

    visit(parse(local), 1)
    assert next(remaining, 0) == 0, "a loop was lost in lowering"
    return total


def _payload(op: Operation, kind: str) -> int:
    operands, results = op.text.rsplit(" : (", 1)[1].split("->")
    return sum(
        _tensor_bytes(t)
        for t in re.findall(
            r"tensor<((?:[^<>]|<[^<>]*>)*)>", results if kind == "all_gather" else operands
        )
    )


def _tensor_bytes(tensor: str) -> int:
    *dims, element = (
        re.split(r"x(?=\d|[a-z])", tensor) if "complex" not in tensor else _dims(tensor)
    )
    bits = re.search(r"\d+", element)
    # Elements of less than a byte take one.
    size = _BYTES.get(element) or -(-int(bits.group() if bits else 0) // 8)
    assert size, f"size of {element} is not known"
    return int(np.prod([int(d) for d in dims], dtype=np.int64)) * size


def _dims(tensor: str) -> list[str]:
    start = tensor.index("complex")
    return [*filter(None, tensor[:start].split("x")), tensor[start:]]


def _axes(op: Operation, mesh_shape: Sequence[int]) -> int:
    """The mesh axes over which the groups of a collective reach, as a bit mask."""
    name = "source_target_pairs" if "source_target_pairs" in op.text else "replica_groups"
    match = re.search(rf"{name} = dense<(.*?)> : tensor<(\d+)x(\d+)xi64>", op.text)
    assert match is not None, op.text
    groups = [int(n) for n in re.findall(r"\d+", match.group(1))]
    rows, columns = int(match.group(2)), int(match.group(3))
    devices = np.array(groups).reshape(rows, columns)
    mask = 0
    for row in devices:
        places = np.array(np.unravel_index(row, mesh_shape))
        for axis, coordinates in enumerate(places):
            if len(set(coordinates.tolist())) > 1:
                mask |= 1 << axis
    if name == "replica_groups":
        # Every device is in one group, and a group is a whole slice of the mesh.
        assert sorted(groups) == list(range(int(np.prod(mesh_shape))))
        sizes = [n for axis, n in enumerate(mesh_shape) if mask >> axis & 1]
        assert columns == int(np.prod(sizes)), op.text
        for row in devices:
            places = np.array(np.unravel_index(row, mesh_shape)).T
            split = [axis for axis in range(len(mesh_shape)) if mask >> axis & 1]
            within = {tuple(place[split].tolist()) for place in places}
            assert within == set(itertools.product(*(range(n) for n in sizes))), op.text
    return mask
