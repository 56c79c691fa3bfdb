"""What all figures of a page have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bokeh.models import (
    BoxZoomTool,
    FixedTicker,
    HoverTool,
    PanTool,
    Range1d,
    ResetTool,
    SaveTool,
    WheelZoomTool,
)
from bokeh.plotting import figure

from stablehlo_alpa.units import format_bytes, format_seconds

# Pixels: of a row, of a plot, and of axis and legend together.
_ROW = 26
_SHORTEST = 190
_TALLEST = 900
_AROUND = 130


@dataclass(frozen=True)
class Unit:
    """What the numbers of an axis are divided by.

    Attributes:
        name: ``"ms"``.
        size: in seconds or bytes.
    """

    name: str
    size: float


def seconds_unit(most: float) -> Unit:
    """For seconds up to so many."""
    name = format_seconds(most).split()[1] if most > 0 else "s"
    return Unit(name, {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12}[name])


def bytes_unit(most: float) -> Unit:
    """For bytes up to so many."""
    name = format_bytes(most).split()[1] if most > 0 else "B"
    power = ("B", "KiB", "MiB", "GiB", "TiB", "PiB").index(name)
    return Unit(name, 1024.0**power)


@dataclass(frozen=True)
class Figure:
    """A picture of a page.

    Attributes:
        name: short, of letters and dashes; one of a page.
        title: above it.
        plot: of bokeh.
        described: what it shows, for who does not see it.
        choices: where it shows one of several things, their names; what it then shows of each is in
            ``sources``, by column of the plot's source named ``name``.
        sources: see above.
    """

    name: str
    title: str
    plot: Any
    described: str
    choices: tuple[str, ...] = ()
    sources: tuple[Mapping[str, Sequence[float]], ...] = ()


def frame(
    name: str,
    rows: Sequence[str],
    *,
    x_label: str,
    x_end: float,
    height: int | None = None,
) -> Any:
    """An empty plot of bars from 0 on, row 0 on top.

    Args:
        name: of the plot, for scripts.
        rows: what stands at the left of each; row i is at y = i.
        x_label: below.
        x_end: where the horizontal axis ends.
        height: in pixels; by default as the rows need.
    """
    tall = min(max(_SHORTEST, _AROUND + _ROW * len(rows)), _TALLEST)
    plot = figure(
        name=name,
        height=height or tall,
        sizing_mode="stretch_width",
        x_range=Range1d(start=0, end=x_end or 1.0, bounds="auto"),
        y_range=Range1d(start=len(rows) - 0.4, end=-0.6),
        x_axis_label=x_label,
        tools=[],
        background_fill_color=None,
        border_fill_color=None,
        output_backend="canvas",
        min_border=4,
    )
    wheel = WheelZoomTool(dimensions="width", modifiers="ctrl")
    plot.add_tools(
        BoxZoomTool(dimensions="width"), PanTool(dimensions="width"), wheel, ResetTool(), SaveTool()
    )
    plot.toolbar.active_drag = None
    plot.toolbar.active_scroll = wheel
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.yaxis.ticker = FixedTicker(ticks=_ticks(len(rows), height or tall))
    plot.yaxis.major_label_overrides = dict(enumerate(rows))
    plot.ygrid.visible = False
    return plot


def point_at(plot: Any, renderer: Any, tips: Sequence[tuple[str, str]]) -> None:
    """Says of what a renderer draws what is pointed at."""
    plot.add_tools(HoverTool(renderers=[renderer], tooltips=list(tips)))


def draw_bars(
    plot: Any, data: Mapping[str, Sequence[Any]], tips: Sequence[tuple[str, str]], **style: Any
) -> None:
    """Draws a bar per row, which says what it is when it is pointed at.

    Args:
        plot: of `frame`.
        data: columns: ``y`` the row, ``right`` the end, perhaps ``left`` the begin, 0 by default.
        tips: see `point_at`.
        style: colours, patterns, legend.
    """
    left = "left" if "left" in data else 0
    drawn = plot.hbar("y", 0.8, "right", left, source=data, line_color=None, **style)
    point_at(plot, drawn, tips)


def place_legend(plot: Any) -> None:
    """Above the plot, to be clicked on."""
    if plot.legend:
        plot.add_layout(plot.legend[0], "above")
        plot.legend.orientation = "horizontal"
        plot.legend.click_policy = "hide"
        plot.legend.background_fill_alpha = 0.0
        plot.legend.border_line_alpha = 0.0
        plot.legend.ncols = 4


def _ticks(count: int, height: int) -> list[int]:
    """Rows that have room for their name."""
    step = max(1, -(-count * 12 // max(height - _AROUND, 12)))
    return list(range(0, count, step))
