"""Devices by name; every number has its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from stablehlo_alpa.cluster.device import DeviceSpec, Link
from stablehlo_alpa.errors import MeshError
from stablehlo_alpa.nearest import nearest

GIB = 2**30

# Multiprocessors: NVIDIA's architecture papers of Volta (80), Ampere (108), Hopper (SXM5: 132) and
# Blackwell (148; those of a GB200 and a GB300 are taken to be as many).

# NVIDIA V100 datasheet (SXM2): 7.8 / 15.7 / 125 TFLOP/s (f64 / f32 / f16 tensor cores), 900 GB/s,
# NVLink 300 GB/s both directions together. bf16 has no unit on Volta: f32 rate.
# EC2 p3.16xlarge (AWS instance page, and section 8 of the Alpa paper): 8 devices, 25 Gbit/s.
# Latencies: heuristic, of the order of NCCL's small-message times within and between hosts; where
# collectives were measured (`measured_as`) those of the fits are taken instead.
_V100 = DeviceSpec(
    name="v100-16gb",
    flops={"f64": 7.8e12, "f32": 15.7e12, "f16": 125e12, "bf16": 15.7e12, "vector": 15.7e12},
    memory_bytes=16 * GIB,
    memory_bandwidth=900e9,
    intra_host=Link(10e-6, 150e9),
    inter_host=Link(30e-6, 25e9 / 8),
    measured_as="V100",
    units=80,
    platform="cuda",
)

# EC2 p3dn.24xlarge (AWS instance page): the same with more memory, 100 Gbit/s.
_V100_32 = replace(
    _V100, name="v100-32gb", memory_bytes=32 * GIB, inter_host=Link(30e-6, 100e9 / 8)
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
    measured_as="A100",
    units=108,
    platform="cuda",
)
_A100_80 = DeviceSpec(
    name="a100-80gb",
    flops=_A100_FLOPS,
    memory_bytes=80 * GIB,
    memory_bandwidth=2039e9,
    intra_host=Link(10e-6, 300e9),
    inter_host=Link(30e-6, 400e9 / 8),
    measured_as="A100",
    units=108,
    platform="cuda",
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
    measured_as="H100",
    units=132,
    platform="cuda",
)
_H200 = DeviceSpec(
    name="h200-141gb",
    flops=_H100_FLOPS,
    memory_bytes=141e9,
    memory_bandwidth=4.8e12,
    intra_host=Link(10e-6, 450e9),
    inter_host=Link(30e-6, 3200e9 / 8),
    measured_as="H100",
    units=132,
    platform="cuda",
)

# NVIDIA HGX B200 datasheet, per device: f64 37, f32 75, TF32 1100, bf16/f16 2250, f8/int8 4500
# TFLOP/s dense; 180 GB at 7.7 TB/s; NVLink 1800 GB/s both directions together. Network: DGX B200,
# 8 x 400 Gbit/s. GB200 NVL72 datasheet, a 72nd of the rack: f64 40, f32 80, TF32 1250, bf16/f16
# 2500, f8/int8 5000; 186 GB at 8 TB/s; four 400 Gbit/s cards a tray of four devices. GB300 NVL72
# likewise: 288 GB; f64 1.3, int8 165.
_B200 = DeviceSpec(
    name="b200-180gb",
    flops={
        "f64": 37e12,
        "f32": 1100e12,
        "f16": 2250e12,
        "bf16": 2250e12,
        "f8": 4500e12,
        "i8": 4500e12,
        "vector": 75e12,
    },
    memory_bytes=180e9,
    memory_bandwidth=7.7e12,
    intra_host=Link(10e-6, 900e9),
    inter_host=Link(30e-6, 3200e9 / 8),
    measured_as="B200",
    units=148,
    platform="cuda",
)
_GB200 = DeviceSpec(
    name="gb200-186gb",
    flops={
        "f64": 40e12,
        "f32": 1250e12,
        "f16": 2500e12,
        "bf16": 2500e12,
        "f8": 5000e12,
        "i8": 5000e12,
        "vector": 80e12,
    },
    memory_bytes=186e9,
    memory_bandwidth=8e12,
    intra_host=Link(10e-6, 900e9),
    inter_host=Link(30e-6, 1600e9 / 8),
    measured_as="GB200",
    units=148,
    platform="cuda",
)
_GB300 = replace(
    _GB200,
    name="gb300-288gb",
    flops={**_GB200.flops, "f64": 1.3e12, "i8": 165e12},
    memory_bytes=288e9,
    measured_as="GB300",
)


def _tpu(name: str, bf16: float, memory: float, bandwidth: float, link: float) -> DeviceSpec:
    """A TPU; products of f32 run as bf16 at JAX's default precision (one pass).

    Source: jax-ml/scaling-book, "How to Think About TPUs": FLOP/s, memory and the one-way bandwidth
    of an inter-chip link; 1 us a hop; the data-centre network carries about 25 GB/s a host. The
    vector unit's rate is a heuristic: one part in forty of the matrix unit's.
    """
    return DeviceSpec(
        name=name,
        flops={"f32": bf16, "bf16": bf16, "i8": 2 * bf16, "vector": bf16 / 40},
        memory_bytes=memory,
        memory_bandwidth=bandwidth,
        intra_host=Link(1e-6, link),
        inter_host=Link(30e-6, 25e9),
        platform="tpu",
    )


_TPU_V4 = _tpu("tpu-v4", 275e12, 32e9, 1.2e12, 45e9)
_TPU_V5P = _tpu("tpu-v5p", 459e12, 96e9, 2.8e12, 90e9)
_TPU_V5E = _tpu("tpu-v5e", 197e12, 16e9, 0.81e12, 45e9)
_TPU_V6E = _tpu("tpu-v6e", 920e12, 32e9, 1.6e12, 90e9)

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
    platform="cpu",
)

PRESETS: Mapping[str, DeviceSpec] = MappingProxyType(
    {
        device.name: device
        for device in (
            _V100,
            _V100_32,
            _A100_40,
            _A100_80,
            _H100,
            _H200,
            _B200,
            _GB200,
            _GB300,
            _TPU_V4,
            _TPU_V5P,
            _TPU_V5E,
            _TPU_V6E,
            _CPU,
        )
    }
)

# What is in the name of a device kind as JAX spells it, most special first.
_KINDS = (
    ("gb300", _GB300),
    ("gb200", _GB200),
    ("b200", _B200),
    ("h200", _H200),
    ("h100", _H100),
    ("a100-sxm4-80g", _A100_80),
    ("a100-80g", _A100_80),
    ("a100 80g", _A100_80),
    ("a100", _A100_40),
    ("v100-sxm2-32gb", _V100_32),
    ("v100-sxm3-32gb", _V100_32),
    ("v100", _V100),
    ("tpu v6", _TPU_V6E),
    ("tpu v5p", _TPU_V5P),
    ("tpu v5 lite", _TPU_V5E),
    ("tpu v5e", _TPU_V5E),
    ("tpu v5", _TPU_V5P),
    ("tpu v4", _TPU_V4),
    ("cpu", _CPU),
)


def preset_for(kind: str) -> DeviceSpec:
    """Preset of a device kind as JAX spells it (``jax.Device.device_kind``), or of its name.

    Args:
        kind: for example ``"NVIDIA H200"``, ``"Tesla V100-SXM2-16GB"`` or ``"TPU v5 lite"``.

    Raises:
        MeshError: no preset fits; hand in a `DeviceSpec` instead.
    """
    key = kind.lower()
    if key in PRESETS:
        return PRESETS[key]
    for part, device in _KINDS:
        if part in key:
            return device
    raise MeshError(
        f"no device preset for kind {kind!r}{nearest(key, PRESETS)}, presets are {sorted(PRESETS)}"
    )
