"""The front door: ``partition``."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import jax
from alpa_runtime.keys import data_of, impl_of, with_impl
from jax._src.core import NamedAxisEffect
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from stablehlo_alpa.api.methods import ShardParallel
from stablehlo_alpa.cluster import ClusterSpec, as_cluster, one_part
from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend import check_supported, is_planned, planned_whole, positions
from stablehlo_alpa.frontend.opened_primitives import with_calls_seen
from stablehlo_alpa.partitioner.asked import Asked
from stablehlo_alpa.partitioner.differentiation import differentiable

logger = logging.getLogger(__name__)


def partition(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    method: ShardParallel | None = None,
    cluster: ClusterSpec | str | None = None,
    trip_count_hint: int | None = None,
) -> Any:
    """Lets the planner split a function inside any jitted program on any mesh.

    When XLA partitions the program, it hands the function's body to the planner together with the
    shardings that it proposes for arguments and results. Those that XLA splits stay as they are as
    far as the body can take them; the others are the planner's choice. Works with Shardy and GSPMD,
    under derivatives of any order in forward and reverse mode (``jax.grad``, ``jax.jvp``,
    ``jax.linearize``, ``jax.hessian``), ``jax.vmap``, ``jax.lax.scan``, ``jax.checkpoint``, and
    beside other partitioned functions. On one device, inside of ``jax.shard_map``, outside of
    ``jax.jit``, and where it has collectives over an axis of ``jax.vmap`` around it, it is the
    function itself; inside of what is planned it is a part of that.

    Args:
        fun: function of pytrees of arrays. Used without it, ``partition`` makes a decorator.
        static_argnums: positions of arguments that are compile-time constants.
        method: memory budget of the function, device and limits of the solver; the mesh is that of
            the program around it.
        cluster: that the mesh stands for, as ``parallelize`` takes it; by default its devices.
        trip_count_hint: how often loops run of which the program does not say it, as
            ``parallelize`` takes it.

    Returns:
        a function that is called as ``fun`` is.

    Raises:
        TraceError: at the call; the function has effects, calls back into Python, is sharded by
            hand already, or a dimension is not a number.

    Example:
        >>> block = stablehlo_alpa.partition(transformer_block)
        >>> step = jax.jit(lambda w, x: block(w, x).sum(), in_shardings=(None, batch_sharding))
    """
    if fun is None:
        return functools.partial(
            partition,
            static_argnums=static_argnums,
            method=method,
            cluster=cluster,
            trip_count_hint=trip_count_hint,
        )
    described = None if cluster is None else one_part(as_cluster(cluster), "partition")
    chosen = Asked(method or ShardParallel(), described, trip_count_hint)
    name = getattr(fun, "__name__", type(fun).__name__)

    @functools.wraps(fun)
    def partitioned(*args: Any, **kwargs: Any) -> Any:
        if is_planned():
            # A part of what is planned around it.
            return fun(*args, **kwargs)
        return _call_trees(fun, name, chosen, positions(static_argnums, len(args)), args, kwargs)

    return partitioned


def _call_trees(
    fun: Callable[..., Any],
    name: str,
    asked: Asked,
    fixed: Collection[int],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    """Calls a function of pytrees, of which some arguments are constants."""
    dynamic = [arg for i, arg in enumerate(args) if i not in fixed]
    leaves, tree = jax.tree.flatten((dynamic, kwargs))
    _check_leaves(name, leaves)
    structure: Any = tree
    out_tree: list[Any] = []

    def flat(*values: Any) -> list[Any]:
        given, named = structure.unflatten(values)
        rest = iter(given)
        call = [arg if i in fixed else next(rest) for i, arg in enumerate(args)]
        results, found = jax.tree.flatten(fun(*call, **named))
        out_tree.append(found)
        return results

    with planned_whole():
        closed = jax.make_jaxpr(flat)(*leaves)
    if any(isinstance(effect, NamedAxisEffect) for effect in closed.effects):
        # Along an axis of what is around it, where alone that has a size.
        logger.info("%s has collectives over axes that are not its own: it is not planned", name)
        return fun(*args, **kwargs)
    check_supported(name, with_calls_seen(closed))
    results = _call(name, closed, leaves, asked)
    return out_tree[-1].unflatten(results)


def _call(name: str, closed: Any, leaves: Sequence[Any], asked: Asked) -> list[Any]:
    """Calls a traced function whose captured values become arguments, keys as their data."""
    values = [*closed.consts, *leaves]
    impls = [impl_of(value) for value in values]
    out_impls = [impl_of(aval) for aval in closed.out_avals]
    num_consts = len(closed.consts)

    def raw(*data: Any) -> tuple[Any, ...]:
        typed = list(map(with_impl, data, impls))
        inner = ClosedJaxpr(closed.jaxpr, typed[:num_consts])
        return tuple(map(data_of, jaxpr_as_fun(inner)(*typed[num_consts:])))

    raw.__name__ = raw.__qualname__ = name
    results = differentiable(raw, asked)(*map(data_of, values))
    return list(map(with_impl, results, out_impls))


def _check_leaves(name: str, leaves: Sequence[Any]) -> None:
    if not leaves:
        raise TraceError(f"{name} has no array arguments, nothing can be sharded")
    for leaf in leaves:
        try:
            shape = jax.numpy.shape(leaf)
        except TypeError as error:
            raise TraceError(f"argument of {name} is no array: {error}") from error
        if not all(isinstance(size, int) for size in shape):
            raise TraceError(
                f"an argument of {name} has shape {shape}, dynamic shapes cannot be planned: every "
                "dimension must be a number"
            )
        sharding = getattr(jax.typeof(leaf), "sharding", None)
        mesh = getattr(sharding, "mesh", None)
        if mesh is not None and getattr(mesh, "explicit_axes", None):
            raise TraceError(
                f"an argument of {name} lies on a mesh with explicit axes {mesh.explicit_axes}: "
                "partition leaves shardings to XLA, whose mesh must have axes of type Auto "
                "(jax.make_mesh(..., axis_types=(jax.sharding.AxisType.Auto,) * rank))"
            )
