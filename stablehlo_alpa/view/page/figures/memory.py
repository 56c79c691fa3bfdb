"""Memory per device: at the peak of every mesh, and over the step."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from bokeh.models import BasicTicker, ColumnDataSource

from stablehlo_alpa.units import format_bytes
from stablehlo_alpa.view.page.content import MEMORY_KINDS, HeldContent, PageContent
from stablehlo_alpa.view.page.figures.frame import (
    Figure,
    Unit,
    bytes_unit,
    draw_bars,
    frame,
    place_legend,
    point_at,
    seconds_unit,
)
from stablehlo_alpa.view.page.palette import RED, colour
from stablehlo_alpa.view.page.runs import held_samples

# Samples of all meshes together, and of one at most (heuristic: pixels of a screen).
_MOST_SAMPLES = 8000
_MOST_OF_A_MESH = 600
_HEIGHT = 300
_BUDGET = MappingProxyType({"line_color": RED, "line_width": 2, "line_dash": "dashed"})


def peaks_figure(page: PageContent) -> Figure:
    """What the fullest moment of every mesh is made of, against the memory that there is."""
    budgets = [page.memory_bytes(mesh) for mesh in range(page.num_meshes)]
    budget = max(budgets)
    unit = bytes_unit(max(page.peak_bytes, budget))
    rows = [page.mesh_name(mesh) for mesh in range(page.num_meshes)]
    end = 1.03 * max(page.peak_bytes, budget) / unit.size
    plot = frame("peaks", rows, x_label=f"bytes per device ({unit.name})", x_end=end)
    peaks = [_fullest(held) for held in page.held]
    ends = [0.0] * len(peaks)
    for number, kind in enumerate(MEMORY_KINDS):
        sizes = [peak.bytes[number] for peak in peaks]
        if not any(sizes):
            continue
        data: dict[str, list[Any]] = {
            "y": list(range(len(peaks))),
            "left": list(ends),
            "right": [e + size / unit.size for e, size in zip(ends, sizes, strict=True)],
            "text": [format_bytes(size) for size in sizes],
            "all": [format_bytes(sum(peak.bytes)) for peak in peaks],
            "there": [format_bytes(own) for own in budgets],
        }
        ends = data["right"]
        tips = [(kind, "@text"), ("all", "@all"), ("there is", "@there")]
        draw_bars(plot, data, tips, fill_color=colour(number), legend_label=kind)
    if len(set(budgets)) == 1:
        plot.vspan(x=[budget / unit.size], **_BUDGET)
    else:
        ends, meshes = [own / unit.size for own in budgets], range(len(budgets))
        above, below = [mesh - 0.5 for mesh in meshes], [mesh + 0.5 for mesh in meshes]
        plot.segment(x0=ends, y0=above, x1=ends, y1=below, **_BUDGET)
    place_legend(plot)
    described = "; ".join(
        f"{row}: {format_bytes(sum(peak.bytes))} of {format_bytes(own)}"
        for row, peak, own in zip(rows, peaks, budgets, strict=True)
    )
    return Figure("peaks", "Memory per device at the fullest moment", plot, described)


def held_figure(page: PageContent) -> Figure:
    """What a device of one mesh holds over the step; which mesh is chosen beside it."""
    most = min(_MOST_OF_A_MESH, max(_MOST_SAMPLES // page.num_meshes, 50))
    time, size = seconds_unit(page.step_s), bytes_unit(page.peak_bytes)
    columns = [_columns(held_samples(own, most), time, size) for own in page.held]
    top = 1.05 * page.peak_bytes / size.size
    plot = frame(
        "held", [], x_label=f"time ({time.name})", x_end=page.step_s / time.size, height=_HEIGHT
    )
    plot.y_range.start, plot.y_range.end = 0, top or 1.0
    plot.yaxis.ticker = BasicTicker()
    plot.yaxis.axis_label = f"bytes per device ({size.name})"
    plot.ygrid.visible = True
    source = ColumnDataSource(columns[0], name="samples")
    for number, kind in enumerate(MEMORY_KINDS):
        if any(any(sample.bytes[number] for sample in held) for held in page.held):
            plot.varea_step(
                "x",
                f"k{number}",
                f"k{number + 1}",
                source=source,
                step_mode="after",
                fill_color=colour(number),
                legend_label=kind,
            )
    line = plot.line("x", f"k{len(MEMORY_KINDS)}", source=source, line_alpha=0.0)
    tips = [("time", "@x{0.000}"), ("all", f"@k{len(MEMORY_KINDS)}{{0.00}} {size.name}")]
    point_at(plot, line, tips)
    there = sorted({part.memory_bytes for part in page.parts})
    plot.hspan(y=[one / size.size for one in there], **_BUDGET)
    place_legend(plot)
    return Figure(
        "held",
        "Memory per device over the step",
        plot,
        f"the fullest device holds {format_bytes(page.peak_bytes)}",
        tuple(page.mesh_name(mesh) for mesh in range(page.num_meshes)),
        tuple(columns),
    )


def _fullest(held: tuple[HeldContent, ...]) -> HeldContent:
    nothing = HeldContent(0.0, 0.0, (0.0,) * len(MEMORY_KINDS))
    return max(held, key=lambda one: sum(one.bytes), default=nothing)


def _columns(samples: list[HeldContent], time: Unit, size: Unit) -> dict[str, list[float]]:
    """Borders of what is stacked: ``k0`` is 0, the last is everything."""
    found: dict[str, list[float]] = {"x": []}
    found |= {f"k{number}": [] for number in range(len(MEMORY_KINDS) + 1)}
    for one in samples:
        for at_s, is_inside in ((one.start_s, True), (one.end_s, False)):
            found["x"].append(float(f"{at_s / time.size:.6g}"))
            total = 0.0
            for number in range(len(MEMORY_KINDS) + 1):
                found[f"k{number}"].append(float(f"{total / size.size:.5g}"))
                if number < len(MEMORY_KINDS):
                    is_last = number == len(MEMORY_KINDS) - 1
                    # Between programs nothing is inside of one.
                    total += one.bytes[number] if is_inside or not is_last else 0.0
    return found
