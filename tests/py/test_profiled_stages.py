"""Pipelines chosen by what their programs take on the devices at hand."""

from __future__ import annotations

import itertools
import logging
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparing import assert_equals_jit

import stablehlo_alpa as sa
from stablehlo_alpa.errors import MeshError
from stablehlo_alpa.inter_op import profiling
from stablehlo_alpa.inter_op.profile_store import profile_store

WIDTH = 16
WEIGHTS = [np.eye(WIDTH, dtype="f") for _ in range(4)]
BATCH = np.random.default_rng(0).normal(size=(16, WIDTH)).astype("f")


def loss(weights: Any, batch: jax.Array, key: jax.Array) -> jax.Array:
    x = batch + 0.1 * jax.random.normal(key, (WIDTH,))
    for weight in weights:
        x = jnp.tanh(x @ weight)
    return jnp.mean(x**2)


def step(weights: Any, batch: jax.Array, key: jax.Array) -> tuple[Any, jax.Array]:
    value, gradients = sa.value_and_grad(loss)(weights, batch, key)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), value


def parallel(stages: Any, **options: Any) -> Any:
    method = sa.PipeshardParallel(
        layers=sa.AutoLayers(num_layers=2, remat=False),
        stages=stages,
        num_micro_batches=2,
        schedule="1f1b",
    )
    return sa.parallelize(step, method=method, batch_argnums=1, **options)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of programs that were run; each takes half of what the one before it took."""
    names: list[str] = []
    seconds = (2.0**-power for power in itertools.count())

    def run_seconds(program: Any, devices: Any) -> float:
        names.append(program.name)
        return next(seconds)

    monkeypatch.setattr(profiling, "run_seconds", run_seconds)
    return names


@pytest.mark.slow
def test_the_step_is_that_of_jit_and_its_seconds_are_measured() -> None:
    args = WEIGHTS, BATCH, jax.random.key(3)
    parallelized = parallel(sa.ProfiledStages(num_cuts=2))
    plan = parallelized.plan(*args)
    priced = parallel(sa.AutoStages()).plan(*args)
    # A CPU takes longer than the accelerator that virtual devices are priced as.
    assert plan.step_time_s > priced.step_time_s
    assert_equals_jit(parallelized(*args), jax.jit(step)(*args))


def test_the_fastest_cut_is_taken(runs: list[str]) -> None:
    """The last cut that is run, by clocks that run faster and faster."""
    args = WEIGHTS, BATCH, jax.random.key(3)
    cuts = {}
    for num_cuts in (1, 2, 3):
        runs.clear()
        plan = parallel(sa.ProfiledStages(num_cuts)).plan(*args)
        cuts[num_cuts] = [(one.layers, one.submesh) for one in plan.stages]
        assert runs
    priced = parallel(sa.AutoStages()).plan(*args)
    assert cuts[1] == [(one.layers, one.submesh) for one in priced.stages]
    assert cuts[3] != cuts[1]


def test_what_was_measured_is_kept(runs: list[str], tmp_path: Path) -> None:
    args = WEIGHTS, BATCH, jax.random.key(3)
    stages = sa.ProfiledStages(2, store=tmp_path / "profiles")
    first = parallel(stages).plan(*args)
    assert runs
    assert len(list((tmp_path / "profiles").rglob("*.entry"))) == len(runs)
    runs.clear()
    again = parallel(stages).plan(*args)
    assert runs == []
    assert again.step_time_s == first.step_time_s


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"seconds": "long"}', '{"seconds": -1}'])
def test_a_damaged_file_is_measured_again(
    damage: str, runs: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    args = WEIGHTS, BATCH, jax.random.key(3)
    stages = sa.ProfiledStages(1, store=tmp_path)
    parallel(stages).plan(*args)
    (broken, *_) = sorted(tmp_path.rglob("*.entry"))
    broken.write_text(damage)
    runs.clear()
    with caplog.at_level(logging.WARNING):
        parallel(stages).plan(*args)
    assert len(runs) == 1
    kept = profile_store(tmp_path).get(broken.stem)
    assert kept is not None
    assert kept["seconds"] > 0
    assert not list(tmp_path.rglob("*.part"))


def test_a_store_is_of_one_kind_of_program() -> None:
    plan = parallel(sa.AutoStages()).plan(WEIGHTS, BATCH, jax.random.key(3))
    keys = {profiling.program_key(p, jax.devices()[0]) for p in plan.runtime.programs}
    assert len(keys) == len({p.text for p in plan.runtime.programs})


def test_a_store_that_is_not_there_is_empty(tmp_path: Path) -> None:
    store = profile_store(tmp_path / "none")
    assert store.get("key") is None
    store.put("key", {"seconds": 1.5})
    assert store.get("key") == {"seconds": 1.5}
    assert profile_store(None).get("key") is None


def test_clusters_that_are_not_there_are_refused() -> None:
    with pytest.raises(MeshError, match=r"64 devices, 8 are at hand.*AutoStages"):
        parallel(sa.ProfiledStages(1), cluster="p3.16xlarge:8").plan(
            WEIGHTS, np.zeros((4096, WIDTH), "f"), jax.random.key(0)
        )


def test_no_cut_is_refused() -> None:
    with pytest.raises(ValueError, match="num_cuts must be >= 1, got 0"):
        sa.ProfiledStages(0)
