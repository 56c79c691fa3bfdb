"""What is done to a stack gives the same in parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from alpa_runtime.local_call import LocalModule
from jax import lax

from stablehlo_alpa.frontend import Function, split_stacks, trace_function
from stablehlo_alpa.layers.scopes import STACK_SCOPE

ROWS, HEIGHT, WIDTH = 6, 4, 8
IDS = jnp.arange(3)


def cut(stack: jax.Array, sizes: tuple[int, ...], dim: int) -> jax.Array:
    """The stack, cut for layers and put together again, as the front end does it."""
    with jax.named_scope(STACK_SCOPE):
        parts = lax.split(stack, sizes, dim)
        return lax.concatenate([jnp.sin(part) for part in parts], dim)


def in_parts(step: Callable[..., Any], stacks: Any, x: jax.Array) -> tuple[list[Any], int]:
    """The results of a step whose stacks are arguments in parts, and how many it has."""
    program = split_stacks(trace_function(Function(step), (stacks, x), {}), ())
    assert program.stacks is not None
    known = program.stacks

    def types(values: Any) -> tuple[Any, ...]:
        return tuple((tuple(value.shape), np.dtype(value.dtype).name) for value in values)

    module = LocalModule("parts", program.text, types(program.inputs), types(program.outputs))
    given: list[jax.Array] = []
    for stack, array in zip(known.inputs, jax.tree.leaves((stacks, x)), strict=True):
        given += [array] if stack.is_whole else stack.cut(array)
    made = jax.jit(module)(*given)
    results = []
    for stack in known.outputs:
        own = [made[number] for number in stack.numbers]
        results.append(own[0] if stack.is_whole else jnp.concatenate(own, stack.dim))
    return results, len(given)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "elementwise": lambda w, g, x: (w - 0.1 * g, jnp.where(jnp.isnan(g), 0, w)),
    "rates of layers": lambda w, g, x: w - 0.9 ** jnp.arange(ROWS)[:, None, None] * g,
    "constants of layers": lambda w, g, x: w * np.arange(192, dtype="f").reshape(w.shape),
    "numbers of layers": lambda w, g, x: jnp.where(lax.broadcasted_iota(int, w.shape, 0) < 2, w, g),
    "sums": lambda w, g, x: (w / jnp.sqrt(jnp.sum(g * g)), g.mean(0), g.sum((0, 2)), g.sum(1)),
    "extrema": lambda w, g, x: (w.max(), w.min(0), jnp.prod(w, (0, 1)), g.max(2)),
    "truths": lambda w, g, x: (jnp.any(g > 1, 0), jnp.all(g > -2), jnp.all(w > g, 1)),
    "places of extrema": lambda w, g, x: (jnp.argmax(w, 0), jnp.argmin(w), jnp.argmax(w, 1)),
    "sums that begin with something": lambda w, g, x: lax.reduce(g, x[0], lax.add, (0, 1)),
    "statistics over layers": lambda w, g, x: (w - w.mean(0)) / w.std(0) + jax.nn.softmax(g, 0),
    "sorted": lambda w, g, x: (jnp.sort(w, 0), jnp.argsort(g, 1), lax.top_k(w, 2)[0]),
    "in order": lambda w, g, x: (jnp.cumsum(g, 0), lax.cummax(g, 1), w[::-1], jnp.roll(g, 1, 0)),
    "products": lambda w, g, x: (
        jnp.einsum("lab,lac->bc", g, w),
        jnp.einsum("lab,kab->lk", g, g),
        jnp.einsum("lab,lcb->lac", g, w),
        jnp.vdot(w, g),
    ),
    "reshaped": lambda w, g, x: (
        g.reshape(-1),
        (g.reshape(ROWS * HEIGHT, WIDTH) * 2).reshape(w.shape),
        g.reshape(2, 3, HEIGHT, WIDTH).mean(1),
        jnp.moveaxis(g, 0, 1).reshape(HEIGHT, -1),
    ),
    "transposed": lambda w, g, x: (jnp.transpose(g, (2, 0, 1)) ** 2).sum(2) + w.sum(1).T,
    "slices": lambda w, g, x: (w[1:5], w[::2], w[:, 1:3], w[2:] - g[:-2], jnp.diff(w, axis=0)),
    "padded": lambda w, g, x: (jnp.pad(g, ((1, 2), (0, 0), (0, 0))), jnp.pad(w, ((0, 0),) * 3)),
    "looked up": lambda w, g, x: (w[IDS], w[:, IDS], jnp.take_along_axis(w, jnp.argsort(g, 1), 1)),
    "looked up beside": lambda w, g, x: jnp.take(w, jnp.array([7, -9, 2]), 0, mode="fill"),
    "one row": lambda w, g, x: (
        lax.dynamic_index_in_dim(w, x[0].astype(int), 0),
        lax.dynamic_update_index_in_dim(g, w[0], x[0].astype(int), 0),
        lax.dynamic_update_slice(w, g[:, :1], (0, 2, 0)),
    ),
    "scattered": lambda w, g, x: (
        w.at[IDS].add(1.0),
        w.at[:, IDS].add(g[:, :3]),
        w.at[1:3].max(g[:2]),
    ),
    "windows": lambda w, g, x: (
        lax.reduce_window(w, -jnp.inf, lax.max, (2, 1, 1), (1, 1, 1), "SAME"),
        lax.reduce_window(w, 0.0, lax.add, (1, 2, 2), (1, 2, 2), "VALID"),
    ),
    "drawn": lambda w, g, x: w + jax.random.normal(jax.random.key(0), w.shape),
    "factorised": lambda w, g, x: jnp.linalg.qr(w)[0] @ g,
    "branches": lambda w, g, x: lax.cond(
        x[0] > 0, lambda: (w - g, g.sum(0)), lambda: (w, x[0] + w[0])
    ),
    "branches of branches": lambda w, g, x: lax.switch(
        x[0].astype(int),
        [lambda: w, lambda: lax.cond(x[1] > 0, lambda: w / jnp.sqrt(jnp.sum(g * g)), lambda: g)],
    ),
    "branches in loops": lambda w, g, x: lax.fori_loop(
        0, 3, lambda i, w: lax.cond(i > 1, lambda: w - g, lambda: w), w
    ),
    "barriers in branches": lambda w, g, x: lax.cond(
        x[0] > 0, lambda: lax.optimization_barrier((w - g, g))[0], lambda: w
    ),
    "loops": lambda w, g, x: (lax.fori_loop(0, 3, lambda i, w: w - i * g, w), lax.map(jnp.sin, w)),
    "another cut": lambda w, g, x: cut(w, (3, 3), 0) + cut(w, (1, 3), 1),
}


@pytest.mark.parametrize(
    ("sizes", "dim"), [((1, 2, 3), 0), ((1, 3), 1)], ids=["layers", "dimension 1"]
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_in_parts(name: str, sizes: tuple[int, ...], dim: int) -> None:
    rows = np.random.default_rng(0)
    w, m = (jnp.asarray(rows.normal(size=(ROWS, HEIGHT, WIDTH)), jnp.float32) for _ in range(2))

    def step(stacks: Any, x: jax.Array) -> Any:
        w, m = stacks
        return {"made": PROGRAMS[name](w, cut(w, sizes, dim), x), "others": cut(m, sizes, dim)}

    x = jnp.arange(3.0) + 1
    found, _ = in_parts(step, (w, m), x)
    expected = jax.tree.leaves(jax.jit(step)((w, m), x))
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(ours, theirs, 1e-4, 1e-4)


@pytest.mark.parametrize("dtype", [jnp.int32, jnp.uint8, jnp.bool_, jnp.complex64, jnp.bfloat16])
def test_types(dtype: Any) -> None:
    rows = np.random.default_rng(0)
    stack = jnp.asarray(rows.integers(0, 2, (ROWS, HEIGHT, WIDTH))).astype(dtype)

    def step(stack: jax.Array, x: jax.Array) -> Any:
        with jax.named_scope(STACK_SCOPE):
            first, second = lax.split(stack, (2, 4))
        total = jnp.any(stack, 0) if dtype == jnp.bool_ else stack.sum((0, 2), dtype=dtype)
        return first & second[:2] if dtype == jnp.bool_ else first * second[:2], total, stack

    found, count = in_parts(step, stack, jnp.ones(2))
    assert count == 3
    expected = jax.tree.leaves(jax.jit(step)(stack, jnp.ones(2)))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
