"""Runs of a step, no more than a picture can hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stablehlo_alpa.view.page.content import HeldContent, RunContent


@dataclass(frozen=True)
class Block:
    """Runs of one mesh, one after the other.

    Attributes:
        mesh, stage: numbers.
        phase: of them, or ``"several"``.
        first, last: numbers of micro-batches; -1 of none.
        start_s, end_s: from the first until the last.
        busy_s: seconds in which something runs.
        count: how many they are.
    """

    mesh: int
    stage: int
    phase: str
    first: int
    last: int
    start_s: float
    end_s: float
    busy_s: float
    count: int


def blocks(runs: Sequence[RunContent], most: int) -> list[Block]:
    """Runs as at most so many blocks: one each where there are no more.

    Args:
        runs: of a step.
        most: blocks at most; runs of a mesh that follow each other are joined where there are more.
    """
    meshes: dict[int, list[RunContent]] = {}
    for run in sorted(runs, key=lambda run: run.start_s):
        if run.end_s > run.start_s:
            meshes.setdefault(run.mesh, []).append(run)
    total = sum(len(own) for own in meshes.values())
    width = math.ceil(total / max(most - len(meshes), 1)) if total > most else 1
    return [
        _block(own[at : at + width])
        for _, own in sorted(meshes.items())
        for at in range(0, len(own), width)
    ]


def _block(runs: Sequence[RunContent]) -> Block:
    phases, stages = {run.phase for run in runs}, {run.stage for run in runs}
    micro_batches = [run.micro_batch for run in runs if run.micro_batch >= 0]
    return Block(
        mesh=runs[0].mesh,
        stage=stages.pop() if len(stages) == 1 else -1,
        phase=phases.pop() if len(phases) == 1 else "several",
        first=min(micro_batches, default=-1),
        last=max(micro_batches, default=-1),
        start_s=runs[0].start_s,
        end_s=max(run.end_s for run in runs),
        busy_s=sum(run.end_s - run.start_s for run in runs),
        count=len(runs),
    )


def held_samples(held: Sequence[HeldContent], most: int) -> list[HeldContent]:
    """What is held as at most so many samples: of those that are near each other the largest."""
    width = max(1, math.ceil(len(held) / most))
    return [
        max(held[at : at + width], key=lambda one: sum(one.bytes))
        for at in range(0, len(held), width)
    ]
