"""The links between processes, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax

from alpa_runtime.transport import nccl, pulled
from alpa_runtime.transport.between_processes import Link
from alpa_runtime.transport.direct import DirectLink
from alpa_runtime.transport.nccl import Nccl
from alpa_runtime.transport.pulled import PulledLink
from alpa_runtime.transport.tcp import TcpLink

LINKS: dict[str, Callable[[Sequence[jax.Device], str], Link]] = {
    "tcp": lambda devices, bind: TcpLink(bind),
    "jax": PulledLink,
    "nccl": lambda devices, bind: DirectLink(devices, bind, Nccl(devices, bind)),
}
"""By name, what makes a link of the devices of a process and the address to listen at."""


def make_link(name: str, devices: Sequence[jax.Device], bind: str) -> Link:
    """Makes a link.

    Args:
        name: of `LINKS`; ``"auto"`` is TCP between CPU devices, where it is fastest
            (``benchmarks/transport.py``), and between others NCCL where nccl4py is installed, else
            jax's transfer server where this jax has it.
        devices: of this process.
        bind: address of the network interface to listen at, without a port.
    """
    if name == "auto":
        name = _fitting(devices[0].platform)
    return LINKS[name](devices, bind)


def _fitting(platform: str) -> str:
    if platform == "cpu":
        return "tcp"
    if nccl.is_available():
        return "nccl"
    return "jax" if pulled.is_available() else "tcp"
