"""What tracing makes of a function: a module, and what stands at its boundary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from alpa_runtime.host_memory import is_on_host
from alpa_runtime.keys import impl_of, key_shape
from alpa_runtime.program import HostFunction, numpy_dtype

from stablehlo_alpa.frontend.kernel_calls import Kernel
from stablehlo_alpa.frontend.reports import Report

if TYPE_CHECKING:
    from stablehlo_alpa.frontend.stacks import Stacks


@dataclass(frozen=True)
class TracedValue:
    """One flat input or output.

    Attributes:
        name: key path, e.g. ``state.params['Dense_0']['kernel']``.
        shape: shape the module sees; for typed PRNG keys that of the key data.
        dtype: numpy-style dtype name the module sees; "void" of what holds nothing (``float0``,
            the type of gradients of integers), in whose place the module has booleans.
        key_impl: PRNG implementation of typed keys.
        is_weak: whether the type is weak.
        is_on_host: whether it lies in the memory of the host.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    key_impl: str | None = None
    is_weak: bool = False
    is_on_host: bool = False

    @classmethod
    def of(cls, name: str, aval: Any) -> TracedValue:
        """One of a type of jax."""
        weak = bool(getattr(aval, "weak_type", False))
        impl, on_host = impl_of(aval), is_on_host(aval)
        if impl is None:
            return cls(name, tuple(aval.shape), aval.dtype.name, None, weak, on_host)
        shape = (*aval.shape, *key_shape(impl))
        return cls(name, shape, "uint32", impl, False, on_host)

    @property
    def num_bytes(self) -> int:
        """Bytes of the whole value."""
        return math.prod(self.shape) * numpy_dtype(self.dtype).itemsize


@dataclass(frozen=True, eq=False)
class TracedProgram:
    """A traced function.

    Attributes:
        name: name of the function.
        text: StableHLO module in generic form with locations; arguments and results of ``main``
            are the flat inputs and outputs, one to one.
        inputs, outputs: flat values.
        in_tree: structure of ``(args, kwargs)`` without the static arguments.
        out_tree: structure of the result.
        input_argnum: for every flat input the position of its parameter among all positional ones
            (static ones counted), however it was passed; -1 of a keyword-only one.
        donated: flat inputs that are donated.
        batch: flat inputs that hold a batch, as declared or, where nothing is declared, as they
            seem to.
        declared_batch: those that are declared.
        num_parts: the program is that of one of so many equal parts of every batch.
        has_gradients: whether it has a backward pass.
        marks_gradients: whether that was cut into layers where it was differentiated.
        aliases: flat input -> flat output that is its next-step value.
        callbacks: functions of the host that the text calls, by number.
        reports: functions of the host that are called with outputs, behind those of ``out_tree``.
        kernels: functions that the text calls and whose author says how they are split, by number.
        trip_count_hint: how often loops run of which it is not known; None if nobody says.
        platform: what it is lowered for; empty for the default device of this process.
        stacks: what it was before stacks of layers were put into parts; None if there are none.
    """

    name: str
    text: str = field(repr=False)
    inputs: tuple[TracedValue, ...]
    outputs: tuple[TracedValue, ...]
    in_tree: Any
    out_tree: Any
    input_argnum: tuple[int, ...]
    donated: tuple[int, ...]
    batch: frozenset[int]
    aliases: Mapping[int, int]
    declared_batch: frozenset[int] = frozenset()
    num_parts: int = 1
    has_gradients: bool = False
    marks_gradients: bool = False
    callbacks: tuple[HostFunction, ...] = ()
    reports: tuple[Report, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    trip_count_hint: int | None = None
    platform: str = ""
    stacks: Stacks | None = None

    @property
    def has_gradients_of_jax(self) -> bool:
        """Whether jax takes its gradients, which computes nothing of a layer again."""
        return self.has_gradients and not self.marks_gradients

    @property
    def of_caller(self) -> TracedProgram:
        """The program with the inputs and outputs of the function."""
        return self if self.stacks is None else self.stacks.whole

    @cached_property
    def state_option(self) -> str:
        """State, what is given away, and the hint, as options of the pipelines of passes."""
        aliases = ",".join(f"{i}:{o}" for i, o in sorted(self.aliases.items()))
        hint = "" if self.trip_count_hint is None else f" trip-count-hint={self.trip_count_hint}"
        return f"aliases={aliases} donated={','.join(map(str, self.donated))}{hint}"

    @cached_property
    def has_void(self) -> bool:
        """Whether some input or output holds nothing."""
        return any(value.dtype == "void" for value in (*self.inputs, *self.outputs))

    def with_booleans(self, flat: Sequence[Any]) -> list[Any]:
        """Flat inputs as the module takes them: booleans in the place of what holds nothing."""
        return [
            np.zeros(value.shape, bool) if value.dtype == "void" else leaf
            for value, leaf in zip(self.inputs, flat, strict=True)
        ]

    def result(self, flat: Sequence[Any]) -> Any:
        """The result of the function of flat outputs of the module."""
        if self.has_void:
            flat = [
                np.zeros(value.shape, jax.dtypes.float0) if value.dtype == "void" else leaf
                for value, leaf in zip(self.outputs, flat, strict=True)
            ]
        return self.unflatten(flat)

    def unflatten(self, flat: Sequence[Any]) -> Any:
        """Something per flat output in the structure of the result, that of reports left out."""
        return self.out_tree.unflatten(flat[: self.out_tree.num_leaves])

    def report(self, flat: Sequence[Any]) -> None:
        """Calls the functions of the host that look at flat outputs of the module.

        Raises:
            jax.errors.JaxRuntimeError: one of them failed; those behind it are not called.
        """
        for one in self.reports:
            one.send(flat, self.name)

    def inputs_of(self, argument: int | str) -> list[int]:
        """Flat inputs of one argument, or of a part of one.

        Args:
            argument: position of its parameter, or its name, as messages spell it
                (``"state.params"``).
        """
        if isinstance(argument, int):
            return [i for i, number in enumerate(self.input_argnum) if number == argument]
        return [
            i
            for i, value in enumerate(self.inputs)
            if value.name == argument
            or (value.name.startswith(argument) and value.name[len(argument)] in ".[")
        ]
