"""Random plans of random programs equal plain ``jax.jit`` of them.

``python tests/py/test_random_operators.py 1000 2000`` runs the programs of these seeds and prints
what differs; `make random-operators SEEDS="1000 2000"` does so beside the build.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import jax
import pytest
import test_random_plans
from random_operators import OPERATORS, Recipe, drawn, make

from stablehlo_alpa import _core
from stablehlo_alpa.frontend import trace

MESHES = (*test_random_plans.MESHES.values(), (("x", 3),), (("x", 2), ("y", 3)))
QUICK, MANY = 6, 400

# Programs that differed, with the number of their mesh and plan: devices sliced slices that XLA had
# moved over what lay between, and those that gathers take.
DIFFERED = (
    Recipe(
        ("take_along", "dynamic_slice", "scatter_points", "one_of_dim", "normalized"),
        seed=134,
        shape=(13, 16),
        dtype="int32",
        form="looped",
    ),
    Recipe(
        ("slice_at_the_greatest", "halves_of_bits", "normalized", "reduction_of_pairs"),
        seed=313,
        shape=(48, 7),
        form="gradient",
    ),
    Recipe(
        ("kinked", "transpose", "dynamic_slice", "slice_of_dim", "diagonal", "scatter", "sort"),
        seed=14298,
        shape=(16, 16),
        dtype="float16",
        form="batched",
    ),
)


def check(recipe: Recipe, number: int) -> bool:
    """One plan on one mesh, each drawn by a number; every other program is padded.

    Returns:
        Whether there is a witness. XLA:CPU adds the starts of slices of slices that lie outside:
        what `jax.jit` computes is then not what the operators compute one by one.
    """
    with jax.enable_x64(recipe.dtype == "float64"):
        program = make(recipe)
        mesh = MESHES[number % len(MESHES)]
        traced = trace(program.fun, program.args, {})
        is_padded = number // len(MESHES) % 2
        padding = f" pad-to={math.prod(size for _, size in mesh)}" if is_padded else ""
        merged, _ = _core.run_pipeline(
            traced.text,
            f"builtin.module(alpa-prepare-pipeline{{{traced.state_option}{padding}}})",
        )
        try:
            # XLA:CPU refuses layouts around transforms, which the form for CPU avoids.
            is_transform = any("fourier" in name for name in recipe.names)
            seeds = [2 * number if is_transform else number]
            test_random_plans.check_plans(
                program, traced, merged, mesh, seeds, f"seed_{number}", has_dead_ends=True
            )
        except AssertionError:
            if equals_eager(recipe):
                raise
            return False
    return True


def equals_eager(recipe: Recipe) -> bool:
    """Whether ``jax.jit`` computes what the operators compute one by one."""
    program = make(recipe)
    jitted = jax.tree.leaves(jax.jit(program.fun)(*program.args))
    with jax.disable_jit():
        eager = jax.tree.leaves(program.fun(*map(jax.numpy.asarray, program.args)))
    try:
        for value, result in zip(jitted, eager, strict=True):
            test_random_plans.compare(result, value, 2 * program.tolerance, "")
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_take_real_numbers(name: str) -> None:
    """So that programs, which leave out what raises, have each of them."""
    for seed in range(8):
        program = make(Recipe((name,), seed))
        assert len(jax.eval_shape(program.fun, *program.args)) == 4


@pytest.mark.parametrize("part", range(4))
def test_random_operators_equal_jit(part: int) -> None:
    for seed in range(part, 4 * QUICK, 4):
        assert check(drawn(seed), seed)


@pytest.mark.parametrize("recipe", DIFFERED, ids=lambda recipe: str(recipe.seed))
def test_programs_that_differed_equal_jit(recipe: Recipe) -> None:
    assert check(recipe, recipe.seed)


@pytest.mark.matrix
@pytest.mark.parametrize("part", range(8))
def test_many_random_operators_equal_jit(part: int) -> None:
    compared = [check(drawn(seed), seed) for seed in range(1000 + part, 1000 + 8 * MANY, 8)]
    assert sum(compared) >= 0.98 * MANY


def differences(first: int, last: int) -> Iterator[str]:
    """What differs, or is refused, of the programs of some seeds."""
    for seed in range(first, last):
        try:
            if not check(drawn(seed), seed):
                yield f"{seed} {drawn(seed)} has no witness"
        except Exception as error:
            said = " ".join(str(error).split())[:600]
            yield f"{seed} {drawn(seed)} {type(error).__name__} {said}"


if __name__ == "__main__":
    first, last = map(int, sys.argv[1:])
    count = 0
    for line in differences(first, last):
        count += 1
        print(line, flush=True)
    print(f"{last - first} programs, {count} differ")
