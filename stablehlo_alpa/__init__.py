"""Automatic parallelisation of JAX functions and StableHLO programs.

>>> import stablehlo_alpa
>>> @stablehlo_alpa.parallelize
... def train_step(state, batch): ...

Names are imported when they are first used: the solver takes longer to import than jax.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from alpa_runtime import RuntimeOptions
    from alpa_runtime.ray import DistributedArray, RayCluster, init, shutdown

    from stablehlo_alpa import data
    from stablehlo_alpa.api import (
        Compiled,
        DataParallel,
        FollowParallel,
        Lowered,
        ManualSharding,
        Method,
        Parallelized,
        PipeshardParallel,
        ShardParallel,
        Zero2Parallel,
        Zero3Parallel,
        parallelize,
        save_checkpoint,
    )
    from stablehlo_alpa.cluster import PRESETS, ClusterSpec, DeviceSpec, LogicalMesh
    from stablehlo_alpa.errors import (
        ClusterError,
        CompileError,
        CostError,
        InfeasibleError,
        MeshError,
        ShardingError,
        SolverError,
        StablehloAlpaError,
        TraceError,
    )
    from stablehlo_alpa.inter_op import AutoStages, ManualStages, PlannedPipeline, UniformStages
    from stablehlo_alpa.layers import (
        AutoLayers,
        FollowModuleLayers,
        ManualLayers,
        grad,
        layer_boundary,
        value_and_grad,
    )
    from stablehlo_alpa.partitioner import partition, shardings
    from stablehlo_alpa.planning import Collective, Plan

_MODULES = {
    "alpa_runtime": ("RuntimeOptions",),
    "alpa_runtime.ray": ("DistributedArray", "RayCluster", "init", "shutdown"),
    "stablehlo_alpa.api": (
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
    ),
    "stablehlo_alpa.cluster": ("PRESETS", "ClusterSpec", "DeviceSpec", "LogicalMesh"),
    "stablehlo_alpa.errors": (
        "ClusterError",
        "CompileError",
        "CostError",
        "InfeasibleError",
        "MeshError",
        "ShardingError",
        "SolverError",
        "StablehloAlpaError",
        "TraceError",
    ),
    "stablehlo_alpa.inter_op": (
        "AutoStages",
        "ManualStages",
        "PlannedPipeline",
        "UniformStages",
    ),
    "stablehlo_alpa.layers": (
        "AutoLayers",
        "FollowModuleLayers",
        "ManualLayers",
        "grad",
        "layer_boundary",
        "value_and_grad",
    ),
    "stablehlo_alpa.partitioner": ("partition", "shardings"),
    "stablehlo_alpa.planning": ("Collective", "Plan"),
}

_SUBMODULES = ("data",)

__all__ = [
    "PRESETS",
    "AutoLayers",
    "AutoStages",
    "ClusterError",
    "ClusterSpec",
    "Collective",
    "CompileError",
    "Compiled",
    "CostError",
    "DataParallel",
    "DeviceSpec",
    "DistributedArray",
    "FollowModuleLayers",
    "FollowParallel",
    "InfeasibleError",
    "LogicalMesh",
    "Lowered",
    "ManualLayers",
    "ManualSharding",
    "ManualStages",
    "MeshError",
    "Method",
    "Parallelized",
    "PipeshardParallel",
    "Plan",
    "PlannedPipeline",
    "RayCluster",
    "RuntimeOptions",
    "ShardParallel",
    "ShardingError",
    "SolverError",
    "StablehloAlpaError",
    "TraceError",
    "UniformStages",
    "Zero2Parallel",
    "Zero3Parallel",
    "data",
    "grad",
    "init",
    "layer_boundary",
    "parallelize",
    "partition",
    "save_checkpoint",
    "shardings",
    "shutdown",
    "value_and_grad",
]


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
