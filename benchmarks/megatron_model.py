"""A GPT that computes and keeps what Megatron-LM's does: the model of the published rows.

Parameters, their moments and their gradients are f32, products read them in bf16. For the backward
pass norms and GELU keep their input and softmax its result (Korthikanti et al., MLSys 2023, section
4), as Megatron's fused kernels do; dropouts keep their masks, a byte an element. Nothing of the
size of a model is made: states are shapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import stablehlo_alpa

Params = Any
"""Parameters: a dict of dicts of arrays, a dict per layer."""

_EPSILON = 1e-5
_KEPT = 0.9  # of what passes a dropout
_ROUNDS = 10  # of mixing random bits


@dataclass(frozen=True)
class GPTSizes:
    """Sizes of a GPT.

    Attributes:
        layers, hidden, heads: of the transformer; the feed-forward network is four times as wide.
        batch: sequences of a step.
        length: tokens of a sequence.
        vocabulary: rows of the table.
    """

    layers: int
    hidden: int
    heads: int
    batch: int
    length: int = 2048
    vocabulary: int = 51200

    @property
    def num_parameters(self) -> int:
        """Parameters, positions and biases included."""
        layer = 12 * self.hidden**2 + 13 * self.hidden
        return self.layers * layer + (self.vocabulary + self.length + 2) * self.hidden


class State(NamedTuple):
    """What a step carries: f32 parameters and moments, and int32[] steps done."""

    params: Params
    means: Params
    squares: Params
    done: Any


@jax.custom_vjp
def softmax(scores: jax.Array) -> jax.Array:
    """Along the last dimension, computed in f32; keeps its result alone."""
    return jax.nn.softmax(scores.astype(jnp.float32)).astype(scores.dtype)


def _softmax_forward(scores: jax.Array) -> tuple[jax.Array, jax.Array]:
    weights = softmax(scores)
    return weights, weights


def _softmax_backward(weights: jax.Array, gradient: jax.Array) -> tuple[jax.Array]:
    wide = gradient.astype(jnp.float32)
    inner = (wide * weights).sum(-1, keepdims=True)
    return ((weights * (wide - inner)).astype(weights.dtype),)


softmax.defvjp(_softmax_forward, _softmax_backward)


@jax.checkpoint
def norm(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    """Layer norm along the last dimension, computed in f32."""
    wide = x.astype(jnp.float32)
    mean = wide.mean(-1, keepdims=True)
    variance = jnp.square(wide).mean(-1, keepdims=True) - jnp.square(mean)
    normed = (wide - mean) * jax.lax.rsqrt(variance + _EPSILON)
    return (normed * scale + bias).astype(x.dtype)


@jax.checkpoint
def gelu(x: jax.Array, bias: jax.Array) -> jax.Array:
    """GELU of a biased input."""
    return jax.nn.gelu(x + bias)


def _numbers(shape: tuple[int, ...]) -> jax.Array:
    """uint32 numbers of the elements of a shape, row-major, modulo 2**32."""
    total = jnp.zeros((), jnp.uint32)
    stride = 1
    for dimension in reversed(range(len(shape))):
        at = jax.lax.broadcasted_iota(jnp.uint32, shape, dimension)
        total = total + at * jnp.uint32(stride % 2**32)
        stride *= shape[dimension]
    return total


def dropout(x: jax.Array, seed: jax.Array) -> jax.Array:
    """Zeroes a tenth of x by a seed of uint32[]; the mask is kept.

    The number of an element is mixed in ten rounds, as many as those of Philox, the generator of
    Megatron-LM's kernels (not for training: there are no keys).
    """
    bits = _numbers(x.shape) ^ seed
    for _ in range(_ROUNDS):
        bits = (bits ^ (bits >> 15)) * jnp.uint32(0x85EBCA77)
    # The backward phase of a pipeline would draw it again.
    is_kept = jax.lax.optimization_barrier(bits < jnp.uint32(int(_KEPT * 2**32)))
    return jnp.where(is_kept, x / jnp.asarray(_KEPT, x.dtype), jnp.zeros((), x.dtype))


def half(parameter: jax.Array) -> jax.Array:
    """In bf16, as products read it."""
    return parameter.astype(jnp.bfloat16)


def attention(params: Params, x: jax.Array, seed: jax.Array) -> jax.Array:
    """Causal self-attention of bf16[batch, length, hidden]."""
    made = jnp.einsum("bsh,hgad->bsgad", x, half(params["qkv"]))
    made = made + half(params["qkv_bias"])
    query, key_, value = (made[:, :, part] for part in range(3))
    scores = jnp.einsum("bqad,bkad->baqk", query, key_) * query.shape[-1] ** -0.5
    mask = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
    weights = softmax(jnp.where(mask, scores, jnp.asarray(-1e4, scores.dtype)))
    mixed = jnp.einsum("baqk,bkad->bqad", dropout(weights, seed), value)
    return jnp.einsum("bqad,adh->bqh", mixed, half(params["out"])) + half(params["out_bias"])


def block(params: Params, x: jax.Array, seed: jax.Array) -> jax.Array:
    """A layer: attention and a feed-forward network, each behind a norm, with residuals."""
    y = norm(x, params["norm_1"], params["norm_1_bias"])
    x = x + dropout(attention(params, y, seed), seed + 1)
    y = norm(x, params["norm_2"], params["norm_2_bias"])
    y = gelu(y @ half(params["up"]), half(params["up_bias"]))
    return x + dropout(y @ half(params["down"]) + half(params["down_bias"]), seed + 2)


def loss(params: Params, tokens: jax.Array, seed: jax.Array) -> jax.Array:
    """f32[] mean cross-entropy of the next token of int32[batch, length]."""
    table = params["embedding"]["table"]
    x = half(table)[tokens] + half(params["embedding"]["position"])
    layers = [name for name in params if name.startswith("layer_")]
    for number, name in enumerate(layers):
        with jax.named_scope(name):
            x = block(params[name], x, seed + 3 * number)
    x = norm(x, params["norm"]["scale"], params["norm"]["bias"])
    logits = (x @ half(table).T).astype(jnp.float32)
    targets = jnp.roll(tokens, -1, axis=1)
    hit = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return (jax.nn.logsumexp(logits, axis=-1) - hit).mean()


def parameter_shapes(sizes: GPTSizes) -> dict[str, dict[str, tuple[int, ...]]]:
    """Of every parameter."""
    h, heads = sizes.hidden, sizes.heads
    width = h // heads
    layer = {
        **{f"norm_{at}{end}": (h,) for at in (1, 2) for end in ("", "_bias")},
        **{"qkv": (h, 3, heads, width), "qkv_bias": (3, heads, width)},
        **{"out": (heads, width, h), "out_bias": (h,)},
        **{"up": (h, 4 * h), "up_bias": (4 * h,), "down": (4 * h, h), "down_bias": (h,)},
    }
    return {
        "embedding": {"table": (sizes.vocabulary, h), "position": (sizes.length, h)},
        **{f"layer_{number:03}": dict(layer) for number in range(sizes.layers)},
        "norm": {"scale": (h,), "bias": (h,)},
    }


def gradients(params: Params, tokens: jax.Array) -> tuple[jax.Array, Params]:
    """The loss and its gradients, without a step."""
    return stablehlo_alpa.value_and_grad(loss)(params, tokens, jnp.zeros((), jnp.uint32))


def step(state: State, tokens: jax.Array) -> tuple[State, jax.Array]:
    """A step of Adam, and the loss before it."""
    value, slopes = stablehlo_alpa.value_and_grad(loss)(
        state.params, tokens, state.done.astype(jnp.uint32)
    )
    count = state.done + 1
    rate = 1e-4 * jnp.sqrt(1 - 0.95**count) / (1 - 0.9**count)
    means = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state.means, slopes)
    squares = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, state.squares, slopes)
    params = jax.tree.map(
        lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), state.params, means, squares
    )
    return State(params, means, squares, count), value


def step_shapes(sizes: GPTSizes) -> tuple[State, jax.ShapeDtypeStruct]:
    """What a step takes."""
    params = {
        part: {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in found.items()}
        for part, found in parameter_shapes(sizes).items()
    }
    state = State(params, params, params, jax.ShapeDtypeStruct((), jnp.int32))
    return state, jax.ShapeDtypeStruct((sizes.batch, sizes.length), jnp.int32)
