"""The front door: ``parallelize`` and the methods it takes."""

from stablehlo_alpa.api.checkpoint import save_checkpoint
from stablehlo_alpa.api.decorator import parallelize
from stablehlo_alpa.api.methods import (
    DataParallel,
    FollowParallel,
    ManualSharding,
    Method,
    PipeshardParallel,
    ShardParallel,
    Zero2Parallel,
    Zero3Parallel,
)
from stablehlo_alpa.api.parallelized import Parallelized
from stablehlo_alpa.api.stages import Compiled, Lowered

__all__ = [
    "Compiled",
    "DataParallel",
    "FollowParallel",
    "Lowered",
    "ManualSharding",
    "Method",
    "Parallelized",
    "PipeshardParallel",
    "ShardParallel",
    "Zero2Parallel",
    "Zero3Parallel",
    "parallelize",
    "save_checkpoint",
]
