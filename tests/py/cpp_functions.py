"""The functions of C++ sources, found by their braces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# What may hold a brace that is none of the program's: comments, literals, the preprocessor.
OPAQUE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"\(.*?\)"|"(?:\\.|[^"\\\n])*"|'
    r"'(?:\\.|[^'\\\n])'|^#(?:[^\n]*\\\n)*[^\n]*",
    re.DOTALL | re.MULTILINE,
)
SCOPE = re.compile(r"\b(namespace|struct|class|enum|union|extern)\b")
LABEL = re.compile(r"^(public|private|protected):\s*")


@dataclass(frozen=True)
class CppFunction:
    """A definition.

    Attributes:
        head: signature, with single spaces.
        lines: from the first of the signature to the last brace.
    """

    head: str
    lines: int


def functions_of(text: str) -> Iterator[CppFunction]:
    """Definitions at the level of a file, a namespace or a class; lambdas belong to theirs."""
    bare = OPAQUE.sub(lambda match: "\n" * match[0].count("\n"), text)
    start, depth = 0, 0
    for match in re.finditer(r"[{};]", bare):
        mark = match[0]
        if depth:
            depth += {"{": 1, "}": -1, ";": 0}[mark]
            if depth:
                continue
            found = bare[start : match.end()].strip()
            yield CppFunction(_head(found), found.count("\n") + 1)
        elif mark == "{" and _is_function(_head(bare[start : match.end()])):
            depth = 1
            continue
        start = match.end()


def _head(text: str) -> str:
    return LABEL.sub("", " ".join(text[: text.index("{")].split()))


def _is_function(head: str) -> bool:
    before, bracket, _ = head.partition("(")
    return bool(bracket) and not SCOPE.search(re.sub(r"<.*", "", before))
