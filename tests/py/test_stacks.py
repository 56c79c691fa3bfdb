"""Scans over layers in pipelines: each stage holds its part of the stack, and computes the same."""

from __future__ import annotations

import re
import threading
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import alpa_runtime
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from often import one_in, seldom

pytest.importorskip("stablehlo_alpa._core")

from alpa_runtime import InputError, ProgramError, StackedArray
from alpa_runtime.plan import Send
from comparing import assert_equals_jit, specs
from models import gpt
from scanned import BATCH, WIDTH, Scanned, pipeline

import stablehlo_alpa as sa

ADAM = optax.adamw(1e-2)


def start(model: Scanned, optimiser: optax.GradientTransformation) -> Any:
    params = model.init()
    return params, optimiser.init(params)


def trains(
    model: Scanned,
    method: Any,
    optimiser: optax.GradientTransformation = ADAM,
    tolerance: float = 1e-4,
    **options: Any,
) -> tuple[Any, Any]:
    """Steps of both, each on its own results; the parallel function and its last state."""
    step = model.step(optimiser)
    parallel = sa.parallelize(step, method=method, **({"donate_argnums": 0} | options))
    plain = jax.jit(step)
    ours, theirs = start(model, optimiser), start(model, optimiser)
    for batch in model.batches(3):
        ours, result = parallel(ours, batch)
        theirs, expected = plain(theirs, batch)
        assert_equals_jit(result, expected, tolerance)
    assert_equals_jit(ours, theirs, tolerance)
    return parallel, ours


def bytes_per_device(state: Any) -> Counter[jax.Device]:
    found: Counter[jax.Device] = Counter()
    for leaf in jax.tree.leaves(state):
        for part in leaf.parts if isinstance(leaf, StackedArray) else [leaf]:
            for shard in part.addressable_shards:
                found[shard.device] += shard.data.nbytes
    return found


def sent(plan: Any) -> set[tuple[int, ...]]:
    """Shapes of what one stage sends another."""
    return {
        plan.runtime.value(mesh, one.buffer).shape
        for mesh, instructions in enumerate(plan.runtime.instructions)
        for one in instructions
        if isinstance(one, Send)
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layers", "remat"),
    [
        *((8, True), (4, "attention")),
        *(seldom(*case) for case in ((4, False), (8, False), (4, True), (8, "attention"))),
    ],
)
def test_each_stage_holds_its_part_of_the_stack_and_of_the_optimiser_state(
    layers: int, remat: Any
) -> None:
    model, adam = Scanned(layers=layers, has_ends=False), optax.adam(1e-2)
    method = pipeline(4, stages=sa.UniformStages(4, methods=sa.DataParallel()), remat=remat)
    parallel, state = trains(model, method, adam)
    arrays = [leaf for leaf in jax.tree.leaves(state) if leaf.ndim]
    whole = sum(leaf.nbytes for leaf in jax.tree.leaves(start(model, adam)) if leaf.ndim)
    assert bytes_per_device(arrays) == dict.fromkeys(jax.devices(), whole // 4)
    assert all(isinstance(leaf, jax.Array) for leaf in arrays)
    plan = parallel.plan(state, next(model.batches(1)))
    # Activations and their gradients; the number of the step.
    assert sent(plan) == {(BATCH // 4, WIDTH), ()}
    stacks = [one for one in plan.runtime.inputs if "'stack'" in one.value.name]
    assert len(stacks) == 4 * 3 * 3
    assert all(len(one.placements) == 1 for one in stacks)


MODELS = {
    "means of layers": Scanned(keeps=True),
    "dimension 1": Scanned(dim=1),
    "last layer first": Scanned(is_reversed=True, shares=True),
    "bf16": Scanned(dtype=jnp.bfloat16),
    "policy": Scanned(policy=jax.checkpoint_policies.dots_saveable),
    "unrolled by two": Scanned(unroll=2),
    "six layers on four stages": Scanned(layers=6),
    "one turn each": Scanned(layers=4),
    "loops in a loop": Scanned(groups=4, keeps=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(2, MODELS))
def test_models_train_as_on_one_device(name: str) -> None:
    model = MODELS[name]
    tolerance = 3e-2 if model.dtype == jnp.bfloat16 else 1e-4
    parallel, state = trains(model, pipeline(4), optax.sgd(1e-2, momentum=0.9), tolerance)
    plan = parallel.plan(state, next(model.batches(1)))
    up = [one for one in plan.runtime.inputs if "'up'" in one.value.name]
    assert len(up) >= 8


OPTIMISERS: dict[str, optax.GradientTransformation] = {
    "adamw": ADAM,
    "clipped": optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-2)),
    "adafactor": optax.adafactor(1e-2),
    "lamb": optax.lamb(1e-2),
    "every other step": optax.MultiSteps(optax.sgd(1e-2), 2),
    "if finite": optax.apply_if_finite(optax.adam(1e-2), 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(2, OPTIMISERS, 1))
def test_optimisers_see_the_whole_stack(name: str) -> None:
    model = Scanned(layers=6)
    parallel, state = trains(model, pipeline(2, num_layers=3), OPTIMISERS[name])
    plan = parallel.plan(state, next(model.batches(1)))
    stacks = [one.value for one in plan.runtime.inputs if "'stack'" in one.value.name]
    # Adafactor keeps a number in the place of what it does not need.
    assert all(one.shape == (1,) or re.search(r"\[\d+:\d+\]$", one.name) for one in stacks)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        pipeline(2, num_layers=4, schedule="interleaved"),
        seldom(pipeline(2, schedule="gpipe")),
        pipeline(2, stages=sa.AutoStages()),
        pipeline(2, stages=sa.UniformStages(2, methods=sa.Zero3Parallel())),
        seldom(pipeline(2, layers=sa.FollowModuleLayers())),
    ],
    ids=["interleaved", "gpipe", "searched", "sharded state", "layer by layer"],
)
def test_methods(method: Any) -> None:
    trains(Scanned(layers=4), method)


@pytest.mark.slow
def test_patterns_are_of_the_callers_paths() -> None:
    by_hand = sa.ManualSharding(
        mesh_shape=(4,),
        names=("model",),
        patterns=(
            (r"stack/up$", P(None, None, "model")),
            (r"stack/down$", P(None, "model")),
            (r".*", P()),
        ),
    )
    method = pipeline(2, stages=sa.UniformStages(2, methods=by_hand))
    parallel, state = trains(Scanned(), method)
    plan = parallel.plan(state, next(Scanned().batches(1)))
    for stage, rows in enumerate(("[0:4]", "[4:8]")):
        found = specs(plan, stage)
        assert found[f"state[0]['stack']['up']{rows}"] == P(None, None, "model")
        assert found[f"state[0]['stack']['down']{rows}"] == P(None, "model")
        assert found[f"state[0]['stack']['scale']{rows}"] == P()


def test_names_of_dimensions_are_those_of_each_part() -> None:
    names = {"up": ("layers", "embed", "mlp"), "down": ("layers", "mlp", "embed")}

    def boxed(params: Any) -> Any:
        own = {
            name: nn.LogicallyPartitioned(params["stack"][name], dims)
            for name, dims in names.items()
        }
        return {**params, "stack": {**params["stack"], **own}}

    model = Scanned(layers=4)

    def step(params: Any, batch: Any) -> Any:
        def loss(params: Any) -> jax.Array:
            return model.loss(nn.unbox(params), batch)[0]

        value, gradients = sa.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    by_hand = sa.ManualSharding(
        mesh_shape=(4,), names=("x",), rules=(("mlp", "x"), ("embed", None), ("layers", None))
    )
    method = pipeline(2, stages=sa.UniformStages(2, methods=by_hand))
    parallel, (batch,) = sa.parallelize(step, method=method), model.batches(1)
    params = boxed(model.init())
    assert_equals_jit(parallel(params, batch), jax.jit(step)(params, batch))
    found = specs(parallel.plan(params, batch), 1)
    split = {name: spec for name, spec in found.items() if "'up'" in name or "'down'" in name}
    assert sorted(map(str, split.values())) == [str(P(None, "x")), str(P(None, None, "x"))]


@pytest.mark.slow
def test_unlike_stages_are_handles() -> None:
    model = Scanned(layers=6)
    method = pipeline(2, stages=sa.ManualStages((1, 1), ((1, 2), (1, 6))))
    parallel, state = trains(model, method)
    stack = state[0]["stack"]["up"]
    assert isinstance(stack, StackedArray)
    assert (stack.shape, stack.dtype) == ((6, WIDTH, 2 * WIDTH), np.float32)
    assert "float32[6,32,64] in 2 parts" in repr(stack)
    np.testing.assert_array_equal(jax.device_get(jax.tree.leaves(stack)[0]), stack.fetch())
    (batch,) = model.batches(1)
    found = parallel.compile(state, batch).input_shardings[0][0][0]["stack"]["up"]
    assert found.stack.sizes == stack.stack.sizes


@pytest.mark.matrix
def test_a_flax_model_with_dropout() -> None:
    case = gpt.make(layers=4, is_scanned=True)
    step = sa.parallelize(case.step, method=pipeline(2), donate_argnums=0)
    state = step.create_state(lambda: case.state, batch=case.args[1:])
    expected = sa.parallelize(case.step, method=pipeline(1))(*case.args)
    assert_equals_jit(step(state, *case.args[1:]), expected)


@pytest.mark.slow
def test_state_is_given_away_once() -> None:
    model = Scanned()
    step = sa.parallelize(model.step(ADAM), method=pipeline(4), donate_argnums=0)
    (batch,) = model.batches(1)
    first, _ = step(start(model, ADAM), batch)
    second, _ = step(first, batch)
    with pytest.raises(InputError, match=r"state\[0\]\['in'\] of train_step was deleted"):
        step(first, batch)
    step(second, batch)


@pytest.mark.slow
def test_wrong_shapes_are_named_as_the_caller_knows_them() -> None:
    model = Scanned()
    step = sa.parallelize(model.step(ADAM), method=pipeline(4))
    (batch,) = model.batches(1)
    compiled = step.compile(start(model, ADAM), batch)
    with pytest.raises(InputError, match=r"\['down'\] of train_step is float32\[8, 64, 32\], got"):
        compiled(start(Scanned(layers=6), ADAM), batch)


@pytest.mark.slow
def test_threads() -> None:
    model = Scanned()
    step = sa.parallelize(model.step(ADAM), method=pipeline(2))
    (batch,) = model.batches(1)
    expected = jax.jit(model.step(ADAM))(start(model, ADAM), batch)
    results: list[Any] = []

    def call() -> None:
        results.append(step(start(model, ADAM), batch))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for result in results:
        assert_equals_jit(result, expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("uneven", "num_stages"), [(False, 4), (True, 1), seldom(False, 1), seldom(True, 4)]
)
def test_a_state_comes_back_on_other_stages(uneven: bool, num_stages: int, tmp_path: Path) -> None:
    model = Scanned(layers=6)
    (batch,) = model.batches(1)
    stages = sa.ManualStages((1, 1), ((1, 2), (1, 6))) if uneven else sa.UniformStages(2)
    first = sa.parallelize(model.step(ADAM), method=pipeline(2, stages=stages), donate_argnums=0)
    state, _ = first(start(model, ADAM), batch)
    expected = jax.tree.map(np.array, state)
    sa.save_checkpoint(tmp_path / "state", state)
    other = sa.parallelize(model.step(ADAM), method=pipeline(num_stages, num_layers=6))
    shapes = jax.eval_shape(lambda: start(model, ADAM))
    found = other.restore_state(tmp_path / "state", shapes, batch=(batch,))
    jax.tree.map(np.testing.assert_array_equal, jax.tree.map(np.array, found), expected)
    result = other(found, batch)
    assert_equals_jit(result, jax.jit(model.step(ADAM))(expected, batch))


def with_penalty(model: Scanned) -> Callable[..., Any]:
    """A step whose loss has one term of the parameters alone."""

    def step(state: Any, batch: Any) -> Any:
        def loss(params: Any) -> jax.Array:
            decay = sum(jnp.sum(w**2) for w in jax.tree.leaves(params))
            return model.loss(params, batch)[0] + 0.01 * decay

        value, gradients = sa.value_and_grad(loss)(state)
        return jax.tree.map(lambda p, g: p - 0.1 * g, state, gradients), value

    return step


def with_two_passes(model: Scanned) -> Callable[..., Any]:
    """A step that goes through the stack twice, one pass beside the other."""

    def step(state: Any, batch: Any) -> Any:
        def loss(params: Any) -> jax.Array:
            other = {"x": batch["y"], "y": batch["x"]}
            return model.loss(params, batch)[0] + model.loss(params, other)[0]

        value, gradients = sa.value_and_grad(loss)(state)
        return jax.tree.map(lambda p, g: p - 0.1 * g, state, gradients), value

    return step


@pytest.mark.slow
@pytest.mark.parametrize("make", [with_penalty, with_two_passes])
def test_stacks_that_the_loss_reads_twice(make: Callable[[Scanned], Any]) -> None:
    model = Scanned(layers=4)
    step = make(model)
    (batch,) = model.batches(1)
    parallel = sa.parallelize(step, method=pipeline(2, num_layers=4))
    assert_equals_jit(parallel(model.init(), batch), jax.jit(step)(model.init(), batch))


@pytest.mark.slow
def test_a_call_that_is_refused_leaves_the_state() -> None:
    model = Scanned()
    step = sa.parallelize(model.step(ADAM), method=pipeline(2, num_layers=4), donate_argnums=0)
    (batch,) = model.batches(1)
    state, _ = step(start(model, ADAM), batch)
    compiled = step.compile(state, batch)
    with pytest.raises(InputError, match=r"batch\['y'\] of train_step is float32\[16, 32\], got"):
        compiled(state, {**batch, "y": batch["y"][:3]})
    params, opt_state = state
    twice = params, (opt_state[0]._replace(mu=params), *opt_state[1:])
    with pytest.raises(InputError, match=r"are one array and state\[0\].* is donated"):
        compiled(twice, batch)
    compiled(state, batch)


@pytest.mark.slow
def test_a_saved_plan_takes_whole_stacks(tmp_path: Path) -> None:
    model, path = Scanned(layers=4), tmp_path / "step.plan"
    (batch,) = model.batches(1)
    state = start(model, ADAM)
    sa.parallelize(model.step(ADAM), method=pipeline(2)).plan(state, batch).save(path)
    plan = alpa_runtime.load(path)
    run = alpa_runtime.stacked(alpa_runtime.LocalExecutable(plan, jax.devices()), path)
    results = run(*jax.tree.leaves((state, batch)))
    expected = jax.tree.leaves(jax.jit(model.step(ADAM))(state, batch))
    assert_equals_jit(list(results), expected)
    # A file that says something else of its stacks.
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr(alpa_runtime.STACKS_MEMBER, '{"inputs": [], "outputs": [], "names": []}')
    with pytest.raises(ProgramError, match=r"inputs of stacks.json .* must be each of the plan's"):
        alpa_runtime.stacked(alpa_runtime.LocalExecutable(plan, jax.devices()), path)


@pytest.mark.slow
def test_a_state_that_jax_has_split_along_its_layers() -> None:
    model = Scanned()
    (batch,) = model.batches(1)
    explicit = jax.make_mesh((8,), ("x",))
    state = jax.tree.map(
        lambda a: jax.device_put(a, NamedSharding(explicit, P("x") if a.ndim == 3 else P())),
        start(model, ADAM),
    )
    step = sa.parallelize(model.step(ADAM), method=pipeline(2))
    assert_equals_jit(step(state, batch), jax.jit(model.step(ADAM))(start(model, ADAM), batch))


@pytest.mark.slow
def test_on_a_cluster() -> None:
    pytest.importorskip("ray")
    model = Scanned()
    try:
        _, state = trains(model, pipeline(2), cluster=sa.RayCluster())
        assert isinstance(state[0]["stack"]["up"], StackedArray)
    finally:
        sa.shutdown()
