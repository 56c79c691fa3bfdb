"""``partition`` and ``shardings``: the planner behind a plain ``jax.jit``."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from often import each_with_one_of

import stablehlo_alpa
from stablehlo_alpa import InfeasibleError, MeshError, ShardParallel, TraceError
from stablehlo_alpa.partitioner import region, region_planner
from stablehlo_alpa.partitioner.asked import Asked
from stablehlo_alpa.partitioner.region import Region

Spec = PartitionSpec


@pytest.fixture
def mesh() -> Mesh:
    return jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


@pytest.fixture(params=["shardy", "gspmd"])
def partitioner(request: Any) -> Iterator[str]:
    jax.config.update("jax_use_shardy_partitioner", request.param == "shardy")
    yield request.param
    jax.config.update("jax_use_shardy_partitioner", True)


def mlp(w: Any, x: jax.Array) -> jax.Array:
    return jax.nn.gelu(x @ w["up"]) @ w["down"]


def weights(hidden: int = 64, inner: int = 256) -> Any:
    up, down = jax.random.split(jax.random.key(0))
    return {
        "up": 0.1 * jax.random.normal(up, (hidden, inner)),
        "down": 0.1 * jax.random.normal(down, (inner, hidden)),
    }


def batch(size: int = 32, hidden: int = 64) -> jax.Array:
    return jax.random.normal(jax.random.key(1), (size, hidden))


def on(mesh: Mesh, *spec: Any) -> NamedSharding:
    return NamedSharding(mesh, Spec(*spec))


def collectives(function: Any, *args: Any) -> Counter[str]:
    text = function.lower(*args).compile().as_text()
    kinds = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
    return Counter(re.findall(rf"= \S+ ({kinds})(?:-start)?\(", text))


def assert_equal(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        scale = max(1.0, float(np.max(np.abs(np.asarray(b, np.float64)), initial=0)))
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


def test_a_split_batch_stays_split(mesh: Mesh, partitioner: str) -> None:
    block = stablehlo_alpa.partition(mlp)
    step = jax.jit(lambda w, x: 2 * block(w, x), in_shardings=(None, on(mesh, "data")))
    w, x = weights(), batch()
    assert_equal(step(w, x), 2 * mlp(w, x))
    out = step.lower(w, x).compile().output_shardings
    assert tuple(out.spec)[:1] == ("data",)


def test_megatron_needs_one_all_reduce(mesh: Mesh, partitioner: str) -> None:
    block = stablehlo_alpa.partition(mlp)
    into = ({"up": on(mesh, None, "model"), "down": on(mesh, "model")}, on(mesh, "data"))
    step = jax.jit(block, in_shardings=into, out_shardings=on(mesh, "data"))
    w, x = weights(), batch()
    assert_equal(step(w, x), mlp(w, x))
    assert collectives(step, w, x) == {"all-reduce": 1}


def value_and_grad(fun: Callable[..., Any]) -> Callable[..., Any]:
    return jax.value_and_grad(lambda w, x: jnp.mean(fun(w, x) ** 2))


def scanned(fun: Callable[..., Any]) -> Callable[..., Any]:
    def run(w: Any, x: jax.Array) -> Any:
        def body(carry: jax.Array, _: Any) -> Any:
            return jnp.tanh(fun(w, carry)), carry.sum()

        return jax.lax.scan(body, x, None, length=3)

    return run


def second_order(fun: Callable[..., Any]) -> Callable[..., Any]:
    def norm(w: Any, x: jax.Array) -> jax.Array:
        gradient = jax.grad(lambda y: jnp.sum(fun(w, y) ** 2))(x)
        return jnp.sum(gradient**2)

    return jax.grad(norm, argnums=1)


def mean_square(fun: Callable[..., Any]) -> Callable[..., Any]:
    return lambda w, x: jnp.mean(fun(w, x) ** 2)


def forward_mode(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Results and tangents, in a direction that only some of the arguments have."""
    return lambda w, x: jax.jvp(lambda x: fun(w, x), (x,), (jax.tree.map(jnp.cos, x),))


def linearized(fun: Callable[..., Any]) -> Callable[..., Any]:
    def run(w: Any, x: jax.Array) -> Any:
        y, push = jax.linearize(fun, w, x)
        pull = jax.linear_transpose(push, w, x)
        return y, push(w, 2 * x), pull(y)

    return run


def along(fun: Callable[..., Any], w: Any, x: jax.Array) -> Callable[[jax.Array], jax.Array]:
    """The function on three directions, whose Jacobian is small."""
    return lambda t: fun(w, x * t[0] + jnp.sin(x) * t[1] + t[2])


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": value_and_grad,
    "vmap": lambda fun: lambda w, x: jax.vmap(fun, in_axes=(None, 0))(w, jnp.stack([x, 2 * x])),
    "grad of vmap": lambda fun: value_and_grad(
        lambda w, x: jax.vmap(fun, in_axes=(None, 0))(w, jnp.stack([x, 2 * x]))
    ),
    "vmap of grad": lambda fun: (
        lambda w, x: jax.vmap(value_and_grad(fun), in_axes=(None, 0))(w, jnp.stack([x, 2 * x]))
    ),
    "scan": scanned,
    "grad of scan": lambda fun: value_and_grad(lambda w, x: scanned(fun)(w, x)[0]),
    "checkpoint": lambda fun: value_and_grad(jax.checkpoint(fun)),
    "grad of grad": second_order,
    "cond": lambda fun: lambda w, x: jax.lax.cond(x[0, 0] > 0, fun, lambda w, x: x, w, x),
    "jvp": forward_mode,
    "linearize": linearized,
    "jvp of grad": lambda fun: forward_mode(jax.grad(mean_square(fun), argnums=1)),
    "grad of jvp": lambda fun: value_and_grad(lambda w, x: forward_mode(fun)(w, x)[1]),
    "vmap of jvp": lambda fun: (
        lambda w, x: jax.vmap(forward_mode(fun), in_axes=(None, 0))(w, jnp.stack([x, 2 * x]))
    ),
    "jvp of vmap": lambda fun: (
        lambda w, x: forward_mode(jax.vmap(fun, in_axes=(None, 0)))(w, jnp.stack([x, 2 * x]))
    ),
    "jvp of scan": lambda fun: forward_mode(scanned(fun)),
    "jvp of jvp": lambda fun: forward_mode(forward_mode(fun)),
    "jacfwd": lambda fun: lambda w, x: jax.jacfwd(along(fun, w, x))(jnp.ones(3)),
    "jacrev": lambda fun: lambda w, x: jax.jacrev(along(fun, w, x))(jnp.ones(3)),
    "hessian": lambda fun: (
        lambda w, x: jax.hessian(lambda t: jnp.sum(along(fun, w, x)(t) ** 2))(jnp.ones(3))
    ),
    "hvp": lambda fun: lambda w, x: jax.linearize(jax.grad(mean_square(fun), 1), w, x)[1](w, x),
}


@pytest.mark.parametrize(
    ("name", "partitioner"),
    each_with_one_of(TRANSFORMS, ["shardy", "gspmd"]),
    indirect=["partitioner"],
)
def test_transforms(name: str, mesh: Mesh, partitioner: str) -> None:
    transform = TRANSFORMS[name]
    step = jax.jit(transform(stablehlo_alpa.partition(mlp)), in_shardings=(None, on(mesh, "data")))
    w, x = weights(), batch()
    assert_equal(step(w, x), jax.jit(transform(mlp))(w, x), 2e-5)


def test_integers_keys_captures_and_statics(mesh: Mesh) -> None:
    offset = jnp.arange(64.0)

    @stablehlo_alpa.partition(static_argnums=3)
    def dropped(key: Any, x: jax.Array, tokens: jax.Array, rate: float, *, scale: Any) -> Any:
        keep = jax.random.bernoulli(key, 1 - rate, x.shape)
        embedded = jax.nn.one_hot(tokens, 64) @ x
        return {"y": jnp.where(keep, scale * x + offset, 0), "key": jax.random.fold_in(key, 1)}, (
            embedded,
            tokens + 1,
        )

    def run(fun: Any) -> Any:
        def loss(x: jax.Array, tokens: jax.Array, shift: Any) -> Any:
            (found, rest) = fun(jax.random.key(3), x + shift, tokens, 0.25, scale=2.0)
            return jnp.sum(found["y"] ** 2) + jnp.sum(rest[0]), (found, rest)

        return jax.value_and_grad(loss, argnums=(0, 2), has_aux=True)

    x, tokens = batch(64), jnp.arange(64) % 7
    step = jax.jit(run(dropped), in_shardings=(on(mesh, "data"), on(mesh, "data"), None))
    assert_equal(step(x, tokens, 0.5), jax.jit(run(dropped.__wrapped__))(x, tokens, 0.5))


def test_tracers_that_are_captured_are_differentiated(mesh: Mesh) -> None:
    def loss(w: Any, x: jax.Array, wrap: Any) -> jax.Array:
        return jnp.sum(wrap(lambda y: mlp(w, y))(x) ** 2)

    w, x = weights(), batch()
    found = jax.jit(
        jax.grad(lambda w, x: loss(w, x, stablehlo_alpa.partition)),
        in_shardings=(None, on(mesh, "data")),
    )(w, x)
    assert_equal(found, jax.grad(lambda w, x: loss(w, x, lambda f: f))(w, x), 2e-5)


def test_borders_cost_what_the_shardings_imply(mesh: Mesh, partitioner: str) -> None:
    first, second = stablehlo_alpa.partition(mlp), stablehlo_alpa.partition(mlp)
    megatron = {"up": on(mesh, None, "model"), "down": on(mesh, "model")}
    rows = on(mesh, "data")

    def program(w: Any, x: jax.Array) -> jax.Array:
        y = jax.lax.with_sharding_constraint(first(w, x), rows)
        # By hand: each device its rows.
        y = jax.lax.with_sharding_constraint(jnp.tanh(y) + 1, rows)
        return second(w, y)

    step = jax.jit(program, in_shardings=(megatron, rows), out_shardings=rows)
    w, x = weights(), batch()
    assert_equal(step(w, x), mlp(w, jnp.tanh(mlp(w, x)) + 1), 2e-5)
    assert collectives(step, w, x) == {"all-reduce": 2}


def test_donated_buffers(mesh: Mesh) -> None:
    update = stablehlo_alpa.partition(
        lambda w, x: jax.tree.map(lambda p, g: p - 0.1 * g, w, value_and_grad(mlp)(w, x)[1])
    )
    w, x = jax.device_put(weights(), on(mesh)), batch()
    expected = update(w, x)
    step = jax.jit(update, donate_argnums=0, out_shardings=on(mesh))
    found = step(w, x)
    assert_equal(found, expected)
    assert w["up"].is_deleted()


def test_equal_regions_are_planned_once(mesh: Mesh) -> None:
    block = stablehlo_alpa.partition(mlp)

    def deep(w: Any, x: jax.Array) -> jax.Array:
        for _ in range(4):
            x = block(w, x)
        return x

    region_planner._plans.clear()
    region._rules.clear()
    step = jax.jit(deep, in_shardings=(None, on(mesh, "data")))
    w, x = weights(), batch()
    step(w, x)
    assert len(region_planner._plans) == len(region._rules) == 1


def test_where_nothing_is_to_be_split_it_is_the_function(mesh: Mesh) -> None:
    block = stablehlo_alpa.partition(mlp)
    w, x = weights(), batch()
    assert_equal(block(w, x), mlp(w, x))
    assert_equal(jax.jit(block)(w, x), mlp(w, x))
    inside = jax.shard_map(
        block, mesh=mesh, in_specs=(Spec(), Spec("data")), out_specs=Spec("data"), check_vma=False
    )
    assert_equal(jax.jit(inside)(w, x), mlp(w, x))


def test_sizes_that_do_not_divide(mesh: Mesh) -> None:
    block = stablehlo_alpa.partition(mlp)
    w, x = weights(30, 70), batch(6, 30)
    step = jax.jit(block, in_shardings=(None, on(mesh, "data")))
    assert_equal(step(w, x), mlp(w, x))


def test_a_part_of_an_axis_is_no_sharding_of_the_body(partitioner: str) -> None:
    # Two of the eight blocks of the axis split the dimension of size 2, before the body or in it.
    line = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
    x, w = batch(16), weights()["up"]
    rows = jax.device_put(x, on(line, "data"))

    def inside(x: jax.Array) -> jax.Array:
        return jnp.tanh(x.reshape(2, 8, 64) @ w)

    def outside(x: jax.Array) -> jax.Array:
        return stablehlo_alpa.partition(lambda x: jnp.tanh(x @ w))(x.reshape(2, 8, 64))

    expected = jax.jit(inside)(x)
    assert_equal(jax.jit(stablehlo_alpa.partition(inside))(rows), expected)
    assert_equal(jax.jit(outside)(rows), expected)


@pytest.mark.slow
def test_what_is_parallelised_inside_of_a_body_is_a_part_of_it(mesh: Mesh) -> None:
    inner = stablehlo_alpa.parallelize(mlp, method=ShardParallel(mesh_shape=(8,)))
    block = stablehlo_alpa.partition(lambda w, x: x + inner(w, x))
    step = jax.jit(jax.grad(lambda w, x: block(w, x).sum()), in_shardings=(None, on(mesh, "data")))
    w, x = weights(), batch()
    assert_equal(step(w, x), jax.grad(lambda w: (x + mlp(w, x)).sum())(w))


def test_a_body_inside_of_another_one_is_a_part_of_it(mesh: Mesh) -> None:
    inner = stablehlo_alpa.partition(mlp)
    outer = stablehlo_alpa.partition(lambda w, x: inner(w, x + inner(w, x)))
    w, x = weights(), jax.device_put(batch(), on(mesh, "data"))
    assert_equal(jax.jit(outer)(w, x), mlp(w, x + mlp(w, x)))


def test_collectives_over_an_axis_around_it_leave_the_function(mesh: Mesh) -> None:
    def centred(x: jax.Array) -> jax.Array:
        return jnp.tanh(x - jax.lax.pmean(x, "data"))

    body, x = stablehlo_alpa.partition(centred), batch()
    rows: Any = jax.vmap(body, axis_name="data")
    expected = jax.grad(lambda x: (jnp.tanh(x - x.mean(0)) ** 2).sum())(x)
    assert_equal(jax.jit(jax.grad(lambda x: (rows(x) ** 2).sum()))(x), expected)
    split: Any = {"mesh": mesh, "in_specs": Spec("data"), "out_specs": Spec("data")}
    found, original = (jax.jit(jax.shard_map(fun, **split))(x) for fun in (body, centred))
    assert_equal(found, original)


def test_what_cannot_be_planned_is_refused(mesh: Mesh) -> None:
    def printing(x: jax.Array) -> jax.Array:
        jax.debug.print("{}", x)
        return x

    x = batch()
    (size,) = jax.export.symbolic_shape("b")
    with pytest.raises(TraceError, match=r"has shape \(b, 64\), dynamic shapes cannot be planned"):
        jax.export.export(jax.jit(stablehlo_alpa.partition(jnp.tanh)))(
            jax.ShapeDtypeStruct((size, 64), jnp.float32)
        )
    with pytest.raises(TraceError, match="printing calls back into Python"):
        jax.jit(stablehlo_alpa.partition(printing))(x)
    with pytest.raises(TraceError, match="has no array arguments"):
        stablehlo_alpa.partition(lambda: 1)()
    with pytest.raises(MeshError, match="mesh of the program around it"):
        stablehlo_alpa.partition(mlp, method=ShardParallel(mesh_shape=(8,)))
    with pytest.raises(ValueError, match="backend='shardy' is of a whole program"):
        stablehlo_alpa.partition(mlp, method=ShardParallel(backend="shardy"))
    with pytest.raises(ValueError, match="num_micro_batches=2 is of a whole step"):
        stablehlo_alpa.partition(mlp, method=ShardParallel(num_micro_batches=2))
    pipeline: Any = stablehlo_alpa.PipeshardParallel()
    with pytest.raises(TypeError, match=r"method is Pipeshard.* must be ShardParallel"):
        stablehlo_alpa.partition(mlp, method=pipeline)
    with pytest.raises(TraceError, match="argument number 2 is out of range, there are 1"):
        stablehlo_alpa.partition(jnp.tanh, static_argnums=2)(x)
    explicit = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Explicit,))
    placed = jax.device_put(x, NamedSharding(explicit, Spec("x")))
    with pytest.raises(TraceError, match="explicit axes"):
        jax.jit(stablehlo_alpa.partition(jnp.tanh))(placed)


@pytest.mark.parametrize(
    "method", [ShardParallel(num_micro_batches=2), stablehlo_alpa.DataParallel()]
)
def test_shardings_of_what_is_of_a_whole_step_are_refused(mesh: Mesh, method: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="parallelize"):
        stablehlo_alpa.shardings(mlp, mesh, weights(), batch(), method=method)


@pytest.mark.parametrize(
    "fun",
    [
        lambda w, x: (w["up"].sum(), x),
        lambda w, x: (x @ w["up"], x @ w["up"]),
        lambda w, x: (jax.lax.stop_gradient(w["up"]).sum() + x.sum(), x),
    ],
)
def test_a_derivative_may_need_nothing_of_the_function(
    mesh: Mesh, partitioner: str, fun: Callable[..., Any]
) -> None:
    w, x = jax.device_put(weights(), on(mesh)), jax.device_put(batch(), on(mesh, "data"))

    def gradient(fun: Callable[..., Any]) -> Any:
        return jax.jit(jax.grad(lambda w, x: fun(w, x)[0].sum(), argnums=(0, 1)))(w, x)

    assert_equal(gradient(stablehlo_alpa.partition(fun)), gradient(fun))


def test_a_region_that_does_not_fit_says_so(mesh: Mesh) -> None:
    block = stablehlo_alpa.partition(mlp, method=ShardParallel(memory_budget="1KiB"))
    step = jax.jit(block, in_shardings=(None, on(mesh, "data")))
    with pytest.raises(Exception, match=r"mlp.*memory|InfeasibleError"):
        step(weights(), batch())


@pytest.mark.slow
def test_shardings_for_a_plain_jit(mesh: Mesh) -> None:
    def step(w: Any, x: jax.Array, rate: float) -> Any:
        loss, gradients = value_and_grad(mlp)(w, x)
        return jax.tree.map(lambda p, g: p - rate * g, w, gradients), loss

    w, x = weights(), batch(256)
    into, out = stablehlo_alpa.shardings(step, mesh, w, x, 0.1, donate_argnums=0)
    assert into[0] == out[0]
    assert any(into[1].spec)
    run = jax.jit(step, in_shardings=into, out_shardings=out)
    assert_equal(run(w, x, 0.1), step(w, x, 0.1), 2e-5)
    # What has a sharding keeps it.
    kept = jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=on(mesh, None, "model"))
    assert stablehlo_alpa.shardings(step, mesh, w, kept, 0.1)[0][1] == kept.sharding
    other = Mesh(np.array(jax.devices()), ("x",))
    with pytest.raises(MeshError, match="lies on mesh"):
        stablehlo_alpa.shardings(step, other, w, kept, 0.1)
    with pytest.raises(InfeasibleError):
        stablehlo_alpa.shardings(step, mesh, w, x, 0.1, method=ShardParallel(memory_budget="1KiB"))


def test_a_program_without_a_named_mesh_is_replicated(mesh: Mesh, caplog: Any) -> None:
    x = batch()
    region = Region(tanh, [jax.ShapeDtypeStruct(x.shape, x.dtype)], Asked())
    proposed = jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=on(mesh, "data"))
    nothing = Mesh(np.empty((), dtype=object), ())
    with caplog.at_level(logging.WARNING):
        found, lower, outputs, inputs = region.partition(nothing, [proposed], [proposed])
    assert "tanh is not planned" in caplog.text
    assert found.devices.size == 8
    assert all(one.is_fully_replicated for one in (*outputs, *inputs))
    assert_equal(lower(x), (jnp.tanh(x),))


def tanh(x: jax.Array) -> tuple[jax.Array]:
    return (jnp.tanh(x),)


BODIES: dict[str, Callable[[jax.Array], Any]] = {
    "an argument is a result": lambda x: (x, x * 2),
    "results are constants": lambda x: (jnp.ones(3), 1.0, x.sum()),
    "results are integers": lambda x: (jnp.argmax(x, axis=1), x > 3),
    "a result is None": lambda x: {"a": None, "b": x},
    "a result twice": lambda x: (x @ x.T,) * 2,
    "transposed": lambda x: x.T,
    "a loop": lambda x: jax.lax.scan(lambda c, row: (c + row, 2 * c), jnp.zeros(8), x),
    "a call into a library": lambda x: jnp.linalg.qr(x + 64 * jnp.eye(8))[1],
    "sorted": lambda x: jnp.sort(x, axis=0),
    "summed up": lambda x: jnp.cumsum(x, axis=0),
    "an empty result": lambda x: (x[:0], x),
    "a scalar": lambda x: x.mean(),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies(name: str, mesh: Mesh) -> None:
    x = jnp.arange(64.0).reshape(8, 8)
    for spec in (("data",), (None, "model"), (("model", "data"),)):
        step = jax.jit(stablehlo_alpa.partition(BODIES[name]), in_shardings=on(mesh, *spec))
        assert_equal(jax.tree.map(jnp.asarray, step(x)), jax.tree.map(jnp.asarray, BODIES[name](x)))


def test_devices_in_any_order() -> None:
    x = jnp.arange(64.0).reshape(8, 8)
    devices = np.array(jax.devices())
    step = jax.jit(stablehlo_alpa.partition(lambda x: jnp.tanh(x @ x.T)))
    for some in (devices[::-1], devices[[0, 4, 1, 5, 2, 6, 3, 7]], devices[2:6]):
        placed = jax.device_put(x, on(Mesh(some.reshape(2, -1), ("a", "b")), "b", "a"))
        assert_equal(step(placed), jnp.tanh(x @ x.T))


@jax.custom_vjp
def twice_the_gradient(x: jax.Array) -> jax.Array:
    return jnp.sin(x)


twice_the_gradient.defvjp(
    lambda x: (jnp.sin(x), x), lambda x, cotangent: (2 * cotangent * jnp.cos(x),)
)


@pytest.mark.parametrize("name", ["grad", "grad of vmap", "vmap of grad", "grad of scan"])
def test_a_body_without_forward_mode_has_reverse_mode(name: str, mesh: Mesh) -> None:
    def body(w: Any, x: jax.Array) -> jax.Array:
        return twice_the_gradient(mlp(w, x))

    transform = TRANSFORMS[name]
    step = jax.jit(transform(stablehlo_alpa.partition(body)), in_shardings=(None, on(mesh, "data")))
    w, x = weights(), batch()
    assert_equal(step(w, x), jax.jit(transform(body))(w, x), 2e-5)


def test_tangents_of_integers_and_keys(mesh: Mesh) -> None:
    def drawn(key: Any, x: jax.Array, tokens: jax.Array) -> Any:
        return {
            "y": x * jax.random.normal(key, x.shape),
            "key": jax.random.fold_in(key, 1),
        }, tokens + 1

    def run(fun: Any) -> Any:
        return lambda x: jax.jvp(lambda x: fun(jax.random.key(1), x, jnp.arange(8)), (x,), (x,))

    x = batch()
    (found, tokens), (tangents, _) = jax.jit(run(stablehlo_alpa.partition(drawn)))(x)
    (wanted, wanted_tokens), (wanted_tangents, _) = jax.jit(run(drawn))(x)
    assert_equal((found, tokens, tangents["y"]), (wanted, wanted_tokens, wanted_tangents["y"]))
    assert tangents["key"].dtype == jax.dtypes.float0


def test_derivatives_inside_of_a_shard_map(mesh: Mesh) -> None:
    def loss(fun: Any) -> Any:
        return jax.grad(lambda x, w: jnp.sum(fun(w, x) ** 2))

    w, x = weights(), batch()
    found = jax.shard_map(
        lambda w, x: loss(stablehlo_alpa.partition(mlp))(x, w),
        mesh=mesh,
        in_specs=(Spec(), Spec("data")),
        out_specs=Spec("data"),
    )
    assert_equal(jax.jit(found)(w, x), loss(mlp)(x, w))


@pytest.mark.parametrize(
    "transform",
    [
        lambda pull: pull,
        lambda pull: lambda w, c: jax.vmap(pull, in_axes=(None, 0))(w, jnp.stack([c, 2 * c])),
        lambda pull: jax.grad(lambda w, c: jnp.sum(pull(w, c) ** 3), argnums=(0, 1)),
        lambda pull: lambda w, c: jax.linear_transpose(lambda c: pull(w, c), c)(pull(w, c)),
    ],
    ids=["alone", "vmap", "grad", "twice"],
)
def test_linear_functions_are_transposed(transform: Any, mesh: Mesh, partitioner: str) -> None:
    def linear(w: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return 2 * x @ jnp.tanh(w), jnp.arange(3)

    def pulled(fun: Any) -> Any:
        def pull(w: jax.Array, cotangent: jax.Array) -> jax.Array:
            return jax.linear_transpose(lambda x: fun(w, x)[0], cotangent)(cotangent)[0]

        return transform(pull)

    w, x = jax.random.normal(jax.random.key(0), (8, 8)), jnp.arange(64.0).reshape(8, 8) / 64
    step = jax.jit(pulled(stablehlo_alpa.partition(linear)), in_shardings=(None, on(mesh, "data")))
    assert_equal(step(w, x), jax.jit(pulled(linear))(w, x), 2e-5)


def test_results_that_are_the_same_for_a_batch_are_not_batched(mesh: Mesh) -> None:
    def both(w: jax.Array, x: jax.Array) -> Any:
        return jnp.tanh(x @ w), {"w": 2 * w, "ones": jnp.ones(3)}

    def run(fun: Any) -> Any:
        return jax.vmap(fun, in_axes=(None, 0), out_axes=(0, None))

    w, x = jax.random.normal(jax.random.key(0), (8, 8)), jnp.arange(128.0).reshape(8, 2, 8) / 64
    step = jax.jit(run(stablehlo_alpa.partition(both)), in_shardings=(None, on(mesh, "data")))
    assert_equal(step(w, x), jax.jit(run(both))(w, x), 2e-5)
