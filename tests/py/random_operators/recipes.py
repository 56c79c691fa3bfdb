"""Programs that are made of operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from programs import Program

from random_operators.dice import Dice
from random_operators.registry import JUMPS, MOST_ELEMENTS, OPERATORS, real

MOST_DIMS = 5
ROUNDED = ("bfloat16", "float16")
DTYPES = (*["float32"] * 8, *ROUNDED, "float64", "complex64", "int32", "int8", "uint8", "bool")
FORMS = ("forward", "forward", "gradient", "gradient", "gradient", "batched", "looped")


@dataclass(frozen=True)
class Recipe:
    """What a random program is made of.

    Attributes:
        names: operators, in order; each takes two of the values that there are, mostly late ones.
        seed: decides what operators leave open, and the arguments.
        shape: of the first argument.
        dtype: of both arguments.
        form: ``"forward"``, ``"gradient"`` to both arguments, ``"batched"`` (as `jax.vmap` makes it
            of the first argument) or ``"looped"`` (the same by `jax.lax.map`).
    """

    names: tuple[str, ...]
    seed: int
    shape: tuple[int, int] = (16, 8)
    dtype: str = "float32"
    form: str = "forward"


def drawn(seed: int) -> Recipe:
    """The recipe of a seed."""
    dice = Dice(np.random.default_rng(seed), None)
    dtype = dice.pick(*DTYPES)
    names = [name for name in OPERATORS if dtype not in ROUNDED or name not in JUMPS]
    form = dice.pick(*FORMS)
    if form == "gradient" and not dtype.startswith("float"):
        form = "forward"
    return Recipe(
        names=tuple(dice.pick(*names) for _ in range(dice.between(3, 9))),
        seed=seed,
        shape=(dice.pick(16, 24, 48, 12, 13, 30), dice.pick(8, 16, 6, 3, 24, 7)),
        dtype=dtype,
        form=form,
    )


def make(recipe: Recipe) -> Program:
    """The program of a recipe: the last values that it has, and a sum of all."""

    def values(x: Any, y: Any, numbers: Any) -> list[Any]:
        found = [x, y]
        for place, name in enumerate(recipe.names):
            dice = Dice(np.random.default_rng((recipe.seed, place)), numbers)
            late = found[-dice.between(1, min(3, len(found)))]
            any_one = found[dice.between(0, len(found) - 1)]
            if late.size < MOST_ELEMENTS:
                try:
                    value = OPERATORS[name](jnp.atleast_1d(late), any_one, dice)
                except (TypeError, ValueError, NotImplementedError):
                    continue  # No such operator of this type or of so few elements.
                if 0 < value.size <= MOST_ELEMENTS and value.ndim <= MOST_DIMS:
                    found.append(value)
        return [*found[-3:], sum(jnp.sum(real(one).astype(jnp.float32)) / 99 for one in found)]

    is_rounded = recipe.dtype in ROUNDED or "converted" in recipe.names
    tolerance = 6e-2 if is_rounded else 5e-4
    return Program(_transformed(values, recipe.form), _arguments(recipe), tolerance)


def _arguments(recipe: Recipe) -> tuple[Any, ...]:
    rng = np.random.default_rng(recipe.seed)
    rows, columns = recipe.shape
    batch = (4,) if recipe.form in ("batched", "looped") else ()
    arrays: list[Any] = [
        rng.uniform(-1, 1, shape) for shape in ((*batch, rows, columns), (columns, 8))
    ]
    if recipe.dtype == "bool":
        arrays = [array > 0 for array in arrays]
    elif recipe.dtype.startswith("complex"):
        arrays = [array + 1j * array[::-1] for array in arrays]
    elif not recipe.dtype.startswith(("float", "bfloat")):
        arrays = [np.abs(9 * array) for array in arrays]
    typed = [array.astype(jnp.dtype(recipe.dtype)) for array in arrays]
    return (*typed, rng.integers(-9, 30, 8).astype(np.int32))


def _transformed(values: Callable[..., list[Any]], form: str) -> Callable[..., Any]:
    if form == "batched":
        return jax.vmap(values, (0, None, None))
    if form == "looped":
        return lambda x, y, numbers: lax.map(lambda one: values(one, y, numbers), x)
    if form == "forward":
        return values

    def loss(x: Any, y: Any, numbers: Any) -> tuple[Any, Any]:
        found = values(x, y, numbers)
        weighted = [jnp.sum(jnp.sin(jnp.arange(one.size)) * real(one).ravel()) for one in found]
        return sum(one.astype(x.dtype) for one in weighted) / 9, found

    return jax.value_and_grad(loss, (0, 1), has_aux=True)
