"""What has to be done again after a restart: everything since the last snapshot."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ray

from alpa_runtime.checkpoint import remove_folder
from alpa_runtime.transport import Place


@dataclasses.dataclass(frozen=True)
class Call:
    """A call that changes what processes keep.

    Attributes:
        method: of the actors.
        arguments: per process.
        what: the kind of call, of which the first takes longer.
    """

    method: str
    arguments: Mapping[Place, tuple[Any, ...]]
    what: str


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """All arrays of all processes, at one point of the journal.

    Attributes:
        folder: a checkpoint without an index.
        entries: per process, what it needs to read its arrays.
    """

    folder: Path
    entries: Mapping[Place, Any]


class Journal:
    """Calls in their order, and the snapshot that they follow.

    Attributes:
        calls: since the snapshot, or since the start.
        snapshot: the last one that is written; None before the first.
    """

    def __init__(self) -> None:
        """An empty journal."""
        self.calls: list[Call] = []
        self.snapshot: Snapshot | None = None
        self._next: tuple[Snapshot, int, dict[Place, Any]] | None = None

    def record(self, call: Call) -> None:
        """Notes a call."""
        self.calls.append(call)

    @property
    def is_writing(self) -> bool:
        """Whether a snapshot is being written."""
        return self._next is not None

    def begin(self, snapshot: Snapshot, refs: dict[Place, Any]) -> None:
        """Notes a snapshot of everything so far, which is written once ``refs`` are there."""
        self._next = (snapshot, len(self.calls), refs)

    def poll(self) -> None:
        """Forgets what a snapshot that is written now makes needless."""
        if self._next is None:
            return
        snapshot, position, refs = self._next
        done, _ = ray.wait(list(refs.values()), num_returns=len(refs), timeout=0)
        if len(done) < len(refs):
            return
        self._next = None
        try:
            ray.get(done)
        except ray.exceptions.RayError:
            # The one before it still holds; the next step tells what is wrong.
            remove_folder(snapshot.folder)
            return
        old, self.snapshot = self.snapshot, snapshot
        self.calls = self.calls[position:]
        if old is not None:
            remove_folder(old.folder)

    def abandon(self) -> None:
        """Forgets a snapshot that is not written yet: its writers are gone."""
        if self._next is not None:
            remove_folder(self._next[0].folder)
            self._next = None

    def close(self) -> None:
        """Removes snapshots."""
        self.abandon()
        if self.snapshot is not None:
            remove_folder(self.snapshot.folder)
            self.snapshot = None
