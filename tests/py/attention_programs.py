"""Attention in many hands: what is recognised as one operator, and what is not."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from programs import Program

BATCH, LENGTH, HEADS, DEPTH = 2, 48, 4, 8


def real(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def heads(keys: int = HEADS, length: int = LENGTH, dtype: Any = np.float32) -> tuple[Any, ...]:
    """Queries, keys and values of heads, all different."""
    query = real(BATCH, LENGTH, HEADS, DEPTH, dtype=dtype)
    key, value = real(2, BATCH, length, keys, DEPTH, dtype=dtype)
    return query, key, value


def softmax(attend: Any, mask: Any = None, softmax: Any = jax.nn.softmax) -> Any:
    """Attention by einsum, as it stands in many models."""

    def attention(q: Any, k: Any, v: Any, *rest: Any) -> Any:
        scores = attend(jnp.einsum("bqhd,bkhd->bhqk", q, k), *rest)
        if mask is not None:
            scores = jnp.where(mask, scores, -1e9)
        return jnp.einsum("bhqk,bkhd->bqhd", softmax(scores), v)

    return attention


def with_gradients(fun: Callable[..., Any], count: int = 3) -> Callable[..., Any]:
    """The result, and the gradients of a function of it that has different weights."""

    @functools.wraps(fun)
    def step(*args: Any) -> Any:
        def loss(*args: Any) -> Any:
            out = fun(*args).astype(jnp.float32)
            return (jnp.sin(out) * jnp.arange(out.size).reshape(out.shape) / out.size).sum(), out

        (_, out), gradients = jax.value_and_grad(loss, range(count), has_aux=True)(*args)
        return out, gradients

    return step


def by_hand(x: Any) -> Any:
    shares = jnp.exp(x - jax.lax.stop_gradient(x.max(-1, keepdims=True)))
    return shares * (1 / shares.sum(-1, keepdims=True))


def one_head(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.softmax((q @ k.T) / math.sqrt(DEPTH)) @ v


def in_layers(x: Any, weights: Any) -> Any:
    """A scan over layers that are computed again for their gradients."""

    @jax.checkpoint
    def layer(x: Any, w: Any) -> Any:
        parts = jnp.einsum("bsf,nfg->nbsg", x, w).reshape(3, BATCH, LENGTH, HEADS, DEPTH)
        out = jax.nn.dot_product_attention(*parts, is_causal=True, implementation="xla")
        return x + out.reshape(x.shape), None

    return jax.lax.scan(layer, x, weights)[0]


def library(**options: Any) -> Callable[..., Any]:
    return functools.partial(jax.nn.dot_product_attention, implementation="xla", **options)


def recomputed(q: Any, k: Any, v: Any) -> Any:
    return jax.checkpoint(library(is_causal=True))(jnp.sin(q), jnp.sin(k), jnp.sin(v))


def same_document(scores: Any, documents: Any) -> Any:
    mask = documents[:, None, :, None] == documents[:, None, None, :]
    return jnp.where(mask & (jnp.tril(jnp.ones((LENGTH, LENGTH), bool))), scores, -jnp.inf)


def kept(key: Any, shape: tuple[int, ...], is_shared: bool = False) -> Any:
    """Nine weights in ten, for all examples and heads the same or not."""
    return jax.random.bernoulli(key, 0.9, (1, 1, *shape[2:]) if is_shared else shape)


def dropout(drop: Any, is_causal: bool = True) -> Callable[..., Any]:
    """Attention some of whose weights are dropped."""

    def attention(q: Any, k: Any, v: Any, key: Any) -> Any:
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k)
        if is_causal:
            scores = jnp.where(causal_places(), scores, -1e9)
        weights = drop(jax.nn.softmax(scores), key)
        return jnp.einsum("bhqk,bkhd->bqhd", weights.astype(v.dtype), v)

    return attention


def multiplied(weights: Any, key: Any, is_shared: bool = False) -> Any:
    """As flax has it."""
    return weights * (kept(key, weights.shape, is_shared).astype(weights.dtype) / 0.9)


def selected(weights: Any, key: Any) -> Any:
    """As equinox has it."""
    return jnp.where(kept(key, weights.shape), weights / 0.9, 0)


def selected_otherwise(weights: Any, key: Any) -> Any:
    return jnp.where(~kept(key, weights.shape), 0, weights)


def twice_dropped(weights: Any, key: Any) -> Any:
    """Rows that are padding, and dropout."""
    return selected(weights * SOME_ROWS.any(1, keepdims=True), key)


def dropout_in_layers(x: Any, weights: Any, key: Any) -> Any:
    """As `in_layers`, each layer with a key of its own."""

    @jax.checkpoint
    def layer(x: Any, turn: Any) -> Any:
        w, own = turn
        q, k, v = jnp.einsum("bsf,nfg->nbsg", x, w).reshape(3, BATCH, LENGTH, HEADS, DEPTH)
        return x + dropout(selected)(q, k, v, own).reshape(x.shape), None

    keys = jax.vmap(lambda number: jax.random.fold_in(key, number))(jnp.arange(len(weights)))
    return jax.lax.scan(layer, x, (weights, keys))[0]


KEY = np.array([17, 4], np.uint32)
DOCUMENTS = np.sort(np.random.default_rng(0).integers(0, 3, (BATCH, LENGTH)))
CAUSAL = np.tril(np.ones((LENGTH, LENGTH), bool))
SOME_ROWS = CAUSAL & (np.arange(LENGTH) % 5 != 0)[:, None]
HALF, LOW = jnp.bfloat16, -2.38e38


def causal_places() -> Any:
    return jnp.tril(jnp.ones((LENGTH, LENGTH), bool))


FAR = np.where(np.arange(LENGTH) < 40, 0, -np.inf).astype(np.float32)
"""A bias that leaves the last keys alone, as if what is before them were padding."""


def padded_before(q: Any, k: Any, v: Any) -> Any:
    """The first rows see nothing: what is masked in them has a greater score than what is not."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) + FAR[::-1]
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(causal_places(), scores, LOW)), v)


def infinite_behind(q: Any, k: Any, v: Any) -> Any:
    """Zero times infinity is no number: weights of what is masked are that."""
    return library(is_causal=True)(q, k, v.at[:, -1].set(jnp.inf))


def twice_masked(q: Any, k: Any, v: Any) -> Any:
    """Not what is far before, and not what is behind."""
    places = jnp.arange(LENGTH)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k)
    scores = jnp.where(places[:, None] > places + 20, -1e9, scores)
    scores = jnp.where(causal_places(), scores, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


RECOGNISED = {
    "masked, padded before": Program(padded_before, heads()),
    "masked, infinite behind": Program(infinite_behind, heads()),
    "twice masked": Program(with_gradients(twice_masked), heads()),
    "library, causal": Program(with_gradients(library(is_causal=True)), heads()),
    "library, groups of heads": Program(with_gradients(library(is_causal=True)), heads(2)),
    "library, window": Program(with_gradients(library(local_window_size=(7, 3))), heads(1)),
    "library, lengths": Program(
        with_gradients(
            lambda q, k, v, n: library(key_value_seq_lengths=n)(q, k, v),
        ),
        (*heads(), np.array([17, LENGTH], np.int32)),
    ),
    "library, bias and mask, half": Program(
        with_gradients(lambda q, k, v, b: library()(q, k, v, bias=b, mask=SOME_ROWS)),
        (*heads(2, dtype=HALF), real(1, HEADS, LENGTH, LENGTH, dtype=HALF)),
        2e-2,
    ),
    "library, half": Program(with_gradients(library(is_causal=True)), heads(dtype=HALF), 2e-2),
    "other keys": Program(with_gradients(library()), heads(length=24)),
    "odd": Program(with_gradients(library(is_causal=True)), tuple(real(3, BATCH, 50, 3, DEPTH))),
    "soft cap": Program(with_gradients(softmax(lambda s: 5 * jnp.tanh(s / 5), CAUSAL)), heads()),
    "by hand": Program(with_gradients(softmax(lambda s: s / 3, None, by_hand)), heads()),
    "documents": Program(
        with_gradients(softmax(same_document)), (*heads(), DOCUMENTS.astype(np.int32))
    ),
    "half throughout": Program(
        with_gradients(softmax(lambda s: s * 0.3, CAUSAL)), heads(dtype=HALF), 3e-2
    ),
    "one head": Program(with_gradients(one_head), tuple(real(3, LENGTH, DEPTH))),
    "rows without keys": Program(softmax(lambda s: jnp.where(SOME_ROWS, s, -jnp.inf)), heads()),
    "recomputed": Program(with_gradients(recomputed), heads()),
    "layers": Program(
        with_gradients(in_layers, 2),
        (real(BATCH, LENGTH, HEADS * DEPTH), real(2, 3, HEADS * DEPTH, HEADS * DEPTH) / 5),
    ),
    "dropout, multiplied": Program(with_gradients(dropout(multiplied)), (*heads(), KEY)),
    "dropout, selected": Program(with_gradients(dropout(selected, False)), (*heads(), KEY)),
    "dropout, selected otherwise": Program(
        with_gradients(dropout(selected_otherwise)), (*heads(), KEY)
    ),
    "dropout, twice": Program(with_gradients(dropout(twice_dropped)), (*heads(), KEY)),
    "dropout, other keys": Program(
        with_gradients(dropout(selected, False)), (*heads(length=24), KEY)
    ),
    "dropout, shared": Program(
        with_gradients(dropout(functools.partial(multiplied, is_shared=True))), (*heads(), KEY)
    ),
    "dropout, half": Program(with_gradients(dropout(multiplied)), (*heads(dtype=HALF), KEY), 2e-2),
    "dropout, odd": Program(
        with_gradients(dropout(multiplied, False)), (*real(3, BATCH, 50, 3, DEPTH), KEY)
    ),
    "dropout, one example": Program(
        with_gradients(dropout(selected)), (*real(3, 1, LENGTH, HEADS, DEPTH), KEY)
    ),
    "dropout, recomputed": Program(
        with_gradients(jax.checkpoint(dropout(multiplied))), (*heads(), KEY)
    ),
    "dropout, layers": Program(
        with_gradients(dropout_in_layers, 2),
        (real(BATCH, LENGTH, HEADS * DEPTH), real(2, 3, HEADS * DEPTH, HEADS * DEPTH) / 5, KEY),
    ),
    "scaled weights": Program(with_gradients(dropout(lambda w, half: w * 0.5)), (*heads(), KEY)),
    "thresholded scores": Program(
        with_gradients(softmax(lambda s: jnp.where(s > 0.25, s, -1e9))), heads()
    ),
    "dropout of heads": Program(
        with_gradients(dropout(lambda w, heads: w * heads[:, None, None])),
        (*heads(), np.array([True, True, False, True])),
    ),
    "dropout of an argument": Program(
        with_gradients(dropout(lambda w, keep: w * keep)),
        (*heads(), np.random.default_rng(0).random((BATCH, HEADS, LENGTH, LENGTH)) < 0.9),
    ),
}
"""Programs of which all attention becomes one operator."""


@functools.partial(
    jax.shard_map,
    mesh=jax.sharding.AbstractMesh((8,), ("x",)),
    in_specs=jax.sharding.PartitionSpec("x"),
    out_specs=jax.sharding.PartitionSpec("x"),
)
def by_author(q: Any, k: Any, v: Any) -> Any:
    return library()(q, k, v)


def weighted(q: Any, k: Any, v: Any, numbers: Any) -> Any:
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k)) * numbers
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def with_weights(q: Any, k: Any, v: Any) -> Any:
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v), weights


def along_queries(q: Any, k: Any, v: Any) -> Any:
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k), axis=2)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def without_maximum(q: Any, k: Any, v: Any) -> Any:
    shares = jnp.exp(jnp.einsum("bqhd,bkhd->bhqk", q, k) - 3)
    return jnp.einsum("bhqk,bkhd->bqhd", shares / shares.sum(-1, keepdims=True), v)


def over_the_largest(q: Any, k: Any, v: Any) -> Any:
    """The gradient asks which score is the largest: scores made again would round otherwise."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k)
    scores = scores / (9 + scores.max(-1, keepdims=True))
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


LEFT = {
    "divided by the largest": Program(with_gradients(over_the_largest), heads()),
    "weights times numbers": Program(weighted, (*heads(), real(BATCH, HEADS, LENGTH, LENGTH))),
    "weights are returned": Program(with_weights, heads()),
    "softmax along queries": Program(along_queries, heads()),
    "no maximum": Program(without_maximum, heads()),
    "gradient of a bias": Program(
        with_gradients(softmax(lambda s, b: s + b), 4),
        (*heads(), real(BATCH, HEADS, LENGTH, LENGTH)),
    ),
    "split by its author": Program(by_author, tuple(real(3, 8, LENGTH, 2, DEPTH))),
    "gradient of values": Program(
        lambda q, k, v: jax.grad(lambda v: jnp.sin(library()(q, k, v)).sum())(v), heads()
    ),
}
"""Programs that need scores or weights, or are no attention: nothing changes in them."""
