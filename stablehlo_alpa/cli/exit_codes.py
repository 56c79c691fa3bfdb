"""How a command ends."""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """What the shell is told."""

    OK = 0
    NO_PLAN = 1  # the step cannot be planned so, or does not fit the devices
    USAGE = 2  # what was asked for makes no sense: unknown names, sizes that do not divide
    FAILED = 3  # a plan was run, and what it computes is not finite
    INTERRUPTED = 130  # Ctrl-C; what is printed is the best plan that there was
