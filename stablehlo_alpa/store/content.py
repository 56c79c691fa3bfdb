"""Digests of plain values: equal for equal content, refused where content is not all there is."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
from collections.abc import Mapping, Set
from typing import Any

import numpy as np


def digest(*parts: Any) -> str:
    """What a file is named by that holds something made of ``parts`` alone.

    Args:
        parts: None, numbers, strings, bytes, enums, arrays, and tuples, lists, sets, mappings and
            dataclasses of these. Types count: ``1``, ``1.0`` and ``True`` are different.

    Raises:
        TypeError: anything else, of which nobody knows whether it is all that it depends on.
    """
    found = hashlib.sha256()
    for part in parts:
        _feed(found, part)
    return found.hexdigest()


def _feed(found: Any, part: Any) -> None:
    """Adds a value, its type and its size first, so that no two values add the same bytes."""
    if isinstance(part, enum.Enum):
        _add(found, "enum", f"{_name(type(part))}.{part.name}".encode())
    elif part is None or isinstance(part, bool | int | float | complex):
        _add(found, type(part).__name__, _number(part))
    elif isinstance(part, str):
        _add(found, "str", part.encode("utf-8", "surrogatepass"))
    elif isinstance(part, bytes):
        _add(found, "bytes", part)
    elif isinstance(part, np.ndarray | np.generic):
        _feed_array(found, np.asarray(part))
    elif dataclasses.is_dataclass(part) and not isinstance(part, type):
        fields = [(one.name, getattr(part, one.name)) for one in dataclasses.fields(part)]
        _feed_all(found, _name(type(part)), [entry for field in fields for entry in field])
    elif isinstance(part, tuple | list):
        _feed_all(found, type(part).__name__, part)
    elif isinstance(part, Mapping):
        entries = sorted((digest(key), value) for key, value in part.items())
        _feed_all(found, "mapping", [each for entry in entries for each in entry])
    elif isinstance(part, Set):
        _feed_all(found, "set", sorted(digest(one) for one in part))
    else:
        raise TypeError(f"content of {_name(type(part))} is not known: {part!r:.80}")


def _feed_all(found: Any, kind: str, parts: Any) -> None:
    _add(found, kind, str(len(parts)).encode())
    for one in parts:
        _feed(found, one)


def _feed_array(found: Any, array: Any) -> None:
    if array.dtype.hasobject:
        raise TypeError("an array of objects has content that is not known")
    _add(found, "array", f"{array.dtype.str} {array.shape}".encode())
    found.update(np.ascontiguousarray(array).data if array.size else b"")


def _add(found: Any, kind: str, content: bytes) -> None:
    found.update(f"{kind} {len(content)}:".encode())
    found.update(content)


def _number(value: Any) -> bytes:
    """All bits of a number: of floats no digit is lost, and -0.0 is not 0.0."""
    return (value.hex() if isinstance(value, float) else repr(value)).encode()


def _name(kind: type[Any]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
