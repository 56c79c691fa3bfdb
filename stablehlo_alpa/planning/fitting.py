"""The fastest of several forms of what runs on one mesh whose programs stay within the memory.

Strategies are chosen by the tensors of a form as it is written. What collectives between them hold
as well is known of the programs that are run, and these take long to make. So all forms are solved
first, each only as far as it may undercut the others, and of the fastest alone programs are made.
Where they take too much, values that are gathered are not kept for operators far behind; where that
does not suffice, the form's strategies are chosen anew with that much less room, and another form
may be the fastest: the search goes on where a plan may be found that is faster than all others
(best first), and ends with the first whose programs fit.
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
    Candidate,
    PlanOptions,
    Subject,
    find_candidate,
    undercutting,
)
from stablehlo_alpa.planning.plan import Plan
from stablehlo_alpa.planning.problems import Problems
from stablehlo_alpa.planning.refusals import leanest
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
        before: strategies whose programs take too much.
        rounds: how often that was so.
        slower: why it has none that undercut others.
        refused: why it has none within the whole budget.
    """

    form: Form
    room: float | None
    candidate: Candidate | None = None
    least_s: float = 0.0
    proved_s: float = 0.0
    before: Candidate | None = None
    rounds: int = 0
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
            most_s = self._options.solve.most_s
            if best is not None:
                most_s = min(most_s, best.seconds)
            todo = [one for one in self._open if one.candidate is None and one.least_s < most_s]
            if todo:
                self._solve(todo[0], most_s, found)
            elif best is None or found is None:
                self._check_over()
                return None
            else:
                plan = self._lowered(best, found)
                if plan is not None:
                    return plan, found, self._least_s()

    def _least_s(self) -> float:
        """Seconds that no plan of any form takes less than within the whole budget."""
        proved = (one for one in self._forms if one.refused is None or not one.refused.is_proved)
        return min(one.proved_s for one in proved)

    def _solve(self, one: _Open, most_s: float, best: Candidate | None) -> None:
        """Chooses the strategies of a form, where they undercut those of the others."""
        options = self._options
        if one.before is not None:
            options = self._with_less_room(one.before)
        elif best is not None:
            options = undercutting(options, best)
        solve = replace(options.solve, memory_budget=one.room, most_s=most_s)
        # What is lacking is said once, where nothing fits.
        options = replace(options, solve=solve, names_lack=False)
        try:
            one.candidate = self._found(one, options)
            one.takes(one.candidate.least_s)
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

    def _with_less_room(self, before: Candidate) -> PlanOptions:
        """Options for strategies with less room.

        The mesh that was best with more is first, and what a byte was worth there is where the
        search for its price begins: most others are then told to be slower.
        """
        options = self._options
        shapes = sorted(options.mesh_shapes, key=lambda shape: shape != before.mesh.shape)
        return replace(
            options,
            mesh_shapes=tuple(shapes),
            solve=self._again,
            known=None,
            memory_price_s=before.solution.memory_price_s or None,
            before=before.solution,
        )

    def _lowered(self, one: _Open, candidate: Candidate) -> Plan | None:
        """The plan of a form by its strategies; None where its programs do not fit."""
        budget = self._options.solve.memory_budget
        self._say(f"lowering to {'x'.join(map(str, candidate.mesh.shape))}")
        plan = lowered_within(candidate, one.form.lower, budget)
        if budget is None or plan.peak_bytes <= budget:
            return plan
        excess = plan.peak_bytes - budget
        _log.info("%s: %.3e bytes over the memory budget", one.form.subject.name, excess)
        if self._over is None or plan.peak_bytes < self._over.peak_bytes:
            self._over = plan
        one.give(excess, budget)
        if one.rounds == _ROUNDS:
            self._open.remove(one)
        return None

    def _check_over(self) -> None:
        """Raises why there are no strategies; returns where there are, with too large programs."""
        slower = [one.slower for one in self._open if one.slower is not None]
        if slower:
            raise min(slower, key=lambda error: error.least_s)
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
