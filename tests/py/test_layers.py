"""Layers: clustering against brute force, and gradients that equal jax's."""

from __future__ import annotations

import itertools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stablehlo_alpa
from stablehlo_alpa import AutoLayers, FollowModuleLayers, ManualLayers
from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.layers import cluster, layer_context


def random_chain(seed: int) -> tuple[np.ndarray, list[tuple[float, int, list[int]]]]:
    """FLOPs and tensors of a few operators."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 10))
    flops = rng.integers(0, 5, size).astype(float)
    tensors = []
    for maker in range(-1, size - 1):
        for _ in range(int(rng.integers(0, 3))):
            users = sorted(rng.choice(np.arange(maker + 1, size), int(rng.integers(1, 3))).tolist())
            tensors.append((float(rng.integers(1, 6)), maker, users))
    return flops, tensors


def received(tensors: list[tuple[float, int, list[int]]], first: int, last: int) -> float:
    """C(i, k) by its definition."""
    return sum(
        size
        for size, maker, users in tensors
        if 0 <= maker < first and any(first <= user <= last for user in users)
    )


def objective(flops: np.ndarray, tensors: Any, layers: list[int]) -> tuple[float, float, float]:
    """The largest amount received, the sum of squared FLOPs, and the largest FLOPs."""
    bottleneck = squares = largest = 0.0
    for layer in range(max(layers) + 1):
        own = [i for i, other in enumerate(layers) if other == layer]
        bottleneck = max(bottleneck, received(tensors, own[0], own[-1]))
        work = float(flops[own].sum())
        squares += work**2
        largest = max(largest, work)
    return bottleneck, squares, largest


@pytest.mark.parametrize("seed", range(300))
def test_clustering_equals_brute_force(seed: int) -> None:
    flops, tensors = random_chain(seed)
    count = min(1 + seed % 4, len(flops))
    found = cluster(flops, tensors, 1 + seed % 4, 0.5)
    assert found[0] == 0
    assert set(np.diff(found)) <= {0, 1}
    assert found[-1] == count - 1
    work = flops if flops.sum() else np.ones_like(flops)
    tolerance = 0.5
    least = work[work > 0].min()
    most = work.sum() - least if count > 1 and least < work.sum() else work.sum()
    cuts = [
        [sum(i >= cut for cut in cuts) for i in range(len(flops))]
        for cuts in itertools.combinations(range(1, len(flops)), count - 1)
    ]
    all_values = [objective(work, tensors, layers) for layers in cuts]
    while True:
        limit = min((1 + tolerance) * work.sum() / count, most)
        if tolerance > 0.5 and limit == most:
            limit = min(value[2] for value in all_values)
        values = [value for value in all_values if value[2] <= limit * (1 + 1e-9)]
        if values:
            break
        tolerance *= 2
    best = min(value[0] for value in values)
    evenest = min(value[1] for value in values if value[0] <= best)
    bottleneck, squares, _ = objective(work, tensors, found)
    assert bottleneck == best
    assert squares == pytest.approx(evenest)


@pytest.mark.parametrize("seed", range(100))
def test_clustering_with_kinds_equals_brute_force(seed: int) -> None:
    """Of cuts that are hardly less even, one with the fewest layers unlike the one before."""
    rng = np.random.default_rng(seed)
    period = int(rng.integers(1, 4))
    kinds = np.tile(np.arange(period), 4)[int(rng.integers(0, period)) :][:9].tolist()
    flops = np.array([float(2 + kind) for kind in kinds])
    tensors = [(1.0, i, [i + 1]) for i in range(len(kinds) - 1)]
    count = 2 + seed % 3

    def costs(layers: list[int]) -> float:
        pieces = [
            [k for k, one in zip(kinds, layers, strict=True) if one == n] for n in range(count)
        ]
        unlike = sum(one != other for one, other in itertools.pairwise(pieces))
        return objective(flops, tensors, layers)[1] / flops.sum() ** 2 + 1e-3 / count**2 * unlike

    cuts = [
        [sum(i >= cut for cut in cuts) for i in range(len(flops))]
        for cuts in itertools.combinations(range(1, len(flops)), count - 1)
    ]
    limit = 1.5 * flops.sum() / count
    best = min(costs(cut) for cut in cuts if objective(flops, tensors, cut)[2] <= limit)
    assert costs(cluster(flops, tensors, count, 0.5, kinds)) == pytest.approx(best, abs=1e-9)


def test_layers_that_are_unlike_the_others_are_at_the_ends() -> None:
    """Fifteen blocks and a head in five layers: one has a part of a block more."""
    kinds = [*["attention", "mlp"] * 15, "head"]
    flops = [*[1.0, 2.0] * 15, 1.6]
    tensors = [(1.0, i, [i + 1]) for i in range(30)]
    found = cluster(flops, tensors, 5, 0.5, kinds)
    pieces = [tuple(kinds[i] for i in np.flatnonzero(np.equal(found, n))) for n in range(5)]
    assert sorted(map(len, pieces)) == [6, 6, 6, 6, 7]
    assert sum(one != other for one, other in itertools.pairwise(pieces)) == 2
    evenest = cluster(flops, tensors, 5, 0.5)
    squares = [objective(np.array(flops), tensors, layers)[1] for layers in (found, evenest)]
    assert squares[0] == pytest.approx(squares[1])


def test_an_operator_that_is_nearly_all_is_a_layer_by_itself() -> None:
    """The scalar at the end of a loss would be the cheapest layer, and none to run."""
    flops = [100.0, 1.0, 10.0, 1.0, 1.0]
    chain = [(float(size), i, [i + 1]) for i, size in enumerate((64, 64, 8, 4))]
    assert cluster(flops, chain, 2, 0.5) == [0, 1, 1, 1, 1]


def test_nothing_to_cluster() -> None:
    assert cluster([], [], 3, 0.5) == []


# A little model: four blocks, the second with a library function inside.


def make_params() -> list[jax.Array]:
    return [0.3 * jax.random.normal(jax.random.PRNGKey(i), (8, 8)) for i in range(4)]


def blocks(params: list[jax.Array], x: jax.Array, *, marked: bool = False) -> jax.Array:
    for index, weight in enumerate(params):
        if marked and index:
            stablehlo_alpa.layer_boundary()
        with jax.named_scope(f"block_{index}"):
            x = jax.nn.gelu(x @ weight) if index == 1 else jnp.tanh(x @ weight)
    return x


def scanned(params: list[jax.Array], x: jax.Array) -> jax.Array:
    def body(carry: jax.Array, weight: jax.Array) -> tuple[jax.Array, jax.Array]:
        carry = jnp.tanh(carry @ weight)
        return carry, carry.sum()

    carry, sums = jax.lax.scan(body, x, jnp.stack(params))
    return carry + sums.mean()


def layers_of(fun: Any, option: Any, *args: Any) -> set[int]:
    with layer_context(option):
        lowered = jax.jit(lambda *a: fun(*a)).lower(*args)
    module: Any = lowered.compiler_ir("stablehlo")
    text = module.operation.get_asm(enable_debug_info=True)
    return {int(number) for number in re.findall(r"alpa_layer_(\d+)", text)}


OPTIONS = [
    AutoLayers(num_layers=4),
    AutoLayers(num_layers=2, remat=True),
    FollowModuleLayers(),
    FollowModuleLayers(remat=True),
]


@pytest.mark.slow
@pytest.mark.parametrize("option", OPTIONS, ids=repr)
def test_gradients_are_those_of_jax(option: Any) -> None:
    params, x = make_params(), jnp.ones((2, 8))

    def loss(params: Any, x: jax.Array, *, scale: float) -> tuple[jax.Array, dict[str, Any]]:
        y = blocks(params, x)
        return scale * jnp.mean(y**2), {"mean": y.mean(), "x": x}

    expected = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(params, x, scale=2.0)
    ours = stablehlo_alpa.value_and_grad(loss, argnums=(0, 1), has_aux=True)
    outside = ours(params, x, scale=2.0)
    with layer_context(option):
        inside = jax.jit(lambda p, x: ours(p, x, scale=2.0))(params, x)
    structure: Any = jax.tree.structure(expected)
    assert structure == jax.tree.structure(inside)
    for a, b, c in zip(*map(jax.tree.leaves, (expected, outside, inside)), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, c, rtol=2e-6, atol=1e-7)


def test_grad_returns_gradients_alone() -> None:
    params, x = make_params(), jnp.ones((2, 8))

    def loss(params: Any) -> jax.Array:
        return jnp.mean(blocks(params, x) ** 2)

    expected = jax.grad(loss)(params)
    with layer_context(AutoLayers(num_layers=2)):
        found = jax.jit(stablehlo_alpa.grad(loss))(params)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-7)


@jax.custom_vjp
def looked_up(x: jax.Array, table: jax.Array) -> jax.Array:
    return x * table[0]


def look_up_backwards(saved: Any, cotangent: jax.Array) -> tuple[jax.Array, None]:
    (table,) = saved
    row = jax.lax.fori_loop(0, 3, lambda i, total: total + i * table[i], jnp.zeros(8))
    return cotangent * row, None


looked_up.defvjp(lambda x, table: (looked_up(x, table), (table,)), look_up_backwards)


@pytest.mark.parametrize("wrap", [lambda fun: fun, jax.jit], ids=["plain", "jitted"])
def test_rules_of_gradients_index_constants(wrap: Any) -> None:
    params, x = make_params()[:2], jnp.ones((2, 8))

    def loss(params: Any) -> jax.Array:
        table = np.arange(24, dtype=np.float32).reshape(3, 8)
        block = wrap(lambda x, w: looked_up(jnp.tanh(x @ w), jnp.array(table)))
        return jnp.mean(block(block(x, params[0]), params[1]) ** 2)

    expected = jax.jit(jax.grad(loss))(params)
    with layer_context(AutoLayers(num_layers=2)):
        found = jax.jit(stablehlo_alpa.grad(loss))(params)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-7)


def test_a_jitted_function_is_traced_again_for_a_pipeline() -> None:
    x = jnp.ones((2, 8))
    inner = jax.jit(stablehlo_alpa.grad(lambda p: jnp.mean(blocks(p, x) ** 2)))
    params = make_params()
    assert layers_of(lambda p: inner(p), None, params) == set()
    assert layers_of(lambda p: inner(p), AutoLayers(num_layers=4), params) == {0, 1, 2, 3}
    assert layers_of(lambda p: inner(p), None, params) == set()


@pytest.mark.parametrize(
    ("option", "count"),
    [
        (AutoLayers(num_layers=4), 4),
        (AutoLayers(num_layers=2), 2),
        (AutoLayers(num_layers=1), 1),
        (FollowModuleLayers(), 4),
        (FollowModuleLayers(r"block_[13]"), 2),
    ],
    ids=repr,
)
def test_number_of_layers(option: Any, count: int) -> None:
    params, x = make_params(), jnp.ones((2, 8))
    step = stablehlo_alpa.grad(lambda p: jnp.mean(blocks(p, x) ** 2))
    assert layers_of(step, option, params) == set(range(count))


@pytest.mark.slow
def test_what_nothing_uses_makes_no_layer() -> None:
    params, x = make_params(), jnp.ones((2, 8))

    def loss(p: Any) -> jax.Array:
        y = jnp.tanh(x @ p[0])
        # Heavier than all that is used.
        _ = [y @ w @ w for w in p]
        jax.jit(lambda y: [y @ w for w in p] * 4)(y)
        return jnp.mean(jnp.sin(y @ p[1]) ** 2)

    assert layers_of(stablehlo_alpa.grad(loss), AutoLayers(num_layers=2), params) == {0, 1}
    method = stablehlo_alpa.PipeshardParallel(
        num_micro_batches=1, layers=AutoLayers(num_layers=2), stages=stablehlo_alpa.UniformStages(2)
    )
    step = stablehlo_alpa.parallelize(lambda p: stablehlo_alpa.grad(loss)(p), method=method)
    for found, wanted in zip(step(params), jax.grad(loss)(params), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-7)


def test_constants_make_no_layer() -> None:
    params, x = make_params()[:1], jnp.ones((2, 8))

    def loss(p: Any) -> Any:
        return jnp.mean(jnp.tanh(x @ p[0]) ** 2), jnp.zeros(64) + 1

    method = stablehlo_alpa.PipeshardParallel(
        num_micro_batches=1, layers=AutoLayers(num_layers=2), stages=stablehlo_alpa.UniformStages(2)
    )
    step = stablehlo_alpa.parallelize(
        lambda p: stablehlo_alpa.value_and_grad(loss, has_aux=True)(p), method=method
    )
    for found, wanted in zip(
        jax.tree.leaves(step(params)),
        jax.tree.leaves(jax.value_and_grad(loss, has_aux=True)(params)),
        strict=True,
    ):
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-7)


def test_boundaries_make_layers() -> None:
    params, x = make_params(), jnp.ones((2, 8))

    def loss(p: Any) -> jax.Array:
        return jnp.mean(blocks(p, x, marked=True) ** 2)

    step = stablehlo_alpa.grad(loss)
    assert layers_of(step, ManualLayers(), params) == {0, 1, 2, 3}
    # Inside a function of their own, and without a pipeline.
    nested = stablehlo_alpa.grad(jax.jit(loss))
    assert layers_of(nested, ManualLayers(), params) == {0, 1, 2, 3}
    np.testing.assert_allclose(step(params)[0], jax.grad(loss)(params)[0])


def test_boundaries_are_asked_for() -> None:
    step = stablehlo_alpa.grad(lambda p: jnp.mean(blocks(p, jnp.ones((2, 8))) ** 2))
    with pytest.raises(TraceError, match=r"calls no layer_boundary\(\)"):
        layers_of(step, ManualLayers(), make_params())
    with pytest.raises(TraceError, match="no operator's name matches 'nothing'"):
        layers_of(step, FollowModuleLayers("nothing"), make_params())


def test_a_scan_over_layers_is_unrolled() -> None:
    params, x = make_params(), jnp.ones((2, 8))

    def loss(p: Any) -> jax.Array:
        return jnp.mean(scanned(p, x) ** 2)

    step = stablehlo_alpa.grad(loss)
    assert layers_of(step, AutoLayers(num_layers=4), params) == {0, 1, 2, 3}
    with layer_context(AutoLayers(num_layers=4)):
        found = jax.jit(step)(params)
    for a, b in zip(jax.grad(loss)(params), found, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-7)


def test_layers_are_computed_again() -> None:
    params, x = make_params(), jnp.ones((2, 8))
    step = stablehlo_alpa.grad(lambda p: jnp.mean(blocks(p, x) ** 2))

    def products(option: Any) -> int:
        with layer_context(option):
            text = jax.jit(lambda p: step(p)).lower(params).as_text()
        return text.count("stablehlo.dot_general")

    # The last layer's product is needed by its own derivative alone.
    assert products(AutoLayers(num_layers=4, remat=True)) >= products(AutoLayers(num_layers=4)) + 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AutoLayers(num_layers=0), "num_layers must be >= 1, got 0"),
        (lambda: AutoLayers(tolerance=-1), "tolerance must be >= 0, got -1"),
        (lambda: FollowModuleLayers("("), "is no regular expression"),
    ],
)
def test_wrong_options_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.slow
@pytest.mark.parametrize("is_one_call", [False, True])
def test_attention_alone_is_computed_again(is_one_call: bool) -> None:
    """Scores are computed twice, products with parameters once; numbers are those of jax."""
    x = jax.random.normal(jax.random.key(0), (2, 8, 4, 4))
    params = jax.random.normal(jax.random.key(1), (4, 4))

    def attention(q: Any, k: Any, v: Any) -> Any:
        if is_one_call:
            return jax.nn.dot_product_attention(q, k, v)
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
        return jnp.einsum("bhqk,bkhd->bqhd", weights, v)

    def loss(params: Any) -> Any:
        y = jnp.tanh(x @ params)
        return (attention(y, y * 2, y + 1) @ params).sum()

    def products(remat: Any) -> tuple[int, Any]:
        def step(params: Any) -> Any:
            with layer_context(AutoLayers(num_layers=1, remat=remat)):
                return stablehlo_alpa.grad(loss)(params)

        text = jax.jit(step).lower(params).as_text()
        return text.count("stablehlo.dot_general"), jax.jit(step)(params)

    plain, gradient = products(False)
    selective, again = products("attention")
    whole, _ = products(True)
    np.testing.assert_allclose(gradient, jax.grad(loss)(params), rtol=1e-5)
    np.testing.assert_allclose(again, gradient, rtol=1e-5)
    assert plain < selective < whole


def test_remat_is_one_of_four() -> None:
    with pytest.raises(
        ValueError, match=r'remat is .some., must be True, False, "attention" or "search"'
    ):
        AutoLayers(remat="some")  # type: ignore[arg-type]
