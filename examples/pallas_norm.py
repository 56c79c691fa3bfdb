"""A kernel of Pallas with a rule, in a training step that is split over devices.

    python examples/pallas_norm.py
    python examples/pallas_norm.py --steps 8

`stablehlo_alpa.kernel` says that rows are independent of each other. The planner splits them as it
splits everything else, and what a device runs is traced anew for its rows: the grid is that of a
block. No sharding is written down.
"""

import argparse
import functools
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

import stablehlo_alpa as sa

BATCH, LENGTH, HIDDEN, LAYERS, OPTIMIZER = 16, 32, 256, 2, optax.adam(1e-3)
ROWS, EPSILON = 8, 1e-6  # ROWS are those of one program of a kernel's grid.


def forward(x: Any, scale: Any, out: Any) -> None:
    """The kernel: x scale / sqrt(mean(x^2) + epsilon), a row at a time."""
    rows = x[...]
    inverse = jax.lax.rsqrt((rows * rows).mean(1, keepdims=True) + EPSILON)
    out[...] = rows * inverse * scale[...]


def backward(x: Any, scale: Any, slope: Any, x_slope: Any, scale_slope: Any) -> None:
    """Its gradients; that of the scale is summed over the rows of the program."""
    rows, slopes = x[...], slope[...]
    inverse = jax.lax.rsqrt((rows * rows).mean(1, keepdims=True) + EPSILON)
    normal, scaled = rows * inverse, slopes * scale[...]
    x_slope[...] = inverse * (scaled - normal * (scaled * normal).mean(1, keepdims=True))
    scale_slope[...] = (slopes * normal).sum(0, keepdims=True)[None]


def run(body: Callable[..., None], results: Any, *args: jax.Array) -> Any:
    """Runs a kernel over blocks of rows: interpreted on CPU, by Triton on GPU, by Mosaic on TPU."""
    specs = {
        2: lambda shape: pl.BlockSpec((min(ROWS, shape[0]), shape[1]), lambda i: (i, 0)),
        3: lambda shape: pl.BlockSpec((1, *shape[1:]), lambda i: (i, 0, 0)),
    }
    whole = pl.BlockSpec((1, HIDDEN), lambda i: (0, 0))
    call = functools.partial(
        pl.pallas_call,
        body,
        results,
        grid=(args[0].shape[0] // ROWS,),
        in_specs=[whole if x.shape[0] == 1 else specs[x.ndim](x.shape) for x in args],
        out_specs=jax.tree.map(lambda x: specs[len(x.shape)](x.shape), results),
    )
    return jax.lax.platform_dependent(
        *args,
        cpu=call(interpret=True),
        cuda=call(compiler_params=triton.CompilerParams()),
        default=call(),
    )


@sa.kernel("rows h, one h -> rows h", whole=("h",))
def norm_kernel(x: jax.Array, scale: jax.Array) -> jax.Array:
    """f32[rows, hidden] and f32[1, hidden] to f32[rows, hidden]."""
    return run(forward, jax.ShapeDtypeStruct(x.shape, x.dtype), x, scale)


@sa.kernel("(n r) h, one h, (n r) h -> (n r) h, n one h", whole=("r", "h"), sizes={"r": ROWS})
def slope_kernel(x: jax.Array, scale: jax.Array, slope: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Gradients f32[rows, hidden] and f32[n, 1, hidden], that of the scale per block of rows."""
    blocks = jax.ShapeDtypeStruct((x.shape[0] // ROWS, 1, x.shape[1]), x.dtype)
    return run(backward, (jax.ShapeDtypeStruct(x.shape, x.dtype), blocks), x, scale, slope)


@jax.custom_vjp
def norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    """The kernel, which is differentiated by another one."""
    return norm_kernel(x, scale)


def _slopes(kept: tuple[jax.Array, jax.Array], slope: jax.Array) -> tuple[jax.Array, jax.Array]:
    x_slope, parts = slope_kernel(*kept, slope)
    # Summed here, where the sum over devices joins those of all other gradients.
    return x_slope, parts.sum(0)


norm.defvjp(lambda x, scale: (norm_kernel(x, scale), (x, scale)), _slopes)


class Model(nn.Module):
    """Perceptrons with residual connections, each behind a norm."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """f32[batch, length, hidden] to the same."""
        for layer in range(LAYERS):
            scale = self.param(f"scale_{layer}", nn.initializers.ones, (1, HIDDEN))
            normal = norm(x.reshape(-1, HIDDEN), scale).reshape(x.shape)
            x = x + nn.Dense(HIDDEN)(nn.gelu(nn.Dense(4 * HIDDEN)(normal)))
        return x


def train_step(params: Any, state: Any, x: jax.Array, y: jax.Array) -> Any:
    """One update: parameters, state of the optimiser and the loss."""

    def loss_of(params: Any) -> jax.Array:
        return jnp.mean((Model().apply(params, x) - y) ** 2)

    loss, gradients = jax.value_and_grad(loss_of)(params)
    updates, state = OPTIMIZER.update(gradients, state)
    return optax.apply_updates(params, updates), state, loss


def main() -> None:
    """Trains with one device and with all, and prints both losses."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=4)
    options = parser.parse_args()
    draw = np.random.default_rng(0)
    x, y = jnp.asarray(draw.normal(size=(2, BATCH, LENGTH, HIDDEN)), jnp.float32)
    params = jax.jit(Model().init)(jax.random.PRNGKey(0), x)
    split, whole = sa.parallelize(train_step), jax.jit(train_step)
    arguments = (params, OPTIMIZER.init(params), x, y)
    plan = split.plan(*arguments)
    print(plan)
    planned = plan.module_text("planned")
    for name in ("norm_kernel", "slope_kernel"):
        calls = [line for line in planned.splitlines() if f'name = "{name}"' in line]
        cut = sum("#alpa.strategy<>" not in line for line in calls)
        print(f"{name}: {cut} of {len(calls)} calls are split")
    one, all_devices = arguments[:2], arguments[:2]
    for step in range(options.steps):
        *one, alone = whole(*one, x, y)
        *all_devices, together = split(*all_devices, x, y)
        print(f"step {step}: loss {float(together):.5f}, on one device {float(alone):.5f}")


if __name__ == "__main__":
    main()
