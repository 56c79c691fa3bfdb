"""A plan as one figure for notebooks and papers, by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stablehlo_alpa.view.page.content import MEMORY_KINDS, HeldContent, PageContent
from stablehlo_alpa.view.page.palette import RED, colour, phase_colour
from stablehlo_alpa.view.page.runs import blocks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches: a page's width, the height of a row, and of what stands around the rows.
_WIDTH = 9.0
_ROW = 0.22
_AROUND = 1.2
_MOST_BLOCKS = 20000
_GIB = 2.0**30


def plot_page(page: PageContent) -> Figure:
    """The time line of a step above the memory of every mesh at its fullest moment.

    The figure is of no window: it is shown by a notebook, or saved.

    Args:
        page: the plan.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
    """
    try:
        from stablehlo_alpa.view.shown_figure import ShownFigure
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"a figure of a plan needs {error.name}, which is not installed: "
            "pip install 'stablehlo-alpa[view]'",
            name=error.name,
        ) from error
    height = 2 * (_AROUND + _ROW * page.num_meshes)
    shown = ShownFigure(figsize=(_WIDTH, height), layout="constrained")
    above, below = shown.subplots(2, 1)
    shown.suptitle(f"{page.model} on {page.cluster_text}")
    _draw_time_line(above, page)
    _draw_memory(below, page)
    rows = [page.mesh_name(mesh) for mesh in range(page.num_meshes)]
    for axes in (above, below):
        axes.set_yticks(range(len(rows)), rows)
        axes.invert_yaxis()
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")
    return shown


def _draw_time_line(axes: Axes, page: PageContent) -> None:
    by_phase: dict[str, dict[int, list[tuple[float, float]]]] = {}
    for block in blocks(page.runs, _MOST_BLOCKS):
        spans = by_phase.setdefault(block.phase, {}).setdefault(block.mesh, [])
        spans.append((block.start_s, block.end_s - block.start_s))
    for phase, meshes in by_phase.items():
        for place, (mesh, spans) in enumerate(meshes.items()):
            axes.broken_barh(
                spans,
                (mesh - 0.4, 0.8),
                facecolors=phase_colour(phase),
                edgecolors="white",
                linewidth=0.2,
                label="_" * bool(place) + phase,
            )
    axes.set_xlim(0, page.step_s or 1.0)
    axes.set_xlabel("time (s), predicted")


def _draw_memory(axes: Axes, page: PageContent) -> None:
    nothing = HeldContent(0.0, 0.0, (0.0,) * len(MEMORY_KINDS))
    peaks = [max(own, key=lambda one: sum(one.bytes), default=nothing) for own in page.held]
    held = [0.0] * len(peaks)
    for number, kind in enumerate(MEMORY_KINDS):
        sizes = [peak.bytes[number] / _GIB for peak in peaks]
        if any(sizes):
            rows = range(len(peaks))
            axes.barh(rows, sizes, 0.8, held, color=colour(number), label=kind)
            held = [end + size for end, size in zip(held, sizes, strict=True)]
    there = [page.memory_bytes(mesh) / _GIB for mesh in range(page.num_meshes)]
    if len(set(there)) == 1:
        axes.axvline(there[0], color=RED, linestyle="--", label="there is")
    else:
        above, below = ([mesh + side for mesh in range(page.num_meshes)] for side in (-0.5, 0.5))
        axes.vlines(there, above, below, color=RED, linestyle="--", label="there is")
    axes.set_xlim(0, 1.03 * max(*there, *held))
    axes.set_xlabel("memory per device at the fullest moment (GiB)")
