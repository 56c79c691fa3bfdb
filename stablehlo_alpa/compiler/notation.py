"""The paper's notation of shardings (Alpa, section 4.1) as data."""

from __future__ import annotations

from collections.abc import Sequence

from stablehlo_alpa.errors import ShardingError


def parse_sharding(text: str, axis_names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Mesh axes per dimension of a sharding such as ``S0R`` or ``RS01``.

    Args:
        text: one ``R`` or ``S`` with axis numbers per dimension; empty for a scalar.
        axis_names: names of the mesh axes by number.

    Raises:
        ShardingError: the text is not of that form; partial shardings are not.
    """
    dims, partial = parse_partial_sharding(text, axis_names)
    if partial:
        raise ShardingError(f"sharding {text!r} is partial, no value of a whole program is")
    return dims


def parse_partial_sharding(
    text: str, axis_names: Sequence[str]
) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """Mesh axes per dimension, and those over which the value is partial (``RS0P1``).

    Raises:
        ShardingError: the text is not of that form.
    """
    dims: list[list[str]] = []
    partial: list[str] = []
    target: list[str] | None = None
    for letter in text:
        if letter in "RS" and target is not partial:
            dims.append([])
            target = dims[-1] if letter == "S" else None
        elif letter == "P" and target is not partial:
            target = partial
        elif target is not None and letter.isdigit() and int(letter) < len(axis_names):
            target.append(axis_names[int(letter)])
        else:
            raise ShardingError(
                f"sharding {text!r} is not R or S with axes below {len(axis_names)} per dimension"
            )
    return tuple(tuple(dim) for dim in dims), tuple(partial)


def format_sharding(dims: Sequence[Sequence[str]], axis_names: Sequence[str]) -> str:
    """A sharding such as ``S0R`` of mesh axes per dimension; the inverse of `parse_sharding`."""
    return "".join(
        "S" + "".join(str(axis_names.index(axis)) for axis in axes) if axes else "R"
        for axes in dims
    )
