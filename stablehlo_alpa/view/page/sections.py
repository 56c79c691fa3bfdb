"""The sections of a page: which pictures and tables stand where, under which words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stablehlo_alpa.units import format_bytes, format_seconds
from stablehlo_alpa.view.page.content import ClusterContent, LinkContent, PageContent
from stablehlo_alpa.view.page.difference import (
    Quantity,
    operator_difference,
    quantities,
    tensor_difference,
)
from stablehlo_alpa.view.page.figures import (
    Figure,
    alternatives_figure,
    cluster_figure,
    communication_figure,
    held_figure,
    layers_figure,
    peaks_figure,
    seconds_figure,
    time_line_figure,
)
from stablehlo_alpa.view.page.tables import (
    Table,
    alternative_table,
    communication_table,
    module_table,
    operator_table,
    tensor_table,
)


@dataclass(frozen=True)
class Section:
    """A part of a page with a heading of its own.

    Attributes:
        anchor: one of the page.
        title: its heading.
        text: below the heading.
        figures: its pictures.
        tables: below them.
        quantities: of two plans.
    """

    anchor: str
    title: str
    text: str = ""
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    quantities: tuple[Quantity, ...] = ()


def facts(page: PageContent) -> tuple[tuple[str, str], ...]:
    """The head of a plan: what is said, and the value."""
    fits = "fits" if page.fits else "does not fit"
    fullest = page.fullest
    there = format_bytes(page.memory_bytes(fullest.mesh))
    rows = [
        ("model", page.model),
        ("cluster", page.cluster_text),
        ("method", page.method or "not known: planned from a module"),
        ("step", f"{format_seconds(page.step_s)} (predicted)"),
        ("memory per device", f"{format_bytes(fullest.peak_bytes)} of {there}: {fits}"),
        ("stages", str(len(page.stages))),
        ("micro-batches", str(page.num_micro_batches)),
    ]
    if len(page.stages) > 1:
        rows.append(("schedule", page.schedule))
    if page.recomputed:
        rows.append(("computed again", page.recomputed))
    if page.gap is not None:
        is_cut = page.bound_s is not None and len(page.stages) > 1
        what = "cut into stages" if is_cut else "shardings"
        gap = "proved optimal" if page.gap == 0 else f"the best is at most {page.gap:.2%} faster"
        # The search's measure leaves sends out: its bound is no bound of the step above.
        bound = f", by the search's measure {format_seconds(page.bound_s)}" if page.bound_s else ""
        rows.append((what, gap + bound))
    return tuple(rows)


def sections_of(page: PageContent, prefix: str) -> tuple[Section, ...]:
    """What is shown of a plan.

    Args:
        page: the plan.
        prefix: before all names, so that two plans can be on one page.
    """
    found = (
        Section("cluster", "Cluster", _links_text(page), (cluster_figure(page),)),
        Section(
            "layers",
            "Layers and stages",
            figures=_there(layers_figure(page), seconds_figure(page)),
            tables=(module_table(page),),
        ),
        _time_line(page),
        Section(
            "memory",
            "Memory",
            _memory_text(page),
            (peaks_figure(page), held_figure(page)),
        ),
        Section(
            "parameters",
            "Parameters",
            "Point at a row, or move to it by Tab, to see how its tensor is cut.",
            tables=(tensor_table(page),),
        ),
        Section(
            "communication",
            "Communication",
            "" if page.communication else "Nothing is communicated.",
            _there(communication_figure(page)),
            (communication_table(page),) if page.communication else (),
        ),
        Section(
            "alternatives",
            "Alternatives",
            "",
            _there(alternatives_figure(page)),
            (alternative_table(page),),
        ),
        Section("operators", "Operators", tables=(operator_table(page),)),
    )
    return tuple(_renamed(section, prefix) for section in found)


def difference_section(first: PageContent, second: PageContent) -> Section:
    """What differs between two plans."""
    return Section(
        "difference",
        "What differs",
        tables=(tensor_difference(first, second), operator_difference(first, second)),
        quantities=tuple(quantities(first, second)),
    )


def _there(*found: Figure | None) -> tuple[Figure, ...]:
    return tuple(one for one in found if one is not None)


def _memory_text(page: PageContent) -> str:
    sizes = [f"{format_bytes(part.memory_bytes)}" for part in page.parts]
    if len(sizes) == 1:
        return f"The dashed line is what a device has: {sizes[0]}."
    devices = ", ".join(
        f"{size} ({part.device})" for size, part in zip(sizes, page.parts, strict=True)
    )
    return f"Dashed lines are what devices have: {devices}."


def _links_text(page: PageContent) -> str:
    texts = [_part_text(part) for part in page.parts]
    if page.between is not None:
        texts.append(_link_text(page.between))
    return f"{'. '.join(texts)}."


def _part_text(part: ClusterContent) -> str:
    texts = [_link_text(one) for one in part.links]
    if part.torus:
        texts.insert(0, f"torus of {'x'.join(map(str, part.torus))}")
    if part.hosts_per_rack > 1:
        texts.insert(0, f"racks of {part.hosts_per_rack} hosts")
    return f"{part.text}; {'; '.join(texts)}"


def _link_text(one: LinkContent) -> str:
    return (
        f"{one.level} links: {one.bandwidth / 1e9:g} GB/s per {one.owner} and direction, "
        f"{format_seconds(one.alpha_s)} to start"
    )


def _time_line(page: PageContent) -> Section:
    """Predicted above measured, on axes of one length."""
    end_s = max([page.step_s, *(run.end_s for run in page.measured)])
    name, title = "time-line", "Time line, predicted"
    # Of nothing that takes time there is no picture.
    is_shown = any(run.end_s > run.start_s for run in page.runs)
    shown = [time_line_figure(page, page.runs, name, title, end_s)] if is_shown else []
    if page.measured:
        name, title = "time-line-measured", "Time line, measured"
        shown.append(time_line_figure(page, page.measured, name, title, end_s))
    return Section("time", "Time line", _idle_text(page), tuple(shown))


def _idle_text(page: PageContent) -> str:
    if not page.step_s:
        return "Nothing takes time."
    if page.num_meshes == 1:
        return ""
    idle = [page.stages[page.stages_of(mesh)[0]].idle for mesh in range(page.num_meshes)]
    return f"Meshes wait {min(idle):.0%} to {max(idle):.0%} of the step."


def _renamed(section: Section, prefix: str) -> Section:
    return replace(
        section,
        anchor=prefix + section.anchor,
        figures=tuple(replace(one, name=prefix + one.name) for one in section.figures),
        tables=tuple(replace(one, name=prefix + one.name) for one in section.tables),
    )


def stage_records(page: PageContent) -> Sequence[dict[str, object]]:
    """What a script needs to know of the meshes, to draw how a tensor is cut."""
    return [{"axes": stage.axes, "devices": stage.devices} for stage in page.stages]
