"""Files that commands read and write: what cannot be is said before anything is worked on."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from stablehlo_alpa.cli.usage import UsageError


def check_output(
    option: str, path: Path | None, *, is_replaced: bool = False, others: Iterable[Path | None] = ()
) -> None:
    """Refuses a file that could not be written, or that is read or written as well.

    Args:
        option: that names it.
        path: of the file; None where none is written.
        is_replaced: a new file is put in the place of one that is there, rather than written to.
        others: files that the command reads or writes besides.

    Raises:
        UsageError: it is a folder, in a folder that is not there, protected, or one of the others.
    """
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"{option} {path} is a folder, must be a file")
    is_there, is_special = path.exists(), path.exists() and not path.is_file()
    if is_there and not os.access(path, os.W_OK):
        raise UsageError(f"{option} {path} may not be written to")
    if is_special:
        return
    real = os.path.realpath(path)
    if any(one is not None and os.path.realpath(one) == real for one in others):
        raise UsageError(f"{option} {path} is read or written as well, must be a file of its own")
    if not is_there or is_replaced:
        _check_folder(f"{option} {path}", path.parent, Path(real).parent)


def _check_folder(what: str, named: Path, folder: Path) -> None:
    if not folder.exists():
        raise UsageError(f"{what}: there is no folder {named}")
    if not folder.is_dir():
        raise UsageError(f"{what}: {named} is a file, must be a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{what}: nothing may be written in the folder {named}")


def check_input(option: str, path: Path | None) -> None:
    """Refuses a file that is not there.

    Args:
        option: that names it.
        path: of the file; None where none is read.

    Raises:
        UsageError: it is a folder.
        OSError: there is no such file.
    """
    if path is not None and not path.exists():
        raise FileNotFoundError(f"{option} {path}: there is no such file")
    if path is not None and path.is_dir():
        raise UsageError(f"{option} {path} is a folder, must be a file")


def check_folder(option: str, path: Path | None) -> None:
    """Refuses a folder in whose place a file is.

    Args:
        option: that names it.
        path: of the folder, which need not be there; None where there shall be none.

    Raises:
        UsageError: it is a file.
    """
    if path is not None and path.exists() and not path.is_dir():
        raise UsageError(f"{option} {path} is a file, must be a folder")
