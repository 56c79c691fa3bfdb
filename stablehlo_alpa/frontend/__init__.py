"""From a JAX function to StableHLO text and what the text does not say."""

from stablehlo_alpa.frontend import versions as versions
from stablehlo_alpa.frontend.argnums import positions
from stablehlo_alpa.frontend.batch_arguments import BatchArguments
from stablehlo_alpa.frontend.collection import paused_collection
from stablehlo_alpa.frontend.function import (
    Argument,
    Function,
    abstract,
    is_planned,
    name_of,
    planned_whole,
)
from stablehlo_alpa.frontend.kernel_blocks import link_kernels
from stablehlo_alpa.frontend.kernel_calls import Kernel, SeenThrough
from stablehlo_alpa.frontend.kernel_decorator import kernel
from stablehlo_alpa.frontend.rules import KernelRule, register_rule
from stablehlo_alpa.frontend.same_program import check_same_program
from stablehlo_alpa.frontend.stacks import Stacks, split_stacks
from stablehlo_alpa.frontend.state import state_pairs
from stablehlo_alpa.frontend.trace import check_supported, trace, trace_function
from stablehlo_alpa.frontend.traced_program import TracedProgram, TracedValue
from stablehlo_alpa.frontend.trip_counts import check_trip_count_hint

__all__ = [
    "Argument",
    "BatchArguments",
    "Function",
    "Kernel",
    "KernelRule",
    "SeenThrough",
    "Stacks",
    "TracedProgram",
    "TracedValue",
    "abstract",
    "check_same_program",
    "check_supported",
    "check_trip_count_hint",
    "is_planned",
    "kernel",
    "link_kernels",
    "name_of",
    "paused_collection",
    "planned_whole",
    "positions",
    "register_rule",
    "split_stacks",
    "state_pairs",
    "trace",
    "trace_function",
]
