"""A call of a function as programs: whole, in layers, with more and more of it computed again."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from stablehlo_alpa.api.batches import batch_inputs
from stablehlo_alpa.api.kept_traces import keep_trace, known_content, load_trace
from stablehlo_alpa.api.settings import Settings
from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend import Function, TracedProgram, split_stacks, trace_function
from stablehlo_alpa.layers import (
    LayerOption,
    Remat,
    WholeFunction,
    in_layers,
    key_context,
    layer_context,
)

_log = logging.getLogger(__name__)

_RECOMPUTED: Mapping[Remat, str] = {False: "", "attention": "attention", True: "layers"}

_Traces: TypeAlias = dict[tuple[LayerOption | None, bool, int | None], TracedProgram]


@dataclasses.dataclass(frozen=True, eq=False)
class Tracing:
    """Traces a call in the present context of jax, each way once.

    Attributes:
        function: what is called.
        settings: how, with nothing left open but what `of` may leave out.
        args: positional arguments, types in place of arrays.
        kwargs: keyword arguments, likewise.
    """

    function: Function
    settings: Settings
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    _traces: _Traces = dataclasses.field(default_factory=dict, init=False, repr=False)

    def whole(self, layers: LayerOption | None = None) -> TracedProgram:
        """The function; one that takes no gradients may be cut into layers as a whole."""
        if layers is None:
            return self._once((None, False, None))
        return self._once((layers, True, None))

    def in_layers(self, layers: LayerOption, num_key_parts: int | None) -> TracedProgram:
        """The function with layers and marked gradients.

        Args:
            layers: how it is cut.
            num_key_parts: see `Method`.
        """
        return self._once((layers, False, num_key_parts))

    def recomputed(
        self, layers: LayerOption, num_key_parts: int | None
    ) -> Iterator[tuple[str, TracedProgram]]:
        """The step with more and more of it computed again, as far as it makes a difference.

        Args:
            layers: how it is cut.
            num_key_parts: see `Method`.
        """
        known: set[str] = set()
        for remat in layers.recomputations:
            try:
                program = self.in_layers(dataclasses.replace(layers, remat=remat), num_key_parts)
            except TraceError as error:
                # As it is, the step was traced: jax computes no callbacks with effects again.
                if not known:
                    raise
                _log.info("%s", error)
                return
            if not program.has_gradients:
                yield "", self.whole(layers)
                return
            if remat and program.has_gradients_of_jax:
                if layers.remat == "search":
                    return
                raise TraceError(
                    f"{program.name} takes its gradients by jax, behind which no layer can be "
                    "computed again: take them by stablehlo_alpa.grad or value_and_grad, or leave "
                    "recomputation out"
                )
            if program.text not in known:
                known.add(program.text)
                yield _RECOMPUTED[remat], program

    def _once(self, key: tuple[LayerOption | None, bool, int | None]) -> TracedProgram:
        if key not in self._traces:
            self._traces[key] = self._trace(*key)
        return self._traces[key]

    def _trace(
        self, layers: LayerOption | None, is_whole: bool, num_key_parts: int | None
    ) -> TracedProgram:
        settings = self.settings
        way = (layers, is_whole, num_key_parts)
        content = known_content(self.function, self.args, self.kwargs, settings, way)
        program = load_trace(settings.store, content, self.args, self.kwargs)
        if program is None:
            program = self._trace_anew(*way)
            keep_trace(settings.store, content, program, self.args, self.kwargs)
        if layers is None:
            return program
        is_known = program.declared_batch or program.num_parts > 1
        return split_stacks(program, program.batch if is_known else batch_inputs(program)[0])

    def _trace_anew(
        self, layers: LayerOption | None, is_whole: bool, num_key_parts: int | None
    ) -> TracedProgram:
        function, settings = self.function, self.settings
        with contextlib.ExitStack() as around:
            if layers is not None and is_whole:
                function = function.behind(in_layers)
                around.enter_context(layer_context(WholeFunction(layers)))
            elif layers is not None:
                around.enter_context(layer_context(layers))
                around.enter_context(key_context(num_key_parts))
            return trace_function(
                function,
                self.args,
                self.kwargs,
                batches=settings.batches,
                num_micro_batches=settings.method.num_parts,
                num_sums=_num_sums(settings, layers),
                rules=settings.rules,
                platform=settings.find_platform(),
                trip_count_hint=settings.trip_count_hint,
                reports_behind=_reports_behind(settings),
            )


def _reports_behind(settings: Settings) -> bool:
    """Whether a step is many programs, or one in other processes, and its results are whole."""
    method = settings.method
    is_one = settings.has_one_mesh and (method.num_micro_batches or 1) == 1
    return not is_one and method.num_parts == 1


def _num_sums(settings: Settings, layers: LayerOption | None) -> int | None:
    """Parts of a batch whose results are added up; None where the step is computed as it is."""
    count = settings.method.num_micro_batches or 1
    is_one = layers is None and count == 1
    return None if is_one or settings.method.num_parts > 1 else count
