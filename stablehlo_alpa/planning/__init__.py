"""From a traced function to a plan: price every logical mesh, solve, lower the best."""

from stablehlo_alpa.planning.pins import Pins, no_pins, pin_mask, pinned_axes
from stablehlo_alpa.planning.plan import Collective, Plan
from stablehlo_alpa.planning.planner import PlanOptions, plan_program

__all__ = [
    "Collective",
    "Pins",
    "Plan",
    "PlanOptions",
    "no_pins",
    "pin_mask",
    "pinned_axes",
    "plan_program",
]
