"""What is made once for a signature of a parallelised function."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stablehlo_alpa.api.following import Following
from stablehlo_alpa.api.methods import FollowParallel, Method, PipeshardParallel
from stablehlo_alpa.api.rivals import Rivals
from stablehlo_alpa.api.settings import Settings
from stablehlo_alpa.api.stages import Compiled, Lowered
from stablehlo_alpa.errors import CompileError, InfeasibleError, TraceError
from stablehlo_alpa.frontend import Function, TracedProgram, trace_function
from stablehlo_alpa.frontend.signature import context
from stablehlo_alpa.inter_op import PipelineOptions, sweep
from stablehlo_alpa.layers import (
    AutoLayers,
    LayerOption,
    Remat,
    WholeFunction,
    in_layers,
    key_context,
    layer_context,
)
from stablehlo_alpa.planning import Plan, plan_program
from stablehlo_alpa.planning.ordering import ScheduleKind
from stablehlo_alpa.units import format_bytes
from stablehlo_alpa.view import progress

_log = logging.getLogger(__name__)

_RECOMPUTED: Mapping[Remat, str] = {False: "", "attention": "attention", True: "layers"}


class Prepared:
    """Plan, lowered and compiled function of a signature, each made when it is first asked for.

    All are asked for in the context of jax that belongs to the signature, by one thread at a time.

    Attributes:
        args: positional arguments, types in place of arrays.
        kwargs: keyword arguments, likewise.
    """

    def __init__(
        self,
        function: Function,
        settings: Settings,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> None:
        """Makes nothing yet.

        Args:
            function: what is called.
            settings: how, bound to the inputs of the call.
            args: positional arguments, types in place of arrays.
            kwargs: keyword arguments, likewise.
        """
        self.args, self.kwargs = args, kwargs
        self._function, self._settings = function, settings

    @functools.cached_property
    def plan(self) -> Plan:
        """The plan; touches no devices."""
        method = self._settings.method
        rivals = Rivals(self._by, method, self._function.name, context())
        return dataclasses.replace(self._made(), method=method.brief(), rivals=rivals)

    def _by(self, method: Method) -> Plan:
        """The plan by another method."""
        settings = dataclasses.replace(self._settings, method=method)
        return Prepared(self._function, settings, self.args, self.kwargs).plan

    def _made(self) -> Plan:
        settings = self._concrete
        method = settings.method
        if self._following is not None:
            program = self._trace(self._following.layers)
            cluster = self._settings.find_cluster(self._following.devices)
            options = self._following.options(program, cluster)
            return self._sweep([("", program)], options, None)
        if isinstance(method, PipeshardParallel):
            programs = self._recomputations(method.layers)
            return self._sweep(programs, settings.pipeline_options(), method.schedule)
        if method.num_parts > 1:
            # Only what is marked says where a part of the batch ends.
            return self._accumulate(self._trace_layers(AutoLayers(num_layers=1, remat=False)))
        program = self._trace()
        if (method.num_micro_batches or 1) > 1:
            return self._accumulate(program)
        try:
            return plan_program(program, settings.plan_options(program))
        except InfeasibleError as whole:
            if method.num_micro_batches is not None or method.backend != "alpa":
                raise
            try:
                return self._accumulate(program)
            except (CompileError, InfeasibleError) as cut:
                raise _refusal(whole, cut) from None

    @functools.cached_property
    def _concrete(self) -> Settings:
        """The settings, with what the method leaves to the function filled in."""
        settings = self._settings
        if not settings.method.is_open:
            return settings
        method = settings.method.concrete(self._trace(), settings.find_cluster().num_devices)
        return dataclasses.replace(settings, method=method)

    @functools.cached_property
    def _following(self) -> Following | None:
        """The stages of a function that follows inputs on several meshes."""
        method = self._settings.method
        if not isinstance(method, FollowParallel) or not method.meshes:
            return None
        return Following.of(method, self._function, self.args, self.kwargs)

    def _accumulate(self, program: TracedProgram) -> Plan:
        """Several micro-batches on one mesh: a pipeline of one stage."""
        options = self._concrete.accumulation_options(program)
        return self._sweep([("", program)], options, None)

    def _recomputations(self, layers: LayerOption) -> Iterator[tuple[str, TracedProgram]]:
        """The step with more and more of it computed again, as far as it makes a difference."""
        known: set[str] = set()
        for remat in layers.recomputations:
            try:
                program = self._trace_layers(dataclasses.replace(layers, remat=remat))
            except TraceError as error:
                # As it is, the step was traced: jax computes no callbacks with effects again.
                if not known:
                    raise
                _log.info("%s", error)
                return
            if not program.has_gradients:
                yield "", self._trace(layers)
                return
            if remat and not program.marks_gradients:
                if layers.remat == "search":
                    return
                raise TraceError(
                    f"{program.name} takes its gradients by jax, which knows nothing of layers to "
                    "compute again: take them by stablehlo_alpa.grad or value_and_grad, or leave "
                    "recomputation out"
                )
            if program.text not in known:
                known.add(program.text)
                yield _RECOMPUTED[remat], program

    def _sweep(
        self,
        programs: Iterable[tuple[str, TracedProgram]],
        options: PipelineOptions,
        schedule: ScheduleKind | None,
    ) -> Plan:
        with progress(_log.debug) as say:
            count = self._concrete.method.num_micro_batches
            if self._following is not None:
                count = count or 1
            return sweep(programs, options, count, schedule, say)

    @functools.cached_property
    def lowered(self) -> Lowered:
        """The plan, bound to devices."""
        plan, settings = self.plan, self._settings
        devices = None if self._following is None else self._following.devices
        return Lowered(plan, settings.find_target(devices), settings.method.backend)

    @property
    def compiled(self) -> Compiled:
        """The function on its devices."""
        if "plan" not in self.__dict__:
            # Said before minutes are spent on a plan that cannot be run.
            self._settings.check_devices()
        return self.lowered.compile()

    @property
    def is_compiled(self) -> bool:
        """Whether `compiled` was asked for, here or of `lowered`."""
        return "lowered" in self.__dict__ and self.lowered.is_compiled

    def argument(self, argument: int | str) -> Any:
        """An argument by position, or by the name that it is passed by; None of none."""
        if isinstance(argument, str):
            return self.kwargs.get(argument)
        return self.args[argument] if 0 <= argument < len(self.args) else None

    def _trace_layers(self, layers: LayerOption) -> TracedProgram:
        """The function with layers and marked gradients."""
        method = self._concrete.method
        with layer_context(layers), key_context(method.num_key_parts):
            return self._trace()

    def _trace(self, whole: LayerOption | None = None) -> TracedProgram:
        """The function; one that takes no gradients may be cut into layers as a whole."""
        function: Function = self._function
        layers: Any = contextlib.nullcontext()
        if whole is not None:
            function, layers = function.behind(in_layers), layer_context(WholeFunction(whole))
        with layers:
            return trace_function(
                function,
                self.args,
                self.kwargs,
                batches=self._settings.batches,
                num_micro_batches=self._settings.method.num_parts,
                rules=self._settings.rules,
                platform=self._settings.find_platform(),
            )


def _refusal(whole: InfeasibleError, cut: CompileError | InfeasibleError) -> InfeasibleError:
    """What to say of a step that fits neither as a whole nor in micro-batches."""
    if isinstance(cut, CompileError) or cut.needed_bytes is None:
        return whole
    least = format_bytes(cut.needed_bytes)
    return InfeasibleError(
        f"{whole}; cut into micro-batches the step takes {least} at least",
        needed_bytes=min(whole.needed_bytes or math.inf, cut.needed_bytes),
        budget_bytes=cut.budget_bytes,
        largest=cut.largest,
    )
