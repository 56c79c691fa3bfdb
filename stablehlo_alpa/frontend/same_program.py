"""Whether two programs are one in two sizes."""

from __future__ import annotations

import itertools
import re

from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend.trace import TracedProgram

# An operator in generic form; of a call what is called as well.
_OPERATOR = re.compile(r'^.*?"([a-z_]+\.[\w.]+)"\(', re.MULTILINE)
_CALLED = re.compile(r'(?:call_target_name = "|callee = @)([\w.$]+)')


def check_same_program(one: TracedProgram, other: TracedProgram) -> None:
    """Checks that two programs have the same operators in the same order.

    Args:
        one: a program.
        other: what is to be the same in other sizes.

    Raises:
        TraceError: they do not; the first operator that differs.
    """
    pairs = itertools.zip_longest(_operators(one), _operators(other))
    for number, (old, new) in enumerate(pairs):
        if old != new:
            here, there = (text or "nothing, it has ended" for text in (new, old))
            raise TraceError(
                f"{other.name} is another program in these sizes: its operator {number} is {here}, "
                f"that of the plan {there}; plan it anew"
            )


def _operators(program: TracedProgram) -> list[str]:
    found = []
    for match in _OPERATOR.finditer(program.text):
        name = match.group(1)
        if name.endswith("call"):
            end = program.text.find("\n", match.end())
            called = _CALLED.search(program.text, match.end(), end)
            name += f" {called.group(1)}" if called else ""
        found.append(name)
    return found
