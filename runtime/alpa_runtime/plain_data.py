"""Trees of dataclasses as JSON and back, by their annotated types."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from typing import Any

from alpa_runtime.errors import ProgramError
from alpa_runtime.plan import Free, Recv, Run, Send

_INSTRUCTIONS: Mapping[str, type[Any]] = {"run": Run, "send": Send, "recv": Recv, "free": Free}


def encode(value: Any) -> Any:
    """Plain data as what JSON can hold: dataclasses are objects, tuples are lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        data = {name: encode(getattr(value, name)) for name in _saved(type(value))}
        for tag, cls in _INSTRUCTIONS.items():
            if isinstance(value, cls):
                data["op"] = tag
        return data
    if isinstance(value, tuple):
        return [encode(part) for part in value]
    return value


def _saved(cls: type[Any]) -> list[str]:
    """What a file has of a type: all that makes two of it equal."""
    return [field.name for field in dataclasses.fields(cls) if field.compare]


def decode(kind: Any, data: Any, where: str) -> Any:
    """Builds a value of an annotated type, refusing everything else.

    Args:
        kind: the type: dataclasses, tuples, plain values, and any of them or None.
        data: what `encode` made.
        where: what messages call it.

    Raises:
        ProgramError: the data is of another type.
    """
    origin = typing.get_origin(kind)
    if origin is tuple:
        return _decode_tuple(typing.get_args(kind), data, where)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(typing.get_args(kind), data, where)
    if dataclasses.is_dataclass(kind):
        return _decode_dataclass(typing.cast(type[Any], kind), data, where)
    if kind is type(None):
        kind = types.NoneType
    # A bool is an int, and is not meant where a number is.
    if type(data) is not kind:
        raise ProgramError(f"{where} is {data!r:.80}, must be of type {kind.__name__}")
    return data


def _decode_tuple(kinds: tuple[Any, ...], data: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise ProgramError(f"{where} is {data!r:.80}, must be a list")
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(decode(kinds[0], part, f"{where}[{i}]") for i, part in enumerate(data))
    if len(kinds) != len(data):
        raise ProgramError(f"{where} has {len(data)} entries, must have {len(kinds)}")
    return tuple(
        decode(kind, part, f"{where}[{i}]")
        for i, (kind, part) in enumerate(zip(kinds, data, strict=True))
    )


def _decode_union(kinds: tuple[Any, ...], data: Any, where: str) -> Any:
    if set(kinds) == set(_INSTRUCTIONS.values()):
        tag = data.get("op") if isinstance(data, dict) else None
        if not isinstance(tag, str) or tag not in _INSTRUCTIONS:
            raise ProgramError(f"{where} has the opcode {tag!r}, known are {list(_INSTRUCTIONS)}")
        rest = {key: value for key, value in data.items() if key != "op"}
        return _decode_dataclass(_INSTRUCTIONS[tag], rest, where)
    if data is None and type(None) in kinds:
        return None
    (kind,) = [kind for kind in kinds if kind is not type(None)]
    return decode(kind, data, where)


@functools.cache
def _hints(cls: Any) -> Mapping[str, Any]:
    return typing.get_type_hints(typing.cast(Any, cls))


def _decode_dataclass(cls: type[Any], data: Any, where: str) -> Any:
    names = _saved(cls)
    if not isinstance(data, dict) or set(data) != set(names):
        found = sorted(data) if isinstance(data, dict) else data
        raise ProgramError(f"{where} has {found!r:.200}, a {cls.__name__} has {names}")
    hints = _hints(typing.cast(Any, cls))
    return cls(**{name: decode(hints[name], data[name], f"{where}.{name}") for name in names})
