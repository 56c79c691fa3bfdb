"""XLA's compilers for accelerators as witness of plans; no accelerator has to be there."""

from stablehlo_alpa.errors import WitnessError
from stablehlo_alpa.witness.collective import Collective, Kind, sent_bytes
from stablehlo_alpa.witness.examination import Examination, examine, runs_of
from stablehlo_alpa.witness.hlo_collectives import collectives
from stablehlo_alpa.witness.hlo_text import HloError
from stablehlo_alpa.witness.targets import TARGETS, Target, target_named

__all__ = [
    "TARGETS",
    "Collective",
    "Examination",
    "HloError",
    "Kind",
    "Target",
    "WitnessError",
    "collectives",
    "examine",
    "runs_of",
    "sent_bytes",
    "target_named",
]
