"""Examples that meet each other in the loss, cut into micro-batches: gradients in a second pass."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from batch_steps import BATCH, PARAMS, ROWS, WIDTH, hidden, pipeline, weights
from often import each_with_one_of
from oracle import assert_same

import stablehlo_alpa
from stablehlo_alpa import DataParallel, ShardParallel
from stablehlo_alpa.errors import CompileError

OTHERS = [weights(WIDTH, WIDTH, seed=i) for i in range(3, 5)]
ORDER = jax.random.permutation(jax.random.key(1), ROWS)
GROUP = jnp.arange(ROWS) % 3


def contrastive(params: Any, x: Any) -> Any:
    """Two towers, as CLIP has them."""
    one, other = hidden(params, x), hidden(OTHERS, x)
    scores = (one @ other.T) * 0.1
    return -jnp.mean(jnp.diag(jax.nn.log_softmax(scores) + jax.nn.log_softmax(scores.T)))


def correlated(params: Any, x: Any) -> Any:
    """Barlow twins: products of features, summed over the batch, go into a square."""
    out = hidden(params, x)
    return jnp.sum((out.T @ jnp.tanh(out) / ROWS - jnp.eye(WIDTH)) ** 2)


def root(params: Any, x: Any) -> Any:
    return jnp.sqrt(jnp.mean((hidden(params, x) - x) ** 2))


def of_the_worst(params: Any, x: Any) -> Any:
    errors = jnp.sum((hidden(params, x) - x) ** 2, -1)
    return jnp.max(errors) + jax.nn.logsumexp(errors) + jax.lax.top_k(errors, 3)[0].mean()


def neighbours(params: Any, x: Any) -> Any:
    values = hidden(params, x).sum(-1)
    return jnp.mean((x[:-1, 0] + 0.9 * jax.lax.stop_gradient(values[1:]) - values[:-1]) ** 2)


def discounted(params: Any, x: Any) -> Any:
    values = hidden(params, x).sum(-1)

    def turn(later: Any, value: Any) -> Any:
        return value + 0.9 * later, value + 0.9 * later

    returns = jax.lax.scan(turn, 0.0, jax.lax.stop_gradient(values), reverse=True)[1]
    return jnp.mean((returns - values) ** 2)


def normalised_gains(params: Any, x: Any) -> Any:
    out = hidden(params, x)
    gains = jax.lax.stop_gradient(out[:, 0] - x[:, 0])
    gains = (gains - gains.mean()) / (gains.std() + 1e-6)
    return jnp.mean(gains * out[:, 1])


def in_order(params: Any, x: Any) -> Any:
    out = hidden(params, x)
    return jnp.mean((jnp.sort(out, 0) - jnp.sort(x, 0)) ** 2) + jnp.mean((out[ORDER] - x) ** 2)


def in_groups(params: Any, x: Any) -> Any:
    out = hidden(params, x)
    sums, counts = jax.ops.segment_sum(out, GROUP, 3), jax.ops.segment_sum(jnp.ones(ROWS), GROUP, 3)
    return jnp.sum((sums / counts[:, None]) ** 2)


def halves(params: Any, x: Any) -> Any:
    first, second = jnp.split(hidden(params, x), 2)
    return jnp.mean(jax.nn.softplus(first - second))


def of_two_views(params: Any, x: Any) -> Any:
    """SimCLR: both views are put side by side in front of the model."""
    noise = 0.1 * jax.random.normal(jax.random.key(5), x.shape)
    out = hidden(params, jnp.concatenate([x, x + noise]))
    out = out / jnp.linalg.norm(out, axis=-1, keepdims=True)
    scores = jax.nn.log_softmax(out @ out.T - 1e3 * jnp.eye(2 * ROWS))
    return -jnp.mean(jnp.diag(jnp.roll(scores, ROWS, 1)))


def of_the_hardest(params: Any, x: Any) -> Any:
    """Triplets of the farthest example of the same group and the nearest of another."""
    out = hidden(params, x)
    distances = jnp.sum((out[:, None] - out) ** 2, -1)
    is_same = GROUP[:, None] == GROUP
    far = jnp.max(jnp.where(is_same, distances, -jnp.inf), 1)
    near = jnp.min(jnp.where(is_same, jnp.inf, distances), 1)
    return jnp.mean(jax.nn.relu(far - near + 1))


def transported(params: Any, x: Any) -> Any:
    """Sinkhorn's iterations go along the batch and across it by turns."""
    out = hidden(params, x)
    costs = jnp.mean((out[:, None] - x) ** 2, -1)
    rows = columns = jnp.zeros(ROWS)
    for _ in range(3):
        rows = -jax.nn.logsumexp(columns - costs, 1)
        columns = -jax.nn.logsumexp(rows[:, None] - costs, 0)
    return jnp.sum(jnp.exp(rows[:, None] + columns - costs) * costs)


LOSSES = {
    loss.__name__: loss
    for loss in (
        *(contrastive, correlated, root, of_the_worst, neighbours, discounted),
        *(normalised_gains, in_order, in_groups, halves),
        *(of_two_views, of_the_hardest, transported),
    )
}


def step_of(loss: Any) -> Any:
    def step(params: Any, x: Any) -> Any:
        value, gradients = stablehlo_alpa.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    return step


@pytest.mark.parametrize(
    ("name", "parts"), each_with_one_of(LOSSES, [(ShardParallel, 4), (DataParallel, 2)])
)
def test_gradients_of_what_examples_meet_in(name: str, parts: tuple[Any, int]) -> None:
    method, count = parts
    step = step_of(LOSSES[name])
    parallel = stablehlo_alpa.parallelize(step, method=method(num_micro_batches=count))
    assert_same(parallel(PARAMS, BATCH), jax.jit(step)(PARAMS, BATCH))


def test_terms_that_have_arguments_of_their_own() -> None:
    """VICReg: features of either view are decorrelated by themselves."""

    def loss(params: Any, views: Any) -> Any:
        outs = [hidden(params, view) for view in views]
        spread = sum(jnp.mean(jax.nn.relu(1 - jnp.std(out, 0))) for out in outs)
        shared = sum(jnp.sum((out.T @ out / ROWS - jnp.eye(WIDTH)) ** 2) for out in outs)
        return jnp.mean((outs[0] - outs[1]) ** 2) + spread + shared

    views = BATCH, jnp.roll(BATCH, 1, 1)
    parallel = stablehlo_alpa.parallelize(step_of(loss), method=ShardParallel(num_micro_batches=4))
    assert_same(parallel(PARAMS, views), jax.jit(step_of(loss))(PARAMS, views))


def test_results_per_example_come_with_the_loss() -> None:
    def step(params: Any, x: Any) -> Any:
        def loss(params: Any) -> Any:
            out = hidden(params, x)
            return jnp.sqrt(jnp.mean(out**2)), (out, out.T, jnp.sum(out > 0))

        (value, rest), gradients = stablehlo_alpa.value_and_grad(loss, has_aux=True)(params)
        return gradients, value, rest

    parallel = stablehlo_alpa.parallelize(step, method=ShardParallel(num_micro_batches=4))
    assert_same(parallel(PARAMS, BATCH), jax.jit(step)(PARAMS, BATCH))


def test_only_what_examples_meet_in_is_kept_of_all_of_them() -> None:
    shape = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    batch = jax.ShapeDtypeStruct((16384, 64), jnp.float32)

    def peak(count: int) -> float:
        parallel = stablehlo_alpa.parallelize(
            step_of(lambda p, x: jnp.sqrt(jnp.mean((hidden(p, x) @ jnp.ones((64, 1))) ** 2))),
            method=DataParallel(num_micro_batches=count),
        )
        return parallel.plan([shape] * 24, batch).peak_bytes

    assert peak(16) < 0.3 * peak(1)


def test_layers_that_normalise_over_the_batch_are_refused() -> None:
    """The gradients would need another pass for every layer."""

    def loss(params: Any, x: Any) -> Any:
        for w in params:
            x = jnp.tanh(x @ w)
            x = (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-3)
        return jnp.mean((x - 1) ** 2 * x)

    parallel = stablehlo_alpa.parallelize(step_of(loss), method=ShardParallel(num_micro_batches=4))
    with pytest.raises(CompileError, match="needs the whole batch"):
        parallel.plan(PARAMS, BATCH)


def test_stages_of_a_pipeline_take_gradients_once() -> None:
    with pytest.raises(CompileError, match="needs the whole batch"):
        pipeline(step_of(root), 4).plan(PARAMS, BATCH)
