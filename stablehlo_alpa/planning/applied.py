"""Plans for other sizes: what was applied, and how it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend import TracedValue
from stablehlo_alpa.intra_op import CarriedStrategies, Explanation

if TYPE_CHECKING:
    from stablehlo_alpa.planning.bracket import Bracket
    from stablehlo_alpa.planning.plan import Plan
    from stablehlo_alpa.planning.stage import PlannedStage

PlansSizes: TypeAlias = Callable[["Plan", tuple[Any, ...], Mapping[str, Any]], "Plan"]
"""Makes a plan for arguments and keyword arguments by the strategies of another one."""

# Inputs of other sizes that are named (heuristic).
_NAMED = 2


@dataclass(frozen=True)
class Applied:
    """Strategies of a plan for other sizes.

    Attributes:
        sizes: what that plan was for: names and shapes of inputs that differ.
        num_carried: operators that have the strategy they had there.
        num_operators: in all; the solver chose for the others, with those carried over fixed.
        names: of the operators with strategies carried over.
    """

    sizes: str
    num_carried: int
    num_operators: int
    names: frozenset[str] = field(default=frozenset(), repr=False)

    @classmethod
    def of(
        cls,
        before: Sequence[TracedValue],
        now: Sequence[TracedValue],
        carried: Sequence[CarriedStrategies],
        stages: Sequence[PlannedStage],
    ) -> Applied:
        """What stages have of a plan.

        Args:
            before: inputs that it was for.
            now: inputs of the stages.
            carried: per stage the strategies that were to be applied.
            stages: as planned.
        """
        names: set[str] = set()
        for one, stage in zip(carried, stages, strict=True):
            names |= one.kept(stage.priced.graph, stage.solution)
        count = sum(stage.priced.graph.num_nodes for stage in stages)
        return cls(_sizes(before, now), len(names), count, frozenset(names))

    def remark(self, bracket: Bracket | None) -> str:
        """What the plan says of it.

        Args:
            bracket: what was proved of the plan.
        """
        gap = "no bound is known" if bracket is None else f"gap {bracket.gap:.2%}"
        return (
            f"strategies of the plan for {self.sizes} applied, {gap}: {self.num_carried} of "
            f"{self.num_operators} operators keep theirs"
        )

    def explained(self, one: Explanation) -> Explanation:
        """Why an operator of the plan has its strategy."""
        why = "chosen with the strategies carried over fixed"
        if one.name in self.names:
            why = f"carried over from the plan for {self.sizes}"
        return replace(one, reason=f"{why}; {one.reason}")


class Transferable:
    """What makes a `Plan` one for other sizes."""

    def transfer(self, *args: Any, **kwargs: Any) -> Plan:
        """The plan of the step in other sizes, by the strategies of this one; nothing is searched.

        Operators are known by their names. Each takes the strategy that it has here, the same mesh
        axes on the same dimensions; for those that have no such strategy in the new sizes (what no
        longer divides), and for those that are not here, the exact solver chooses with all others
        fixed. Logical mesh, layers per stage, submeshes, schedule and number of micro-batches are
        kept.

        ``bound_s`` and ``gap`` of the result are proved for the new sizes. On one mesh the bound is
        the least over all logical meshes and padded forms that a search would try, each by the
        solver's dual bound: its optimum without the memory budget, under prices of memory where
        that exceeds the budget. Where a search would look for stages it is that of the search,
        from the layers one and two at a time; where stages were given, the stages' own dual bounds
        in the same formula. As for any pipeline it holds for the same layers and number of
        micro-batches. There is none for a plan with several stages per mesh where stages are to be
        searched.

        Args:
            *args: positional arguments of the function, in the structure, with the dtypes and ranks
                that the plan is for; ``jax.ShapeDtypeStruct`` will do.
            **kwargs: its keyword arguments, likewise.

        Raises:
            TraceError: arguments do not fit those of the plan, or the function is another program
                for them; the first operator that differs is named.
            CompileError: the batch does not divide by the number of micro-batches.
            InfeasibleError: over the memory budget with these strategies.
            MeshError: the method does not allow the plan's mesh for the new sizes.
        """
        plan: Any = self
        if plan.transfers is None:
            raise TraceError(
                f"the plan of {plan.program.name} is of a module, and other sizes trace the "
                "function: ask a plan that a parallelized function has made"
            )
        made: Plan = plan.transfers(plan, args, kwargs)
        return made


def _sizes(before: Sequence[TracedValue], now: Sequence[TracedValue]) -> str:
    pairs = zip(before, now, strict=True)
    changed = [f"{old.name} {list(old.shape)}" for old, new in pairs if old.shape != new.shape]
    if not changed:
        return "the same sizes"
    # Batches come last, and say more than what is made of them.
    rest = len(changed) - _NAMED
    return ", ".join(changed[-_NAMED:]) + (f" and {rest} more" if rest > 0 else "")
