"""Plans, and the planner of one mesh: every logical mesh is priced, the best is lowered."""

from stablehlo_alpa.planning.baselines import Baseline, Baselines
from stablehlo_alpa.planning.boundary import Boundary
from stablehlo_alpa.planning.cut import Cut
from stablehlo_alpa.planning.explained_stages import ExplainedStages, Pinned, StagesRow
from stablehlo_alpa.planning.interruption import SearchInterrupted
from stablehlo_alpa.planning.mesh_search import PlanOptions
from stablehlo_alpa.planning.pins import Masks, masks
from stablehlo_alpa.planning.plan import Plan
from stablehlo_alpa.planning.plan_report import Alternative
from stablehlo_alpa.planning.planner import plan_program
from stablehlo_alpa.planning.prescription import (
    Confinement,
    Dimension,
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
from stablehlo_alpa.planning.saved_plan import SavedPlan, is_explained, read_plan
from stablehlo_alpa.planning.stage import PhaseProgram, PlannedStage
from stablehlo_alpa.view import Collective

__all__ = [
    "Alternative",
    "Baseline",
    "Baselines",
    "Boundary",
    "Collective",
    "Confinement",
    "Cut",
    "Dimension",
    "Exactly",
    "ExplainedStages",
    "Finest",
    "Masks",
    "Near",
    "PhaseProgram",
    "Pinned",
    "Plan",
    "PlanOptions",
    "PlannedStage",
    "Preferred",
    "Prescription",
    "Role",
    "SavedPlan",
    "SearchInterrupted",
    "SplitBatch",
    "StagesRow",
    "Whole",
    "Wish",
    "is_explained",
    "masks",
    "plan_program",
    "read_plan",
]
