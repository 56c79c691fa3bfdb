"""Plans as people look at them: tables, text and HTML of plain data."""

from stablehlo_alpa.view.part import Collective, Part, collectives, merged
from stablehlo_alpa.view.progress import Say, progress
from stablehlo_alpa.view.report import KINDS, Report, Shown, memory_text, mesh_text, solution_lines
from stablehlo_alpa.view.sheet import Column, Sheet

__all__ = [
    "KINDS",
    "Collective",
    "Column",
    "Part",
    "Report",
    "Say",
    "Sheet",
    "Shown",
    "collectives",
    "memory_text",
    "merged",
    "mesh_text",
    "progress",
    "solution_lines",
]
