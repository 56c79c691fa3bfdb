"""What a module of the model costs in a plan: a layer, an attention, all equal layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stablehlo_alpa.intra_op import Seconds
from stablehlo_alpa.planning.operator_seconds import (
    SECONDS,
    SHOWN,
    OperatorSeconds,
    dearest_first,
    operator_sheet,
    second_cells,
    split_text,
    sums,
)
from stablehlo_alpa.planning.saved_plan import SavedPlan
from stablehlo_alpa.units import format_seconds
from stablehlo_alpa.view import Column, Sheet
from stablehlo_alpa.view.folding import fold, unfold
from stablehlo_alpa.view.names import module_of, stages_text

ITSELF = "(itself)"
"""In place of a module: operators that are in none of the modules inside."""


@dataclass(frozen=True)
class InnerModule(Seconds):
    """A module inside of another, or equal ones of several.

    Attributes:
        name: ``attention``, or ``layer_{0..23}``.
        count: of operators.
        compute_s, communication_s, reshard_s: seconds per step.
    """

    name: str
    count: int
    compute_s: float
    communication_s: float
    reshard_s: float


@dataclass(frozen=True, repr=False)
class ModuleExplanation(Seconds):
    """What a module costs, forward and backward together. Printing it shows tables.

    Attributes:
        name: of the module as it was asked for.
        modules: the modules that are meant, of equal layers each.
        stages: that run them.
        num_operators: of them.
        compute_s, communication_s, reshard_s: seconds per step.
        share: of the seconds of all operators of the plan.
        inside: the modules inside, those that take longest first.
        operators: those that take longest, first; equal ones of several layers as one, which takes
            the seconds of all.
        num_kinds: of operators, where equal ones are one.
    """

    name: str
    modules: tuple[str, ...]
    stages: tuple[int, ...]
    num_operators: int
    compute_s: float
    communication_s: float
    reshard_s: float
    share: float
    inside: tuple[InnerModule, ...]
    operators: tuple[OperatorSeconds, ...]
    num_kinds: int

    def __str__(self) -> str:
        found = ", ".join(one.name for one in fold(self.modules))
        head = (
            f"module {found}: {self.num_operators} operators, in {stages_text(self.stages)}\n"
            f"{format_seconds(self.total_s)} per step, {self.share:.0%} of all operators: "
            f"{split_text(self)}"
        )
        columns = (Column("inside", is_name=True), Column("operators", is_number=True))
        rows = tuple((one.name, str(one.count), *second_cells(one)) for one in self.inside)
        inside = Sheet("modules inside", (*columns, *SECONDS), rows, self.inside)
        dearest = operator_sheet(self.operators, self.num_kinds, "kinds of operators")
        return "\n\n".join([head, inside.text(), dearest.text()])

    __repr__ = __str__


def explain_module(
    plan: SavedPlan, name: str, stage: int | None = None
) -> ModuleExplanation | None:
    """What a module costs, wherever it lies.

    Args:
        plan: the plan.
        name: of the module or the last of its parts, ``"GPT/decoder/layer_0"``, ``"attention"``,
            or of equal ones as the table of modules has them, ``"GPT/decoder/layer_{0..23}"``.
        stage: that is meant, of several; None for all.

    Returns:
        None where no module has the name.
    """
    wanted = {tuple(one.split("/")) for one in unfold(name.strip("/"))}
    stages = [number for number in range(len(plan.tables)) if stage in (None, number)]
    modules: dict[str, None] = {}
    inside: dict[str, list[OperatorSeconds]] = {}
    found: list[tuple[int, OperatorSeconds]] = []
    for number in stages:
        table = plan.tables[number]
        # What a stage is sent is named after the operator that made it.
        own = [node for node, op in enumerate(table.op) if op != "input"]
        for one in dearest_first(table, own):
            around = module_of(one.name)
            end = _end_of(around, wanted)
            if end:
                modules.setdefault("/".join(around[:end]))
                inside.setdefault(around[end] if len(around) > end else ITSELF, []).append(one)
                found.append((number, one))
    if not found:
        return None
    operators = [one for _, one in found]
    kinds = _kinds(operators)
    whole = sum(stage.total_s for stage in plan.account.stages)
    compute_s, communication_s, reshard_s = sums(operators)
    return ModuleExplanation(
        name,
        tuple(modules),
        tuple(sorted({number for number, _ in found})),
        len(operators),
        compute_s,
        communication_s,
        reshard_s,
        (compute_s + communication_s + reshard_s) / whole if whole else 0.0,
        _inside(inside),
        tuple(kinds[:SHOWN]),
        len(kinds),
    )


def module_examples(plan: SavedPlan) -> str:
    """Some modules that `explain_module` knows, for a message; nothing where there are none."""
    names: dict[str, None] = {}
    for table in plan.tables:
        for name in table.name:
            if len(around := module_of(name)) > 1:
                names.setdefault("/".join(around[:3]))
    folds = [one.name for one in fold(list(names))][:3]
    return f", as {', '.join(folds)}" if folds else ""


def _end_of(around: Sequence[str], wanted: set[tuple[str, ...]]) -> int:
    """How many of the modules around an operator lead to one that is wanted; 0 for none."""
    for end in range(1, len(around) + 1):
        for first in range(end):
            if tuple(around[first:end]) in wanted:
                return end
    return 0


def _kinds(operators: Sequence[OperatorSeconds]) -> list[OperatorSeconds]:
    """Equal operators of several layers as one, those that take longest first."""
    keys = [(one.strategy, *(f"{s:.3g}" for s in sums([one]))) for one in operators]
    groups = fold([one.name for one in operators], keys)
    found = [
        OperatorSeconds(
            group.name,
            operators[group.members[0]].strategy,
            *sums(operators[i] for i in group.members),
        )
        for group in groups
    ]
    return sorted(found, key=lambda one: -one.total_s)


def _inside(inside: dict[str, list[OperatorSeconds]]) -> tuple[InnerModule, ...]:
    names = list(inside)
    rows = []
    for group in fold(names):
        operators = [one for i in group.members for one in inside[names[i]]]
        rows.append(InnerModule(group.name, len(operators), *sums(operators)))
    return tuple(sorted(rows, key=lambda one: -one.total_s))
