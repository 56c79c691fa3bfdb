"""A micro-batch is a shard in time: a pipeline computes the step of the whole batch."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from batch_steps import (
    BATCH,
    INDEX,
    MASK,
    PARAMS,
    ROWS,
    WIDTH,
    check,
    grads,
    hidden,
    pipeline,
    weights,
)
from oracle import assert_same
from test_models import assert_trees_close

import stablehlo_alpa
from stablehlo_alpa import AutoLayers, PipeshardParallel, UniformStages
from stablehlo_alpa.errors import CompileError, InfeasibleError


def test_a_frozen_table_is_kept_whole() -> None:
    table = weights(ROWS, WIDTH, seed=3)
    check(grads(lambda p, i, t: jnp.mean(hidden(p, t[i]) ** 2)), PARAMS, INDEX, table)


def test_a_loss_that_is_a_sum_stays_a_sum() -> None:
    check(grads(lambda p, x: jnp.sum(hidden(p, x) ** 2)), PARAMS, BATCH)


def test_results_per_example_are_joined() -> None:
    def loss(p: Any, x: Any) -> Any:
        out = hidden(p, x)
        return jnp.mean(out**2), (out, out.argmax(-1), out.sum(-1) > 0)

    check(grads(loss, has_aux=True), PARAMS, BATCH)


def test_rows_are_compared_with_their_neighbours() -> None:
    """Pairs of rows, the preferred one first: both are in the same micro-batch."""

    def loss(p: Any, x: Any) -> Any:
        rewards = hidden(p, x).sum(-1)
        margin = rewards[::2] - rewards[1::2]
        return -jnp.mean(jax.nn.log_sigmoid(margin)), margin

    check(grads(loss, has_aux=True), PARAMS, BATCH)


def test_rows_are_looked_up_by_their_numbers() -> None:
    """An index that counts the rows is no index into the batch."""

    def loss(p: Any, x: Any, i: Any) -> Any:
        logits = jax.nn.log_softmax(hidden(p, x))
        rows, best = jnp.arange(len(x)), jax.lax.top_k(logits, 2)[1]
        chosen = logits[np.arange(len(x)), i], logits[rows[:, None], best]
        return -jnp.mean(chosen[0]), (*chosen, logits.at[rows, -i].set(0), logits.T[i, rows])

    check(grads(loss, has_aux=True), PARAMS, BATCH, INDEX)


def test_rows_are_looked_up_by_nothing_but_their_numbers() -> None:
    """With indices that are cut off as well, one to eight of which are outside."""

    def loss(p: Any, x: Any, i: Any) -> Any:
        out, rows = hidden(p, x), jnp.arange(len(x))
        cut = out.at[rows, 4 * i].get(mode="clip")
        norms = jnp.sum(out**2, -1)
        changed = (out.at[rows].multiply(x), norms.at[rows].add(cut), norms[rows])
        return jnp.mean(out[rows] ** 2) + jnp.mean(cut * norms[rows]), changed

    check(grads(loss, has_aux=True), PARAMS, BATCH, INDEX)


@pytest.mark.parametrize("is_reverse", [False, True])
def test_a_scan_keeps_what_was_looked_up(is_reverse: bool) -> None:
    """Its gradient has the indices of each turn from a stack."""

    def loss(p: Any, x: Any) -> Any:
        def layer(x: Any, w: Any) -> Any:
            x = jnp.tanh(x @ w)
            rows, best = jnp.arange(len(x))[:, None], jax.lax.top_k(x, 2)[1]
            some = x[rows, best] * x.at[rows, best + 1].get(mode="clip")
            return x + some.sum(-1, keepdims=True), None

        return jnp.mean(jax.lax.scan(layer, x, jnp.stack(p), reverse=is_reverse)[0] ** 2)

    check(grads(loss), PARAMS, BATCH)


def advantages(rewards: Any, values: Any) -> Any:
    """Of each step of each row (generalised advantage estimation), from the last one on."""

    def one(later: Any, step: Any) -> Any:
        reward, value, following = step
        later = reward + 0.9 * following - value + 0.8 * later
        return later, later

    following = jnp.pad(values[:, 1:], ((0, 0), (0, 1)))
    steps = rewards.T, values.T, following.T
    return jax.lax.scan(one, jnp.zeros(len(rewards)), steps, reverse=True)[1].T


def actor_and_critic(params: Any, x: Any) -> tuple[Any, Any]:
    """Logarithms of probabilities and values of each step."""
    out = jnp.tanh(x.reshape(len(x), 4, 4) @ params[0][:4]) @ params[1]
    return jax.nn.log_softmax(out[..., :3])[..., 0], out[..., 3]


def surrogate(params: Any, x: Any, gains: Any, old: Any) -> Any:
    """The clipped one of proximal policy optimisation, and the error of values."""
    new, values = actor_and_critic(params, x)
    ratio = jnp.exp(new - old)
    clipped = jnp.clip(ratio, 0.8, 1.2)
    error = values - jax.lax.stop_gradient(gains + values)
    return jnp.mean(error**2) - jnp.mean(jnp.minimum(ratio * gains, clipped * gains))


def test_advantages_are_estimated_inside_of_the_step() -> None:
    def step(params: Any, x: Any) -> Any:
        old, values = actor_and_critic(params, x)
        gains = advantages(x[:, :4], values)
        return stablehlo_alpa.value_and_grad(surrogate)(params, x, gains, old)

    check(step, PARAMS, BATCH)


def test_advantages_that_are_normalised_over_the_batch_are_passed_with_it() -> None:
    def prepare(params: Any, x: Any) -> Any:
        old, values = actor_and_critic(params, x)
        gains = advantages(x[:, :4], values)
        return (gains - gains.mean()) / gains.std(), old

    def step(params: Any, x: Any) -> Any:
        return stablehlo_alpa.value_and_grad(surrogate)(params, x, *prepare(params, x))

    with pytest.raises(CompileError, match=r"'jit\(step\)/.*whole batch.*passed with the batch"):
        pipeline(step)(PARAMS, BATCH)
    check(stablehlo_alpa.value_and_grad(surrogate), PARAMS, BATCH, *prepare(PARAMS, BATCH))


def test_counts_are_added() -> None:
    def loss(p: Any, x: Any, i: Any) -> Any:
        out = hidden(p, x)
        return jnp.mean(out**2), {"correct": jnp.sum(out.argmax(-1) == i), "rows": x.shape[0]}

    found = check(grads(loss, has_aux=True), PARAMS, BATCH, INDEX)
    assert found[0][1]["correct"].dtype == jnp.int32


def test_a_mean_over_a_mask_of_the_batch_is_right() -> None:
    def loss(p: Any, x: Any, mask: Any) -> Any:
        each = jnp.sum(hidden(p, x) ** 2, -1)
        return jnp.sum(each * mask) / jnp.sum(mask)

    check(grads(loss), PARAMS, BATCH, MASK)


def test_a_mean_over_what_is_in_front_of_an_end_is_right() -> None:
    """Every micro-batch makes running totals of all rows, too, for their number."""

    def loss(p: Any, x: Any) -> Any:
        mask = jnp.cumsum(x > 1, 1) == 0
        return jnp.sum(hidden(p, x) ** 2 * mask) / jnp.sum(mask)

    check(grads(loss), PARAMS, BATCH)


@pytest.mark.parametrize("stages", [1, 2])
def test_a_loop_over_layers_hands_on_what_is_the_same_for_all_rows(stages: int) -> None:
    """Beside activations: a key, a count, products and norms of the weights."""

    def loss(p: Any, x: Any, key: Any) -> Any:
        def layer(carry: Any, w: Any) -> Any:
            x, (key, count, product) = carry
            key, own = jax.random.split(key)
            x = x * jax.random.bernoulli(own, 0.9, x.shape)
            return (x + jnp.tanh(x @ w), (key, count + 1, product @ w)), jnp.sum(w**2)

        start = (key, 0, jnp.eye(WIDTH))
        (out, (key, count, product)), norms = jax.lax.scan(layer, (x, start), p)
        # Every micro-batch makes it of all rows, as they are no product.
        all_rows = jnp.sum((x - count) ** 2) + p[0, 0, 0]
        # Infinite: what only the first micro-batch adds is not multiplied by zero.
        numbers = count / 2, jnp.sum(norms), jnp.log(0.0 * count), all_rows
        return jnp.mean(out**2), (key, product, *numbers)

    stack, key = jnp.stack([weights(WIDTH, WIDTH, seed=i) for i in range(4)]), jax.random.key(1)
    step, method = grads(loss, has_aux=True), stablehlo_alpa.ShardParallel(num_micro_batches=4)
    parallel = (
        stablehlo_alpa.parallelize(step, method=method)
        if stages == 1
        else pipeline(step, 4, stages)
    )
    found, gradients = parallel(stack, BATCH, key)
    expected, expected_gradients = jax.jit(step)(stack, BATCH, key)
    assert_same(found, expected)
    assert_trees_close(np.asarray(gradients), expected_gradients, 1e-5, "gradients")


def test_statistics_of_the_batch_are_right_where_layers_are_computed_again() -> None:
    def loss(p: Any, x: Any) -> Any:
        return jnp.sum(hidden(p, (x - x.mean(0)) / x.std(0)) ** 2) / (1 + jnp.sum(x**2))

    layers = AutoLayers(num_layers=2, remat=True)
    method = PipeshardParallel(num_micro_batches=4, stages=UniformStages(2), layers=layers)
    step = grads(loss)
    found = stablehlo_alpa.parallelize(step, method=method)(PARAMS, BATCH)
    assert_trees_close(found, jax.jit(step)(PARAMS, BATCH), 1e-5, "results")


def test_regularisation_counts_once() -> None:
    def loss(p: Any, x: Any) -> Any:
        return jnp.mean(hidden(p, x) ** 2) + 0.1 * sum(jnp.sum(w**2) for w in p)

    check(grads(loss), PARAMS, BATCH)


def test_dropout_is_that_of_the_whole_batch() -> None:
    def loss(p: Any, x: Any, key: Any) -> Any:
        x = hidden(p[:1], x)
        x = jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x, 0)
        return jnp.mean(hidden(p[1:], x) ** 2)

    check(grads(loss), PARAMS, BATCH, jax.random.key(3))


def test_positions_are_those_of_the_whole_batch() -> None:
    def loss(p: Any, x: Any) -> Any:
        rows = jnp.arange(x.shape[0], dtype=x.dtype)[:, None]
        return jnp.mean((hidden(p, x) * rows) ** 2)

    check(grads(loss), PARAMS, BATCH)


def test_loops_over_time_inside_of_the_model() -> None:
    def loss(p: Any, x: Any) -> Any:
        def turn(h: Any, part: Any) -> Any:
            h = jnp.tanh(h @ p[0] + part)
            return h, h @ p[1]

        _, out = jax.lax.scan(turn, jnp.zeros((x.shape[0], WIDTH)), jnp.stack([x] * 3))
        return jnp.mean(out**2)

    check(grads(loss), PARAMS, BATCH, stages=1)


@pytest.mark.slow
def test_a_recurrence_by_associative_scan() -> None:
    """That of an even size ends with a product of tensors without elements."""

    def loss(p: Any, x: Any) -> Any:
        gates = jax.lax.associative_scan(jnp.multiply, jax.nn.sigmoid(x @ p[0]), axis=1)
        return jnp.mean(hidden(p, gates) ** 2)

    check(grads(loss), PARAMS, BATCH)


def test_what_is_no_array_comes_out_of_the_loss_as_it_is() -> None:
    """Numbers of Python stay numbers, for shapes; names and functions go through."""

    def step(p: Any, x: Any) -> Any:
        def loss(p: Any) -> Any:
            out = hidden(p, x)
            return jnp.mean(out**2), {"rows": len(x), "name": "l2", "act": jnp.tanh, "out": out}

        (value, aux), gradients = stablehlo_alpa.value_and_grad(loss, has_aux=True)(p)
        ones = jnp.ones((aux["rows"], len(aux["name"])))
        return value, aux["act"](ones), aux["rows"], aux["out"], gradients

    check(step, PARAMS, BATCH)


@pytest.mark.slow
def test_gradients_are_found_inside_of_a_jit() -> None:
    def step(p: Any, x: Any) -> Any:
        both = stablehlo_alpa.value_and_grad(lambda p: jnp.mean(hidden(p, x) ** 2))
        value, gradients = jax.jit(both)(p)
        return jax.jit(lambda p: jax.tree.map(lambda p, g: p - g, p, gradients))(p), value

    check(step, PARAMS, BATCH)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2])
def test_every_layer_may_read_all_before_it(count: int) -> None:
    def loss(p: Any, x: Any) -> Any:
        made = [x]
        for w in p:
            # From zero on, as sums of Python go.
            made.append(jnp.tanh(sum(made) @ w))
        return jnp.mean(jnp.concatenate(made, 1) ** 2)

    params = [weights(WIDTH, WIDTH, seed=i) for i in range(4)]
    check(grads(loss), params, BATCH, count=count, stages=4)


@pytest.mark.parametrize("count", [1, 2])
def test_batches_of_two_sizes(count: int) -> None:
    def loss(p: Any, x: Any, y: Any) -> Any:
        return jnp.mean(hidden(p, x) ** 2) + jnp.mean(hidden(p, y) ** 2) / 2

    check(grads(loss), PARAMS, BATCH[:2], BATCH, count=count)


@pytest.mark.parametrize("stages", [1, 2])
def test_gradients_of_what_gradients_made(stages: int) -> None:
    def step(first: Any, second: Any, x: Any) -> Any:
        gradients = stablehlo_alpa.grad(lambda p: jnp.mean(hidden(p, x) ** 2))(second)
        second = jax.tree.map(lambda p, g: p - g, second, gradients)
        both = stablehlo_alpa.grad(lambda p: jnp.mean(hidden(second, hidden(p, x)) ** 2))
        return jax.tree.map(lambda p, g: p + g, first, both(first)), second

    check(step, PARAMS, PARAMS, BATCH, count=1, stages=stages)


def test_metrics_outside_of_the_gradients() -> None:
    def step(p: Any, x: Any, i: Any) -> Any:
        value, gradients = stablehlo_alpa.value_and_grad(lambda p: jnp.mean(hidden(p, x) ** 2))(p)
        p = jax.tree.map(lambda w, g: w - 0.1 * g, p, gradients)
        return p, {"loss": value, "mean": x.mean(), "most": jnp.max(x), "rows": jnp.sum(i > 1)}

    check(step, PARAMS, BATCH, INDEX)


def test_steps_train_as_they_do_alone() -> None:
    optimizer = optax.adamw(1e-2)

    def step(state: Any, x: Any, key: Any) -> Any:
        params, opt = state

        def loss(p: Any) -> Any:
            out = hidden(p, x + 0.1 * jax.random.normal(key, x.shape))
            return jnp.mean((out - x) ** 2)

        value, gradients = stablehlo_alpa.value_and_grad(loss)(params)
        updates, opt = optimizer.update(gradients, opt, params)
        return (optax.apply_updates(params, updates), opt), value

    parallel, alone = pipeline(step), jax.jit(step)
    state = other = (PARAMS, optimizer.init(PARAMS))
    for number in range(3):
        key = jax.random.fold_in(jax.random.key(1), number)
        state, value = parallel(state, BATCH, key)
        other, expected = alone(other, BATCH, key)
        assert_trees_close(value, expected, 1e-5, "loss")
    assert_trees_close(state, other, 1e-4, "state")


@pytest.mark.parametrize("count", [2, 8])
def test_other_numbers_of_micro_batches(count: int) -> None:
    check(
        grads(lambda p, x: jnp.sum(jax.nn.softmax(hidden(p, x)) ** 3)), PARAMS, BATCH, count=count
    )


def test_rows_that_meet_each_other_are_refused() -> None:
    def loss(p: Any, x: Any) -> Any:
        out = hidden(p, x)
        return -jnp.mean(jnp.diag(jax.nn.log_softmax(out @ out.T)))

    with pytest.raises(CompileError, match="needs the whole batch, not one of 4 parts"):
        pipeline(grads(loss))(PARAMS, BATCH)


def test_batch_statistics_are_refused() -> None:
    def loss(p: Any, x: Any) -> Any:
        x = x @ p[0]
        x = (x - x.mean(0)) / (x.std(0) + 1e-3)
        return jnp.mean(jnp.tanh(x @ p[1]) ** 2)

    with pytest.raises(CompileError, match="needs the whole batch"):
        pipeline(grads(loss))(PARAMS, BATCH)


def test_a_root_of_a_mean_is_refused_with_what_to_write() -> None:
    def mean(p: Any, x: Any) -> Any:
        return jnp.mean((hidden(p, x) - 1) ** 2)

    def root(p: Any, x: Any) -> Any:
        return jnp.sqrt(mean(p, x))

    with pytest.raises(CompileError, match=r"sqrt'.* take gradients of the sum, and multiply"):
        pipeline(grads(root)).plan(PARAMS, BATCH)

    def behind(p: Any, x: Any) -> Any:
        value, gradients = stablehlo_alpa.value_and_grad(mean)(p, x)
        return jnp.sqrt(value), jax.tree.map(lambda g: g / (2 * jnp.sqrt(value)), gradients)

    expected = jax.jit(jax.value_and_grad(root))(PARAMS, BATCH)
    assert_same(pipeline(behind)(PARAMS, BATCH), expected)


def test_parameters_are_not_cut_in_place_of_a_batch() -> None:
    def step(p: Any, x: Any) -> Any:
        def loss(p: Any) -> Any:
            h = x @ p["first"]
            h = jnp.tanh((h - h.mean(0)) / (h.std(0) + 1e-3))
            return jnp.mean((h @ p["second"] + p["bias"]) ** 2)

        value, gradients = stablehlo_alpa.value_and_grad(loss)(p)
        return jax.tree.map(lambda p, g: p - 0.1 * g, p, gradients), value

    params = {"first": PARAMS[0], "second": PARAMS[1], "bias": jnp.ones(WIDTH)}
    with pytest.raises(CompileError, match="needs the whole batch"):
        pipeline(step, 2).plan(params, BATCH)


def test_a_batch_that_does_not_divide_is_named() -> None:
    with pytest.raises(CompileError, match=r"no argument can be cut into 4.*10"):
        pipeline(grads(lambda p, x: jnp.mean(hidden(p, x) ** 2)))(PARAMS, jnp.ones((10, WIDTH)))


@pytest.mark.parametrize("predicts", [False, True])
def test_moments_are_not_cut_in_place_of_a_batch_that_does_not_divide(predicts: bool) -> None:
    optimizer = optax.adam(1e-2)

    def step(params: Any, moments: Any, x: Any) -> Any:
        gradients = jax.grad(lambda p: jnp.mean(hidden(p, x) ** 2))(params)
        updates, moments = optimizer.update(gradients, moments)
        predicted = [hidden(params, x).argmax(-1)] if predicts else []
        return optax.apply_updates(params, updates), moments, predicted

    method = stablehlo_alpa.ShardParallel(num_micro_batches=4)
    parallel = stablehlo_alpa.parallelize(step, method=method)
    with pytest.raises(CompileError, match=r"no argument can be cut into 4 .* x 10"):
        parallel.plan(PARAMS, optimizer.init(PARAMS), jnp.ones((10, WIDTH)))


def test_a_loop_over_examples_is_said_to_be_in_the_way() -> None:
    """Of a mean that forgets, later examples have more: turns are not added up."""

    def loss(p: Any, x: Any) -> Any:
        def turn(mean: Any, row: Any) -> Any:
            return 0.9 * mean + 0.1 * jnp.mean(hidden(p, row[None]) ** 2), None

        return jax.lax.scan(turn, 0.0, x)[0]

    method = stablehlo_alpa.ShardParallel(num_micro_batches=3)
    match = (
        r"no argument can be cut into 3 .* 9, but nothing .* \(a loop over examples .*independent"
    )
    with pytest.raises(CompileError, match=match):
        stablehlo_alpa.parallelize(grads(loss), method=method)(PARAMS, jnp.ones((9, WIDTH)))


def test_a_loop_over_examples_is_computed_per_micro_batch() -> None:
    def loss(p: Any, x: Any) -> Any:
        return jnp.mean(jax.lax.map(lambda row: jnp.mean(hidden(p, row[None]) ** 2), x))

    x = jax.random.normal(jax.random.key(8), (9, WIDTH))
    method = stablehlo_alpa.ShardParallel(num_micro_batches=3, micro_batches="independent")
    found = stablehlo_alpa.parallelize(grads(loss), method=method)(PARAMS, x)
    assert_trees_close(found, jax.jit(grads(loss))(PARAMS, x), 1e-5, "results")


@pytest.mark.parametrize(
    "method",
    [stablehlo_alpa.ShardParallel, stablehlo_alpa.DataParallel, stablehlo_alpa.Zero3Parallel],
)
def test_gradients_are_accumulated_on_one_mesh(method: Any) -> None:
    def step(p: Any, x: Any) -> Any:
        value, gradients = jax.value_and_grad(lambda p: jnp.sum(hidden(p, x) ** 2))(p)
        return jax.tree.map(lambda w, g: w - 0.1 * g, p, gradients), value

    parallel = stablehlo_alpa.parallelize(step, method=method(num_micro_batches=4))
    expected = jax.jit(step)(PARAMS, BATCH)
    assert_trees_close(parallel(PARAMS, BATCH), expected, 1e-5, "results")
    plan = parallel.plan(PARAMS, BATCH)
    assert plan.runtime.num_micro_batches == 4
    assert len(plan.runtime.meshes) == 1


def test_an_optimizer_may_multiply_gradients() -> None:
    """The products of Muon are more work than those of a small batch, and come behind it."""
    optimizer = optax.contrib.muon(1e-2)

    def step(p: Any, opt: Any, x: Any) -> Any:
        value, gradients = jax.value_and_grad(lambda p: jnp.mean(hidden(p, x) ** 2))(p)
        updates, opt = optimizer.update(gradients, opt, p)
        return optax.apply_updates(p, updates), opt, value

    args = (PARAMS, optimizer.init(PARAMS), BATCH)
    parallel = stablehlo_alpa.parallelize(
        step, method=stablehlo_alpa.DataParallel(num_micro_batches=4)
    )
    assert_trees_close(parallel(*args), jax.jit(step)(*args), 1e-4, "results")


def test_what_looks_like_state_is_cut_where_nothing_else_is() -> None:
    check(lambda x, p: hidden(p, x), BATCH, PARAMS)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 4])
def test_results_that_no_micro_batch_makes_are_returned_once(count: int) -> None:
    def evaluate(p: Any, x: Any) -> Any:
        return {"loss": jnp.mean(hidden(p, x) ** 2), "rows": x.shape[0], "zeros": jnp.zeros(3)}

    check(evaluate, PARAMS, BATCH, count=count)
    step = grads(lambda p, x: (jnp.mean(hidden(p, x) ** 2), x.shape[0]), has_aux=True)
    check(step, PARAMS, BATCH, count=count)


def test_matrices_with_as_many_rows_as_the_batch_are_kept_whole() -> None:
    def evaluate(p: Any, x: Any) -> Any:
        def turn(h: Any, part: Any) -> Any:
            h = jnp.tanh(h @ p + part)
            return h, h

        return jax.lax.scan(turn, jnp.zeros_like(x), jnp.stack([x] * 3))

    check(evaluate, weights(ROWS, ROWS), BATCH[:, :ROWS], stages=1)


def test_a_comparator_has_its_constants_where_columns_are_cut() -> None:
    # Rows meet each other: a micro-batch sorts some columns, and adds a summand of the product.
    check(lambda p, x: jnp.sort(x, 0) @ p, weights(WIDTH, 8), BATCH, stages=1)


def test_a_refusal_says_what_micro_batches_would_take() -> None:
    def step(weights: Any, x: Any) -> Any:
        def loss(weights: Any) -> jax.Array:
            return jax.numpy.mean((jax.numpy.tanh(x @ weights[0]) @ weights[1]) ** 2)

        return stablehlo_alpa.grad(loss)(weights)

    weights = [np.ones((64, 256), "f"), np.ones((256, 64), "f")]
    x = np.ones((512, 64), "f")

    def plan(budget: float) -> Any:
        method = stablehlo_alpa.ShardParallel(mesh_shape=(8,), memory_budget=budget)
        return stablehlo_alpa.parallelize(step, method=method).plan(weights, x)

    with pytest.raises(InfeasibleError, match="cut into micro-batches the step takes") as caught:
        plan(30_000)
    needed = caught.value.needed_bytes
    assert needed is not None
    assert plan(1.2 * needed).runtime.num_micro_batches > 1


def batch_statistics_step(weights: Any, x: Any) -> Any:
    """Gradients of a step that needs its whole batch at once."""

    def loss(weights: Any) -> jax.Array:
        hidden = x @ weights[0]
        normal = (hidden - hidden.mean(0)) / (1 + hidden.std(0))
        return jax.numpy.mean((jax.numpy.tanh(normal) @ weights[1]) ** 2)

    return stablehlo_alpa.grad(loss)(weights)


def batch_statistics_arguments() -> tuple[Any, np.ndarray]:
    weights = [np.ones((64, 256), "f"), np.ones((256, 64), "f")]
    return weights, np.ones((512, 64), "f")


def test_a_refusal_says_why_there_are_no_micro_batches() -> None:
    method = stablehlo_alpa.ShardParallel(mesh_shape=(8,), memory_budget=30_000)
    refused = r"no plan fits.*; it is not cut into micro-batches: .*micro_batches=\"independent\""
    parallel = stablehlo_alpa.parallelize(batch_statistics_step, method=method)
    with pytest.raises(InfeasibleError, match=refused) as caught:
        parallel.plan(*batch_statistics_arguments())
    assert caught.value.needed_bytes is not None
    assert caught.value.needed_bytes > 30_000
    assert caught.value.budget_bytes == 30_000


def test_a_pipeline_says_why_there_are_no_micro_batches() -> None:
    """Where more of them would take less memory, the reason why they cannot be is named."""
    method = PipeshardParallel(layers=AutoLayers(num_layers=2), memory_budget=30_000)
    parallel = stablehlo_alpa.parallelize(batch_statistics_step, method=method, cluster="cpu:2x4")
    refused = r"micro-batches were not possible: .*micro_batches=\"independent\""
    with pytest.raises(InfeasibleError, match=refused):
        parallel.plan(*batch_statistics_arguments())


def test_examples_along_another_dimension_are_no_batch() -> None:
    # Sequences first: nothing of that can be cut, and columns of a weight in its place would
    # compute everything anew for each micro-batch.
    def recur(weights: Any, xs: jax.Array) -> jax.Array:
        def turn(hidden: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
            hidden = jnp.tanh(x @ weights["in"] + hidden @ weights["own"])
            return hidden, hidden

        return jax.lax.scan(turn, jnp.zeros((xs.shape[1], 32)), xs)[1] @ weights["out"]

    def step(weights: Any, xs: jax.Array, ys: jax.Array) -> Any:
        def loss(weights: Any) -> jax.Array:
            return jnp.mean((recur(weights, xs) + weights["bias"] - ys) ** 2)

        value, gradient = jax.value_and_grad(loss)(weights)
        return jax.tree.map(lambda a, b: a - 0.1 * b, weights, gradient), value

    def swapped(weights: Any, xs: jax.Array, ys: jax.Array) -> Any:
        return step(weights, jnp.swapaxes(xs, 0, 1), jnp.swapaxes(ys, 0, 1))

    shapes = {"in": (4, 32), "own": (32, 32), "out": (32, 8), "bias": (8,)}
    weights = {
        name: 0.3 * jax.random.normal(jax.random.key(len(name)), shape)
        for name, shape in shapes.items()
    }
    xs, ys = jnp.ones((12, 16, 4)), jnp.ones((12, 16, 8))
    method = stablehlo_alpa.ShardParallel(num_micro_batches=2)
    with pytest.raises(CompileError, match="examples along another dimension have to be passed"):
        stablehlo_alpa.parallelize(step, method=method).plan(weights, xs, ys)
    batches = jnp.swapaxes(xs, 0, 1), jnp.swapaxes(ys, 0, 1)
    found = stablehlo_alpa.parallelize(swapped, method=method)(weights, *batches)
    wanted = jax.jit(swapped)(weights, *batches)
    assert_trees_close(found, wanted, 1e-5, "results")
