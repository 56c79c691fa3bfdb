"""What is asked for where a function is partitioned."""

from __future__ import annotations

from dataclasses import dataclass, field

from stablehlo_alpa.api.methods import ShardParallel
from stablehlo_alpa.cluster import ClusterSpec
from stablehlo_alpa.frontend import check_trip_count_hint


@dataclass(frozen=True)
class Asked:
    """How regions are planned.

    Attributes:
        method: memory budget, device and limits of the solver.
        cluster: that the mesh of the program stands for; None for the devices of the mesh.
        trip_count_hint: how often loops run of which it is not known; None if nobody says.
    """

    method: ShardParallel = field(default_factory=ShardParallel)
    cluster: ClusterSpec | None = None
    trip_count_hint: int | None = None

    def __post_init__(self) -> None:
        check_trip_count_hint(self.trip_count_hint)
