"""How a function is to be parallelised: frozen descriptions, validated when made."""

from stablehlo_alpa.api.methods.data_parallel import DataParallel, Zero2Parallel, Zero3Parallel
from stablehlo_alpa.api.methods.expert import ExpertParallel
from stablehlo_alpa.api.methods.follow import FollowedMesh, FollowParallel
from stablehlo_alpa.api.methods.manual import ManualSharding
from stablehlo_alpa.api.methods.megatron import MegatronParallel
from stablehlo_alpa.api.methods.method import Method, ShardParallel, mesh_size
from stablehlo_alpa.api.methods.pipeline import PipeshardParallel

__all__ = [
    "DataParallel",
    "ExpertParallel",
    "FollowParallel",
    "FollowedMesh",
    "ManualSharding",
    "MegatronParallel",
    "Method",
    "PipeshardParallel",
    "ShardParallel",
    "Zero2Parallel",
    "Zero3Parallel",
    "mesh_size",
]
