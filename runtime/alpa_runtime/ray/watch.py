"""Waits for processes, and finds out which one is to blame when they fail."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError

from alpa_runtime.errors import ClusterError
from alpa_runtime.plan_part import Assignment
from alpa_runtime.progress import Progress, describe_instruction
from alpa_runtime.ray.cluster import RayCluster
from alpa_runtime.transport import Place

# How often a death is looked for, and how long a live process may take to say that it lives.
_POLL_S = 0.5
_PING_S = 5.0


class Watch:
    """Collects results of the processes of a session.

    Attributes:
        progress: how far each process is; None for those on other hosts.
    """

    def __init__(
        self,
        assignments: Mapping[int, Assignment],
        actors: Mapping[Place, Any],
        cluster: RayCluster,
    ) -> None:
        """Takes the processes to look after, and by number the plans that they hold.

        Both change while processes come and go.
        """
        self._assignments, self._actors, self._cluster = assignments, actors, cluster
        self.progress: dict[Place, Progress | None] = {}
        self._given_up: list[Any] = []

    def collect(self, refs: Mapping[Place, Any], deadline: float) -> dict[Place, Any]:
        """Results of one call to each of some processes.

        Args:
            refs: the calls.
            deadline: by ``time.monotonic``.

        Raises:
            ClusterError: naming the process.
        """
        waiting = {ref: place for place, ref in refs.items()}
        results: dict[Place, Any] = {}
        while waiting:
            left = deadline - time.monotonic()
            if left <= 0:
                self.give_up(waiting)
                raise self._late(sorted(waiting.values()))
            done, _ = ray.wait(list(waiting), num_returns=len(waiting), timeout=min(left, _POLL_S))
            failures = _gather(done, waiting, results)
            if failures:
                self.give_up(waiting)
                raise self._failed(failures)
        return results

    def _failed(self, failures: dict[Place, RayError]) -> ClusterError:
        """A death makes its peers fail as well, and may show later than what it leads to."""
        if not _has_death(failures):
            failures.update(self._ping(_PING_S, stop_at_death=True)[0])
        dead = [p for p, failure in failures.items() if isinstance(failure, RayActorError)]
        place = min(dead or failures)
        cause, (where, doing) = failures[place], self._noted(place)
        what = f"failed: {cause.cause!r}" if isinstance(cause, RayTaskError) else "died"
        return ClusterError(f"{where} {what}, while in '{doing}'", *place, doing)

    def give_up(self, refs: Iterable[Any]) -> None:
        """Notes calls whose answers nobody will ask for."""
        self._given_up.extend(refs)

    def sweep(self) -> None:
        """Looks at answers that were given up: Ray reports errors that nobody has looked at."""
        refs, self._given_up = self._given_up, []
        if refs and ray.is_initialized():
            done, _ = ray.wait(refs, num_returns=len(refs), timeout=_POLL_S)
            _gather(done, dict.fromkeys(done, (0, 0)), {})

    def lost(self) -> list[Place]:
        """Processes that are dead or silent."""
        dead, silent = self._ping(_PING_S)
        return sorted({*dead, *silent})

    def _ping(
        self, timeout_s: float, *, stop_at_death: bool = False
    ) -> tuple[dict[Place, RayError], list[Place]]:
        """Processes that are dead, and those that did not answer in time."""
        waiting = {actor.ping.remote(): place for place, actor in self._actors.items()}
        deaths: dict[Place, RayError] = {}
        deadline = time.monotonic() + timeout_s
        while waiting and not (stop_at_death and deaths):
            left = max(0.0, deadline - time.monotonic())
            done, _ = ray.wait(list(waiting), num_returns=1, timeout=left)
            if not done:
                break
            failures = _gather(done, waiting, {})
            deaths |= {
                p: error for p, error in failures.items() if isinstance(error, RayActorError)
            }
        return deaths, list(waiting.values())

    def _late(self, places: list[Place]) -> ClusterError:
        """Who of those that are late does not even answer?"""
        pings = {place: self._actors[place].ping.remote() for place in places}
        answered, _ = ray.wait(list(pings.values()), num_returns=len(pings), timeout=_PING_S)
        silent = [place for place, ping in pings.items() if ping not in answered]
        place = (silent or places)[0]
        what = "is silent" if silent else "is not done"
        others = ", ".join("{} in '{}'".format(*self._noted(p)) for p in places if p != place)
        where, doing = self._noted(place)
        return ClusterError(
            f"{where} {what} after the deadline of {self._cluster.deadline_s:g} s, "
            f"in '{doing}'" + (f"; waiting: {others}" if others else ""),
            *place,
            doing,
        )

    def _noted(self, place: Place) -> tuple[str, str]:
        """Where and in what a process is, as far as it has noted."""
        where = f"mesh {place[0]} host {place[1]}"
        if place not in self.progress:
            return where, "the start"
        names = [one.plan.name for one in self._assignments.values() if place[0] in one.meshes]
        doing = "an unknown instruction"
        if (progress := self.progress.get(place)) is not None:
            number, _, position = progress.read()
            doing = "between two steps"
            if number in self._assignments:
                running = self._assignments[number]
                names = [running.plan.name]
                mesh = running.meshes.index(place[0])
                doing = describe_instruction(running.plan, mesh, position)
        return " of ".join([where, *names[:1]]), doing

    def forget(self, place: Place) -> None:
        """Forgets how far a process is."""
        self.progress.pop(place, None)


def _gather(
    done: Sequence[Any], waiting: dict[Any, Place], results: dict[Place, Any]
) -> dict[Place, RayError]:
    """Takes what is done from what is waited for; returns what went wrong."""
    failures: dict[Place, RayError] = {}
    for ref in done:
        place = waiting.pop(ref)
        try:
            results[place] = ray.get(ref)
        except RayError as error:
            failures[place] = error
    return failures


def _has_death(failures: Mapping[Place, RayError]) -> bool:
    return any(isinstance(error, RayActorError) for error in failures.values())
