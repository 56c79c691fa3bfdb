"""What is asked for where a function is partitioned."""

from __future__ import annotations

from dataclasses import dataclass, field

from stablehlo_alpa.api.methods import ShardParallel
from stablehlo_alpa.cluster import ClusterSpec


@dataclass(frozen=True)
class Asked:
    """How regions are planned.

    Attributes:
        method: memory budget, device and limits of the solver.
        cluster: that the mesh of the program stands for; None for the devices of the mesh.
    """

    method: ShardParallel = field(default_factory=ShardParallel)
    cluster: ClusterSpec | None = None
