"""Where a model is: devices of the cluster by stage, layers by stage, and what they take."""

from __future__ import annotations

from typing import Any

from stablehlo_alpa.units import format_bytes, format_seconds
from stablehlo_alpa.view.page.content import PageContent, StageContent
from stablehlo_alpa.view.page.figures.frame import (
    Figure,
    draw_bars,
    frame,
    place_legend,
    point_at,
    seconds_unit,
)
from stablehlo_alpa.view.page.palette import GREY, colour, pattern, phase_colour, text_colour

# Devices of a row that their stage is written on (heuristic: a telephone's width).
_WRITTEN = 16


def axes_text(stage: StageContent) -> str:
    """``x=2 y=4``."""
    return " ".join(f"{name}={size}" for name, size in stage.axes)


def layers_text(stage: StageContent) -> str:
    """``3 to 5``; nothing where there are no layers."""
    if not stage.layers:
        return ""
    first, last = stage.layers[0], stage.layers[-1]
    return f"{first} to {last}" if last > first else str(first)


def cluster_figure(page: PageContent) -> Figure:
    """Hosts as rows, their devices as cells in the colour of their stage."""
    places = _places(page)
    widest = max(part.devices_per_host for part in page.parts)
    stages: dict[int, list[int]] = {}
    for number, stage in enumerate(page.stages):
        for device in stage.devices:
            stages.setdefault(device, []).append(number)
    data: dict[str, list[Any]] = {
        key: [] for key in ("x", "y", "colour", "pattern", "ink", "label", "device", "mesh")
    }
    for device, (host, place) in enumerate(places):
        own = stages.get(device, [])
        fill = colour(page.stages[own[0]].mesh) if own else GREY
        data["x"].append(place + 0.5)
        data["y"].append(host)
        data["colour"].append(fill)
        data["pattern"].append(pattern(page.stages[own[0]].mesh) if own else " ")
        data["ink"].append(text_colour(fill))
        data["label"].append(",".join(map(str, own)) if own else "idle")
        data["device"].append(device)
        data["mesh"].append(axes_text(page.stages[own[0]]) if own else "")
    kinds = [part.device for part in page.parts for _ in range(part.num_hosts)]
    hosts = [f"host {number}" for number in range(len(kinds))]
    if len(page.parts) > 1:
        hosts = [f"{host}, {kind}" for host, kind in zip(hosts, kinds, strict=True)]
    tips = [("device", "@device"), ("stage", "@label"), ("mesh", "@mesh")]
    plot = frame("cluster", hosts, x_label="device of the host", x_end=widest)
    bars = plot.rect(
        "x",
        "y",
        0.94,
        0.86,
        source=data,
        fill_color="colour",
        line_color=None,
        hatch_pattern="pattern",
        hatch_color="ink",
        hatch_alpha=0.35,
    )
    point_at(plot, bars, tips)
    if widest <= _WRITTEN:
        plot.text(
            "x",
            "y",
            "label",
            source=bars.data_source,
            text_color="ink",
            text_align="center",
            text_baseline="middle",
            text_font_size="11px",
        )
    described = "; ".join(
        f"stage {number} on devices {stage.devices[0]} to {stage.devices[-1]}"
        for number, stage in enumerate(page.stages)
    )
    return Figure("cluster", "Devices by stage", plot, described)


def _places(page: PageContent) -> list[tuple[int, int]]:
    """Per device its host, and its place there."""
    widths = [part.devices_per_host for part in page.parts for _ in range(part.num_hosts)]
    return [(host, place) for host, width in enumerate(widths) for place in range(width)]


def layers_figure(page: PageContent) -> Figure | None:
    """Layers from left to right, each on the row of its stage; None without layers."""
    if not any(stage.layers for stage in page.stages):
        return None
    most = 1 + max(stage.layers[-1] for stage in page.stages)
    rows = [f"stage {number}" for number in range(len(page.stages))]
    data: dict[str, list[Any]] = {
        "y": list(range(len(page.stages))),
        "left": [stage.layers[0] for stage in page.stages],
        "right": [stage.layers[-1] + 1 for stage in page.stages],
        "colour": [colour(stage.mesh) for stage in page.stages],
        "pattern": [pattern(stage.mesh) for stage in page.stages],
        "layers": [layers_text(stage) for stage in page.stages],
        "devices": [f"{stage.devices[0]} to {stage.devices[-1]}" for stage in page.stages],
        "mesh": [axes_text(stage) for stage in page.stages],
        "seconds": [format_seconds(_repeated_s(stage)) for stage in page.stages],
        "each": [format_seconds(_repeated_s(s) / len(s.layers)) for s in page.stages],
        "memory": [format_bytes(stage.peak_bytes) for stage in page.stages],
    }
    plot = frame("layers", rows, x_label="layer", x_end=most)
    plot.xaxis.ticker.mantissas = [1, 2, 5]
    plot.xaxis.ticker.min_interval = 1
    tips = [
        ("layers", "@layers"),
        ("devices", "@devices"),
        ("mesh", "@mesh"),
        ("per micro-batch", "@seconds"),
        ("of it per layer", "@each"),
        ("memory per device", "@memory"),
    ]
    draw_bars(plot, data, tips, fill_color="colour", hatch_pattern="pattern", hatch_alpha=0.35)
    described = "; ".join(
        f"stage {n} has layers {layers_text(stage)}" for n, stage in enumerate(page.stages)
    )
    return Figure("layers", "Layers by stage", plot, described)


def seconds_figure(page: PageContent) -> Figure:
    """What every stage does in a step: computation and communication of its phases."""
    rows = [f"stage {number}" for number in range(len(page.stages))]
    totals = [sum(p.time_s * p.count for p in stage.phases) for stage in page.stages]
    unit = seconds_unit(max(totals))
    plot = frame(
        "seconds", rows, x_label=f"seconds per step ({unit.name})", x_end=max(totals) / unit.size
    )
    names = list(dict.fromkeys(p.name for stage in page.stages for p in stage.phases))
    ends = [0.0] * len(page.stages)
    for name in names:
        for part in ("computation", "communication"):
            data = _parts(page, name, part, ends, unit.size)
            if not data["y"]:
                continue
            draw_bars(
                plot,
                data,
                [("stage", "@y"), (f"{name}, {part}", "@text"), ("runs", "@n")],
                fill_color=phase_colour(name),
                hatch_pattern="/" if part == "communication" else " ",
                hatch_alpha=0.6,
                legend_label=f"{name}: {part}",
            )
    place_legend(plot)
    described = "; ".join(f"stage {n}: {format_seconds(one)}" for n, one in enumerate(totals))
    return Figure("seconds", "Seconds per step of the programs of each stage", plot, described)


def _parts(
    page: PageContent, name: str, part: str, ends: list[float], size: float
) -> dict[str, list[Any]]:
    """Bars of one part of a phase, set behind what is there; `ends` moves on."""
    data: dict[str, list[Any]] = {key: [] for key in ("y", "left", "right", "text", "n")}
    for number, stage in enumerate(page.stages):
        for phase in stage.phases:
            seconds = phase.compute_s if part == "computation" else phase.time_s - phase.compute_s
            if phase.name != name or seconds <= 0:
                continue
            start = ends[number]
            ends[number] = start + seconds * phase.count / size
            for key, value in zip(
                data,
                (number, start, ends[number], format_seconds(seconds * phase.count), phase.count),
                strict=True,
            ):
                data[key].append(value)
    return data


def _repeated_s(stage: StageContent) -> float:
    """Seconds of a micro-batch; of the step where it is one program."""
    several = [phase.time_s for phase in stage.phases if phase.count > 1]
    return sum(several or [phase.time_s for phase in stage.phases])
