"""Parts of a function that its author has split by hand, on the mesh that is planned for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from batch_steps import normal
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import stablehlo_alpa
from stablehlo_alpa import CompileError, ManualSharding, TraceError

AXES = ("data", "model")
NAMED = ManualSharding(in_specs={}, mesh_shape=(2, 4), names=AXES)


def mesh_of(*axes: str, shape: tuple[int, ...] = (2, 4)) -> Mesh:
    return jax.make_mesh(shape, axes, axis_types=(AxisType.Auto,) * len(shape))


MESH = mesh_of(*AXES)


def by_hand(fun: Callable[..., Any], ins: Any, outs: Any, **more: Any) -> Callable[..., Any]:
    return jax.shard_map(fun, mesh=more.pop("mesh", MESH), in_specs=ins, out_specs=outs, **more)


def assert_equal(found: Any, wanted: Any) -> None:
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


def product(a: jax.Array, b: jax.Array) -> jax.Array:
    """Contracted over a dimension that the mesh splits."""

    def inner(a: jax.Array, b: jax.Array) -> jax.Array:
        return jax.lax.psum(a @ b, "model") + jax.lax.axis_index("data")

    return by_hand(inner, (P("data", "model"), P("model")), P("data"))(a, b)


def exchanged(a: jax.Array) -> Any:
    def inner(a: jax.Array) -> Any:
        whole = jax.lax.all_gather(a, "data", tiled=True)
        ring = jax.lax.ppermute(a, "model", [(i, (i + 1) % 4) for i in range(4)])
        turned = jax.lax.all_to_all(a, AXES, split_axis=1, concat_axis=0, tiled=True)
        return jnp.tanh(whole.sum(0)), ring, turned

    return by_hand(inner, P(AXES), (P("model"), P(AXES), P(None, AXES)), check_vma=False)(a)


def attention(q: jax.Array) -> jax.Array:
    """A ring: blocks of keys go round while queries stay."""

    def inner(q: jax.Array) -> jax.Array:
        def hop(carry: Any, _: Any) -> Any:
            k, total = carry
            total += jnp.tanh(q @ k.T) @ k
            return (jax.lax.ppermute(k, "model", [(i, (i + 1) % 4) for i in range(4)]), total), None

        return jax.lax.scan(hop, (q, jnp.zeros_like(q)), None, length=4)[0][1]

    return by_hand(inner, P("model"), P("model"))(q)


def mixed(w: jax.Array, x: jax.Array) -> jax.Array:
    y = jnp.tanh(x @ w)
    y = product(y, jnp.sin(w).T)
    return attention(y @ w) * 2


def partly(x: jax.Array) -> jax.Array:
    def inner(x: jax.Array) -> jax.Array:
        return jax.lax.psum(jnp.sin(x), "data")

    return by_hand(inner, P("data"), P(), axis_names={"data"})(x * 2) + 1


def drawn(keys: jax.Array, x: jax.Array) -> jax.Array:
    def inner(keys: jax.Array, x: jax.Array) -> jax.Array:
        noise = jax.vmap(lambda key: jax.random.normal(key, x.shape[1:]))(keys)
        return x + noise * jax.jit(jnp.cos)(x)

    return by_hand(inner, (P("data"), P("data")), P("data"))(keys, x)


def in_a_loop(w: jax.Array, x: jax.Array) -> jax.Array:
    return jax.lax.scan(lambda c, _: (jnp.tanh(mixed(w, c)) @ w.T, c.sum()), x, None, length=3)[0]


def in_a_branch(w: jax.Array, x: jax.Array) -> jax.Array:
    return jax.lax.cond(x.sum() > 0, mixed, lambda w, x: x @ w, w, x)


W, X = 0.1 * normal(16, 32), normal(8, 16)
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "product": (product, (normal(8, 16), normal(16, 4))),
    "exchanged": (exchanged, (normal(16, 8),)),
    "mixed": (mixed, (W, X)),
    "gradients": (jax.value_and_grad(lambda w, x: jnp.mean(mixed(w, x) ** 2)), (W, X)),
    "loop": (in_a_loop, (W, X)),
    "gradients of a loop": (jax.grad(lambda w, x: jnp.mean(in_a_loop(w, x) ** 2)), (W, X)),
    "branch": (in_a_branch, (W, X)),
    "vmap": (lambda w, x: jax.vmap(mixed, in_axes=(None, 0))(w, jnp.stack([x, 2 * x])), (W, X)),
    "some axes": (partly, (normal(8, 16),)),
    "keys": (drawn, (jax.random.split(jax.random.key(1), 8), normal(8, 16))),
    "twice": (lambda x: jax.jit(attention)(x) + jax.jit(attention)(x + 1), (normal(8, 16),)),
}


@pytest.mark.parametrize("name", CASES)
def test_results(name: str) -> None:
    fun, args = CASES[name]
    assert_equal(stablehlo_alpa.parallelize(fun, method=NAMED)(*args), jax.jit(fun)(*args))


def test_what_it_takes_and_gives_is_pinned() -> None:
    step = stablehlo_alpa.parallelize(product, method=NAMED)
    a, b = CASES["product"][1]
    plan = step.plan(a, b)
    assert plan.input_shardings == ((P("data", "model"), P("model")), {})
    assert plan.output_shardings == P("data")
    [moved] = plan.communication()
    assert (moved.kind, moved.axes, moved.bytes) == ("all_reduce", ("model",), 4 * 4 * 4)
    assert plan.module_text("local").count("stablehlo.all_reduce") == 1
    assert step(a, b).sharding.is_equivalent_to(NamedSharding(MESH, P("data")), 2)


def test_what_it_does_is_priced() -> None:
    """The product and the hop of every turn of a ring, along the axis that it goes round."""
    (q,) = CASES["twice"][1]
    plan = stablehlo_alpa.parallelize(attention, method=NAMED).plan(q)
    [moved] = plan.communication()
    assert (moved.kind, moved.axes, moved.count) == ("collective_permute", ("model",), 4)
    assert moved.bytes == 4 * (q.nbytes / 4)
    without = stablehlo_alpa.parallelize(lambda q: q, method=NAMED).plan(q)
    assert plan.step_time_s > without.step_time_s


def test_shardings_for_a_jit() -> None:
    (a, _), out = stablehlo_alpa.shardings(product, MESH, *CASES["product"][1])
    assert a.spec == P("data", "model")
    assert out.spec == P("data")


@pytest.mark.parametrize(
    "method",
    [
        stablehlo_alpa.ShardParallel(mesh_shape=(2, 4)),
        ManualSharding(in_specs={}, mesh_shape=(4, 2), names=("model", "data")),
    ],
)
def test_another_mesh_is_refused(method: Any) -> None:
    message = (
        r'a shard_map on the mesh .*"data"=2, "model"=4.* cannot run on the mesh .* axes must have '
        r"the same names and sizes in the same order, as ManualSharding\(mesh_shape=\(2, 4\), "
        r'names=\("data", "model"\)\) gives them'
    )
    with pytest.raises(CompileError, match=message):
        stablehlo_alpa.parallelize(product, method=method).plan(*CASES["product"][1])


def test_where_it_cannot_run() -> None:
    x = normal(8, 16)
    with pytest.raises(TraceError, match="attention contains a shard_map"):
        jax.jit(stablehlo_alpa.partition(attention))(x)
    method = ManualSharding(in_specs={}, mesh_shape=(2, 4), names=AXES, backend="shardy")
    with pytest.raises(CompileError, match=r"is split by hand \(shard_map\), .* take backend"):
        stablehlo_alpa.parallelize(attention, method=method)(x)

    def step(w: Any, x: jax.Array) -> Any:
        def loss(w: Any) -> jax.Array:
            return jnp.mean((attention(jnp.tanh(x @ w[0])) @ w[1]) ** 2)

        value, gradient = stablehlo_alpa.value_and_grad(loss)(w)
        return jax.tree.map(lambda a, b: a - b, w, gradient), value

    pipeline = stablehlo_alpa.PipeshardParallel(
        num_micro_batches=2,
        layers=stablehlo_alpa.AutoLayers(num_layers=2),
        stages=stablehlo_alpa.UniformStages(2),
    )
    w = [0.1 * normal(16, 16)] * 2
    with pytest.raises(CompileError, match="a shard_map cannot run in a pipeline"):
        stablehlo_alpa.parallelize(step, method=pipeline).plan(w, normal(16, 16))

    def talking(x: jax.Array) -> jax.Array:
        return by_hand(lambda x: (jax.debug.print("{}", x), x)[1], P("data"), P("data"))(x)

    with pytest.raises(TraceError, match=r"calls back .*print '\{\}'.* inside of a shard_map"):
        stablehlo_alpa.parallelize(talking, method=NAMED)(x)


def test_one_inside_of_another_is_refused() -> None:
    def nested(x: jax.Array) -> jax.Array:
        def outer(x: jax.Array) -> jax.Array:
            def inner(x: jax.Array) -> jax.Array:
                return jax.lax.psum(x, "model")

            return jax.shard_map(
                inner, in_specs=P(None, "model"), out_specs=P(), axis_names={"model"}
            )(x)

        return by_hand(outer, P("data"), P("data"), axis_names={"data"}, check_vma=False)(x)

    with pytest.raises(CompileError, match="a shard_map inside of a shard_map cannot be planned"):
        stablehlo_alpa.parallelize(nested, method=NAMED).plan(normal(8, 16))


def test_all_to_alls_behind_each_other_run_where_dimensions_are_of_size_one() -> None:
    """XLA for CPU refuses the second by itself, whose blocks it finds among those of the first."""

    def inner(x: jax.Array) -> jax.Array:
        turned = jax.lax.all_to_all(jnp.transpose(x, (0, 2, 1, 3)), "data", 1, 1, tiled=True)
        return jax.lax.all_to_all(jnp.transpose(turned, (1, 0, 2, 3)), "data", 0, 0, tiled=True)

    x = normal(2, 6, 2, 3)
    fun = by_hand(inner, P("data"), P("data"))
    found = stablehlo_alpa.parallelize(fun, method=NAMED)(x)
    wanted = jax.vmap(inner, axis_name="data")(x[:, None])
    assert_equal(found, wanted.reshape(found.shape))


def test_fourier_transforms_run_whatever_follows_them() -> None:
    """XLA for CPU lays the result out for the all-gather, and refuses its own layout."""

    def inner(x: jax.Array) -> jax.Array:
        start = jax.lax.axis_index("data") * 8
        part = jax.lax.dynamic_slice(jnp.fft.fft2(x), (0, start), (8, 8))
        whole = jax.lax.all_gather(part[4:], "data", axis=1, tiled=True)
        return jax.lax.dynamic_slice(whole, (0, start), (4, 8))

    x = normal(8, 16).astype(jnp.complex64)
    fun = by_hand(inner, P(), P(None, "data"), check_vma=False)
    found = stablehlo_alpa.parallelize(fun, method=NAMED)(x)
    assert_equal(found, jax.jit(jnp.fft.fft2)(x)[4:])
