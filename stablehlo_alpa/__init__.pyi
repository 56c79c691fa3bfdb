"""The public names, listed once: ``__init__.py`` reads them from here, type checkers too."""

from alpa_runtime import RuntimeOptions as RuntimeOptions
from alpa_runtime.ray import DistributedArray as DistributedArray
from alpa_runtime.ray import RayCluster as RayCluster
from alpa_runtime.ray import init as init
from alpa_runtime.ray import shutdown as shutdown

from stablehlo_alpa import data as data
from stablehlo_alpa import zoo as zoo
from stablehlo_alpa.api.checkpoint import save_checkpoint as save_checkpoint
from stablehlo_alpa.api.decorator import parallelize as parallelize
from stablehlo_alpa.api.methods import DataParallel as DataParallel
from stablehlo_alpa.api.methods import ExpertParallel as ExpertParallel
from stablehlo_alpa.api.methods import FollowParallel as FollowParallel
from stablehlo_alpa.api.methods import ManualSharding as ManualSharding
from stablehlo_alpa.api.methods import MegatronParallel as MegatronParallel
from stablehlo_alpa.api.methods import Method as Method
from stablehlo_alpa.api.methods import PipeshardParallel as PipeshardParallel
from stablehlo_alpa.api.methods import ShardParallel as ShardParallel
from stablehlo_alpa.api.methods import Zero2Parallel as Zero2Parallel
from stablehlo_alpa.api.methods import Zero3Parallel as Zero3Parallel
from stablehlo_alpa.api.parallelized import Parallelized as Parallelized
from stablehlo_alpa.api.stages import Compiled as Compiled
from stablehlo_alpa.api.stages import Lowered as Lowered
from stablehlo_alpa.cluster import PRESETS as PRESETS
from stablehlo_alpa.cluster import ClusterSpec as ClusterSpec
from stablehlo_alpa.cluster import DeviceSpec as DeviceSpec
from stablehlo_alpa.cluster import Link as Link
from stablehlo_alpa.cluster import LogicalMesh as LogicalMesh
from stablehlo_alpa.cluster import Overlap as Overlap
from stablehlo_alpa.cluster import Torus as Torus
from stablehlo_alpa.errors import ClusterError as ClusterError
from stablehlo_alpa.errors import CompileError as CompileError
from stablehlo_alpa.errors import CostError as CostError
from stablehlo_alpa.errors import InfeasibleError as InfeasibleError
from stablehlo_alpa.errors import MeshError as MeshError
from stablehlo_alpa.errors import ModelError as ModelError
from stablehlo_alpa.errors import ShardingError as ShardingError
from stablehlo_alpa.errors import SolverError as SolverError
from stablehlo_alpa.errors import StablehloAlpaError as StablehloAlpaError
from stablehlo_alpa.errors import TraceError as TraceError
from stablehlo_alpa.errors import WitnessError as WitnessError
from stablehlo_alpa.frontend.rules import KernelRule as KernelRule
from stablehlo_alpa.frontend.rules import register_rule as register_rule
from stablehlo_alpa.inter_op import AutoStages as AutoStages
from stablehlo_alpa.inter_op import ManualStages as ManualStages
from stablehlo_alpa.inter_op import OwnSchedule as OwnSchedule
from stablehlo_alpa.inter_op import Task as Task
from stablehlo_alpa.inter_op import TaskKind as TaskKind
from stablehlo_alpa.inter_op import UniformStages as UniformStages
from stablehlo_alpa.layers import AutoLayers as AutoLayers
from stablehlo_alpa.layers import FollowModuleLayers as FollowModuleLayers
from stablehlo_alpa.layers import ManualLayers as ManualLayers
from stablehlo_alpa.layers import grad as grad
from stablehlo_alpa.layers import layer_boundary as layer_boundary
from stablehlo_alpa.layers import value_and_grad as value_and_grad
from stablehlo_alpa.partitioner import partition as partition
from stablehlo_alpa.partitioner import shardings as shardings
from stablehlo_alpa.planning import Collective as Collective
from stablehlo_alpa.planning import Plan as Plan
from stablehlo_alpa.planning import SavedPlan as SavedPlan
from stablehlo_alpa.planning import SearchInterrupted as SearchInterrupted
from stablehlo_alpa.planning import read_plan as read_plan

__all__: list[str]
__version__: str
