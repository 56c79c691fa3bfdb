"""Functions that say what they were made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stablehlo_alpa.store.content import digest

RECIPE = "__alpa_recipe__"
"""Attribute of a function: plain data that it was made of and nothing else, this package's and
other packages' code but."""


def with_recipe(function: Callable[..., Any], *content: Any) -> None:
    """Notes what a function was made of, where that is plain data."""
    try:
        found = digest(*content)
    except TypeError:
        return
    setattr(function, RECIPE, found)


def recipe_of(function: Any) -> str | None:
    """What `with_recipe` has noted; None where it has not."""
    found = getattr(function, RECIPE, None)
    return found if isinstance(found, str) else None
