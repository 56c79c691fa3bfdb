"""A function whose signature is that of ``jax.jit``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from alpa_runtime.host_memory import type_of
from alpa_runtime.inputs import aval_of
from alpa_runtime.platforms import lower

from stablehlo_alpa.errors import ArgumentError, TraceError

# Makes the default PRNG implementation a part of what jax keys its traces on, which it is not in
# 0.10.2: a function that was traced with one would keep it. None for jax's own default.
_prng_impl: Any = jax.make_user_context(None)
_USUAL_PRNG_IMPL = "threefry2x32"

# Whether a function is being traced that is planned as a whole: parallelised functions in it are
# parts of it. What they are made of elsewhere is another trace.
_is_planned: Any = jax.make_user_context(False)


@dataclass(frozen=True)
class Argument:
    """One argument of a call that is traced: a run of flat inputs.

    Attributes:
        name: of the parameter.
        number: position of the parameter among all positional ones, static ones counted, however
            it was passed; -1 of one that can be passed by keyword only.
        start: its first flat input.
        value: pytree of what the call was traced with.
        donated: which of its leaves are.
    """

    name: str
    number: int
    start: int
    value: Any
    donated: tuple[bool, ...]

    @property
    def size(self) -> int:
        """Flat inputs."""
        return len(self.donated)


class Function:
    """A function under ``jax.jit``, which alone decides what its arguments mean.

    Attributes:
        fun: the function.
        name: what messages call it.
        jitted: what owns names, defaults, static and donated arguments.
        undonated: the same without donated ones.
        static_argnums, static_argnames: as ``jax.jit`` has completed them from each other.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        *,
        static_argnums: int | Sequence[int] | None = None,
        static_argnames: str | Iterable[str] | None = None,
        donate_argnums: int | Sequence[int] | None = None,
        donate_argnames: str | Iterable[str] | None = None,
    ) -> None:
        """Takes what ``jax.jit`` takes, and raises what it raises."""
        self.fun, self.name = fun, name_of(fun)
        static: dict[str, Any] = {
            "static_argnums": static_argnums,
            "static_argnames": static_argnames,
        }
        donated: dict[str, Any] = {
            "donate_argnums": donate_argnums,
            "donate_argnames": donate_argnames,
        }
        self._options = static | donated
        self.jitted = jax.jit(fun, **self._options, keep_unused=True)
        # Lowered from here: donation is the executable's, and would be warned of twice. jax keeps
        # traces by the function, so both share one.
        self.undonated = jax.jit(fun, **static, keep_unused=True)
        # jax completes numbers and names from each other, and has no public name for the result.
        info: Any = self.jitted._jit_info  # type: ignore[attr-defined]
        self.static_argnums: tuple[int, ...] = info.static_argnums
        self.static_argnames: tuple[str, ...] = info.static_argnames
        self._signature: inspect.Signature | None = info.fun_signature

    @property
    def donated(self) -> dict[str, Any]:
        """What ``jax.jit`` was told of donated arguments."""
        return {name: one for name, one in self._options.items() if name.startswith("donate")}

    def behind(self, wrap: Callable[[Callable[..., Any], str], Callable[..., Any]]) -> Function:
        """What ``wrap(fun, name)`` makes of it, with arguments that mean the same."""
        return Function(wrap(self.fun, self.name), **self._options)

    def each(
        self, one: Callable[[str, Any], Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call with ``one(name, argument)`` for every argument that is not static."""
        static = _counted(self.static_argnums, len(args))
        positional = tuple(
            arg if i in static else one(self._positional(i)[0], arg) for i, arg in enumerate(args)
        )
        named = {
            name: arg if name in self.static_argnames else one(name, arg)
            for name, arg in kwargs.items()
        }
        return positional, named

    def abstracted(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call with types for arrays; shardings, which jax counts as types, are left out.

        Raises:
            ArgumentError: an argument that is not static is no array.
            TraceError: one has a dimension that is no number.
        """
        return self.each(functools.partial(_types, self.name), args, kwargs)

    def trace(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> jax.stages.Traced:
        """What jax makes of a call in the present context; the same for equal signatures.

        Raises:
            TraceError: the function closes over values of a transformation around it.
        """
        with _prng_context(), planned_whole():
            traced = self.jitted.trace(*args, **kwargs)
        if len(traced.jaxpr.in_avals) != len(jax.tree.leaves(self.dynamic(args, kwargs))):
            raise TraceError(
                f"{self.name} closes over values that jax.jit, jax.grad or another transformation "
                "around it traces: pass them as arguments"
            )
        return traced

    def lower(self, args: Sequence[Any], kwargs: Mapping[str, Any], platform: str) -> Any:
        """The module of a call for a platform; see ``alpa_runtime.platforms``."""
        with _prng_context(), planned_whole():
            traced = self.undonated.trace(*args, **kwargs)
            return lower(traced, platform).compiler_ir("stablehlo")

    def dynamic(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call that are not static."""
        static = _counted(self.static_argnums, len(args))
        positional = tuple(arg for i, arg in enumerate(args) if i not in static)
        return positional, {
            name: arg for name, arg in kwargs.items() if name not in self.static_argnames
        }

    def arguments(
        self, traced: jax.stages.Traced, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> list[Argument]:
        """The arguments of a traced call that are not static, in the order of flat inputs.

        Args:
            traced: the call.
            args: what it was traced with by position, static ones among them.
            kwargs: likewise by keyword.
        """
        static = _counted(self.static_argnums, len(args))
        parts = [(*self._positional(i), arg) for i, arg in enumerate(args) if i not in static]
        _, named = self.dynamic(args, kwargs)
        # As jax flattens a dict.
        parts += [(name, self._number(name), named[name]) for name in sorted(named)]
        # Not of `args_info`, which has what is no array in the caller's own classes: those that
        # look at what they are made of, as the loss scales of jmp do, fail.
        donated = traced._params["donated_invars"]
        found: list[Argument] = []
        start = 0
        for name, number, value in parts:
            end = start + len(jax.tree.leaves(value))
            found.append(Argument(name, number, start, value, tuple(donated[start:end])))
            start = end
        return found

    def number_of(self, argument: int | str) -> int | None:
        """Position of a parameter given by number (from the end when negative) or by name.

        None of one that is passed by keyword only.
        """
        if isinstance(argument, str):
            number = self._number(argument)
            return None if number < 0 else number
        return argument if argument >= 0 else argument + len(self.positional_names)

    def check_batches(self, batches: Sequence[int | str]) -> None:
        """Refuses batches that are no arguments, or static.

        Raises:
            TraceError: naming them.
        """
        kinds = {parameter.kind for parameter in self.parameters}
        is_known = bool(self.parameters)
        for one in batches:
            if isinstance(one, str):
                is_free = inspect.Parameter.VAR_KEYWORD in kinds
                is_there = any(parameter.name == one for parameter in self.parameters)
            else:
                is_free = inspect.Parameter.VAR_POSITIONAL in kinds
                is_there = -len(self.positional_names) <= one < len(self.positional_names)
            if is_known and not is_free and not is_there:
                raise TraceError(
                    f"batch_argnums has {one!r}, {self.name} takes "
                    f"({', '.join(parameter.name for parameter in self.parameters)})"
                )
            if one in self.static_argnums or one in self.static_argnames:
                raise TraceError(f"batch_argnums has {one!r}, a static argument of {self.name}")

    @functools.cached_property
    def positional_names(self) -> tuple[str, ...]:
        """Names of the parameters that can be passed by position."""
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return tuple(p.name for p in self.parameters if p.kind in kinds)

    @functools.cached_property
    def parameters(self) -> tuple[inspect.Parameter, ...]:
        """Of the signature; none where Python does not know it."""
        return () if self._signature is None else tuple(self._signature.parameters.values())

    def _positional(self, position: int) -> tuple[str, int]:
        """Name of what is passed at a position, and the position."""
        names = self.positional_names
        if position < len(names):
            return names[position], position
        rest = [p.name for p in self.parameters if p.kind is inspect.Parameter.VAR_POSITIONAL]
        return f"{rest[0] if rest else 'args'}[{position - len(names)}]", position

    def _number(self, name: str) -> int:
        for number, parameter in enumerate(self.parameters):
            if parameter.name == name:
                is_positional = parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
                return number if is_positional else -1
        return -1


def _types(function: str, name: str, argument: Any) -> Any:
    def one(path: Any, leaf: Any) -> jax.ShapeDtypeStruct:
        where = name + jax.tree_util.keystr(path)
        if isinstance(leaf, jax.Ref):
            raise ArgumentError(
                f"argument {where} of {function} is a jax.Ref, which a plan cannot write into: "
                "pass ref[...], and return its new value"
            )
        try:
            found = abstract(leaf)
        except TypeError as error:
            if isinstance(leaf, np.ndarray | np.generic):
                raise ArgumentError(
                    f"argument {where} of {function} has dtype {leaf.dtype}, which is none of "
                    "jax's: convert it by .astype, or name the argument in static_argnames= or "
                    "static_argnums="
                ) from error
            raise ArgumentError(
                f"argument {where} of {function} is no array but of type "
                f"{type(leaf).__name__}: pass an array or a number, or name the argument in "
                "static_argnames= or static_argnums="
            ) from error
        except OverflowError as error:
            raise OverflowError(
                f"argument {where} of {function} is {leaf}, more than its type holds: {error}"
            ) from error
        _check_static_shape(function, where, found.shape)
        return found

    return jax.tree_util.tree_map_with_path(one, argument)


def check_arrays(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuses a call with types, which only a plan can be made for, as an `ArgumentError`."""

    def one(name: str, argument: Any) -> Any:
        for path, leaf in jax.tree_util.tree_leaves_with_path(argument):
            if isinstance(leaf, jax.ShapeDtypeStruct):
                raise ArgumentError(
                    f"argument {name}{jax.tree_util.keystr(path)} of {function.name} is a "
                    "jax.ShapeDtypeStruct: pass an array to call it; plan and lower take types"
                )
        return argument

    function.each(one, args, kwargs)


def _check_static_shape(name: str, value: str, shape: Sequence[Any]) -> None:
    for dimension, size in enumerate(shape):
        if not isinstance(size, int):
            raise TraceError(
                f"dimension {dimension} of argument {value} of {name} is {size}, dynamic shapes "
                "cannot be planned: every dimension must be a number"
            )


def _prng_context() -> Any:
    impl = jax.config.jax_default_prng_impl  # type: ignore[attr-defined]
    return _prng_impl(None if impl == _USUAL_PRNG_IMPL else impl)


def planned_whole() -> Any:
    """A context in which what is traced is planned as a whole."""
    return _is_planned(True)


def is_planned() -> bool:
    """Whether the function around is being traced to be planned as a whole."""
    return bool(_is_planned.value)


def _counted(positions: Sequence[int], count: int) -> set[int]:
    """Positions among ``count`` arguments, of those counted from the end too."""
    return {i + count if i < 0 else i for i in positions}


def name_of(fun: Callable[..., Any]) -> str:
    """What messages call a callable: a partial function is called as what it is of."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    return getattr(fun, "__name__", None) or type(fun).__name__


def abstract(leaf: Any) -> jax.ShapeDtypeStruct:
    """Shape, dtype, weak type and memory of an array-like or of a ``ShapeDtypeStruct``."""
    return type_of(leaf if isinstance(leaf, jax.ShapeDtypeStruct) else aval_of(leaf))
