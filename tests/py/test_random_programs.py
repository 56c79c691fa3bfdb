"""Random steps under every method equal plain ``jax.jit`` of them, or are refused with a reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from jax.sharding import PartitionSpec
from random_programs import Program, Recipe, make, recipes

import stablehlo_alpa
from stablehlo_alpa import (
    AutoLayers,
    DataParallel,
    ManualSharding,
    PipeshardParallel,
    ShardParallel,
    UniformStages,
    Zero2Parallel,
    Zero3Parallel,
)
from stablehlo_alpa.errors import CompileError, StablehloAlpaError

COUNTS = (1, 2, 4)
STEPS = 2
QUICK, MANY = 15, 200

# What a refusal has to name: an operator, or an argument.
NAMED = r"jit\(|state|batch|frozen|key|rate|scale"


def _pipeline(count: int) -> Any:
    return PipeshardParallel(
        num_micro_batches=count, stages=UniformStages(2), layers=AutoLayers(num_layers=2)
    )


def _pinned(count: int) -> Any:
    specs: dict[int | str, Any] = {"state['params']['head']": PartitionSpec("x")}
    return ManualSharding(num_micro_batches=count, mesh_shape=(8,), names=("x",), in_specs=specs)


METHODS: dict[str, Callable[[int], Any]] = {
    "pipeline": _pipeline,
    "shard": lambda count: ShardParallel(num_micro_batches=count, mesh_shape=(2, 4)),
    "data": lambda count: DataParallel(num_micro_batches=count),
    "zero2": lambda count: Zero2Parallel(num_micro_batches=count),
    "zero3": lambda count: Zero3Parallel(num_micro_batches=count),
    "manual": _pinned,
}


def applies(recipe: Recipe, method: str) -> bool:
    """A pipeline of several stages has to see the gradients."""
    return method != "pipeline" or recipe.gradients != "jax"


def run(program: Program, step: Any) -> list[Any]:
    """Results of a few steps in a row."""
    args, kwargs = program.make()
    found = []
    for number in range(STEPS if program.carries else 1):
        result = step(*args, **kwargs)
        if program.carries:
            args[0] = result[0]
            # The next state is donated to the next step.
            result = jax.tree.map(np.asarray, result), jax.tree.map(_type, result)
        args[3] = jax.random.fold_in(args[3], number)
        found.append(result)
    return found


def _type(leaf: Any) -> tuple[Any, ...]:
    return leaf.shape, leaf.dtype, leaf.weak_type


def assert_same(found: Any, expected: Any, tolerance: float, what: str) -> None:
    """Structure, shapes, dtypes, weak types and values."""
    structure: Any = jax.tree.structure(found)
    assert structure == jax.tree.structure(expected), what
    leaves, _ = jax.tree_util.tree_flatten_with_path(expected)
    for (path, value), result in zip(leaves, jax.tree.leaves(found), strict=True):
        name = f"{what}: {jax.tree_util.keystr(path)}"
        if isinstance(value, jax.Array):
            assert _type(result) == _type(value), name
        if isinstance(value, jax.Array | np.ndarray):
            assert_close(result, value, tolerance, name)
        else:
            assert result == value, name


def assert_close(result: Any, value: Any, tolerance: float, name: str) -> None:
    """Numbers to a tolerance of the largest, everything else exactly."""
    result, value = np.asarray(result), np.asarray(value)
    if not np.issubdtype(value.dtype, np.inexact):
        np.testing.assert_array_equal(result, value, err_msg=name)
        return
    scale = float(np.max(np.abs(value), initial=1e-3))
    np.testing.assert_allclose(result, value, rtol=tolerance, atol=tolerance * scale, err_msg=name)


def refusal(recipe: Recipe, method: str, count: int) -> str | None:
    """Why a step was refused; none if it ran, and then as it does alone."""
    program = make(recipe)
    parallel = stablehlo_alpa.parallelize(
        program.step, method=METHODS[method](count), **program.options
    )
    try:
        found = run(program, parallel)
    except StablehloAlpaError as error:
        return str(error)
    expected = run(program, jax.jit(program.step, **program.options))
    what = f"{method}, {count} micro-batches, {recipe}"
    assert_same(found, expected, program.tolerance, what)
    return None


def examples(number: int) -> list[Recipe]:
    """So many recipes, always the same."""
    drawn: list[Recipe] = []

    @settings(
        max_examples=number,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
    )
    @given(recipes())
    def draw(recipe: Recipe) -> None:
        drawn.append(recipe)

    draw()
    return drawn


def check(method: str, programs: Sequence[tuple[Recipe, int]], allowed: float) -> None:
    """Runs recipes, each with a number of micro-batches, and counts what is refused."""
    refused = []
    chosen = [(recipe, count) for recipe, count in programs if applies(recipe, method)]
    for recipe, count in chosen:
        if reason := refusal(recipe, method, count):
            assert re.search(NAMED, reason), f"{reason} names nothing of {recipe}"
            refused.append(f"{count} micro-batches of {recipe}: {reason}")
    assert len(refused) <= allowed * len(chosen), "\n".join(refused)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_random_programs_equal_jit(method: str) -> None:
    number = list(METHODS).index(method)
    programs = enumerate(examples(QUICK)[number :: len(METHODS)])
    check(method, [(recipe, COUNTS[-1 - i % len(COUNTS)]) for i, recipe in programs], 0)


@pytest.mark.matrix
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("method", METHODS)
def test_many_random_programs_equal_jit(method: str, count: int) -> None:
    check(method, [(recipe, count) for recipe in examples(MANY)], 0.02)


# What a micro-batch cannot do by itself.

WIDTH, ROWS = 8, 12


def batch_norm(p: Any, x: Any) -> Any:
    x = x @ p["in"]
    return (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-3) @ p["out"]


def contrastive(p: Any, x: Any) -> Any:
    x = x @ p["in"]
    return jax.nn.log_softmax(x @ x.T)


def softmax_over_the_batch(p: Any, x: Any) -> Any:
    return jax.nn.softmax(x @ p["in"], 0) @ p["out"]


def running_sum(p: Any, x: Any) -> Any:
    return jnp.cumsum(x @ p["in"], 0) @ p["out"]


def sorted_examples(p: Any, x: Any) -> Any:
    return jnp.sort(x @ p["in"], 0) @ p["out"]


def neighbours(p: Any, x: Any) -> Any:
    x = x @ p["in"]
    return (x - jnp.roll(x, 1, 0)) @ p["out"]


FOLLOWED = (batch_norm, softmax_over_the_batch)
"""Most products follow where examples meet."""
WHOLE = (*FOLLOWED, contrastive, running_sum, sorted_examples, neighbours)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("forward", WHOLE, ids=lambda fun: fun.__name__)
def test_what_needs_the_whole_batch_is_right_or_refused(forward: Any, count: int) -> None:
    """Rows that meet in a linear operator alone may be summands of parts of a parameter.

    Where they meet in the loss the batch is gone through twice.
    """

    def step(params: Any, x: Any) -> Any:
        return stablehlo_alpa.value_and_grad(lambda p: jnp.mean(forward(p, x) ** 2))(params)

    rng = np.random.default_rng(0)
    params = {name: rng.normal(size=(WIDTH, WIDTH)).astype("f") for name in ("in", "out")}
    x = rng.normal(size=(ROWS, WIDTH)).astype("f")
    parallel = stablehlo_alpa.parallelize(step, method=DataParallel(num_micro_batches=count))
    if count > 1 and forward in FOLLOWED:
        with pytest.raises(CompileError, match="needs the whole batch, not one of 2 parts"):
            parallel(params, x)
        return
    assert_same(parallel(params, x), jax.jit(step)(params, x), 3e-5, forward.__name__)
