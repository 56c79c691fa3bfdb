"""What a plan is run with: arrays made from shapes, or those of a file."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import alpa_runtime
import jax
import numpy as np
from alpa_runtime.keys import with_impl
from alpa_runtime.program import ValueSpec, numpy_dtype

from stablehlo_alpa.cli.files import check_input
from stablehlo_alpa.cli.usage import UsageError
from stablehlo_alpa.nearest import nearest

# Of floating-point numbers, so that products of many of them stay finite (heuristic: the usual
# scale of initial parameters).
_SCALE = 0.02
# Of integers: most are numbers of tokens or classes, and what a table has not is clamped.
_BELOW = 2


def random_arguments(plan: alpa_runtime.Plan, seed: int) -> list[Any]:
    """An array for every flat input of a plan.

    Floating-point numbers are normal with a deviation of 0.02, none negative among those that are
    given back (an optimiser divides by roots of its state); integers are 0 or 1; keys are keys.

    Args:
        plan: what is run.
        seed: of the numbers.
    """
    draw = np.random.default_rng(seed)
    return [_random(one.value, one.is_donated, draw) for one in plan.inputs]


def _random(value: ValueSpec, is_state: bool, draw: np.random.Generator) -> Any:
    if value.partial:
        raise UsageError(
            f"{value.name} is a sum that is still to be taken over {', '.join(value.partial)}: it "
            "is made by another plan, and cannot be made up"
        )
    dtype = numpy_dtype(value.dtype)
    if value.key_impl is not None:
        data = draw.integers(0, 1 << 32, value.shape, np.uint32)
        return with_impl(jax.numpy.asarray(data), value.key_impl)
    if dtype == np.bool_:
        return draw.integers(0, 2, value.shape).astype(dtype)
    if jax.numpy.issubdtype(dtype, np.integer):
        return draw.integers(0, _BELOW, value.shape).astype(dtype)
    numbers = draw.standard_normal(value.shape, np.float32) * _SCALE
    return (np.abs(numbers) if is_state else numbers).astype(dtype)


def check_arguments(path: Path | None) -> None:
    """Refuses a file that holds no arrays by name.

    Args:
        path: of the file; None where there is none.

    Raises:
        UsageError: it is no archive of numpy.
        OSError: there is no such file.
    """
    check_input("--args", path)
    if path is not None and not zipfile.is_zipfile(path):
        raise UsageError(f"--args {path} must be an .npz file, as numpy.savez writes it")


def read_arguments(plan: alpa_runtime.Plan, path: Path, seed: int) -> list[Any]:
    """Arrays of a file of numpy in place of random ones.

    Args:
        plan: what is run.
        path: an ``.npz`` file, its arrays by the names of inputs or by their numbers.
        seed: of the inputs that the file leaves out.

    Raises:
        UsageError: the plan has no such input, or it has another shape or type.
        OSError: there is no such file.
    """
    found = random_arguments(plan, seed)
    names = {one.value.name or str(index): index for index, one in enumerate(plan.inputs)}
    names |= {str(index): index for index in range(len(plan.inputs))}
    with np.load(path, allow_pickle=False) as arrays:
        for name in arrays.files:
            if name not in names:
                raise UsageError(
                    f"{path} has an array {name!r}, {plan.name} has no such input"
                    f"{nearest(name, names)}"
                )
            found[names[name]] = _checked(path, name, arrays[name], plan.inputs[names[name]].value)
    return found


def _checked(path: Path, name: str, array: Any, value: ValueSpec) -> Any:
    dtype = numpy_dtype(value.dtype)
    # numpy writes types that it does not know as bytes of their size.
    if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
        array = array.view(dtype)
    if tuple(array.shape) != value.shape or array.dtype != dtype:
        raise UsageError(
            f"{path}: {name} is {array.dtype}{list(array.shape)}, the plan takes "
            f"{dtype}{list(value.shape)}"
        )
    return with_impl(jax.numpy.asarray(array), value.key_impl) if value.key_impl else array


def not_finite(plan: alpa_runtime.Plan, results: Sequence[Any]) -> list[str]:
    """Names of floating-point results that hold something that is no finite number.

    Args:
        plan: what was run.
        results: one per flat output, arrays or handles.
    """
    found = []
    for number, (output, result) in enumerate(zip(plan.outputs, results, strict=True)):
        array = result.fetch() if hasattr(result, "fetch") else result
        is_inexact = jax.numpy.issubdtype(array.dtype, np.inexact)
        if is_inexact and not np.isfinite(np.asarray(array).astype(np.float32)).all():
            found.append(output.name or f"result {number}")
    return found
