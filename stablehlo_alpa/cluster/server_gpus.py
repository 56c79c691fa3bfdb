"""NVIDIA's devices with NVLink; every number has its source."""

from __future__ import annotations

from dataclasses import replace

from stablehlo_alpa.cluster.device import DeviceSpec, Link

_GIB = 2**30

# Multiprocessors: NVIDIA's architecture papers of Volta (80), Ampere (108), Hopper (SXM5: 132) and
# Blackwell (148; those of a GB200 and a GB300 are taken to be as many).

# To the memory of the host, one way: 16 lanes of PCIe 3, 4 and 5 (datasheets: 16, 32, 64 GB/s), of
# which four fifths are reached (heuristic); NVLink-C2C of a GB200, 900 GB/s both ways together for
# two devices, likewise.
PCIE_3, PCIE_4, PCIE_5 = 12.8e9, 25.6e9, 51.2e9
_C2C = 0.8 * 900e9 / 2 / 2

# NVIDIA V100 datasheet (SXM2): 7.8 / 15.7 / 125 TFLOP/s (f64 / f32 / f16 tensor cores), 900 GB/s,
# NVLink 300 GB/s both directions together. bf16 has no unit on Volta: f32 rate.
# EC2 p3.16xlarge (AWS instance page, and section 8 of the Alpa paper): 8 devices, 25 Gbit/s.
# Latencies: heuristic, of the order of NCCL's small-message times within and between hosts; where
# collectives were measured (`measured_as`) those of the fits are taken instead.
V100 = DeviceSpec(
    name="v100-16gb",
    flops={"f64": 7.8e12, "f32": 15.7e12, "f16": 125e12, "bf16": 15.7e12, "vector": 15.7e12},
    memory_bytes=16 * _GIB,
    memory_bandwidth=900e9,
    intra_host=Link(10e-6, 150e9),
    inter_host=Link(30e-6, 25e9 / 8),
    measured_as="V100",
    units=80,
    platform="cuda",
    host_bandwidth=PCIE_3,
)

# EC2 p3dn.24xlarge (AWS instance page): the same with more memory, 100 Gbit/s.
V100_32 = replace(V100, name="v100-32gb", memory_bytes=32 * _GIB, inter_host=Link(30e-6, 100e9 / 8))

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
A100_40 = DeviceSpec(
    name="a100-40gb",
    flops=_A100_FLOPS,
    memory_bytes=40 * _GIB,
    memory_bandwidth=1555e9,
    intra_host=Link(10e-6, 300e9),
    inter_host=Link(30e-6, 400e9 / 8),
    measured_as="A100",
    units=108,
    platform="cuda",
    host_bandwidth=PCIE_4,
)
A100_80 = replace(A100_40, name="a100-80gb", memory_bytes=80 * _GIB, memory_bandwidth=2039e9)

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
H100 = DeviceSpec(
    name="h100-80gb",
    flops=_H100_FLOPS,
    memory_bytes=80 * _GIB,
    memory_bandwidth=3.35e12,
    intra_host=Link(10e-6, 450e9),
    inter_host=Link(30e-6, 3200e9 / 8),
    measured_as="H100",
    units=132,
    platform="cuda",
    host_bandwidth=PCIE_5,
)
H200 = replace(H100, name="h200-141gb", memory_bytes=141e9, memory_bandwidth=4.8e12)

# NVIDIA HGX B200 datasheet, per device: f64 37, f32 75, TF32 1100, bf16/f16 2250, f8/int8 4500
# TFLOP/s dense; 180 GB at 7.7 TB/s; NVLink 1800 GB/s both directions together. Network: DGX B200,
# 8 x 400 Gbit/s. GB200 NVL72 datasheet, a 72nd of the rack: f64 40, f32 80, TF32 1250, bf16/f16
# 2500, f8/int8 5000; 186 GB at 8 TB/s; four 400 Gbit/s cards a tray of four devices. GB300 NVL72
# likewise: 288 GB; f64 1.3, int8 165.
B200 = DeviceSpec(
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
    host_bandwidth=PCIE_5,
)
GB200 = DeviceSpec(
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
    host_bandwidth=_C2C,
)
GB300 = replace(
    GB200,
    name="gb300-288gb",
    flops={**GB200.flops, "f64": 1.3e12, "i8": 165e12},
    memory_bytes=288e9,
    measured_as="GB300",
)

SERVER_GPUS: tuple[DeviceSpec, ...] = (
    *(V100, V100_32),
    *(A100_40, A100_80),
    *(H100, H200),
    *(B200, GB200, GB300),
)
