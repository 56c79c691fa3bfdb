"""What one device can do, and the links that devices usually have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from stablehlo_alpa.errors import CostError, MeshError


@dataclass(frozen=True)
class Link:
    """An alpha-beta link.

    Attributes:
        alpha_s: seconds before the first byte of a collective.
        bandwidth: bytes per second, one direction.
    """

    alpha_s: float
    bandwidth: float

    def __post_init__(self) -> None:
        if not (self.alpha_s >= 0 and self.bandwidth > 0):
            raise MeshError(
                f"link must have alpha >= 0 and bandwidth > 0, got {self.alpha_s} s and "
                f"{self.bandwidth} bytes/s"
            )


@dataclass(frozen=True)
class Fit:
    """A row of constants that were fitted on measurements of a device.

    Attributes:
        table: ``"collectives"``, ``"network"`` or ``"products"``: what `stablehlo_alpa.cost` looks
            for there.
        entries: names and values.
    """

    table: str
    entries: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class DeviceSpec:
    """A device and the links it usually comes with.

    Attributes:
        name: preset name.
        flops: peak FLOP/s by element type as StableHLO spells it; ``"vector"`` is the rate of
            types that no matrix unit takes (integers, booleans).
        memory_bytes: device memory. Bytes.
        memory_bandwidth: bytes per second.
        intra_host: link of a device to the others of its host.
        inter_host: link of a whole host to the network, shared by its devices.
        measured_as: the device whose measurements its collectives and products are priced by; empty
            for none: links and peak rates are taken at their word then.
        units: multiprocessors, over which tiles of a product are spread; 0 where that is not known
            or not how it works.
        fits: measurements of its own, which come before those of ``measured_as``; see
            `stablehlo_alpa.calibration`.
        platform: what jax lowers functions for that are planned for it, ``"cuda"``, ``"rocm"``,
            ``"tpu"`` or ``"cpu"``; empty for the platform of the process that plans.
        host_bandwidth: bytes per second, one way, between the memory of the device and that of its
            host; 0 where that is not known: what is moved costs no more than in the device then.
    """

    name: str
    flops: Mapping[str, float] = field(hash=False)
    memory_bytes: float
    memory_bandwidth: float
    intra_host: Link
    inter_host: Link
    measured_as: str = ""
    units: int = 0
    fits: tuple[Fit, ...] = ()
    platform: str = ""
    host_bandwidth: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "flops", MappingProxyType(dict(self.flops)))
        bad = {k: v for k, v in self.flops.items() if not v > 0}
        if bad or "f32" not in self.flops or "vector" not in self.flops:
            raise MeshError(
                f"device {self.name!r} needs positive rates for at least 'f32' and 'vector', "
                f"got {dict(self.flops)}"
            )
        if not (self.memory_bytes > 0 and self.memory_bandwidth > 0):
            raise MeshError(
                f"device {self.name!r} must have positive memory and bandwidth, got "
                f"{self.memory_bytes} bytes and {self.memory_bandwidth} bytes/s"
            )

        if not self.host_bandwidth >= 0:
            raise MeshError(
                f"host_bandwidth of device {self.name!r} must not be negative, got "
                f"{self.host_bandwidth} bytes/s"
            )
        if self.platform and not self.platform.isidentifier():
            raise MeshError(
                f"platform of device {self.name!r} must be the name of one of jax's, as 'cuda', "
                f"'rocm', 'tpu' or 'cpu', or empty, got {self.platform!r}"
            )

    def __reduce__(self) -> tuple[object, ...]:
        # A mapping proxy does not pickle.
        return (
            DeviceSpec,
            (
                self.name,
                dict(self.flops),
                self.memory_bytes,
                self.memory_bandwidth,
                self.intra_host,
                self.inter_host,
                self.measured_as,
                self.units,
                self.fits,
                self.platform,
                self.host_bandwidth,
            ),
        )

    def rate(self, dtype: str) -> float:
        """FLOP/s for element type ``dtype`` ('f32', 'bf16', 'i32', 'complex<f32>', ...).

        Raises:
            CostError: the type is none that StableHLO has.
        """
        if dtype in self.flops:
            return self.flops[dtype]
        if dtype.startswith("f8") or dtype.startswith("f4") or dtype.startswith("f6"):
            # Without a narrower matrix unit the operands are widened to bf16.
            return self.flops.get("f8", self.flops.get("bf16", self.flops["f32"]))
        if dtype.startswith("complex<"):
            return self.rate(dtype[len("complex<") : -1])
        if dtype in ("bf16", "f16", "f32"):
            return self.flops["f32"]
        if dtype == "f64":
            return self.flops["f32"] / 2
        if dtype.lstrip("su").startswith("i") and dtype.lstrip("sui").isdigit():
            return self.flops["vector"]
        if dtype in ("index", "none", ""):
            return self.flops["vector"]
        raise CostError(
            f"device {self.name!r} has no FLOP rate for element type {dtype!r}, it knows "
            f"{sorted(self.flops)}"
        )
