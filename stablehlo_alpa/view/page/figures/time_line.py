"""The pipeline over a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stablehlo_alpa.view.page.content import PageContent, RunContent
from stablehlo_alpa.view.page.figures.frame import (
    Figure,
    frame,
    place_legend,
    point_at,
    seconds_unit,
)
from stablehlo_alpa.view.page.palette import phase_colour
from stablehlo_alpa.view.page.runs import Block, blocks

# Blocks that a browser draws in about a tenth of a second (heuristic, see below).
MOST_BLOCKS = 6000
# More are drawn without outlines (benchmarks/page.py in turns, 4,000 runs on busy cores: 76 and
# 77 ms a frame with them, 48 and 69 ms without; where the border lies is a heuristic).
_MOST_OUTLINED = 1500

_TIPS = (
    ("stage", "@stage"),
    ("micro-batch", "@micro"),
    ("start", "@left{0.000}"),
    ("seconds", "@seconds{0.0000}"),
    ("runs", "@count"),
)


def time_line_figure(
    page: PageContent, runs: Sequence[RunContent], name: str, title: str, end_s: float
) -> Figure:
    """A row per mesh, a block per run.

    Args:
        page: whose runs they are.
        runs: predicted or measured.
        name: of the figure.
        title: above it.
        end_s: where the axis ends.
    """
    shown = blocks(runs, MOST_BLOCKS)
    unit = seconds_unit(end_s)
    rows = [page.mesh_name(mesh) for mesh in range(page.num_meshes)]
    plot = frame(name, rows, x_label=f"time ({unit.name})", x_end=end_s / unit.size)
    by_phase: dict[str, list[Block]] = {}
    for block in shown:
        by_phase.setdefault(block.phase, []).append(block)
    outline = "#ffffff" if len(shown) <= _MOST_OUTLINED else None
    for phase, own in by_phase.items():
        bars = plot.quad(
            "left",
            "right",
            "top",
            "bottom",
            source=_columns(own, unit.size),
            fill_color=phase_colour(phase),
            line_color=outline,
            line_width=0.5,
            legend_label=phase,
        )
        tips = [("phase", phase), *_TIPS]
        tips[3] = (f"start ({unit.name})", tips[3][1])
        tips[4] = (f"seconds ({unit.name})", tips[4][1])
        point_at(plot, bars, tips)
    place_legend(plot)
    joined = len(shown) < sum(run.end_s > run.start_s for run in runs)
    note = ", runs that follow each other joined" if joined else ""
    described = f"{len(shown)} blocks on {len(rows)} meshes{note}; the step ends at {end_s:g} s"
    return Figure(name, title + note, plot, described)


def _columns(shown: Sequence[Block], size: float) -> dict[str, list[Any]]:
    return {
        "left": [_short(one.start_s / size) for one in shown],
        "right": [_short(one.end_s / size) for one in shown],
        "top": [one.mesh - 0.4 for one in shown],
        "bottom": [one.mesh + 0.4 for one in shown],
        "stage": [one.stage for one in shown],
        "micro": [_range(one.first, one.last) for one in shown],
        "seconds": [_short(one.busy_s / size) for one in shown],
        "count": [one.count for one in shown],
    }


def _short(value: float) -> float:
    """As many digits as a screen can show, so that pages stay small."""
    return float(f"{value:.6g}")


def _range(first: int, last: int) -> str:
    if first < 0:
        return "none"
    return str(first) if first == last else f"{first} to {last}"
