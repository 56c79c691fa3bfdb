"""Pipelines on a Ray cluster: the same bits as in one process, faults named, nothing left."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from alpa_runtime import InputError
from alpa_runtime.meeting_point import MeetingPoint
from alpa_runtime.plan import Run
from injected_faults import no_unhandled_errors, wait_until_gone
from models.case import TrainCase
from oracle import assert_same
from test_asynchronous import OPTIMIZERS, batches, first_state, method, train_step
from test_models import assert_trees_close
from test_pipeline import MATRIX, QUICK, SLOW, TWO, Pipeline, make_case, parallel_step, train

import stablehlo_alpa
from stablehlo_alpa import (
    AutoLayers,
    ClusterError,
    DistributedArray,
    PipeshardParallel,
    RayCluster,
    RuntimeOptions,
    UniformStages,
    save_checkpoint,
)
from stablehlo_alpa.errors import MeshError

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

COUNT = "--xla_force_host_platform_device_count"


@pytest.fixture(scope="module", autouse=True)
def local_ray() -> Iterator[None]:
    """Ray starts with the first test and ends with the last."""
    yield
    started = actors_below(os.getpid())
    stablehlo_alpa.shutdown()
    wait_until_gone(started)


def actors_below(parent: int) -> list[int]:
    """Actors that descend from a process."""
    parents, actors = {}, []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                status = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(status[1])
                if b"MeshActor" in (folder / "cmdline").read_bytes():
                    actors.append(int(folder.name))

    def descends(process: int) -> bool:
        return process == parent or (process in parents and descends(parents[process]))

    return [actor for actor in actors if descends(actor)]


# Every case of the pipeline suite: small ones with every run of the tests, the others with
# `make test-matrix`.
EVERY_CASE = [
    pytest.param(
        pipeline,
        "auto",
        marks=() if pipeline in QUICK[:2] else pytest.mark.matrix,
        id=f"{pipeline.id}-auto",
    )
    for pipeline in QUICK + SLOW + MATRIX
]


@pytest.mark.parametrize(
    ("pipeline", "transport"),
    [
        *EVERY_CASE,
        pytest.param(QUICK[0], "jax", id=f"{QUICK[0].id}-jax", marks=pytest.mark.matrix),
    ],
)
def test_actors_compute_the_same_bits(pipeline: Pipeline, transport: str) -> None:
    case = make_case(pipeline)
    expected = train(parallel_step(case, pipeline), case)
    step = parallel_step(case, pipeline, RayCluster(transport=transport))
    found = train(step, case)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b)
    step.compile(*case.args).close()


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(stablehlo_alpa.pipedream, id="pipedream"),
        pytest.param(lambda: stablehlo_alpa.pipedream_2bw(4), id="2bw"),
    ],
)
def test_updates_without_a_flush_are_the_same_bits(make: Any) -> None:
    """Whether each mesh is a process of its own or all are one, versions are as old."""
    optimizer = OPTIMIZERS["adam"]()

    def found(**options: Any) -> Any:
        step = stablehlo_alpa.parallelize(
            train_step(optimizer), method=method(make(), num_stages=2), **options
        )
        state, losses = first_state(optimizer), []
        for call in range(3):
            state, loss = step(state, batches(call))
            losses.append(np.asarray(loss))
        if options:
            assert isinstance(jax.tree.leaves(state)[0], DistributedArray)
        return jax.tree.map(np.asarray, (state, losses)), step

    own, step = found(cluster=RayCluster())
    for a, b in zip(jax.tree.leaves(own), jax.tree.leaves(found()[0]), strict=True):
        np.testing.assert_array_equal(a, b)
    step.compile(first_state(optimizer), batches(0)).close()


HOSTS = [
    # One mesh of two processes, and two meshes of two.
    Pipeline("mlp", 2, UniformStages(1)),
    Pipeline("mlp", 4, TWO, "zero_bubble"),
]


def test_meeting_point_is_held() -> None:
    """Nobody gets the port before the service of jax listens there, and it is free afterwards."""
    with contextlib.closing(MeetingPoint("127.0.0.1")) as meeting:
        host, port = meeting.address.split(":")
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((host, int(port)))
    # Before anybody connects: what is left of a connection keeps a port for a minute.
    with socket.socket() as other:
        other.bind((host, int(port)))


def test_meeting_point_is_shared_with_the_service_of_jax() -> None:
    """The service of jax listens at the address while the port is held."""
    with contextlib.closing(MeetingPoint("127.0.0.1")) as meeting:
        program = "import sys, jax; jax.distributed.initialize(sys.argv[1], 1, 0); jax.devices()"
        run = [sys.executable, "-c", program, meeting.address]
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""}
        found = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=120)
        assert found.returncode == 0, found.stderr


@pytest.mark.parametrize(
    "pipeline",
    [
        pytest.param(HOSTS[0], id=HOSTS[0].id, marks=pytest.mark.matrix),
        pytest.param(HOSTS[1], id=HOSTS[1].id),
    ],
)
def test_meshes_span_hosts(pipeline: Pipeline) -> None:
    case = make_case(pipeline)
    hosts = 2 * pipeline.stages.num_stages
    step = parallel_step(case, pipeline, RayCluster(num_hosts=hosts, devices_per_host=2))
    plan = step.plan(*case.args)
    assert all(len(mesh.devices) == 4 for mesh in plan.runtime.meshes)
    found, metrics = train(step, case)
    expected, expected_metrics = train(jax.jit(case.accumulated(pipeline.num_micro_batches)), case)
    # Collectives between processes add in another order than those within one.
    assert_trees_close(found, expected, 1e-4, "state")
    assert_trees_close(metrics[0]["gradients"], expected_metrics[0]["gradients"], 1e-5, "gradients")
    step.compile(*case.args).close()


@contextlib.contextmanager
def two_actors(name: str) -> Iterator[tuple[Any, TrainCase]]:
    """A pipeline of two actors that others of this name alone share, and its model."""
    pipeline = Pipeline("mlp", 4, TWO)
    case = make_case(pipeline)
    cluster = RayCluster(runtime_env={"env_vars": {"ALPA_TEST": name}})
    step = parallel_step(case, pipeline, cluster)
    yield step, case
    step.compile(*case.args).close()


def after_a_step(step: Any, case: TrainCase) -> Any:
    state = step.create_state(lambda: case.state, batch=(case.batch, case.rng))
    state, metrics = step(state, case.batch, case.rng)
    assert float(metrics["loss"]) > 0
    return state


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Any, TrainCase]]:
    with two_actors("given") as (step, case):
        yield step, case


@pytest.fixture
def running(shared: tuple[Any, TrainCase]) -> tuple[Any, TrainCase, Any]:
    """A pipeline of two actors that has done a step, its model, and the state after it."""
    step, case = shared
    return step, case, after_a_step(step, case)


@pytest.fixture
def fresh() -> Iterator[tuple[Any, TrainCase, Any]]:
    """The same with processes that have done nothing else."""
    with two_actors("fresh") as (step, case):
        yield step, case, after_a_step(step, case)


def pid_of(step: Any, case: TrainCase, mesh: int) -> int:
    executable = step.compile(*case.args).executable
    pid: int = executable.processes[mesh, 0][1]
    return pid


def loss_after(step: Any, case: TrainCase, state: Any) -> float:
    """The loss of one more step."""
    _, metrics = step(state, case.batch, case.rng)
    return float(metrics["loss"])


def test_handles_say_what_they_are(running: Any) -> None:
    step, case, state = running
    environment = Path(f"/proc/{pid_of(step, case, 0)}/environ").read_bytes().split(b"\0")
    assert b"ALPA_TEST=given" in environment
    leaf = jax.tree.leaves(state)[-1]
    assert isinstance(leaf, DistributedArray)
    assert not leaf.addressable
    assert leaf.sharding.mesh in (0, 1)
    assert leaf.sharding.memory_kind == "device"
    fetched = jax.device_get(state)
    for handle, array in zip(jax.tree.leaves(state), jax.tree.leaves(fetched), strict=True):
        assert (handle.shape, handle.dtype) == (array.shape, array.dtype)
        assert isinstance(array, np.ndarray)
    assert jax.eval_shape(lambda tree: tree, state) == jax.eval_shape(lambda tree: tree, fetched)
    after, _ = step(state, case.batch, case.rng)
    # The state was donated.
    assert leaf.is_deleted()
    with pytest.raises(InputError, match="was deleted"):
        np.asarray(leaf)
    with pytest.raises(InputError, match="was deleted"):
        step(state, case.batch, case.rng)
    np.asarray(jax.tree.leaves(after)[-1])


def test_handles_are_arguments_of_other_programs(running: Any) -> None:
    _, case, state = running
    fetched = jax.device_get(state)
    expected = float(jax.jit(case.step)(fetched, case.batch, case.rng)[1]["loss"])
    for elsewhere in (
        stablehlo_alpa.parallelize(case.step),
        parallel_step(case, Pipeline("mlp", 2, TWO)),
        parallel_step(case, Pipeline("mlp", 2, TWO), RayCluster()),
    ):
        loss = elsewhere(state, case.batch, case.rng)[1]["loss"]
        assert float(loss) == pytest.approx(expected, rel=1e-5)
        executable = elsewhere.compile(*case.args).executable
        if hasattr(executable, "close"):
            executable.close()


def test_handles_compute_as_arrays_do(running: Any) -> None:
    step, case, state = running
    fetched = jax.device_get(state)
    for handle, array in zip(jax.tree.leaves(state), jax.tree.leaves(fetched), strict=True):
        assert handle.nbytes == array.nbytes
        for compute in (
            lambda x: x + 1,
            lambda x: np.float32(2) - x,
            lambda x: jax.numpy.ones(()) * x,
            lambda x: -x < 0,
            jax.numpy.asarray,
            jax.numpy.zeros_like,
            lambda x: x[..., None],
        ):
            np.testing.assert_array_equal(compute(handle), compute(array))
        if array.ndim:
            assert len(handle) == len(array)
            np.testing.assert_array_equal(list(handle), list(array))
        assert handle.tolist() == array.tolist()
        for copied in (copy.deepcopy(handle), pickle.loads(pickle.dumps(handle))):
            assert isinstance(copied, jax.Array)
            np.testing.assert_array_equal(copied, array)
        mine = jax.numpy.asarray(array)
        for compute in (
            np.mean,
            lambda x: x.sum(),
            lambda x: x.mean(-1, keepdims=True) if x.ndim else x.max(),
            lambda x: x.at[...].multiply(2),
            lambda x: x.astype(jax.numpy.bfloat16) * 2.5,
            lambda x: x.ravel()[0] / 3,
            lambda x: jax.numpy.where(x > 0, x, 0),
            lambda x: jax.jit(lambda y: y + 1)(x),
        ):
            assert_same(compute(handle), compute(mine))
        with pytest.raises(AttributeError, match="has no attribute devices"):
            handle.devices()
    _, metrics = step(state, case.batch, case.rng)
    loss, total = metrics["loss"], 0.0
    total += loss
    assert total == float(loss)
    assert loss <= total
    assert str(loss) == str(float(loss))
    halved = loss
    halved /= 2
    assert halved == float(loss) / 2
    with pytest.raises(TypeError, match="is immutable, it cannot be the output of"):
        np.add(1, 1, out=loss)
    assert np.divmod(loss, 2) == np.divmod(np.asarray(loss), 2)
    assert f"{loss:.3f}" == f"{float(loss):.3f}"


def test_arrays_that_nobody_holds_are_dropped(running: Any) -> None:
    step, case, state = running
    executable = step.compile(*case.args).executable

    def kept() -> int:
        session, calls = executable.session, dict.fromkeys(executable.processes, ("__len__",))
        return sum(session.run(session.steps.ask, "store", calls).values())

    counts = []
    for _ in range(6):
        state, _ = step(state, case.batch, case.rng)
        counts.append(kept())
    assert len(set(counts[2:])) == 1


def test_the_first_checkpoint_has_time_for_imports(
    fresh: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, case, state = fresh
    fleet = step.compile(*case.args).executable.session._supervisor.fleet
    deadlines: list[float | None] = []

    def collect(refs: Any, deadline_s: float | None = None) -> Any:
        deadlines.append(deadline_s)
        return type(fleet).collect(fleet, refs, deadline_s)

    monkeypatch.setattr(fleet, "collect", collect)
    for name in ("first", "second"):
        save_checkpoint(tmp_path / name, state)
    cluster = RayCluster()
    more = cluster.deadline_s + cluster.compile_deadline_s
    # Each time the beginning, and the writing behind it, which no step waits for.
    assert deadlines == [more, None, cluster.deadline_s, None]


def test_later_calls_say_what_went_wrong(fresh: Any) -> None:
    step, case, state = fresh
    os.kill(pid_of(step, case, 1), signal.SIGKILL)
    with pytest.raises(ClusterError, match=r"mesh 1 host 0 of step died, while in '.+'") as caught:
        loss_after(step, case, state)
    assert (caught.value.mesh, caught.value.host) == (1, 0)
    assert caught.value.instruction
    with pytest.raises(ClusterError, match="were ended: mesh 1 host 0 of step died"):
        step(case.state, case.batch, case.rng)


@pytest.mark.parametrize("cluster", [None, RayCluster()], ids=["in-process", "ray"])
def test_a_count_of_steps_changes_no_signature(cluster: Any, tmp_path: Path) -> None:
    """What flax's TrainState begins with, ``step=0``, has a weak type in every later state."""
    case = make_case(Pipeline("mlp", 4, TWO))

    def counted(state: Any, batch: Any, rng: jax.Array) -> Any:
        inner, metrics = case.step(state["inner"], batch, rng)
        key = jax.random.fold_in(state["key"], state["step"])
        return {"inner": inner, "step": state["step"] + 1, "key": key}, metrics

    step = stablehlo_alpa.parallelize(
        counted,
        method=PipeshardParallel(
            num_micro_batches=2, layers=AutoLayers(num_layers=4), stages=TWO, schedule="1f1b"
        ),
        cluster=cluster,
        donate_argnums=0,
    )

    def begin() -> Any:
        # What is donated must not be the state that is made again below.
        return {"inner": jax.device_get(case.state), "step": 0, "key": jax.random.key(7)}

    state = begin()
    compiled = step.compile(state, case.batch, case.rng)
    for _ in range(3):
        state, _ = step(state, case.batch, case.rng)
        assert step.compile(state, case.batch, case.rng) is compiled
        assert state["step"].weak_type
    save_checkpoint(tmp_path / "saved", state)
    for found in (
        step.restore_state(tmp_path / "saved", begin(), batch=(case.batch, case.rng)),
        step.create_state(begin, batch=(case.batch, case.rng)),
    ):
        assert step.compile(found, case.batch, case.rng) is compiled
        after, _ = step(found, case.batch, case.rng)
        assert int(after["step"]) in (1, 4)
        key = jax.random.key(7)
        for number in range(int(after["step"])):
            key = jax.random.fold_in(key, number)
        assert jax.random.key_data(jax.device_get(after["key"])).tolist() == (
            jax.random.key_data(key).tolist()
        )
    compiled.close()


@pytest.mark.parametrize(
    ("how", "has_snapshot"),
    [
        pytest.param(signal.SIGKILL, True, id="killed"),
        pytest.param(signal.SIGSTOP, False, id="stopped", marks=pytest.mark.matrix),
    ],
)
def test_a_restart_loses_nothing(how: Any, has_snapshot: bool, tmp_path: Path) -> None:
    pipeline = Pipeline("mlp", 4, TWO)
    case = make_case(pipeline)
    cluster = RayCluster(
        deadline_s=6.0,
        on_failure="restart",
        snapshot_folder=str(tmp_path),
        snapshot_steps=3 if has_snapshot else 100,
    )
    step, undisturbed = parallel_step(case, pipeline, cluster), parallel_step(case, pipeline)
    state = step.create_state(lambda: case.state, batch=(case.batch, case.rng))
    expected_state = case.state
    executable = step.compile(*case.args).executable
    losses, expected = [], []
    with no_unhandled_errors():
        for number in range(12):
            if number in (6, 9):
                victim = pid_of(step, case, number % 2)
                os.kill(victim, how)
            rng = jax.random.fold_in(case.rng, number)
            state, metrics = step(state, case.batch, rng)
            expected_state, expected_metrics = undisturbed(expected_state, case.batch, rng)
            losses.append(metrics["loss"])
            expected.append(expected_metrics["loss"])
    for found, wanted in zip(losses, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))
    for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(expected_state), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    journal = executable.session._supervisor.journal
    until = time.monotonic() + 60
    while journal.is_writing and time.monotonic() < until:
        journal.poll()
        time.sleep(0.1)
    assert (journal.snapshot is not None) == has_snapshot
    # What a snapshot holds is not repeated any more.
    assert any(call.what == "create" for call in journal.calls) != has_snapshot
    step.compile(*case.args).close()
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_of_the_users_is_left_alone() -> None:
    import ray

    stablehlo_alpa.shutdown()
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
    try:

        @ray.remote(num_cpus=0)
        class Counter:
            def __init__(self) -> None:
                self.count = 0

            def add(self) -> int:
                self.count += 1
                return self.count

        made: Any = Counter
        counter = made.remote()
        pipeline = Pipeline("mlp", 2, TWO)
        case = make_case(pipeline)
        step = parallel_step(case, pipeline, RayCluster())
        _, metrics = step(case.state, case.batch, case.rng)
        assert float(metrics["loss"]) > 0
        assert ray.get(counter.add.remote()) == 1
        started = actors_below(os.getpid())
        assert len(started) == 2
        stablehlo_alpa.shutdown()
        assert ray.is_initialized()
        assert ray.get(counter.add.remote()) == 2
        wait_until_gone(started)
    finally:
        ray.shutdown()


@pytest.mark.parametrize(
    ("platform", "given", "expected"),
    [
        ("cpu", {}, f"--xla_of_the_driver=1 {COUNT}=4"),
        ("gpu", {}, "--xla_of_the_driver=1"),
        ("cpu", {"XLA_FLAGS": "--xla_given=2"}, f"--xla_given=2 {COUNT}=4"),
        ("gpu", {"XLA_FLAGS": ""}, ""),
    ],
)
def test_processes_compile_as_they_are_told(
    platform: str, given: Any, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from alpa_runtime.ray.actor import environment
    from alpa_runtime.ray.cluster import Hosts

    monkeypatch.setenv("XLA_FLAGS", f"{COUNT}=8 --xla_of_the_driver=1")
    hosts = Hosts(num_hosts=1, devices_per_host=4, platform=platform)
    assert environment(hosts, 4, given)["XLA_FLAGS"] == expected


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RayCluster(num_hosts=0), "num_hosts must be >= 1, got 0"),
        (
            lambda: RayCluster(transport="mail"),
            "transport must be one of auto, tcp, jax, nccl, got 'mail'",
        ),
        (lambda: RayCluster(on_failure="restart"), "needs snapshot_folder"),
        (lambda: RayCluster(platform="tpu"), "platform must be cpu or gpu, got 'tpu'"),
        (lambda: RayCluster(deadline_s=0), "deadline_s must be > 0 seconds, got 0"),
        (
            lambda: RayCluster(runtime_env={"env_vars": {"PJRT_NPROC": "8"}}),
            "runtime_env sets PJRT_NPROC, by which processes are given their devices",
        ),
        (
            lambda: RayCluster(runtime_env={"env_vars": {"XLA_FLAGS": f"{COUNT}=8"}}),
            f"runtime_env sets {COUNT}, by which processes are given their devices",
        ),
    ],
)
def test_wrong_options_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_cluster_has_its_own_devices() -> None:
    with pytest.raises(MeshError, match="pass one of both"):
        stablehlo_alpa.parallelize(
            lambda x: x,
            method=PipeshardParallel(),
            cluster=RayCluster(),
            devices=jax.devices(),
        )


def test_a_trace_is_of_all_processes(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    case = make_case(QUICK[0])
    method = PipeshardParallel(
        num_micro_batches=4,
        layers=AutoLayers(num_layers=4),
        stages=TWO,
        schedule="1f1b",
        runtime=RuntimeOptions(trace=True, trace_path=str(path)),
    )
    step = stablehlo_alpa.parallelize(case.step, method=method, cluster=RayCluster())
    step(case.state, case.batch, case.rng)
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
    plan = step.plan(*case.args)
    for mesh in (0, 1):
        found = [e["name"] for e in events if e["tid"] == mesh]
        assert found == [
            one.label for one in plan.runtime.instructions[mesh] if isinstance(one, Run)
        ]
    # By one clock: the first stage begins, and what it sends is used behind that.
    first = {e["tid"]: e["ts"] for e in reversed(events) if "forward 0" in e["name"]}
    assert first[0] < first[1]
    step.compile(*case.args).close()
