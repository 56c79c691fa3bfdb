"""Measured seconds of programs on disk, by what they are."""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import jax
from alpa_runtime import SpmdProgram

_log = logging.getLogger(__name__)

# Programs of equal stages differ in the name of their module.
_NAME = re.compile(r"^module @\S+", re.MULTILINE)


def program_key(program: SpmdProgram, device: jax.Device) -> str:
    """Equal for programs that take as long on devices of a kind: what is compiled, and by what."""
    sides = [(v.shape, v.dtype, v.axes, v.key_impl, v.partial) for v in program.inputs]
    what = (program.mesh, sides, device.device_kind, jax.__version__)
    return sha256(f"{what}\0{_NAME.sub('module', program.text)}".encode()).hexdigest()


@dataclass(frozen=True)
class ProfileStore:
    """Seconds by key, a file for each.

    A file is there whole or not at all, whoever else writes; one that cannot be read is measured
    again.

    Attributes:
        folder: where the files are; made when it is first needed.
    """

    folder: Path

    def get(self, key: str) -> float | None:
        """Seconds of a program; None where they are not known."""
        path = self._path(key)
        try:
            seconds = json.loads(path.read_text())["seconds"]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            _log.warning("%s cannot be read and is measured again: %s", path, error)
            return None
        return float(seconds) if isinstance(seconds, int | float) and seconds >= 0 else None

    def put(self, key: str, seconds: float) -> None:
        """Keeps the seconds of a program."""
        self.folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
        with os.fdopen(handle, "w") as file:
            json.dump({"seconds": seconds}, file)
        Path(name).replace(self._path(key))

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"
