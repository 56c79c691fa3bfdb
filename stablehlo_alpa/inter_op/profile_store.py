"""Measured seconds of programs on disk, by what they are."""

from __future__ import annotations

import os
import re
from hashlib import sha256
from pathlib import Path

import jax
from alpa_runtime import SpmdProgram

from stablehlo_alpa.store import OFF, Store

# Programs of equal stages differ in the name of their module.
_NAME = re.compile(r"^module @\S+", re.MULTILINE)


def program_key(program: SpmdProgram, device: jax.Device) -> str:
    """Equal for programs that take as long on devices of a kind: what is compiled, and by what."""
    sides = [(v.shape, v.dtype, v.axes, v.key_impl, v.partial) for v in program.inputs]
    what = (program.mesh, sides, device.device_kind, jax.__version__)
    return sha256(f"{what}\0{_NAME.sub('module', program.text)}".encode()).hexdigest()


def profile_store(folder: str | os.PathLike[str] | None) -> Store:
    """A store of measured seconds, which are those of every version of this package."""
    return OFF if folder is None else Store(Path(folder), is_of_version=False)
