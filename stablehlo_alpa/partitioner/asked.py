"""What is asked for where a function is partitioned."""

from __future__ import annotations

from dataclasses import dataclass, field

from stablehlo_alpa.api.methods import ShardParallel
from stablehlo_alpa.cluster import ClusterSpec
from stablehlo_alpa.errors import MeshError
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
        _check_method(self.method)


def _check_method(method: object) -> None:
    """Refuses what is of a whole program."""
    if not isinstance(method, ShardParallel):
        raise TypeError(
            f"method is {method!r}, must be ShardParallel(...), which says memory budget, device "
            "and limits of the solver; other methods are of a whole step: pass them to parallelize"
        )
    if method.mesh_shape is not None:
        raise MeshError(
            f"mesh_shape={method.mesh_shape} is given, but a partitioned function is split over "
            "the mesh of the program around it"
        )
    if method.backend != "alpa":
        raise ValueError(
            f"backend={method.backend!r} is of a whole program; XLA hands a partitioned function "
            'to "alpa"'
        )
    if (method.num_micro_batches or 1) > 1:
        raise ValueError(
            f"num_micro_batches={method.num_micro_batches} is of a whole step: pass the step to "
            "parallelize, or leave it out"
        )
