"""Sizes of HLO types."""

from __future__ import annotations

import math
import re

from stablehlo_alpa.witness.hlo_text import HloError

# Bits of one element.
_ELEMENT_BITS = {
    **dict.fromkeys(("s1", "u1"), 1),
    **dict.fromkeys(("s2", "u2"), 2),
    **dict.fromkeys(("s4", "u4", "f4e2m1fn"), 4),
    **dict.fromkeys(("pred", "s8", "u8"), 8),
    **dict.fromkeys(("f8e5m2", "f8e4m3", "f8e4m3fn", "f8e3m4", "f8e8m0fnu"), 8),
    **dict.fromkeys(("f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz"), 8),
    **dict.fromkeys(("s16", "u16", "f16", "bf16"), 16),
    **dict.fromkeys(("s32", "u32", "f32"), 32),
    **dict.fromkeys(("s64", "u64", "f64", "c64"), 64),
    "c128": 128,
    "token": 0,
}

_ARRAY = re.compile(r"\b(?P<element>[a-z]\w*)\[(?P<dims>[^\]]*)\]")
# What follows the dimensions: order of dimensions, tiles, memory space: {1,0:T(8,128)S(1)}.
_LAYOUT = re.compile(r"\{[^{}]*\}")


def type_bytes(text: str) -> float:
    """Bytes of a type without the padding of its layout, a tuple's elements added up.

    Args:
        text: e.g. ``"bf16[8,128]{1,0:T(8,128)(2,1)}"`` or ``"(f32[8], u32[])"``.

    Raises:
        HloError: the size of an element is not known, or a dimension is not static.
    """
    bits = 0
    for match in _ARRAY.finditer(_LAYOUT.sub("", text)):
        element, dims = match.group("element", "dims")
        if element not in _ELEMENT_BITS:
            raise HloError(
                f"element type is {element!r}, which has no known size, in {text[:200]!r}"
            )
        sizes = dims.split(",") if dims else []
        if not all(size.isdigit() for size in sizes):
            raise HloError(f"dimensions are [{dims}], must be numbers, in {text[:200]!r}")
        bits += _ELEMENT_BITS[element] * math.prod(map(int, sizes))
    return bits / 8
