"""Tensor types as the compiler prints them, ``8x4xf32``, and as numpy names them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from alpa_runtime.program import numpy_dtype

_TYPE = re.compile(r"((?:\d+x)*)(.+)")
_DTYPES = {
    "i1": "bool",
    "i4": "int4",
    "ui4": "uint4",
    "bf16": "bfloat16",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
    "complex<f32>": "complex64",
    "complex<f64>": "complex128",
}
_DTYPES |= {f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)}
_DTYPES |= {f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)}
_DTYPES |= {f"f{bits}": f"float{bits}" for bits in (16, 32, 64)}
_ELEMENTS = {dtype: element for element, dtype in _DTYPES.items()}


def parse_tensor_type(text: str) -> tuple[tuple[int, ...], str]:
    """Shape and numpy-style dtype of ``8x4xf32``.

    Raises:
        ValueError: an element type that no program of ours has.
    """
    sizes, element = _TYPE.fullmatch(text).groups()  # type: ignore[union-attr]
    if element not in _DTYPES:
        raise ValueError(f"{text} has element type {element}, known are {sorted(_DTYPES)}")
    return tuple(int(size) for size in sizes.split("x") if size), _DTYPES[element]


def tensor_type(shape: Sequence[int], dtype: str) -> str:
    """``tensor<8x4xf32>`` of a shape and a numpy-style dtype."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{_ELEMENTS[dtype]}>"


def tensor_bytes(text: str) -> int:
    """Bytes of ``8x4xf32``; an element takes at least one."""
    shape, dtype = parse_tensor_type(text)
    return math.prod(shape) * numpy_dtype(dtype).itemsize
