"""What was made for a key, while it is among the last that were used."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

_Made = TypeVar("_Made")


class Recent(Generic[_Made]):
    """A table for many threads that forgets what was not used for longest."""

    def __init__(self, size: int) -> None:
        """Takes how many entries are kept."""
        self._size = size
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Made] = OrderedDict()

    def get(self, key: str, make: Callable[[], _Made]) -> _Made:
        """What the key has; made without holding up others when it has nothing."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        made = make()
        with self._lock:
            self._entries[key] = made
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)
        return made

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._entries.clear()
