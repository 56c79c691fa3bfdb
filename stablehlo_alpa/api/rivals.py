"""The methods that a plan is put beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stablehlo_alpa.api.methods import (
    DataParallel,
    ExpertParallel,
    MegatronParallel,
    Method,
    PipeshardParallel,
    ShardParallel,
    Zero2Parallel,
    Zero3Parallel,
)
from stablehlo_alpa.cluster import Cluster
from stablehlo_alpa.errors import InfeasibleError, StablehloAlpaError, TraceError
from stablehlo_alpa.frontend.signature import context
from stablehlo_alpa.inter_op import ManualStages, UniformStages
from stablehlo_alpa.layers import Remat
from stablehlo_alpa.option_checks import checked_instance, checked_sequence
from stablehlo_alpa.planning import Alternative, Baseline, Cut, Plan

_REMAT: Mapping[str, Remat] = {"": False, "attention": "attention", "layers": True}
_RECOMPUTE = {"": "none", "attention": "selective", "layers": "full"}


@dataclass(frozen=True)
class Rivals:
    """Plans a step by other methods; see `Plan.baselines`.

    Attributes:
        make: the plan of the step by a method.
        method: that of the plan.
        name: of the step.
        context: of jax, in which the step is traced.
    """

    make: Callable[[Method], Plan]
    method: Method
    name: str
    context: Any

    def __call__(self, plan: Plan, methods: Sequence[Method] | None) -> tuple[Baseline, ...]:
        """One for each; by default those that are usual.

        Raises:
            OptionError: one is no method.
            TraceError: jax traces otherwise here than where the plan was made.
        """
        if context() != self.context:
            raise TraceError(
                f"the plan of {self.name} was made in another context of jax (number types, PRNG "
                "implementation, context mesh): ask for its baselines there"
            )
        if methods is None:
            wanted = rivals(plan, self.method)
        else:
            wanted = {one.brief(): one for one in _checked(methods)}
        return tuple(self._one(name, method) for name, method in wanted.items())

    def pinned(self, plan: Plan, one: Alternative) -> PipeshardParallel:
        """The method that gives an alternative of a plan; see `Plan.explain_stages`.

        Raises:
            TraceError: that of the plan makes no stages.
        """
        method = self.method
        if not isinstance(method, PipeshardParallel):
            raise TraceError(
                f"{self.name} was planned by {method.brief()}, which searches no stages: plan it "
                "by PipeshardParallel"
            )
        stages = method.stages
        if one.cut is not None and one.cut.is_given:
            stages = _manual(one.cut, method)
        # One's own is no name.
        is_same = str(method.schedule) == one.schedule
        return replace(
            method,
            layers=replace(method.layers, remat=_REMAT[one.recomputed]),
            stages=stages,
            schedule=method.schedule if is_same else one.schedule,
            num_chunks=one.cut.num_chunks if one.cut is not None else method.num_chunks,
            num_micro_batches=one.num_micro_batches,
        )

    def _one(self, name: str, method: Method) -> Baseline:
        try:
            return Baseline(name, self.make(method))
        except (StablehloAlpaError, ValueError) as error:
            return Baseline(name, None, str(error), isinstance(error, InfeasibleError))


def _checked(methods: Any) -> tuple[Method, ...]:
    found = checked_sequence("methods", methods, "methods")
    return tuple(
        checked_instance(f"methods[{number}]", one, Method, "ShardParallel() or another method")
        for number, one in enumerate(found)
    )


def _manual(cut: Cut, method: PipeshardParallel) -> ManualStages:
    """A cut as it is given, every stage split as that of the method that has its place."""
    own, count = method.stages.stage_methods, len(cut.layers)
    methods = tuple(own[number * len(own) // count] for number in range(count)) if own else None
    return ManualStages(
        cut.layers,
        cut.submeshes,
        cut.mesh_shapes or None,
        methods=methods,
        parts=cut.parts or None,
    )


def rivals(plan: Plan, method: Method) -> dict[str, Method]:
    """What people would write down for a step, to be planned under the prices of a plan.

    Data parallelism and ZeRO; one mesh without pipeline, searched; experts over an axis; Megatron's
    three dimensions in powers of two, tensor parallelism within a host; pipelines of data-parallel
    stages. Pipelines have the micro-batches and the recomputation of the plan; one mesh has as many
    micro-batches as its memory asks for.

    Args:
        plan: the plan.
        method: that it is of; its budget of memory is theirs.

    Returns:
        by what they are called.
    """
    one_mesh = (
        ShardParallel(),
        DataParallel(),
        Zero2Parallel(),
        Zero3Parallel(),
        ExpertParallel(),
    )
    found: dict[str, Method] = {one.brief(): one for one in one_mesh}
    for tensor, pipeline in _sizes(plan.cluster):
        sizes = MegatronParallel(tensor=tensor, pipeline=pipeline)
        found[sizes.brief()] = sizes if pipeline == 1 else _as_cut(sizes, plan)
    for num_stages in _powers(plan.cluster.num_devices)[1:]:
        if plan.cluster.num_devices % num_stages == 0:
            stages = UniformStages(num_stages, methods=DataParallel())
            count = _num_micro_batches(plan)
            pipeline_method = PipeshardParallel(num_micro_batches=count, stages=stages)
            found[f"DataParallel() in {num_stages} stages"] = pipeline_method
    return {
        name: replace(one, memory_budget=method.memory_budget, device=method.device)
        for name, one in found.items()
    }


def _powers(most: int) -> list[int]:
    return [1 << power for power in range(most.bit_length())]


def _sizes(cluster: Cluster) -> list[tuple[int, int]]:
    """Tensor and pipeline sizes that divide the cluster, but for those of data parallelism."""
    return [
        (tensor, pipeline)
        for tensor in _powers(max(part.devices_per_host for part in cluster.parts))[1:]
        for pipeline in _powers(cluster.num_devices)
        if cluster.num_devices % (tensor * pipeline) == 0
    ]


def _as_cut(sizes: MegatronParallel, plan: Plan) -> MegatronParallel:
    """A pipeline with the micro-batches and the recomputation of a plan."""
    recompute = _RECOMPUTE[plan.recomputed]
    return replace(sizes, recompute=recompute, num_micro_batches=_num_micro_batches(plan))


def _num_micro_batches(plan: Plan) -> int | None:
    """Those of a plan that has several; otherwise they are searched."""
    count = plan.runtime.num_micro_batches
    return count if count > 1 else None
