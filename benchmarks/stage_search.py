"""Time of the dynamic programme over stages, on random tables of stage prices."""

import time
from dataclasses import dataclass

import numpy as np
import report
from report import Row, limited, measured

from stablehlo_alpa.inter_op.stage_choices import StageChoice, StageChoices
from stablehlo_alpa.inter_op.stage_search import search_stages

# Micro-batches of a step.
_MICRO_BATCHES = 64


@dataclass(frozen=True)
class Case:
    """A model on a cluster.

    Attributes:
        layers: of the model.
        hosts: of eight devices each.
        bar: seconds; None where none is set.
        by_host: submeshes are whole hosts.
        memory: device memory over what the model needs when it is split over all devices.
    """

    layers: int
    hosts: int
    bar: float | None
    by_host: bool = False
    memory: float = 3.0

    @property
    def title(self) -> str:
        """For the table."""
        unit = ", whole hosts" if self.by_host else ""
        return f"L = {self.layers} on {self.hosts}x8{unit}, memory {self.memory:g}"


def choices_of(case: Case, seed: int) -> StageChoices:
    """Three plans per run of layers and submesh that trade time for memory."""
    rng = np.random.default_rng(seed)
    work, kept = rng.uniform(1, 3, case.layers), rng.uniform(0.5, 1.5, case.layers)
    per_host = 8
    unit = per_host if case.by_host else 1
    devices = case.hosts * per_host
    sizes = [] if case.by_host else [1, 2, 4]
    hosts = 1
    while hosts <= case.hosts:
        sizes.append(hosts * per_host)
        # All numbers of hosts on small clusters, powers of two on large ones.
        hosts += 1 if case.hosts <= 8 else hosts
    budget = case.memory * 16 * work.sum() / devices
    choices = []
    for first in range(case.layers):
        for last in range(first, case.layers):
            flops, stored = work[first : last + 1].sum(), kept[first : last + 1].sum()
            for size in sizes:
                share = flops / work.sum() / (size / devices)
                if case.hosts > 8 and not 1 / 4 <= share <= 4:
                    continue
                for variant in range(3):
                    loss = 0.88 ** np.log2(size)
                    noise = 1 + 0.05 * rng.random() + 0.15 * variant
                    need = 16 * flops / size / (1 + variant)
                    activation = 4 * stored / size / (1 + variant)
                    most = int(max(0.0, budget - need) // activation)
                    time_s = float(flops / size / loss * noise)
                    choices.append(StageChoice(first, last, size // unit, time_s, most, size))
    return StageChoices.of(choices)


def rows_of(case: Case) -> list[Row]:
    """One search."""
    choices = choices_of(case, 0)
    devices = case.hosts if case.by_host else 8 * case.hosts
    start = time.perf_counter()
    found = search_stages(choices, case.layers, devices, _MICRO_BATCHES)
    spent = time.perf_counter() - start
    title = f"{case.title}, {len(choices)} choices"
    first = measured(title, spent, "s")
    if case.bar is not None:
        first = limited(title, spent, "s", bar=case.bar)
    stages = len(found.stages) if found else 0
    passes = found.num_passes if found else 0
    return [first, measured(f"{case.title}: stages", stages, ""), measured("passes", passes, "")]


def measure(quick: bool) -> list[Row]:
    """The bars of large models, and what memory does."""
    cases = [Case(16, 1, None), Case(32, 8, None), Case(64, 8, 2.0)]
    if not quick:
        cases += [
            Case(64, 8, 2.0, memory=1.2),
            Case(64, 64, None),
            Case(128, 1024, 5.0, by_host=True),
            Case(128, 1024, 5.0, by_host=True, memory=1.2),
        ]
    return [row for case in cases for row in rows_of(case)]


if __name__ == "__main__":
    report.main("Time of the stage search", measure)
