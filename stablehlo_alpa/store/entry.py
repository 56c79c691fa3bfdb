"""What a file of the store holds: named values and arrays, data alone, with a checksum.

A file is ``MAGIC``, the SHA-256 of all behind it, and a deflated body: its length, JSON with the
key, the values and what the arrays are, and the arrays' bytes one after the other. Long texts are
among the arrays: JSON would escape them character by character.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
import zlib
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from stablehlo_alpa.errors import StablehloAlpaError

Record: TypeAlias = Mapping[str, Any]
"""By name what JSON can hold, or an array of numbers."""

MAGIC = b"stablehlo-alpa store 2\n"

# Texts of modules deflate to a twentieth at the fastest level, at 200 MB a second.
_LEVEL = 1
# Characters of a text that is among the arrays (heuristic: names are shorter, modules longer).
_LONG = 1024
# Every string has bytes in it, also one that is no text.
_ENCODING = ("utf-8", "surrogatepass")
# Bytes that a body may have: what is hostile could inflate to anything.
_LARGEST = 1 << 31
_DIGEST = hashlib.sha256().digest_size
# Kinds of arrays: booleans, integers, floats.
_KINDS = "biuf"


class DamagedError(StablehloAlpaError, ValueError):
    """A file is no entry of the key that it is named by."""


def pack(key: str, record: Record) -> bytes:
    """A file's content.

    Raises:
        TypeError: something in the record is neither plain data nor an array of numbers.
    """
    arrays: list[Any] = []
    values = _plain(dict(record), arrays)
    kinds = [[one.dtype.str, list(one.shape)] for one in arrays]
    head = json.dumps({"key": key, "values": values, "arrays": kinds}).encode()
    content = [np.ascontiguousarray(one).tobytes() for one in arrays]
    body = zlib.compress(b"".join([struct.pack("<Q", len(head)), head, *content]), _LEVEL)
    return MAGIC + hashlib.sha256(body).digest() + body


def _plain(value: Any, arrays: list[Any]) -> Any:
    """What JSON can hold of a value, arrays by their numbers; these are added."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in _KINDS:
            raise TypeError(f"an array of {value.dtype} cannot be kept")
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, str) and len(value) >= _LONG:
        arrays.append(np.frombuffer(value.encode(*_ENCODING), np.uint8))
        return {"text": len(arrays) - 1}
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise TypeError("names of what is kept are strings")
        return {"named": {name: _plain(one, arrays) for name, one in value.items()}}
    if isinstance(value, list | tuple):
        return [_plain(one, arrays) for one in value]
    # JSON has no other kinds, and says so.
    return value.item() if isinstance(value, np.generic) else value


def unpack(key: str, content: bytes) -> dict[str, Any]:
    """The record of a file's content.

    Raises:
        DamagedError: it is cut short, changed, or of another key or version.
    """
    start = len(MAGIC) + _DIGEST
    if not content.startswith(MAGIC) or len(content) < start:
        raise DamagedError("it is no entry of this version")
    body = content[start:]
    if hashlib.sha256(body).digest() != content[len(MAGIC) : start]:
        raise DamagedError("its checksum is that of something else")
    try:
        return _parsed(key, _inflated(body))
    except (ValueError, LookupError, TypeError, struct.error, zlib.error) as error:
        raise DamagedError(str(error)) from error


def _inflated(body: bytes) -> bytes:
    inflating = zlib.decompressobj()
    found = inflating.decompress(body, _LARGEST)
    if not inflating.eof:
        raise ValueError("its body is cut short, or larger than an entry may be")
    return found


def _parsed(key: str, body: bytes) -> dict[str, Any]:
    (length,) = struct.unpack_from("<Q", body)
    at = 8 + length
    head = json.loads(body[8:at])
    if head["key"] != key:
        raise ValueError("it is the entry of another key")
    arrays = []
    for dtype, shape in head["arrays"]:
        kind, count = np.dtype(dtype), math.prod(shape)
        if kind.kind not in _KINDS:
            raise ValueError(f"an array is of {dtype}")
        if min(shape, default=0) < 0 or at + count * kind.itemsize > len(body):
            raise ValueError("an array ends behind the file")
        arrays.append(np.frombuffer(body, kind, count, at).reshape(shape).copy())
        at += count * kind.itemsize
    if at != len(body):
        raise ValueError("it is longer than what it holds")
    record: dict[str, Any] = _value(head["values"], arrays)
    return record


def _value(data: Any, arrays: list[Any]) -> Any:
    """A value of what `_plain` made of it; tuples are lists."""
    if isinstance(data, list):
        return [_value(one, arrays) for one in data]
    if not isinstance(data, dict):
        return data
    if "array" in data:
        return arrays[data["array"]]
    if "text" in data:
        return arrays[data["text"]].tobytes().decode(*_ENCODING)
    return {name: _value(one, arrays) for name, one in data["named"].items()}
