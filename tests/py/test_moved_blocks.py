"""What is sliced off, padded, joined and turned round is sent to where it comes to lie."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from programs import Program, real, registering, whole
from test_split_slices import MESHES, check, sent_bytes, with_gradients

import stablehlo_alpa as sa
from stablehlo_alpa.compiler.measures import Traffic

PROGRAMS: dict[str, Program] = {}
program = registering(PROGRAMS, 1e-4)


@program(real(24, 48))
def parts(x: Any) -> Any:
    """Halves, thirds, quarters; of blocks, over their borders, at the end; of both dimensions."""

    def taken(x: Any) -> Any:
        gate, up = jnp.split(x, 2, 1)
        q, k, v = jnp.split(x, 3, 1)
        quarters = jnp.split(x, 4, 1)
        return jnp.tanh(gate) * up, q * k - v, sum(quarters), x[5:17], x[-18:], x[6:18, 12:36]

    return with_gradients(taken, x)


@program(real(24, 48), real(24, 24), real(12, 48))
def joined(x: Any, y: Any, z: Any) -> Any:
    def together(x: Any, y: Any, z: Any) -> Any:
        halves = jnp.concatenate([-x[:, 24:], x[:, :24]], 1)
        return halves, jnp.concatenate([x, y], 1), jnp.concatenate([z, x, z], 0)

    return with_gradients(together, x, y, z)


@program(real(24, 48))
def turned_round(x: Any) -> Any:
    return with_gradients(lambda x: (x[::-1], x[:, ::-1] * x, jnp.flip(jnp.sin(x))), x)


@program(real(24, 12))
def padded(x: Any) -> Any:
    def pads(x: Any) -> Any:
        return (
            jnp.pad(x, ((0, 0), (12, 0))),
            jnp.pad(x, ((8, 16), (5, 7)), constant_values=3.0),
            jnp.pad(x, ((0, 0), (0, 36))),
            lax.pad(x, jnp.float32(2), ((-6, -6, 0), (3, -7, 0))),
            lax.pad(x, jnp.float32(2), ((-12, 36, 0), (0, 0, 1))),
        )

    return with_gradients(pads, x)


@program(whole(9, 24, 16, dtype=np.int8), whole(2, 24, 16).astype(bool), real(24, 16))
def other_types(x: Any, mask: Any, z: Any) -> Any:
    rotated = lax.complex(z, -z)[:, ::-1]
    wide = jnp.concatenate([mask, ~mask], 0)
    return (
        jnp.concatenate([x[:, 8:], x[:, :8]], 1),
        wide[::-1],
        rotated[:12],
        jnp.pad(x, ((8, 16), (0, 0))),
    )


@program(real(13, 18))
def odd_sizes(x: Any) -> Any:
    def parts(x: Any) -> Any:
        y = jnp.tanh(x @ x.T)
        low, high = jnp.split(x, 2, 1)
        return y[::-1], y[1:9], low * high, jnp.concatenate([high, x, low], 1), jnp.pad(y, 2)

    return with_gradients(parts, x)


@program(real(4, 24, 16), real(16, 64) / 8, real(64, 16) / 8)
def gated_layers(x: Any, up: Any, down: Any) -> Any:
    """A feed-forward layer whose gate is in one product with what it opens, in a loop."""

    def layers(x: Any, up: Any, down: Any) -> Any:
        def layer(h: Any, _: Any) -> Any:
            gate, values = jnp.split(h @ up, 2, -1)
            both = jnp.concatenate([jnp.tanh(gate) * values, gate[..., ::-1]], -1)
            return h + both @ down, None

        return (lax.scan(layer, x, None, length=3)[0],)

    return with_gradients(layers, x, up, down)


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


# What is kept of 64 rows of 512 columns that are split, and what all of it would be.
COLUMNS: dict[int | str, Any] = {0: P(None, "x")}
BLOCK = 64 * 512 * 4 // 8
WHOLE = 7 * BLOCK


@pytest.mark.parametrize(
    ("fun", "blocks"),
    [
        (lambda x: x[:, ::-1] * 2, 1),
        (lambda x: jnp.concatenate([x[:, 256:], x[:, :256]], 1), 4),
        (lambda x: x[:, :256] * 2, 1),
        (lambda x: x[:, :256] * x[:, 256:], 2),
        (lambda x: jnp.pad(x, ((0, 0), (512, 0))), 2),
    ],
)
def test_blocks_are_sent_and_not_gathered(fun: Any, blocks: int) -> None:
    assert 0 < sent_bytes(fun, (real(64, 512),), COLUMNS) <= blocks * BLOCK < WHOLE


def test_gates_and_values_of_one_product_stay_split() -> None:
    """As much is computed as where they are products of their own, and little is sent."""
    size = jax.ShapeDtypeStruct((4096, 4096), jnp.float32)
    weights = jax.ShapeDtypeStruct((4096, 8192), jnp.float32)

    def layer(x: Any, up: Any) -> Any:
        gate, values = jnp.split(x @ up, 2, -1)
        return (jnp.tanh(gate) * values).sum(1)

    method = sa.ManualSharding(mesh_shape=(8,), names=("x",), in_specs={0: P(), 1: P(None, "x")})
    plan = sa.parallelize(layer, method=method, cluster="dgx-a100:1").plan(size, weights)
    traffic = Traffic.of(plan.module_text("planned"))
    # Of a product of 128 MiB each device has an eighth, and sends no more than that.
    assert float(traffic.bytes @ traffic.count) <= 128 * 2**20 / 8
