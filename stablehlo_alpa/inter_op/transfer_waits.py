r"""Seconds of a step whose stages are placed: how long they wait for what they send each other.

The search for stages charges each for what it receives (`StageBounds.received_s`), wherever its
neighbours come to stand and as if nothing ran meanwhile. What is known of a pipeline is more. Under
1F1B a micro-batch that goes forward over some neighbouring stages, and whose gradient comes back,
lets the first of them go on with as many micro-batches later as there are of these stages. With t
what a stage takes for a micro-batch and r what crosses a border in both directions, one takes,
once the pipeline is full, the largest mean of such a cycle::

    max_{a <= b} ( sum_{s = a..b} t_s + sum_{s = a..b-1} r_s ) / (b - a + 1)

Where a stage keeps all micro-batches (GPipe) they wait for nothing but the slowest stage.

References:
    Baccelli, Cohen, Olsder and Quadrat, "Synchronization and Linearity", 1992, section 2.5: the
    period of an event graph is its largest cycle mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stablehlo_alpa.cluster import Cluster
from stablehlo_alpa.cost import transfer_seconds
from stablehlo_alpa.cost.strategy_graph import Float
from stablehlo_alpa.inter_op.stage_choices import StageChoice
from stablehlo_alpa.inter_op.submeshes import Submesh, first_devices


class TransferWaits:
    """Prices pipelines of one step on one cluster."""

    def __init__(
        self, received: Float, cluster: Cluster, num_micro_batches: int, *, keeps_all: bool = False
    ) -> None:
        """Nothing is priced yet.

        Args:
            received: float64[L, L] bytes that runs of layers receive per micro-batch.
            cluster: all devices.
            num_micro_batches: B.
            keeps_all: whether every stage keeps the activations of all micro-batches.
        """
        self._received, self._cluster = received, cluster
        self._count, self._keeps_all = num_micro_batches, keeps_all

    def __call__(self, stages: Sequence[StageChoice]) -> float:
        """Seconds of a step.

        Args:
            stages: in order, the key of each its `Submesh`; their seconds without what they
                receive.
        """
        own = np.array([one.time_s for one in stages])
        once = np.array([one.once_s for one in stages])
        crossing = self._crossing_s(stages)
        between = np.zeros_like(crossing) if self._keeps_all else crossing
        often = period(own - once, between)
        return float(own.sum() + crossing.sum() + (self._count - 1) * (often + once.max()))

    def _crossing_s(self, stages: Sequence[StageChoice]) -> Float:
        """float64[stages - 1] seconds of what crosses each border, forward and back."""
        placed = []
        for one in stages:
            assert isinstance(one.key, Submesh)
            placed.append((one.key.num_devices, one.key.part))
        starts = first_devices(placed, self._cluster)
        devices = [range(at, at + size) for at, (size, _) in zip(starts, placed, strict=True)]
        end = len(self._received) - 1
        found = []
        for at, one in enumerate(stages[:-1]):
            forward = float(self._received[one.last + 1, end])
            back = float(self._received[0, one.last])
            found.append(
                self._sent_s(forward, devices[at], devices[at + 1])
                + self._sent_s(back, devices[at + 1], devices[at])
            )
        return np.array(found)

    def _sent_s(self, size: float, senders: range, receivers: range) -> float:
        """Seconds of bytes that senders and receivers share evenly."""
        if size <= 0:
            return 0.0
        loads: dict[tuple[int, int], float] = {}
        done, both = 0, len(senders) * len(receivers)
        while done < both:
            # Counted in parts of both: a sender has as many as there are receivers.
            sender, receiver = done // len(receivers), done // len(senders)
            ends = (sender + 1) * len(receivers), (receiver + 1) * len(senders)
            loads[senders[sender], receivers[receiver]] = size * (min(ends) - done) / both
            done = min(ends)
        return transfer_seconds(loads, self._cluster)


def period(own: Float, between: Float) -> float:
    """Seconds that a pipeline takes for one more micro-batch: see above.

    Args:
        own: float64[S] of each stage, per micro-batch.
        between: float64[S - 1] of each border, forward and back.
    """
    sums = np.concatenate([[0.0], np.cumsum(own)])
    crossed = np.concatenate([[0.0], np.cumsum(between)])
    first, last = np.triu_indices(len(own))
    cycles = sums[last + 1] - sums[first] + crossed[last] - crossed[first]
    return float((cycles / (last - first + 1)).max())
