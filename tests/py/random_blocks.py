"""What random steps do to their activations: ``[rows, width]`` or ``[rows, length, width]``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

CLASSES = 5


@dataclass(frozen=True)
class Inputs:
    """What a block may use beside its parameters and activations.

    Attributes:
        batch: of the step: ``labels``, ``mask`` and ``weights`` per example.
        frozen: a ``table`` and a matrix ``w`` that are not trained.
        key: of this block.
    """

    batch: Any
    frozen: Any
    key: Any = None

    def with_key(self, key: Any) -> Inputs:
        """The same for another block."""
        return dataclasses.replace(self, key=key)

    def labels(self, x: Any) -> Any:
        """A class per example, to be added to activations: int32[rows, 1...]."""
        labels: Any = self.batch["labels"]
        return labels.reshape(-1, *(1,) * (x.ndim - 1))


@dataclass(frozen=True)
class Block:
    """One thing to do.

    Attributes:
        apply: ``apply(params, x, inputs) -> x`` of the same shape.
        shapes: of the parameters, by width.
    """

    apply: Callable[[Any, Any, Inputs], Any]
    shapes: Callable[[int], dict[str, tuple[int, ...]]] = lambda width: {}


BLOCKS: dict[str, Block] = {}
SEQUENCE_BLOCKS: dict[str, Block] = {}


def _square(width: int) -> dict[str, tuple[int, ...]]:
    return {"w": (width, width)}


def _block(
    shapes: Callable[[int], dict[str, tuple[int, ...]]] = lambda width: {},
    blocks: dict[str, Block] = BLOCKS,
) -> Callable[[Any], Any]:
    def add(fun: Any) -> Any:
        blocks[fun.__name__] = Block(fun, shapes)
        return fun

    return add


# Products


@_block(lambda width: {"w": (width, width), "b": (width,)})
def dense(p: Any, x: Any, _: Inputs) -> Any:
    return jnp.tanh(x @ p["w"] + p["b"])


@_block(lambda width: {"up": (width, 2 * width), "down": (2 * width, width)})
def feed_forward(p: Any, x: Any, _: Inputs) -> Any:
    return x + jax.nn.gelu(x @ p["up"]) @ p["down"]


@_block(_square)
def bf16(p: Any, x: Any, _: Inputs) -> Any:
    return (x.astype(jnp.bfloat16) @ p["w"].astype(jnp.bfloat16)).astype(jnp.float32)


@_block(lambda width: {"w": (2, width, width)})
def bilinear(p: Any, x: Any, _: Inputs) -> Any:
    return jnp.tanh(jnp.einsum("...i,kij->...kj", x, p["w"]).sum(-2))


@_block(lambda width: {"w": (3, 1, 1)})
def convolution(p: Any, x: Any, _: Inputs) -> Any:
    rows = x.reshape(-1, x.shape[-1], 1)
    dims = ("NWC", "WIO", "NWC")
    return jax.lax.conv_general_dilated(rows, p["w"], (1,), "SAME", dimension_numbers=dims).reshape(
        x.shape
    )


@_block(lambda width: {"a": (width, 2), "b": (2, width)})
def low_rank(p: Any, x: Any, inputs: Inputs) -> Any:
    return x @ inputs.frozen["w"] + x @ p["a"] @ p["b"]


@_block(_square)
def recomputed(p: Any, x: Any, _: Inputs) -> Any:
    return jax.checkpoint(lambda x: jnp.sin(x @ p["w"]))(x)


@_block(_square)
def vectorised(p: Any, x: Any, _: Inputs) -> Any:
    return jax.vmap(lambda row: jax.nn.silu(row @ p["w"]))(x)


@_block(lambda width: {"w": (3, width, width)})
def experts(p: Any, x: Any, _: Inputs) -> Any:
    weights = jax.nn.softmax(x[..., :3])
    return jnp.einsum("...e,...ej->...j", weights, jnp.einsum("...i,eij->...ej", x, p["w"]))


@_block(_square)
def transposed(p: Any, x: Any, _: Inputs) -> Any:
    return jnp.moveaxis(
        jnp.tanh(jnp.einsum("i...,ij->j...", jnp.moveaxis(x, -1, 0), p["w"])), 0, -1
    )


# Element by element, and along features


@_block()
def softmax(_: Any, x: Any, __: Inputs) -> Any:
    return x + jax.nn.softmax(x)


@_block(lambda width: {"scale": (width,)})
def layer_norm(p: Any, x: Any, _: Inputs) -> Any:
    x = x - x.mean(-1, keepdims=True)
    return p["scale"] * x / jnp.sqrt(jnp.mean(x**2, -1, keepdims=True) + 1e-3)


@_block()
def nested(_: Any, x: Any, __: Inputs) -> Any:
    outer = jax.jit(lambda y: jax.jit(jnp.cos)(y) * 2)
    return outer(x) + outer(x * 0.5)


@_block()
def relu(_: Any, x: Any, __: Inputs) -> Any:
    return jnp.clip(jax.nn.relu(x), 0, 4)


@_block()
def cumulative(_: Any, x: Any, __: Inputs) -> Any:
    return jnp.cumsum(x, -1) / x.shape[-1]


@_block()
def ordered(_: Any, x: Any, __: Inputs) -> Any:
    return jnp.sort(x, -1)


@_block()
def best(_: Any, x: Any, __: Inputs) -> Any:
    values, index = jax.lax.top_k(x, 2)
    return x + values.sum(-1, keepdims=True) * (index[..., :1] % 2)


@_block()
def rolled(_: Any, x: Any, __: Inputs) -> Any:
    return jnp.concatenate([jnp.roll(x, 1, -1)[..., ::2], jnp.flip(x, -1)[..., 1::2]], -1)


@_block()
def padded(_: Any, x: Any, __: Inputs) -> Any:
    wide = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(1, 1)], constant_values=0.5)
    return wide[..., :-2] * jax.lax.stop_gradient(wide[..., 2:])


@_block()
def pooled(_: Any, x: Any, __: Inputs) -> Any:
    return x - jnp.max(x, -1, keepdims=True) + jnp.min(x, -1, keepdims=True)


@_block()
def spectrum(_: Any, x: Any, __: Inputs) -> Any:
    return jnp.real(jnp.fft.fft(x)) / x.shape[-1]


# What differs from example to example


@_block()
def masked(_: Any, x: Any, inputs: Inputs) -> Any:
    mask = inputs.batch["mask"].reshape(-1, *(1,) * (x.ndim - 1))
    return jnp.where(mask, x, jax.lax.stop_gradient(-x))


@_block()
def dropout(_: Any, x: Any, inputs: Inputs) -> Any:
    return jnp.where(jax.random.bernoulli(inputs.key, 0.7, x.shape), x / 0.7, 0)


@_block()
def noise(_: Any, x: Any, inputs: Inputs) -> Any:
    return x + 0.1 * jax.random.normal(inputs.key, x.shape[-1:])


@_block()
def frozen_table(_: Any, x: Any, inputs: Inputs) -> Any:
    found = inputs.frozen["table"][inputs.batch["labels"]]
    return x + found.reshape(x.shape[0], *(1,) * (x.ndim - 2), x.shape[-1])


@_block(lambda width: {"table": (CLASSES, width)})
def embedding(p: Any, x: Any, inputs: Inputs) -> Any:
    found = p["table"][inputs.batch["labels"]]
    return x + found.reshape(x.shape[0], *(1,) * (x.ndim - 2), x.shape[-1])


@_block(lambda width: {"table": (CLASSES, width)})
def one_hot_lookup(p: Any, x: Any, inputs: Inputs) -> Any:
    found = jax.nn.one_hot(inputs.batch["labels"], CLASSES) @ p["table"]
    return x + found.reshape(x.shape[0], *(1,) * (x.ndim - 2), x.shape[-1])


@_block()
def picked(_: Any, x: Any, inputs: Inputs) -> Any:
    return x + jnp.take_along_axis(x, inputs.labels(x), -1)


@_block()
def own_rows(_: Any, x: Any, inputs: Inputs) -> Any:
    """Looked up and changed by their own numbers, alone and with columns of which some are cut."""
    rows = jnp.arange(len(x))
    columns = inputs.batch["labels"] * 3
    some = x.at[rows, columns % x.shape[1]].get(mode="clip")
    x = x.at[rows, 0].add(some).at[rows].multiply(0.5)
    return x + x.at[rows, columns].get(mode="clip")[:, None] * x[rows]


@_block()
def scattered(_: Any, x: Any, inputs: Inputs) -> Any:
    rows = jnp.arange(x.shape[0])
    return x.at[rows, ..., inputs.batch["labels"]].add(1.0)


@_block()
def positions(_: Any, x: Any, __: Inputs) -> Any:
    rows = jnp.arange(x.shape[0]).reshape(-1, *(1,) * (x.ndim - 1))
    return x + jnp.sin(rows / 3) + (rows % 2 == 0)


# Control flow


@_block(_square)
def counted_loop(p: Any, x: Any, _: Inputs) -> Any:
    return jax.lax.scan(lambda h, _: (jnp.tanh(h @ p["w"]), None), x, None, length=3)[0]


@_block(lambda width: {"w": (3, width, width)})
def stacked(p: Any, x: Any, _: Inputs) -> Any:
    def layer(h: Any, w: Any) -> Any:
        h = jnp.tanh(h @ w)
        return h, h.mean(-1)

    h, means = jax.lax.scan(layer, x, p["w"])
    return h + means.mean(0)[..., None]


@_block()
def while_loop(_: Any, x: Any, __: Inputs) -> Any:
    first = (jnp.int32(0), jax.lax.stop_gradient(x))
    turns = jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 0.9 + 0.1), first)
    return x + turns[1]


@_block(_square)
def branch(p: Any, x: Any, _: Inputs) -> Any:
    is_large = jnp.sum(p["w"]) > 0
    return jax.lax.cond(is_large, lambda y: y @ p["w"], lambda y: y * 2, x)


# Along time


@_block(lambda width: {"w": (width, width), "u": (width, width)}, SEQUENCE_BLOCKS)
def recurrent(p: Any, x: Any, _: Inputs) -> Any:
    def turn(h: Any, part: Any) -> Any:
        h = jnp.tanh(h @ p["w"] + part @ p["u"])
        return h, h

    first: Any = jnp.zeros_like(x[:, 0])
    _, outputs = jax.lax.scan(turn, first, jnp.swapaxes(x, 0, 1))
    return jnp.swapaxes(outputs, 0, 1)


@_block(lambda width: {"q": (width, width), "k": (width, width)}, SEQUENCE_BLOCKS)
def attention(p: Any, x: Any, _: Inputs) -> Any:
    scores = jnp.einsum("bti,bsi->bts", x @ p["q"], x @ p["k"]) / x.shape[-1]
    causal = jnp.tril(jnp.ones(scores.shape[1:], bool))
    return jax.nn.softmax(jnp.where(causal, scores, -1e9)) @ x


@_block(_square, SEQUENCE_BLOCKS)
def flattened(p: Any, x: Any, _: Inputs) -> Any:
    return jnp.tanh(x.reshape(-1, x.shape[-1]) @ p["w"]).reshape(x.shape)


@_block(lambda width: {"w": (3, width, width)}, SEQUENCE_BLOCKS)
def convolution_in_time(p: Any, x: Any, _: Inputs) -> Any:
    return jax.lax.conv_general_dilated(
        x, p["w"], (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")
    )


@_block(blocks=SEQUENCE_BLOCKS)
def shifted(_: Any, x: Any, __: Inputs) -> Any:
    return jnp.concatenate([x[:, :1], x[:, :-1]], 1) + jnp.cumsum(x, 1)
