"""What the processes of a session are asked for, one thing after the other."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from alpa_runtime.plan import Plan, Send
from alpa_runtime.ray.cluster import Hosts, RayCluster
from alpa_runtime.ray.handles import Handles
from alpa_runtime.ray.supervisor import RestartedError, Supervisor
from alpa_runtime.transport import Place

# Steps that may be asked for before the first of them is done.
_OUTSTANDING = 2


class StepQueue:
    """Steps that were asked for and are not done yet, and what is asked between them.

    Attributes:
        supervisor: of the processes.
    """

    def __init__(self, cluster: RayCluster, hosts: Hosts, handles: Handles) -> None:
        """Nothing was asked for yet.

        Args:
            cluster: where.
            hosts: what it has.
            handles: of the arrays there.
        """
        self.supervisor = Supervisor(cluster, hosts, self._forget)
        self._handles = handles
        self._next_step = 0
        self._next_transfer = 0
        self._pending: deque[tuple[str, dict[Place, Any], Callable[[Any], None]]] = deque()

    def make_room(self) -> None:
        """Waits until another step may be asked for."""
        self.supervisor.check_alive()
        while len(self._pending) >= _OUTSTANDING:
            self._finish_oldest()

    def add(
        self,
        number: int,
        plan: Plan,
        order: Callable[[int, int], Mapping[Place, tuple[Any, ...]]],
        note: Callable[[Mapping[Place, Any]], None],
    ) -> None:
        """Asks for a step, for which there is room.

        Args:
            number: of the plan.
            plan: the plan.
            order: takes the numbers of the step and of its first transfer; returns what every
                process is asked.
            note: takes what the processes say when it is done.
        """
        orders = order(self._next_step, self._next_transfer)
        what = f"step of plan {number}"
        self._pending.append((what, self.supervisor.submit("step", orders, what), note))
        self._next_step += 1
        self._next_transfer += 1 + max(
            (one.transfer for own in plan.instructions for one in own if isinstance(one, Send)),
            default=-1,
        )
        self.supervisor.snapshot(self._next_step)

    def change(self, what: str, calls: Mapping[Place, tuple[Any, ...]]) -> None:
        """Lets parts of plans make arrays that are kept.

        Args:
            what: is done, for the journal.
            calls: number of the plan, method of `PlanPart` and its arguments.
        """
        with contextlib.suppress(RestartedError):
            self.supervisor.collect(self.supervisor.submit("part", calls, what))

    def ask(self, method: str, calls: Mapping[Place, tuple[Any, ...]]) -> dict[Any, Any]:
        """Asks for something that changes nothing, of processes that have done all steps."""
        while True:
            self.synchronize()
            with contextlib.suppress(RestartedError):
                refs = self.supervisor.fleet.submit(method, calls)
                return self.supervisor.collect_in_time(_what(method, calls), refs)

    def synchronize(self) -> None:
        """Waits until all steps that were asked for are done.

        Raises:
            ClusterError: one of them failed.
        """
        self.supervisor.check_alive()
        while self._pending:
            self._finish_oldest()

    def _finish_oldest(self) -> None:
        try:
            what, refs, note = self._pending.popleft()
        except IndexError:
            # Another thread has ended the processes.
            self.supervisor.check_alive()
            return
        with contextlib.suppress(RestartedError):
            reports = self.supervisor.collect_in_time(what, refs)
            for report in reports.values():
                self._handles.note_scalars(report.scalars)
            note(reports)

    def _forget(self) -> None:
        """Drops steps that will never be done; in any thread."""
        while self._pending:
            with contextlib.suppress(IndexError):
                _, refs, _ = self._pending.popleft()
                self.supervisor.fleet.give_up(refs.values())


def _what(method: str, calls: Mapping[Place, tuple[Any, ...]]) -> str:
    """What is asked for: the first time of anything compiles or imports."""
    for arguments in calls.values():
        if method == "store":
            return str(arguments[0])
    return method
