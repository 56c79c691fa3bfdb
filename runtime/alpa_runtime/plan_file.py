"""Plans in one file: a zip archive of JSON and module texts, data alone."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import struct
import types
import typing
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from alpa_runtime.check import check
from alpa_runtime.errors import ProgramError
from alpa_runtime.plan import Free, Plan, Recv, Run, Send

PLAN_VERSION = 3

_INSTRUCTIONS: Mapping[str, type[Any]] = {"run": Run, "send": Send, "recv": Recv, "free": Free}
_DESCRIPTION = "plan.json"
# What reading a damaged archive raises.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    KeyError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)
# A program's text may not be larger: a hostile archive could unpack to anything. Bytes.
_LARGEST_TEXT = 1 << 30


def save(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Writes a plan to one file, which appears whole or not at all.

    Args:
        plan: what is written.
        path: the file; one that exists is replaced.

    Raises:
        ProgramError: the plan calls functions of this process.
    """
    for program in plan.programs:
        for function in program.callbacks:
            raise ProgramError(
                f"plan of {plan.name} calls back into Python ({function.name}), which no file can "
                "hold: save the plan of the function without the call"
            )
    target = Path(path)
    temporary = target.with_name(target.name + f".{os.getpid()}.part")
    programs = [dataclasses.replace(program, text="") for program in plan.programs]
    description = _encode(dataclasses.replace(plan, programs=tuple(programs)))
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(
                _DESCRIPTION, json.dumps({"version": PLAN_VERSION, "plan": description})
            )
            for index, program in enumerate(plan.programs):
                archive.writestr(f"programs/{index}.mlir", program.text)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> Plan:
    """Reads a plan, and proves that it can run.

    Raises:
        ProgramError: the file is no plan, of another version, damaged, or contradicts itself.
    """
    name = os.fspath(path)
    content = io.BytesIO(Path(path).read_bytes())
    try:
        with zipfile.ZipFile(content) as archive:
            data = json.loads(_read(archive, _DESCRIPTION, name))
            if not isinstance(data, dict) or "version" not in data:
                raise ProgramError(f"{name} is no plan: it names no version")
            if data["version"] != PLAN_VERSION:
                raise ProgramError(
                    f"{name} is a plan of version {data['version']!r}, this is version "
                    f"{PLAN_VERSION}"
                )
            plan = _decode(Plan, data.get("plan"), "plan")
            programs = tuple(
                dataclasses.replace(
                    program, text=_read(archive, f"programs/{index}.mlir", name).decode()
                )
                for index, program in enumerate(plan.programs)
            )
    except ProgramError:
        raise
    except _DAMAGE as error:
        raise ProgramError(f"{name} is no plan, is damaged or cut short: {error}") from error
    loaded: Plan = dataclasses.replace(plan, programs=programs)
    check(loaded)
    return loaded


def _read(archive: zipfile.ZipFile, member: str, name: str) -> bytes:
    size = archive.getinfo(member).file_size
    if size > _LARGEST_TEXT:
        raise ProgramError(f"{name}: {member} has {size} bytes, at most {_LARGEST_TEXT} are read")
    return archive.read(member)


def _encode(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        data = {name: _encode(getattr(value, name)) for name in _saved(type(value))}
        for tag, cls in _INSTRUCTIONS.items():
            if isinstance(value, cls):
                data["op"] = tag
        return data
    if isinstance(value, tuple):
        return [_encode(part) for part in value]
    return value


def _saved(cls: type[Any]) -> list[str]:
    """What a file has of a type: all that makes two of it equal."""
    return [field.name for field in dataclasses.fields(cls) if field.compare]


def _decode(kind: Any, data: Any, where: str) -> Any:
    """Builds a value of an annotated type, refusing everything else."""
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
        return tuple(_decode(kinds[0], part, f"{where}[{i}]") for i, part in enumerate(data))
    if len(kinds) != len(data):
        raise ProgramError(f"{where} has {len(data)} entries, must have {len(kinds)}")
    return tuple(
        _decode(kind, part, f"{where}[{i}]")
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
    return _decode(kind, data, where)


def _decode_dataclass(cls: type[Any], data: Any, where: str) -> Any:
    names = _saved(cls)
    if not isinstance(data, dict) or set(data) != set(names):
        found = sorted(data) if isinstance(data, dict) else data
        raise ProgramError(f"{where} has {found!r:.200}, a {cls.__name__} has {names}")
    hints = typing.get_type_hints(cls)
    return cls(**{name: _decode(hints[name], data[name], f"{where}.{name}") for name in names})
