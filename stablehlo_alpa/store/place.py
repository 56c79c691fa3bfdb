"""Where the store of a user lies; for the front doors, which alone look at the environment."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TypeAlias

from stablehlo_alpa.store.store import OFF, Store

StoreOption: TypeAlias = Store | str | os.PathLike[str] | bool
"""A store, the folder of one, True for the user's own, False for none."""

VARIABLE = "STABLEHLO_ALPA_STORE"
"""Names the user's own store, or says ``off``."""


def default_folder() -> Path | None:
    """What ``STABLEHLO_ALPA_STORE`` names, or ``stablehlo_alpa`` in the user's cache directory.

    None where the variable says ``off``, and of a user without a home.
    """
    named = os.environ.get(VARIABLE)
    if named:
        return None if named.lower() == "off" else Path(named)
    with contextlib.suppress(RuntimeError):
        return _cache_directory() / "stablehlo_alpa"
    return None


def _cache_directory() -> Path:
    """Of the user, as the platform has it."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"])
    return Path.home() / ".cache"


def as_store(option: StoreOption) -> Store:
    """The store that an option means.

    Raises:
        TypeError: it means none.
    """
    if isinstance(option, Store):
        return option
    if option is False:
        return OFF
    if option is True:
        folder = default_folder()
        return OFF if folder is None else Store(folder)
    if isinstance(option, str | os.PathLike):
        return Store(Path(option))
    raise TypeError(
        f"store must be a folder, a Store, True for the user's own or False for none, got "
        f"{option!r}"
    )
