"""Models whose layers are one scan over stacks of parameters, and their train steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import stablehlo_alpa as sa

WIDTH, BATCH = 32, 16


@dataclass(frozen=True)
class Scanned:
    """A residual network over a stack.

    Attributes:
        layers: of the stack.
        dim: the dimension along which layers are stacked.
        is_reversed: the last layer comes first.
        has_ends: a layer before the stack and one behind it have parameters of their own.
        shares: all layers use one vector of parameters.
        keeps: the mean of what each layer makes is a result of the step.
        dtype: of activations; parameters are f32.
        policy: of a `jax.checkpoint` around the body; None for none.
        unroll: of the scan.
        groups: so many loops in a loop; 1 for none.
    """

    layers: int = 8
    dim: int = 0
    is_reversed: bool = False
    has_ends: bool = True
    shares: bool = False
    keeps: bool = False
    dtype: Any = jnp.float32
    policy: Callable[..., Any] | None = None
    unroll: int = 1
    groups: int = 1

    def init(self) -> Any:
        """Parameters, f32."""
        keys = iter(jax.random.split(jax.random.key(0), 8))

        def stack(*shape: int) -> jax.Array:
            values = 0.3 * jax.random.normal(next(keys), (self.layers, *shape)) / WIDTH**0.5
            return jnp.moveaxis(values, 0, self.dim)

        params: dict[str, Any] = {
            "stack": {
                "up": stack(WIDTH, 2 * WIDTH),
                "down": stack(2 * WIDTH, WIDTH),
                "scale": 1 + jnp.moveaxis(jnp.zeros((self.layers, WIDTH)), 0, min(self.dim, 1)),
            }
        }
        if self.has_ends:
            params["in"] = 0.2 * jax.random.normal(next(keys), (WIDTH, WIDTH))
            params["out"] = 0.2 * jax.random.normal(next(keys), (WIDTH, WIDTH))
        if self.shares:
            params["shared"] = 0.1 * jax.random.normal(next(keys), (WIDTH,))
        return params

    def loss(self, params: Any, batch: Any) -> tuple[jax.Array, Any]:
        """The mean squared error, and what `keeps` says."""
        x = batch["x"].astype(self.dtype)
        if self.has_ends:
            x = x @ params["in"].astype(self.dtype)

        def body(x: jax.Array, layer: Any) -> tuple[jax.Array, Any]:
            layer = jax.tree.map(lambda w: w.astype(self.dtype), layer)
            y = x * layer["scale"]
            if self.shares:
                y = y + params["shared"].astype(self.dtype)
            x = x + jax.nn.tanh(y @ layer["up"]) @ layer["down"]
            return x, jnp.mean(x.astype(jnp.float32)) if self.keeps else None

        if self.policy is not None:
            body = jax.checkpoint(body, policy=self.policy)
        stack = {
            name: jnp.moveaxis(w, min(self.dim, w.ndim - 1), 0)
            for name, w in params["stack"].items()
        }
        if self.groups > 1:
            stack = {n: w.reshape(self.groups, -1, *w.shape[1:]) for n, w in stack.items()}
            x, kept = jax.lax.scan(lambda x, own: jax.lax.scan(body, x, own), x, stack)
        else:
            x, kept = jax.lax.scan(body, x, stack, reverse=self.is_reversed, unroll=self.unroll)
        if self.has_ends:
            x = x @ params["out"].astype(self.dtype)
        return jnp.mean((x.astype(jnp.float32) - batch["y"]) ** 2), kept

    def step(self, optimiser: optax.GradientTransformation) -> Callable[..., Any]:
        """``step(state, batch) -> (state, (loss, kept))``, as a user writes it."""

        def train_step(state: Any, batch: Any) -> Any:
            params, opt_state = state
            loss = partial(self.loss, batch=batch)
            (value, kept), gradients = sa.value_and_grad(loss, has_aux=True)(params)
            updates, opt_state = optimiser.update(gradients, opt_state, params)
            return (optax.apply_updates(params, updates), opt_state), (value, kept)

        return train_step

    def batches(self, count: int) -> Iterator[Any]:
        """Arguments of so many steps."""
        rows = np.random.default_rng(0)
        for _ in range(count):
            yield {name: rows.normal(size=(BATCH, WIDTH)).astype("f") for name in "xy"}


def pipeline(num_stages: int, *, num_layers: int | None = None, **options: Any) -> Any:
    """A pipeline of equal stages, of two devices each where there are eight."""
    usual: dict[str, Any] = {
        "layers": sa.AutoLayers(
            num_layers=num_layers or num_stages, remat=options.pop("remat", True)
        ),
        "num_micro_batches": 4,
        "stages": sa.UniformStages(num_stages),
    }
    return sa.PipeshardParallel(**(usual | options))
