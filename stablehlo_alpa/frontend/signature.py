"""What makes two calls equal: what makes them equal to ``jax.jit``.

jax has no public name for how it splits a call and for the context in which it traces. Both are
taken from where ``jax.jit`` takes them: anything rebuilt would differ from it silently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import numpy as np
from alpa_runtime.host_memory import is_on_host
from jax._src import config, tree_util
from jax._src.lib import jax_jit
from jax.sharding import NamedSharding

from stablehlo_alpa.errors import ArgumentError
from stablehlo_alpa.frontend.function import Function, abstract

Aval: TypeAlias = tuple[tuple[int, ...], Any, bool, bool]

_PYTHON_SCALARS = frozenset({bool, int, float, complex})


def split(
    function: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Any, list[Any]]:
    """Splits a call as ``jax.jit`` does.

    Returns:
        structure of the arguments with names, types and values of static ones, to be compared and
        hashed; the flat inputs.
    """
    found: tuple[Any, list[Any]] = jax_jit.parse_arguments(
        args,
        tuple(kwargs.values()),
        tuple(kwargs),
        function.static_argnums,
        function.static_argnames,
        tree_util.default_registry,
    )
    return found


def check_hashable(function: Function, arguments: Any) -> None:
    """Refuses static arguments that cannot be hashed, as an `ArgumentError`."""
    try:
        hash(arguments)
    except ValueError as error:
        reason = str(error).replace("\n", " ")
        raise ArgumentError(
            f"static arguments of {function.name} must be hashable: {reason}; pass a tuple for a "
            "list, or an array as an argument that is not static"
        ) from error


def context() -> tuple[Any, ...]:
    """Everything around a call that traces and programs depend on.

    What jax counts: number types, precision of products, context mesh, user contexts, ...; how hard
    XLA optimises, which ``jax.jit`` compiles anew for; and the default PRNG implementation, which
    jax 0.10.2 forgets to count.
    """
    return (
        config.trace_context(),
        config.optimization_level.value,
        config.memory_fitting_level.value,
        config.default_prng_impl.value,
    )


@dataclass(frozen=True)
class Signature:
    """What a plan is made for.

    Attributes:
        arguments: of `split`.
        avals: shape, dtype, weak type of every flat input, and whether it lies on the host.
        context: of `context`.
        placements: per flat input where it lies, for methods that follow their inputs.
    """

    arguments: Any
    avals: tuple[Aval, ...]
    context: tuple[Any, ...]
    placements: tuple[Any, ...]


def avals_of(leaves: Sequence[Any]) -> tuple[Aval, ...]:
    """Shape, dtype, weak type of flat inputs, and whether they lie on the host.

    Raises:
        TypeError: one is no array.
    """
    types = map(abstract, leaves)
    return tuple(
        (tuple(one.shape), one.dtype, bool(one.weak_type), is_on_host(one)) for one in types
    )


def placements_of(leaves: Sequence[Any]) -> tuple[Any, ...]:
    """Mesh and spec of every flat input that lies on a mesh, None of the others."""
    return tuple(map(_placement, leaves))


def _placement(leaf: Any) -> Any:
    sharding = getattr(leaf, "sharding", None)
    if hasattr(sharding, "mesh_axes"):
        # Of a cluster, and hashable.
        return sharding
    if not isinstance(sharding, NamedSharding):
        return None
    entries = list(sharding.spec)
    while entries and entries[-1] is None:
        entries.pop()
    return sharding.mesh, tuple(entries)


def described(leaves: Sequence[Any], array_type: type[Any]) -> list[Any]:
    """What flat inputs are, for a comparison with those of the call before.

    Equal descriptions have equal types; results of one program share theirs with the results of
    the call before, so that most comparisons are of identity.

    Args:
        leaves: the inputs.
        array_type: the class of concrete arrays.
    """
    return [leaf.aval if type(leaf) is array_type else _description(leaf) for leaf in leaves]


def _description(leaf: Any) -> Any:
    kind = type(leaf)
    if kind in _PYTHON_SCALARS:
        # A large integer may not be what the type of the others holds.
        return kind, kind is int and not -(2**31) <= leaf < 2**31
    if kind is np.ndarray or issubclass(kind, np.generic):
        return leaf.shape, leaf.dtype
    if isinstance(leaf, jax.core.Tracer):
        return object()
    aval = getattr(leaf, "aval", None)
    return object() if aval is None else aval
