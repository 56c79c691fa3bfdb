"""Which cases of a test with parameters run.

A case is marked ``matrix`` where another one shows the same at less expense. Of the usual cases
that are left a run takes a part, drawn by their names: each test has one at least, and whoever runs
them, and with how many processes, has the same. Of a test that is marked ``whole`` all are taken.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Collection, Iterable
from enum import StrEnum

ONE_IN = 4
"""One usual case in so many is among `Cases.SOME`."""


class Cases(StrEnum):
    """What a run takes of each test."""

    ONE = "one"
    """The first that the marks leave."""
    SOME = "some"
    """A part of the usual cases."""
    OTHERS = "others"
    """What `SOME` leaves out."""
    ALL = "all"


def chosen(
    nodes: Iterable[str], cases: Cases, seldom: Collection[str], whole: Collection[str]
) -> set[str]:
    """The tests of a run.

    Args:
        nodes: all that were collected, in order.
        cases: which are wanted.
        seldom: those that are marked ``matrix``.
        whole: those that are marked ``whole``.
    """
    nodes = list(nodes)
    match cases:
        case Cases.ALL:
            return set(nodes)
        case Cases.ONE:
            return {same[0] for same in _by_test(nodes)}
    some = {
        node
        for same in _by_test(node for node in nodes if node not in seldom)
        for place, node in enumerate(sorted(same, key=_draw))
        if node in whole or place < math.ceil(len(same) / ONE_IN)
    }
    return some if cases is Cases.SOME else set(nodes) - some


def _by_test(nodes: Iterable[str]) -> list[list[str]]:
    """The cases of each test, in order."""
    found = defaultdict[str, list[str]](list)
    for node in nodes:
        found[node.partition("[")[0]].append(node)
    return list(found.values())


def _draw(node: str) -> bytes:
    return hashlib.sha256(node.encode()).digest()
