"""Says whose prices nobody has measured."""

from __future__ import annotations

from dataclasses import replace

from stablehlo_alpa.cluster import PRESETS, Cluster, DeviceSpec
from stablehlo_alpa.cost.fits import fit_rows


def unmeasured(cluster: Cluster) -> list[str]:
    """Remarks on devices that are priced by their data sheets.

    Args:
        cluster: that is planned for.
    """
    devices = dict.fromkeys(part.device for part in cluster.parts if _is_data_sheet(part.device))
    return [
        f"{'links' if device.measured_as else 'seconds'} of {device.name} are from its data sheet, "
        "its collectives were never measured; where there are some, `stablehlo-alpa calibrate -o "
        "here.toml` measures them for cluster="
        for device in devices
    ]


def _is_data_sheet(device: DeviceSpec) -> bool:
    """Whether it is a preset, with whatever memory, that stands for no device that was measured."""
    preset = PRESETS.get(device.name)
    return (
        preset is not None
        and device.platform != "cpu"
        and not fit_rows("collectives", device)
        and device == replace(preset, memory_bytes=device.memory_bytes)
    )
