"""Checks of equinox (``error_if``), wherever a step has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify
from jax.experimental.buffer_callback import buffer_callback
from jax.extend.core import Primitive
from jax.interpreters import mlir

import stablehlo_alpa
from stablehlo_alpa import (
    AutoLayers,
    CompileError,
    PipeshardParallel,
    ShardParallel,
    TraceError,
    UniformStages,
)


def x_of(*shape: int) -> jax.Array:
    return jax.random.normal(jax.random.key(0), shape)


def of_rows(h: jax.Array) -> jax.Array:
    def row(h: jax.Array) -> jax.Array:
        return equinox.error_if(h, h.sum() > 1e3, "a row is too large")

    return jax.vmap(row)(h)


def of_all(h: jax.Array) -> jax.Array:
    return equinox.error_if(h, h > 1e2, "an element is too large")


def by_branch(h: jax.Array) -> jax.Array:
    number = jnp.where(h.max() > 1e4, 1, 0)
    return equinox.internal.branched_error_if(h, h.max() > 1e2, number, ["large", "very large"])


@jax.checkpoint
def computed_again(h: jax.Array) -> jax.Array:
    return of_all(jnp.sin(h) * h)


def in_backward(h: jax.Array) -> jax.Array:
    @jax.custom_vjp
    def same(h: jax.Array) -> jax.Array:
        return h

    same.defvjp(lambda h: (h, h), lambda h, g: (equinox.error_if(g, h > 1e2, "large backward"),))
    return same(h)


# With the message of the inputs that fail.
CHECKS: dict[str, tuple[Callable[[jax.Array], jax.Array], str]] = {
    "rows": (of_rows, "a row is too large"),
    "all": (of_all, "an element is too large"),
    "branch": (by_branch, "very large"),
    "computed again": (computed_again, "an element is too large"),
    "backward": (in_backward, "large backward"),
}

METHODS = {
    "one mesh": ShardParallel(mesh_shape=(2, 4)),
    "micro-batches": ShardParallel(mesh_shape=(8,), num_micro_batches=2),
    "stages": PipeshardParallel(
        num_micro_batches=2, layers=AutoLayers(num_layers=2), stages=UniformStages(2)
    ),
}


def step_of(check: Callable[[jax.Array], jax.Array], gradient: Any) -> Callable[..., Any]:
    def step(w: Any, x: jax.Array) -> Any:
        def loss(w: Any) -> jax.Array:
            h = check(x @ w[0])
            return jnp.mean((jnp.tanh(h) @ w[1]) ** 2)

        value, gradients = gradient(loss)(w)
        return jax.tree.map(lambda a, b: a - 0.1 * b, w, gradients), value

    return step


def assert_checks(step: Any, oracle: Any, args: Any, wrong: Any, message: str) -> None:
    """What passes is that of the oracle, before and after what does not."""
    for _ in range(2):
        found, wanted = step(*args), oracle(*args)
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
        with pytest.raises(jax.errors.JaxRuntimeError, match=message):
            step(*wrong)
        with pytest.raises((RuntimeError, ValueError), match=message):
            jax.block_until_ready(oracle(*wrong))


@pytest.mark.parametrize("gradient", [jax.value_and_grad, stablehlo_alpa.value_and_grad])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("check", CHECKS)
def test_in_a_loss(check: str, method: str, gradient: Any) -> None:
    function, message = CHECKS[check]
    step = step_of(function, gradient)
    w, x = [0.1 * x_of(16, 16), x_of(16, 16)], x_of(8, 16)
    # One example of the second micro-batch is wrong.
    wrong = x.at[6].multiply(1e6)
    parallel = stablehlo_alpa.parallelize(step, method=METHODS[method], batch_argnums=(1,))
    assert_checks(parallel, jax.jit(step), (w, x), (w, wrong), message)


@pytest.mark.slow
def test_in_processes() -> None:
    step = step_of(of_rows, jax.value_and_grad)
    w, x = [0.1 * x_of(16, 16), x_of(16, 16)], x_of(8, 16)
    cluster = stablehlo_alpa.RayCluster()
    parallel = stablehlo_alpa.parallelize(
        step, method=METHODS["stages"], batch_argnums=(1,), cluster=cluster
    )
    assert_checks(parallel, jax.jit(step), (w, x), (w, 1e6 * x), "a row is too large")


def checked_primitive(traces: bool) -> Callable[[jax.Array], jax.Array]:
    """A primitive as equinox makes them: jax sees what it calls when it lowers it."""

    def compute(x: jax.Array) -> jax.Array:
        return equinox.error_if(2 * x, x > 1e2, "an operand is too large")

    def unknown(x: jax.Array) -> jax.Array:
        raise NotImplementedError

    doubled = Primitive("doubled")
    doubled.def_impl(compute if traces else unknown)
    doubled.def_abstract_eval(lambda x: x)
    mlir.register_lowering(doubled, mlir.lower_fun(compute, multiple_results=False))
    return doubled.bind


def test_in_a_primitive() -> None:
    doubled = checked_primitive(traces=True)

    def fun(x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 2, lambda _, x: doubled(x), jnp.tanh(x)) @ doubled(x).T

    x = x_of(8, 16)
    parallel = stablehlo_alpa.parallelize(fun, method=METHODS["one mesh"])
    message = "an operand is too large"
    assert_checks(parallel, jax.jit(fun), (x,), (1e6 * x,), message)


def test_what_only_a_lowered_program_calls() -> None:
    x = x_of(8, 16)
    hidden = checked_primitive(traces=False)
    copy = buffer_callback(lambda context, out, x: None, jax.typeof(x))
    for fun in (lambda x: hidden(x), lambda x: copy(x)):
        with pytest.raises(TraceError, match=r"calls back into Python \(xla_\w+_\*\) from an oper"):
            stablehlo_alpa.parallelize(fun, method=METHODS["one mesh"]).plan(x)


def test_effects_that_no_plan_has() -> None:
    def looks(x: jax.Array) -> jax.Array:
        jax.debug.inspect_array_sharding(x, callback=print)
        return x

    def checks(x: jax.Array) -> jax.Array:
        checkify.check(jnp.all(x < 1e2), "too large")
        return 2 * x

    x = x_of(8, 16)
    with pytest.raises(TraceError, match=r"inspect_sharding: Debug.*plan\.explain"):
        stablehlo_alpa.parallelize(looks).plan(x)
    checked = checkify.checkify(checks)
    error, found = stablehlo_alpa.parallelize(checked)(x)
    assert error.get() is None
    np.testing.assert_array_equal(found, 2 * x)
    error, _ = stablehlo_alpa.parallelize(checked)(1e6 * x)
    assert "too large" in str(error.get())


def test_in_a_loop_between_micro_batches() -> None:
    def of_turns(h: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 2, lambda _, h: of_all(jnp.sin(h)), h)

    step = step_of(of_turns, jax.value_and_grad)
    w, x = [x_of(16, 16)] * 2, x_of(8, 16)
    with pytest.raises(CompileError, match=r"error_if of equinox.*EQX_ON_ERROR=nan"):
        stablehlo_alpa.parallelize(step, method=METHODS["micro-batches"]).plan(w, x)
