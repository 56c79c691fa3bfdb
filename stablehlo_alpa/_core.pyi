"""The compiler: passes on StableHLO text, strategy graphs as numpy arrays."""

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

class CompilerError(ValueError):
    """A module or pipeline that the compiler refuses, with its diagnostics."""

def run_pipeline(
    text: str, pipeline: str, generic: bool = True, locations: bool = True
) -> tuple[str, list[str]]: ...

class Module:
    """A module that stays parsed; what is done to it and said of it takes turns."""

    def __init__(self, text: str) -> None: ...
    def clone(self) -> Module: ...
    def run(self, pipeline: str) -> list[str]: ...
    def text(self, generic: bool = True, locations: bool = True) -> str: ...
    def submodules(self) -> dict[str, Module]: ...

def strategy_graph(
    module: str | Module, mesh: Sequence[tuple[str, int]], platform: str = ""
) -> dict[str, Any]: ...
def communication(module: str | Module) -> dict[str, Any]: ...
def product_rings(module: str | Module) -> dict[str, Any]: ...
def memory(
    module: str | Module, donated: Sequence[int] = (), platform: str = ""
) -> dict[str, Any]: ...
def signature(module: str | Module) -> dict[str, Any]: ...
def boundary_rule(module: str | Module) -> dict[str, Any]: ...
def work(module: str | Module, platform: str = "") -> dict[str, Any]: ...
def stage_sums(
    firsts: npt.ArrayLike,
    lasts: npt.ArrayLike,
    sizes: npt.ArrayLike,
    limits: npt.ArrayLike,
    times: npt.ArrayLike,
    num_layers: int,
    num_devices: int,
    most_stages: int,
    bound: float,
    lows: npt.ArrayLike,
    highs: npt.ArrayLike,
) -> npt.NDArray[Any]: ...
def unlike_stage_sums(
    firsts: npt.ArrayLike,
    lasts: npt.ArrayLike,
    sizes: npt.ArrayLike,
    limits: npt.ArrayLike,
    times: npt.ArrayLike,
    parts: npt.ArrayLike,
    sources: npt.ArrayLike,
    num_layers: int,
    device_counts: npt.ArrayLike,
    most_stages: int,
) -> npt.NDArray[Any]: ...

class SolverCache:
    """Tables that several calls of `minimize` share."""

def minimize(
    sizes: npt.ArrayLike,
    node_costs: npt.ArrayLike,
    edge_nodes: npt.ArrayLike,
    edge_costs: npt.ArrayLike,
    cache: SolverCache | None = None,
    time_limit_s: float = 1e9,
    max_effort: int | None = None,
    max_table: int | None = None,
    max_work: int | None = None,
    small_table: int | None = None,
    max_branches: int | None = None,
    max_sweeps: int | None = None,
) -> dict[str, Any]: ...
def drop_choices(
    sizes: npt.ArrayLike,
    node_costs: npt.ArrayLike,
    edge_nodes: npt.ArrayLike,
    edge_costs: npt.ArrayLike,
    cutoff: float,
    num_sweeps: int,
) -> dict[str, Any]: ...
