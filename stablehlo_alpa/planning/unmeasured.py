"""Says whose prices nobody has measured."""

from __future__ import annotations

from dataclasses import replace

from stablehlo_alpa.cluster import PRESETS, Cluster, DeviceSpec


def unmeasured(cluster: Cluster) -> list[str]:
    """Remarks on devices that are priced by their data sheets.

    Args:
        cluster: that is planned for.
    """
    names = dict.fromkeys(part.device.name for part in cluster.parts if _is_data_sheet(part.device))
    return [
        f"seconds on {name} are from its data sheet, its collectives were never measured; where "
        "there are some, `stablehlo-alpa calibrate -o here.toml` measures them for cluster="
        for name in names
    ]


def _is_data_sheet(device: DeviceSpec) -> bool:
    """Whether it is a preset, with whatever memory, that stands for no device that was measured."""
    preset = PRESETS.get(device.name)
    return (
        preset is not None
        and device.platform != "cpu"
        and not device.measured_as
        and device == replace(preset, memory_bytes=device.memory_bytes)
    )
