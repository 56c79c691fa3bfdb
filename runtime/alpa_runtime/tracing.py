"""What ran where and when, in the format that Perfetto and chrome://tracing read."""

from __future__ import annotations

import dataclasses
import json
import os
import queue
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alpa_runtime.errors import ProgramError


@dataclass(frozen=True)
class Event:
    """Something that ran on a mesh.

    Attributes:
        mesh: number of the mesh.
        name: what it was.
        start_s, end_s: seconds since the trace began.
    """

    mesh: int
    name: str
    start_s: float
    end_s: float


class Tracer:
    """Notes when launches end, one thread per mesh waiting for their results.

    A mesh runs its launches one after the other, so one starts when it was issued or when the one
    before it has ended, whichever is later.

    Attributes:
        begun: when the trace began, in seconds since 1970.
        events: what ran, in seconds since then.
    """

    def __init__(self, meshes: Iterable[int]) -> None:
        """Begins a trace of some meshes."""
        self.events: list[Event] = []
        self.begun, self._origin = time.time(), time.perf_counter()
        self._queues: dict[int, queue.SimpleQueue[Any]] = {
            mesh: queue.SimpleQueue() for mesh in meshes
        }
        self._threads = [
            threading.Thread(target=self._watch, args=(mesh,), daemon=True) for mesh in self._queues
        ]
        for thread in self._threads:
            thread.start()

    def note(self, mesh: int, name: str, results: Sequence[Any]) -> None:
        """Notes a launch; its results must not be donated before they are there."""
        self._queues[mesh].put((name, time.perf_counter(), results))

    def __enter__(self) -> Tracer:
        return self

    def __exit__(self, *error: object) -> None:
        self.finish()

    def finish(self) -> list[Event]:
        """Waits for everything noted, and ends the trace; a second time does nothing."""
        for waiting in self._queues.values():
            waiting.put(None)
        for thread in self._threads:
            thread.join()
        self.events.sort(key=lambda event: (event.start_s, event.mesh))
        return self.events

    def _watch(self, mesh: int) -> None:
        last = self._origin
        while (noted := self._queues[mesh].get()) is not None:
            name, issued, results = noted
            for result in results:
                result.block_until_ready()
            end = time.perf_counter()
            start = max(issued, last)
            self.events.append(Event(mesh, name, start - self._origin, end - self._origin))
            last = end


def join_traces(traces: Iterable[tuple[float, Sequence[Event]]]) -> list[Event]:
    """One trace of those of several processes.

    Args:
        traces: per process the time at which its trace began, in seconds by a clock that all
            processes share, and its events.
    """
    traces = list(traces)
    first = min((begun for begun, _ in traces), default=0.0)
    moved = [
        dataclasses.replace(
            event, start_s=event.start_s + begun - first, end_s=event.end_s + begun - first
        )
        for begun, events in traces
        for event in events
    ]
    return sorted(moved, key=lambda event: (event.start_s, event.mesh))


def write_trace(events: Sequence[Event], path: str | os.PathLike[str]) -> None:
    """Writes events as a Chrome trace: one track per mesh, times in microseconds."""
    meshes = sorted({event.mesh for event in events})
    records: list[dict[str, Any]] = [
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": mesh, "args": {"name": f"mesh {mesh}"}}
        for mesh in meshes
    ]
    records += [
        {
            "ph": "X",
            "name": event.name,
            "pid": 0,
            "tid": event.mesh,
            "ts": event.start_s * 1e6,
            "dur": (event.end_s - event.start_s) * 1e6,
        }
        for event in events
    ]
    Path(path).write_text(json.dumps({"traceEvents": records, "displayTimeUnit": "ms"}))


def read_trace(path: str | os.PathLike[str]) -> tuple[Event, ...]:
    """The events that `write_trace` has written, in order of their start.

    Raises:
        ProgramError: the file is no trace.
    """
    try:
        records = json.loads(Path(path).read_text())["traceEvents"]
        events = [
            Event(
                int(record["tid"]),
                str(record["name"]),
                float(record["ts"]) / 1e6,
                (float(record["ts"]) + float(record["dur"])) / 1e6,
            )
            for record in records
            if record.get("ph") == "X"
        ]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ProgramError(
            f"{os.fspath(path)} is no trace of a step, as write_trace writes it: {error!r}"
        ) from error
    return tuple(sorted(events, key=lambda event: (event.start_s, event.mesh)))
