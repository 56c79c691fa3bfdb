"""Products between transpositions are what they were when the transpositions have moved."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax
from test_roundtrip import lowered, printed, run_text, through

PASS = "builtin.module(alpa-move-transposes)"


@dataclass(frozen=True)
class TransposedProduct:
    """``dot_general`` of two transposed operands, transposed.

    Attributes:
        sizes: of dimensions of the batch, of the sum, of each operand alone.
        orders: of those in each operand, as it is given.
        taken: whether the product reads them in order, transposed.
        result: the order in which the product is read, by its dimensions.
        is_read_twice: somebody reads the left operand as the product does.
    """

    sizes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    orders: tuple[tuple[int, ...], tuple[int, ...]]
    taken: tuple[bool, bool]
    result: tuple[int, ...]
    is_read_twice: bool

    def shape(self, operand: int) -> tuple[int, ...]:
        """Sizes of an operand as it is given."""
        batch, summed, *free = self.sizes
        sizes = batch + summed + free[operand]
        return tuple(sizes[dim] for dim in self.orders[operand])

    def __call__(self, *operands: jax.Array) -> list[jax.Array]:
        """The product, and what else is read."""
        places = []
        taken = []
        for operand, order, is_taken in zip(operands, self.orders, self.taken, strict=True):
            back = tuple(int(dim) for dim in np.argsort(order))
            taken.append(lax.transpose(operand, back) if is_taken else operand)
            places.append(tuple(range(len(order))) if is_taken else back)
        batch, summed = len(self.sizes[0]), len(self.sizes[1])
        dims = (
            (places[0][batch : batch + summed], places[1][batch : batch + summed]),
            (places[0][:batch], places[1][:batch]),
        )
        product = lax.transpose(lax.dot_general(taken[0], taken[1], dims), self.result)
        return [product, taken[0]] if self.is_read_twice else [product]


@st.composite
def transposed_products(draw: st.DrawFn) -> TransposedProduct:
    few = st.lists(st.integers(1, 4), max_size=2).map(tuple)
    batch, summed, left, right = (draw(few) for _ in range(4))
    orders = [
        tuple(draw(st.permutations(range(len(batch) + len(summed) + len(free)))))
        for free in (left, right)
    ]
    # Half of the time an order that a product can have.
    own = [list(range(len(part))) for part in (batch, left, right)]
    parts = [draw(st.permutations(part)) for part in own]
    ends = [0, len(batch), len(batch) + len(left)]
    blocks = [[end + dim for dim in part] for end, part in zip(ends, parts, strict=True)]
    if draw(st.booleans()):
        blocks[1:] = blocks[:0:-1]
    result = [dim for block in blocks for dim in block]
    if draw(st.booleans()):
        result = draw(st.permutations(result))
    return TransposedProduct(
        (batch, summed, left, right),
        (orders[0], orders[1]),
        (draw(st.booleans()), draw(st.booleans())),
        tuple(result),
        draw(st.booleans()),
    )


def transposed_elements(text: str) -> int:
    """How many elements a program transposes."""
    found = re.findall(r"stablehlo\.transpose.*?-> tensor<((?:\d+x)*)\w+>", text)
    return sum(math.prod(int(size) for size in sizes.split("x")[:-1]) for sizes in found)


@settings(max_examples=40)
@given(transposed_products())
def test_products_stay_what_they_are(product: TransposedProduct) -> None:
    rng = np.random.default_rng(0)
    args = [jnp.array(rng.integers(-9, 9, product.shape(operand))) for operand in (0, 1)]
    module = lowered(product, tuple(args))
    moved = through(printed(module), PASS)
    expected = jax.jit(product)(*args)
    for one, two in zip(run_text(moved, args, expected), expected, strict=True):
        np.testing.assert_array_equal(one, two)
    text = through(printed(module), generic=False)
    cleaned = through(printed(module), "builtin.module(canonicalize)", generic=False)
    moved = through(printed(module), PASS, generic=False)
    assert transposed_elements(moved) <= transposed_elements(cleaned) <= transposed_elements(text)


def test_scores_of_grouped_queries_are_not_transposed() -> None:
    """The einsums of an attention with grouped queries, forwards and backwards."""
    batch, length, groups, heads, size = 2, 64, 2, 4, 8

    def loss(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
        scores = jnp.einsum("bqghd,bkgd->bghqk", query, key)
        return jnp.einsum("bghqk,bkgd->bqghd", jax.nn.softmax(scores), value).sum()

    query = jax.ShapeDtypeStruct((batch, length, groups, heads, size), "f")
    key = jax.ShapeDtypeStruct((batch, length, groups, size), "f")
    module = lowered(jax.grad(loss, argnums=(0, 1, 2)), (query, key, key))
    scores = batch * groups * heads * length * length
    assert transposed_elements(through(printed(module), generic=False)) > 2 * scores
    imported = through(printed(module), "builtin.module(alpa-import-pipeline)", generic=False)
    assert transposed_elements(imported) < scores
