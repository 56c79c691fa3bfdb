"""Frozen dataclasses as JSON and back: data alone, every type checked."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any

from alpa_runtime.errors import ProgramError

Tags: typing.TypeAlias = Mapping[str, type[Any]]
"""By the opcode that a file has for each, the members of a union."""


def encode(value: Any, tags: Tags = types.MappingProxyType({})) -> Any:
    """What JSON can hold of a tree of dataclasses, tuples and plain values.

    Args:
        value: the tree.
        tags: of unions.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        data = {name: encode(getattr(value, name), tags) for name in _saved(type(value))}
        for tag, cls in tags.items():
            if isinstance(value, cls):
                data["op"] = tag
        return data
    if isinstance(value, tuple):
        return [encode(part, tags) for part in value]
    return value


def decode(kind: Any, data: Any, where: str, tags: Tags = types.MappingProxyType({})) -> Any:
    """Builds a value of an annotated type, refusing everything else.

    Args:
        kind: the type.
        data: what `encode` made of a value of it.
        where: what messages call it.
        tags: of unions.

    Raises:
        ProgramError: the data are of no such type.
    """
    return _Decoder(tags).value(kind, data, where)


def _saved(cls: type[Any]) -> list[str]:
    """What a file has of a type: all that makes two of it equal."""
    return [field.name for field in dataclasses.fields(cls) if field.compare]


@dataclasses.dataclass(frozen=True)
class _Decoder:
    tags: Tags

    def value(self, kind: Any, data: Any, where: str) -> Any:
        origin = typing.get_origin(kind)
        if origin is tuple:
            return self._tuple(typing.get_args(kind), data, where)
        if origin in (typing.Union, types.UnionType):
            return self._union(typing.get_args(kind), data, where)
        if dataclasses.is_dataclass(kind):
            return self._dataclass(typing.cast(type[Any], kind), data, where)
        if kind is type(None):
            kind = types.NoneType
        # A bool is an int, and is not meant where a number is.
        if type(data) is not kind:
            raise ProgramError(f"{where} is {data!r:.80}, must be of type {kind.__name__}")
        return data

    def _tuple(self, kinds: tuple[Any, ...], data: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(data, list):
            raise ProgramError(f"{where} is {data!r:.80}, must be a list")
        if len(kinds) == 2 and kinds[1] is Ellipsis:
            return tuple(self.value(kinds[0], part, f"{where}[{i}]") for i, part in enumerate(data))
        if len(kinds) != len(data):
            raise ProgramError(f"{where} has {len(data)} entries, must have {len(kinds)}")
        return tuple(
            self.value(kind, part, f"{where}[{i}]")
            for i, (kind, part) in enumerate(zip(kinds, data, strict=True))
        )

    def _union(self, kinds: tuple[Any, ...], data: Any, where: str) -> Any:
        if set(kinds) == set(self.tags.values()):
            tag = data.get("op") if isinstance(data, dict) else None
            if not isinstance(tag, str) or tag not in self.tags:
                raise ProgramError(f"{where} has the opcode {tag!r}, known are {list(self.tags)}")
            rest = {key: value for key, value in data.items() if key != "op"}
            return self._dataclass(self.tags[tag], rest, where)
        if data is None and type(None) in kinds:
            return None
        (kind,) = [kind for kind in kinds if kind is not type(None)]
        return self.value(kind, data, where)

    def _dataclass(self, cls: type[Any], data: Any, where: str) -> Any:
        names = _saved(cls)
        if not isinstance(data, dict) or set(data) != set(names):
            found = sorted(data) if isinstance(data, dict) else data
            raise ProgramError(f"{where} has {found!r:.200}, a {cls.__name__} has {names}")
        hints = typing.get_type_hints(cls)
        return cls(
            **{name: self.value(hints[name], data[name], f"{where}.{name}") for name in names}
        )
