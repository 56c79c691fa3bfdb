"""Calls of the host inside of a function: taken out of its jaxpr, left as numbered operators.

JAX lowers a callback to an address in this process. Here its equation becomes one of a primitive of
ours, whose text says a number and a name; the functions themselves go beside the text.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
from alpa_runtime.keys import impl_of, key_shape
from alpa_runtime.program import HostFunction, TensorType
from jax.extend.core import Primitive, jaxprs_in_params
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir

from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend.inner_jaxprs import equations, with_inner

CALLBACKS = frozenset({"pure_callback", "io_callback", "debug_callback", "debug_print"})
"""Names of the primitives of JAX that call the host."""

# Keeps JAX from leaving out calls without results. Their order is the compiler's business: tokens
# of JAX would be arguments of the program.
_CALLS_HOST = jax.debug.DebugEffect()
_LONGEST_NAME = 60

callback_p = Primitive("alpa_callback")
callback_p.multiple_results = True


@callback_p.def_effectful_abstract_eval
def _abstract_eval(
    *avals: Any, out_avals: Sequence[Any], is_kept: bool, **_: Any
) -> tuple[list[Any], frozenset[Any]]:
    return list(out_avals), _effects(is_kept)


def _effects(is_kept: bool) -> frozenset[Any]:
    return frozenset({_CALLS_HOST} if is_kept else ())


def _lower(
    ctx: Any, *args: Any, index: int, name: str, is_ordered: bool, is_kept: bool, **_: Any
) -> Sequence[Any]:
    config = {
        "index": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), index),
        "name": ir.StringAttr.get(name),
        "ordered": ir.BoolAttr.get(is_ordered),
    }
    call = stablehlo.CustomCallOp(
        [mlir.aval_to_ir_type(ctx.module_context, aval) for aval in ctx.avals_out],
        args,
        ir.StringAttr.get("alpa_callback"),
        has_side_effect=is_kept,
        # A dictionary says what is called.
        api_version=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4),
        backend_config=ir.DictAttr.get(config),
    )
    return list(call.results)


mlir.register_lowering(callback_p, _lower)


def callback_name(equation: Any) -> str:
    """What people call the function of an equation that calls the host."""
    if "fmt" in equation.params:
        return f"print {equation.params['fmt']!r}"[:_LONGEST_NAME]
    if is_check(equation):
        return "error_if of equinox"
    function = _called_function(equation)
    name = getattr(function, "__name__", None) or type(function).__name__
    return f"{equation.primitive.name} {name}"


def is_check(equation: Any) -> bool:
    """Whether an equation calls the function of equinox that does nothing but raise."""
    if equation.primitive.name != "pure_callback":
        return False
    function = _called_function(equation)
    name = getattr(function, "__qualname__", "")
    return getattr(function, "__module__", "") == "equinox._errors" and name.endswith(".raises")


def _called_function(equation: Any) -> Any:
    """The user's function that an equation of a callback calls."""
    function = equation.params["callback"]
    function = getattr(function, "callback_func", function)
    if inspect.isfunction(function) and function.__name__ == "_flat_callback":
        # JAX's own, around the user's.
        function = inspect.getclosurevars(function).nonlocals.get("callback", function)
    while isinstance(function, functools.partial):
        function = function.func
    return function


class CallbackExtraction:
    """Takes the callbacks out of a jaxpr.

    Attributes:
        closed: the jaxpr, with numbered calls in their places.
        functions: what is called, by number.
        effects: those of the jaxpr that are no callback's.
    """

    def __init__(self, name: str, closed: Any) -> None:
        """Works on the jaxpr of the function called ``name``.

        Raises:
            TraceError: a callback stands where it cannot run once for all devices.
        """
        self._name = name
        self._functions: list[HostFunction] = []
        # By identity: what is called twice is one function in the text, too.
        self._made: dict[int, tuple[Any, Any]] = {}
        self._effects: frozenset[Any] = frozenset(
            effect
            for equation in equations(closed.jaxpr)
            if equation.primitive.name in CALLBACKS
            for effect in equation.effects
        )
        self.closed = closed.replace(jaxpr=self._jaxpr(closed.jaxpr))
        self.functions = tuple(self._functions)
        others = (
            effect
            for equation in equations(self.closed.jaxpr)
            if equation.effects
            and equation.primitive is not callback_p
            and not any(True for _ in jaxprs_in_params(equation.params))
            for effect in equation.effects
            if effect in closed.effects
        )
        self.effects = (frozenset(closed.effects) - self._effects).union(others)

    def _jaxpr(self, jaxpr: Any) -> Any:
        if id(jaxpr) not in self._made:
            made = jaxpr
            # A branch has the effects of all branches, those of callbacks in another one too.
            if not self._effects.isdisjoint(jaxpr.effects) or any(
                equation.primitive.name in CALLBACKS for equation in equations(jaxpr)
            ):
                made = jaxpr.replace(
                    eqns=[self._equation(equation) for equation in jaxpr.eqns],
                    effects=self._unordered(jaxpr.effects),
                )
            self._made[id(jaxpr)] = (jaxpr, made)
        return self._made[id(jaxpr)][1]

    def _unordered(self, effects: Any) -> frozenset[Any]:
        return frozenset(_CALLS_HOST if one in self._effects else one for one in effects)

    def _equation(self, equation: Any) -> Any:
        if equation.primitive.name in CALLBACKS:
            return self._call(equation)
        if not any(True for _ in jaxprs_in_params(equation.params)):
            return equation
        params = with_inner(equation.params, self._jaxpr)
        if equation.primitive.name == "shard_map":
            for inner in equations(equation.params["jaxpr"]):
                if inner.primitive.name in CALLBACKS:
                    raise TraceError(
                        f"{self._name} calls back into Python ({callback_name(inner)}) inside of a "
                        "shard_map, where every device would call; call outside of it"
                    )
        return equation.replace(params=params, effects=self._unordered(equation.effects))

    def _call(self, equation: Any) -> Any:
        params = equation.params
        # A pure one whose results nobody uses may be left out, as JAX does.
        is_kept = bool(equation.effects)
        function = HostFunction(
            name=callback_name(equation),
            call=flat_call(equation),
            operands=tuple(_tensor(atom.aval) for atom in equation.invars),
            results=tuple(_tensor(atom.aval) for atom in equation.outvars),
            key_impls=tuple(impl_of(atom.aval) for atom in equation.invars),
        )
        for atom in equation.outvars:
            if impl_of(atom.aval) is not None:
                raise TraceError(
                    f"{function.name} in {self._name} returns PRNG keys; return their data "
                    "(jax.random.key_data)"
                )
        self._functions.append(function)
        return equation.replace(
            primitive=callback_p,
            params={
                "index": len(self._functions) - 1,
                "name": function.name,
                "is_ordered": _is_ordered(params),
                "out_avals": tuple(atom.aval for atom in equation.outvars),
                "is_kept": is_kept,
            },
            effects=_effects(is_kept),
        )


def _is_ordered(params: Any) -> bool:
    if "ordered" in params:
        return bool(params["ordered"])
    return isinstance(params.get("effect"), jax.debug.OrderedDebugEffect)


def flat_call(equation: Any) -> Callable[..., Sequence[Any]]:
    """The function of an equation, of flat arrays on the host."""
    if equation.primitive.name == "debug_print":
        # JAX's own, so that it formats as JAX does.
        printing: Callable[..., Sequence[Any]] = functools.partial(
            equation.primitive.impl, **equation.params
        )
        return printing
    callback: Callable[..., Sequence[Any]] = equation.params["callback"]
    return lambda *args: callback(*args) or ()


def _tensor(aval: Any) -> TensorType:
    impl = impl_of(aval)
    if impl is None:
        return tuple(aval.shape), aval.dtype.name
    return (*aval.shape, *key_shape(impl)), "uint32"
