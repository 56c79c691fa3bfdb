"""A cluster of the devices at hand, priced by what they were measured to do."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np
from alpa_runtime.allocator import memory_limit
from alpa_runtime.platforms import platform_of

from stablehlo_alpa.calibration.compute import fit_products, stream_bandwidth, time_products
from stablehlo_alpa.calibration.links import (
    KINDS,
    PAYLOADS,
    fit_curve,
    group_sizes,
    time_collective,
)
from stablehlo_alpa.calibration.timing import BusyError, Timing
from stablehlo_alpa.cluster import ClusterSpec, DeviceSpec, Fit, Link
from stablehlo_alpa.cost.curves import Curve
from stablehlo_alpa.cost.kinds import CollectiveKind
from stablehlo_alpa.errors import MeshError
from stablehlo_alpa.units import format_bytes
from stablehlo_alpa.view import Say

_log = logging.getLogger(__name__)

_DTYPES = {"f32": jnp.float32, "bf16": jnp.bfloat16, "f16": jnp.float16}
# What other programs do to a fifth of the runs does not matter: medians are taken.
_SPREAD_QUANTILE = 0.8


@dataclass
class _Measured:
    """Timings so far, by what was timed."""

    say: Say
    timings: dict[str, Timing] = field(default_factory=dict)

    def add(self, name: str, timing: Timing) -> float:
        """Seconds of a timing that is noted down."""
        self.say(f"{name}: {timing.seconds * 1e6:.1f} us")
        self.timings[name] = timing
        return timing.seconds

    def check(self, max_spread: float) -> None:
        """Refuses measurements that scatter."""
        spreads = np.array([timing.spread for timing in self.timings.values()])
        usual = float(np.quantile(spreads, _SPREAD_QUANTILE))
        if usual > max_spread:
            worst = max(self.timings, key=lambda name: self.timings[name].spread)
            raise BusyError(
                f"equal runs differ by {usual:.0%} in a fifth of {len(spreads)} measurements "
                f"({worst}: {self.timings[worst].spread:.0%}), at most {max_spread:.0%} is allowed:"
                " end other programs, or pass a larger max_spread"
            )


def calibrate(
    devices: Sequence[jax.Device] | None = None,
    *,
    max_spread: float = 0.25,
    say: Say = _log.debug,
) -> ClusterSpec:
    """Measures products, memory bandwidth and every collective; a matter of minutes.

    Args:
        devices: of one host and one kind; all by default.
        max_spread: interquartile range over the median that four fifths of the measurements have to
            keep.
        say: is told what was measured.

    Returns:
        The cluster, to be written with `ClusterSpec.write` and handed to ``cluster=``.

    Raises:
        BusyError: the measurements scatter.
        MeshError: the devices are those of several hosts, or of several kinds.
    """
    devices = list(devices or jax.devices())
    if len({one.process_index for one in devices}) > 1:
        raise MeshError(
            f"{len(devices)} devices are of several hosts: calibrate one host, and write its "
            "network into the file"
        )
    if len(kinds := {one.device_kind for one in devices}) > 1:
        raise MeshError(f"devices are of several kinds: {', '.join(sorted(kinds))}")
    measured = _Measured(say)
    spec = _device(devices[0], measured)
    fits = [*spec.fits, *_collectives(devices, measured)]
    measured.check(max_spread)
    link = _link(fits) or spec.intra_host
    device = replace(spec, fits=tuple(fits), intra_host=link)
    return ClusterSpec(device, 1, len(devices))


def _device(device: jax.Device, measured: _Measured) -> DeviceSpec:
    """Rates and bandwidth of one device."""
    memory_bytes = _memory_bytes(device)
    bandwidth = stream_bandwidth(
        device,
        memory_bytes / 16,
        lambda size, timing: measured.add(f"stream of {format_bytes(size)}", timing),
    )
    rates: dict[str, float] = {}
    fits = []
    for name, dtype in _DTYPES.items():
        seconds = time_products(dtype, device, functools.partial(_note_product, measured, name))
        launch, rates[name] = fit_products(seconds)
        entries = {"dtype": name, "launch_s": f"{launch:.4g}"}
        entries |= {"efficiency": "1", "memory_efficiency": "1"}
        fits.append(Fit("products", tuple(entries.items())))
    return DeviceSpec(
        name=device.device_kind,
        # What no matrix unit takes reads more than it computes.
        flops=rates | {"vector": rates["f32"]},
        memory_bytes=memory_bytes,
        memory_bandwidth=bandwidth,
        # Of one device nothing is sent; a network is not seen from one host.
        intra_host=Link(0.0, bandwidth),
        inter_host=Link(0.0, bandwidth),
        fits=tuple(fits),
        platform=platform_of(device),
    )


def _note_product(
    measured: _Measured, name: str, shape: tuple[int, int, int], timing: Timing
) -> float:
    return measured.add(f"product {shape} {name}", timing)


def _memory_bytes(device: jax.Device) -> float:
    limit = memory_limit(device)
    if limit is not None:
        return float(limit)
    # Devices of the host share its memory.
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return whole / len(jax.local_devices())


def _collectives(devices: Sequence[jax.Device], measured: _Measured) -> list[Fit]:
    """Curves of every kind, group size and place."""
    found = []
    for kind, size, is_strided in _groups(len(devices)):
        place = "strided" if is_strided else "neighbours"
        seconds = [
            measured.add(
                f"{kind.name.lower()} of {payload} B, groups of {size}, {place}",
                time_collective(kind, payload, size, is_strided, devices),
            )
            for payload in PAYLOADS
        ]
        found.append(_row(kind, size, place, fit_curve(np.array(seconds))))
    return found


def _groups(count: int) -> Iterable[tuple[CollectiveKind, int, bool]]:
    """Groups of neighbours, and of devices that lie apart, where these are others."""
    for size in group_sizes(count):
        for is_strided in (False, True) if size < count else (False,):
            for kind in KINDS:
                yield kind, size, is_strided


def _row(kind: CollectiveKind, size: int, place: str, curve: Curve) -> Fit:
    entries = {
        "kind": kind.name.lower(),
        "group_size": str(size),
        "place": place,
        "latency_s": f"{curve.latency_s:.4g}",
        "per_byte_s": f"{curve.per_byte_s:.4g}",
        "per_root_s": f"{curve.per_root_s:.4g}",
    }
    return Fit("collectives", tuple(entries.items()))


def _link(fits: Sequence[Fit]) -> Link | None:
    """The link as a permute between two devices shows it."""
    for fit in fits:
        row = dict(fit.entries)
        if fit.table == "collectives" and row["kind"] == "collective_permute":
            per_byte = float(row["per_byte_s"])
            return Link(float(row["latency_s"]), 1 / per_byte if per_byte > 0 else float("inf"))
    return None
