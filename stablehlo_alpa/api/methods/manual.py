"""Shardings that a person has chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
from jax.sharding import PartitionSpec

from stablehlo_alpa.api.batches import batch_inputs, is_key
from stablehlo_alpa.api.methods.method import Method
from stablehlo_alpa.api.methods.named_dimensions import AxisRule, checked_rules, specs_of_names
from stablehlo_alpa.api.methods.patterns import checked_patterns, specs_of_patterns
from stablehlo_alpa.errors import MeshError, ShardingError
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.option_checks import (
    checked_axis_names,
    checked_instance,
    checked_integer,
    settle,
)
from stablehlo_alpa.planning import Exactly, Prescription


@dataclass(frozen=True)
class ManualSharding(Method):
    """Some inputs are pinned, the ILP does the rest.

    They are pinned one by one (``in_specs``), by the names that a model gives to dimensions
    (``rules``) and by their paths (``patterns``); what an earlier of the three says of an input
    counts. Only ``in_specs`` pins batches, the others are for state and frozen parameters.

    Attributes:
        in_specs: argument number -> pytree prefix of ``PartitionSpec`` (None leaves a part to the
            ILP, ``PartitionSpec()`` replicates it), or name of an input or of a part of an
            argument, as error messages spell it (``"state.params"``) -> one ``PartitionSpec``.
        names: names of the mesh axes; x, y, z when not given.
        rules: pairs of the name of a dimension and the mesh axis, or axes, that split it, None for
            none, as flax has them: dimensions are named by ``nn.with_logical_partitioning`` or by
            the ``out_sharding`` of ``nnx`` variables, in the state that is passed in. The first
            rule of a name counts whose axes no other dimension of the array has; a dimension that
            is left without one is whole, and a name without a rule is remarked.
        patterns: pairs of a regular expression and a ``PartitionSpec``, or None for what is left to
            the ILP. The first one counts that is found in the path of an input,
            ``"state/params/layer_0/up/kernel"``, which moments of an optimiser have too; arrays of
            one element are whole. What none is found in is left to the ILP, and remarked.
    """

    in_specs: Mapping[int | str, Any] = field(default_factory=dict, hash=False)
    names: tuple[str, ...] | None = None
    rules: tuple[AxisRule, ...] = ()
    patterns: tuple[tuple[str, PartitionSpec | None], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, checked_rules, "rules")
        settle(self, checked_patterns, "patterns")
        settle(self, _in_specs, "in_specs")
        settle(self, checked_axis_names, "names", is_optional=True)
        if self.names is not None and len(self.names) != len(self.mesh_shape or ()):
            raise MeshError(
                f"names {self.names} and mesh_shape {self.mesh_shape} must have as many axes"
            )

    @property
    def axis_names(self) -> tuple[str, ...] | None:
        """As given."""
        return self.names

    def prescription(self, program: TracedProgram) -> Prescription:
        """What is pinned, and remarks on names and inputs that nothing is said of."""
        pinned = self._by_hand(program)
        remarks: list[str] = []
        batch = batch_inputs(program)[0]
        if self.rules:
            named, remark = specs_of_names(program, self.rules)
            for index, spec in named.items():
                if index not in batch:
                    pinned.setdefault(index, spec)
            remarks += remark
        if self.patterns:
            others = [
                i for i, value in enumerate(program.inputs) if i not in batch and not is_key(value)
            ]
            found, remark = specs_of_patterns(program, self.patterns, others, pinned)
            pinned = found | pinned
            remarks += remark
        return Prescription(
            {index: Exactly(spec) for index, spec in pinned.items() if spec is not None},
            remarks=tuple(remarks),
        )

    def _by_hand(self, program: TracedProgram) -> dict[int, PartitionSpec | None]:
        """The inputs named in ``in_specs``."""
        pinned: dict[int, PartitionSpec] = {}
        for key, spec in self.in_specs.items():
            specs = (
                _by_name(program, key, spec)
                if isinstance(key, str)
                else _by_argument(program, key, spec)
            )
            for index, one in specs.items():
                before = pinned.setdefault(index, one)
                if _trimmed(before) != _trimmed(one):
                    raise ShardingError(
                        f"in_specs pins {program.inputs[index].name} twice, to {before} and to "
                        f"{one}; leave one of them out"
                    )
        return dict(pinned)


def _in_specs(name: str, given: Any) -> dict[int | str, Any]:
    """Specs by argument, as they were given."""
    what = "a mapping from arguments to PartitionSpecs"
    checked_instance(name, given, Mapping, what, error=ShardingError)
    found: dict[int | str, Any] = {}
    for key, spec in given.items():
        if isinstance(key, str):
            what = "a PartitionSpec"
            found[key] = checked_instance(
                f"{name}[{key!r}]", spec, PartitionSpec, what, error=ShardingError
            )
            continue
        what = f"a key of {name} that is no name"
        number = checked_integer(what, key, least=0, error=ShardingError)
        for leaf in jax.tree.leaves(spec, is_leaf=_is_spec):
            if not _is_spec(leaf):
                raise ShardingError(
                    f"{name}[{number}] has {leaf!r}, must be a prefix of PartitionSpecs, or None "
                    "where the ILP chooses"
                )
        found[number] = spec
    return found


def _is_spec(node: Any) -> bool:
    return node is None or isinstance(node, PartitionSpec)


def _trimmed(spec: PartitionSpec) -> tuple[Any, ...]:
    """A spec without the dimensions at its end that it leaves whole."""
    entries = list(spec)
    while entries and entries[-1] is None:
        entries.pop()
    return tuple(entries)


def _by_name(program: TracedProgram, name: str, spec: PartitionSpec) -> dict[int, PartitionSpec]:
    found = dict.fromkeys(program.inputs_of(name), spec)
    if not found:
        raise ShardingError(
            f"in_specs names {name!r}, inputs of {program.name} are "
            + ", ".join(value.name for value in program.inputs[:8])
            + (", ..." if len(program.inputs) > 8 else "")
        )
    return found


def _by_argument(program: TracedProgram, argnum: int, spec: Any) -> dict[int, PartitionSpec]:
    """Broadcasts a pytree prefix of specs over the leaves of an argument."""
    leaves = program.inputs_of(argnum)
    if not leaves:
        raise ShardingError(
            f"in_specs names argument {argnum}, {program.name} has no array in that position"
        )
    positional, named = jax.tree.unflatten(program.in_tree, range(len(program.inputs)))
    arguments = (*positional, *named.values())
    argument = next(a for a in arguments if leaves[0] in jax.tree.leaves(a))

    found: dict[int, PartitionSpec] = {}

    def spread(one: PartitionSpec | None, part: Any) -> None:
        if one is not None:
            found.update(dict.fromkeys(jax.tree.leaves(part), one))

    try:
        jax.tree.map(spread, spec, argument, is_leaf=_is_spec)
    except ValueError as error:
        raise ShardingError(
            f"in_specs[{argnum}] is no prefix of the argument of {program.name}: {error}"
        ) from error
    return found
