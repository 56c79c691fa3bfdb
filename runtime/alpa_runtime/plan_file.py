"""Plans in one file: a zip archive of JSON and module texts, data alone."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from alpa_runtime.check import check
from alpa_runtime.errors import ProgramError
from alpa_runtime.plain_data import decode, encode
from alpa_runtime.plan import Free, Plan, Recv, Run, Send

PLAN_VERSION = 4

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


def calls_back(plan: str, function: str) -> ProgramError:
    """Why a plan that calls a function of this process is not saved; both by name."""
    return ProgramError(
        f"plan of {plan} calls back into Python ({function}), which no file can hold: save the "
        "plan of the function without the call"
    )


def save(
    plan: Plan, path: str | os.PathLike[str], members: Mapping[str, bytes] | None = None
) -> None:
    """Writes a plan to one file, which appears whole or not at all.

    Args:
        plan: what is written.
        path: the file; one that exists is replaced, what a link leads to in its place. What is no
            file, a pipe or a device, is written to.
        members: what else the archive holds, by name, for those who know of it.

    Raises:
        ProgramError: the plan calls functions of this process.
        OSError: the file cannot be written.
    """
    for program in plan.programs:
        for function in program.callbacks:
            raise calls_back(plan.name, function.name)
    programs = [dataclasses.replace(program, text="") for program in plan.programs]
    description = encode(dataclasses.replace(plan, programs=tuple(programs)), _INSTRUCTIONS)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_DESCRIPTION, json.dumps({"version": PLAN_VERSION, "plan": description}))
        for index, program in enumerate(plan.programs):
            archive.writestr(f"programs/{index}.mlir", program.text)
        for name, member in (members or {}).items():
            archive.writestr(name, member)
    _put(Path(path), content.getvalue())


def _put(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all, and to what is no file as it comes."""
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    target = Path(os.path.realpath(path))
    temporary = target.with_name(target.name + f".{os.getpid()}.part")
    try:
        temporary.write_bytes(content)
        temporary.replace(target)
    except OSError as error:
        # Nobody has asked for the temporary file.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        # Where it cannot be written, it cannot be looked for either.
        with contextlib.suppress(OSError):
            temporary.unlink()


def load(path: str | os.PathLike[str]) -> Plan:
    """Reads a plan, and proves that it can run.

    Raises:
        ProgramError: the file is no plan, of another version, damaged, or contradicts itself.
    """
    return load_members(path, ())[0]


def load_members(
    path: str | os.PathLike[str], names: Sequence[str]
) -> tuple[Plan, Mapping[str, bytes]]:
    """Reads a plan, proves that it can run, and reads what else the archive holds.

    Args:
        path: the file.
        names: of the members; those that are not there are left out of what is returned.

    Raises:
        ProgramError: the file is no plan, of another version, damaged, or contradicts itself.
    """
    name = os.fspath(path)
    with _archive(path) as archive:
        plan = _read_plan(archive, name)
        there = set(archive.namelist())
        members = {one: _read(archive, one, name) for one in names if one in there}
    check(plan)
    return plan, members


def _read_plan(archive: zipfile.ZipFile, name: str) -> Plan:
    data = json.loads(_read(archive, _DESCRIPTION, name))
    if not isinstance(data, dict) or "version" not in data:
        raise ProgramError(f"{name} is no plan: it names no version")
    if data["version"] != PLAN_VERSION:
        raise ProgramError(
            f"{name} is a plan of version {data['version']!r}, this is version {PLAN_VERSION}"
        )
    plan: Plan = decode(Plan, data.get("plan"), "plan", _INSTRUCTIONS)
    programs = tuple(
        dataclasses.replace(program, text=_read(archive, f"programs/{index}.mlir", name).decode())
        for index, program in enumerate(plan.programs)
    )
    return dataclasses.replace(plan, programs=programs)


def read_member(path: str | os.PathLike[str], member: str) -> bytes | None:
    """What else a plan's archive holds under a name, without the plan; None where there is nothing.

    Raises:
        ProgramError: the file is no archive, or damaged.
    """
    with _archive(path) as archive:
        is_there = member in archive.namelist()
        return _read(archive, member, os.fspath(path)) if is_there else None


@contextlib.contextmanager
def _archive(path: str | os.PathLike[str]) -> Iterator[zipfile.ZipFile]:
    """The archive of a plan; what reading a damaged one raises is a `ProgramError`."""
    content = io.BytesIO(Path(path).read_bytes())
    try:
        with zipfile.ZipFile(content) as archive:
            yield archive
    except ProgramError:
        raise
    except _DAMAGE as error:
        name = os.fspath(path)
        raise ProgramError(f"{name} is no plan, is damaged or cut short: {error}") from error


def _read(archive: zipfile.ZipFile, member: str, name: str) -> bytes:
    size = archive.getinfo(member).file_size
    if size > _LARGEST_TEXT:
        raise ProgramError(f"{name}: {member} has {size} bytes, at most {_LARGEST_TEXT} are read")
    return archive.read(member)
