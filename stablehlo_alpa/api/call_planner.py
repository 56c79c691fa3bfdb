"""Plans one call of a function: by a search, or by the strategies of a plan for other sizes."""

from __future__ import annotations

import dataclasses
import functools
import logging
import math
from collections.abc import Iterable, Mapping
from typing import Any

from stablehlo_alpa.api.following import Following
from stablehlo_alpa.api.methods import PipeshardParallel
from stablehlo_alpa.api.settings import Settings
from stablehlo_alpa.api.tracing import Tracing
from stablehlo_alpa.cluster import one_part
from stablehlo_alpa.errors import CompileError, InfeasibleError, TraceError
from stablehlo_alpa.frontend import Function, TracedProgram, check_same_program
from stablehlo_alpa.inter_op import PipelineOptions, sweep, transfer_pipeline
from stablehlo_alpa.layers import AutoLayers, Remat
from stablehlo_alpa.planning import Plan
from stablehlo_alpa.planning.ordering import ScheduleKind
from stablehlo_alpa.planning.planner import PreparedProgram, plan_prepared
from stablehlo_alpa.planning.transfer import transfer_program
from stablehlo_alpa.units import format_bytes
from stablehlo_alpa.view import progress

_log = logging.getLogger(__name__)

_REMAT: Mapping[str, Remat] = {"": False, "attention": "attention", "layers": True}
_ONE_LAYER = AutoLayers(num_layers=1, remat=False)


class CallPlanner:
    """Plans a call; what both ways of planning trace and merge is made once."""

    def __init__(
        self,
        function: Function,
        settings: Settings,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        following: Following | None,
    ) -> None:
        """Makes nothing yet.

        Args:
            function: what is called.
            settings: how, bound to the inputs of the call.
            args: positional arguments, types in place of arrays.
            kwargs: keyword arguments, likewise.
            following: the stages of a function that follows inputs on several meshes.
        """
        self._settings, self._following = settings, following
        self._tracing = Tracing(function, settings, args, kwargs)

    def search(self) -> Plan:
        """The best plan that is found.

        Raises:
            TraceError, CompileError, InfeasibleError, MeshError, ShardingError: there is none.
        """
        try:
            return self._search()
        except InfeasibleError as error:
            method = self._settings.method
            if not method.leaner:
                raise
            kind = type(method).__name__
            raise error.reworded(
                f"{error}; of {kind}, {', '.join(method.leaner)} take less as well"
            ) from error

    def _search(self) -> Plan:
        settings = self._concrete
        method = settings.method
        if self._following is not None:
            program = self._tracing.whole(self._following.layers)
            found = self._settings.find_cluster(self._following.devices)
            cluster = one_part(found, settings.method.brief())
            options = self._following.options(program, cluster)
            return self._sweep([("", program)], options, None)
        if isinstance(method, PipeshardParallel):
            programs = self._tracing.recomputed(method.layers, method.num_key_parts)
            return self._sweep(programs, settings.pipeline_options(), method.schedule)
        if method.num_parts > 1:
            # Only what is marked says where a part of the batch ends.
            return self._accumulate(self._tracing.in_layers(_ONE_LAYER, method.num_key_parts))
        program = self._tracing.whole()
        if (method.num_micro_batches or 1) > 1:
            return self._accumulate(program)
        if method.num_micro_batches is not None or method.backend != "alpa":
            return plan_prepared(self._one_mesh)
        try:
            # What it lacks as a whole is of interest where it does not fit in parts.
            return plan_prepared(self._one_mesh, names_lack=False)
        except InfeasibleError as whole:
            try:
                return self._accumulate(program, whole)
            except (CompileError, InfeasibleError) as cut:
                raise _refusal(self._named(whole), cut) from None

    def _named(self, whole: InfeasibleError) -> InfeasibleError:
        """Why the step does not fit as one program, with what it lacks."""
        if whole.needed_bytes is not None:
            return whole
        try:
            plan_prepared(self._one_mesh)
        except InfeasibleError as named:
            return named
        return whole

    def transfer(self, source: Plan, most: float | None = None) -> Plan | None:
        """The plan by the strategies of another one of the function.

        Args:
            source: the plan, of arguments in other sizes.
            most: the largest gap; None where any will do.

        Returns:
            the plan; None where it may be further than ``most`` from the best, or nothing is known
            of that.

        Raises:
            TraceError: the function is another program for these arguments.
            CompileError, InfeasibleError, MeshError, ShardingError, ValueError: the strategies do
                not fit, see `Plan.transfer`.
        """
        settings = self._concrete
        method = settings.method
        if method.follows_inputs:
            raise TraceError(
                f"{source.program.name} is planned by {method.brief()}, where and as its inputs "
                "lie: call it with those of the new sizes"
            )
        # What is one program has nothing to order.
        if source.runtime.sole_program is not None and not isinstance(method, PipeshardParallel):
            check_same_program(source.program, self._one_mesh.program)
            return transfer_program(self._one_mesh, source, most)
        program, schedule = self._layered(source), None
        check_same_program(source.program, program)
        if isinstance(method, PipeshardParallel):
            options, schedule = settings.pipeline_options(), method.schedule
        else:
            options = settings.accumulation_options(program)
        with progress(_log.debug) as say:
            return transfer_pipeline(program, options, source, schedule, most, say)

    def _layered(self, source: Plan) -> TracedProgram:
        """The function traced as it was for a plan of several programs."""
        method, tracing = self._concrete.method, self._tracing
        if isinstance(method, PipeshardParallel):
            if not source.program.has_gradients:
                return tracing.whole(method.layers)
            layers = dataclasses.replace(method.layers, remat=_REMAT[source.recomputed])
            return tracing.in_layers(layers, method.num_key_parts)
        if method.num_parts > 1:
            return tracing.in_layers(_ONE_LAYER, method.num_key_parts)
        return tracing.whole()

    @functools.cached_property
    def _one_mesh(self) -> PreparedProgram:
        """The call as one program of one mesh."""
        program = self._tracing.whole()
        return PreparedProgram.of(program, self._concrete.plan_options(program))

    @functools.cached_property
    def _concrete(self) -> Settings:
        """The settings, with what the method leaves to the function filled in."""
        settings = self._settings
        if not settings.method.is_open:
            return settings
        num_devices = settings.find_cluster().num_devices
        method = settings.method.concrete(self._tracing.whole(), num_devices)
        return dataclasses.replace(settings, method=method)

    def _accumulate(self, program: TracedProgram, whole: InfeasibleError | None = None) -> Plan:
        """Several micro-batches on one mesh: a pipeline of one stage."""
        options = self._concrete.accumulation_options(program)
        return self._sweep([("", program)], options, None, whole)

    def _sweep(
        self,
        programs: Iterable[tuple[str, TracedProgram]],
        options: PipelineOptions,
        schedule: ScheduleKind | None,
        whole: InfeasibleError | None = None,
    ) -> Plan:
        with progress(_log.debug) as say:
            count = self._concrete.method.num_micro_batches
            if self._following is not None:
                count = count or 1
            return sweep(programs, options, count, schedule, say, whole)


def _refusal(whole: InfeasibleError, cut: CompileError | InfeasibleError) -> InfeasibleError:
    """What to say of a step that fits neither as a whole nor in micro-batches."""
    if isinstance(cut, CompileError):
        said, best = f"it is not cut into micro-batches: {cut}", whole
    elif cut.needed_bytes is None:
        return whole
    else:
        said = f"cut into micro-batches the step takes {format_bytes(cut.needed_bytes)} at least"
        best = cut
    return InfeasibleError(
        f"{whole}; {said}",
        needed_bytes=min(whole.needed_bytes or math.inf, best.needed_bytes or math.inf),
        budget_bytes=best.budget_bytes,
        largest=best.largest,
        least_bytes=best.least_bytes,
    )
