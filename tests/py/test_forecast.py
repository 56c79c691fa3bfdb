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
        now[0] += 4.0
        assert forecast.left_s is None
        assert str(forecast) == ""
    with forecast.candidate():
        now[0] += 8.0
    # Six seconds each, in the mean.
    forecast.likely, forecast.most = 2, 5
    assert forecast.left_s == 12.0
    with forecast.candidate():
        now[0] += 2.0
        assert (forecast.left_s, forecast.most_s) == (16.0, 34.0)
        assert str(forecast) == "; candidate 3, about 16 s left, at most 34 s"
        now[0] += 10.0
        # One that takes longer than the others is not said to have ended.
        assert forecast.left_s == 12.0


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
    """From the second candidate on, and never that more is likely than possible."""
    seen: list[tuple[float, float]] = []
    said: list[str] = []
    whole = Forecast.__str__

    def spied(self: Forecast) -> str:
        if self.left_s is not None and self.most_s is not None:
            seen.append((self.left_s, self.most_s))
        return whole(self)

    monkeypatch.setattr(Forecast, "__str__", spied)
    case = mlp.make()
    method = sa.PipeshardParallel(stages=sa.UniformStages(2), layers=sa.AutoLayers(num_layers=2))
    parallel = sa.parallelize(case.step, method=method)

    def progress(_: object) -> Iterator[Callable[[str], None]]:
        yield said.append

    monkeypatch.setattr(call_planner, "progress", contextlib.contextmanager(progress))
    plan = parallel.plan(*case.args)
    assert len(plan.tried) > 1
    assert all(likely <= most + 1e-9 for likely, most in seen)
    assert any("; candidate 2, about" in line for line in said)
    assert not any("; candidate 1," in line for line in said)
