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

_COLLECTIVES = re.compile(
    r"stablehlo\.(all_reduce|all_gather|all_to_all|reduce_scatter|collective_permute|"
    r"collective_broadcast)\b"
)
# Programs that XLA partitions itself have collectives that are not seen.
_PARTITIONED = re.compile(r"\bsdy\.|mhlo\.sharding")


def can_be_kept(text: str, devices: Sequence[jax.Device]) -> bool:
    """Whether a program runs as it was compiled when it has been written and read back.

    XLA:CPU keeps collectives that do not depend on each other in one order on all devices, and
    forgets to in a program that it has read back (jaxlib 0.10.2): devices then wait for each other
    in different ones.

    Args:
        text: of the program.
        devices: that it is compiled for.
    """
    if len(devices) == 1 or any(device.platform != "cpu" for device in devices):
        return True
    return len(_COLLECTIVES.findall(text)) < 2 and not _PARTITIONED.search(text)


def keeping(is_kept: bool) -> AbstractContextManager[Any]:
    """A context to compile a program in, which jax writes to its cache or does not."""
    if is_kept:
        return contextlib.nullcontext()
    # The only choice that jax has of a single program.
    context: AbstractContextManager[Any] = config.persistent_cache_min_compile_time_secs(math.inf)
    return context
