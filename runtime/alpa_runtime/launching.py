"""The order in which threads launch programs on the devices that they share.

A device runs what is launched on it in the order of the launches. Two threads that launch
programs with collectives at once may do so in one order on one device and in another order on the
next; each program then waits for the other for ever. So a launch on several devices is made by one
thread at a time, whichever executables it and others belong to.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax

Result = TypeVar("Result")


class LaunchOrder:
    """Locks for sets of devices: of two sets that overlap, both take one lock in common.

    Mostly there is one set, and one lock. Sets that overlap a third one may wait for each other
    without need, for as long as the other launches.
    """

    def __init__(self) -> None:
        """No set of devices is known yet."""
        self._lock = threading.Lock()
        # Per set, its own lock and those of the overlapping sets that were there before it. A set
        # that comes later takes the lock of this one, which therefore need not know of it.
        self._known: dict[frozenset[int], tuple[Any, ...]] = {}

    def guard(
        self, devices: Sequence[jax.Device], call: Callable[..., Result]
    ) -> Callable[..., Result]:
        """A function that does the same while no other thread launches on any of the devices.

        A thread that is in such a call already may make another (from a signal's handler, say).
        """
        for lock in reversed(self._locks(frozenset(device.id for device in devices))):
            call = _holding(lock, call)
        return call

    def _locks(self, wanted: frozenset[int]) -> tuple[Any, ...]:
        with self._lock:
            if wanted not in self._known:
                # In the order in which sets became known: no two threads wait for each other.
                earlier = [own[-1] for known, own in self._known.items() if known & wanted]
                self._known[wanted] = (*earlier, threading.RLock())
            return self._known[wanted]


@functools.cache
def order_of(client: Any) -> LaunchOrder:
    """The order of the devices of a client.

    Args:
        client: of jax (``jax.Device.client``). It hands out one and the same devices to all of the
            process, so their order is one for all as well, and lives as long as they do.
    """
    return LaunchOrder()


def _holding(lock: Any, call: Callable[..., Result]) -> Callable[..., Result]:
    def held(*args: Any) -> Result:
        # One statement per lock, not a loop: CPython lets no interrupt in between a lock that is
        # taken and the `with` that gives it back.
        with lock:
            return call(*args)

    return held
