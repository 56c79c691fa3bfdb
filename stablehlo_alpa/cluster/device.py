"""What one device can do, and the links between devices; every number has its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from stablehlo_alpa.errors import CostError, MeshError

GIB = 2**30


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
    """

    name: str
    flops: Mapping[str, float] = field(hash=False)
    memory_bytes: float
    memory_bandwidth: float
    intra_host: Link
    inter_host: Link

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


# NVIDIA V100 datasheet (SXM2): 7.8 / 15.7 / 125 TFLOP/s (f64 / f32 / f16 tensor cores), 900 GB/s,
# NVLink 300 GB/s both directions together. bf16 has no unit on Volta: f32 rate.
# EC2 p3.16xlarge (AWS instance page, and section 8 of the Alpa paper): 8 devices, 25 Gbit/s.
# Latencies: heuristic, of the order of NCCL's small-message times within and between hosts.
_V100 = DeviceSpec(
    name="v100-16gb",
    flops={"f64": 7.8e12, "f32": 15.7e12, "f16": 125e12, "bf16": 15.7e12, "vector": 15.7e12},
    memory_bytes=16 * GIB,
    memory_bandwidth=900e9,
    intra_host=Link(10e-6, 150e9),
    inter_host=Link(30e-6, 25e9 / 8),
)

# NVIDIA A100 datasheet (SXM4): f64 9.7, f32 19.5, TF32 156, bf16/f16 312, int8 624 TFLOP/s dense;
# 40 GB: 1555 GB/s, 80 GB: 2039 GB/s; NVLink 600 GB/s both directions together. XLA runs f32
# products in TF32 at JAX's default precision on Ampere and later: the f32 rate is TF32's.
# Network: EC2 p4d.24xlarge, 400 Gbit/s. Latencies: heuristic, as above.
_A100_FLOPS = {
    "f64": 9.7e12,
    "f32": 156e12,
    "f16": 312e12,
    "bf16": 312e12,
    "i8": 624e12,
    "vector": 19.5e12,
}
_A100_40 = DeviceSpec(
    name="a100-40gb",
    flops=_A100_FLOPS,
    memory_bytes=40 * GIB,
    memory_bandwidth=1555e9,
    intra_host=Link(10e-6, 300e9),
    inter_host=Link(30e-6, 400e9 / 8),
)
_A100_80 = DeviceSpec(
    name="a100-80gb",
    flops=_A100_FLOPS,
    memory_bytes=80 * GIB,
    memory_bandwidth=2039e9,
    intra_host=Link(10e-6, 300e9),
    inter_host=Link(30e-6, 400e9 / 8),
)

# NVIDIA H100 datasheet (SXM5; its figures "with sparsity" halved): f64 34, f32 67, TF32 494.5,
# bf16/f16 989.5, f8/int8 1979 TFLOP/s dense; 80 GB at 3.35 TB/s; NVLink 900 GB/s both directions
# together. H200 datasheet: the same units, 141 GB at 4.8 TB/s.
# Network: EC2 p5.48xlarge, 3200 Gbit/s. Latencies: heuristic, as above.
_H100_FLOPS = {
    "f64": 34e12,
    "f32": 494.5e12,
    "f16": 989.5e12,
    "bf16": 989.5e12,
    "f8": 1979e12,
    "i8": 1979e12,
    "vector": 67e12,
}
_H100 = DeviceSpec(
    name="h100-80gb",
    flops=_H100_FLOPS,
    memory_bytes=80 * GIB,
    memory_bandwidth=3.35e12,
    intra_host=Link(10e-6, 450e9),
    inter_host=Link(30e-6, 3200e9 / 8),
)
_H200 = DeviceSpec(
    name="h200-141gb",
    flops=_H100_FLOPS,
    memory_bytes=141e9,
    memory_bandwidth=4.8e12,
    intra_host=Link(10e-6, 450e9),
    inter_host=Link(30e-6, 3200e9 / 8),
)

# Heuristic throughout: not a processor but an accelerator in small. The ratio of FLOP/s to link
# bandwidth is that of the V100 in f32 (about 100 FLOP per byte), so that the plans tried on virtual
# CPU devices are the plans an accelerator would get; the latency is small because the models are.
_CPU = DeviceSpec(
    name="cpu",
    flops={"f64": 50e9, "f32": 100e9, "f16": 100e9, "bf16": 100e9, "vector": 100e9},
    memory_bytes=16 * GIB,
    memory_bandwidth=20e9,
    intra_host=Link(1e-6, 1e9),
    inter_host=Link(10e-6, 1e9),
)

PRESETS: Mapping[str, DeviceSpec] = MappingProxyType(
    {d.name: d for d in (_V100, _A100_40, _A100_80, _H100, _H200, _CPU)}
)


def preset_for(kind: str) -> DeviceSpec:
    """Preset of a device kind as JAX spells it (``jax.Device.device_kind``), or of its name.

    Args:
        kind: for example ``"NVIDIA H200"``, ``"Tesla V100-SXM2-16GB"``, ``"cpu"``.

    Raises:
        MeshError: no preset fits; hand in a `DeviceSpec` instead.
    """
    key = kind.lower()
    if key in PRESETS:
        return PRESETS[key]
    if "h200" in key:
        return _H200
    if "h100" in key:
        return _H100
    if "a100" in key:
        return _A100_80 if "80g" in key else _A100_40
    if "v100" in key:
        return _V100
    if "cpu" in key:
        return _CPU
    raise MeshError(f"no device preset for kind {kind!r}, presets are {sorted(PRESETS)}")
