"""What is sent, and what else was considered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stablehlo_alpa.units import format_bytes, format_seconds
from stablehlo_alpa.view.page.content import AlternativeContent, CommunicationContent, PageContent
from stablehlo_alpa.view.page.figures.frame import (
    Figure,
    bytes_unit,
    draw_bars,
    frame,
    place_legend,
    seconds_unit,
)
from stablehlo_alpa.view.page.palette import BLUE, GREEN, GREY, ORANGE, PINK, SKY

_LEVELS = {"host": SKY, "rack": GREEN, "torus": PINK, "network": ORANGE}
# Characters of the name of a row.
_LONGEST = 44


def communication_figure(page: PageContent) -> Figure | None:
    """Bytes by kind and axes, in the colour of the links that they cross; None without any."""
    if not page.communication:
        return None
    groups: dict[tuple[str, str], list[CommunicationContent]] = {}
    for one in page.communication:
        axes = "between stages" if one.kind == "send" else f"over {', '.join(one.axes)}"
        groups.setdefault((f"{one.kind} {axes}", one.level), []).append(one)
    rows = list(dict.fromkeys(name for name, _ in groups))
    # Of stages that run at a time the fullest counts, as everywhere else on the page.
    sizes = {key: max(one.bytes for one in own) for key, own in groups.items()}
    unit = bytes_unit(max(sizes.values()))
    totals = [sum(size for (name, _), size in sizes.items() if name == row) for row in rows]
    plot = frame(
        "communication",
        rows,
        x_label=f"bytes per device and step, of the stage with most ({unit.name})",
        x_end=1.02 * max(totals) / unit.size,
    )
    ends = dict.fromkeys(rows, 0.0)
    for level, fill in _LEVELS.items():
        own = {name: sizes[name, level] for name in rows if (name, level) in sizes}
        if not own:
            continue
        data: dict[str, list[Any]] = {
            "y": [rows.index(name) for name in own],
            "left": [ends[name] for name in own],
            "right": [ends[name] + size / unit.size for name, size in own.items()],
            "text": [format_bytes(size) for size in own.values()],
            "count": [sum(one.count for one in groups[name, level]) for name in own],
            "seconds": [
                format_seconds(max(one.time_s for one in groups[name, level])) for name in own
            ],
        }
        ends |= dict(zip(own, data["right"], strict=True))
        tips = [
            *(("level", level), ("bytes", "@text")),
            *(("per step", "@count"), ("seconds", "@seconds")),
        ]
        draw_bars(plot, data, tips, fill_color=fill, legend_label=f"{level} links")
    place_legend(plot)
    described = "; ".join(
        f"{name} crosses {level} links: {format_bytes(size)}"
        for (name, level), size in sizes.items()
    )
    return Figure("communication", "Communication by kind, axes and level", plot, described)


def alternatives_figure(page: PageContent) -> Figure | None:
    """Seconds of this plan and of others; None where there is no other with a time."""
    timed = [one for one in page.alternatives if one.step_s is not None]
    if len(timed) < 2:
        return None
    order = sorted(timed, key=lambda one: one.step_s or 0.0)
    most = max(one.step_s or 0.0 for one in order)
    unit = seconds_unit(most)
    rows = [_shortened(one.name) for one in order]
    plot = frame("alternatives", rows, x_label=f"step ({unit.name})", x_end=1.02 * most / unit.size)
    for what, fill in (("this plan", BLUE), ("considered", GREY), ("by another method", ORANGE)):
        own = [(at, one) for at, one in enumerate(order) if _role(one) == what]
        if own:
            data = _bars(own, unit.size, page.step_s)
            tips = [("", "@name"), ("step", "@text"), ("of this plan", "@ratio")]
            draw_bars(plot, data, tips, fill_color=fill, legend_label=what)
    place_legend(plot)
    described = "; ".join(f"{one.name}: {format_seconds(one.step_s or 0.0)}" for one in order)
    return Figure("alternatives", "Alternatives", plot, described)


def _role(one: AlternativeContent) -> str:
    if one.is_chosen:
        return "this plan"
    return "by another method" if one.is_baseline else "considered"


def _bars(
    own: Sequence[tuple[int, AlternativeContent]], size: float, step_s: float
) -> dict[str, list[Any]]:
    return {
        "y": [at for at, _ in own],
        "right": [(one.step_s or 0.0) / size for _, one in own],
        "name": [one.name for _, one in own],
        "text": [format_seconds(one.step_s or 0.0) for _, one in own],
        "ratio": [f"{(one.step_s or 0.0) / (step_s or 1.0):.2f}" for _, one in own],
    }


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
