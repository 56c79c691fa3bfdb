"""Executes plans: per-device programs on meshes of devices.

This package needs jax and numpy only. It never imports the compiler (``stablehlo_alpa``), so a plan
made on one machine runs on another that has nothing of the compiler installed.
"""

from alpa_runtime.analysis import MemoryStats
from alpa_runtime.check import check
from alpa_runtime.cpu_pool import ensure_cpu_pool
from alpa_runtime.errors import (
    ClusterError,
    InputError,
    ProgramError,
    RuntimeMeshError,
    StablehloAlpaError,
    TransportError,
)
from alpa_runtime.executable import Executable, RuntimeOptions
from alpa_runtime.held import Held
from alpa_runtime.local_executable import LocalExecutable, compile_spmd
from alpa_runtime.plan import Plan
from alpa_runtime.plan_file import PLAN_VERSION, load, read_member, save
from alpa_runtime.program import SpmdProgram, ValueSpec
from alpa_runtime.resharding import Piece, Resharding
from alpa_runtime.simulate import Simulation, simulate
from alpa_runtime.stacked_executable import StackedExecutable, stacked
from alpa_runtime.stacked_signature import STACKS_MEMBER, StackedSignature
from alpa_runtime.stacks import Stack, StackedArray
from alpa_runtime.torus_order import in_torus_order
from alpa_runtime.tracing import Event, read_trace, write_trace

__all__ = [
    "PLAN_VERSION",
    "STACKS_MEMBER",
    "ClusterError",
    "Event",
    "Executable",
    "Held",
    "InputError",
    "LocalExecutable",
    "MemoryStats",
    "Piece",
    "Plan",
    "ProgramError",
    "Resharding",
    "RuntimeMeshError",
    "RuntimeOptions",
    "Simulation",
    "SpmdProgram",
    "StablehloAlpaError",
    "Stack",
    "StackedArray",
    "StackedExecutable",
    "StackedSignature",
    "TransportError",
    "ValueSpec",
    "check",
    "compile_spmd",
    "ensure_cpu_pool",
    "in_torus_order",
    "load",
    "read_member",
    "read_trace",
    "save",
    "simulate",
    "stacked",
    "write_trace",
]
