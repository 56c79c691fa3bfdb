"""The short way to say how a function is split that runs on blocks as it runs on the whole."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax._src.custom_partitioning_sharding_rule import str_to_sdy_sharding_rule
from jax.experimental.custom_partitioning import (
    BATCHING,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)
from jax.sharding import NamedSharding, PartitionSpec

from stablehlo_alpa.errors import ShardingError

_REDUCTIONS: Mapping[str, Callable[..., Any]] = {
    "sum": jax.lax.psum,
    "max": jax.lax.pmax,
    "min": jax.lax.pmin,
}

Dims = list[tuple[str, ...]]
"""Per dimension the names of its loops, the major first."""


def kernel(
    rule: str,
    *,
    reductions: Mapping[str, str] | None = None,
    whole: Sequence[str] = (),
    sizes: Mapping[str, int] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Says how a function is split whose blocks are the function at the blocks' sizes.

    The function is one operator to the planner, whatever is in it: a kernel of Pallas, a call by
    ``jax.ffi``. What runs on a device is traced anew, at the sizes of its blocks. It is a
    ``jax.experimental.custom_partitioning``: ``jax.jit`` splits it by the same rule. As such it has
    no derivatives and no ``jax.vmap``: give it a ``jax.custom_vjp``.

    Args:
        rule: per argument and result, leaf by leaf, the loops that make up its dimensions, as
            ``custom_partitioning`` takes them: ``"b s h, h -> b s h"``, ``(n r)`` for a dimension
            made of two loops, the major first, ``...`` for leading dimensions.
        reductions: loops that results lack and over which devices combine them: ``"sum"``,
            ``"max"`` or ``"min"``. Others that a result lacks are not split.
        whole: loops that are not split, as every device needs all of them.
        sizes: of loops that no dimension has to itself.

    Returns:
        a decorator of functions of arrays.

    Raises:
        ShardingError: the rule is not of that form.

    Example:
        >>> @stablehlo_alpa.kernel("b h, h -> b h", whole=("h",))
        ... def rms_norm(x, scale):
        ...     return pallas_call(body, jax.ShapeDtypeStruct(x.shape, x.dtype))(x, scale)
    """
    # Beside sizes by name jax takes tuples of names.
    own_sizes: dict[str, Any] = dict(sizes or {})
    try:
        parsed = str_to_sdy_sharding_rule(rule, **own_sizes)
    except (ValueError, TypeError) as error:
        raise ShardingError(f"kernel rule {rule!r}: {error}") from error
    partitioning = _Partitioning(rule, parsed, dict(reductions or {}), frozenset(whole))
    partitioning.check()

    def decorate(fun: Callable[..., Any]) -> Callable[..., Any]:
        made = custom_partitioning(fun)
        made.def_partition(
            partition=_Callback(partitioning, fun),
            infer_sharding_from_operands=None,
            sharding_rule=partitioning.complete(),
        )
        return functools.wraps(fun)(made)

    return decorate


@dataclass(frozen=True, eq=False)
class _Partitioning:
    """A rule, and what devices do with it.

    Attributes:
        notation: as it was given.
        rule: as jax reads it.
        reductions: loops over which results are combined.
        whole: loops that are not split, by name.
    """

    notation: str
    rule: SdyShardingRule
    reductions: dict[str, str]
    whole: frozenset[str]

    def check(self) -> None:
        """Refuses loops that are not there, and reductions that are none."""
        operands = self._names(self.rule.operand_mappings)
        results = self._names(self.rule.result_mappings)
        for own in map(self._names, [[one] for one in self.rule.result_mappings]):
            for name in operands | results:
                if name.startswith(BATCHING) and name not in own:
                    raise ShardingError(
                        f"kernel rule {self.notation!r} has a result without the leading "
                        "dimensions '...' of another tensor: name them"
                    )
        for name in self.whole:
            if name not in operands | results:
                raise ShardingError(f"kernel rule {self.notation!r} has no loop {name!r}")
        for name, monoid in self.reductions.items():
            if name not in operands or name in results:
                raise ShardingError(
                    f"kernel rule {self.notation!r} reduces {name!r}, which must be in an argument "
                    "and in no result"
                )
            if monoid not in _REDUCTIONS:
                raise ShardingError(
                    f"kernel rule {self.notation!r} reduces {name!r} by {monoid!r}, not by one of "
                    f"{sorted(_REDUCTIONS)}"
                )
            if any(name in dim for dim in self._compound()):
                raise ShardingError(
                    f"kernel rule {self.notation!r} reduces {name!r}, which is a part of a "
                    "dimension: only whole dimensions are reduced"
                )

    def complete(self) -> SdyShardingRule:
        """The rule with all that is said of its loops."""
        results = [self._names([one]) for one in self.rule.result_mappings]
        names = self._names(self.rule.operand_mappings).union(*results)
        lacking = {name for name in names if not all(name in own for own in results)}
        sizes: dict[str, Any] = dict(self.rule.factor_sizes)
        kept = {name for name in lacking | self.whole if not name.startswith(BATCHING)}
        return SdyShardingRule(
            self.rule.operand_mappings,
            self.rule.result_mappings,
            reduction_factors=tuple(self.reductions),
            need_replication_factors=tuple(sorted(kept - set(self.reductions))),
            **sizes,
        )

    def answer(
        self, fun: Callable[..., Any], mesh: Any, arguments: Any, results: Any, *, combines: bool
    ) -> Any:
        """What ``custom_partitioning`` asks for: the function of a device, and its shardings."""
        ins, in_tree = jax.tree.flatten(arguments)
        outs, out_tree = jax.tree.flatten(results)
        in_dims = self._dims(self.rule.operand_mappings, [len(one.shape) for one in ins])
        out_dims = self._dims(self.rule.result_mappings, [len(one.shape) for one in outs])
        axes = self._axes(
            mesh, [*zip(in_dims, ins, strict=True), *zip(out_dims, outs, strict=True)]
        )

        def sharding(dims: Dims) -> NamedSharding:
            return NamedSharding(mesh, PartitionSpec(*(axes.get(dim[0]) or None for dim in dims)))

        def block(*args: Any) -> Any:
            made = fun(*args)
            for name, monoid in self.reductions.items():
                if combines and axes.get(name):
                    reduce = functools.partial(_REDUCTIONS[monoid], axis_name=axes[name])
                    made = jax.tree.map(reduce, made)
            return made

        return (
            mesh,
            block,
            jax.tree.unflatten(out_tree, map(sharding, out_dims)),
            jax.tree.unflatten(in_tree, map(sharding, in_dims)),
        )

    def _axes(self, mesh: Any, tensors: Sequence[tuple[Dims, Any]]) -> dict[str, tuple[str, ...]]:
        """Per loop the axes that split it: arguments are asked first, the major loop is split."""
        found: dict[str, tuple[str, ...]] = {}
        kept = self.complete().need_replication_factors
        for dims, value in tensors:
            for dim, size, entry in zip(dims, value.shape, value.sharding.spec, strict=False):
                axes = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
                minor = math.prod(self.rule.factor_sizes.get(name, 1) for name in dim[1:])
                parts = math.prod(mesh.shape[axis] for axis in axes)
                is_used = any(set(axes) & set(other) for other in found.values())
                if dim[0] not in kept and (size // minor) % parts == 0 and not is_used:
                    found[dim[0]] = found.get(dim[0]) or axes
        return found

    def reduced(self, ranks: Sequence[int]) -> dict[tuple[int, int], str]:
        """Operand and dimension of each loop that is reduced, and by what."""
        tensors = self._dims(self.rule.operand_mappings, ranks)
        return {
            (operand, position): self.reductions[dim[0]]
            for operand, dims in enumerate(tensors)
            for position, dim in enumerate(dims)
            if dim[0] in self.reductions
        }

    def _dims(self, mappings: Sequence[Any], ranks: Sequence[int]) -> list[Dims]:
        """Loops of every dimension, leading ones by number."""
        found = []
        for mapping, rank in zip(mappings, ranks, strict=True):
            dims: Dims = []
            for dim in mapping:
                if isinstance(dim, str) and dim.startswith(BATCHING):
                    count = rank - len(tuple(mapping)) + 1
                    dims += [(f"{dim}{number}",) for number in range(count)]
                else:
                    dims.append((dim,) if isinstance(dim, str) else tuple(dim))
            found.append(dims)
        return found

    def _compound(self) -> list[Any]:
        mappings = (*self.rule.operand_mappings, *self.rule.result_mappings)
        return [dim for mapping in mappings for dim in mapping if isinstance(dim, CompoundFactor)]

    @staticmethod
    def _names(mappings: Sequence[Any]) -> frozenset[str]:
        dims = [dim for mapping in mappings for dim in mapping]
        return frozenset(
            name for dim in dims for name in ((dim,) if isinstance(dim, str) else tuple(dim))
        )


@dataclass(frozen=True, eq=False)
class _Callback:
    """The partition callback of one function; see `SharesResults`."""

    partitioning: _Partitioning
    fun: Callable[..., Any]

    def __call__(self, mesh: Any, arguments: Any, results: Any) -> Any:
        """As jax asks: results are whole."""
        return self.partitioning.answer(self.fun, mesh, arguments, results, combines=True)

    def shares(self, mesh: Any, arguments: Any, results: Any) -> Any:
        """As the planner asks, which combines results itself."""
        return self.partitioning.answer(self.fun, mesh, arguments, results, combines=False)

    def reduced(self, ranks: Sequence[int]) -> dict[tuple[int, int], str]:
        """Of the rule."""
        return self.partitioning.reduced(ranks)
