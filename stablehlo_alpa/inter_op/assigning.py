"""Which layers run together, on which devices."""

from __future__ import annotations

from stablehlo_alpa.errors import InfeasibleError
from stablehlo_alpa.inter_op.options import (
    AutoStages,
    ManualStages,
    PipelineOptions,
    StageAssignment,
    UniformStages,
    manual,
    uniform,
)
from stablehlo_alpa.inter_op.slicing import LayeredStep
from stablehlo_alpa.inter_op.stage_pricing import StagePricing, Submesh
from stablehlo_alpa.inter_op.stage_search import search_stages
from stablehlo_alpa.planning.mesh_search import lack
from stablehlo_alpa.planning.schedules import ScheduleName

# What mends a stage that does not fit.
ADVICE = (
    "more micro-batches, remat=True of the layers, or a larger submesh for the stage take less "
    "memory per device"
)


def assign(layered: LayeredStep, options: PipelineOptions) -> StageAssignment:
    """Stages of a step as the options want them.

    Raises:
        ValueError: stages, layers, meshes or chunks do not fit each other.
        InfeasibleError: no partition fits the devices' memory.
    """
    match options.stages:
        case UniformStages():
            num_meshes = options.stages.num_stages // options.num_chunks
            return uniform(options.stages, layered.num_layers, options.cluster, max(num_meshes, 1))
        case ManualStages():
            return manual(options.stages, layered.num_layers, options.cluster, options.num_chunks)
        case AutoStages():
            return search(layered, options)
    raise TypeError(
        f"stages must be AutoStages(), UniformStages(...) or ManualStages(...), got "
        f"{options.stages!r}"
    )


def search(layered: LayeredStep, options: PipelineOptions) -> StageAssignment:
    """The partition of least predicted latency.

    Raises:
        InfeasibleError: no partition fits the devices' memory.
    """
    if options.num_chunks > 1:
        raise ValueError("AutoStages has one stage per mesh, the interleaved schedule has several")
    pricing = StagePricing(layered, options.cluster, options.num_micro_batches, options.solve)
    found = search_stages(
        list(pricing.choices()),
        layered.num_layers,
        options.cluster.num_devices,
        options.num_micro_batches,
        keeps_all=options.schedule == ScheduleName.GPIPE,
    )
    if found is None:
        short = [error for error in pricing.refusals if error.needed_bytes is not None]
        reason = f"; the stage that lacks least: {min(short, key=lack)}" if short else ""
        raise InfeasibleError(
            f"{layered.name}: no pipeline of {layered.num_layers} layers fits "
            f"{options.cluster.num_devices} devices with {options.num_micro_batches} "
            f"micro-batches{reason}; {ADVICE}"
        )
    chosen = [choice.key for choice in found.stages]
    assert all(isinstance(submesh, Submesh) for submesh in chosen)
    return StageAssignment(
        tuple(
            number
            for number, choice in enumerate(found.stages)
            for _ in range(choice.first, choice.last + 1)
        ),
        tuple((s.hosts, s.devices_per_host) for s in chosen if isinstance(s, Submesh)),
        tuple(s.mesh_shape for s in chosen if isinstance(s, Submesh)),
        tuple(range(len(chosen))),
    )
