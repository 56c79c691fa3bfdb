"""What cannot be meant."""

from __future__ import annotations

import typer

from stablehlo_alpa.errors import StablehloAlpaError


class UsageError(StablehloAlpaError, ValueError):
    """What the command line asks for does not exist, or does not go together."""


def at_least_one(option: typer.CallbackParam, value: int | None) -> int | None:
    """Refuses less than 1, of options that count something.

    Raises:
        UsageError: it is less.
    """
    return _at_least(1, option, value)


def at_least_zero(option: typer.CallbackParam, value: int | None) -> int | None:
    """Refuses less than 0.

    Raises:
        UsageError: it is less.
    """
    return _at_least(0, option, value)


def _at_least(least: int, option: typer.CallbackParam, value: int | None) -> int | None:
    if value is not None and value < least:
        raise UsageError(f"{option.opts[0]} is {value}, must be at least {least}")
    return value
