"""Whether two programs are one in two sizes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend.traced_program import TracedProgram

# The line of an operator in generic form, and its name.
_OPERATOR = re.compile(r'^.*?"([a-z_]+\.[\w.]+)"\(.*$', re.MULTILINE)
_FUNCTION = re.compile(r'sym_name = "([^"]+)"')
_CALLED = re.compile(r'callee = @"?([^"\s,>}]+)')
_TARGET = re.compile(r'call_target_name = "([^"]+)"')


@dataclass(frozen=True)
class _Operator:
    """An operator of a function.

    Attributes:
        name: of the operator, and of what runs if it is a custom call.
        called: the function that it calls; empty of others.
    """

    name: str
    called: str = ""


_END = _Operator("nothing, it has ended")


def check_same_program(one: TracedProgram, other: TracedProgram) -> None:
    """Checks that two programs have the same operators in the same order.

    Functions are followed where they are called, whatever they are called there: JAX writes a
    function once for all calls with the same types, so that how many there are depends on sizes
    that happen to be equal.

    Args:
        one: a program.
        other: what is to be the same in other sizes.

    Raises:
        TraceError: they do not; the first operator that differs.
    """
    old_functions, new_functions = _functions(one.text), _functions(other.text)
    todo = [("main", "main")]
    checked = set(todo)
    while todo:
        old_name, new_name = todo.pop()
        pairs = itertools.zip_longest(
            old_functions[old_name], new_functions[new_name], fillvalue=_END
        )
        for number, (old, new) in enumerate(pairs):
            if old.name != new.name:
                where = "" if new_name == "main" else f" of {new_name}"
                raise TraceError(
                    f"{other.name} is another program in these sizes: its operator {number}{where} "
                    f"is {new.name}, that of the plan {old.name}; plan it anew"
                )
            called = old.called, new.called
            if old.called and called not in checked:
                checked.add(called)
                todo.append(called)


def _functions(text: str) -> Mapping[str, list[_Operator]]:
    """The operators of every function of a module."""
    found: dict[str, list[_Operator]] = {}
    operators: list[_Operator] = []
    for match in _OPERATOR.finditer(text):
        line, name = match.group(), match.group(1)
        if name == "func.func":
            function = _FUNCTION.search(line)
            assert function is not None
            operators = found.setdefault(function.group(1), [])
        elif name == "func.call":
            called = _CALLED.search(line)
            assert called is not None
            operators.append(_Operator(name, called.group(1)))
        else:
            target = _TARGET.search(line)
            operators.append(_Operator(f"{name} {target.group(1)}" if target else name))
    return found
