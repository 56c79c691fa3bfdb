"""Pipelines: stages of layers on submeshes, the schedules that run them, and the plan of both."""

from stablehlo_alpa.inter_op.options import (
    AutoStages,
    ManualStages,
    StageOption,
    UniformStages,
)
from stablehlo_alpa.inter_op.planner import (
    Alternative,
    PipelineOptions,
    PlannedPipeline,
    plan_pipeline,
)
from stablehlo_alpa.inter_op.schedules import (
    KNOWN_SCHEDULES,
    Schedule,
    Task,
    TaskKind,
    check_schedule,
    gpipe,
    inference,
    interleaved,
    make_schedule,
    one_f_one_b,
    zero_bubble,
)
from stablehlo_alpa.inter_op.sweep import sweep

__all__ = [
    "KNOWN_SCHEDULES",
    "Alternative",
    "AutoStages",
    "ManualStages",
    "PipelineOptions",
    "PlannedPipeline",
    "Schedule",
    "StageOption",
    "Task",
    "TaskKind",
    "UniformStages",
    "check_schedule",
    "gpipe",
    "inference",
    "interleaved",
    "make_schedule",
    "one_f_one_b",
    "plan_pipeline",
    "sweep",
    "zero_bubble",
]
