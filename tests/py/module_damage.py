"""Modules that are nearly right: one number, type, rank or attribute of a text is another."""

from __future__ import annotations

import random
import re

_INTEGER = re.compile(r"(?<![A-Za-z_0-9.%<@])-?\d+(?![\dxA-Za-z.])")
_SIZE = re.compile(r"(?<=[<x])(\d+|\?)(?=x)")
_ELEMENT = re.compile(r"(?<=[x<])(f32|f64|i1|i32|i64|ui32|complex<f32>)(?=>)")
_SHAPE = re.compile(r"tensor<((?:[\d?]+x)*)(?=[a-z])")
_LIST = re.compile(r"(?<=array<i64: )[^>]*(?=>)|(?<=\[)[\d, -]+(?=\])")
_ATTRIBUTE = re.compile(
    r"(?<=[{ ,<])[a-z_]+ = (?:\[[^\]]*\]|array<[^>]*>|\S+ : [a-z0-9]+|true|false)(?:, |(?=[}>]))"
)
_ELEMENTS = ("f64", "bf16", "f16", "i1", "i8", "i32", "i64", "ui8", "ui32", "complex<f32>", "i4")


def _replaced(text: str, pattern: re.Pattern[str], new: str, rng: random.Random) -> str:
    found = list(pattern.finditer(text))
    if not found:
        return text
    one = rng.choice(found)
    return text[: one.start()] + new + text[one.end() :]


def _other_integer(text: str, rng: random.Random) -> str:
    return _replaced(text, _INTEGER, str(rng.choice((0, 1, 2, 3, 4, 5, 9, 100))), rng)


def _other_size(text: str, rng: random.Random) -> str:
    return _replaced(text, _SIZE, rng.choice("0123458?"), rng)


def _other_element(text: str, rng: random.Random) -> str:
    new = rng.choice(_ELEMENTS)
    found = _ELEMENT.findall(text)
    if found and rng.random() < 0.5:
        return re.sub(rf"(?<=[x<]){re.escape(rng.choice(found))}(?=>)", new, text)
    return _replaced(text, _ELEMENT, new, rng)


def _other_rank(text: str, rng: random.Random) -> str:
    new = rng.choice(("tensor<", "tensor<1x", "tensor<2x", "tensor<4x2x", "tensor<2x4x3x"))
    return _replaced(text, _SHAPE, new, rng)


def _without_attribute(text: str, rng: random.Random) -> str:
    return _replaced(text, _ATTRIBUTE, "", rng)


def _other_list(text: str, rng: random.Random) -> str:
    found = _LIST.findall(text)
    if not found:
        return text
    values = rng.choice(found).split(", ")
    new = rng.choice((values[:-1], [*values, "1"], values[::-1], values[1:], values + values))
    return _replaced(text, _LIST, ", ".join(new), rng)


_CHANGES = (
    _other_integer,
    _other_size,
    _other_element,
    _other_rank,
    _without_attribute,
    _other_list,
)


def _split(types: str) -> list[str]:
    """A list of types, at commas outside of brackets."""
    found, depth = [""], 0
    for character in types:
        depth += (character in "<({[") - (character in ">)}]")
        if character == "," and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return [one.strip() for one in found if one.strip()]


_OPERANDS = re.compile(r'"(?:stablehlo|chlo)\.[a-z_]+"\(([^)]*)\)')
_FUNCTION = re.compile(r"function_type = \(([^\n]*)\) -> \(\)")
_SIGNATURE = re.compile(r" : \(([^\n]*)\) -> [^\n]*\n *\"func.return\"\(\) : ")


def _with_arguments_as_used(text: str) -> str:
    """Gives the arguments of the function the types that its only operator says they have."""
    operands, function = _OPERANDS.search(text), _FUNCTION.search(text)
    signature = _SIGNATURE.search(text)
    if not operands or not function or not signature:
        return text
    used = dict(zip(operands.group(1).split(", "), _split(signature.group(1)), strict=False))
    types = [used.get(f"%arg{i}", old) for i, old in enumerate(_split(function.group(1)))]
    listed = ", ".join(f"%arg{i}: {one}" for i, one in enumerate(types))
    text = text.replace(function.group(), f"function_type = ({', '.join(types)}) -> ()", 1)
    return re.sub(r"\^bb0\(%arg0: [^\n]*\):", lambda _: f"^bb0({listed}):", text, count=1)


def changed(text: str, rng: random.Random) -> str:
    """A generic text of a function of one operator, different in one or two places."""
    for _ in range(rng.choice((1, 1, 1, 2))):
        text = rng.choice(_CHANGES)(text, rng)
    return _with_arguments_as_used(text)
