"""What a search says of the time that is left."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("stablehlo_alpa._core")

from models import mlp

import stablehlo_alpa as sa
from stablehlo_alpa.api import call_planner
from stablehlo_alpa.errors import InfeasibleError
from stablehlo_alpa.inter_op.forecast import Forecast, likely_counts


def ticking() -> tuple[list[float], Callable[[], float]]:
    now = [0.0]
    return now, lambda: now[0]


def test_what_is_left_is_weighed_by_what_was_measured() -> None:
    now, clock = ticking()
    forecast = Forecast(clock)
    with forecast.candidate():
        now[0] += 2.0
        assert forecast.left_s is None
        assert str(forecast) == ""
    forecast.likely, forecast.again, forecast.most = 2, 4, 9
    with forecast.candidate():
        # Nothing fits yet.
        assert forecast.left_s == 2.0 + 2 * 2.0 + 4 * 2.0
        assert str(forecast) == "; candidate 2 of at most 11, about 14 s or more left"
        now[0] += 10.0
        forecast.fits()
        assert forecast.is_low
    with forecast.candidate():
        now[0] += 4.0
        # Those that follow need ten seconds, others the mean of ten and two.
        assert forecast.left_s == 6.0 + 2 * 10.0 + 4 * 6.0
        assert str(forecast) == "; candidate 3 of at most 12, about 50 s left"
        now[0] += 10.0
        # One that takes longer than the others is not said to have ended.
        assert forecast.left_s == 2 * 10.0 + 4 * 6.0


def test_a_candidate_that_fails_has_taken_its_time() -> None:
    now, clock = ticking()
    forecast = Forecast(clock, likely=1)

    @forecast.candidate()
    def fail() -> None:
        now[0] += 3.0
        raise InfeasibleError("does not fit")

    with pytest.raises(InfeasibleError):
        fail()
    assert forecast.left_s == 3.0


@pytest.mark.parametrize(
    ("following", "slower", "is_found", "likely"),
    [
        (10, 0, False, 7.0),
        (10, 0, True, 2.0),
        (10, 1, True, 1.0),
        (1, 0, True, 1.0),
        (0, 0, False, 0.0),
    ],
)
def test_counts_that_are_likely_to_follow(
    following: int, slower: int, is_found: bool, likely: float
) -> None:
    assert likely_counts(following, slower, 2, is_found=is_found) == likely


def test_who_watches_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the second candidate on."""
    said: list[str] = []
    case = mlp.make()
    method = sa.PipeshardParallel(stages=sa.UniformStages(2), layers=sa.AutoLayers(num_layers=2))
    parallel = sa.parallelize(case.step, method=method)

    def progress(_: object) -> Iterator[Callable[[str], None]]:
        yield said.append

    monkeypatch.setattr(call_planner, "progress", contextlib.contextmanager(progress))
    plan = parallel.plan(*case.args)
    assert len(plan.tried) > 1
    assert any("; candidate 2 of at most" in line for line in said)
    assert not any("; candidate 1 of" in line for line in said)
