"""Functions whose author says how they are split: taken out of a jaxpr, left as numbered operators.

`jax.experimental.custom_partitioning` has a rule, of which loops the function consists, and a
callback that makes the function of a device. JAX lowers such a function for one device as what it
is made of. Here its equation becomes one of a primitive of ours, whose text says the rule; what the
callback makes of it is linked in when the plan is chosen, see `kernel_blocks`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from alpa_runtime.device_mesh import abstract_mesh
from alpa_runtime.keys import is_key
from jax._src.custom_partitioning_sharding_rule import (
    sdy_sharding_rule_to_mlir,
    str_to_sdy_sharding_rule,
)
from jax.experimental.custom_partitioning import SdyShardingRule, custom_partitioning_p
from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import sdy, stablehlo
from jax.interpreters import mlir

from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend.inner_jaxprs import equations, with_inner
from stablehlo_alpa.layers.flops import jaxpr_flops

KERNEL_TARGET = "alpa_kernel"
"""Custom calls of it stand for kernels until those are linked in."""


class SeenThrough:
    """What has a method for a partition callback that this library's planner need not ask.

    What such a function is made of is planned together with what is around it.
    """


@runtime_checkable
class SharesResults(Protocol):
    """A partition callback that knows how devices combine what their blocks give."""

    def shares(self, mesh: Any, arguments: Any, results: Any) -> Any:
        """As the callback, with a function of blocks that combines nothing."""

    def reduced(self, ranks: Sequence[int]) -> Mapping[tuple[int, int], str]:
        """How results are combined over loops that they lack.

        Args:
            ranks: of the operands.

        Returns:
            operand and dimension of a loop -> ``"sum"``, ``"max"`` or ``"min"``.
        """


@dataclass(frozen=True, eq=False)
class Kernel:
    """A function whose author says how it is split.

    Attributes:
        name: for people.
        whole: what it computes, a closed jaxpr of flat arrays.
        partition: ``(mesh, arguments, results) -> mesh, function of blocks, shardings of results
            and of arguments``; arguments and results are trees of ``jax.ShapeDtypeStruct`` with
            shardings.
        rule: ``(mesh, types of operands, types of results) -> rule``, types in jax's MLIR.
        in_tree, out_tree: structures of arguments and results.
        reduced: operand and dimension of loops over which the planner combines results.
    """

    name: str
    whole: Any
    partition: Callable[..., Any]
    rule: Callable[..., SdyShardingRule]
    in_tree: Any
    out_tree: Any
    reduced: Mapping[tuple[int, int], str] = field(default_factory=dict)

    def __repr__(self) -> str:
        # Appears in printed jaxprs.
        return f"<kernel {self.name}>"


kernel_p = Primitive("alpa_kernel")
kernel_p.multiple_results = True


@kernel_p.def_abstract_eval
def _abstract_eval(*avals: Any, kernel: Kernel, index: int) -> list[Any]:
    return list(kernel.whole.out_avals)


def _lower(ctx: Any, *args: Any, kernel: Kernel, index: int) -> Sequence[Any]:
    def types(avals: Sequence[Any]) -> list[Any]:
        return [mlir.aval_to_ir_type(ctx.module_context, aval) for aval in avals]

    config = {
        "index": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), index),
        "name": ir.StringAttr.get(kernel.name),
        "rule": _rule(kernel, types(ctx.avals_in), types(ctx.avals_out)),
    }
    call = stablehlo.CustomCallOp(
        types(ctx.avals_out),
        args,
        ir.StringAttr.get(KERNEL_TARGET),
        # A dictionary says what is called.
        api_version=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4),
        backend_config=ir.DictAttr.get(config),
    )
    return list(call.results)


mlir.register_lowering(kernel_p, _lower)


class KernelExtraction:
    """Takes the functions with a partitioning of their own out of a jaxpr.

    Attributes:
        closed: the jaxpr, with numbered calls in their places.
        kernels: what is called, by number.
    """

    def __init__(self, closed: Any) -> None:
        """Works on a closed jaxpr."""
        self._kernels: list[Kernel] = []
        # By identity: what is called twice is one function in the text, too.
        self._made: dict[int, tuple[Any, Any]] = {}
        self.closed = closed.replace(jaxpr=self._jaxpr(closed.jaxpr))
        self.kernels = tuple(self._kernels)

    def _jaxpr(self, jaxpr: Any) -> Any:
        if id(jaxpr) not in self._made:
            made = jaxpr
            if any(map(_has_rule, equations(jaxpr))):
                made = jaxpr.replace(eqns=[self._equation(equation) for equation in jaxpr.eqns])
            self._made[id(jaxpr)] = (jaxpr, made)
        return self._made[id(jaxpr)][1]

    def _equation(self, equation: Any) -> Any:
        if _has_rule(equation):
            self._kernels.append(_kernel(equation.params))
            number = len(self._kernels) - 1
            return equation.replace(
                primitive=kernel_p, params={"kernel": self._kernels[-1], "index": number}
            )
        if equation.primitive.name == "shard_map":
            # Split by hand: what runs there has the sizes of blocks.
            return equation
        return equation.replace(params=with_inner(equation.params, self._jaxpr))


def _has_rule(equation: Any) -> bool:
    """Whether an equation is planned as one operator.

    One without a rule, or with effects or keys, is planned as what it is made of.
    """
    if equation.primitive is not custom_partitioning_p:
        return False
    params = equation.params
    seen_through = isinstance(getattr(params["partition"], "__self__", None), SeenThrough)
    values = (*equation.invars, *equation.outvars)
    return (
        params["sharding_rule"] is not None
        and not seen_through
        and not params["call"].effects
        and bool(equation.outvars)
        and not any(is_key(atom.aval) for atom in values)
    )


def _kernel(params: Any) -> Kernel:
    static, rule = params["static_args"], params["sharding_rule"]
    whole, partition = params["call"], params["partition"]
    reduced: Mapping[tuple[int, int], str] = {}
    if isinstance(partition, SharesResults):
        reduced = partition.reduced([len(aval.shape) for aval in whole.in_avals])
        partition = partition.shares
    return Kernel(
        name=whole.jaxpr.debug_info.func_name,
        whole=whole,
        partition=functools.partial(partition, *static),
        rule=functools.partial(rule, *static) if callable(rule) else lambda *_: rule,
        in_tree=params["in_tree"],
        out_tree=params["out_tree"],
        reduced=reduced,
    )


def _rule(kernel: Kernel, operands: Sequence[Any], results: Sequence[Any]) -> Any:
    """What the compiler reads: `#alpa.rule<...>`."""
    # As jax asks where no mesh is around the function.
    nowhere = abstract_mesh(())
    try:
        rule: Any = kernel.rule(nowhere, list(operands), list(results))
        more: dict[str, Any] = {}
        if isinstance(rule, (list, tuple)):
            rule, more = rule
        if isinstance(rule, str):
            rule = str_to_sdy_sharding_rule(rule, **more)
        found: Any = sdy_sharding_rule_to_mlir(rule, list(operands), list(results))
    except (ValueError, TypeError) as error:
        raise TraceError(f"the sharding rule of {kernel.name} does not fit it: {error}") from error
    monoids = {
        _factors(found.operand_mappings[operand])[dim][0]: monoid
        for (operand, dim), monoid in kernel.reduced.items()
    }
    text = _notation(found, operands, results, jaxpr_flops(kernel.whole.jaxpr), monoids)
    context = operands[0].context if operands else results[0].context
    context.allow_unregistered_dialects = True
    return ir.Attribute.parse(text, context)


def _factors(mapping: Any) -> list[list[int]]:
    """Factors of each dimension of a tensor."""
    dims = sdy.TensorMappingAttr(mapping).dim_mappings
    return [list(sdy.DimMappingAttr(dim).factor_indices) for dim in dims]


def _notation(
    rule: Any,
    operands: Sequence[Any],
    results: Sequence[Any],
    flops: float,
    monoids: Mapping[int, str],
) -> str:
    """A rule of Shardy in our notation.

    A loop that every result has is parallel. One that a result lacks is the author's business:
    the function of a device sends what other devices have to know (Shardy adds nothing, either).
    Where it is known how shares are combined, that is the planner's.
    """
    sizes = list(rule.factor_sizes)
    whole = {*rule.need_replication_factors, *rule.permutation_factors}

    def tensor(mapping: Any, type_: Any) -> list[list[int]]:
        dims: list[list[int]] = []
        for factors, size in zip(_factors(mapping), type_.shape, strict=True):
            if math.prod(sizes[factor] for factor in factors) != size:
                # Loops that only fit other tensors: Shardy takes the smallest size.
                whole.update(factors)
                dims.append([])
            else:
                dims.append(factors)
        return dims

    ins = [tensor(*pair) for pair in zip(rule.operand_mappings, operands, strict=True)]
    outs = [tensor(*pair) for pair in zip(rule.result_mappings, results, strict=True)]

    def count(factor: int, tensors: Sequence[list[list[int]]]) -> list[int]:
        return [sum(dim.count(factor) for dim in dims) for dims in tensors]

    def kind(factor: int) -> str:
        if factor in whole or not any(count(factor, ins)):
            return ":replicated"
        return "" if all(count(factor, outs)) else f":{monoids.get(factor, 'ordered')}"

    for factor in range(len(sizes)):
        if max(count(factor, [*ins, *outs]), default=0) > 1:
            whole.add(factor)
            for dims in (*ins, *outs):
                dims[:] = [[] if factor in dim else dim for dim in dims]
    used = [f for f in range(len(sizes)) if any(count(f, [*ins, *outs]))]
    entries = ", ".join(f"x{factor}={sizes[factor]}{kind(factor)}" for factor in used)
    clause = f" flops={int(flops)}" if flops else ""
    return f"#alpa.rule<{_tensors(ins)} -> {_tensors(outs)} {{{entries}}}{clause}>"


def _tensors(tensors: Sequence[list[list[int]]]) -> str:
    def dimension(factors: Sequence[int]) -> str:
        if not factors:
            return "1"
        names = [f"x{factor}" for factor in factors]
        return names[0] if len(names) == 1 else f"({' '.join(names)})"

    return f"({', '.join('[' + ', '.join(map(dimension, dims)) + ']' for dims in tensors)})"
