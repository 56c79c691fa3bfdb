"""What a person may have meant by a name that there is not."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, names: Iterable[str]) -> str:
    """The nearest name as the middle of a message; empty where nothing is near.

    Args:
        name: what was asked for.
        names: what there is.
    """
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=0.4)
    return f", did you mean {close[0]!r}?" if close else ""
