"""Google's TPUs."""

from __future__ import annotations

from stablehlo_alpa.cluster.device import DeviceSpec, Link


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


TPU_V4 = _tpu("tpu-v4", 275e12, 32e9, 1.2e12, 45e9)
TPU_V5P = _tpu("tpu-v5p", 459e12, 96e9, 2.8e12, 90e9)
TPU_V5E = _tpu("tpu-v5e", 197e12, 16e9, 0.81e12, 45e9)
TPU_V6E = _tpu("tpu-v6e", 920e12, 32e9, 1.6e12, 90e9)

TPUS: tuple[DeviceSpec, ...] = (TPU_V4, TPU_V5P, TPU_V5E, TPU_V6E)
