"""What is being done and for how long, when somebody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

Say: TypeAlias = Callable[[str], None]
"""Takes a line that says what is being done."""


@contextmanager
def progress(log: Say) -> Iterator[Say]:
    """A spinner on a terminal; elsewhere what is being done goes to ``log``."""
    if not sys.stderr.isatty():
        yield log
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("planning", total=None)
        yield lambda text: shown.update(task, description=text)
