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
        ShardingError: the text is not of that form; partial shardings are not, since no value
            that enters or leaves a program is one.
    """
    dims: list[list[str]] = []
    split = False
    for letter in text:
        if letter in "RS":
            dims.append([])
            split = letter == "S"
        elif split and letter.isdigit() and int(letter) < len(axis_names):
            dims[-1].append(axis_names[int(letter)])
        else:
            raise ShardingError(
                f"sharding {text!r} is not R or S with axes below {len(axis_names)} per dimension"
            )
    return tuple(tuple(dim) for dim in dims)
