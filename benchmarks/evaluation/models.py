"""Models of sizes that the zoo has no name for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from stablehlo_alpa.layers import layer_boundary
from stablehlo_alpa.zoo.case import Field, ModelCase
from stablehlo_alpa.zoo.models.gpt import GPT, GPTSizes
from stablehlo_alpa.zoo.models.moe import MoE, MoESizes
from stablehlo_alpa.zoo.models.wide_resnet import WideResNet, WideResNetSizes
from stablehlo_alpa.zoo.train_step import (
    OPTIMIZERS,
    Task,
    cross_entropy,
    mixture_task,
    next_token_task,
    train_case,
)

# Of the balancing loss, as in the zoo.
_BALANCE = 0.01


def decoder_case(name: str, sizes: GPTSizes, batch: int, *, remat: bool = False) -> ModelCase:
    """The train step of a GPT in f16."""
    task = next_token_task(batch, sizes.sequence, sizes.vocabulary)
    module = GPT(sizes, False, remat, jnp.float16)
    return train_case(name, module, task, depth=sizes.layers)


def mixture_case(name: str, sizes: MoESizes, batch: int, *, remat: bool = False) -> ModelCase:
    """The train step of GShard's mixture in f16 by Adafactor, as the authors' programs train it."""
    task = mixture_task(batch, sizes.sequence, sizes.vocabulary, _BALANCE)
    module = MoE(sizes, False, remat, jnp.float16)
    optimizer = OPTIMIZERS["adafactor"]
    return train_case(name, module, task, depth=sizes.layers, optimizer=optimizer)


def image_case(name: str, sizes: WideResNetSizes, batch: int, norm: str) -> ModelCase:
    """The train step of a Wide-ResNet in f32 by SGD with momentum, as the authors' programs do."""
    module, task = WideResNet(sizes, norm, False, False, jnp.float32), image_task(sizes, batch)
    depth, optimizer = sum(sizes.blocks), OPTIMIZERS["sgd"]
    return train_case(name, module, task, depth=depth, optimizer=optimizer)


def image_task(sizes: WideResNetSizes, batch: int) -> Task:
    """Classes of images."""
    fields = {
        "images": Field((batch, sizes.image, sizes.image, 3)),
        "labels": Field((batch,), sizes.classes),
    }
    return Task(fields, ("images",), lambda logits, data: cross_entropy(logits, data["labels"]))


@dataclass(frozen=True)
class EqualOperators:
    """A flax module with a layer boundary after every so many of its operators.

    Attributes:
        module: it.
        num_layers: that it is cut into, as many equations of its jaxpr in each.
    """

    module: Any
    num_layers: int

    def init(self, key: jax.Array, *inputs: Any) -> Any:
        """The variables of the module."""
        return self.module.init(key, *inputs)

    def apply(self, variables: Any, *inputs: Any, **options: Any) -> Any:
        """What the module computes."""

        def run(*given: Any) -> Any:
            return self.module.apply(*given, **options)

        closed, shape = jax.make_jaxpr(run, return_shape=True)(variables, *inputs)
        results = jaxpr_as_fun(self._cut(closed))(*jax.tree.leaves((variables, *inputs)))
        return jax.tree.unflatten(jax.tree.structure(shape), results)

    def _cut(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        (boundary,) = jax.make_jaxpr(layer_boundary)().jaxpr.eqns
        equations = closed.jaxpr.eqns
        count = len(equations)
        starts = {number * count // self.num_layers for number in range(1, self.num_layers)}
        cut = []
        for number, equation in enumerate(equations):
            cut += [boundary, equation] if number in starts else [equation]
        return ClosedJaxpr(closed.jaxpr.replace(eqns=cut), closed.consts)
