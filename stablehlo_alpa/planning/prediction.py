"""When what is planned would run, and what memory it takes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import alpa_runtime
from alpa_runtime import Event, Simulation, simulate, write_trace
from alpa_runtime.simulate import Loads

from stablehlo_alpa.cluster import Cluster
from stablehlo_alpa.cost import transfer_seconds
from stablehlo_alpa.planning.bracket import Bracket
from stablehlo_alpa.planning.stage import CostedProgram


@dataclass(frozen=True, eq=False, repr=False)
class Predicted:
    """Programs and instructions with what they cost.

    Attributes:
        cluster: the devices.
        runtime: what is run.
        costs: predicted, one per program of ``runtime``.
        bracket: what the search found and proved: for stages, or for the strategies of one, of all
            meshes and forms that were planned; None where several stages were given.
    """

    cluster: Cluster
    runtime: alpa_runtime.Plan
    costs: tuple[CostedProgram, ...]
    bracket: Bracket | None = None

    @cached_property
    def simulation(self) -> Simulation:
        """The predicted run of a step: events, bubbles, peak memory per mesh."""
        return self.simulate()

    def simulate(self, kinds: Sequence[Sequence[int]] | None = None) -> Simulation:
        """The predicted run of a step.

        Args:
            kinds: per mesh and buffer a number by which what is held is split, see `Simulation`.
        """
        return simulate(
            self.runtime,
            [cost.time_s for cost in self.costs],
            self.transfer_s,
            [cost.inside_bytes for cost in self.costs],
            kinds,
        )

    @property
    def bound_s(self) -> float | None:
        """Seconds per step that no plan is below of what was tried; None without `bracket`.

        That is every cut and every strategy under the numbers of micro-batches and recomputations
        in ``tried``, and under the first schedule; see `Bracket`.
        """
        return None if self.bracket is None else self.bracket.bound_s

    @property
    def gap(self) -> float | None:
        """How far the best of all that can be below what was found, as a part of that.

        None without `bracket`. By the search's own measure: simulated seconds differ from it.
        """
        return None if self.bracket is None else self.bracket.gap

    @property
    def step_time_s(self) -> float:
        """Predicted seconds of a step."""
        return self.simulation.step_s

    @property
    def peak_bytes(self) -> float:
        """Predicted bytes of live tensors per device at the worst point, of the fullest mesh."""
        return max(self.simulation.peak_bytes)

    def timeline(self, path: str | os.PathLike[str] | None = None) -> tuple[Event, ...]:
        """The predicted run of a step.

        Args:
            path: where it is written for Perfetto; nowhere by default.
        """
        if path is not None:
            write_trace(self.simulation.events, path)
        return self.simulation.events

    def transfer_s(self, source: int, target: int, loads: Loads) -> float:
        """Seconds between two meshes, by the devices of the cluster that they are made of.

        Args:
            source: number of the mesh that sends.
            target: number of the mesh that receives.
            loads: bytes that a device of one sends to a device of the other, by their positions.
        """
        meshes = self.runtime.meshes
        senders, receivers = meshes[source].devices, meshes[target].devices
        between = {(senders[a], receivers[b]): float(size) for (a, b), size in loads.items()}
        return transfer_seconds(between, self.cluster)
