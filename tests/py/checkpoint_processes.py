"""Two processes that ``jax.distributed`` joins, which train, save and restore together."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

NUM_PROCESSES, NUM_DEVICES = 2, 2


def process_state() -> Any:
    import jax
    import jax.numpy as jnp

    key = jax.random.key(3)
    return {"w": jax.random.normal(key, (16, 32)), "key": key, "count": jnp.int32(0)}


def process_step(state: Any, x: Any) -> Any:
    import jax
    import jax.numpy as jnp

    key, draw = jax.random.split(state["key"])
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(state["w"])
    noise = jax.random.normal(draw, gradient.shape)
    return {"w": state["w"] - gradient + 0.1 * noise, "key": key, "count": state["count"] + 1}


def on_host(state: Any) -> Any:
    import jax
    from jax.experimental.multihost_utils import process_allgather

    plain = {**state, "key": jax.random.key_data(state["key"])}
    return {name: np.asarray(process_allgather(array, tiled=True)) for name, array in plain.items()}


def found_again(path: Path, step: Any, x: Any) -> Any:
    import jax

    return step.restore_state(path, jax.eval_shape(process_state), batch=(x,))


def train(folder: Path) -> Any:
    """What is saved; asserts that it comes back on another mesh and training goes on."""
    import stablehlo_alpa
    from stablehlo_alpa import ShardParallel, save_checkpoint

    x = np.ones((8, 16), "f")
    meshes = [(2, 2), (4,)]
    first, second = (
        stablehlo_alpa.parallelize(
            process_step, method=ShardParallel(mesh_shape=shape), donate_argnums=0
        )
        for shape in meshes
    )
    state = first.create_state(process_state, batch=(x,))
    # Two are under way at once, and the state goes on while files are written.
    savings = []
    for name in ("earlier", "saved"):
        state = first(state, x)
        saved = on_host(state)
        savings.append(save_checkpoint(folder / name, state, wait=False))
    further = on_host(first(state, x))
    for saving in savings:
        saving.wait()
    save_checkpoint(folder / "earlier", found_again(folder / "earlier", second, x))
    found = found_again(folder / "saved", second, x)
    for name, array in on_host(found).items():
        np.testing.assert_array_equal(array, saved[name])
    for name, array in on_host(second(found, x)).items():
        np.testing.assert_allclose(array, further[name], rtol=1e-5)
    return saved


def save_what_one_process_has(folder: Path) -> None:
    """Arrays of each process alone, numbers, and none at all."""
    import jax

    from stablehlo_alpa import save_checkpoint
    from stablehlo_alpa.api.checkpoint import match_leaves

    local = {"key": jax.random.key(jax.process_index()), "count": 3, "x": np.ones(4, "f")}
    save_checkpoint(folder / "local", local)
    names = ["['count']", "['key']", "['x']"]
    leaves = match_leaves(
        folder / "local", names, [jax.typeof(local[k]) for k in ("count", "key", "x")]
    )
    assert [leaf.key for leaf in leaves] == names


def fail(folder: Path) -> None:
    """The second process cannot write: both say so, and nothing appears."""
    import jax
    from alpa_runtime.checkpoint import Saving

    def finish() -> None:
        if jax.process_index() == 1:
            raise OSError("disk full")

    saving = Saving(folder / "failed", lambda _: finish)
    whose = "" if jax.process_index() == 1 else "process 1 failed to write .*"
    with pytest.raises(OSError, match=f"{whose}disk full"):
        saving.wait()


def disagree() -> None:
    """What one process plans otherwise all refuse to run, instead of waiting for each other."""
    import jax
    import jax.numpy as jnp
    from alpa_runtime import RuntimeMeshError

    import stablehlo_alpa

    mesh_shape = ((2, 2), (4, 1))[jax.process_index()]
    step = stablehlo_alpa.parallelize(
        lambda x, w: jnp.tanh(x @ w), method=stablehlo_alpa.ShardParallel(mesh_shape=mesh_shape)
    )
    x = jnp.ones((64, 64))
    with pytest.raises(RuntimeMeshError, match="process 1 came to another plan than process 0"):
        step(x, x)


def serve(pipe: Connection, number: int, address: str, folder: Path) -> None:
    os.environ["JAX_PLATFORMS"] = "cpu"
    # Behind the suite's own flags, of which the last of a name counts.
    os.environ["XLA_FLAGS"] += f" --xla_force_host_platform_device_count={NUM_DEVICES}"
    os.environ["PJRT_NPROC"] = str(4 * NUM_DEVICES)
    import jax

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(address, NUM_PROCESSES, number)
    try:
        saved = train(folder)
        save_what_one_process_has(folder)
        fail(folder)
        disagree()
        pipe.send((True, saved))
    except BaseException as error:
        pipe.send((False, f"{type(error).__name__}: {error}"))
        raise
    finally:
        jax.distributed.shutdown()


def in_processes(folder: Path, timeout_s: float = 120.0) -> Any:
    """Runs them; returns what they have saved under ``saved``."""
    from alpa_runtime.meeting_point import MeetingPoint

    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(NUM_PROCESSES)]
    meeting = MeetingPoint("127.0.0.1")
    processes = [
        context.Process(target=serve, args=(theirs, number, meeting.address, folder))
        for number, (_, theirs) in enumerate(pipes)
    ]
    try:
        for process in processes:
            process.start()
        answers = []
        for number, (ours, _) in enumerate(pipes):
            if not ours.poll(timeout_s):
                raise TimeoutError(f"process {number} does not answer")
            answers.append(ours.recv())
        for is_good, answer in answers:
            if not is_good:
                raise RuntimeError(answer)
        return answers[0][1]
    finally:
        meeting.close()
        for process in processes:
            process.join(10)
            process.kill()
            process.join()
