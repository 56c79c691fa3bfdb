"""A train step with what it is called with, in shapes until arrays are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from stablehlo_alpa.layers.flops import jaxpr_flops

Step = Callable[[Any, Any], tuple[Any, jax.Array]]
"""``step(state, batch) -> (state, loss)``."""


class TrainState(NamedTuple):
    """What a step carries.

    Attributes:
        params: pytree of f32 arrays, the masters of what is computed in fewer bits.
        opt_state: of the optimiser.
        statistics: running means and variances of batch norm; empty without.
    """

    params: Any
    opt_state: Any
    statistics: Any


@dataclass(frozen=True)
class Field:
    """One array of a batch, and what a random one holds.

    Attributes:
        shape: its shape, dimension 0 the batch.
        below: integers int32 from 0 to less than this; None for f32 normal numbers.
    """

    shape: tuple[int, ...]
    below: int | None = None

    @property
    def aval(self) -> jax.ShapeDtypeStruct:
        """Its shape and dtype."""
        return jax.ShapeDtypeStruct(self.shape, jnp.float32 if self.below is None else jnp.int32)

    def draw(self, key: jax.Array) -> jax.Array:
        """Random numbers."""
        if self.below is None:
            return jax.random.normal(key, self.shape)
        return jax.random.randint(key, self.shape, 0, self.below)


@dataclass(frozen=True)
class ModelCase:
    """The train step of a model.

    Attributes:
        name: model and size, ``"llama-3-70b"``.
        step: the loss is f32[]; its gradients are taken by ``stablehlo_alpa.value_and_grad``, so
            that it can become a pipeline.
        args: ``(state, batch)`` as pytrees of ``jax.ShapeDtypeStruct``.
        parameters: trained numbers.
        active_parameters: those that one token meets: of a mixture, of the chosen experts alone.
        depth: layers, which ``AutoLayers`` of a pipeline may want fewer of.
        donate_argnums: the state.
        forward: ``forward(params, statistics, batch) -> (loss, statistics)``.
        again: the same by another ``dtype`` of gradients or ``optimizer``.
        fields: of the batch.
        init: ``init(key) -> state``.
    """

    name: str
    step: Step
    args: tuple[Any, Any]
    parameters: int
    active_parameters: int
    depth: int
    forward: Callable[[Any, Any, Any], tuple[jax.Array, Any]]
    again: Callable[..., ModelCase]
    fields: Mapping[str, Field]
    init: Callable[[jax.Array], Any]
    donate_argnums: tuple[int, ...] = (0,)

    @cached_property
    def flops_per_step(self) -> float:
        """FLOPs of the products and convolutions of a step, recomputation left out.

        A product of the forward pass has two of its size in the backward pass, so a step takes
        three times the forward pass. A multiplication and an addition are two FLOPs; a causal
        mask saves none, as none are saved when it runs; elementwise operators are not counted.
        """
        state, batch = self.args
        jaxpr = jax.make_jaxpr(self.forward)(state.params, state.statistics, batch)
        return 3.0 * jaxpr_flops(jaxpr.jaxpr, only_products=True)

    @property
    def has_statistics(self) -> bool:
        """Whether the step takes statistics over its batch, which micro-batches would change."""
        return bool(jax.tree.leaves(self.args[0].statistics))

    def with_gradients(self, dtype: Any) -> ModelCase:
        """The same, with weights rounded before gradients are taken of them.

        Micro-batches add up gradients in the dtype that they are taken in. Beside f32 masters and
        two moments, gradients of two bytes a number leave an eighth of that memory free.

        Args:
            dtype: of weights in the forward pass, and of gradients up to the update.
        """
        return self.again(dtype=dtype)

    def with_optimizer(self, optimizer: Any) -> ModelCase:
        """The same by another optimiser.

        Args:
            optimizer: a transformation of optax; of the zoo are those in
                ``stablehlo_alpa.zoo.train_step.OPTIMIZERS``.
        """
        return self.again(optimizer=optimizer)

    def make(self, seed: int = 0) -> tuple[Any, Any]:
        """``(state, batch)`` as arrays: initial parameters and a random batch.

        Args:
            seed: of both.
        """
        key = jax.random.key(seed)
        keys = jax.random.split(key, len(self.fields))
        drawn = zip(self.fields.items(), keys, strict=True)
        batch = {name: field.draw(one) for (name, field), one in drawn}
        return jax.jit(self.init)(key), batch
