"""An array in parts on several meshes does what a ``jax.Array`` does, where its parts lie."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from alpa_runtime import Stack, StackedArray
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

SIZES = (1, 4)


def stacked(whole: jax.Array, dim: int = 0, is_split: bool = True) -> StackedArray:
    """The parts of an array on two meshes of two devices, which split its last dimension."""
    devices = jax.devices()
    parts = np.split(np.asarray(whole), [SIZES[0]], dim)
    spec = P(*[None] * (whole.ndim - 1), "x") if is_split else P()
    return StackedArray(
        Stack((0, 1), dim, SIZES),
        [
            jax.device_put(part, NamedSharding(Mesh(devices[2 * i : 2 * i + 2], "x"), spec))
            for i, part in enumerate(parts)
        ],
    )


def whole(dtype: Any = jnp.float32, shape: tuple[int, ...] = (5, 3, 4)) -> jax.Array:
    return (10 * jax.random.normal(jax.random.key(0), shape)).astype(dtype)


def same(found: Any, expected: Any) -> None:
    """Shape, dtype and numbers."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    # Sums in another order.
    tolerance = 1e-2 if expected.dtype == jnp.bfloat16 else 1e-5
    np.testing.assert_allclose(
        np.asarray(found, complex), np.asarray(expected, complex), tolerance, tolerance
    )


def lies_as(found: Any, array: StackedArray) -> bool:
    """Whether the parts of what was found are where those of the array are."""
    return isinstance(found, StackedArray) and [
        part.sharding.device_set for part in found.parts
    ] == [part.sharding.device_set for part in array.parts]


OPERATORS: dict[str, Callable[[Any], Any]] = {
    "negation": operator.neg,
    "a number": lambda x: 1 - 2 * x,
    "a quotient": lambda x: x / 2,
    "a power": lambda x: x**2,
    "itself": lambda x: x * x + x,
    "a comparison": lambda x: x > 0,
    "a number of numpy": lambda x: x + np.float32(1),
    "a scalar array": lambda x: x + jnp.ones((), jnp.bfloat16),
    "a type": lambda x: x.astype(jnp.float16),
    "a row": lambda x: x.at[3].set(0),
    "the first part": lambda x: x.at[-5, 0].add(jnp.arange(4).astype(x.dtype)),
    "all rows": lambda x: x.at[:, 1].multiply(2),
    "all": lambda x: x.at[:].set(1),
    "between numbers": lambda x: x.clip(-1, max=jnp.ones((), x.dtype)),
    "rounded": lambda x: x.round().conj().copy(),
    "features in one": lambda x: x.reshape((-1, 12)),
    "one dimension more": lambda x: x.reshape(1, 5, 3, 2, -1),
}


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.int8])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_leave_parts_where_they_are(name: str, dtype: Any) -> None:
    array = stacked(whole(dtype))
    with jax.transfer_guard_device_to_host("disallow"):
        found = OPERATORS[name](array)
    assert lies_as(found, array)
    same(found, OPERATORS[name](whole(dtype)))


REDUCTIONS = ("sum", "prod", "mean", "max", "min", "any", "all", "var", "std")


@pytest.mark.parametrize("axis", [None, 0, (-3, 1), -1])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, axis: Any) -> None:
    expected = whole() / 8
    with jax.transfer_guard_device_to_host("disallow"):
        found = getattr(stacked(expected), name)(axis)
    assert isinstance(found, jax.Array | StackedArray)
    same(found, getattr(expected, name)(axis))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.int8, jnp.bool])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_other_types(name: str, dtype: Any) -> None:
    expected = (whole() / 8).astype(dtype)
    same(getattr(stacked(expected), name)(), getattr(expected, name)())


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places(name: str, dim: int, axis: Any) -> None:
    """The first of equals, in whichever part, and of what is not a number."""
    numbers = np.random.default_rng(0).integers(0, 3, (3, 5, 4)).swapaxes(0, 1 - dim)
    for dtype, changed in ((jnp.int8, 2), (jnp.float32, jnp.nan)):
        expected = jnp.asarray(numbers, dtype).at[1, 2, 2].set(changed)
        expected = expected.at[-1, -1, 1].set(changed)
        keeps = dtype == jnp.int8
        found = getattr(stacked(expected, dim, is_split=False), name)(axis, keepdims=keeps)
        assert isinstance(found, jax.Array | StackedArray)
        same(found, getattr(expected, name)(axis, keepdims=keeps))


def test_functions_of_numpy() -> None:
    expected = whole()
    array = stacked(expected)
    same(jnp.asarray(np.sum(array, 0, keepdims=True)), expected.sum(0, keepdims=True))
    same(jnp.asarray(np.mean(array)), expected.mean())
    same(jnp.asarray(np.max(array, -1)), expected.max(-1))
    same(jnp.asarray(np.any(array)), expected.any())
    same(jnp.asarray(np.prod(array, axis=(0, 1))), expected.prod((0, 1)))
    same(jnp.asarray(np.std(array, 0, ddof=1)), expected.std(0, ddof=1))
    same(jnp.asarray(np.var(array, -1)), expected.var(-1))
    same(jnp.asarray(np.argmax(array)), expected.argmax())
    same(jnp.asarray(np.reshape(array, -1)), expected.reshape(-1))
    same(jnp.asarray(np.square(array)), expected**2)
    same(jnp.asarray(np.where(array > 0, array, 0)), jnp.where(expected > 0, expected, 0))
    same(jnp.asarray(np.add.reduce(array, 1)), expected.sum(1))
    with pytest.raises(TypeError, match="out= has to be None"):
        np.sum(array, out=np.zeros((), "f"))
    array *= 2
    assert lies_as(array, stacked(expected))
    same(array, 2 * expected)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_parts_along_another_dimension(axis: Any) -> None:
    expected = whole(jnp.complex64, (3, 5, 4))
    array = stacked(expected, dim=1)
    same(array.sum(axis), expected.sum(axis))
    same(array.mean(axis, keepdims=True), expected.mean(axis, keepdims=True))
    same(array.var(axis, correction=1), expected.var(axis, ddof=1))
    same(array.reshape(3, 1, 5, 4), expected.reshape(3, 1, 5, 4))
    same(array.at[:, 2].set(0), expected.at[:, 2].set(0))


def test_what_is_not_a_number_comes_out() -> None:
    expected = whole().at[2, 1, 1].set(jnp.nan)
    # XLA:CPU loses them where devices exchange the largest numbers.
    array = stacked(expected, is_split=False)
    assert all(map(np.isnan, (array.max(), array.sum(), array.mean())))
    same(array.max(-1).astype(jnp.float32)[0], expected.max(-1)[0])


def test_a_state_is_reduced_leaf_by_leaf() -> None:
    state = {"stack": stacked(whole()), "other": whole()}
    found = jax.tree.map(lambda leaf: (leaf**2).sum(), state)
    np.testing.assert_allclose(found["stack"], found["other"], rtol=1e-6)


def test_what_needs_the_whole_is_refused_or_fetched() -> None:
    array, expected = stacked(whole()), whole()
    with pytest.raises(TypeError, match=r"one row along dimension 0.*jnp\.asarray\(x\)\.at"):
        array.at[1:3].set(0)
    with pytest.raises(TypeError, match="one row along dimension 0"):
        array.at[:].add(expected)
    with pytest.raises(AttributeError, match=r"ravel of StackedArray.*jnp\.asarray\(x\)\.ravel"):
        array.ravel()
    with pytest.raises(TypeError, match=r"to \(60,\).*has to stay.*jnp\.asarray\(x\)\.reshape"):
        array.reshape(-1)
    with pytest.raises(TypeError, match=r"no initial and no where: jnp\.asarray\(x\)\.max"):
        array.max(initial=0, where=expected > 0)
    with pytest.raises(TypeError, match=r"clip of .* takes numbers: jnp\.asarray\(x\)\.clip"):
        array.clip(expected)
    assert not hasattr(array, "no_such_method")
    assert not hasattr(array, "sharding")
    same(jnp.asarray(array).reshape(-1), expected.reshape(-1))
    same(jnp.asarray(array[1:3]), expected[1:3])
    same(jnp.asarray(array + np.ones(4, "f")), expected + 1)
    same(jnp.asarray(array @ np.ones((4, 2), "f")), expected @ jnp.ones((4, 2)))
    same(jnp.asarray(array + stacked(expected, 0)), expected + expected)
