"""Bars of the paper's figures beside ours, as SVG for docs/evaluation.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evaluation.ablations import figure_8, figure_9
from evaluation.cases import FAMILIES
from evaluation.cells import Cell
from evaluation.figure_7 import figure_7, slug
from evaluation.figures import Key, Published, published
from evaluation.inter import INTER_CELLS
from evaluation.intra import INTRA_FAMILIES
from evaluation.records import Record
from evaluation.searches import searched
from evaluation.wide_resnets import figure_11

# Okabe and Ito, told apart by the colour-blind.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")

# Inches.
_WIDTH, _HEIGHT = 9.0, 3.2

# Text stays text, and equal figures are equal files: no date, and ids that do not change.
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "evaluation",
    "font.size": 9,
}


def write_plots(records: Sequence[Record], folder: Path) -> list[Path]:
    """Writes a figure of each part that was planned.

    Args:
        records: of each candidate one.
        folder: where to.

    Returns:
        the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, cells in _plots(records, published()).items():
        if any(cell.ours is not None for cell in cells):
            written.append(folder / f"evaluation_{name}.svg")
            _save(_bars(cells), written[-1])
    times = searched(records, published())
    if any(ours is not None for _, ours, _ in times):
        written.append(folder / "evaluation_10.svg")
        _save(_times(times), written[-1])
    return written


def _plots(
    records: Sequence[Record], figures: Mapping[Key, Published]
) -> dict[str, Sequence[Cell]]:
    """By name of the file what it shows."""
    found: dict[str, Sequence[Cell]] = {}
    for family in FAMILIES.values():
        found[f"7_{slug(family.name)}"] = figure_7(family, records, figures)
    for name in INTRA_FAMILIES:
        found[f"8_{slug(name)}"] = figure_8(name, records, figures)
    found["9"] = [cell for name in INTER_CELLS for cell in figure_9(name, records, figures)]
    found["11"] = figure_11(records, figures)
    return found


def _bars(cells: Sequence[Cell]) -> Figure:
    """Groups of bars by model, the paper's pale behind ours, both of linear growth or of a group.

    Throughputs lie two orders of magnitude apart: what is drawn is PFLOP/s per device.
    """
    shown = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    axes = shown.subplots()
    systems = list(dict.fromkeys(cell.system_name for cell in cells))
    groups = list(dict.fromkeys((cell.paper.family, cell.devices) for cell in cells))
    width = 0.8 / len(systems)
    for number, system in enumerate(systems):
        own = [cell for cell in cells if cell.system_name == system]
        places = [
            groups.index((cell.paper.family, cell.devices)) + (number + 0.5) * width - 0.4
            for cell in own
        ]
        colour = _COLOURS[number % len(_COLOURS)]
        theirs = [1e3 * (cell.paper.value or 0.0) / cell.devices for cell in own]
        ours = [1e3 * (cell.ours or 0.0) / cell.devices for cell in own]
        axes.bar(places, theirs, 0.95 * width, color=colour, alpha=0.35)
        axes.bar(places, ours, 0.4 * width, color=colour, label=system)
        _mark_absent(axes, own, places)
    several = len({family for family, _ in groups}) > 1
    names = [f"{family}, {n}" if several else str(n) for family, n in groups]
    axes.set_xticks(range(len(groups)), names)
    axes.set_xlabel("devices; wide and pale: the paper, narrow: ours, predicted; ×: does not fit")
    axes.set_ylabel("TFLOP/s per device")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    _plain(axes)
    return shown


def _mark_absent(axes: Axes, cells: Sequence[Cell], places: Sequence[float]) -> None:
    """A cross where ours was planned and does not fit."""
    for cell, place in zip(cells, places, strict=True):
        if cell.record is not None and cell.ours is None:
            axes.plot(place, 0.0, "x", color="black", markersize=4, clip_on=False, zorder=3)


def _times(times: Sequence[tuple[int, float | None, float]]) -> Figure:
    """Seconds of searches."""
    shown = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    axes = shown.subplots()
    axes.plot(
        [devices for devices, _, _ in times],
        [theirs for _, _, theirs in times],
        "o--",
        color=_COLOURS[1],
        label="paper",
    )
    own = [(devices, ours) for devices, ours, _ in times if ours is not None]
    axes.plot([n for n, _ in own], [s for _, s in own], "o-", color=_COLOURS[0], label="ours")
    devices = [n for n, _, _ in times]
    axes.set_xscale("log", base=2)
    axes.set_xticks(devices, map(str, devices))
    axes.set_yscale("log")
    axes.set_xlabel("devices")
    axes.set_ylabel("search (s)")
    axes.legend(frameon=False)
    _plain(axes)
    return shown


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", linewidth=0.3)
    axes.set_axisbelow(True)


def _save(shown: Figure, path: Path) -> None:
    shown.set_facecolor("white")
    with rc_context(_SETTINGS):
        shown.savefig(path, format="svg", metadata={"Date": None})
