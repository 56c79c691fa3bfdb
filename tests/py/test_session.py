"""Many executables on the processes of one cluster, over one store of arrays."""

from __future__ import annotations

import dataclasses
import functools
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from alpa_runtime import InputError, Plan
from chains import chain_plan, chain_results
from injected_faults import wait_until_gone
from interrupts import Interrupt

import stablehlo_alpa
from stablehlo_alpa import (
    AutoLayers,
    ClusterError,
    DataParallel,
    DistributedArray,
    PipeshardParallel,
    RayCluster,
    ShardParallel,
    UniformStages,
    save_checkpoint,
)
from stablehlo_alpa.errors import MeshError

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

SIZES, COUNT = (2, 4), 2


@pytest.fixture(scope="module", autouse=True)
def local_ray() -> Iterator[None]:
    """Ray starts with the first test and ends with the last."""
    yield
    stablehlo_alpa.shutdown()


def on_ray(plan: Plan, cluster: RayCluster | None = None) -> Any:
    from alpa_runtime.ray import RayExecutable
    from alpa_runtime.ray.cluster import find_hosts

    cluster = cluster or RayCluster(num_hosts=1, devices_per_host=plan.num_devices)
    return RayExecutable(plan, cluster, find_hosts(cluster, plan.num_devices))


def make_inputs(plan: Plan, seed: int) -> list[Any]:
    draw = np.random.default_rng(seed)
    return [draw.integers(-4, 5, value.value.shape).astype("f") for value in plan.inputs]


def handles_of(run: Any, inputs: Sequence[Any]) -> list[Any]:
    """Weights as handles where they are kept, and the batch."""
    *weights, batch = inputs
    return [*run.create(lambda *own: list(own), weights, range(len(weights))), batch]


def split(inputs: Sequence[Any]) -> tuple[Sequence[Any], Any]:
    """Weights and batch."""
    return inputs[:-1], inputs[-1]


def check_equal(found: Sequence[Any], expected: Sequence[Any]) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(a), b)


@pytest.fixture(scope="module")
def run() -> Iterator[Any]:
    executable = on_ray(chain_plan(SIZES, COUNT))
    yield executable
    executable.close()


def pids_of(run: Any) -> set[int]:
    return {pid for _, pid in run.processes.values()}


def test_an_interrupt_in_the_driver_leaves_nothing(run: Any) -> None:
    """At lines of the runtime all over a call; what it was to donate may be gone."""
    pids = pids_of(run)
    held = handles_of(run, make_inputs(run.plan, 0))
    with Interrupt(1 << 30) as counting:
        made = run(*held)
    gone = 0
    for line in range((1 << 30) - counting.left):
        inputs = make_inputs(run.plan, line)
        expected = chain_results(SIZES, *split(inputs))
        held = handles_of(run, inputs)
        with pytest.raises(KeyboardInterrupt), Interrupt(line):
            run(*held)
        # Behind what the interrupted call has asked for.
        run.session.run(lambda: None)
        if held[0].is_deleted():
            gone += 1
            with pytest.raises(InputError, match="was deleted"):
                run(*held)
            held = handles_of(run, inputs)
        check_equal(run(*held), expected)
    assert gone
    check_equal(made, chain_results(SIZES, *split(make_inputs(run.plan, 0))))
    assert pids_of(run) == pids


def test_threads_share_a_session(run: Any) -> None:
    other = on_ray(chain_plan(SIZES, 1))
    errors: list[BaseException] = []

    def call(own: Any, seed: int) -> None:
        try:
            for number in range(5):
                inputs = make_inputs(own.plan, 10 * seed + number)
                expected = chain_results(SIZES, *split(inputs))
                check_equal(own(*handles_of(own, inputs)), expected)
        except BaseException as error:
            errors.append(error)

    threads = [
        threading.Thread(target=call, args=(own, seed), daemon=True)
        for seed, own in enumerate((run, other, run, other))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    for error in errors:
        raise error
    other.close()


def test_of_threads_that_donate_the_same_one_succeeds(run: Any) -> None:
    inputs = make_inputs(run.plan, 3)
    held, outcomes = handles_of(run, inputs), []

    def call() -> None:
        try:
            outcomes.append(run(*held))
        except InputError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (results,) = [one for one in outcomes if not isinstance(one, InputError)]
    check_equal(results, chain_results(SIZES, *split(inputs)))


def test_plans_with_other_meshes_get_processes_beside_the_first(run: Any) -> None:
    pids = pids_of(run)
    # The mesh of four devices is the same, the others are not.
    other = on_ray(chain_plan((1, 1, 4), 1))
    assert len(pids_of(other)) == 4
    assert pids < pids_of(other)
    weights, batch = make_inputs(run.plan, 0)[:-1], make_inputs(other.plan, 1)[-1]
    made = run(*handles_of(run, make_inputs(run.plan, 0)))
    # What lies on other devices crosses by the driver; the last weight stays.
    inputs = [np.asarray(made[0]), np.asarray(weights[1]), np.asarray(made[1])]
    found = other(made[0], inputs[1], made[1], batch)
    check_equal(found, chain_results((1, 1, 4), inputs, batch))
    # Both were donated.
    assert made[0].is_deleted()
    assert made[1].is_deleted()
    other.close()
    inputs = make_inputs(run.plan, 5)
    check_equal(run(*inputs), chain_results(SIZES, *split(inputs)))


def test_a_plan_that_cannot_be_compiled_leaves_the_others(run: Any) -> None:
    plan = chain_plan(SIZES, 1)
    broken = dataclasses.replace(plan.programs[0], text="module {")
    held = handles_of(run, make_inputs(run.plan, 2))
    with pytest.raises(ClusterError, match="does not parse"):
        on_ray(dataclasses.replace(plan, programs=(broken, *plan.programs[1:])))
    inputs = make_inputs(run.plan, 2)
    check_equal(run(*held), chain_results(SIZES, *split(inputs)))


def test_a_process_that_dies_ends_the_session_and_the_next_begins_anew() -> None:
    cluster = RayCluster(num_hosts=1, devices_per_host=6, deadline_s=30.0)
    first, second = (on_ray(chain_plan(SIZES, count), cluster) for count in (1, 2))
    assert first.session is second.session
    pids = pids_of(first)
    os.kill(max(pids), 9)
    for own in (first, second):
        with pytest.raises(ClusterError):
            np.asarray(own(*make_inputs(own.plan, 0))[0])
    wait_until_gone(list(pids))
    again = on_ray(chain_plan(SIZES, 1), cluster)
    assert not pids & pids_of(again)
    inputs = make_inputs(again.plan, 1)
    check_equal(again(*inputs), chain_results(SIZES, *split(inputs)))
    again.close()


def test_a_restart_brings_all_plans_back(tmp_path: Path) -> None:
    cluster = RayCluster(
        num_hosts=1,
        devices_per_host=6,
        on_failure="restart",
        snapshot_folder=str(tmp_path),
        snapshot_steps=3,
    )
    runs = [on_ray(chain_plan(SIZES, count), cluster) for count in (1, 2)]
    weights = make_inputs(runs[0].plan, 0)[:-1]
    held = runs[0].create(lambda *own: list(own), weights, range(len(weights)))
    for number in range(10):
        run = runs[number % 2]
        batch = 0.01 * make_inputs(run.plan, number)[-1]
        held = run(*held, batch)
        weights = chain_results(SIZES, weights, batch)
        if number in (4, 7):
            os.kill(sorted(pids_of(run))[number % 2], 9)
    for found, wanted in zip(held, weights, strict=True):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5)
    for run in runs:
        run.close()
    assert list(tmp_path.iterdir()) == []


def test_programs_of_a_cluster_are_shown(run: Any) -> None:
    assert "ENTRY" in run.as_text("forward_2")
    assert [mesh.size for mesh in run.meshes] == list(SIZES)
    assert run.mesh.size == sum(SIZES)
    assert all(own["flops"] > 0 for own in run.cost_analysis())
    assert all(own.peak_memory_in_bytes > 0 for own in run.memory_analysis())


# The methods


def loss(weights: Any, batch: Any) -> Any:
    for weight in weights:
        batch = jax.numpy.tanh(batch @ weight)
    return jax.numpy.mean(batch**2)


def step(weights: Any, batch: Any) -> Any:
    value, gradients = stablehlo_alpa.value_and_grad(loss)(weights, batch)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), value


def weights_and_batches() -> tuple[list[Any], list[Any]]:
    draw = np.random.default_rng(0)
    weights = [0.3 * draw.normal(size=(16, 16)).astype("f") for _ in range(2)]
    return weights, [draw.normal(size=(rows, 16)).astype("f") for rows in (16, 16, 16, 8)]


PIPELINE = PipeshardParallel(
    num_micro_batches=2, layers=AutoLayers(num_layers=2), stages=UniformStages(2)
)
MESHES: dict[str, Any] = {
    "pipeline": (PIPELINE, RayCluster(num_hosts=1, devices_per_host=4)),
    "one mesh": (ShardParallel(), RayCluster(num_hosts=1, devices_per_host=4)),
    "a mesh over hosts": (ShardParallel(), RayCluster(num_hosts=2, devices_per_host=2)),
    "data": (DataParallel(), RayCluster(num_hosts=2, devices_per_host=2)),
}
SELDOM = {"one mesh", "data"}


@pytest.mark.parametrize(
    ("method", "cluster"),
    [
        pytest.param(*one, id=name, marks=pytest.mark.matrix if name in SELDOM else ())
        for name, one in MESHES.items()
    ],
)
def test_training_and_evaluation_share_processes(
    method: Any, cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A last batch of another size, too; the state never moves, nothing is started again."""
    from alpa_runtime.ray.feeder import Feeder

    make = functools.partial(stablehlo_alpa.parallelize, method=method, cluster=cluster)
    train, evaluate = make(step, donate_argnums=0), make(loss)
    weights, batches = weights_and_batches()
    state: Any = train.create_state(lambda: weights, batch=batches[:1])
    content, moved = Feeder.content, []

    def noting(feeder: Feeder, index: int, array: Any, *meshes: Any) -> Any:
        moved.append(isinstance(array, DistributedArray))
        return content(feeder, index, array, *meshes)

    monkeypatch.setattr(Feeder, "content", noting)
    expected, plain = weights, jax.jit(step)
    sessions, pids = [], []
    for batch in batches:
        found = evaluate(state, batch)
        np.testing.assert_allclose(float(found), float(loss(expected, batch)), rtol=1e-5)
        state, value = train(state, batch)
        expected, wanted = plain(expected, batch)
        np.testing.assert_allclose(float(value), float(wanted), rtol=1e-5)
        for function in (train, evaluate):
            executable: Any = function.compile(state, batch).executable
            sessions.append(executable.session)
            pids.append(pids_of(executable))
    assert len(set(map(id, sessions))) == 1
    assert all(own == pids[0] for own in pids)
    assert not any(moved)
    save_checkpoint(tmp_path / "saved", state)
    state = train.restore_state(tmp_path / "saved", state, batch=batches[:1])
    for a, b in zip(state, expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-5, atol=1e-6)
    for batch in (batches[0], batches[-1]):
        train.compile(state, batch).close()
    # The processes go with the last of those that run on them.
    evaluate.compile(state, batches[0]).close()
    np.testing.assert_allclose(
        float(evaluate(state, batches[-1])), float(loss(expected, batches[-1])), rtol=1e-5
    )
    with pytest.raises(ClusterError, match="step was closed: make another"):
        train(state, batches[0])
    evaluate.compile(state, batches[-1]).close()
    wait_until_gone(list(pids[0]))


def test_wide_numbers_stay_wide() -> None:
    """In the context of the call; outside of it they are what they are to ``jax.jit``."""
    function = stablehlo_alpa.parallelize(
        lambda w, x, scale: (x @ w) * scale, cluster=RayCluster(num_hosts=1, devices_per_host=2)
    )
    w, x = np.full((4, 4), 0.1), np.full((8, 4), 1 / 3)
    for is_wide in (True, False):
        with jax.enable_x64(is_wide):
            made = function.create_state(lambda: jax.numpy.asarray(w) * 3, batch=(x, 0.5))
            found, expected = function(made, x, 0.5), jax.jit(lambda: (x @ (w * 3)) * 0.5)()
            assert found.dtype == np.asarray(found).dtype == expected.dtype
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-15 if is_wide else 1e-6)
            function.compile(made, x, 0.5).close()


def test_a_mesh_fits_its_cluster() -> None:
    function = stablehlo_alpa.parallelize(
        loss,
        method=ShardParallel(mesh_shape=(2, 4)),
        cluster=RayCluster(num_hosts=2, devices_per_host=2),
    )
    with pytest.raises(MeshError, match="mesh 2x4 has 8 devices, the cluster has 4: 2 hosts"):
        function.plan(weights_and_batches()[0], np.ones((16, 16), "f"))
