"""Plans in one file: a zip archive of JSON and module texts, data alone."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from alpa_runtime.check import check
from alpa_runtime.errors import ProgramError
from alpa_runtime.plain_data import decode, encode
from alpa_runtime.plan import Plan

PLAN_VERSION = 3

_DESCRIPTION = "plan.json"
_NOTES = "notes"
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


def save(
    plan: Plan, path: str | os.PathLike[str], notes: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Writes a plan to one file, which appears whole or not at all.

    Args:
        plan: what is written.
        path: the file; one that exists is replaced.
        notes: texts by name that are kept beside the plan, see `read_note`. They change nothing of
            how it runs.

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
    description = encode(dataclasses.replace(plan, programs=tuple(programs)))
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(
                _DESCRIPTION, json.dumps({"version": PLAN_VERSION, "plan": description})
            )
            for index, program in enumerate(plan.programs):
                archive.writestr(f"programs/{index}.mlir", program.text)
            for note, text in notes.items():
                archive.writestr(f"{_NOTES}/{note}", text)
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
            plan = decode(Plan, data.get("plan"), "plan")
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


def read_note(path: str | os.PathLike[str], note: str) -> str | None:
    """A text that was kept beside a plan; None where there is none of that name.

    Raises:
        ProgramError: the file is damaged or cut short.
    """
    name = os.fspath(path)
    content = io.BytesIO(Path(path).read_bytes())
    try:
        with zipfile.ZipFile(content) as archive:
            member = f"{_NOTES}/{note}"
            if member not in archive.namelist():
                return None
            return _read(archive, member, name).decode()
    except ProgramError:
        raise
    except _DAMAGE as error:
        raise ProgramError(f"{name} is no plan, is damaged or cut short: {error}") from error


def _read(archive: zipfile.ZipFile, member: str, name: str) -> bytes:
    size = archive.getinfo(member).file_size
    if size > _LARGEST_TEXT:
        raise ProgramError(f"{name}: {member} has {size} bytes, at most {_LARGEST_TEXT} are read")
    return archive.read(member)
