"""Keeps a fleet alive: ends it when something breaks, or replaces it and repeats what was lost."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from alpa_runtime.checkpoint import remove_folder
from alpa_runtime.errors import ClusterError, RuntimeMeshError, StablehloAlpaError
from alpa_runtime.plan import Plan
from alpa_runtime.plan_part import Assignment
from alpa_runtime.ray.cluster import Hosts, RayCluster
from alpa_runtime.ray.fleet import Fleet
from alpa_runtime.ray.journal import Call, Journal, Snapshot
from alpa_runtime.transport import Place

_log = logging.getLogger(__name__)

Arguments = Mapping[Place, tuple[Any, ...]]


class RestartedError(StablehloAlpaError):
    """Processes failed; new ones have taken their place and done again what was submitted."""


class Supervisor:
    """A fleet, and what is needed to make another one like it.

    Attributes:
        fleet: the processes.
        journal: what has to be repeated after a restart; None where failures are raised.
    """

    def __init__(
        self,
        cluster: RayCluster,
        hosts: Hosts,
        on_lost: Callable[[], None],
    ) -> None:
        """Starts nothing yet.

        Args:
            cluster: where, and what is to happen on a failure.
            hosts: what the cluster has.
            on_lost: called once calls in flight are lost, before they are repeated if they are.
        """
        self._cluster = cluster
        self._on_lost = on_lost
        self._failure: BaseException | None = None
        self._restarts = 0
        # What the processes have done before: the first time of anything compiles and imports.
        self._done_once: set[str] = set()
        self.journal = Journal() if cluster.on_failure == "restart" else None
        self.fleet = Fleet(cluster, hosts)

    @property
    def has_failed(self) -> bool:
        """Whether the processes were ended."""
        return self._failure is not None

    def add(self, number: int, plan: Plan, *, traces: bool) -> Assignment:
        """See `Fleet.add`. What only this plan is to blame for leaves all others as they are."""
        while True:
            self.check_alive()
            try:
                return self.fleet.add(number, plan, traces=traces)
            except ClusterError as error:
                self.check_alive()
                if not self.fleet.assignments or not self.fleet.watch.lost():
                    raise
                if self.journal is None:
                    self.fail(error)
                    raise
                self._restart(error, self.journal)

    def remove(self, number: int) -> None:
        """See `Fleet.remove`; a plan that may have to be repeated is kept."""
        if self.journal is None:
            self.fleet.remove(number)

    def submit(self, method: str, arguments: Arguments, what: str = "") -> dict[Place, Any]:
        """Asks processes for something that changes what they keep.

        Args:
            method: of the actors.
            arguments: per process.
            what: of its kind, the first has more time; the method by default.
        """
        self.check_alive()
        if self.journal is not None:
            self.journal.record(Call(method, arguments, what or method))
        try:
            return self.fleet.submit(method, arguments)
        except BaseException as error:
            # Some may have heard of it, and would wait for the others.
            self.fail(error)
            raise

    def collect(self, refs: Mapping[Place, Any], deadline_s: float | None = None) -> dict[Any, Any]:
        """Answers of several processes.

        Args:
            refs: what was submitted.
            deadline_s: seconds; those of compilation by default.

        Raises:
            ClusterError: one died, failed, or was not done in time; all are ended then.
            RestartedError: the same, and there are new ones.
        """
        try:
            return self.fleet.collect(refs, deadline_s)
        except ClusterError as error:
            # Another thread may have ended them.
            self.check_alive()
            if self.journal is not None:
                self._restart(error, self.journal)
                raise RestartedError from error
            self.fail(error)
            raise
        except BaseException as error:
            self.fail(error)
            raise

    def collect_in_time(self, what: str, refs: Mapping[Place, Any]) -> dict[Any, Any]:
        """Answers to a call that has to keep the deadline of a step.

        The first of its kind has that of compilation besides: a step compiles what cuts and joins
        pieces, a checkpoint imports orbax.
        """
        results = self.collect(refs, self._deadline_s(what))
        self._done_once.add(what)
        return results

    def snapshot(self, step: int) -> None:
        """Lets every process write what it keeps, if it is time; steps go on while it does."""
        if self.journal is None:
            return
        self.journal.poll()
        if step % self._cluster.snapshot_steps or self.journal.is_writing:
            return
        places = self.fleet.places
        folder = Path(self._cluster.snapshot_folder) / f"snapshot-{uuid.uuid4().hex[:12]}"
        try:
            folder.mkdir(parents=True)
            calls = {place: ("save_all", str(folder)) for place in places}
            entries = self.collect_in_time("save_all", self.fleet.submit("store", calls))
        except RestartedError:
            remove_folder(folder)
            return
        refs = self.fleet.submit("finish_saving", dict.fromkeys(places, ()))
        self.journal.begin(Snapshot(folder, entries), refs)
        # What was lived through is behind us.
        self._restarts = 0

    def check_alive(self) -> None:
        """Refuses to go on behind a failure, as a `ClusterError`."""
        if self._failure is not None:
            raise ClusterError(
                f"the processes of {self._name()} were ended: {self._failure}"
            ) from self._failure

    def fail(self, error: BaseException) -> None:
        """Ends everything because of an error."""
        self._failure = self._failure or error
        self.close()

    def close(self) -> None:
        """Ends everything."""
        self._failure = self._failure or RuntimeMeshError(f"{self._name()} was closed")
        self._on_lost()
        self.fleet.close()
        if self.journal is not None:
            self.journal.close()

    def _name(self) -> str:
        return ", ".join(one.plan.name for one in self.fleet.assignments.values()) or "a session"

    def _deadline_s(self, what: str) -> float:
        more = 0.0 if what in self._done_once else self._cluster.compile_deadline_s
        return self._cluster.deadline_s + more

    def _restart(self, error: ClusterError, journal: Journal) -> None:
        """Goes back to the last snapshot with new processes, and repeats what came behind."""
        _log.warning("%s; restarting", error)
        journal.poll()
        self._on_lost()
        try:
            while True:
                self._restarts += 1
                self._done_once.clear()
                if self._restarts > self._cluster.max_restarts:
                    raise error
                try:
                    self._repeat(error, journal)
                    return
                except ClusterError as again:
                    error = again
        except BaseException as fatal:
            self.fail(fatal)
            raise

    def _repeat(self, error: ClusterError, journal: Journal) -> None:
        """One attempt to replace what was lost, and to do again what came behind."""
        self.fleet.renew({error.mesh} - {-1})
        # Behind its writers: they are gone, or were waited for.
        journal.abandon()
        if journal.snapshot is not None:
            folder, entries = str(journal.snapshot.folder), journal.snapshot.entries
            self.fleet.call("store", {p: ("load_all", folder, entries[p]) for p in entries})
        for call in journal.calls:
            refs = self.fleet.submit(call.method, call.arguments)
            is_step = call.method == "step"
            self.fleet.collect(refs, self._deadline_s(call.what) if is_step else None)
            self._done_once.add(call.what)
