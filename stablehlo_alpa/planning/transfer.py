"""A step on one mesh by the strategies of a plan for other sizes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

from stablehlo_alpa.errors import InfeasibleError, MeshError, ShardingError
from stablehlo_alpa.intra_op import CarriedStrategies, SolverCache, lower_bound
from stablehlo_alpa.planning.applied import Applied
from stablehlo_alpa.planning.bracket import Bracket
from stablehlo_alpa.planning.mesh_search import Candidate, problem_on
from stablehlo_alpa.planning.plan import Plan
from stablehlo_alpa.planning.planner import (
    PreparedProgram,
    fastest_form,
    lowered,
    over_budget,
)
from stablehlo_alpa.planning.problems import Problem
from stablehlo_alpa.view import progress

_log = logging.getLogger(__name__)

USUAL_GAP = 0.01
"""What is proved where nothing is asked for (heuristic: as of the search for stages)."""


def transfer_program(
    prepared: PreparedProgram, source: Plan, most: float | None = None
) -> Plan | None:
    """The plan of a step by the strategies of another one of its sizes.

    Args:
        prepared: the step.
        source: the plan, of one mesh and one micro-batch.
        most: the largest gap; None where any will do.

    Returns:
        the plan; None where it may be further than ``most`` from the best.

    Raises:
        MeshError: the mesh of the other plan is not among those to try.
        InfeasibleError: over the memory budget.
    """
    (stage,) = source.stages
    shape, options = stage.mesh.shape, prepared.options
    if shape not in options.mesh_shapes:
        tried = ", ".join("x".join(map(str, one)) for one in options.mesh_shapes)
        raise MeshError(
            f"{prepared.program.name}: the plan is on mesh {'x'.join(map(str, shape))}, for the "
            f"new sizes the method has {tried}: plan it anew"
        )
    carried = CarriedStrategies.of(stage.priced.graph, stage.solution)
    cache = SolverCache()
    own = replace(options, mesh_shapes=(shape,), carried=carried)
    with progress(_log.debug) as say:
        best, remarks = fastest_form(prepared.forms, own, cache, say, prepared.problems)
    proof = _Proof(prepared, best, carried, cache)
    bracket = proof.bracket(USUAL_GAP if most is None else most, is_limit=most is not None)
    if most is not None and bracket.gap > most:
        return None
    status = "optimal" if bracket.gap == 0 else "gap"
    solution = replace(best.solution, gap=bracket.gap, status=status)
    plan = lowered(replace(best, solution=solution), prepared, remarks)
    budget = options.solve.memory_budget
    if budget is not None and plan.peak_bytes > budget:
        raise over_budget(plan, 0, budget, "plan it anew for these sizes")
    inputs = source.program.inputs, prepared.program.inputs
    applied = Applied.of(*inputs, [carried], plan.stages)
    said = (applied.remark(bracket), *plan.remarks)
    return replace(plan, bracket=bracket, applied=applied, remarks=said)


@dataclass(frozen=True, eq=False)
class _Proof:
    """Bounds the best plan of a step from below.

    Attributes:
        prepared: the step.
        found: strategies of it.
        carried: the strategies that these were made of.
        cache: tables of the solver.
    """

    prepared: PreparedProgram
    found: Candidate
    carried: CarriedStrategies
    cache: SolverCache

    def bracket(self, enough: float, *, is_limit: bool) -> Bracket:
        """What was found, and what no plan of the step takes less than.

        Args:
            enough: a gap that needs not be closed.
            is_limit: whether nothing matters once the gap may be larger.
        """
        price_s = self.found.solution.objective_s
        wanted_s, bound_s = price_s * (1 - enough), price_s
        for problem in self._problems():
            bound_s = min(bound_s, self._bound_s(problem, wanted_s))
            if is_limit and bound_s < wanted_s:
                break
        return Bracket(price_s, bound_s)

    def _problems(self) -> Iterator[Problem]:
        """All that a search looks at, those of the same mesh, which are there, first."""
        options = self.prepared.options
        for shape in sorted(options.mesh_shapes, key=lambda one: one != self.found.mesh.shape):
            for form in self.prepared.forms:
                try:
                    yield problem_on(form.subject, shape, options, self.prepared.problems)
                except (InfeasibleError, ShardingError, MeshError):
                    # The search has no plan there, either.
                    continue

    def _bound_s(self, problem: Problem, wanted_s: float) -> float:
        is_own = problem.priced is self.found.priced
        return lower_bound(
            problem.priced,
            self.prepared.options.solve,
            self.cache,
            wanted_s=wanted_s,
            plan=self.found.solution if is_own else None,
            memory_price_s=self.carried.memory_price_s,
        )
