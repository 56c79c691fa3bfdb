"""Products, convolutions and transforms."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from random_operators.dice import Dice
from random_operators.registry import MOST_ELEMENTS, bounded, fitted, jumping, operator, real
from random_operators.shapes import transpose


@operator
def product(x: Any, y: Any, dice: Dice) -> Any:
    """Over the first dimensions of one size, or of a value with itself."""
    x, y = real(x), real(y).astype(real(x).dtype)
    pairs = [(i, j) for i, n in enumerate(x.shape) for j, m in enumerate(y.shape) if n == m]
    for i, j in pairs:
        if x.size // x.shape[i] * (y.size // y.shape[j]) <= MOST_ELEMENTS:
            return bounded(jnp.tensordot(x, y, (i, j)) / x.shape[i])
    dims = [*range(x.ndim - 1)]
    return bounded(jnp.tensordot(x, x, (dims, dims)) / x.size)


@operator
def batched_product(x: Any, y: Any, dice: Dice) -> Any:
    x = transpose(jnp.atleast_2d(real(x)), y, dice)
    if x.ndim == 2:
        return jnp.einsum("ab,ab->a", x, jnp.sin(x))
    return bounded(jnp.einsum("abc...,adc...->abd", x, x) / x.shape[2])


@jumping
def integer_product(x: Any, y: Any, dice: Dice) -> Any:
    x = jnp.atleast_2d(bounded(real(x))).astype(jnp.int8)
    return lax.dot_general(x, x, (((0,), (0,)), ((), ())), preferred_element_type=jnp.int32)


@operator
def ragged_product(x: Any, y: Any, dice: Dice) -> Any:
    x = jnp.atleast_2d(real(x)).astype(jnp.float32)
    x = x.reshape(x.shape[0], -1)[:, :16]
    weights = fitted(real(y), (3, x.shape[1], 8), x.dtype)
    ends = jnp.sort(dice.numbers[:2] % (x.shape[0] + 1))
    sizes = jnp.diff(ends, prepend=0, append=jnp.full_like(ends[:1], x.shape[0]))
    return bounded(lax.ragged_dot(x, weights, sizes.astype(jnp.int32)) / x.shape[1])


@operator
def convolution(x: Any, y: Any, dice: Dice) -> Any:
    """Along the first dimension: features are what else there is, in groups or not."""
    rows = jnp.tanh(real(x)).astype(jnp.float32).reshape(1, x.shape[0], -1)[..., :12]
    features = rows.shape[2]
    groups = dice.pick(1, features, *[k for k in (2, 3) if features % k == 0])
    width, outputs = dice.pick(1, 2, 3), groups * dice.between(1, 2)
    kernel = fitted(jnp.cos(real(y)), (width, features // groups, outputs), rows.dtype)
    return lax.conv_general_dilated(
        rows,
        kernel,
        (dice.between(1, 3),),
        [(dice.between(0, 4), dice.between(2, 4))],
        (dice.pick(1, 1, 2),),
        (dice.pick(1, 1, 2),),
        ("NHC", "HIO", "NHC"),
        groups,
    )[0]


@operator
def convolution_of_two_dims(x: Any, y: Any, dice: Dice) -> Any:
    images = jnp.tanh(real(x)).astype(jnp.float32)
    images = jnp.atleast_2d(images).reshape(1, *jnp.atleast_2d(images).shape[:2], -1)[..., :4]
    kernel = fitted(jnp.cos(real(y)), (3, 2, images.shape[3], 2), images.dtype)
    strides = (dice.between(1, 2), dice.between(1, 2))
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(images, kernel, strides, "SAME", dimension_numbers=layout)[0]


@operator
def fourier(x: Any, y: Any, dice: Dice) -> Any:
    x = real(x).astype(jnp.float32)
    return bounded(dice.pick(jnp.fft.rfft, jnp.fft.fft)(x, axis=dice.dim(x)) / x.shape[0])


@operator
def inverse_fourier(x: Any, y: Any, dice: Dice) -> Any:
    z = lax.complex(real(x).astype(jnp.float32), jnp.cos(real(x)).astype(jnp.float32))
    return dice.pick(jnp.fft.irfft, jnp.fft.ifft)(z, axis=dice.dim(x))
