"""Checkpoints: back in any plan, whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from alpa_runtime import InputError
from alpa_runtime.checkpoint import Saving
from checkpoint_processes import in_processes, process_state, process_step
from models import mlp
from test_models import assert_trees_close
from test_pipeline import TWO

import stablehlo_alpa
from stablehlo_alpa import (
    AutoLayers,
    PipeshardParallel,
    RayCluster,
    ShardParallel,
    save_checkpoint,
)


def pipeline(stages: Any, cluster: Any = None) -> Any:
    case = mlp.make(layers=4)
    method = PipeshardParallel(
        num_micro_batches=2, layers=AutoLayers(num_layers=4), stages=stages, schedule="1f1b"
    )
    return stablehlo_alpa.parallelize(case.step, method=method, cluster=cluster, donate_argnums=0)


def sharded(shape: tuple[int, ...]) -> Any:
    method = ShardParallel(mesh_shape=shape)
    return stablehlo_alpa.parallelize(mlp.make(layers=4).step, method=method, donate_argnums=0)


def after(step: Any, count: int, state: Any) -> Any:
    case = mlp.make(layers=4)
    for number in range(count):
        state, _ = step(state, case.batch, jax.random.fold_in(case.rng, number))
    return state


def restored(step: Any, path: Path) -> Any:
    case = mlp.make(layers=4)
    shapes = jax.eval_shape(lambda: case.state)
    return step.restore_state(path, shapes, batch=(case.batch, case.rng))


def created(step: Any) -> Any:
    case = mlp.make(layers=4)
    return step.create_state(lambda: case.state, batch=(case.batch, case.rng))


@pytest.mark.slow
def test_a_state_comes_back_in_another_plan(tmp_path: Path) -> None:
    first, second = pipeline(TWO), sharded((2, 4))
    state = after(first, 2, created(first))
    expected = jax.device_get(state)
    save_checkpoint(tmp_path / "two", state)
    found = restored(second, tmp_path / "two")
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)
    compiled = second.compile(found, *mlp.make(layers=4).args[1:])
    wanted = compiled.argument_shardings(0)
    for leaf, sharding in zip(jax.tree.leaves(found), wanted, strict=True):
        assert leaf.sharding == sharding
    # Training goes on as if nothing had happened.
    assert_trees_close(after(second, 1, found), after(first, 1, state), 1e-5, "state")


@pytest.mark.slow
def test_steps_go_on_while_files_are_written(tmp_path: Path) -> None:
    step = pipeline(TWO)
    state = after(step, 1, created(step))
    expected = jax.device_get(state)
    saving = save_checkpoint(tmp_path / "saved", state, wait=False)
    # The state is donated: its buffers are overwritten.
    after(step, 3, state)
    saving.wait()
    found = restored(step, tmp_path / "saved")
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b)


def test_keys_numbers_and_old_checkpoints(tmp_path: Path) -> None:
    @stablehlo_alpa.parallelize(method=ShardParallel(mesh_shape=(8,)), donate_argnums=0)
    def step(state: Any) -> Any:
        key, draw = jax.random.split(state["key"])
        return {"key": key, "count": state["count"] + 1, "x": jax.random.normal(draw, (16,))}

    state = {"key": jax.random.key(3), "count": 0, "x": np.zeros(16, "f")}
    path = tmp_path / "checkpoint"
    for _ in range(2):
        state = step(state)
        save_checkpoint(path, state)
    assert [entry.name for entry in tmp_path.iterdir()] == ["checkpoint"]
    found = step.restore_state(path, jax.eval_shape(lambda: state), batch=())
    assert int(found["count"]) == 2
    a, b = step(found), step(state)
    np.testing.assert_array_equal(jax.random.key_data(a["key"]), jax.random.key_data(b["key"]))
    np.testing.assert_array_equal(a["x"], b["x"])


def test_arrays_without_elements_come_back(tmp_path: Path) -> None:
    key = jax.random.key(0)
    x = np.ones((8, 4), np.float32)
    state: dict[str, Any] = {"x": x, "none": np.zeros((0, 3), np.int8)}
    state |= {"keys": jax.random.split(key, 0), "apart": {"none": np.zeros((2, 0), np.float32)}}
    step = stablehlo_alpa.parallelize(lambda s: s | {"x": s["x"] @ s["x"].T @ s["x"]})
    for name, saved in (("all", step(state)), ("nothing", {"keys": step(state)["keys"]})):
        save_checkpoint(tmp_path / name, saved)
    found = step.restore_state(tmp_path / "all", jax.eval_shape(lambda: state))
    same: Any = jax.tree.map(lambda a, b: (a.shape, a.dtype) == (b.shape, b.dtype), found, state)
    assert all(jax.tree.leaves(same))
    np.testing.assert_array_equal(found["x"], 32 * x)


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    step = sharded((8,))
    with pytest.raises(InputError, match=r"is no checkpoint: it has no index.json"):
        restored(step, tmp_path)
    save_checkpoint(tmp_path / "other", {"a": np.ones(3)})
    with pytest.raises(InputError, match=r"lacks .* it has 1 that the state lacks"):
        restored(step, tmp_path / "other")
    case = mlp.make(layers=4, hidden=32)
    save_checkpoint(tmp_path / "small", case.state)
    with pytest.raises(
        InputError, match=r"is float32\[32,32\], the state has float32\[32,64\]|is "
    ):
        restored(step, tmp_path / "small")
    index = tmp_path / "other" / "index.json"
    index.write_text(json.dumps({"version": 99, "leaves": []}))
    with pytest.raises(InputError, match="of version 99, not 1"):
        restored(step, tmp_path / "other")
    index.write_text("{")
    with pytest.raises(InputError, match="is no checkpoint, or is damaged"):
        restored(step, tmp_path / "other")
    leaf: Any = {"key": "", "shape": [], "dtype": "f", "key_impl": None, "part": "../x", "name": ""}
    index.write_text(json.dumps({"version": 1, "leaves": [leaf]}))
    with pytest.raises(InputError, match=r"names a part outside of it: '\.\./x'"):
        restored(step, tmp_path / "other")


def test_a_checkpoint_that_fails_is_not_there(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "good", {"a": np.ones(3)})

    def begin(folder: Path) -> Any:
        (folder / "half").write_text("half")

        def finish() -> None:
            raise OSError("disk full")

        return finish

    saving = Saving(tmp_path / "good", begin)
    with pytest.raises(OSError, match="disk full"):
        saving.wait()
    # The one before it is still whole.
    assert [entry.name for entry in tmp_path.iterdir()] == ["good"]
    assert (tmp_path / "good" / "index.json").exists()


@pytest.mark.slow
def test_processes_save_one_checkpoint_and_restore_it(tmp_path: Path) -> None:
    saved = in_processes(tmp_path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["earlier", "local", "saved"]
    step = stablehlo_alpa.parallelize(process_step, method=ShardParallel(mesh_shape=(8,)))
    found = step.restore_state(
        tmp_path / "saved", jax.eval_shape(process_state), batch=(np.ones((8, 16), "f"),)
    )
    np.testing.assert_array_equal(found["w"], saved["w"])
    np.testing.assert_array_equal(jax.random.key_data(found["key"]), saved["key"])
    assert int(found["count"]) == int(saved["count"]) == 2


@pytest.mark.slow
def test_actors_save_and_restore(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    try:
        first = pipeline(TWO, RayCluster())
        state = after(first, 2, created(first))
        expected = jax.device_get(state)
        saving = save_checkpoint(tmp_path / "actors", state, wait=False)
        on = after(first, 1, state)
        saving.wait()
        parts = {entry.name for entry in (tmp_path / "actors").iterdir()}
        assert parts == {"index.json", "part_0_mesh_0", "part_0_mesh_1"}
        # In this process, and on meshes of several processes.
        for step in (
            sharded((8,)),
            pipeline(TWO, RayCluster(num_hosts=4, devices_per_host=2)),
        ):
            found = restored(step, tmp_path / "actors")
            for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
                np.testing.assert_array_equal(np.asarray(a), b, strict=True)
            assert_trees_close(after(step, 1, found), jax.device_get(on), 1e-4, "state")
    finally:
        stablehlo_alpa.shutdown()
