"""Slices and updates of split dimensions: devices take and write what they have of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import test_random_plans
from jax import lax
from jax.sharding import PartitionSpec as P
from programs import Program, real, registering, whole

import stablehlo_alpa
from stablehlo_alpa import ManualSharding
from stablehlo_alpa.compiler.measures import Traffic

MESHES = {**test_random_plans.MESHES, "3": (("x", 3),)}
PROGRAMS: dict[str, Program] = {}
program = registering(PROGRAMS, 1e-4)


def with_gradients(fun: Callable[..., Any], *args: Any) -> Any:
    def loss(*args: Any) -> Any:
        found = fun(*args)
        weighted = [jnp.sum(jnp.sin(jnp.arange(y.size)) * y.ravel()) for y in found]
        return sum(weighted), found

    return jax.value_and_grad(loss, tuple(range(len(args))), has_aux=True)(*args)


@program(real(24, 48))
def first_middle_and_last(x: Any) -> Any:
    return with_gradients(lambda x: (x[:, 0], x[7], x[-1, ::5], x[3:4, 11:12], x[:, 23::40]), x)


@program(real(24, 48))
def a_few(x: Any) -> Any:
    """Within a block, over the border of two, and longer than one."""
    return with_gradients(lambda x: (x[:5], x[2:9, 4:8], x[17:, -2:], x[:11, 30:47]), x)


# Numbers in the middle, on borders of blocks, and outside.
STARTS = np.array([0, 3, 5, 8, 23, 24, 47, -1, -30, 1000, 2**31 - 1, -(2**31)], np.int32)


@program(real(24, 48), STARTS)
def dynamic_slices(x: Any, starts: Any) -> Any:
    def slices(x: Any) -> Any:
        one = [lax.dynamic_slice(x, (i, j), (1, 48)) for i, j in zip(starts, starts, strict=True)]
        few = [lax.dynamic_slice(x, (i, 5), (7, 9)) for i in starts[:8]]
        return jnp.concatenate(one), jnp.stack(few)

    return with_gradients(slices, x)


@program(real(24, 48), real(1, 48), real(7, 9), STARTS)
def dynamic_updates(x: Any, row: Any, block: Any, starts: Any) -> Any:
    def updates(x: Any, row: Any, block: Any) -> Any:
        for i in starts:
            x = lax.dynamic_update_slice(x, row * jnp.sin(i.astype(x.dtype)), (i, i)) * 0.9
        for i, j in zip(starts, starts[::-1], strict=True):
            x = lax.dynamic_update_slice(x * 0.9, block, (i, j))
        return (x,)

    return with_gradients(updates, x, row, block)


@program(whole(9, 24, 6, dtype=np.int8), whole(9, 24, 6).astype(bool), STARTS.astype(np.uint8))
def other_types(x: Any, mask: Any, starts: Any) -> Any:
    masks = [lax.dynamic_update_slice(mask, ~mask[2:3], (i, i)) for i in starts[:4]]
    numbers = [lax.dynamic_update_slice(x, x[:7] + 1, (i, i)) for i in starts]
    slices = [lax.dynamic_slice(x, (i, i), (2, 6)) for i in starts]
    return sum(numbers), slices, masks, mask[:, 0]


@program(real(13, 10), np.int32(11))
def odd_sizes(x: Any, start: Any) -> Any:
    def parts(x: Any) -> Any:
        y = jnp.tanh(x @ x.T)
        z = lax.dynamic_update_slice(y, jnp.cos(y[3:6]), (start, 0))
        return y[:, 12], y[11], lax.dynamic_slice(y, (start, start), (3, 1)), z

    return with_gradients(parts, x)


@program(real(16, 8), real(6, 8))
def steps_of_a_cache(cache: Any, tokens: Any) -> Any:
    def step(state: Any, token: Any) -> Any:
        cache, position = state
        cache = lax.dynamic_update_slice(cache, token[None], (position, 0))
        scores = jnp.where(jnp.arange(16) <= position, cache @ token, -jnp.inf)
        return (cache, position + 1), jax.nn.softmax(scores) @ cache

    return lax.scan(step, (cache, jnp.int32(5)), tokens)


def check(program: Program, name: str, mesh: str, seeds: range) -> None:
    """Random plans of a program equal plain ``jax.jit``."""
    prepared = test_random_plans.prepare(program)
    test_random_plans.check_plans(program, *prepared, MESHES[mesh], seeds, name, has_dead_ends=True)


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_random_plans_equal_jit(name: str, mesh: str) -> None:
    # In the form for CPU on every other mesh, in that for TPU on those between.
    number = list(PROGRAMS).index(name) + list(MESHES).index(mesh)
    check(PROGRAMS[name], name, mesh, range(number, number + 1))


@pytest.mark.matrix
@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_many_random_plans_equal_jit(name: str, mesh: str) -> None:
    check(PROGRAMS[name], name, mesh, range(10, 40))


def sent_bytes(
    fun: Callable[..., Any], args: tuple[Any, ...], specs: dict[int | str, Any]
) -> float:
    """Payload of what is sent with arguments where they are pinned, results being right."""
    method = ManualSharding(mesh_shape=(8,), names=("x",), in_specs=specs)
    parallel = stablehlo_alpa.parallelize(fun, method=method)
    for found, value in zip(
        jax.tree.leaves(parallel(*args)), jax.tree.leaves(jax.jit(fun)(*args)), strict=True
    ):
        np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-4)
    traffic = Traffic.of(parallel.plan(*args).module_text("planned"))
    return float(traffic.bytes @ traffic.count)


def test_a_column_of_split_columns_is_not_gathered() -> None:
    x = real(64, 512)
    assert sent_bytes(lambda x: x[:, 0] * 2, (x,), {0: P(None, "x")}) <= 2 * 64 * 4
    assert sent_bytes(lambda x: x[:, 300:310] * 2, (x,), {0: P(None, "x")}) <= 2 * 64 * 10 * 4


def test_a_cache_that_is_split_by_position_is_written_where_it_lies() -> None:
    def write(cache: Any, rows: Any, position: Any) -> Any:
        return lax.dynamic_update_slice(cache, rows, (0, position, 0))

    specs: dict[int | str, Any] = {0: P(None, "x", None)}
    for count in (1, 3, 100):
        args = (real(4, 256, 16), real(4, count, 16), np.int32(90))
        assert sent_bytes(write, args, specs) == 0
