"""Intra-operator planning: one strategy per operator, by integer linear programming."""

from stablehlo_alpa._core import SolverCache
from stablehlo_alpa.cost.strategy_graph import StrategyGraph
from stablehlo_alpa.intra_op.carried import CarriedStrategies, solve_carried
from stablehlo_alpa.intra_op.diff import Difference, diff
from stablehlo_alpa.intra_op.explain import Explanation, explain
from stablehlo_alpa.intra_op.in_flight import StageMemory, in_pipeline
from stablehlo_alpa.intra_op.kept import solve
from stablehlo_alpa.intra_op.lagrangian import check_undercuts
from stablehlo_alpa.intra_op.memory import MemoryModel
from stablehlo_alpa.intra_op.proving import lower_bound
from stablehlo_alpa.intra_op.refusal import refusal
from stablehlo_alpa.intra_op.seconds import Seconds
from stablehlo_alpa.intra_op.solution import Solution, SolveOptions
from stablehlo_alpa.intra_op.strategy_table import StrategyTable

__all__ = [
    "CarriedStrategies",
    "Difference",
    "Explanation",
    "MemoryModel",
    "Seconds",
    "Solution",
    "SolveOptions",
    "SolverCache",
    "StageMemory",
    "StrategyGraph",
    "StrategyTable",
    "check_undercuts",
    "diff",
    "explain",
    "in_pipeline",
    "lower_bound",
    "refusal",
    "solve",
    "solve_carried",
]
