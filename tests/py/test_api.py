"""``parallelize``: one compilation per signature, methods, state, errors."""

import dataclasses
import functools
import re
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

pytest.importorskip("stablehlo_alpa._core")

import stablehlo_alpa as sa

P = PartitionSpec
WIDTH = 16


class State(NamedTuple):
    """Parameters and momentum."""

    params: Any
    moments: Any
    step: Any


def init(key):
    keys = jax.random.split(key)
    params = {
        "up": jax.random.normal(keys[0], (WIDTH, 4 * WIDTH)) / WIDTH,
        "down": jax.random.normal(keys[1], (4 * WIDTH, WIDTH)) / WIDTH,
    }
    return State(params, jax.tree.map(jnp.zeros_like, params), 0)


def train_step(state, batch):
    def loss(params):
        hidden = jax.nn.gelu(batch["x"] @ params["up"])
        return jnp.mean((hidden @ params["down"] - batch["y"]) ** 2)

    value, grads = jax.value_and_grad(loss)(state.params)
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, state.moments, grads)
    params = jax.tree.map(lambda p, m: p - 0.1 * m, state.params, moments)
    return State(params, moments, state.step + 1), value


def make_batch(size=16):
    rng = np.random.default_rng(0)
    return {name: rng.normal(size=(size, WIDTH)).astype(np.float32) for name in ("x", "y")}


def assert_close(ours, theirs, tolerance):
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        assert np.linalg.norm(a - b) <= tolerance * max(np.linalg.norm(b), 1e-12)


METHODS = [
    sa.ShardParallel(),
    sa.ShardParallel(mesh_shape=(2, 4)),
    sa.ShardParallel(mesh_shape=(8, 1)),
    sa.ShardParallel(mesh_shape=(1, 8)),
    sa.DataParallel(),
    sa.Zero2Parallel(),
    sa.Zero3Parallel(),
    sa.ManualSharding(in_specs={"state.params['up']": P(None, "y")}, mesh_shape=(2, 4)),
]


@pytest.mark.parametrize("size", [16, 6])
@pytest.mark.parametrize("method", METHODS, ids=lambda m: f"{type(m).__name__}{m.mesh_shape or ''}")
def test_parallel_equals_jit(method, size):
    batch = make_batch(size)
    step = sa.parallelize(train_step, method=method, donate_argnums=0)
    reference = jax.jit(train_step)
    theirs = init(jax.random.key(0))
    ours = step.create_state(init, jax.random.key(0), batch=(batch,))
    for _ in range(3):
        ours, loss = step(ours, batch)
        theirs, expected = reference(theirs, batch)
        assert_close(loss, expected, 1e-5)
    assert_close(ours, theirs, 1e-4)


def test_one_compilation_per_signature():
    step = sa.parallelize(train_step)
    state = init(jax.random.key(0))
    for size in (16, 8, 16, 8):
        state, _ = step(state, make_batch(size))
    assert step.compile(state, make_batch(16)) is step.compile(state, make_batch(16))
    assert len(step._prepared) == 2


def test_static_values_are_part_of_the_signature():
    @sa.parallelize(static_argnums=1)
    def scale(x, factor):
        return x * factor

    x = np.ones((8, 8), np.float32)
    np.testing.assert_array_equal(scale(x, 2), 2 * x)
    np.testing.assert_array_equal(scale(x, 3), 3 * x)
    with pytest.raises(sa.TraceError, match="hashable"):
        scale(x, [1])


def test_keyword_arguments_and_python_scalars():
    @sa.parallelize
    def scale(x, *, factor):
        return x * factor

    x = np.ones((8, 8), np.float32)
    for factor in (2.0, np.float32(3), 4):
        np.testing.assert_array_equal(scale(x, factor=factor), x * np.float32(factor))


def test_state_is_never_whole_on_one_device():
    step = sa.parallelize(train_step, method=sa.Zero3Parallel(), donate_argnums=0)
    batch = make_batch()
    state = step.create_state(init, jax.random.key(0), batch=(batch,))
    again = step.create_state(init, jax.random.key(0))
    for array in jax.tree.leaves(state.params):
        assert array.addressable_shards[0].data.size == array.size // 8
    assert_close(state, init(jax.random.key(0)), 1e-6)
    assert_close(again, state, 0)


def test_state_needs_a_plan_or_a_batch():
    step = sa.parallelize(train_step)
    with pytest.raises(sa.TraceError, match="pass batch="):
        step.create_state(init, jax.random.key(0))


def test_results_keep_the_shardings_of_the_plan():
    step = sa.parallelize(train_step, method=sa.DataParallel())
    batch = make_batch()
    state = step.create_state(init, jax.random.key(0), batch=(batch,))
    plan = step.plan(state, batch)
    new, _ = step(state, batch)
    (specs, _), _ = plan.input_shardings
    for array, spec in zip(jax.tree.leaves(new), jax.tree.leaves(specs), strict=True):
        assert array.sharding.is_equivalent_to(
            NamedSharding(step.compile(state, batch).mesh, spec), array.ndim
        )
    batch_specs = plan.input_shardings[0][1]
    assert batch_specs == {"x": P("x"), "y": P("x")}


def test_donated_state_is_taken():
    step = sa.parallelize(train_step, donate_argnums=0)
    batch = make_batch()
    state = step.create_state(init, jax.random.key(0), batch=(batch,))
    step(state, batch)
    assert all(array.is_deleted() for array in jax.tree.leaves(state.params))
    with pytest.raises(ValueError, match=r"state\..* was deleted"):
        step(state, batch)


def test_follow_parallel_takes_the_shardings_of_its_inputs():
    step = sa.parallelize(train_step, method=sa.Zero3Parallel())
    batch = make_batch()
    state = step.create_state(init, jax.random.key(0), batch=(batch,))

    @sa.parallelize(method=sa.FollowParallel())
    def evaluate(params, batch):
        return jnp.mean((jax.nn.gelu(batch["x"] @ params["up"]) @ params["down"]) ** 2)

    plan = evaluate.plan(state.params, batch)
    for array, spec in zip(
        jax.tree.leaves(state.params), jax.tree.leaves(plan.input_shardings[0][0]), strict=True
    ):
        assert array.sharding.is_equivalent_to(NamedSharding(array.sharding.mesh, spec), array.ndim)
    expected = jax.jit(evaluate.__wrapped__)(jax.device_get(state.params), batch)
    assert_close(evaluate(state.params, batch), expected, 1e-5)
    with pytest.raises(sa.ShardingError, match="has a NamedSharding"):
        evaluate.plan(jax.device_get(state.params), batch)


TRANSFORMS: dict[str, Any] = {
    "grad": jax.grad,
    "vmap": jax.vmap,
    "jit of grad": lambda fun: jax.jit(jax.grad(fun)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("is_planned", [False, True])
def test_transformations_of_what_is_planned_are_refused(name, is_planned):
    step = sa.parallelize(lambda x: jnp.sum(x**2))
    x = jnp.ones((8, 8))
    if is_planned:
        step(x[0] if name == "vmap" else x)
    with pytest.raises(sa.TraceError, match=r"inside of jax\.grad, .*partition"):
        TRANSFORMS[name](step)(x)


@pytest.mark.parametrize(
    "outer",
    [
        sa.ShardParallel(),
        sa.ShardParallel(mesh_shape=(2, 4)),
        sa.ShardParallel(num_micro_batches=2),
        sa.PipeshardParallel(num_micro_batches=2, stages=sa.UniformStages(2)),
    ],
)
@pytest.mark.parametrize(
    "inner", [sa.ShardParallel(mesh_shape=(8,)), sa.PipeshardParallel(stages=sa.UniformStages(2))]
)
def test_what_is_parallelised_inside_of_a_step_is_a_part_of_it(outer, inner):
    def layer(w, x, power=1):
        return jnp.tanh(x @ w) ** power

    def step(layer, w, x):
        def loss(w):
            rows = jax.vmap(lambda row: layer(w, row))(jax.jit(layer)(w, x))
            return jnp.mean(layer(w, rows, power=2))

        return sa.value_and_grad(loss)(w)

    w, x = np.eye(8, dtype=np.float32) + 0.1, make_batch()["x"][:, :8]
    options: Any = {"static_argnames": "power", "donate_argnums": 0}
    part = sa.parallelize(layer, method=inner, **options)
    # A trace of its use elsewhere is not taken for the one in the step.
    alone = sa.parallelize(layer, method=sa.DataParallel(), **options)
    assert_close(jax.jit(alone)(w, x), layer(w, x), 1e-5)
    for one in (part, alone):
        whole = sa.parallelize(functools.partial(step, one), method=outer)
        assert_close(whole(w, x), jax.jit(functools.partial(step, layer))(w, x), 1e-5)


def test_a_plan_is_exported_with_the_function():
    step = sa.parallelize(lambda w, x: jnp.tanh(x @ w), method=sa.DataParallel())
    w, x = np.eye(8, dtype=np.float32), make_batch()["x"][:, :8]
    exported = jax.export.export(jax.jit(step))(w, x)
    assert exported.nr_devices == 8
    whole = NamedSharding(Mesh(np.array(jax.devices()), "d"), P())
    found = jax.jit(exported.call)(*jax.device_put((w, x), whole))
    assert_close(found, np.tanh(x @ w), 1e-5)


def test_arguments_that_are_no_arrays_are_refused():
    step = sa.parallelize(lambda x: x + 1)
    for _ in range(2):
        with pytest.raises(
            sa.TraceError, match="argument x of <lambda> is no array but of type str"
        ):
            step("text")
        step(jnp.ones(8))


def test_plans_for_devices_that_do_not_exist():
    method = sa.ShardParallel(mesh_shape=(8, 8), device="h100-80gb")
    step = sa.parallelize(train_step, method=method)
    shapes = jax.eval_shape(init, jax.random.key(0))
    plan = step.plan(shapes, {k: jax.ShapeDtypeStruct((64, WIDTH), "f4") for k in "xy"})
    assert plan.mesh_shape == (8, 8)
    assert "h100" in str(plan)
    with pytest.raises(sa.MeshError, match="64 devices, 8 are given"):
        step(init(jax.random.key(0)), make_batch(64))


def test_plan_reads_like_a_table():
    plan = sa.parallelize(train_step, method=sa.DataParallel()).plan(
        init(jax.random.key(0)), make_batch()
    )
    text = str(plan)
    for word in ("input", "shape", "sharding", "module", "seconds", "memory", "per device"):
        assert word in text
    for word in ("operator", "kind", "sharding", "collectives", "seconds", "memory"):
        assert word in str(plan.table("operators"))
    # Gradients are summed over the batch, by an all-reduce or, before a split update, a
    # reduce-scatter.
    sums = [row for row in plan.communication() if row.kind in ("all_reduce", "reduce_scatter")]
    assert sums
    assert all(row.axes == ("x",) for row in sums)
    assert all(f"stablehlo.{row.kind}" in plan.module_text("local") for row in sums)
    name = plan.stages[0].priced.graph.node_name[0]
    assert plan.explain(name).name == name
    with pytest.raises(sa.ShardingError, match="steps are traced, merged, planned, local"):
        plan.module_text("nonsense")


def test_diff_names_what_changed_and_adds_up():
    args = (init(jax.random.key(0)), make_batch())
    devices = jax.devices()[:8]
    one, two = (
        sa.parallelize(train_step, method=sa.ShardParallel(mesh_shape=shape), devices=devices).plan(
            *args
        )
        for shape in ((8, 1), (2, 4))
    )
    assert one.diff(one).changes == ()
    difference = one.diff(two)
    assert difference.mesh_shapes == (((8, 1),), ((2, 4),))
    # The operators' seconds are the plans' seconds.
    assert not difference.only_first
    assert not difference.only_second
    total = sum(change.delta_s for change in difference.changes)
    assert total == pytest.approx(two.step_time_s - one.step_time_s, rel=1e-9, abs=1e-15)
    assert difference.changes[0].name in str(difference)
    assert "8x1" in str(difference)


@pytest.mark.slow
def test_a_binding_budget_has_a_price():
    args = (init(jax.random.key(0)), make_batch(64))
    free = sa.parallelize(train_step, method=sa.ShardParallel(mesh_shape=(8,))).plan(*args)
    assert free.memory_price_s_per_gib == 0
    budget = 0.9 * free.peak_bytes
    method = sa.ShardParallel(mesh_shape=(8,), memory_budget=budget)
    tight = sa.parallelize(train_step, method=method).plan(*args)
    assert tight.peak_bytes <= budget
    assert tight.step_time_s > free.step_time_s
    assert tight.memory_price_s_per_gib > 0
    assert "one more GiB per device would save" in str(tight)


def test_predicted_collectives_are_those_of_the_local_module():
    plan = sa.parallelize(train_step, method=sa.DataParallel()).plan(
        init(jax.random.key(0)), make_batch()
    )
    kinds = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute")
    text = plan.module_text("local")
    counted = {k: len(re.findall(rf'"?stablehlo\.{k}"?[( ]', text)) for k in kinds}
    predicted = dict.fromkeys(kinds, 0.0)
    for row in plan.communication():
        predicted[row.kind] += row.count
    assert predicted == counted


def test_stages_are_as_in_jax():
    step = sa.parallelize(train_step)
    state, batch = init(jax.random.key(0)), make_batch()
    lowered = step.lower(state, batch)
    assert "func" in lowered.as_text()
    compiled = lowered.compile()
    assert_close(compiled(state, batch)[1], jax.jit(train_step)(state, batch)[1], 1e-5)
    assert "HloModule" in compiled.as_text()
    with pytest.raises(ValueError, match="was compiled for arguments"):
        compiled(state)


def test_devices_choose_the_mesh():
    step = sa.parallelize(train_step, devices=jax.devices()[2:4])
    _, loss = step(init(jax.random.key(0)), make_batch())
    assert loss.devices() == set(jax.devices()[2:4])
    one = sa.parallelize(train_step, devices=jax.devices()[:1])
    assert_close(one(init(jax.random.key(0)), make_batch())[1], loss, 1e-5)


def test_methods_are_frozen_and_checked_when_made():
    with pytest.raises(dataclasses.FrozenInstanceError):
        sa.ShardParallel().mesh_shape = (8,)  # type: ignore[misc]
    with pytest.raises(sa.MeshError, match="sizes >= 1, got"):
        sa.ShardParallel(mesh_shape=(0, 8))
    with pytest.raises(ValueError, match="memory size 'much'"):
        sa.ShardParallel(memory_budget="much")
    with pytest.raises(ValueError, match="time_limit_s must be > 0"):
        sa.ShardParallel(time_limit_s=0)
    with pytest.raises(sa.MeshError, match="no device preset"):
        sa.ShardParallel(device="abacus")
    with pytest.raises(sa.ShardingError, match="must be a PartitionSpec"):
        sa.ManualSharding(in_specs={"state": "x"})
    assert sa.ShardParallel(memory_budget="10GiB").memory_budget == 10 * 2**30


@pytest.mark.parametrize(
    ("method", "error", "message"),
    [
        (sa.ShardParallel(mesh_shape=(3,)), sa.MeshError, "mesh 3 has 3 devices, 8 are given"),
        (sa.ShardParallel(memory_budget=100), sa.InfeasibleError, "100 B per device"),
        (
            sa.ManualSharding(in_specs={1: P("x")}, mesh_shape=(8,)),
            sa.ShardingError,
            r"batch\['x'\]: dimension 0 of size 6 does not divide by 8, the product of axes x=8",
        ),
        (
            sa.ManualSharding(in_specs={"batch": P("z")}, mesh_shape=(2, 4)),
            sa.ShardingError,
            "uses axis 'z', the mesh has",
        ),
        (
            sa.ManualSharding(in_specs={"batsh": P("x")}),
            sa.ShardingError,
            "in_specs names 'batsh', inputs of train_step are",
        ),
        (sa.ManualSharding(in_specs={7: P("x")}), sa.ShardingError, "in_specs names argument 7"),
    ],
)
def test_what_cannot_be_is_said_with_its_values(method, error, message):
    step = sa.parallelize(train_step, method=method)
    with pytest.raises(error, match=message):
        step.plan(init(jax.random.key(0)), make_batch(6))


def test_manual_sharding_takes_pytree_prefixes():
    specs = State(P(), {"up": P("x"), "down": None}, None)
    method = sa.ManualSharding(in_specs={0: specs}, mesh_shape=(2, 4))
    plan = sa.parallelize(train_step, method=method).plan(init(jax.random.key(0)), make_batch())
    state = plan.input_shardings[0][0]
    assert state.params == {"up": P(), "down": P()}
    assert state.moments["up"] == P("x")


def test_mesh_with_named_axes():
    method = sa.ManualSharding(in_specs={1: P("data")}, mesh_shape=(2, 4), names=("data", "model"))
    step = sa.parallelize(train_step, method=method)
    state, batch = init(jax.random.key(0)), make_batch()
    assert step.plan(state, batch).mesh.axis_names == ("data", "model")
    assert isinstance(step.compile(state, batch).mesh, Mesh)


def test_bad_decorations_are_refused():
    with pytest.raises(TypeError, match="method must be made by"):
        sa.parallelize(train_step, method="data")  # type: ignore[call-overload]
    with pytest.raises(sa.MeshError, match="devices is empty"):
        sa.parallelize(train_step, devices=[])
    with pytest.raises(sa.TraceError, match="donated and static"):
        sa.parallelize(train_step, donate_argnums=0, static_argnums=(0,))
