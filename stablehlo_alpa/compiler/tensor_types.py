"""Tensor types as the compiler prints them, ``8x4xf32``, and as numpy names them."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence

from alpa_runtime.program import numpy_dtype

_TYPE = re.compile(r"((?:\d+x)*)(.+)")
_DTYPES = {
    "i1": "bool",
    "bf16": "bfloat16",
    "f4E2M1FN": "float4_e2m1fn",
    "complex<f32>": "complex64",
    "complex<f64>": "complex128",
}
# None of two bits: jaxlib 0.10.2 corrupts its heap where such values pass from program to program.
_DTYPES |= {f"i{bits}": f"int{bits}" for bits in (4, 8, 16, 32, 64)}
_DTYPES |= {f"ui{bits}": f"uint{bits}" for bits in (4, 8, 16, 32, 64)}
_DTYPES |= {f"f{bits}": f"float{bits}" for bits in (16, 32, 64)}
_DTYPES |= {
    f"f8{kind}": f"float8_{kind.lower()}"
    for kind in "E3M4 E4M3 E4M3B11FNUZ E4M3FN E4M3FNUZ E5M2 E5M2FNUZ E8M0FNU".split()
}
_ELEMENTS = {dtype: element for element, dtype in _DTYPES.items()}


@functools.lru_cache(maxsize=1 << 16)
def parse_tensor_type(text: str) -> tuple[tuple[int, ...], str]:
    """Shape and numpy-style dtype of ``8x4xf32``.

    Raises:
        ValueError: an element type that no program of ours has.
    """
    sizes, element = _TYPE.fullmatch(text).groups()  # type: ignore[union-attr]
    if element not in _DTYPES:
        raise ValueError(
            f"{text} has element type {element}, known are {sorted(_DTYPES)}: convert it to one of "
            "these where it enters or leaves the function, or a stage"
        )
    return tuple(int(size) for size in sizes.split("x") if size), _DTYPES[element]


def tensor_type(shape: Sequence[int], dtype: str) -> str:
    """``tensor<8x4xf32>`` of a shape and a numpy-style dtype."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{_ELEMENTS[dtype]}>"


def tensor_bytes(text: str) -> int:
    """Bytes of ``8x4xf32``; an element takes at least one."""
    shape, dtype = parse_tensor_type(text)
    return math.prod(shape) * numpy_dtype(dtype).itemsize
