"""The table of inputs: parameters, optimiser state and batches by path, with their shardings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from alpa_runtime import ValueSpec
from jax.sharding import PartitionSpec

from stablehlo_alpa.cluster import LogicalMesh
from stablehlo_alpa.units import format_bytes
from stablehlo_alpa.view.folding import fold
from stablehlo_alpa.view.names import cut_left, path_of
from stablehlo_alpa.view.part import Part, make_sheet
from stablehlo_alpa.view.sheet import Column, Sheet

# A tree of fewer rows is not worth a row that says it is like another.
_SMALLEST_TREE = 3
# Characters of the path that a tree is said to be like.
_LIKE_WIDTH = 16


@dataclass(frozen=True)
class ParameterRow:
    """Inputs of equal layers, of one shape, type and sharding.

    Attributes:
        part: the part of the plan that they belong to.
        path: where they are, ``state/params/layer_{0..47}/up/kernel``.
        count: how many inputs they are.
        shape, dtype: of each, keys as keys.
        spec: sharding of each.
        bytes: per device, of all of them.
        like: the tree whose shapes and shardings those below ``path`` have; empty for a row of its
            own.
    """

    part: str
    path: str
    count: int
    shape: tuple[int, ...]
    dtype: str
    spec: PartitionSpec
    bytes: int
    like: str = ""


def parameter_rows(
    values: Sequence[ValueSpec], mesh: LogicalMesh, label: str = ""
) -> list[ParameterRow]:
    """One row per group of equal layers.

    Args:
        values: with names and shardings.
        mesh: what they are split over.
        label: of the part that they belong to.
    """
    sizes = dict(mesh.axes)
    specs = [PartitionSpec(*_split_axes(value, sizes)) for value in values]
    types = [value.key_impl or value.dtype for value in values]
    keys = [
        (value.logical_shape, dtype, spec)
        for value, dtype, spec in zip(values, types, specs, strict=True)
    ]
    rows = []
    for group in fold([path_of(value.name) for value in values], keys):
        shape, dtype, spec = keys[group.members[0]]
        size = sum(values[i].local_bytes(sizes) for i in group.members)
        rows.append(ParameterRow(label, group.name, len(group.members), shape, dtype, spec, size))
    return rows


def _split_axes(value: ValueSpec, sizes: dict[str, int]) -> list[str | tuple[str, ...] | None]:
    """Entries of a sharding without axes of one device, which split nothing."""
    entries: list[str | tuple[str, ...] | None] = []
    for axes in value.axes[: len(value.logical_shape)]:
        kept = tuple(axis for axis in axes if sizes[axis] > 1)
        entries.append(kept[0] if len(kept) == 1 else kept or None)
    while entries and entries[-1] is None:
        entries.pop()
    return entries


def collapsed(rows: Sequence[ParameterRow]) -> list[ParameterRow]:
    """Trees whose rows are those of another, as the moments of an optimiser are, as one row.

    A tree is what lies below a path; it is like an earlier one when every row of it has a row
    there at the same place, of the same shape and sharding.
    """
    alike: dict[object, list[str]] = {}
    trees: dict[tuple[str, str, str], list[int]] = {}
    for number, row in enumerate(rows):
        key = (row.part, row.path.rsplit("/", 1)[-1], row.shape, row.spec, row.count)
        for earlier in alike.setdefault(key, []):
            like, root = _roots(earlier, row.path)
            trees.setdefault((row.part, like, root), []).append(number)
        alike[key].append(row.path)
    replaced: dict[int, ParameterRow | None] = {}
    for (part, like, root), members in trees.items():
        below = [i for i, row in enumerate(rows) if row.part == part and _is_below(row.path, root)]
        is_new = not replaced.keys() & set(members)
        if len(members) >= _SMALLEST_TREE and below == members and is_new:
            count, size = (sum(getattr(rows[i], n) for i in members) for n in ("count", "bytes"))
            dtype = "/".join(dict.fromkeys(rows[i].dtype for i in members))
            replaced |= dict.fromkeys(members)
            replaced[members[0]] = ParameterRow(
                part, root, count, (), dtype, PartitionSpec(), size, like
            )
    kept = [replaced.get(i, row) for i, row in enumerate(rows)]
    return [row for row in kept if row is not None]


def _roots(one: str, other: str) -> tuple[str, str]:
    """What two paths that end alike have before that."""
    left, right = one.split("/"), other.split("/")
    length = 0
    while length < min(len(left), len(right)) - 1 and left[-1 - length] == right[-1 - length]:
        length += 1
    return "/".join(left[: len(left) - length]), "/".join(right[: len(right) - length])


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}/")


def parameter_sheet(
    parts: Sequence[Part], *, is_short: bool = False, limit: int | None = None
) -> Sheet:
    """Inputs with their shardings.

    Args:
        parts: of the plan.
        is_short: whether trees that are like another are one row.
        limit: rows shown at most of each part, in order; None for all.
    """
    rows, shown = [], []
    for part in parts:
        found = parameter_rows(part.inputs, part.mesh, part.label)
        found = collapsed(found) if is_short else found
        rows += found
        shown += found[:limit]
    columns = [
        Column("input", is_name=True),
        Column("count", is_number=True),
        Column("shape"),
        Column("sharding"),
        Column("per device", is_number=True),
    ]
    cells = [(row.part, _cells(row)) for row in shown]
    rest = len(rows) - len(shown)
    total = sum(row.bytes for row in rows)
    more = f"{rest} rows more are in table('parameters'); " if rest else ""
    # Stages have their own devices: bytes per device do not add up over them.
    note = f"{more}{format_bytes(total)} per device" if len(parts) == 1 else more.rstrip("; ")
    return make_sheet(parts, "parameters and other inputs", columns, cells, shown, note)


def _cells(row: ParameterRow) -> list[str]:
    return [
        row.path,
        str(row.count) if row.count > 1 else "",
        f"as {cut_left(row.like, _LIKE_WIDTH)}" if row.like else _type_text(row),
        "" if row.like else format_spec(row.spec),
        format_bytes(row.bytes),
    ]


def _type_text(row: ParameterRow) -> str:
    """``f32[64,256]``, as jax writes types."""
    dtype = row.dtype
    for long, short in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i")):
        if dtype.startswith(long):
            dtype = short + dtype.removeprefix(long)
            break
    return f"{dtype}[{','.join(map(str, row.shape))}]"


def format_spec(spec: PartitionSpec) -> str:
    """``P(None, 'x')``, as programs write it under its usual short name."""
    entries = [repr(entry) for entry in spec]
    return f"P({', '.join(entries)})"
