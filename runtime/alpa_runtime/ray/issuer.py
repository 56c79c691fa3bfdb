"""One thread that speaks to the processes of a cluster, for all threads of the driver.

An interrupt reaches the main thread alone. What it asks for is begun and ended by the issuer's
thread, so that no process is ever asked for a step of which its peers have not heard, and calls of
several threads come one after the other.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")


class Issuer:
    """Runs functions one after the other."""

    def __init__(self, name: str) -> None:
        """Starts the thread, which ends once nobody has the issuer any more."""
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=_work, args=(self._queue,), name=name, daemon=True)
        self._thread.start()
        weakref.finalize(self, self._queue.put, None)

    def run(self, function: Callable[..., Result], *args: Any) -> Result:
        """Runs a function and waits for it.

        Who is interrupted while waiting gets the interrupt; the function runs on, unless it has not
        begun. Functions may call this as well, which runs what they ask for at once.
        """
        if threading.current_thread() is self._thread:
            return function(*args)
        future: Future[Result] = Future()
        self._queue.put((future, function, args))
        try:
            return future.result()
        finally:
            # Does nothing to one that has begun.
            future.cancel()


def _work(waiting: queue.SimpleQueue[Any]) -> None:
    while (asked := waiting.get()) is not None:
        future, function, args = asked
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(function(*args))
            except BaseException as error:
                future.set_exception(error)
        # Results are freed by those who have asked, not when something else is asked for.
        del asked, future, function, args
