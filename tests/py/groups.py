"""What the suite checks, in groups: printed when it is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

GROUPS: dict[str, tuple[str, ...]] = {
    "results equal plain jax.jit": (
        *("models", "optimised", "random_plans", "random_programs", "random_step_plans"),
        *("methods", "megatron", "expert_parallel", "manual_sharding", "drawn", "export"),
        *("partition", "partition_models", "fidelity_model", "donation", "small_values"),
        *("gathered_values", "padded_sizes", "cut_dimensions", "whole_operators"),
        *("ordered", "windows", "random_operators", "split_slices", "moved_blocks"),
        *("matrix_kernels", "partitioned_kernels", "kernel_places"),
        *("ragged_products", "ragged_exchanges", "negative_padding"),
        *("product_rings", "attention", "attention_methods", "compiler_options"),
    ),
    "pipelines and micro-batches equal the whole batch": (
        *("pipeline", "pipeline_matrix", "forward_pipelines", "stage_methods"),
        *(
            "micro_batches",
            "narrow_ranges",
            "several_gradients",
            "sorted_rows",
            "differentiated",
            "compared_again",
            "second_pass",
            "inner_steps",
            "accumulation_loops",
        ),
        *("reordered_batches", "meeting_examples", "batch_capacities", "beside_gradients"),
        *("independent_micro_batches", "lockstep_loops", "example_loops", "recomputation"),
        *("layers", "layer_parts", "likeness", "schedules", "own_schedules"),
        *("asynchronous", "blocks", "called_blocks", "stacks", "stack_parts", "stack_operations"),
    ),
    "searches against brute force": (
        *("exact", "exact_models", "ilp", "stage_search", "stage_bounds", "least_memory", "rising"),
        *("known_plans", "memory", "loop_sums", "explained_stages", "baselines"),
        *("schedule_trials", "unlike_search", "forecast", "counted_work", "mesh_search"),
        *("fitting", "transfer_waits", "exhaustive_search"),
    ),
    "prices, clusters, compilers as witness": (
        *("cost", "calibration", "clusters", "work", "witness", "hlo", "platforms", "zoo"),
        *("tpu_kernels", "tpu_memory", "gpu_memory"),
        *("stage_seconds", "trip_counts", "profiled_stages", "devices_at_hand", "unlike_clusters"),
        *("scanned_costs",),
    ),
    "modules: rules, reshards, border to jax": (
        *(
            "rules",
            "reshards",
            "roundtrip",
            "constants",
            "dimensions",
            "inlining",
            "transposed_products",
            "frontend",
        ),
        *("core_fuzz", "dialect_fuzz", "upstream_verifier", "threads", "embedding"),
        *("known_kernels", "attention_kernels", "parsed_modules"),
    ),
    "parallelize, as a user calls it": (
        *(
            "api",
            "front_door",
            "signature",
            "constraints",
            "shard_map",
            "talking",
            "checks",
            "errors",
            "option_checks",
        ),
        *("call_state", "data", "interruption", "varying_sizes", "kept_plans", "store"),
    ),
    "running: plans, transports, faults, Ray": (
        *("runtime", "executable", "plan", "saved_plan", "one_plan", "simulate", "cross_mesh"),
        *("transport", "tcp", "direct", "feeding", "faults", "ray", "ray_nodes", "session"),
        *("checkpoint", "fetched", "host_memory"),
    ),
    "what is shown: command line, pages, tables": (
        *("command_line", "plan_commands", "page", "page_browser", "view", "paper"),
    ),
    "documentation, examples, house": (
        *("docs", "site", "notebooks", "examples", "layering", "groups", "cases"),
    ),
}
OTHERS = "others"
WAITING = (
    "running: plans, transports, faults, Ray",
    "documentation, examples, house",
)
"""Groups of tests that start processes and wait for them: they leave a core to others."""
_GROUP_OF = {f"test_{stem}": group for group, stems in GROUPS.items() for stem in stems}
_OUTCOMES = ("passed", "failed", "skipped")


def group_of(node: str) -> str:
    """The group of a test, by the name of its file."""
    stem = node.split("::")[0].rsplit("/", 1)[-1].removesuffix(".py")
    return _GROUP_OF.get(stem, OTHERS)


def table(outcomes: Mapping[str, Iterable[tuple[str, float]]]) -> list[str]:
    """Lines that say how many tests of each group passed, and how long they took.

    Args:
        outcomes: "passed", "failed" or "skipped" -> test and seconds of each.
    """
    counts: Counter[tuple[str, str]] = Counter()
    seconds = dict.fromkeys((*GROUPS, OTHERS), 0.0)
    for outcome, tests in outcomes.items():
        for node, spent in tests:
            counts[group_of(node), outcome] += 1
            seconds[group_of(node)] += spent
    width = max(map(len, (*GROUPS, OTHERS)))
    lines = [f"{'':{width}}" + "".join(f"{name:>9}" for name in (*_OUTCOMES, "seconds"))]
    for group in (*GROUPS, OTHERS):
        numbers = [counts[group, outcome] for outcome in _OUTCOMES]
        if any(numbers):
            cells = "".join(f"{number or '':>9}" for number in numbers)
            lines.append(f"{group:{width}}{cells}{seconds[group]:9.0f}")
    return lines
