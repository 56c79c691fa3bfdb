"""The forms of a step that are planned: as it is, with sizes padded, with attention in blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.inter_op.options import AutoStages, ManualStages, PipelineOptions, UniformStages
from stablehlo_alpa.inter_op.slicing import LayeredStep, Padding, StepForm, StepForms
from stablehlo_alpa.planning.planner import MOST_ADDED
from stablehlo_alpa.planning.prescription import Prescription


def layered_forms(
    program: TracedProgram, options: PipelineOptions, steps: StepForms | None = None
) -> tuple[LayeredStep, ...]:
    """The step with layers and phases as it is, and the forms that differ from it.

    Those whose sizes, of a micro-batch, are padded for the devices of a stage, and of each the one
    in which attention over many keys is one operator. Where stages are searched, that one is for
    when no other fits; see `last_forms`.

    Args:
        program: the step.
        options: what it is planned under.
        steps: makes them, where several numbers of micro-batches are asked for.

    Raises:
        CompileError: the step cannot be cut so.
        TraceError: see `StepForms.layered`.
    """
    steps = steps or StepForms(program, options.store)
    first = marked(steps, options)
    # By what is padded: more room does not always add more.
    different = {first.padded_by(padding): padding for padding in _paddings(options)}
    different.pop((), None)
    wholes = [StepForm(padding) for padding in different.values()]
    keys = None if isinstance(options.stages, AutoStages) else options.attention_keys
    is_long = keys is not None and bool(first.outlined_by(keys))
    long = [replace(one, attention_keys=keys) for one in (StepForm(), *wholes) if is_long]
    return (first, *(marked(steps, options, one) for one in (*wholes, *long)))


def last_forms(
    steps: StepForms, options: PipelineOptions, first: LayeredStep
) -> tuple[LayeredStep, ...]:
    """The forms to plan where none of `layered_forms` fits the memory: attention in blocks.

    Another search for stages is not worth the seconds that blocks may save (heuristic).

    Args:
        steps: makes them.
        options: what it is planned under.
        first: the step with layers and phases as it is.
    """
    keys = options.attention_keys
    if not isinstance(options.stages, AutoStages) or keys is None or not first.outlined_by(keys):
        return ()
    return (marked(steps, options, StepForm(attention_keys=keys)),)


def marked(steps: StepForms, options: PipelineOptions, form: StepForm | None = None) -> LayeredStep:
    """The step with layers and phases as the options have it; see `StepForms.layered`."""
    updates = options.num_updates
    count = options.num_micro_batches // updates
    return steps.layered(count, options.reduction, form, updates)


def _paddings(options: PipelineOptions) -> Iterator[Padding]:
    """What is tried; nothing where something is prescribed that padded operators need not keep.

    Where stages are searched, a multiple of a size is not worth another search (heuristic).
    """
    is_prescribed = options.prescription != Prescription() or options.stages.stage_methods
    multiple = _most_devices(options)
    if not options.pads_sizes or is_prescribed or multiple == 1:
        return
    little, much = MOST_ADDED
    yield Padding(multiple, little)
    if not isinstance(options.stages, AutoStages):
        yield Padding(multiple, much)


def _most_devices(options: PipelineOptions) -> int:
    """Devices that a dimension may be split over: of a stage where that is known, or of a host."""
    cluster = options.cluster
    match options.stages:
        case UniformStages(num_stages=num_stages):
            return max(1, cluster.num_devices * options.num_chunks // num_stages)
        case ManualStages(submeshes=submeshes):
            return max(map(math.prod, submeshes))
    return max(part.devices_per_host for part in cluster.parts)
