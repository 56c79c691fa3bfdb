"""A parallelised function: plans and compiles once per signature, then runs."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import jax
from alpa_runtime.host_memory import type_of
from alpa_runtime.inputs import concrete_type
from jax.extend.core import jaxpr_as_fun
from jax.interpreters.partial_eval import DynamicJaxprTracer

from stablehlo_alpa.api.bound import BoundParallelized
from stablehlo_alpa.api.checkpoint import match_leaves
from stablehlo_alpa.api.given import check_state_options
from stablehlo_alpa.api.plan_cache import PlanCache
from stablehlo_alpa.api.prepared import Prepared
from stablehlo_alpa.api.settings import Settings
from stablehlo_alpa.api.stages import Compiled, Lowered
from stablehlo_alpa.errors import OptionError, TraceError
from stablehlo_alpa.frontend import Function, abstract, is_planned, planned_whole
from stablehlo_alpa.frontend.function import check_arrays
from stablehlo_alpa.frontend.separate_calls import separate_call
from stablehlo_alpa.frontend.signature import (
    Signature,
    avals_of,
    check_hashable,
    context,
    described,
    placements_of,
    split,
)
from stablehlo_alpa.option_checks import checked_instance
from stablehlo_alpa.planning import Plan

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")


@dataclasses.dataclass(frozen=True, eq=False)
class _Last:
    """What was called last, and as what.

    Attributes:
        arguments, context: of its signature.
        descriptions: of its flat inputs.
        shardings: of its flat inputs, when the method follows them.
        array_type: the class of concrete arrays.
        compiled: what was called.
    """

    arguments: Any
    context: tuple[Any, ...]
    descriptions: list[Any]
    shardings: list[Any] | None
    array_type: type[Any]
    compiled: Compiled

    def fits(self, arguments: Any, leaves: Sequence[Any]) -> bool:
        """Whether a call is of the same signature."""
        return bool(
            self.arguments == arguments
            and described(leaves, self.array_type) == self.descriptions
            and context() == self.context
            and (self.shardings is None or _shardings(leaves) == self.shardings)
        )


class Parallelized(Generic[P, R]):
    """What ``parallelize`` returns; call it as the function it was made from.

    Plans and compiled programs are kept per signature. Two calls have the same one when they have
    it under ``jax.jit``: structure, shapes, dtypes and weak types of arrays, types and values of
    static arguments, and the context (number types, PRNG implementation, context mesh, ...).

    As with any function, copies are the object itself.
    """

    __name__: str
    __wrapped__: Callable[P, R]

    def __init__(self, fun: Callable[P, R], function: Function, settings: Settings):
        """Made by ``parallelize``.

        Args:
            fun: the function.
            function: it under ``jax.jit``.
            settings: how it is parallelised.
        """
        # Attributes of the object that is called stay there: they are not ours to shadow.
        functools.update_wrapper(self, fun, updated=())
        self.__name__ = function.name
        self._function, self._settings = function, settings
        self._prepared = PlanCache()
        self._last: _Last | None = None
        self._array_type: type[Any] | None = None
        self._lock = threading.RLock()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs the function on the mesh; plans and compiles at the first call of a signature."""
        arguments, leaves = split(self._function, args, kwargs)
        last = self._last
        if last is None or not last.fits(arguments, leaves):
            if is_planned():
                # A part of a function that is parallelised, which decides how all of it is split.
                part: R = self._function.undonated(*args, **kwargs)
                return part
            if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
                inlined: R = self._inline(leaves, args, kwargs)
                return inlined
            if jax.config.jax_disable_jit:  # type: ignore[attr-defined]
                return self.__wrapped__(*args, **kwargs)
            last = self._find(arguments, leaves, args, kwargs)
        result: R = last.compiled.call_flat(leaves)
        return result

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Parallelized[P, R]: ...

    @overload
    def __get__(
        self: Parallelized[Concatenate[S, Q], R], instance: S, owner: Any = None
    ) -> BoundParallelized[Q, R]: ...

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A method of an object, which is its first argument."""
        return self if instance is None else BoundParallelized(self, instance)

    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        """Plans without compiling or touching devices.

        Args:
            *args: positional arguments of the function; ``jax.ShapeDtypeStruct`` will do.
            **kwargs: its keyword arguments.
        """
        with self._lock:
            return self._prepare(args, kwargs).plan

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Plans and binds to the devices; what its ``compile`` makes, calls run."""
        with self._lock:
            return self._prepare(args, kwargs).lowered

    def compile(self, *args: Any, **kwargs: Any) -> Compiled:
        """Plans and compiles."""
        with self._lock:
            return self._prepare(args, kwargs).compiled

    def create_state(
        self,
        init_fn: Callable[..., Any],
        *init_args: Any,
        batch: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        argnum: int | str = 0,
    ) -> Any:
        """Makes the training state already sharded as the plan wants it.

        Every device computes its part; the state is never whole on one device.

        Args:
            init_fn: makes the state from ``init_args``, traceable by jax.
            *init_args: its arguments.
            batch: all other arguments that the parallelised function is called with by position,
                in order: static ones as they are, the rest as arrays or ``jax.ShapeDtypeStruct``.
                May be left out, with ``kwargs``, once the function was compiled for such a state.
            kwargs: all other arguments that it is called with by keyword, likewise.
            argnum: which argument the state is: its position among all of them, or its name when
                it is passed by keyword.

        Returns:
            the state.

        Example:
            >>> state = step.create_state(init, key, batch=(batch,), kwargs={"train": True})
            >>> state, loss = step(state, batch, train=True)
        """
        check_state_options(batch, kwargs, argnum)
        if not callable(init_fn):
            raise OptionError(f"init_fn must be callable, got {init_fn!r}")
        with planned_whole():
            closed, shapes = jax.make_jaxpr(init_fn, return_shape=True)(*init_args)
        tree: Any = jax.tree.structure(shapes)
        state = tree.unflatten(map(type_of, closed.out_avals))
        compiled = self._for_state(state, batch, kwargs, argnum)
        leaves = compiled.create(jaxpr_as_fun(closed), jax.tree.leaves(init_args), argnum)
        return tree.unflatten(leaves)

    def restore_state(
        self,
        path: str | os.PathLike[str],
        state: Any,
        *,
        batch: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        argnum: int | str = 0,
    ) -> Any:
        """Reads the training state from a checkpoint, sharded as the plan wants it.

        The checkpoint may come from another plan, another number of devices or a cluster.

        Args:
            path: what ``save_checkpoint`` wrote.
            state: a pytree like the state, of ``jax.ShapeDtypeStruct`` or arrays.
            batch: as in `create_state`.
            kwargs: as in `create_state`.
            argnum: as in `create_state`.

        Raises:
            InputError: there is no checkpoint, or it is of another state.
        """
        check_state_options(batch, kwargs, argnum)
        checked_instance("path", path, (str, os.PathLike), "the folder of a checkpoint")
        keyed = jax.tree_util.tree_leaves_with_path(state)
        tree: Any = jax.tree.structure(state)
        avals = [abstract(leaf) for _, leaf in keyed]
        keys = [jax.tree_util.keystr(key) for key, _ in keyed]
        leaves = match_leaves(path, keys, avals)
        compiled = self._for_state(tree.unflatten(avals), batch, kwargs, argnum)
        return tree.unflatten(compiled.restore(Path(path), leaves, argnum))

    def __repr__(self) -> str:
        return f"<{self.__name__} parallelized by {self._settings.method.brief()}>"

    def __deepcopy__(self, memo: Any = None) -> Parallelized[P, R]:
        return self

    __copy__ = __deepcopy__

    def __reduce__(self) -> str:
        """As functions are pickled: by name."""
        name = getattr(self, "__qualname__", self.__name__)
        found: Any = importlib.import_module(self.__module__)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not self:
            raise TypeError(
                f"{self!r} is pickled by name, and {self.__module__}.{name} is not it: decorate "
                "the function where it is defined, or pickle the function and parallelize it anew"
            )
        return name

    def _for_state(
        self,
        state: Any,
        batch: Sequence[Any] | None,
        kwargs: Mapping[str, Any] | None,
        argnum: int | str,
    ) -> Compiled:
        """What runs a call with such a state."""
        if batch is not None or kwargs is not None:
            args, named = list(batch or ()), dict(kwargs or {})
            if isinstance(argnum, str):
                named[argnum] = state
            elif 0 <= argnum <= len(args):
                args.insert(argnum, state)
            else:
                raise TraceError(
                    f"argnum={argnum} is not among the {len(args) + 1} positional arguments of "
                    f"{self.__name__}, the state and those in batch="
                )
            return self.compile(*args, **named)
        wanted = _types(state)
        for prepared in self._prepared:
            if prepared.is_compiled and _types(prepared.argument(argnum)) == wanted:
                return prepared.compiled
        raise TraceError(
            f"{self.__name__} was not planned for this state yet: pass batch=(...), its other "
            "positional arguments or their shapes, and kwargs={...}, those by keyword"
        )

    def _prepare(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Prepared:
        """What is made for the signature of a call; the lock is held."""
        arguments, leaves = split(self._function, args, kwargs)
        check_hashable(self._function, arguments)
        # First, because it names the argument that is no array.
        types, named = self._function.abstracted(args, kwargs)
        settings, placements = self._settings, ()
        method = settings.method.bind(leaves)
        if method is not settings.method:
            settings = dataclasses.replace(settings, method=method)
            placements = placements_of(leaves)
        key = Signature(arguments, avals_of(leaves), context(), placements)
        return self._prepared.find(
            key, lambda nearest: Prepared(self._function, settings, types, named, nearest)
        )

    def _find(
        self,
        arguments: Any,
        leaves: Sequence[Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> _Last:
        """Compiles for a call, and remembers it for the next one."""
        check_arrays(self._function, args, kwargs)
        with self._lock:
            compiled = self._prepare(args, kwargs).compiled
            self._array_type = array_type = self._array_type or concrete_type()
        shardings = _shardings(leaves) if self._settings.method.follows_inputs else None
        descriptions = described(leaves, array_type)
        self._last = last = _Last(
            arguments, context(), descriptions, shardings, array_type, compiled
        )
        return last

    def _inline(
        self, leaves: Sequence[Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """The function as a part of a program that ``jax.jit`` traces."""
        name = self.__name__
        traced = [leaf for leaf in leaves if isinstance(leaf, jax.core.Tracer)]
        is_manual = bool(jax.sharding.get_abstract_mesh().manual_axes)
        if is_manual or not all(isinstance(leaf, DynamicJaxprTracer) for leaf in traced):
            raise TraceError(
                f"{name} is called inside of jax.grad, jax.vmap, jax.shard_map or another "
                "transformation, but is planned as it is: transform the function that it is made "
                "of and parallelize the result, or use stablehlo_alpa.partition"
            )
        if not self._settings.has_one_mesh or self._settings.method.backend != "alpa":
            return separate_call(
                self._function,
                args,
                kwargs,
                f"{name} is called inside of jax.jit, but {self._settings.method.brief()} "
                "makes programs of its own: call it outside, parallelize the whole function, or "
                "use stablehlo_alpa.partition",
            )
        for leaf in traced:
            mesh = jax.typeof(leaf).sharding.mesh
            if mesh.explicit_axes:
                raise TraceError(
                    f"an argument of {name}, called inside of jax.jit, lies on a mesh with "
                    f"explicit axes {mesh.explicit_axes}, and the plan has shardings of its own: "
                    "use a mesh whose axes are of type Auto"
                )
        with self._lock:
            return self._prepare(args, kwargs).lowered.inline(leaves)


def _shardings(leaves: Sequence[Any]) -> list[Any]:
    return [getattr(leaf, "sharding", None) for leaf in leaves]


def _types(tree: Any) -> Any:
    """Structure, shapes and dtypes of an argument."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(getattr(x, "shape", None), getattr(x, "dtype", None)) for x in leaves]
