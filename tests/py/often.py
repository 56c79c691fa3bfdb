"""Cases that run with every run of the tests, and those that run with `make test-matrix`."""

from collections.abc import Iterable
from typing import Any

import pytest


def seldom(*values: Any) -> Any:
    """A case of `make test-matrix` alone."""
    return pytest.param(*values, marks=pytest.mark.matrix)


def one_in(count: int, cases: Iterable[Any], first: int = 0) -> list[Any]:
    """Cases of which one in so many, from the ``first`` on, runs with every run of the tests."""
    return [
        pytest.param(*values) if number % count == first else seldom(*values)
        for number, case in enumerate(cases)
        for values in [case if isinstance(case, tuple) else (case,)]
    ]


def each_with_one_of(cases: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    """Pairs; each case runs with one of the others, in turn, with every run of the tests."""
    others = list(others)
    return [
        (case, other) if place == number % len(others) else seldom(case, other)
        for number, case in enumerate(cases)
        for place, other in enumerate(others)
    ]
