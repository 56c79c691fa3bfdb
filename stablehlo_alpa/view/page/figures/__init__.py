"""The pictures of a page, by bokeh."""

from stablehlo_alpa.view.page.figures.frame import Figure
from stablehlo_alpa.view.page.figures.memory import held_figure, peaks_figure
from stablehlo_alpa.view.page.figures.places import cluster_figure, layers_figure, seconds_figure
from stablehlo_alpa.view.page.figures.time_line import time_line_figure
from stablehlo_alpa.view.page.figures.traffic import alternatives_figure, communication_figure

__all__ = [
    "Figure",
    "alternatives_figure",
    "cluster_figure",
    "communication_figure",
    "held_figure",
    "layers_figure",
    "peaks_figure",
    "seconds_figure",
    "time_line_figure",
]
