"""Which products of a planned program are computed beside the collectives around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from stablehlo_alpa.cluster import DeviceSpec, LogicalMesh
from stablehlo_alpa.compiler import FoundRings, Module
from stablehlo_alpa.cost import CollectiveKind, RingSeconds, RingVolumes, ring_seconds
from stablehlo_alpa.store import Record
from stablehlo_alpa.units import format_bytes, format_seconds

MOST_BLOCKS = 16
"""Devices of a group up to which its collectives are done in blocks, each of which is a product in
the program (heuristic: beyond, programs grow and products are too small)."""


@dataclass(frozen=True)
class ChosenRings:
    """Those of a program.

    Attributes:
        numbers: of them among those found, as ``alpa-choose-product-rings`` counts.
        compute_s: seconds per run that computing takes more.
        communication_s: seconds per run that collectives take more; with the others never above
            zero.
        reasons: by name of a product what is done beside it.
    """

    numbers: Sequence[int] = ()
    compute_s: float = 0.0
    communication_s: float = 0.0
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def added_s(self) -> float:
        """Seconds per run that the program takes more; never above zero."""
        return self.compute_s + self.communication_s

    @property
    def remarks(self) -> list[str]:
        """What there is to say."""
        if not self.numbers:
            return []
        count = len(self.numbers)
        what = "1 collective is" if count == 1 else f"{count} collectives are"
        return [
            f"{what} done block by block beside products, which saves "
            f"{format_seconds(-self.added_s)}: {_listed(list(self.reasons))}"
        ]

    def record(self) -> Record:
        """Them, as plain data."""
        return asdict(self)


def rings_content(mesh: LogicalMesh) -> object:
    """What their choice depends on beside the module, for the store; None where there are none."""
    overlap = mesh.cluster.overlap
    return None if overlap is None or overlap.products == 0 else mesh.cluster


def choose_rings(module: Module, mesh: LogicalMesh, device: DeviceSpec) -> ChosenRings:
    """Those that pay by the prices, the most paying first; a product is in one.

    None without `Overlap.products`.

    Args:
        module: planned.
        mesh: its mesh.
        device: one of its devices.
    """
    overlap = mesh.cluster.overlap
    if overlap is None or rings_content(mesh) is None:
        return ChosenRings()
    found = FoundRings.of(module)
    volumes = _volumes(found, mesh)
    seconds = ring_seconds(volumes, mesh, device, overlap)
    saved_s = np.where(volumes.blocks <= MOST_BLOCKS, seconds.saved_s, 0.0) * found.count
    taken: set[int] = set()
    numbers = []
    for number in np.argsort(-saved_s, kind="stable").tolist():
        products = set(found.product[found.ring == number].tolist())
        if saved_s[number] > 0 and not products & taken:
            taken |= products
            numbers.append(number)
    numbers.sort()
    count = found.count[numbers]
    return ChosenRings(
        tuple(numbers),
        float((count * (seconds.blocks_s - seconds.product_s)[numbers]).sum()),
        float((count * (seconds.exposed_s - seconds.collective_s)[numbers]).sum()),
        {found.names[number]: _reason(volumes, seconds, number, mesh) for number in numbers},
    )


def write_rings(module: Module, chosen: ChosenRings) -> list[str]:
    """Writes them on the products of a module; returns the remarks."""
    if not chosen.numbers:
        return []
    numbers = ",".join(map(str, chosen.numbers))
    more = module.run(f"alpa-choose-product-rings{{rings={numbers}}},alpa-verify-plan")
    return [*chosen.remarks, *more]


def _volumes(found: FoundRings, mesh: LogicalMesh) -> RingVolumes:
    blocks = [mesh.groups[mask].size for mask in found.axes.tolist()]
    return RingVolumes(
        found.kind,
        found.axes,
        found.bytes,
        found.beside,
        np.array(blocks, np.int64),
        found.added_bytes,
        found.added_kernels,
        found.ring,
        found.shape,
        found.block_shape,
        found.product_bytes,
        found.block_bytes,
        np.array(found.dtypes, np.str_),
    )


def _reason(volumes: RingVolumes, seconds: RingSeconds, number: int, mesh: LogicalMesh) -> str:
    kind = CollectiveKind(int(volumes.kind[number])).name.lower().replace("_", "-")
    (axis,) = (name for i, (name, _) in enumerate(mesh.axes) if volumes.axes[number] >> i & 1)
    before = float((seconds.product_s + seconds.collective_s)[number])
    after = float((seconds.blocks_s + seconds.exposed_s)[number])
    return (
        f"its {kind} of {format_bytes(float(volumes.bytes[number]))} over {axis} is done in "
        f"{int(volumes.blocks[number])} blocks beside it: {format_seconds(after)} instead of "
        f"{format_seconds(before)} per run"
    )


def _listed(names: list[str], most: int = 4) -> str:
    """The first of the names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
