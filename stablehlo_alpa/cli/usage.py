"""What cannot be meant."""

from __future__ import annotations

from stablehlo_alpa.errors import StablehloAlpaError


class UsageError(StablehloAlpaError, ValueError):
    """What the command line asks for does not exist, or does not go together."""
