"""Batches that are fed ahead of their steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest
from alpa_runtime import InputError
from models import mlp

import stablehlo_alpa
from stablehlo_alpa import (
    AutoLayers,
    PipeshardParallel,
    RayCluster,
    ShardParallel,
    UniformStages,
)
from stablehlo_alpa.data import prefetch

CASE = mlp.make(layers=2)
METHODS = {
    "one_mesh": ShardParallel(mesh_shape=(8,)),
    "pipeline": PipeshardParallel(
        num_micro_batches=4,
        layers=AutoLayers(num_layers=2),
        stages=UniformStages(2),
        schedule="1f1b",
    ),
}


def batches(count: int) -> Iterator[Any]:
    for seed in range(count):
        rng = np.random.default_rng(seed)
        yield jax.tree.map(lambda x, rng=rng: rng.normal(size=x.shape).astype("f"), CASE.batch)


def losses(step: Any, source: Any) -> list[Any]:
    state, found = CASE.state, []
    for batch in source:
        state, metrics = step(state, batch, CASE.rng)
        found.append(np.asarray(metrics["loss"]))
    return found


def check(method: Any, cluster: Any = None) -> None:
    step = stablehlo_alpa.parallelize(CASE.step, method=method, cluster=cluster)
    expected = losses(step, batches(5))
    compiled = step.compile(*CASE.args)
    np.testing.assert_array_equal(losses(step, prefetch(batches(5), compiled)), expected)
    compiled.close()


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_what_is_fed_ahead_trains_the_same(method: Any) -> None:
    check(method)


@pytest.mark.slow
def test_what_is_fed_ahead_to_actors_trains_the_same() -> None:
    pytest.importorskip("ray")
    try:
        check(METHODS["pipeline"], RayCluster())
    finally:
        stablehlo_alpa.shutdown()


def test_only_so_many_are_read_ahead() -> None:
    read = []

    def source() -> Iterator[Any]:
        for number, batch in enumerate(batches(10)):
            read.append(number)
            yield batch

    step = stablehlo_alpa.parallelize(CASE.step, method=METHODS["pipeline"])
    ahead = prefetch(source(), step.compile(*CASE.args), size=3)
    assert read == []
    next(ahead)
    ahead.close()
    assert len(read) <= 4


def test_errors_come_with_their_batch() -> None:
    def source() -> Iterator[Any]:
        yield next(batches(1))
        raise OSError("the disk is gone")

    compiled = stablehlo_alpa.parallelize(CASE.step, method=METHODS["pipeline"]).compile(*CASE.args)
    ahead = prefetch(source(), compiled)
    next(ahead)
    with pytest.raises(OSError, match="the disk is gone"):
        next(ahead)
    wrong = jax.tree.map(lambda x: np.zeros((3, *x.shape[1:]), "f"), CASE.batch)
    with pytest.raises(InputError, match=r"of step is float32\[32, ?\d+\], got float32\[3,"):
        next(prefetch([wrong], compiled))
    with pytest.raises(ValueError, match="a batch has 1 arrays, argument 1 of step has 2"):
        next(prefetch([np.zeros(3)], compiled))
    with pytest.raises(ValueError, match="has no arrays in argument 7"):
        prefetch([], compiled, argnum=7)
    with pytest.raises(ValueError, match="size must be >= 1, got 0"):
        prefetch([], compiled, size=0)
