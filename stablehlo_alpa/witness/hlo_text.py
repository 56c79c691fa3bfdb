"""HLO text as computations of instructions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from stablehlo_alpa.errors import WitnessError

_COMPUTATION = re.compile(r"^(?P<entry>ENTRY )?%?(?P<name>[\w.-]+) .*\{\s*$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?(?P<name>[\w.-]+) = (?P<rest>.*)$")
_OPCODE = re.compile(r"\s*(?P<opcode>[\w-]+)(?=\()")
_NAME = re.compile(r"%([\w.-]+)")
_ATTRIBUTE = re.compile(r"^\s*(?P<key>[\w-]+)=(?P<value>.*)$", re.DOTALL)
# What nests, what separates, and what is skipped whole.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|/\*.*?\*/|[(){}\[\],]', re.DOTALL)


class HloError(WitnessError, ValueError):
    """HLO text that is not understood, or whose volume cannot be told."""


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Attributes:
        name: unique in its computation.
        type: of the result, e.g. ``"(f32[8]{0}, u32[])"``.
        opcode: what it does, ``"all-reduce-start"``.
        operands: names of instructions of the same computation.
        rest: the text behind the operands.
        line: the whole text, for messages.
    """

    name: str
    type: str
    opcode: str
    operands: tuple[str, ...]
    rest: str
    line: str

    @classmethod
    def parse(cls, name: str, text: str) -> Instruction:
        """Reads what is behind ``name =``.

        Raises:
            HloError: it is no type, operation and operands.
        """
        line = f"{name} = {text}"
        start = _closing(text, 0, line) if text.startswith("(") else text.find(" ")
        match = _OPCODE.match(text, start)
        if start < 0 or match is None:
            raise HloError(f"instruction is not understood: {line[:200]}")
        end = _closing(text, match.end(), line)
        operands = tuple(_NAME.findall(text[match.end() : end]))
        return cls(name, text[:start], match.group("opcode"), operands, text[end:], line)

    @cached_property
    def attributes(self) -> Mapping[str, str]:
        """Values of its attributes as they are written, ``{"calls": "%region_0"}``."""
        found = map(_ATTRIBUTE.match, split(self.rest))
        return {match.group("key"): match.group("value") for match in found if match}

    def computations(self, *keys: str) -> tuple[str, ...]:
        """Names of the computations that attributes of such keys refer to."""
        texts = [self.attributes[key] for key in keys if key in self.attributes]
        return tuple(
            name.strip().removeprefix("%") for text in texts for name in split(text.strip("{}"))
        )


@dataclass(frozen=True)
class HloModule:
    """A module.

    Attributes:
        entry: name of the computation that a call runs.
        computations: their instructions, in order.
    """

    entry: str
    computations: Mapping[str, tuple[Instruction, ...]]

    @classmethod
    def parse(cls, text: str) -> HloModule:
        """Reads a module as XLA prints it, e.g. ``jax.stages.Compiled.as_text()``.

        Raises:
            HloError: there is no computation ``ENTRY``, or a line is not understood.
        """
        found: dict[str, list[Instruction]] = {}
        entry = name = None
        for line in text.splitlines():
            if match := _COMPUTATION.match(line):
                name = match.group("name")
                found[name] = []
                entry = name if match.group("entry") else entry
            elif name is not None and (match := _INSTRUCTION.match(line)):
                found[name].append(Instruction.parse(match.group("name"), match.group("rest")))
        if entry is None:
            raise HloError("the text has no ENTRY computation")
        return cls(entry, {name: tuple(own) for name, own in found.items()})


def split(text: str) -> Iterator[str]:
    """The parts of a list that commas separate, those inside of brackets and quotes left alone."""
    depth = begin = 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in "({[":
            depth += 1
        elif token in ")}]":
            depth -= 1
        elif token == "," and depth == 0:
            yield text[begin : match.start()]
            begin = match.end()
    if text[begin:].strip():
        yield text[begin:]


def _closing(text: str, start: int, line: str) -> int:
    """The position behind the parenthesis that closes the one at ``start``."""
    depth = 0
    for match in _TOKEN.finditer(text, start):
        token = match.group()
        depth += (token == "(") - (token == ")")
        if depth == 0:
            return match.end()
    raise HloError(f"parenthesis is not closed: {line[:200]}")
