"""The versions of jax that programs are traced with."""

from __future__ import annotations

import re

import jax

OLDEST, BELOW = (0, 10, 2), (0, 11)
"""From the first on, below the second; as in ``pyproject.toml``."""


def check_jax(version: str) -> None:
    """Refuses a jax that the text exchange was never tried with.

    Raises:
        ImportError: naming the version and the range.
    """
    found = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if not OLDEST <= found < BELOW:
        wanted = f">={'.'.join(map(str, OLDEST))},<{'.'.join(map(str, BELOW))}"
        raise ImportError(
            f"stablehlo_alpa plans programs of jax{wanted}, jax {version} is installed: its "
            "StableHLO may not be what the passes read (alpa_runtime runs saved plans with others)"
        )


check_jax(jax.__version__)
