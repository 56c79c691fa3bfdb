"""Mixtures whose author sends tokens to their experts by `lax.ragged_all_to_all`.

XLA for CPU has no such collective, so plain `jax.jit` cannot run them: what they are compared with
computes every token by its experts on one device.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparing import assert_equals_jit
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import stablehlo_alpa as sa

TOKENS, HIDDEN, INNER, EXPERTS, CHOSEN, DEVICES = 32, 8, 12, 16, 2, 8
MESHES = {"1x8": ((8,), ("x",)), "2x4": ((2, 4), ("y", "x")), "4x2": ((4, 2), ("x", "y"))}


def starts(sizes: jax.Array, axis: int = 0) -> jax.Array:
    return jnp.cumsum(sizes, axis) - sizes


def on_experts(x: jax.Array, chosen: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    """float[tokens chosen, hidden]: the tokens of a device by the experts of all, in order."""
    axis, num = "x", jax.lax.axis_size("x")
    here = jax.lax.axis_index(axis)
    order = jnp.argsort(chosen.reshape(-1), stable=True)
    sizes = jnp.bincount(chosen.reshape(-1), length=EXPERTS).astype(jnp.int32)
    # int32[devices, experts], and where an expert's device has the rows of a device.
    all_sizes = jax.lax.all_gather(sizes, axis)
    own = all_sizes.reshape(num, num, -1)
    there = jnp.stack(
        [starts(own[:, d].T.reshape(-1)).reshape(-1, num).T for d in range(num)], axis=1
    )
    to, back = there[here].reshape(-1), there[:, here].reshape(-1)
    received = own[:, here].reshape(-1)
    place = jnp.zeros((num * order.size, x.shape[1]), x.dtype)
    rows = jax.lax.ragged_all_to_all(
        x[order // CHOSEN], place, starts(sizes), sizes, to, received, axis_name=axis
    )
    groups = own[:, here].sum(0)
    rows = jax.lax.ragged_dot(jnp.tanh(jax.lax.ragged_dot(rows, up, groups)), down, groups)
    home = starts(all_sizes, 1).reshape(num, num, -1)[:, here].reshape(-1)
    rows = jax.lax.ragged_all_to_all(
        rows, jnp.zeros((order.size, x.shape[1]), x.dtype), back, received, home, sizes,
        axis_name=axis,
    )  # fmt: skip
    return rows[jnp.argsort(order)]


def exchanged(mesh: str, x: Any, scores: Any, up: Any, down: Any) -> Any:
    """The mixture over the axis x of a mesh."""

    def inner(x: Any, scores: Any, up: Any, down: Any) -> Any:
        weights, chosen = jax.lax.top_k(scores, CHOSEN)
        rows = on_experts(x, chosen, up, down).reshape(*chosen.shape, -1)
        return jnp.einsum("tkh,tk->th", rows, weights.astype(x.dtype))

    shape, names = MESHES[mesh]
    made = jax.make_mesh(shape, names, axis_types=(AxisType.Auto,) * len(shape))
    split = P("x")
    return jax.shard_map(inner, mesh=made, in_specs=(split,) * 4, out_specs=split, check_vma=False)(
        x, scores, up, down
    )


def whole(x: Any, scores: Any, up: Any, down: Any) -> Any:
    """The same, every token by its experts."""
    weights, chosen = jax.lax.top_k(scores, CHOSEN)
    hidden = jnp.tanh(jnp.einsum("th,tkhf->tkf", x, up[chosen]))
    rows = jnp.einsum("tkf,tkfh->tkh", hidden, down[chosen])
    return jnp.einsum("tkh,tk->th", rows, weights.astype(x.dtype))


def arguments(favoured: int | None, dtype: Any) -> tuple[Any, ...]:
    draw = np.random.default_rng(3)
    x, scores = draw.normal(size=(TOKENS, HIDDEN)), draw.normal(size=(TOKENS, EXPERTS))
    if favoured is not None:
        scores[:, favoured] += 10
        scores[:, 3 : EXPERTS - 1] -= 20
    up = draw.normal(size=(EXPERTS, HIDDEN, INNER)) / 3
    down = draw.normal(size=(EXPERTS, INNER, HIDDEN)) / 3
    return tuple(jnp.asarray(one, dtype) for one in (x, scores, up, down))


def manual(mesh: str) -> sa.ManualSharding:
    shape, names = MESHES[mesh]
    return sa.ManualSharding(in_specs={}, mesh_shape=shape, names=names)


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize(
    ("favoured", "dtype", "rel"),
    [(None, jnp.float32, 1e-5), (1, jnp.float32, 1e-5), (15, jnp.bfloat16, 3e-2)],
)
def test_tokens_go_to_their_experts_and_come_back(
    mesh: str, favoured: int | None, dtype: Any, rel: float
) -> None:
    args = arguments(favoured, dtype)

    def ours(*args: Any) -> Any:
        return exchanged(mesh, *args)

    found = sa.parallelize(ours, method=manual(mesh))(*args)
    assert_equals_jit(found, jax.jit(whole)(*args), rel)


def test_gradients_go_the_same_way() -> None:
    args = arguments(None, jnp.float32)

    def gradients(fun: Any) -> Any:
        return jax.grad(lambda *args: (fun(*args) ** 2).mean(), argnums=(0, 1, 2, 3))

    step = gradients(lambda *args: exchanged("1x8", *args))
    found = sa.parallelize(step, method=manual("1x8"))(*args)
    assert_equals_jit(found, jax.jit(gradients(whole))(*args), 1e-5)


def test_what_is_exchanged_is_priced() -> None:
    """As a target does it that has the collective: the rows of a device, there and back."""
    args = arguments(None, jnp.float32)
    plan = sa.parallelize(lambda *args: exchanged("1x8", *args), method=manual("1x8")).plan(*args)
    [moved] = [one for one in plan.communication() if one.kind == "all_to_all"]
    rows = TOKENS // DEVICES * CHOSEN
    assert (moved.axes, moved.count, moved.bytes) == (("x",), 2, 2 * 4 * rows * HIDDEN)
    assert 'call_target_name = "ragged_all_to_all"' not in plan.module_text("local")
