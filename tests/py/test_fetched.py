"""An array that is elsewhere is for a caller what a ``jax.Array`` is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from alpa_runtime.fetched import FetchedOperations
from alpa_runtime.keys import impl_of
from oracle import assert_same


class Elsewhere(FetchedOperations):
    """An array that has to be fetched."""

    def __init__(self, array: jax.Array) -> None:
        self.array, self.key_impl = array, impl_of(array)
        self.shape, self.dtype = array.shape, array.dtype
        weak = jax.typeof(array).weak_type
        self.aval = jax.ShapeDtypeStruct(self.shape, self.dtype, weak_type=weak)

    def fetch(self) -> Any:
        """As it has to be."""
        return self.array if self.key_impl else np.asarray(self.array)

    def is_deleted(self) -> bool:
        """It never is."""
        return False


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "a quotient": lambda x: x / 2,
    "a float": lambda x: x * 2.5,
    "a number of jax": lambda x: jnp.ones((), jnp.bfloat16) * x - x,
    "from the left": lambda x: 1 - x,
    "a matrix product": lambda x: x @ x.T,
    "bits": lambda x: x > 1,
    "a row": lambda x: x[1],
    "rows beside it": lambda x: x[jnp.array([0, 7])],
    "iteration": lambda x: list(x)[1] / 2,
    "sum": lambda x: x.sum(),
    "mean": lambda x: x.mean(0),
    "extrema": lambda x: (x.max(), x.min(1), x.argmax(), x.ptp()),
    "spread": lambda x: (x.std(), x.var(1)),
    "an update": lambda x: x.at[1].set(0),
    "a look-up": lambda x: x.at[7].get(mode="fill", fill_value=3),
    "a type": lambda x: x.astype(jnp.bfloat16),
    "shapes": lambda x: (x.T, x.ravel(), x.reshape(3, 2), x.copy(), x.squeeze()),
    "jax.numpy": lambda x: (jnp.tanh(x), jnp.sum(x), jnp.concatenate([x, x])),
    "a choice": lambda x: jnp.where(x > 1, x, 0),
    "jit": lambda x: jax.jit(lambda y: y + 1)(x),
    "a gradient": lambda x: jax.grad(lambda y: jnp.sum(y**2.0).real)(x + 0.5),
    "vmap": lambda x: jax.vmap(jnp.sum)(x),
    "a loop": lambda x: jax.lax.scan(lambda c, row: (c + row.sum(), row + 1), 0.0, x),
    "device_put": lambda x: jax.device_put(x),
    "a tree": lambda x: optax.tree.norm({"a": x}),
    "zeros": lambda x: (jnp.zeros_like(x), jnp.asarray(x)),
    "divmod": lambda x: divmod(x, 2),
}


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.int32, jnp.uint8])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_comes_out_is_what_jax_makes(name: str, dtype: Any) -> None:
    array = jnp.arange(6).reshape(2, 3).astype(dtype)
    function = FUNCTIONS[name]
    try:
        expected = function(array)
    except (AttributeError, TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            function(Elsewhere(array))
        return
    assert_same(function(Elsewhere(array)), expected)


def test_numbers() -> None:
    two = Elsewhere(jnp.int32(2))
    assert (int(two), float(two), complex(two), two.item(), round(two)) == (2, 2.0, 2, 2, 2)
    assert [0, 1, 2][two] == 2
    assert list(range(two)) == [0, 1]
    with pytest.raises(TypeError):
        [0, 1, 2][Elsewhere(jnp.float32(2))]


def test_weak_types_stay_weak() -> None:
    weak = jnp.asarray(3.0)
    assert jax.typeof(weak).weak_type
    half = jnp.ones(2, jnp.bfloat16)
    assert_same(half * Elsewhere(weak), half * weak)
    elsewhere: Any = Elsewhere(weak)
    assert_same(jnp.multiply(elsewhere, half), half * weak)


def test_keys() -> None:
    keys = jax.random.split(jax.random.key(0), 4)
    here = Elsewhere(keys)
    draw = jax.vmap(lambda key: jax.random.normal(key, (3,)))
    assert_same(draw(here), draw(keys))
    assert_same(jax.random.fold_in(here[1], 3), jax.random.fold_in(keys[1], 3))
    assert_same(here.reshape(2, 2), keys.reshape(2, 2))


def test_it_has_nothing_of_devices() -> None:
    here = Elsewhere(jnp.ones(3))
    for name in ("sharding", "devices", "addressable_shards", "is_fully_replicated"):
        assert not hasattr(here, name)
    assert not isinstance(here, jax.Array)
