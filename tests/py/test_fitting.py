"""The search over forms of what runs on one mesh, beside each form taken by itself to its end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stablehlo_alpa.cluster import ClusterSpec
from stablehlo_alpa.errors import InfeasibleError, SlowerError
from stablehlo_alpa.intra_op import SolveOptions
from stablehlo_alpa.planning import fitting
from stablehlo_alpa.planning.fitting import Form, FormSearch
from stablehlo_alpa.planning.mesh_search import ROUGH_GAP, PlanOptions

BUDGET = 100.0


@dataclass(frozen=True)
class Choice:
    """Strategies of a form.

    Attributes:
        seconds: of a step.
        counted: bytes of their tensors.
        taken: bytes of their programs, and where gathered values are not kept.
    """

    seconds: float
    counted: float
    taken: tuple[float, float]


def random_form(rng: np.random.Generator) -> list[Choice]:
    """What may be chosen: more memory is faster."""
    counted = np.sort(rng.uniform(20, 130, rng.integers(1, 7)))
    seconds = np.sort(rng.uniform(1, 9, len(counted)))[::-1]
    beside = rng.uniform(0, 40, len(counted))
    return [
        Choice(s, c, (c + 1.5 * b, c + b))
        for s, c, b in zip(seconds.tolist(), counted.tolist(), beside.tolist(), strict=True)
    ]


def best_within(form: list[Choice], room: float) -> Choice | None:
    """The fastest whose tensors fit."""
    fitting_ = [one for one in form if one.counted <= room]
    return min(fitting_, key=lambda one: one.seconds, default=None)


def by_itself(form: list[Choice]) -> float:
    """Seconds of a form that is solved with less and less room until its programs fit."""
    room = BUDGET
    for round_ in range(fitting._ROUNDS):
        found = best_within(form, room)
        if found is None:
            break
        if min(found.taken) <= BUDGET:
            return found.seconds
        less = max(found.taken[1] - BUDGET, fitting._LESS * fitting._MORE**round_ * BUDGET)
        room = max(0.0, found.counted - less)
    return math.inf


def find(subject: Any, options: PlanOptions, *_: Any) -> Any:
    """Stands for the search over strategies, which is exact here."""
    room = options.solve.memory_budget
    assert room is not None
    found = best_within(subject.choices, room)
    if found is None:
        least = min(one.counted for one in subject.choices)
        raise InfeasibleError("too large", budget_bytes=room, least_bytes=least)
    if found.seconds >= options.solve.most_s:
        raise SlowerError("slower", found.seconds)
    solution = SimpleNamespace(
        objective_s=found.seconds, memory_peak_bytes=found.counted, memory_price_s=0.0
    )
    mesh = SimpleNamespace(shape=(2,))
    return SimpleNamespace(solution=solution, mesh=mesh, least_s=found.seconds, choice=found)


def search_of(
    forms: list[list[Choice]], lowered: list[float], most_s: float = math.inf
) -> FormSearch:
    def lower(candidate: Any, reach: int) -> Any:
        lowered.append(candidate.choice.seconds)
        return SimpleNamespace(peak_bytes=candidate.choice.taken[reach > 0])

    solve = SolveOptions(memory_budget=BUDGET, most_s=most_s)
    options = PlanOptions(ClusterSpec.preset("p3.16xlarge:1"), ((2,),), solve=solve)
    subjects: list[Any] = [SimpleNamespace(name="a form", choices=one) for one in forms]
    return FormSearch([Form(one, lower) for one in subjects], options)


@pytest.mark.parametrize("seed", range(200))
def test_the_fastest_form_that_fits_is_found(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "find_candidate", find)
    rng = np.random.default_rng(seed)
    forms = [random_form(rng) for _ in range(rng.integers(1, 5))]
    wanted = min(map(by_itself, forms))
    free = [best_within(one, BUDGET) for one in forms]
    lowered: list[float] = []
    search = search_of(forms, lowered)
    if not any(free):
        with pytest.raises(InfeasibleError):
            search.run()
        return
    found = search.run()
    if found is None:
        assert wanted == math.inf
        assert search.over is not None
        assert search.over.peak_bytes > BUDGET
        return
    _, best, least_s = found
    assert best.solution.objective_s == wanted
    assert least_s == min(one.seconds for one in free if one is not None)
    # Programs take long: none is made of what is slower than the answer.
    assert max(lowered) <= wanted


def test_nothing_that_undercuts_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "find_candidate", find)
    forms = [[Choice(3.0, 50.0, (60.0, 60.0))], [Choice(2.0, 50.0, (60.0, 60.0))]]
    search = search_of(forms, [], most_s=1.5)
    with pytest.raises(SlowerError) as raised:
        search.run()
    assert raised.value.least_s == 2.0


@pytest.mark.parametrize(("taken", "wanted"), [(90.0, 1.99), (120.0, 2.0)])
def test_gaps_are_closed_of_what_fits(
    taken: float, wanted: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A better plan within the gap is taken where its programs fit as well."""
    rough, better = Choice(2.0, 50.0, (60.0, 60.0)), Choice(1.99, 50.0, (taken, taken))
    gaps: list[float] = []

    def find_roughly(subject: Any, options: PlanOptions, *_: Any) -> Any:
        gaps.append(options.solve.budget_gap)
        is_rough = options.solve.budget_gap >= ROUGH_GAP
        found = find(SimpleNamespace(choices=[rough if is_rough else better]), options)
        found.least_s = better.seconds
        return found

    monkeypatch.setattr(fitting, "find_candidate", find_roughly)
    found = search_of([[rough, better]], []).run()
    assert found is not None
    _, best, least_s = found
    assert best.solution.objective_s == wanted
    assert least_s == better.seconds
    assert gaps == [ROUGH_GAP, SolveOptions().budget_gap]
