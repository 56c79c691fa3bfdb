"""A plan on paper: summary, tables and remarks, as text and as HTML."""

from __future__ import annotations

import html
import math
import textwrap
from abc import ABC, abstractmethod
from dataclasses import dataclass

from stablehlo_alpa.cluster import PRESETS, DeviceSpec
from stablehlo_alpa.intra_op import Solution
from stablehlo_alpa.units import format_bytes, format_seconds
from stablehlo_alpa.view.folding import fold_remarks
from stablehlo_alpa.view.modules import module_sheet
from stablehlo_alpa.view.operators import communication_sheet, memory_sheet, operator_sheet
from stablehlo_alpa.view.parameters import parameter_sheet
from stablehlo_alpa.view.part import Part
from stablehlo_alpa.view.sheet import WIDTH, Sheet

KINDS = ("parameters", "modules", "operators", "communication", "memory")

# Rows of inputs that a printed plan shows before it refers to the table (heuristic: a screen),
# and the fewest of each of many parts.
_SHOWN_INPUTS = 60
_FEWEST_INPUTS = 8

# Parts of a step that are less of it are not shown (heuristic).
_LEAST_SHARE = 1e-4

# XLA takes that much of a GPU unless it is told otherwise (JAX, "GPU memory allocation").
_XLA_TAKES, _GPUS = 0.75, ("cuda", "rocm")


@dataclass(frozen=True, eq=False)
class Report:
    """What is shown of a plan.

    Attributes:
        heading: what is planned for what.
        brief: the plan in a few words.
        lines: the summary below the heading.
        parts: its programs.
        first: tables of the whole, e.g. of the stages.
        remarks: what the user should know.
    """

    heading: str
    brief: str
    lines: tuple[str, ...]
    parts: tuple[Part, ...]
    first: tuple[Sheet, ...] = ()
    remarks: tuple[str, ...] = ()

    def sheet(self, kind: str, limit: int | None = None) -> Sheet:
        """One of the tables.

        Args:
            kind: one of ``KINDS``.
            limit: rows at most, where there may be many.

        Raises:
            ValueError: there is no such table.
        """
        match kind:
            case "parameters":
                return parameter_sheet(self.parts, limit=limit)
            case "modules":
                return module_sheet(self.parts)
            case "operators":
                return operator_sheet(self.parts, limit)
            case "communication":
                return communication_sheet(self.parts)
            case "memory":
                return memory_sheet(self.parts, limit)
        raise ValueError(f"table is {kind!r}, must be one of {', '.join(KINDS)}")

    @property
    def sheets(self) -> tuple[Sheet, ...]:
        """The tables of a printed plan."""
        return (
            *self.first,
            parameter_sheet(self.parts, is_short=True, limit=self._shown_inputs),
            module_sheet(self.parts),
            communication_sheet(self.parts),
        )

    @property
    def _shown_inputs(self) -> int:
        """Rows per part."""
        return max(_SHOWN_INPUTS // max(len(self.parts), 1), _FEWEST_INPUTS)

    @property
    def summary(self) -> str:
        """Heading, seconds, memory, and how many remarks there are."""
        count = len(fold_remarks(self.remarks))
        noted = [f"{count} remark{'s' if count > 1 else ''}, in .remarks"] if count else []
        return "\n".join([self.heading, *self.lines, *noted])

    def text(self) -> str:
        """The whole plan."""
        blocks = [self.heading, *(sheet.text() for sheet in self.sheets)]
        blocks.append("\n".join([*self.lines, *map(_remark_text, fold_remarks(self.remarks))]))
        return "\n\n".join(blocks)

    def html(self) -> str:
        """The whole plan as an HTML element."""
        tables = "".join(sheet.html() for sheet in self.sheets)
        lines = "".join(f"<p>{html.escape(line)}</p>" for line in self.lines)
        items = "".join(f"<li>{html.escape(remark)}</li>" for remark in fold_remarks(self.remarks))
        remarks = f"<p>remarks</p><ul>{items}</ul>" if items else ""
        return f"<div><h4>{html.escape(self.heading)}</h4>{lines}{tables}{remarks}</div>"


class Shown(ABC):
    """A plan that can be looked at."""

    @abstractmethod
    def report(self) -> Report:
        """What is shown of it."""

    def table(self, kind: str = "operators", limit: int | None = None) -> Sheet:
        """A table of the plan, to be printed; ``records`` of it holds the numbers.

        Args:
            kind: ``"parameters"``, ``"modules"``, ``"operators"``, ``"communication"`` or
                ``"memory"``.
            limit: rows at most, those that take longest or most; None for all.

        Raises:
            ValueError: there is no such table.
        """
        return self.report().sheet(kind, limit)

    def summary(self) -> str:
        """The plan in a few lines."""
        return self.report().summary

    def __str__(self) -> str:
        return self.report().text()

    def __repr__(self) -> str:
        return f"<{self.report().brief}>"

    def _repr_html_(self) -> str:
        return self.report().html()


def solution_lines(part: Part, step_time_s: float) -> tuple[str, ...]:
    """Seconds, proof and memory of a plan on one mesh.

    Args:
        part: the plan.
        step_time_s: predicted seconds of a step.
    """
    solution, step = part.solution, format_seconds(step_time_s)
    parts = {
        "compute": solution.compute_s,
        "collectives": solution.communication_s,
        "resharding": solution.reshard_s,
    }
    least_s = _LEAST_SHARE * sum(parts.values())
    shown = {what: seconds for what, seconds in parts.items() if seconds >= least_s}
    split = ", ".join(f"{what} {format_seconds(seconds)}" for what, seconds in shown.items())
    # Several programs are priced by themselves, and are less, or more, than their operators.
    is_sum = math.isclose(step_time_s, solution.objective_s)
    lines = [
        f"step {step}: {split} (predicted)" if is_sum else f"step {step} (predicted)",
        *([] if is_sum else [f"operators by themselves: {split}"]),
        f"solved by {solution.method}: {_proved(solution)}",
        memory_text(part.peak_bytes, part.device),
    ]
    if solution.memory_price_s:
        saved = format_seconds(solution.memory_price_s * 2**30)
        lines.append(
            f"the memory budget binds: one more GiB per device would save {saved} per step"
        )
    return tuple(lines)


def memory_text(peak_bytes: float, device: DeviceSpec) -> str:
    """``memory 6.1 GiB of 80 GiB per device at the peak: fits``.

    Of a whole GPU that needs more than XLA takes of it, the setting is named that gives it more.

    Args:
        peak_bytes: per device.
        device: what the devices are.
    """
    share = peak_bytes / device.memory_bytes
    fits = "fits" if share <= 1 else "does not fit"
    if device.platform in _GPUS and device == PRESETS.get(device.name) and _XLA_TAKES < share <= 1:
        fits += f", with XLA_CLIENT_MEM_FRACTION={math.ceil(100 * share) / 100}"
    needed, there = format_bytes(peak_bytes), format_bytes(device.memory_bytes)
    return f"memory {needed} of {there} per device at the peak: {fits}"


def mesh_text(part: Part) -> str:
    """``8 x h100-80gb, mesh x=2 y=4``."""
    shape = " ".join(f"{name}={size}" for name, size in part.mesh.axes)
    return f"{part.mesh.num_devices} x {part.device.name}, mesh {shape or 'one device'}"


def _remark_text(remark: str) -> str:
    lines = textwrap.wrap(
        f"remark: {remark}",
        WIDTH,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines)


def _proved(solution: Solution) -> str:
    if solution.status == "optimal":
        return "optimal"
    reason = "stopped by the time limit, " if solution.status == "time limit" else ""
    return f"{reason}at most {solution.gap:.2g} of the seconds above the optimum"
