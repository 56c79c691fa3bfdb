"""GPUs whose collectives nobody measured for us; their links and rates are taken at their word."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stablehlo_alpa.cluster.device import DeviceSpec, Fit, Link
from stablehlo_alpa.cluster.server_gpus import (
    A100_40,
    A100_80,
    H100,
    PCIE_3,
    PCIE_4,
    PCIE_5,
    V100,
    V100_32,
)

# What products reach of the peak rate and of the bandwidth, and what a kernel takes: heuristic, as
# the measured cards of the same architecture (`cost/fits/products.csv`), Ada's as Hopper's.
_LIKE_V100 = (("f16", 0.80), ("f32", 0.84))
_LIKE_A100 = (("bf16", 0.869), ("f32", 0.62))
_LIKE_H100 = (("bf16", 0.80), ("f32", 0.62))
_LIKE_B200 = (("bf16", 0.64), ("f32", 0.66), ("f8", 0.62))

# One way, of what PCIe moves both ways together (16 lanes of generation 3, 4 and 5: 32, 64 and 128
# GB/s). Heuristic: half of it, as cards without NVLink share root ports and pass what they send
# through the memory of the host.
_PCIE_3, _PCIE_4, _PCIE_5 = Link(10e-6, 8e9), Link(10e-6, 16e9), Link(10e-6, 32e9)
# The bus to the host; of cards that are linked otherwise it is of generation 5.
_BUSES = {_PCIE_3: PCIE_3, _PCIE_4: PCIE_4}
# One network card of 100 Gbit/s a host, where the machine does not say.
_NETWORK = Link(30e-6, 100e9 / 8)


def _reached(shares: tuple[tuple[str, float], ...]) -> tuple[Fit, ...]:
    return tuple(
        Fit(
            "products",
            (
                ("dtype", dtype),
                ("launch_s", "3e-06"),
                ("efficiency", str(share)),
                ("memory_efficiency", "0.9"),
            ),
        )
        for dtype, share in shares
    )


def _card(
    name: str,
    rates: tuple[float, float, float, float],
    memory: tuple[float, float],
    units: int,
    link: Link,
    shares: tuple[tuple[str, float], ...],
) -> DeviceSpec:
    """A card whose units compute in 16 bits, either kind.

    Args:
        name: of the preset.
        rates: TFLOP/s, dense and added up in f32: of the vector unit in f32, TF32, 16 and 8 bits; 0
            for none.
        memory: GB, GB/s.
        units: multiprocessors.
        link: to the others of its host.
        shares: of the rates that products reach.
    """
    vector, tf32, half, eighth = (1e12 * rate for rate in rates)
    flops = {"f64": vector / 64, "f32": tf32, "f16": half, "bf16": half, "vector": vector}
    return DeviceSpec(
        name=name,
        flops=flops | ({"f8": eighth, "i8": eighth} if eighth else {}),
        memory_bytes=1e9 * memory[0],
        memory_bandwidth=1e9 * memory[1],
        intra_host=link,
        inter_host=_NETWORK,
        units=units,
        fits=_reached(shares),
        platform="cuda",
        host_bandwidth=_BUSES.get(link, PCIE_5),
    )


# NVIDIA T4 datasheet: 8.1 (f32), 65 (f16), 130 (int8) TFLOP/s, 16 GB at 320 GB/s; bf16 has no unit
# on Turing: f32 rate. Its products were measured, its links were not.
T4 = replace(
    _card("t4-16gb", (8.1, 8.1, 65, 0), (16, 320), 40, _PCIE_3, ()),
    measured_as="T4",
    flops={
        "f64": 8.1e12 / 32,
        "f32": 8.1e12,
        "f16": 65e12,
        "bf16": 8.1e12,
        "i8": 130e12,
        "vector": 8.1e12,
    },
)

# Datasheets of A10, A40 and RTX A6000, GA102 architecture paper (RTX 3090; its units take half the
# rate where they add up in f32). A10G: EC2's G5 page, half of an A10's tensor rates.
_AMPERE = (
    _card("a10g-24gb", (35, 35, 70, 0), (24, 600), 80, _PCIE_4, _LIKE_A100),
    _card("a10-24gb", (31.2, 62.5, 125, 0), (24, 600), 72, _PCIE_4, _LIKE_A100),
    _card("a40-48gb", (37.4, 74.8, 149.7, 0), (48, 696), 84, _PCIE_4, _LIKE_A100),
    _card("rtx-a6000-48gb", (38.7, 77.4, 154.8, 0), (48, 768), 84, _PCIE_4, _LIKE_A100),
    _card("rtx-3090-24gb", (35.6, 35.6, 71, 0), (24, 936), 82, _PCIE_4, _LIKE_A100),
)

# Datasheets of L4, L40S and RTX 6000 Ada (their figures "with sparsity" halved), Ada architecture
# paper (RTX 4090).
_ADA = (
    _card("l4-24gb", (30.3, 60, 121, 242.5), (24, 300), 58, _PCIE_4, _LIKE_H100),
    _card("l40-48gb", (90.5, 90.5, 181, 362), (48, 864), 142, _PCIE_4, _LIKE_H100),
    _card("l40s-48gb", (91.6, 183, 362, 733), (48, 864), 142, _PCIE_4, _LIKE_H100),
    _card("rtx-6000-ada-48gb", (91.1, 182.1, 364.2, 728.5), (48, 960), 142, _PCIE_4, _LIKE_H100),
    _card("rtx-4090-24gb", (82.6, 82.6, 165.2, 330.3), (24, 1008), 128, _PCIE_4, _LIKE_H100),
)

# Blackwell architecture paper of the GeForce series.
_BLACKWELL = (
    _card("rtx-5090-32gb", (104.8, 104.8, 209.5, 419), (32, 1792), 170, _PCIE_5, _LIKE_B200),
)

# Cards of measured chips that are linked otherwise. Datasheets: V100 PCIe (f32 14, 16 bits 112
# TFLOP/s); A100 PCIe (80 GB: 1935 GB/s); H100 PCIe (114 multiprocessors; f32 51, TF32 378, 16 bits
# 756, 8 bits 1513, 2 TB/s); H100 NVL (f32 60, TF32 417.5, 16 bits 835.5, 8 bits 1671, 94 GB at 3.9
# TB/s); H20 (f32 44, TF32 74, 16 bits 148, 8 bits 296, 96 GB at 4 TB/s, NVLink 900 GB/s); A800 and
# H800: NVLink of 400 GB/s both ways; GH200: an H100 with 96 GB at 4 TB/s, one in a host, NVLink-C2C
# of 900 GB/s both ways.
_NVLINK_400 = Link(10e-6, 200e9)
_V100_PCIE = {"f64": 7e12, "f32": 14e12, "f16": 112e12, "bf16": 14e12, "vector": 14e12}


def _unlike(
    card: DeviceSpec, name: str, shares: tuple[tuple[str, float], ...], **other: Any
) -> DeviceSpec:
    """A card of a measured chip whose measurements are not its own."""
    return replace(card, name=name, measured_as="", fits=_reached(shares), **other)


_VARIANTS = (
    _unlike(V100, "v100-pcie-16gb", _LIKE_V100, flops=_V100_PCIE, intra_host=_PCIE_3),
    _unlike(V100_32, "v100-pcie-32gb", _LIKE_V100, flops=_V100_PCIE, intra_host=_PCIE_3),
    _unlike(A100_40, "a100-pcie-40gb", _LIKE_A100, intra_host=_PCIE_4),
    _unlike(A100_80, "a100-pcie-80gb", _LIKE_A100, memory_bandwidth=1935e9, intra_host=_PCIE_4),
    _unlike(A100_80, "a800-80gb", _LIKE_A100, intra_host=_NVLINK_400),
    _unlike(H100, "h800-80gb", _LIKE_H100, intra_host=_NVLINK_400),
    _unlike(
        H100,
        "gh200-96gb",
        _LIKE_H100,
        memory_bytes=96e9,
        memory_bandwidth=4e12,
        host_bandwidth=0.8 * 900e9 / 2,
    ),
    _card("h100-pcie-80gb", (51, 378, 756, 1513), (80, 2000), 114, _PCIE_5, _LIKE_H100),
    _card("h100-nvl-94gb", (60, 417.5, 835.5, 1671), (94, 3900), 132, _PCIE_5, _LIKE_H100),
    _card("h20-96gb", (44, 74, 148, 296), (96, 4000), 78, H100.intra_host, _LIKE_H100),
)

# AMD's datasheets, matrix rates, dense: MI250X (one of its two dies, which is a device: f64 and f32
# 47.9, 16 bits 191.5, 64 GB at 1.6 TB/s), MI300X (163.4, TF32 653.7, 16 bits 1307.4, 8 bits 2614.9,
# 192 GB at 5.3 TB/s, seven links of 128 GB/s both ways), MI325X (the same units, 256 GB at 6 TB/s).
# Heuristic: products reach what they reach on an H100.
_MI300X = replace(
    _card(
        "mi300x-192gb",
        (163.4, 653.7, 1307.4, 2614.9),
        (192, 5300),
        304,
        Link(10e-6, 448e9),
        _LIKE_H100,
    ),
    platform="rocm",
    inter_host=Link(30e-6, 3200e9 / 8),
)
_AMD = (
    replace(
        _card(
            "mi250x-64gb", (47.9, 47.9, 191.5, 0), (64, 1600), 110, Link(10e-6, 100e9), _LIKE_H100
        ),
        platform="rocm",
        host_bandwidth=PCIE_4,
    ),
    _MI300X,
    replace(_MI300X, name="mi325x-256gb", memory_bytes=256e9, memory_bandwidth=6e12),
)

OTHER_GPUS: tuple[DeviceSpec, ...] = (T4, *_AMPERE, *_ADA, *_BLACKWELL, *_VARIANTS, *_AMD)
