"""Classes of arrays that are elsewhere, as arguments of jax's functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jax._src import dtypes
from jax._src.core import ShapedArray, pytype_aval_mappings
from jax._src.interpreters.pxla import shard_arg_handlers


def make_argument(cls: type[Any]) -> None:
    """Lets ``jax.numpy``, ``jax.jit`` and ``jax.device_put`` take the arrays of a class.

    They fetch what they are given where they run, and know its type before.

    Args:
        cls: of arrays with ``shape``, ``dtype``, ``weak_type`` and ``fetch``.
    """
    pytype_aval_mappings[cls] = _aval
    shard_arg_handlers[cls] = _placed
    dtypes.canonicalize_value_handlers[cls] = _same


def _aval(array: Any) -> ShapedArray:
    return ShapedArray(array.shape, array.dtype, weak_type=array.weak_type)


def _same(array: Any) -> Any:
    return array


def _placed(arrays: Sequence[Any], *where: Sequence[Any]) -> list[Any]:
    """What each is on its devices; ``where`` are shardings, layouts and what may be reused."""
    placed: list[Any] = []
    for array, *own in zip(arrays, *where, strict=True):
        whole = array.fetch()
        placed += shard_arg_handlers[type(whole)]([whole], *([one] for one in own))
    return placed
