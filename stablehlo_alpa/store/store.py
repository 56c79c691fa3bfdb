"""What was computed before, on disk, by what it was computed from."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stablehlo_alpa.store.content import digest
from stablehlo_alpa.store.entry import DamagedError, Record, pack, unpack
from stablehlo_alpa.store.version import own_version

_log = logging.getLogger(__name__)

_GIB = 1 << 30
# Seconds that a computation must have taken to be kept: what is read again takes a millisecond
# (heuristic).
_WORTH_S = 0.005
# When there is too much, the oldest go until this part of what is allowed is left (heuristic).
_KEPT = 0.8
# Seconds after which a file that was begun and not ended is nobody's.
_ABANDONED_S = 3600.0
_VERSION = re.compile(r"[0-9a-f]{16}")
# In place of a version.
_ANY = "0" * 16
_SUFFIX, _BEGUN = ".entry", ".part"


@dataclass
class _State:
    """What a process knows of a folder."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    said: set[str] = field(default_factory=set)
    # Bytes of all entries, those of other processes as of when they were counted.
    size: int | None = None
    hits: int = 0
    misses: int = 0


@dataclass(frozen=True, eq=False)
class Store:
    """Records by the content that they were computed from.

    An entry is a file that is there whole or not at all, whoever else writes: it is written beside
    its place and renamed. Its name is a digest of what it was made from; that includes this
    package's sources and compiled extension, so that another version finds none of it. One that
    does not hold what its checksum says counts as not there, and is written anew. What cannot be
    written is not kept, and nothing else happens: a plan does not depend on a disk.

    Attributes:
        folder: where the files are, made when it is first needed; None where nothing is kept.
        max_bytes: of all files; beyond it those go first that were not used for longest.
        worth_s: seconds that a computation must have taken to be kept.
        is_of_version: whether entries are those of one version of this package.
    """

    folder: Path | None = None
    max_bytes: int = _GIB
    worth_s: float = _WORTH_S
    is_of_version: bool = True
    _state: _State = field(default_factory=_State, repr=False)

    def __post_init__(self) -> None:
        if self.max_bytes < 0:
            raise ValueError(f"max_bytes must be >= 0, got {self.max_bytes}")

    @property
    def is_on(self) -> bool:
        """Whether anything is kept."""
        return self.folder is not None

    @property
    def asked(self) -> tuple[int, int]:
        """How often something was there for this process, and how often not."""
        return self._state.hits, self._state.misses

    def remember(self, what: str, content: tuple[Any, ...], make: Callable[[], Record]) -> Record:
        """A record that was made before from equal content, or is made now.

        Args:
            what: the computation, for the key.
            content: all that the record depends on, see `digest`.
            make: makes the record: plain data and arrays.

        Raises:
            TypeError: the content is not plain.
        """
        if not self.is_on:
            return make()
        key = self.key(what, *content)
        found = self.get(key)
        if found is not None:
            return found
        begin = time.perf_counter()
        made = make()
        if time.perf_counter() - begin >= self.worth_s:
            self.put(key, made)
        return made

    def key(self, what: str, *content: Any) -> str:
        """Names what a computation makes of some content.

        Raises:
            TypeError: the content is not plain.
        """
        return digest(what, content) if self.is_on else ""

    def get(self, key: str) -> Record | None:
        """What was kept under a key; None where nothing was."""
        found = None if self.folder is None else self._read(self.folder, key)
        with self._state.lock:
            if found is None:
                self._state.misses += 1
            else:
                self._state.hits += 1
        return found

    def _read(self, folder: Path, key: str) -> Record | None:
        path = self._path(folder, key)
        try:
            found = unpack(key, path.read_bytes())
        except FileNotFoundError:
            self._say_of_others()
            return None
        except (DamagedError, OSError) as error:
            self._say("damaged", "entries of the store %s are damaged and made anew: %s", error)
            return None
        with contextlib.suppress(OSError):
            # Those that were used last are kept longest.
            os.utime(path)
        return found

    def put(self, key: str, record: Record) -> None:
        """Keeps a record under a key."""
        if self.folder is None:
            return
        path, content = self._path(self.folder, key), pack(key, record)
        try:
            _write(path, content)
            self._count(len(content))
        except OSError as error:
            self._say("full", "nothing is kept in the store %s: %s", error)

    def _path(self, folder: Path, key: str) -> Path:
        return folder / self._version / key[:2] / f"{key}{_SUFFIX}"

    @property
    def _version(self) -> str:
        return own_version()[:16] if self.is_of_version else _ANY

    def _say(self, kind: str, text: str, *details: Any) -> None:
        """Warns of something once."""
        with self._state.lock:
            if kind in self._state.said:
                return
            self._state.said.add(kind)
        _log.warning(text, self.folder, *details)

    def _say_of_others(self) -> None:
        """Says once, and until something is kept, that all there is is of other versions."""
        assert self.folder is not None
        if "version" in self._state.said or (self.folder / self._version).exists():
            return
        if self.folder.is_dir() and any(map(_is_version, self.folder.iterdir())):
            self._say(
                "version", "the store %s is of another version: it is ignored and filled anew"
            )

    def _count(self, added: int) -> None:
        """Makes room where an entry was one too many."""
        with self._state.lock:
            state = self._state
            if state.size is None:
                state.size = sum(size for _, size, _ in self._entries())
            else:
                state.size += added
            if state.size > self.max_bytes:
                state.size = self._make_room()

    def _make_room(self) -> int:
        """Removes what was not used for longest; bytes of what is left."""
        entries = sorted(self._entries())
        left = sum(size for _, size, _ in entries)
        for _, size, path in entries:
            if left <= _KEPT * self.max_bytes:
                break
            path.unlink(missing_ok=True)
            left -= size
        return left

    def _entries(self) -> list[tuple[float, int, Path]]:
        """When each was used last, its bytes and its path; what nobody ends is removed."""
        assert self.folder is not None
        found = []
        for path in self.folder.glob("*/*/*"):
            if not _is_version(path.parents[1]) or path.suffix not in (_SUFFIX, _BEGUN):
                continue
            try:
                status = path.stat()
                if path.suffix == _SUFFIX:
                    found.append((status.st_mtime, status.st_size, path))
                elif time.time() - status.st_mtime > _ABANDONED_S:
                    path.unlink()
            except FileNotFoundError:
                # Another process makes room as well.
                continue
        return found


OFF = Store()
"""Keeps nothing."""


def _is_version(path: Path) -> bool:
    return _VERSION.fullmatch(path.name) is not None


def _write(path: Path, content: bytes) -> None:
    """Writes a file that is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=_BEGUN)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
