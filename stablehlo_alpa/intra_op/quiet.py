"""Warnings that are not passed on, from several threads."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


class Quiet:
    """Keeps back the warnings of a text while any thread is inside.

    ``warnings.catch_warnings`` is the whole process's: the first thread to leave would give the
    others' warnings back.
    """

    def __init__(self, message: str) -> None:
        """``message``: how the warnings begin, a regular expression."""
        self._message, self._lock = message, threading.Lock()
        self._inside, self._caught = 0, ExitStack()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Enters, and leaves."""
        with self._lock:
            if self._inside == 0:
                self._caught.enter_context(warnings.catch_warnings())
                warnings.filterwarnings("ignore", message=self._message)
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._caught.close()
