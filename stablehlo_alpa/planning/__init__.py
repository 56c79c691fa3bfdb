"""From a traced function to a plan: price every logical mesh, solve, lower the best."""

from stablehlo_alpa.planning.pins import Boundary, Masks, masks
from stablehlo_alpa.planning.plan import Plan
from stablehlo_alpa.planning.planner import PlanOptions, plan_program
from stablehlo_alpa.planning.prescription import (
    Exactly,
    Finest,
    Near,
    Preferred,
    Prescription,
    Role,
    SplitBatch,
    Whole,
    Wish,
)
from stablehlo_alpa.view import Collective

__all__ = [
    "Boundary",
    "Collective",
    "Exactly",
    "Finest",
    "Masks",
    "Near",
    "Plan",
    "PlanOptions",
    "Preferred",
    "Prescription",
    "Role",
    "SplitBatch",
    "Whole",
    "Wish",
    "masks",
    "plan_program",
]
