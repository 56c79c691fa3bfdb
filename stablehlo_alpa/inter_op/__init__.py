"""Pipelines: stages of layers on submeshes, the schedules that run them, and the plan of both."""

from stablehlo_alpa.inter_op.options import (
    AutoStages,
    ManualStages,
    PipelineOptions,
    ProfiledStages,
    StageOption,
    UniformStages,
)
from stablehlo_alpa.inter_op.planner import plan_pipeline
from stablehlo_alpa.inter_op.sweep import sweep
from stablehlo_alpa.inter_op.transfer import transfer_pipeline
from stablehlo_alpa.planning.asynchronous import pipedream, pipedream_2bw
from stablehlo_alpa.planning.dualpipe import dualpipe_v
from stablehlo_alpa.planning.ordering import make_schedule
from stablehlo_alpa.planning.own_schedule import OwnSchedule
from stablehlo_alpa.planning.schedules import (
    Schedule,
    ScheduleName,
    Task,
    TaskKind,
    gpipe,
    inference,
    interleaved,
    one_f_one_b,
    zero_bubble,
)

__all__ = [
    "AutoStages",
    "ManualStages",
    "OwnSchedule",
    "PipelineOptions",
    "ProfiledStages",
    "Schedule",
    "ScheduleName",
    "StageOption",
    "Task",
    "TaskKind",
    "UniformStages",
    "dualpipe_v",
    "gpipe",
    "inference",
    "interleaved",
    "make_schedule",
    "one_f_one_b",
    "pipedream",
    "pipedream_2bw",
    "plan_pipeline",
    "sweep",
    "transfer_pipeline",
    "zero_bubble",
]
