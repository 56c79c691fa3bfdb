"""Devices by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from stablehlo_alpa.cluster.device import DeviceSpec, Link
from stablehlo_alpa.cluster.other_gpus import OTHER_GPUS
from stablehlo_alpa.cluster.server_gpus import SERVER_GPUS
from stablehlo_alpa.cluster.tpus import TPUS
from stablehlo_alpa.errors import MeshError
from stablehlo_alpa.nearest import nearest

# Heuristic throughout: not a processor but an accelerator in small. The ratio of FLOP/s to link
# bandwidth is that of the V100 in f32 (about 100 FLOP per byte), so that the plans tried on virtual
# CPU devices are the plans an accelerator would get; the latency is small because the models are.
_CPU = DeviceSpec(
    name="cpu",
    flops={"f64": 50e9, "f32": 100e9, "f16": 100e9, "bf16": 100e9, "vector": 100e9},
    memory_bytes=16 * 2**30,
    memory_bandwidth=20e9,
    intra_host=Link(1e-6, 1e9),
    inter_host=Link(10e-6, 1e9),
    platform="cpu",
)

PRESETS: Mapping[str, DeviceSpec] = MappingProxyType(
    {device.name: device for device in (*SERVER_GPUS, *OTHER_GPUS, *TPUS, _CPU)}
)

# Words in the name of a device kind as JAX spells it, and the preset; the first that are all in it
# count. A word begins where a letter or digit does not precede it, and ends before no digit: "a10"
# is not in "a100".
_KINDS = (
    ("gb300", "gb300-288gb"),
    ("gb200", "gb200-186gb"),
    ("gh200", "gh200-96gb"),
    ("b200", "b200-180gb"),
    ("h200", "h200-141gb"),
    ("h100 pcie", "h100-pcie-80gb"),
    ("h100 nvl", "h100-nvl-94gb"),
    ("h100", "h100-80gb"),
    ("h800", "h800-80gb"),
    ("h20", "h20-96gb"),
    ("a800", "a800-80gb"),
    ("a100 80g pcie", "a100-pcie-80gb"),
    ("a100 pcie", "a100-pcie-40gb"),
    ("a100 80g", "a100-80gb"),
    ("a100", "a100-40gb"),
    ("v100 pcie 32g", "v100-pcie-32gb"),
    ("v100 pcie", "v100-pcie-16gb"),
    ("v100 32g", "v100-32gb"),
    ("v100", "v100-16gb"),
    ("a10g", "a10g-24gb"),
    ("a10", "a10-24gb"),
    ("a40", "a40-48gb"),
    ("t4", "t4-16gb"),
    ("l40s", "l40s-48gb"),
    ("l40", "l40-48gb"),
    ("l4", "l4-24gb"),
    ("rtx a6000", "rtx-a6000-48gb"),
    ("rtx 6000 ada", "rtx-6000-ada-48gb"),
    ("rtx 3090", "rtx-3090-24gb"),
    ("rtx 4090", "rtx-4090-24gb"),
    ("rtx 5090", "rtx-5090-32gb"),
    ("mi325x", "mi325x-256gb"),
    ("mi300x", "mi300x-192gb"),
    ("mi250", "mi250x-64gb"),
    ("tpu v6", "tpu-v6e"),
    ("tpu v5p", "tpu-v5p"),
    ("tpu v5 lite", "tpu-v5e"),
    ("tpu v5e", "tpu-v5e"),
    ("tpu v5", "tpu-v5p"),
    ("tpu v4", "tpu-v4"),
    ("cpu", "cpu"),
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
    for words, name in _KINDS:
        if all(re.search(rf"(?<![a-z0-9]){word}(?!\d)", key) for word in words.split()):
            return PRESETS[name]
    raise MeshError(
        f"no device preset for kind {kind!r}{nearest(key, PRESETS)}, presets are "
        f"{sorted(PRESETS)}; `stablehlo-alpa calibrate -o here.toml` measures the devices at hand "
        'for cluster="here.toml", and device= takes a DeviceSpec'
    )
