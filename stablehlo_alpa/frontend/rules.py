"""Sharding rules of kernels that the compiler does not know, by the target of their custom call.

A rule travels in the module, as an attribute of each call: a plan does not depend on what is
registered where it is loaded.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from jax.extend.mlir import ir

from stablehlo_alpa.errors import ShardingError, TraceError

MONOIDS = ("sum", "product", "max", "min", "and", "or")

Dimension = tuple[str, ...]
"""Factors that a dimension is made of, major to minor; none for one that is never split."""
Tensor = tuple[Dimension, ...]

_TOKEN = re.compile(r"\s*(?:(\()([^()]*)\)|([A-Za-z_]\w*)|(1)(?!\w))")
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class KernelRule:
    """How a custom call can be split; see `register_rule`.

    Attributes:
        target: of the custom call.
        notation: as it was given.
        operands, results: factors of their dimensions.
        reductions: factors over which devices combine their results, with the monoid.
        sizes: sizes of factors that no shape gives.
    """

    target: str
    notation: str
    operands: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    reductions: tuple[tuple[str, str], ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()

    @classmethod
    def parse(
        cls,
        target: str,
        notation: str,
        *,
        reductions: Mapping[str, str] | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> KernelRule:
        """Reads a rule; arguments and errors are those of `register_rule`."""
        sides = notation.split("->")
        if len(sides) != 2:
            raise ShardingError(f"{_name(target, notation)} has {len(sides) - 1} arrows, not 1")
        operands, results = (_tensors(target, notation, side) for side in sides)
        rule = cls(
            target,
            notation,
            operands,
            results,
            tuple((reductions or {}).items()),
            tuple((sizes or {}).items()),
        )
        rule._check()
        return rule

    @property
    def attribute(self) -> str:
        """The rule as the compiler reads it."""
        sizes, reductions = dict(self.sizes), dict(self.reductions)

        def entry(factor: str) -> str:
            kind = reductions.get(factor, "" if self._is_parallel(factor) else "replicated")
            text = ":".join(str(part) for part in (sizes.get(factor, ""), kind) if part)
            return f"{factor}={text}" if text else factor

        entries = ", ".join(entry(factor) for factor in self._factors)
        return f"#alpa.rule<{_format(self.operands)} -> {_format(self.results)} {{{entries}}}>"

    def check_types(self, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """Refuses a call of other tensors.

        Args:
            operands: types of the call, in jax's MLIR.
            results: likewise.

        Raises:
            TraceError: numbers of tensors or dimensions differ.
        """
        for side, own, types in (
            ("operand", self.operands, operands),
            ("result", self.results, results),
        ):
            if len(own) != len(types):
                raise TraceError(
                    f"{self} names {len(own)} {side}s, a call of it has {len(types)}: "
                    f"{', '.join(map(str, types))}"
                )
            for index, (tensor, type_) in enumerate(zip(own, types, strict=True)):
                rank = getattr(type_, "rank", 0)
                if len(tensor) != rank:
                    raise TraceError(
                        f"{self} gives {side} {index} {len(tensor)} dimensions, in a call of it "
                        f"it has {rank}: {type_}"
                    )

    def __str__(self) -> str:
        return _name(self.target, self.notation)

    @property
    def _factors(self) -> list[str]:
        tensors = (*self.operands, *self.results)
        return list(dict.fromkeys(f for tensor in tensors for dim in tensor for f in dim))

    def _is_parallel(self, factor: str) -> bool:
        """Whether blocks of operands give blocks of results: otherwise it is not split."""

        def has(tensor: Tensor) -> bool:
            return any(factor in dim for dim in tensor)

        return any(map(has, self.operands)) and all(map(has, self.results))

    def _check(self) -> None:
        for tensor in (*self.operands, *self.results):
            factors = [factor for dim in tensor for factor in dim]
            for factor in factors:
                if factors.count(factor) > 1:
                    raise ShardingError(f"{self} has a tensor with factor {factor!r} twice")
        for factor, monoid in self.reductions:
            if factor not in self._factors:
                raise ShardingError(f"{self} reduces {factor!r}, it has {self._factors}")
            if monoid not in MONOIDS:
                raise ShardingError(f"{self} reduces {factor!r} by {monoid!r}, not by {MONOIDS}")
            if any(factor in dim for tensor in self.results for dim in tensor):
                raise ShardingError(f"{self} reduces {factor!r}, and a result has it")
        for factor, size in self.sizes:
            if factor not in self._factors or size < 1:
                raise ShardingError(f"{self} gives factor {factor!r} size {size}")


# Replaced as a whole, never changed: who has read it keeps what he has read.
_registered: Mapping[str, KernelRule] = MappingProxyType({})
_lock = threading.Lock()


def register_rule(
    target: str,
    rule: str,
    *,
    reductions: Mapping[str, str] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> KernelRule:
    """Says for the process how a custom call can be split over devices.

    Without a rule the planner computes a kernel whole on every device. With one it may give every
    device a block of the operands, on which the same target is called.

    Like registrations of jax itself this holds for the process, from the next function that is
    traced on: traces that there are keep what was registered when they were made, and so do saved
    plans. ``parallelize(rules=)`` takes rules for one function instead.

    Args:
        target: name of the custom call.
        rule: per operand and result the loops (factors) that make up each dimension, as in
            ``"b s h d, b t h d, b t h d -> b s h d"``: names with spaces between them, ``(h d)``
            for a dimension made of several, major to minor, ``1`` for one that is the same on every
            device. A factor that an operand and every result have can be split; others are not,
            unless they are reduced.
        reductions: factors over which devices combine their results, and by what: ``"sum"``,
            ``"product"``, ``"max"``, ``"min"``, ``"and"`` or ``"or"``.
        sizes: sizes of factors that no dimension has to itself.

    Returns:
        the rule.

    Raises:
        ShardingError: the rule is not of that form, or the target has another one already.

    Example:
        >>> register_rule("my_matmul", "i k, k j -> i j", reductions={"k": "sum"})
    """
    global _registered
    made = KernelRule.parse(target, rule, reductions=reductions, sizes=sizes)
    with _lock:
        before = _registered.get(target, made)
        if before != made:
            raise ShardingError(f"{made} cannot be registered, there is {before} already")
        _registered = MappingProxyType({**_registered, target: made})
    return made


def registered_rules() -> Mapping[str, KernelRule]:
    """The rules of the process, as they are now."""
    return _registered


def with_rules(module: Any, rules: Mapping[str, KernelRule]) -> Any:
    """A module whose custom calls carry the rules of their targets.

    Args:
        module: in jax's MLIR; it is left as it is.
        rules: by target.

    Raises:
        TraceError: a call does not have the operands and results of its rule.
    """
    if not rules or not any(_target(op) in rules for op in _calls(module.operation)):
        return module
    made = module.operation.clone()
    with made.context as context:
        context.allow_unregistered_dialects = True
        for op in _calls(made):
            rule = rules.get(_target(op))
            if rule is not None:
                rule.check_types([v.type for v in op.operands], [v.type for v in op.results])
                op.attributes["alpa.rule"] = ir.Attribute.parse(rule.attribute)
    return made


def _calls(root: Any) -> Iterator[Any]:
    for region in root.regions:
        for block in region:
            for op in block.operations:
                if op.operation.name == "stablehlo.custom_call":
                    yield op.operation
                yield from _calls(op.operation)


def _target(op: Any) -> str:
    return str(ir.StringAttr(op.attributes["call_target_name"]).value)


def _name(target: str, notation: str) -> str:
    return f"rule {notation!r} of @{target}"


def _tensors(target: str, notation: str, side: str) -> tuple[Tensor, ...]:
    if not side.strip():
        return ()
    return tuple(_tensor(target, notation, text) for text in side.split(","))


def _tensor(target: str, notation: str, text: str) -> Tensor:
    dims: list[Dimension] = []
    position = 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        compound = match.group(2).split() if match and match.group(1) else []
        if match is None or not all(map(_NAME.fullmatch, compound)):
            raise ShardingError(
                f"{_name(target, notation)}: {text[position:].strip()!r} is no factor, (...) or 1"
            )
        if match.group(1):
            dims.append(tuple(compound))
        else:
            dims.append((match.group(3),) if match.group(3) else ())
        position = match.end()
    return tuple(dims)


def _format(tensors: Sequence[Tensor]) -> str:
    def dimension(factors: Dimension) -> str:
        if not factors:
            return "1"
        return factors[0] if len(factors) == 1 else f"({' '.join(factors)})"

    return f"({', '.join('[' + ', '.join(map(dimension, tensor)) + ']' for tensor in tensors)})"
