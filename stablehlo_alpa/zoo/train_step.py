"""The train step around a flax module: AdamW or another optimiser on f32 masters."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from stablehlo_alpa.layers import value_and_grad
from stablehlo_alpa.zoo.case import Field, ModelCase, TrainState
from stablehlo_alpa.zoo.linen import optax

OPTIMIZERS: Mapping[str, optax.GradientTransformation] = {
    # The rates of the GPT-3 paper (Brown et al., NeurIPS 2020, appendix B).
    "adamw": optax.adamw(learning_rate=1e-4, b1=0.9, b2=0.95, weight_decay=0.1),
    # No first moments, and of second ones the sums of rows and columns (Shazeer and Stern, ICML
    # 2018): what mixtures of experts were trained with by GShard, and by Alpa for its paper.
    "adafactor": optax.adafactor(learning_rate=1e-2),
    # Of residual networks (He et al., CVPR 2016, section 3.4), with Nesterov's momentum.
    "sgd": optax.sgd(learning_rate=0.1, momentum=0.9, nesterov=True),
}

# What experts are called among the parameters of a mixture.
EXPERTS = "experts"


@dataclass(frozen=True)
class Task:
    """What a model is trained for.

    Attributes:
        fields: of a batch, by name.
        inputs: the names of those that the model is called with, in order.
        loss: ``loss(outputs, batch) -> f32[]``.
    """

    fields: Mapping[str, Field]
    inputs: tuple[str, ...]
    loss: Callable[[Any, Any], jax.Array]


@dataclass(frozen=True)
class _Model:
    """What a train step has without an optimiser.

    Attributes:
        name, task, depth: as ``train_case`` takes them.
        variables: of a key, parameters and statistics.
        shapes: of these; to find them the module is traced.
        forward: as ``ModelCase`` has it.
        active_parameters: those that one token meets.
    """

    name: str
    task: Task
    depth: int
    variables: Callable[[jax.Array], tuple[Any, Any]]
    shapes: tuple[Any, Any]
    forward: Callable[[Any, Any, Any], tuple[jax.Array, Any]]
    active_parameters: int


def train_case(
    name: str,
    module: Any,
    task: Task,
    *,
    depth: int,
    expert_share: float = 1.0,
    optimizer: optax.GradientTransformation = OPTIMIZERS["adamw"],
) -> ModelCase:
    """The train step of a module.

    Args:
        name: model and size.
        module: a flax module whose parameters are f32, whatever it computes in. There is no loss
            scaling: what f16 would lose in training does not change shapes or prices.
        task: what it is trained for.
        depth: layers.
        expert_share: the part of its experts that one token meets.
        optimizer: the transformation of optax that makes updates of gradients.
    """

    def variables(key: jax.Array) -> tuple[Any, Any]:
        inputs = (
            jnp.zeros(task.fields[one].shape, task.fields[one].aval.dtype) for one in task.inputs
        )
        made = dict(module.init(key, *inputs))
        return made.pop("params"), made

    def forward(params: Any, statistics: Any, batch: Any) -> tuple[jax.Array, Any]:
        inputs = (batch[one] for one in task.inputs)
        outputs, updated = module.apply(
            {"params": params, **statistics}, *inputs, mutable=list(statistics)
        )
        return task.loss(outputs, batch), dict(updated)

    shapes = jax.eval_shape(variables, jax.random.key(0))
    active = sum(
        math.prod(leaf.shape)
        * (expert_share if EXPERTS in jax.tree_util.keystr(path[-1:]) else 1.0)
        for path, leaf in jax.tree_util.tree_leaves_with_path(shapes[0])
    )
    model = _Model(name, task, depth, variables, shapes, forward, round(active))
    return _trained(model, None, optimizer)


def _trained(model: _Model, dtype: Any, optimizer: optax.GradientTransformation) -> ModelCase:
    """The case of a model by an optimiser, with gradients in a dtype; None for the parameters'."""
    variables, forward = model.variables, model.forward

    def init(key: jax.Array) -> TrainState:
        params, statistics = variables(key)
        return TrainState(params, optimizer.init(params), statistics)

    def step(state: TrainState, batch: Any) -> tuple[TrainState, jax.Array]:
        weights = jax.tree.map(lambda one: one.astype(dtype or one.dtype), state.params)
        (loss, statistics), gradients = value_and_grad(forward, has_aux=True)(
            weights, state.statistics, batch
        )
        gradients = jax.tree.map(lambda g, p: g.astype(p.dtype), gradients, state.params)
        updates, opt_state = optimizer.update(gradients, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)
        return TrainState(params, opt_state, statistics), loss

    def again(**changes: Any) -> ModelCase:
        return _trained(model, **({"dtype": dtype, "optimizer": optimizer} | changes))

    # What plans and programs are called.
    step.__name__ = re.sub(r"\W", "_", model.name)
    params, statistics = model.shapes
    state = TrainState(params, jax.eval_shape(optimizer.init, params), statistics)
    return ModelCase(
        name=model.name,
        step=step,
        args=(state, {key: field.aval for key, field in model.task.fields.items()}),
        parameters=sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(params)),
        active_parameters=model.active_parameters,
        depth=model.depth,
        forward=forward,
        again=again,
        fields=model.task.fields,
        init=init,
    )


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """f32[] mean over [...] of logits [..., classes] and int32[...]."""
    losses = optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), labels)
    return jnp.mean(losses)


def next_token_task(batch: int, sequence: int, vocabulary: int) -> Task:
    """Logits [batch, sequence, vocabulary] of ``tokens`` against ``targets``, int32 both."""
    tokens = Field((batch, sequence), vocabulary)
    return Task(
        {"tokens": tokens, "targets": tokens},
        ("tokens",),
        lambda logits, data: cross_entropy(logits, data["targets"]),
    )


def mixture_task(batch: int, sequence: int, vocabulary: int, weight: float) -> Task:
    """The next token by a mixture, which returns its balancing loss f32[] beside the logits.

    Args:
        batch: sequences.
        sequence: tokens of each.
        vocabulary: numbers that a token can have.
        weight: of the balancing loss.
    """
    task = next_token_task(batch, sequence, vocabulary)

    def loss(outputs: Any, data: Any) -> jax.Array:
        logits, balance = outputs
        return task.loss(logits, data) + weight * balance

    return replace(task, loss=loss)
