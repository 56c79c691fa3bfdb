"""Interrupts of the main thread, at one line of the runtime or another."""

from __future__ import annotations

import os
import sys
import types
from typing import Any

import alpa_runtime


class Interrupt:
    """Raises at one line of the runtime, in the order in which this thread comes by them."""

    # Where CPython lets no interrupt in, a line can still be traced.
    _SPARED = ("launching.py", "tracing.py")

    def __init__(self, line: int) -> None:
        self.left = line

    def __enter__(self) -> Interrupt:
        sys.settrace(self._enter_function)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)

    def _enter_function(self, frame: types.FrameType, event: str, argument: Any) -> Any:
        folder, name = os.path.split(frame.f_code.co_filename)
        is_ours = folder.startswith(os.path.dirname(alpa_runtime.__file__))
        return self._line if is_ours and name not in self._SPARED else None

    def _line(self, frame: types.FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.left -= 1
            if self.left == -1:
                raise KeyboardInterrupt
        return self._line
