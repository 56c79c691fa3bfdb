"""Methods decide on every leaf: what cannot be split is whole, with a remark; results are jax's."""

from __future__ import annotations

import math
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jax.sharding import NamedSharding, PartitionSpec

pytest.importorskip("stablehlo_alpa._core")

from comparing import assert_equals_jit

import stablehlo_alpa as sa
from stablehlo_alpa.api.batches import batch_inputs
from stablehlo_alpa.cluster import ClusterSpec, preset_for
from stablehlo_alpa.compiler import Module, enumerate_strategies
from stablehlo_alpa.frontend import trace
from stablehlo_alpa.planning import Boundary, Exactly, Prescription, SplitBatch, masks

P = PartitionSpec
METHODS = (sa.ShardParallel, sa.DataParallel, sa.Zero2Parallel, sa.Zero3Parallel)


def check(step: Any, args: Any, method: Any, **options: Any) -> Any:
    """Runs a step under a method and under ``jax.jit``; returns the plan."""
    parallel = sa.parallelize(step, method=method, **options)
    plan = parallel.plan(*args)
    assert_equals_jit(parallel(*args), jax.jit(step)(*args), 0.05 if has_bf16(args) else 1e-4)
    return plan


def has_bf16(args: Any) -> bool:
    return any(getattr(leaf, "dtype", None) == jnp.bfloat16 for leaf in jax.tree.leaves(args))


def parts(plan: Any) -> dict[str, int]:
    """In how many parts each input is split."""
    sizes = dict(plan.mesh.axes)
    return {
        value.name: math.prod(sizes[axis] for axes in value.axes for axis in axes)
        for value in plan.runtime.programs[0].inputs
    }


def classifier(table_rows: int = 10, hidden: int = 12, classes: int = 10) -> Any:
    """A step with labels, a frozen table and a bias of 10; and its parameters."""
    keys = jax.random.split(jax.random.key(0), 3)
    params = {
        "up": jax.random.normal(keys[0], (16, hidden)),
        "bias": jnp.zeros(classes),
        "down": jax.random.normal(keys[1], (hidden, classes)),
    }
    table = jax.random.normal(keys[2], (table_rows, hidden))

    def loss(params: Any, x: Any, y: Any, table: Any) -> Any:
        logits = jnp.tanh(x @ params["up"] + table[y]) @ params["down"] + params["bias"]
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(y.shape[0]), y])

    def step(params: Any, x: Any, y: Any, table: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, y, table)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    return step, params, table


def batch_of(size: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(size, 16)).astype("f"), rng.integers(0, 10, size)


# What does not divide.


@pytest.mark.parametrize("size", [16, 20])
@pytest.mark.parametrize("method", METHODS[1:])
def test_labels_tables_and_odd_batches_are_not_refused(method: Any, size: int) -> None:
    step, params, table = classifier()
    x, y = batch_of(size)
    plan = check(step, (params, x, y, table), method())
    split = parts(plan)
    assert split["x"] == (8 if size == 16 else 1)
    assert split["y"] == split["x"]
    assert split["table"] == split["params['bias']"] == 1
    remarks = "\n".join(plan.remarks)
    if size == 20:
        assert (
            "x [20, 16], y [20] are whole on every device: dimension 0 of size 20 does not divide "
            "by 8; 24 would, and mesh_shape=(4, 2) splits it in 4"
        ) in remarks
    if method is sa.Zero3Parallel:
        assert split["params['up']"] == 8
        assert "params['bias'] [10], params['down'] [12, 10]" in remarks
        assert "no dimension divides by an axis of mesh x=8; pad one to a multiple" in remarks
    else:
        assert split["params['up']"] == 1


def test_axes_that_divide_split() -> None:
    step, params, table = classifier()
    args = (params, *batch_of(20), table)
    plan = sa.parallelize(step, method=sa.DataParallel(mesh_shape=(2, 4))).plan(*args)
    assert plan.runtime.programs[0].inputs[3].name == "x"
    assert plan.runtime.programs[0].inputs[3].spec == P("y")
    assert (
        "x [20, 16], y [20] are split on y alone: dimension 0 of size 20 does not divide by 8; "
        "24 would"
    ) in plan.remarks


def test_a_batch_is_told_from_what_is_frozen() -> None:
    def rest(fun: Any, *args: Any, **options: Any) -> tuple[set[str], set[str]]:
        program = trace(fun, args, {}, **options)
        batch, others = batch_inputs(program)
        names = [value.name for value in program.inputs]
        return {names[i] for i in batch}, {names[i] for i in others}

    x, y, w = jnp.ones((8, 4)), jnp.zeros(8, int), {"a": jnp.ones((4, 16)), "b": jnp.ones(16)}
    table = jnp.ones((64, 4))
    # Parameters that are returned by nobody have many sizes.
    assert rest(lambda w, x: x @ w["a"] + w["b"], w, x) == ({"x"}, {"w['a']", "w['b']"})
    # Two of one size, or one of integers, against a table.
    assert rest(lambda t, x, y: t[y] * x, table, x, y)[0] == {"x", "y"}
    assert rest(lambda t, y: t[y], table, y) == ({"y"}, {"t"})
    # A result per example.
    assert rest(lambda t, x: x @ t.T, table, x)[0] == {"x"}
    # Nothing decides.
    assert rest(lambda t, x: (x @ t.T).sum(), table, x) == ({"t", "x"}, set())
    # What the user says counts.
    assert rest(lambda t, x: x @ t.T, table, x, batch_argnums=(0,)) == ({"t"}, set())
    # A key for every example.
    keys = jax.random.split(jax.random.key(0), 8)
    assert rest(lambda k, y: jax.vmap(jax.random.bits)(k) + y, keys, y)[0] == {"k", "y"}


def _product_and_sum(a: Any) -> Any:
    return a @ a, a.sum()


def _cumulative_and_sum(a: Any) -> Any:
    return jnp.cumsum(a, 0), a.sum()


@pytest.mark.parametrize("fun", [_product_and_sum, _cumulative_and_sum])
@pytest.mark.parametrize("size", [16, 24])
def test_what_is_split_for_one_result_may_be_added_up_for_another(fun: Any, size: int) -> None:
    a = jnp.arange(size * size, dtype=jnp.float32).reshape(size, size) / size**2
    for method in (sa.DataParallel, sa.Zero3Parallel):
        step = sa.parallelize(fun, method=method(mesh_shape=(8,)), batch_argnums=0)
        assert step.plan(a).runtime.programs[0].inputs[0].spec == P("x")
        for ours, theirs in zip(step(a), jax.jit(fun)(a), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_frozen_parameters_stay_whole_or_are_split_finely() -> None:
    teacher = {"up": jnp.ones((16, 32)), "bias": jnp.ones(32), "down": jnp.ones((32, 8))}

    def evaluate(teacher: Any, x: Any) -> Any:
        return jnp.tanh(x @ teacher["up"] + teacher["bias"]) @ teacher["down"]

    x = batch_of(24)[0]
    whole = parts(check(evaluate, (teacher, x), sa.DataParallel()))
    assert whole == {"teacher['bias']": 1, "teacher['down']": 1, "teacher['up']": 1, "x": 8}
    split = parts(check(evaluate, (teacher, x), sa.Zero3Parallel()))
    assert split["x"] == split["teacher['up']"] == split["teacher['down']"] == 8


# Equal to plain jax.jit.


class Odd(nn.Module):
    """An embedding, a convolution and dense layers, none of a size that divides by 8."""

    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        """Maps int32[batch, length] to [batch, 5]."""
        x = nn.Embed(13, 6)(tokens)
        x = nn.relu(nn.Conv(7, (3,))(x))
        x = nn.LayerNorm()(nn.Dropout(0.3, deterministic=False)(x))
        return nn.Dense(5)(x.mean(axis=1))


@pytest.mark.slow
def test_a_model_of_odd_sizes_equals_jit() -> None:
    size, method = 12, sa.Zero3Parallel(mesh_shape=(2, 4))
    model, optimizer = Odd(), optax.adam(1e-2)
    tokens = np.random.default_rng(0).integers(0, 13, (size, 11))
    key = jax.random.key(1)
    params = model.init({"params": key, "dropout": key}, tokens)

    def step(state: Any, batch: Any, key: Any) -> Any:
        def loss(params: Any) -> Any:
            logits = model.apply(params, batch["tokens"], rngs={"dropout": key})
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean()

        value, grads = jax.value_and_grad(loss)(state[0])
        updates, opt_state = optimizer.update(grads, state[1])
        return (optax.apply_updates(state[0], updates), opt_state), value

    state = (params, optimizer.init(params))
    check(step, (state, {"tokens": tokens, "labels": tokens[:, 0] % 5}, key), method)


@pytest.mark.slow
@settings(
    max_examples=5,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(data=st.data())
def test_any_size_on_any_mesh_equals_jit(data: st.DataObject) -> None:
    """Odd sizes, masks, keys, scalars, empty arrays, per-example results."""
    method = data.draw(st.sampled_from(METHODS[1:]))(
        mesh_shape=data.draw(st.sampled_from([(8,), (2, 4), (4, 2), (2, 2, 2), (1, 8)]))
    )
    size, width, hidden, classes = (data.draw(st.integers(1, 24)) for _ in range(4))
    dtype = data.draw(st.sampled_from(["float32", "float32", "bfloat16"]))
    make_key = data.draw(st.sampled_from([jax.random.key, jax.random.PRNGKey]))
    rng = np.random.default_rng(size)
    params = {
        "up": jnp.asarray(rng.normal(size=(width, hidden)), dtype),
        "down": jnp.asarray(rng.normal(size=(hidden, classes)), dtype),
        "bias": jnp.zeros(classes, dtype),
        "empty": jnp.zeros((0, 3), dtype),
        "scale": jnp.float32(1.5),
    }
    batch = {
        "x": rng.normal(size=(size, width)).astype("f"),
        "label": rng.integers(0, classes, size),
        "mask": rng.integers(0, 2, size).astype(bool),
    }

    def loss(params: Any, batch: Any, key: Any) -> Any:
        hidden = jnp.tanh(batch["x"].astype(dtype) @ params["up"])
        hidden = hidden * jax.random.bernoulli(key, 0.7, hidden.shape)
        logits = (hidden @ params["down"] + params["bias"]).astype("f") * params["scale"]
        each = -jax.nn.log_softmax(logits)[jnp.arange(size), batch["label"]]
        each = jnp.where(batch["mask"], each, 0)
        return each.mean() + params["empty"].astype("f").sum(), each

    def step(params: Any, batch: Any, key: Any) -> Any:
        found, grads = jax.value_and_grad(loss, has_aux=True)(params, batch, key)
        return jax.tree.map(lambda p, g: (p - 0.1 * g).astype(p.dtype), params, grads), found

    check(step, (params, batch, make_key(3)), method)


# What a user pins and what inputs bring.


def test_pins_of_a_user_are_kept_or_refused_with_the_mend() -> None:
    step, params, table = classifier()
    args = (params, *batch_of(16), table)

    def plan(name: str, spec: Any) -> Any:
        method = sa.ManualSharding(in_specs={name: spec}, mesh_shape=(2, 4))
        return sa.parallelize(step, method=method).plan(*args)

    assert parts(plan("x", P(("x", "y"))))["x"] == 8
    free = PartitionSpec.UNCONSTRAINED
    assert parts(plan("x", P("x", free)))["x"] in (2, 8)
    assert parts(plan("y", P("x")))["y"] == 2
    with pytest.raises(sa.ShardingError, match=r"does not divide by 4, .*; pad it"):
        plan("params['bias']", P("y"))
    twice = sa.ManualSharding(in_specs={1: P("x"), "x": P("y")}, mesh_shape=(2, 4))
    with pytest.raises(sa.ShardingError, match=r"pins x twice, to .*'x'.* and to .*'y'"):
        sa.parallelize(step, method=twice).plan(*args)


def test_inputs_that_cannot_be_followed_are_remarked() -> None:
    step, params, table = classifier()
    x, y = batch_of(16)
    mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    x, y = (jax.device_put(leaf, NamedSharding(mesh, P("data"))) for leaf in (x, y))
    plan = check(step, (params, x, y, table), sa.FollowParallel())
    assert parts(plan)["x"] == 8
    assert any("y [16] is whole on every device: no strategy" in one for one in plan.remarks)


# Prescriptions on their own.


def test_a_prescription_holds_for_a_part_of_a_step() -> None:
    """A graph whose first argument the step does not know, and whose second is its input 7."""
    program = trace(lambda a, x: jnp.tanh(a @ x), (jnp.ones((8, 16)), jnp.ones((16, 8))), {})
    module = Module(program.text, "part")
    module.run("alpa-prepare-pipeline")
    merged = module.text()
    mesh = ClusterSpec(preset_for("cpu"), 1, 8).logical_mesh((2, 4))
    graph = enumerate_strategies(merged, mesh, "part")
    boundary = Boundary((None, (7, program.inputs[1])))
    node = int(graph.input_node[1])
    rows = np.asarray(graph.input_specs[1]).reshape(-1, 2)

    found = masks(Prescription({7: SplitBatch(), 0: SplitBatch()}), boundary, graph, mesh)
    assert found.remarks == ()
    assert list(found.nodes) == [node]
    assert (rows[found.nodes[node]] == 0).all()

    exact = masks(Prescription({7: Exactly(P(None, "y"))}), boundary, graph, mesh)
    assert (rows[exact.nodes[node]] == (-1, 1)).all()
    # A method's wish never overrules what is pinned, nor is it an error.
    assert masks(Prescription({0: Exactly(P("x"))}), boundary, graph, mesh).nodes == {}
