"""What options are checked for, where they are given: one function for each kind of option.

A message names the option, says the rule, and ends in what was given.
"""

from __future__ import annotations

import contextlib
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any, TypeVar

import numpy as np

from stablehlo_alpa.errors import MeshError, OptionError, StablehloAlpaError

T = TypeVar("T")

# Passes take 64-bit integers.
_LIMIT = 1 << 63

# What ends a name of a mesh axis where it is one of several in the option of a pass.
_MARKS = frozenset(" :,={}()[]'\"\\")


def settle(
    options: Any,
    check: Callable[..., Any],
    *names: str,
    is_optional: bool = False,
    **rule: Any,
) -> None:
    """Checks options of a frozen dataclass, and keeps what the check makes of them.

    Args:
        options: the dataclass.
        check: takes the name of an option and what is given for it, and returns what is meant.
        *names: of the options.
        is_optional: whether they may be None, which stays.
        **rule: what the check is told besides.
    """
    for name in names:
        value = getattr(options, name)
        if value is not None or not is_optional:
            object.__setattr__(options, name, check(name, value, **rule))


def checked_integer(
    name: str,
    value: Any,
    *,
    least: int | None = None,
    most: int = _LIMIT - 1,
    error: type[StablehloAlpaError] = OptionError,
) -> int:
    """An integer, Python's or numpy's; a boolean is none.

    Args:
        name: of the option.
        value: what is given.
        least: that it may be; None for any that 64 bits hold.
        most: that it may be.
        error: raised for what is none.
    """
    found = _index(value)
    if found is None:
        raise error(f"{name} must be an integer, got {value!r}")
    bound = -_LIMIT if least is None else least
    if found < bound:
        raise error(f"{name} must be >= {bound}, got {found}")
    if found > most:
        raise error(f"{name} must be <= {most}, got {found}")
    return found


def checked_integers(
    name: str,
    values: Any,
    *,
    least: int | None = None,
    error: type[StablehloAlpaError] = OptionError,
) -> tuple[int, ...]:
    """A sequence of integers; see `checked_integer`."""
    found = checked_sequence(name, values, "integers", error=error)
    if any(_index(one) is None for one in found):
        raise error(f"{name} must be a sequence of integers, got {values!r}")
    return tuple(checked_integer(name, one, least=least, error=error) for one in found)


def checked_number(
    name: str, value: Any, *, least: float | None = None, above: float | None = None
) -> float:
    """A real number, Python's or numpy's; a boolean is none, nor is a text of digits.

    Args:
        name: of the option.
        value: what is given.
        least: that it may be; None for any.
        above: what it is more than; None for any.

    Raises:
        OptionError: it is none.
    """
    if isinstance(value, bool | np.bool_ | str | bytes) or not hasattr(type(value), "__float__"):
        raise OptionError(f"{name} must be a number, got {value!r}")
    with restated(f"{name} must be a number, got {value!r}: "):
        found = float(value)
    if least is not None and not found >= least:
        raise OptionError(f"{name} must be >= {least:g}, got {value!r}")
    if above is not None and not found > above:
        raise OptionError(f"{name} must be > {above:g}, got {value!r}")
    # As it was written, where it is one of Python's: messages and reports show it.
    return value if type(value) in (int, float) else found


def checked_flag(name: str, value: Any) -> bool:
    """True or False, Python's or numpy's.

    Raises:
        OptionError: it is neither.
    """
    if not isinstance(value, bool | np.bool_):
        raise OptionError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def checked_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """One of some texts.

    Raises:
        OptionError: it is none of them.
    """
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        raise OptionError(f"{name} is {value!r}, must be one of {', '.join(choices)}")
    return value


def checked_text(name: str, value: Any, *, error: type[StablehloAlpaError] = OptionError) -> str:
    """A text of at least one character."""
    if not isinstance(value, str) or not value:
        raise error(f"{name} must be a text, got {value!r}")
    return value


def checked_pattern(name: str, value: Any, *, error: type[StablehloAlpaError] = OptionError) -> Any:
    """A regular expression over text, compiled or not."""
    try:
        compiled = re.compile(value)
    except (re.error, TypeError, RecursionError, OverflowError) as cause:
        raise error(f"{name} has {value!r}, which is no regular expression: {cause}") from None
    if not isinstance(compiled.pattern, str):
        raise error(f"{name} has {value!r}, which is no regular expression over text")
    return value


def checked_instance(
    name: str,
    value: T,
    kinds: type[Any] | tuple[type[Any], ...],
    what: str,
    *,
    error: type[StablehloAlpaError] = OptionError,
) -> T:
    """An object of some classes.

    Args:
        name: of the option.
        value: what is given.
        kinds: the classes.
        what: how one is made, for the message.
        error: raised for what is none.
    """
    if not isinstance(value, kinds):
        raise error(f"{name} must be {what}, got {value!r}")
    return value


def checked_sequence(
    name: str,
    values: Any,
    what: str,
    *,
    error: type[StablehloAlpaError] = OptionError,
) -> tuple[Any, ...]:
    """The elements of a sequence, an array or an iterator; those of a text or a set are none.

    Args:
        name: of the option.
        values: what is given.
        what: its elements are, for the message.
        error: raised for what is none.
    """
    if isinstance(values, str | bytes | Mapping | Set):
        raise error(f"{name} must be a sequence of {what}, got {values!r}")
    try:
        return tuple(values)
    except TypeError:
        raise error(f"{name} must be a sequence of {what}, got {values!r}") from None


def checked_axis_names(name: str, values: Any) -> tuple[str, ...]:
    """Names of mesh axes, all different, that passes and XLA take as they are.

    Raises:
        MeshError: they are none.
    """
    found = checked_sequence(name, values, "names of mesh axes", error=MeshError)
    for number, one in enumerate(found):
        checked_text(f"{name}[{number}]", one, error=MeshError)
        # XLA ends the process at others.
        if not (one.isascii() and one.isprintable()) or _MARKS & set(one):
            raise MeshError(
                f"{name}[{number}] must be a name of ASCII letters, digits and marks other than "
                f"blanks and {''.join(sorted(_MARKS)).strip()}, got {one!r}"
            )
    if len(set(found)) < len(found):
        raise MeshError(f"{name} must differ, got {found}")
    return found


@contextlib.contextmanager
def restated(prefix: str = "", *, error: type[StablehloAlpaError] = OptionError) -> Iterator[None]:
    """Raises an error of the package in place of one of Python's.

    Args:
        prefix: of its message.
        error: what is raised.
    """
    try:
        yield
    except StablehloAlpaError:
        raise
    except (TypeError, ValueError, OverflowError) as cause:
        raise error(f"{prefix}{cause}") from cause


def _index(value: Any) -> int | None:
    """A Python integer; None of what is none, as a boolean."""
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None
