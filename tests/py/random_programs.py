"""Random steps as users write them: recipes that hypothesis draws, and the functions they make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from hypothesis import strategies as st
from random_blocks import BLOCKS, CLASSES, SEQUENCE_BLOCKS, Inputs

import stablehlo_alpa

LENGTH = 4
ROUNDED = {"bf16"}


@dataclass(frozen=True)
class Recipe:
    """What a random step is made of.

    Attributes:
        blocks: names of what is done to the activations, in order.
        loss: how activations become a number.
        extras: what else the function returns or does; see `_extras`.
        gradients: by ``"alpa"``, ``"jax"``, or ``"none"`` (forward only).
        update: what is done with the gradients.
        rows: examples of the batch.
        width: features.
        is_sequence: whether an example has a dimension of time.
        table: whether the frozen table has as many rows as the batch.
        typed_key: whether the key is typed.
        is_static: whether the scale is a static argument.
        is_donated: whether the state is donated.
        rate: how the learning rate is passed.
    """

    blocks: tuple[str, ...]
    loss: str = "mean"
    extras: tuple[str, ...] = ()
    gradients: str = "alpa"
    update: str = "sgd"
    rows: int = 8
    width: int = 8
    is_sequence: bool = False
    table: bool = True
    typed_key: bool = True
    is_static: bool = False
    is_donated: bool = False
    rate: str = "python"


LOSSES = (
    "mean", "sum", "cross_entropy", "one_hot", "masked_mean", "weighted", "absolute", "huber",
    "logsumexp", "rows",
)  # fmt: skip
EXTRAS = ("outputs", "hits", "regularised", "metrics", "counts", "constant", "histogram")
UPDATES = ("none", "sgd", "momentum", "adam", "clipped", "schedule")


def recipes() -> st.SearchStrategy[Recipe]:
    """Any step, each part as likely as any other."""
    return st.randoms(use_true_random=True).map(_recipe)


def _recipe(random: Random) -> Recipe:
    is_sequence = random.random() < 0.3
    names = [*BLOCKS, *SEQUENCE_BLOCKS, *SEQUENCE_BLOCKS] if is_sequence else list(BLOCKS)
    return Recipe(
        blocks=tuple(random.choices(names, k=random.randint(2, 4))),
        loss=random.choice(LOSSES),
        extras=tuple(sorted(random.sample(EXTRAS, random.randint(0, 3)))),
        gradients=random.choice(["alpa", "alpa", "alpa", "jax", "none"]),
        update=random.choice(UPDATES),
        rows=random.choice([8, 8, 12, 20]),
        width=random.choice([8, 16]),
        is_sequence=is_sequence,
        table=random.random() < 0.5,
        typed_key=random.random() < 0.5,
        is_static=random.random() < 0.5,
        is_donated=random.random() < 0.5,
        rate=random.choice(["python", "numpy", "array"]),
    )


@dataclass(frozen=True)
class Program:
    """A step and what it is called with.

    Attributes:
        step: the function.
        make: the first arguments and keywords, made anew; the first is the state.
        options: of ``jax.jit`` and of ``parallelize``.
        carries: whether the first result is the next state.
        tolerance: of results, relative to the largest of an array.
    """

    step: Callable[..., Any]
    make: Callable[[], tuple[list[Any], dict[str, Any]]]
    options: dict[str, Any]
    carries: bool
    tolerance: float


def make(recipe: Recipe) -> Program:
    """The step of a recipe."""
    forward = _forward(recipe)
    has_update = recipe.gradients != "none" and recipe.update != "none"
    transform = _transform(recipe)

    def step(
        state: Any, batch: Any, frozen: Any, key: Any, rate: Any, *, scale: float = 1.0
    ) -> Any:
        params = state["params"]

        def loss(params: Any) -> Any:
            return forward(params, batch, frozen, key, scale)

        if recipe.gradients == "none":
            return loss(params)
        take = stablehlo_alpa if recipe.gradients == "alpa" else jax
        value, gradients = take.value_and_grad(loss, has_aux=True)(params)
        found = value, _metrics(recipe, batch)
        if not has_update:
            return found, gradients
        count = state["count"] + 1
        if recipe.update == "schedule":
            rate = rate / (1 + count)
        gradients = jax.tree.map(lambda g: rate * g, gradients)
        updates, opt = transform.update(gradients, state["opt"], params)
        params = optax.apply_updates(params, updates)
        return {"params": params, "opt": opt, "count": count}, found

    def make_arguments() -> tuple[list[Any], dict[str, Any]]:
        return _arguments(recipe, transform)

    options: dict[str, Any] = {}
    if recipe.is_static:
        options["static_argnames"] = ("scale",)
    if recipe.is_donated and has_update:
        options["donate_argnums"] = (0,)
    tolerance = 4e-2 if ROUNDED & set(recipe.blocks) else 3e-5
    return Program(step, make_arguments, options, has_update, tolerance)


def _forward(recipe: Recipe) -> Callable[..., Any]:
    def forward(params: Any, batch: Any, frozen: Any, key: Any, scale: Any) -> Any:
        x = batch["x"] * scale
        inputs = Inputs(batch, frozen)
        for number, name in enumerate(recipe.blocks):
            own = None if key is None else jax.random.fold_in(key, number)
            block = SEQUENCE_BLOCKS.get(name) or BLOCKS[name]
            x = block.apply(params[f"block_{number}"], x, inputs.with_key(own))
        value = _loss(recipe, params, x, batch)
        if "regularised" in recipe.extras:
            value = value + 0.01 * sum(jnp.sum(w**2) for w in jax.tree.leaves(params))
        # Saturated activations are equal but for rounding, which is the best of them is not told.
        return value, _auxiliary(recipe, x, x @ params["head"], batch)

    return forward


def _loss(recipe: Recipe, params: Any, x: Any, batch: Any) -> Any:
    labels = batch["labels"]
    each = jnp.mean(x.astype(jnp.float32) ** 2, tuple(range(1, x.ndim)))
    logits = jnp.mean(x, 1) @ params["head"] if recipe.is_sequence else x @ params["head"]
    logits = logits.astype(jnp.float32)
    match recipe.loss:
        case "mean":
            return jnp.mean(x**2).astype(jnp.float32)
        case "sum":
            return jnp.sum(each)
        case "cross_entropy":
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
        case "one_hot":
            chosen = jax.nn.one_hot(labels, CLASSES) * jax.nn.log_softmax(logits)
            return -jnp.sum(chosen) / x.shape[0]
        case "masked_mean":
            return jnp.sum(each * batch["mask"]) / jnp.maximum(jnp.sum(batch["mask"]), 1)
        case "weighted":
            weights = batch["weights"]
            return jnp.sum(each * weights) / jnp.sum(weights)
        case "absolute":
            return jnp.mean(jnp.abs(logits)) + jnp.mean(each)
        case "huber":
            return jnp.mean(optax.huber_loss(logits, jnp.zeros_like(logits)))
        case "logsumexp":
            return jnp.mean(jax.nn.logsumexp(logits, -1))
    numbers = jnp.arange(x.shape[0], dtype=jnp.float32)
    return jnp.mean(each * numbers)


def _auxiliary(recipe: Recipe, x: Any, logits: Any, batch: Any) -> dict[str, Any]:
    """What is returned beside the loss."""
    found: dict[str, Any] = {}
    if "outputs" in recipe.extras:
        found["outputs"] = (x, jnp.argmax(logits, -1), x.sum(-1) > 0)
    if "hits" in recipe.extras:
        best = jnp.argmax(logits.reshape(x.shape[0], -1), -1) % CLASSES
        found["hits"] = jnp.sum(best == batch["labels"])
        found["rate"] = jnp.mean(best == batch["labels"])
    if "constant" in recipe.extras:
        found["rows"] = x.shape[0]
        found["zeros"] = jnp.zeros(3)
    if "histogram" in recipe.extras:
        ones = jnp.ones(batch["labels"].shape, jnp.int32)
        found["histogram"] = jnp.zeros(CLASSES, jnp.int32).at[batch["labels"]].add(ones)
    return found


def _metrics(recipe: Recipe, batch: Any) -> dict[str, Any]:
    """What is made of the batch outside of the differentiated function."""
    found: dict[str, Any] = {}
    if "metrics" in recipe.extras:
        found["most"] = jnp.max(batch["x"])
        found["centred"] = batch["x"] - batch["x"].mean(0)
    if "counts" in recipe.extras:
        found["masked"] = jnp.sum(batch["mask"])
        found["sorted"] = jnp.sort(batch["labels"])
    return found


def _transform(recipe: Recipe) -> optax.GradientTransformation:
    match recipe.update:
        case "momentum":
            return optax.sgd(0.5, momentum=0.9)
        case "adam":
            return optax.adamw(1e-2, eps=1e-2)
        case "clipped":
            return optax.chain(optax.clip_by_global_norm(0.1), optax.sgd(0.1))
    return optax.sgd(1.0)


def _arguments(
    recipe: Recipe, transform: optax.GradientTransformation
) -> tuple[list[Any], dict[str, Any]]:
    rng = np.random.default_rng(len(recipe.blocks))
    rows, width = recipe.rows, recipe.width

    def array(*shape: int) -> jax.Array:
        return jnp.asarray(rng.normal(size=shape).astype("f") / np.sqrt(shape[0]))

    params: dict[str, Any] = {"head": array(width, CLASSES)}
    for number, name in enumerate(recipe.blocks):
        block = SEQUENCE_BLOCKS.get(name) or BLOCKS[name]
        params[f"block_{number}"] = {k: array(*s) for k, s in block.shapes(width).items()}
    state: dict[str, Any] = {"params": params}
    if recipe.gradients != "none" and recipe.update != "none":
        state |= {"opt": transform.init(params), "count": jnp.zeros((), jnp.int32)}
    shape = (rows, LENGTH, width) if recipe.is_sequence else (rows, width)
    batch = {
        "x": jnp.asarray(rng.normal(size=shape).astype("f")),
        "labels": jnp.asarray(rng.integers(0, CLASSES, rows), jnp.int32),
        "mask": jnp.asarray(rng.random(rows) > 0.4),
        "weights": jnp.asarray(rng.random(rows).astype("f")),
    }
    frozen = {"table": array(rows if recipe.table else CLASSES, width), "w": array(width, width)}
    key = jax.random.key(3) if recipe.typed_key else jax.random.PRNGKey(3)
    rate = {"python": 0.1, "numpy": np.float32(0.1), "array": jnp.float32(0.1)}[recipe.rate]
    scale = {"scale": 1.5} if recipe.is_static else {"scale": jnp.float32(0.5)}
    return [state, batch, frozen, key, rate], scale
