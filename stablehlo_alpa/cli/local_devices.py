"""Devices of this process, and virtual ones of the CPU."""

from __future__ import annotations

import os
from typing import Annotated, Any

import jax
import typer
from alpa_runtime import ensure_cpu_pool, in_torus_order

from stablehlo_alpa.errors import MeshError

VirtualOption = Annotated[
    int | None,
    typer.Option(help="so many virtual devices of the CPU in place of those there are"),
]

_COUNT_FLAG = "--xla_force_host_platform_device_count"


def local_devices(virtual: int | None) -> list[Any]:
    """The devices of this process; makes virtual ones where they are asked for.

    Args:
        virtual: how many virtual devices of the CPU there shall be; None takes what there is.

    Raises:
        MeshError: jax was asked for its devices before, and has others.
    """
    if virtual is not None:
        _set_virtual(virtual)
    found = list(in_torus_order(jax.devices()))
    if virtual is None:
        return found
    if found[0].platform != "cpu" or len(found) < virtual:
        raise MeshError(
            f"--virtual-devices is {virtual}, this process has made {len(found)} devices "
            f"({found[0].platform}) already"
        )
    return found[:virtual]


def first_devices(devices: list[Any], count: int) -> list[Any]:
    """As many devices as are needed.

    Args:
        devices: that there are.
        count: that are needed.

    Raises:
        MeshError: there are fewer.
    """
    if len(devices) < count:
        raise MeshError(
            f"{count} devices are needed, {len(devices)} are there ({devices[0].platform}): pass "
            f"--virtual-devices {count}, or plan for as many"
        )
    return devices[:count]


def _set_virtual(count: int) -> None:
    """Has the client of the CPU, if it is not there yet, make so many devices."""
    if count < 1:
        raise MeshError(f"--virtual-devices is {count}, must be at least 1")
    try:
        jax.config.update("jax_num_cpu_devices", count)
    except RuntimeError:
        # The devices are there; whether they are enough, the caller sees.
        return
    # jax refuses to be told twice.
    flags = [one for one in os.environ.get("XLA_FLAGS", "").split() if _COUNT_FLAG not in one]
    os.environ["XLA_FLAGS"] = " ".join(flags)
    ensure_cpu_pool(count, client_exists=False)
    jax.config.update("jax_platforms", "cpu")
