"""Which compiled programs jax may keep in its persistent cache."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import jax
from jax._src import config

from alpa_runtime.platforms import share_a_cpu
from alpa_runtime.program import SpmdProgram

_COLLECTIVES = re.compile(
    r"stablehlo\.(all_reduce|all_gather|all_to_all|reduce_scatter|collective_permute|"
    r"collective_broadcast)\b"
)


def can_be_kept(program: SpmdProgram, devices: Sequence[jax.Device]) -> bool:
    """Whether a program runs as it was compiled when it has been written and read back.

    XLA:CPU keeps collectives that do not depend on each other in one order on all devices, and
    forgets to in a program that it has read back (jaxlib 0.10.2): devices then wait for each other
    in different ones.

    Args:
        program: the program.
        devices: that it is compiled for.
    """
    # Those that XLA's partitioner writes are not seen.
    has_one = not program.is_global and len(_COLLECTIVES.findall(program.text)) < 2
    return has_one or not share_a_cpu(devices)


def keeping(is_kept: bool) -> AbstractContextManager[Any]:
    """A context to compile a program in, which jax writes to its cache or does not."""
    if is_kept:
        return contextlib.nullcontext()
    # The only choice that jax has of a single program.
    context: AbstractContextManager[Any] = config.persistent_cache_min_compile_time_secs(math.inf)
    return context
