"""Work that spends its time in the compiler, on all processors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")


def num_threads() -> int:
    """How many pieces of work are done at the same time."""
    return os.cpu_count() or 1


def in_threads(work: Callable[[_T], _R], items: Iterable[_T]) -> list[_R]:
    """What ``work`` makes of each item, in order; the compiler runs without Python's lock.

    Raises:
        Exception: what the first of them raised.
    """
    todo = list(items)
    workers = min(num_threads(), len(todo))
    if workers <= 1:
        return [work(item) for item in todo]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, todo))
