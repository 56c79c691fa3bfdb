"""Which layers run together, on which devices."""

from __future__ import annotations

import logging
from dataclasses import replace

from stablehlo_alpa.cluster import Cluster, cluster_text
from stablehlo_alpa.errors import InfeasibleError, StageError
from stablehlo_alpa.inter_op.layer_parts import LayerParts
from stablehlo_alpa.inter_op.options import (
    AutoStages,
    ManualStages,
    PipelineOptions,
    StageAssignment,
    UniformStages,
    manual,
    uniform,
)
from stablehlo_alpa.inter_op.pipeline_search import FoundStages, PipelineSearch, SearchLimits
from stablehlo_alpa.inter_op.slicing import LayeredStep
from stablehlo_alpa.inter_op.stage_bounds import StageBounds
from stablehlo_alpa.inter_op.stage_pricing import StagePricing
from stablehlo_alpa.inter_op.submeshes import Submesh
from stablehlo_alpa.inter_op.transfer_waits import TransferWaits
from stablehlo_alpa.intra_op import SolveOptions
from stablehlo_alpa.planning.cut import parts_of
from stablehlo_alpa.planning.ordering import usual_meshes
from stablehlo_alpa.planning.refusals import lack, lacking
from stablehlo_alpa.planning.schedules import ScheduleName
from stablehlo_alpa.view import Say

_log = logging.getLogger(__name__)

# A stage that the search solves under a tight memory budget is good enough within this part, and
# after these seconds (heuristics).
_STAGE_GAP = 1e-2
_STAGE_LIMIT_S = 60.0

# What mends a stage that does not fit.
ADVICE = (
    "more micro-batches, remat=True of the layers (tried by default where gradients are taken by "
    "stablehlo_alpa.grad or value_and_grad), a larger submesh for the stage, or more devices take "
    "less memory per device"
)

# Why a step is one layer, whatever is asked for.
WHY_UNCUT = (
    "the gradients of {} are taken by jax, behind which layers are found only where they are taken "
    "once, and in no loop: take them by stablehlo_alpa.grad or value_and_grad"
)


def assign(
    layered: LayeredStep, options: PipelineOptions, say: Say = _log.debug
) -> StageAssignment:
    """Stages of a step as the options want them; ``say`` is told what is being done.

    Raises:
        ValueError: stages, layers, meshes or chunks do not fit each other.
        InfeasibleError: no partition fits the devices' memory.
    """
    match options.stages:
        case UniformStages():
            _check_cut(layered, options.stages.num_stages)
            meshes = _usual_meshes(options, options.stages.num_stages)
            return uniform(options.stages, layered.num_layers, options.cluster, meshes)
        case ManualStages():
            _check_cut(layered, len(options.stages.layers))
            meshes = options.stages.meshes or _usual_meshes(options, len(options.stages.layers))
            return manual(options.stages, layered.num_layers, options.cluster, meshes)
        case AutoStages():
            return search(layered, options, say)
    raise TypeError(
        f"stages must be AutoStages(), UniformStages(...) or ManualStages(...), got "
        f"{options.stages!r}"
    )


def _check_cut(layered: LayeredStep, num_stages: int) -> None:
    """Refuses stages of a step in which no layers were found."""
    if layered.is_uncut and num_stages > 1:
        raise StageError(
            f"{num_stages} stages need as many layers, the model has 1: "
            + WHY_UNCUT.format(layered.name)
        )


def _usual_meshes(options: PipelineOptions, num_stages: int) -> tuple[int, ...]:
    return usual_meshes(options.schedule, num_stages, options.num_chunks)


def stage_options(options: SolveOptions, budget: float) -> SolveOptions:
    """How the search solves a stage: within a budget in bytes per device, as far as it matters."""
    return replace(
        options,
        memory_budget=budget,
        budget_gap=max(options.budget_gap, _STAGE_GAP),
        time_limit_s=min(options.time_limit_s, _STAGE_LIMIT_S),
    )


def search(
    layered: LayeredStep, options: PipelineOptions, say: Say = _log.debug
) -> StageAssignment:
    """The partition of least predicted latency.

    Raises:
        InfeasibleError: no partition fits the devices' memory.
        SlowerError: none takes less than asked for.
    """
    if options.num_chunks > 1:
        raise ValueError(
            f"AutoStages has one stage per mesh, the {options.schedule} schedule has several: pass "
            f"UniformStages(n), n a multiple of num_chunks={options.num_chunks}, or ManualStages"
        )
    count, cluster = options.num_micro_batches, options.cluster
    if layered.num_layers < len(cluster.parts):
        _check_cut(layered, len(cluster.parts))
        raise ValueError(
            f"{layered.name} has {layered.num_layers} layers, and every part of the cluster "
            f"({cluster}) has a stage of its own: cut it into {len(cluster.parts)} layers or more "
            "(layers=), or name fewer parts as the cluster"
        )
    bounds, pricing, stages = stage_search(layered, options, say)
    found = stages.run(SearchLimits(most_s=options.most_s))
    if found is None:
        if not options.is_trial:
            # Where bounds said it all, the step as one stage says what it lacks.
            pricing.price(0, layered.num_layers - 1, bounds.leanest(), 1)
        least = min(lacking(pricing.refusals), key=lack, default=None)
        reason = f"; the stage that lacks least: {least}" if least else ""
        is_proved = all(error.is_proved for error in pricing.refusals)
        fits = "fits" if is_proved else "was found in time that fits"
        raise InfeasibleError(
            f"{layered.name}: no pipeline of {layered.num_layers} layers {fits} "
            f"{cluster.num_devices} devices with {count} micro-batches"
            f"{_idle_parts(bounds, cluster)}{reason}; {ADVICE}",
            budget_bytes=None if is_proved else options.solve.memory_budget,
        ) from least
    return _assignment(found, pricing)


def _idle_parts(bounds: StageBounds, cluster: Cluster) -> str:
    """Which parts of a cluster have no room for any layer."""
    parts = bounds.parts_without_room() if len(cluster.parts) > 1 else ()
    return "".join(
        f"; no layer fits the devices of part {part} ({cluster_text(cluster.parts[part])}), name "
        "the others as the cluster"
        for part in parts
    )


def stage_search(
    layered: LayeredStep, options: PipelineOptions, say: Say
) -> tuple[StageBounds, StagePricing, PipelineSearch]:
    """The search for stages of a step before it begins, with its bounds and its prices.

    Args:
        layered: the step.
        options: what it is planned under.
        say: is told what is being done.
    """
    count, cluster = options.num_micro_batches, options.cluster
    budgets = []
    for number, one in enumerate(cluster.parts):
        budget = options.budget_of(number)
        budgets.append(one.device.memory_bytes if budget is None else budget)
    solve = [stage_options(options.solve, budget) for budget in budgets]
    pricing = StagePricing(layered, cluster, count, solve)
    parts = LayerParts.of(layered, count)
    bounds = StageBounds(parts, cluster, budgets, layered.store)
    devices = tuple(one.num_devices for one in cluster.parts)
    keeps_all = options.schedule == ScheduleName.GPIPE
    stages = PipelineSearch(
        bounds,
        pricing,
        devices[0] if len(devices) == 1 else devices,
        count,
        keeps_all=keeps_all,
        step_s=TransferWaits(bounds.received_bytes, cluster, count, keeps_all=keeps_all),
        say=say,
    )
    return bounds, pricing, stages


def _assignment(found: FoundStages, pricing: StagePricing) -> StageAssignment:
    """What was found as the planner takes it, with the strategies that were chosen."""
    submeshes, solutions = [], []
    for stage, in_flight in zip(found.stages, found.in_flight, strict=True):
        assert isinstance(stage.key, Submesh)
        submeshes.append(stage.key)
        solutions.append(pricing.solution(stage.first, stage.last, stage.key, in_flight))
    return StageAssignment(
        tuple(
            number
            for number, stage in enumerate(found.stages)
            for _ in range(stage.first, stage.last + 1)
        ),
        tuple((one.hosts, one.devices_per_host) for one in submeshes),
        tuple(one.mesh_shape for one in submeshes),
        tuple(range(len(submeshes))),
        tuple(solutions),
        found.received_s,
        found.bracket,
        found.considered,
        parts_of([one.part for one in submeshes]),
    )
