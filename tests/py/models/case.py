"""A train step with everything it is called with, and the optimisers the models share."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

import stablehlo_alpa


class TrainState(NamedTuple):
    """What a step carries: parameters, optimiser state, and non-trained statistics (or ``()``)."""

    params: Any
    opt_state: Any
    statistics: Any = ()


@dataclass(frozen=True)
class TrainCase:
    """One train step of one model, as a user would write it.

    Attributes:
        name: model and optimiser, for test ids.
        step: ``step(state, batch, rng) -> (state, metrics)``; metrics has ``"loss"`` (f32[]), and
            ``"gradients"`` when the case was made with ``with_gradients=True``.
        state: the first state.
        batch: pytree of arrays whose dimension 0 is the batch.
        rng: uint32[2], a raw JAX key.
        make_step: makes the step with another ``value_and_grad``.
    """

    name: str
    step: Callable[..., Any]
    state: TrainState
    batch: Any
    rng: jax.Array
    make_step: Callable[[Any], Callable[..., Any]]

    @property
    def args(self) -> tuple[Any, Any, jax.Array]:
        """The arguments of the first step."""
        return self.state, self.batch, self.rng

    def accumulated(self, count: int) -> Callable[..., Any]:
        """The step with a plain loop over ``count`` micro-batches, whose results are averaged."""

        def value_and_grad(fun: Any, has_aux: bool) -> Any:
            def run(params: Any, statistics: Any, batch: Any, rng: jax.Array) -> Any:
                total: Any = None
                for part in range(count):
                    micro_batch = jax.tree.map(lambda x, p=part: jnp.split(x, count)[p], batch)
                    found = jax.value_and_grad(fun, has_aux=has_aux)(
                        params, statistics, micro_batch, rng
                    )
                    total = found if total is None else jax.tree.map(jnp.add, total, found)
                return jax.tree.map(lambda x: x / count, total)

            return run

        return self.make_step(value_and_grad)


_ZEROS = ("bias", "mean", "b", "offset")
_ONES = ("scale", "var")


def filled(shapes: Any) -> Any:
    """Parameters of given shapes and names, on the host, that a model may begin with.

    The initialisers of the libraries themselves take seconds to compile.
    """
    rng = np.random.default_rng(0)

    def value(path: Any, leaf: Any) -> np.ndarray:
        keys = jax.tree_util.keystr(path, simple=True, separator="/").split("/")
        name = keys[-2] if keys[-1] == "value" else keys[-1]
        if name in _ZEROS:
            return np.zeros(leaf.shape, leaf.dtype)
        if name in _ONES:
            return np.ones(leaf.shape, leaf.dtype)
        # The geometric mean of what the ways forward and back ask for.
        deviation = math.prod(leaf.shape) ** -0.25
        return rng.normal(0, deviation, leaf.shape).astype(leaf.dtype)

    return jax.tree.map_with_path(value, shapes)


LossFunction = Callable[[Any, Any, Any, jax.Array], tuple[jax.Array, Any]]


def make_optimizer(name: str) -> optax.GradientTransformation:
    """The optimisers of the suite: ``adam`` (clipped by global norm), ``sgd``, ``adafactor``."""
    match name:
        case "adam":
            return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
        case "sgd":
            return optax.sgd(1e-2, momentum=0.9)
        case "adafactor":
            return optax.adafactor(1e-3, min_dim_size_to_factor=8)
    raise ValueError(f"optimizer is '{name}', must be one of adam, sgd, adafactor")


def make_case(
    name: str,
    loss_fn: LossFunction,
    params: Any,
    batch: Any,
    *,
    optimizer: str,
    statistics: Any = (),
    with_gradients: bool = False,
) -> TrainCase:
    """A train step around ``loss_fn(params, statistics, batch, rng) -> (loss, statistics)``."""
    transform = make_optimizer(optimizer)

    def make_step(value_and_grad: Any) -> Callable[..., Any]:
        def step(
            state: TrainState, batch: Any, rng: jax.Array
        ) -> tuple[TrainState, dict[str, Any]]:
            (loss, new_statistics), gradients = value_and_grad(loss_fn, has_aux=True)(
                state.params, state.statistics, batch, rng
            )
            updates, opt_state = transform.update(gradients, state.opt_state, state.params)
            params = optax.apply_updates(state.params, updates)
            metrics = {"loss": loss}
            if with_gradients:
                metrics["gradients"] = gradients
            return TrainState(params, opt_state, new_statistics), metrics

        return step

    # All three begin with zeros, which would be compiled for each shape.
    shapes = jax.eval_shape(transform.init, params)
    zeros = jax.tree.map(lambda one: np.zeros(one.shape, one.dtype), shapes)
    state = TrainState(params, zeros, statistics)
    step = make_step(stablehlo_alpa.value_and_grad)
    return TrainCase(f"{name}-{optimizer}", step, state, batch, jax.random.PRNGKey(7), make_step)


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """Mean cross entropy f32[] of logits [..., classes] and labels int[...]."""
    losses = optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), labels)
    return losses.mean()


def random_tokens(seed: int, batch: int, length: int, vocabulary: int) -> dict[str, np.ndarray]:
    """A batch of random tokens: ``tokens`` and ``targets``, both int32[batch, length]."""
    rng = np.random.default_rng(seed)
    text = rng.integers(0, vocabulary, (batch, length + 1), np.int32)
    return {"tokens": text[:, :-1], "targets": text[:, 1:]}


def random_images(
    seed: int, batch: int, size: int, channels: int, classes: int
) -> dict[str, np.ndarray]:
    """Random images f32[batch, size, size, channels] and ``labels`` int32[batch]."""
    rng = np.random.default_rng(seed)
    return {
        "images": rng.standard_normal((batch, size, size, channels), np.float32),
        "labels": rng.integers(0, classes, (batch,), np.int32),
    }
