"""The fastest of several forms of what runs on one mesh whose programs stay within the memory.

Strategies are chosen by the tensors of a form as it is written. What collectives between them hold
as well is known of the programs that are run, and these take long to make. So all forms are solved
first, each only as far as it may undercut the others, and of the fastest alone programs are made.
Where they take too much, values that are gathered are not kept for operators far behind; where that
does not suffice, the form's strategies are chosen anew with that much less room, and another form
may be the fastest: the search goes on where a plan may be found that is faster than all others
(best first). Strategies are chosen roughly until programs fit. Gaps are closed then, of what may be
faster, so that no work is spent on those of plans that do not fit.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from stablehlo_alpa.errors import InfeasibleError, SlowerError
from stablehlo_alpa.intra_op import SolveOptions, SolverCache
from stablehlo_alpa.planning.lowering import NEAR
from stablehlo_alpa.planning.mesh_search import (
    ROUGH_GAP,
    Candidate,
    PlanOptions,
    Subject,
    find_candidate,
    undercutting,
)
from stablehlo_alpa.planning.plan import Plan
from stablehlo_alpa.planning.problems import Problems
from stablehlo_alpa.planning.refusals import leanest
from stablehlo_alpa.units import format_seconds
from stablehlo_alpa.view import Say

_log = logging.getLogger(__name__)

# How often strategies are chosen for a form whose programs are over the memory budget (heuristic).
_ROUNDS = 5
# By what part of the budget there is less room in the first round at least, and so many times as
# much in each that follows (heuristics): what programs hold beside their tensors differs from plan
# to plan.
_LESS, _MORE = 2e-3, 4.0


@dataclass(frozen=True)
class Form:
    """One form of what runs on a mesh.

    Attributes:
        subject: what is planned.
        lower: makes a plan of strategies; of what is gathered, operators that are so many apart
            share it, 0 for all.
    """

    subject: Subject = field(repr=False)
    lower: Callable[[Candidate, int], Plan]


@dataclass(eq=False)
class _Open:
    """A form as far as it is planned.

    Attributes:
        form: it.
        room: bytes per device for its strategies; None for any.
        candidate: its strategies; None where they are still to be chosen.
        least_s: no plan of it takes less that may still be found. Seconds.
        proved_s: no plan of it within the whole budget takes less. Seconds.
        before: strategies to begin with: rough ones, or those whose programs take too much.
        is_rough: whether a gap was left.
        closes: whether no gap is to be left.
        rounds: how often programs took too much.
        beside: bytes that they held beside the tensors counted, all that is gathered being kept.
        slower: why it has none that undercut others.
        refused: why it has none within the whole budget.
    """

    form: Form
    room: float | None
    candidate: Candidate | None = None
    least_s: float = 0.0
    proved_s: float = 0.0
    before: Candidate | None = None
    is_rough: bool = False
    closes: bool = False
    rounds: int = 0
    beside: float = 0.0
    slower: SlowerError | None = None
    refused: InfeasibleError | None = None

    @property
    def seconds(self) -> float:
        """What its strategies take; infinite where there are none."""
        return math.inf if self.candidate is None else self.candidate.solution.objective_s

    def takes(self, least_s: float) -> None:
        """Takes what is proved of the plans that are within its room."""
        self.least_s = max(self.least_s, least_s)
        if not self.rounds:
            self.proved_s = self.least_s

    def give(self, excess: float, budget: float) -> None:
        """Leaves less room: programs were so many bytes over the budget."""
        assert self.candidate is not None
        less = max(excess, _LESS * _MORE**self.rounds * budget)
        self.room = max(0.0, self.candidate.solution.memory_peak_bytes - less)
        self.before, self.candidate = self.candidate, None
        self.rounds += 1


class FormSearch:
    """Searches the fastest form that fits."""

    def __init__(
        self,
        forms: Sequence[Form],
        options: PlanOptions,
        say: Say = _log.debug,
        *,
        problems: Problems | None = None,
        again: SolveOptions | None = None,
    ) -> None:
        """Nothing is solved yet.

        Args:
            forms: one or more; of equally fast ones the first is taken.
            options: what plans are looked for under.
            say: is told what is being done.
            problems: made before; those that are made are added.
            again: how far strategies with less room are solved; None for as far as others.
        """
        self._options, self._say, self._again = options, say, again or options.solve
        self._problems = Problems() if problems is None else problems
        self._cache = SolverCache()
        budget = options.solve.memory_budget
        self._forms = [_Open(form, budget) for form in forms]
        # Those that may still have a plan.
        self._open = list(self._forms)
        # The fastest whose programs fit.
        self._fitting: tuple[Plan, Candidate] | None = None
        self._over: Plan | None = None

    @property
    def over(self) -> Plan | None:
        """Of the plans whose strategies fit and whose programs do not, that which takes least."""
        return self._over

    def run(self) -> tuple[Plan, Candidate, float] | None:
        """The plan, its strategies, and seconds that no plan within the budget takes less than.

        Returns:
            None where strategies fit and no programs of theirs do.

        Raises:
            InfeasibleError: no form has strategies within the budget; what lacks least.
            SlowerError: none undercuts what is asked for.
            ShardingError: what is prescribed exactly fits no mesh.
            MeshError: there is no mesh.
        """
        while True:
            best = min(self._open, key=lambda one: one.seconds, default=None)
            found = None if best is None else best.candidate
            seconds, most_s = math.inf if best is None else best.seconds, self._most_s()
            undercut_s = min(most_s, seconds)
            todo = [one for one in self._open if not one.candidate and one.least_s < undercut_s]
            if todo:
                self._solve(todo[0], undercut_s, found)
            elif best is not None and found is not None and seconds < most_s:
                self._lower(best, found)
            elif not self._reopen():
                if self._fitting is None:
                    self._check_over()
                    return None
                return *self._fitting, self._least_s()

    def _most_s(self) -> float:
        """What is to be undercut: seconds of a step."""
        asked_s = self._options.solve.most_s
        if self._fitting is None:
            return asked_s
        return min(asked_s, self._fitting[1].solution.objective_s)

    def _reopen(self) -> bool:
        """Has gaps closed of what may be faster than what fits; False where there is nothing."""
        rough = [one for one in self._open if one.is_rough and one.least_s < self._most_s()]
        for one in rough:
            one.before, one.candidate, one.is_rough = one.candidate, None, False
            one.closes = True
        return bool(rough)

    def _least_s(self) -> float:
        """Seconds that no plan of any form takes less than within the whole budget."""
        proved = (one for one in self._forms if one.refused is None or not one.refused.is_proved)
        return min(one.proved_s for one in proved)

    def _solve(self, one: _Open, most_s: float, best: Candidate | None) -> None:
        """Chooses the strategies of a form, where they undercut those of the others."""
        # Less room is less exact: what is run differs from what was counted.
        solve = self._again if one.rounds else self._options.solve
        good_gap, is_rough = solve.budget_gap, self._fitting is None and not one.closes
        if is_rough:
            solve = replace(solve, closes=False, budget_gap=max(ROUGH_GAP, good_gap))
        options = self._options if one.before is None else begun(self._options, one.before)
        if one.rounds:
            options = replace(options, known=None)
        if best is not None and one.before is None:
            options = undercutting(options, best)
        # What is lacking is said once, where nothing fits.
        solve = replace(solve, memory_budget=one.room, most_s=most_s)
        options = replace(options, solve=solve, names_lack=False)
        try:
            found = one.candidate = self._found(one, options)
            one.takes(found.least_s)
            good_s = found.solution.objective_s * (1 - good_gap)
            # What is given is not looked for.
            is_given = options.known is not None or options.carried is not None
            one.is_rough = is_rough and not is_given and found.least_s < good_s
        except SlowerError as error:
            _log.info("%s", error)
            one.slower = error
            one.takes(max(error.least_s, most_s))
        except InfeasibleError as error:
            _log.info("%s", error)
            self._open.remove(one)
            if one.before is None:
                one.refused = error

    def _found(self, one: _Open, options: PlanOptions) -> Candidate:
        subject = one.form.subject
        return find_candidate(subject, options, self._cache, self._say, self._problems)

    def _lower(self, one: _Open, candidate: Candidate) -> None:
        """Makes the programs of a form; where they do not fit there is less room for it."""
        budget = self._options.solve.memory_budget
        self._say(f"lowering to {'x'.join(map(str, candidate.mesh.shape))}")
        plan = self._lowered(one, candidate)
        if budget is None or plan.peak_bytes <= budget:
            self._fitting = plan, candidate
            return
        excess = plan.peak_bytes - budget
        _log.info("%s: %.3e bytes over the memory budget", one.form.subject.name, excess)
        if self._over is None or plan.peak_bytes < self._over.peak_bytes:
            self._over = plan
        one.give(excess, budget)
        # What fits is close to what its closed gap has led to.
        if one.rounds == _ROUNDS or self._fitting is not None:
            self._open.remove(one)

    def _lowered(self, one: _Open, candidate: Candidate) -> Plan:
        """The plan of a form by its strategies.

        What is gathered is kept for operators far behind if there is room, as far as is known.
        """
        budget, counted = self._options.solve.memory_budget, candidate.solution.memory_peak_bytes
        if budget is None or counted + one.beside <= budget:
            plan = one.form.lower(candidate, 0)
            if budget is None or plan.peak_bytes <= budget:
                return plan
            one.beside = plan.peak_bytes - counted
        return one.form.lower(candidate, NEAR)

    def _check_over(self) -> None:
        """Raises why there are no strategies; returns where there are, with too large programs."""
        slower = [one.slower for one in self._open if one.slower is not None]
        if slower:
            raise min(slower, key=lambda error: error.least_s)
        if self._open:
            # Strategies that nothing is proved of, or a step that does nothing.
            raise SlowerError(
                f"no plan was found that takes less than {format_seconds(self._most_s())}",
                min(one.least_s for one in self._open),
            )
        if self._over is None:
            self._name()
            raise leanest([one.refused for one in self._forms if one.refused is not None])

    def _name(self) -> None:
        """Looks for what is lacking least, where no search has said it."""
        short = [
            (one.refused.least_bytes, number, one)
            for number, one in enumerate(self._forms)
            if one.refused is not None and one.refused.least_bytes is not None
        ]
        is_said = any(one.refused.needed_bytes for one in self._forms if one.refused is not None)
        if is_said or not short or not self._options.names_lack:
            return
        _, _, one = min(short)
        try:
            self._found(one, self._options)
        except InfeasibleError as error:
            one.refused = error


def begun(options: PlanOptions, before: Candidate) -> PlanOptions:
    """The same for a search that begins with strategies known.

    Their mesh is first, and what a byte was worth there is where the search for its price begins:
    most others are then told to be slower.
    """
    shapes = sorted(options.mesh_shapes, key=lambda shape: shape != before.mesh.shape)
    return replace(
        options,
        mesh_shapes=tuple(shapes),
        memory_price_s=before.solution.memory_price_s or None,
        before=before.solution,
    )


def lowered_within(
    candidate: Candidate, lower: Callable[[Candidate, int], Plan], budget: float | None
) -> Plan:
    """The plan of strategies that are chosen; over the memory budget where it has to be.

    What is gathered is kept for operators far behind if there is room.
    """
    plan = lower(candidate, 0)
    if budget is not None and plan.peak_bytes > budget:
        plan = lower(candidate, NEAR)
    return plan
