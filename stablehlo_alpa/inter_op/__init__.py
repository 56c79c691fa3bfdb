"""Pipelines: stages of layers on submeshes, the schedules that run them, and the plan of both."""

from stablehlo_alpa.inter_op.schedules import (
    Schedule,
    Task,
    TaskKind,
    gpipe,
    inference,
    interleaved,
    one_f_one_b,
    zero_bubble,
)

__all__ = [
    "Schedule",
    "Task",
    "TaskKind",
    "gpipe",
    "inference",
    "interleaved",
    "one_f_one_b",
    "zero_bubble",
]
