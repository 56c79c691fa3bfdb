"""Compares what the bundled StableHLO dialect accepts with what upstream's does.

The programs are those of upstream's own tests: `stablehlo/tests/**/*.mlir` of a checkout, cut at
`// -----` and, where nothing is expected to fail, into their functions. A program counts as refused
by upstream if it carries `expected-error`; with `--reference`, if that `stablehlo-opt` refuses it.

Prints one line for each outcome, and with `--list` the programs where the two differ. The status is
1 where too many do, where ours crashes and where it prints what it does not read.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import pathlib
import re
import subprocess
import sys

SEPARATOR = "\n// -----\n"
BATCH = 200
# Programs that ours alone refuses are fewer than this, and so are those that it alone accepts.
DIFFERING_BAR = 60
# Operations of these dialects are upstream's own test and serialisation tools.
FOREIGN = re.compile(
    r"\b(vhlo|check|interpreter|arith|tensor|linalg|math|cf|scf|mhlo|bufferization|"
    r"sdy|ub|complex|memref|mpmd)\.\w|!vhlo|#vhlo|llvm\.\w|builtin\.unrealized"
)
# Their errors come from passes, not from what is read.
OF_PASSES = ("transforms/", "vhlo/", "chlo/chlo_legalize")


class Answer(enum.Enum):
    """What a tool makes of a program."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    CRASHED = "crashed"


@dataclasses.dataclass(frozen=True)
class Program:
    """A piece of a test file."""

    place: str  # path:line
    text: str


def functions_of(text: str) -> list[str]:
    """The top-level functions of a text, each with the functions that it names; at least one."""
    bare = strip(text)
    starts = [match.start() for match in re.finditer(r"^func\.func ", bare, re.M)]
    ends = [*starts, len(bare)][1:]
    if len(starts) < 2 or re.search(r"^module", bare, re.M):
        return [text]
    aliases = re.findall(r"^[#!]\w+ = .*\n", bare[starts[0] :], re.M)
    preamble = bare[: starts[0]] + "".join(aliases)
    pieces = [bare[a:b] for a, b in zip(starts, ends, strict=True)]
    named = [re.findall(r"@([\w.$-]+)", piece) for piece in pieces]
    place = {names[0]: index for index, names in enumerate(named)}

    def closure(index: int) -> set[int]:
        found, waiting = set(), [index]
        while waiting:
            current = waiting.pop()
            if current not in found:
                found.add(current)
                waiting += [place[name] for name in named[current] if name in place]
        return found

    return [
        preamble + "".join(pieces[other] for other in sorted(closure(index)))
        for index in range(len(pieces))
    ]


def programs_of(tests: pathlib.Path) -> list[Program]:
    """All programs of a folder of tests."""
    programs = []
    for path in sorted(tests.rglob("*.mlir")):
        line = 1
        for chunk in path.read_text().split("\n// -----"):
            parts = [chunk] if "expected-error" in chunk else functions_of(chunk)
            for number, part in enumerate(parts):
                place = f"{path.relative_to(tests)}:{line}"
                programs.append(Program(place + (f"#{number}" if number else ""), part))
            line += chunk.count("\n") + 1
    return [program for program in programs if not FOREIGN.search(strip(program.text))]


def strip(text: str) -> str:
    """A text without its comments."""
    return re.sub(r"//.*", "", text)


def run_batch(tool: str, flags: list[str], texts: list[str]) -> tuple[list[str], str]:
    """What a tool prints for each text (empty: refused), and its errors; fewer if it crashed."""
    joined = SEPARATOR.join(strip(text) for text in texts)
    command = [tool, "--split-input-file", "--allow-unregistered-dialect", *flags, "-"]
    done = subprocess.run(command, input=joined, capture_output=True, text=True, check=False)
    outputs = [piece.strip() for piece in done.stdout.split("// -----")]
    return (outputs if done.returncode in (0, 1) else []), done.stderr


def outputs_of(tool: str, flags: list[str], texts: list[str]) -> list[str | None]:
    """What a tool prints for each text; empty where it refuses, None where it crashes."""
    outputs: list[str | None] = []
    for start in range(0, len(texts), BATCH):
        outputs += halves(tool, flags, texts[start : start + BATCH])
    return outputs


def halves(tool: str, flags: list[str], texts: list[str]) -> list[str | None]:
    """`outputs_of` for one batch, cut in two until a crash is one program's own."""
    found, _ = run_batch(tool, flags, texts)
    if len(found) == len(texts):
        return list(found)
    if len(texts) == 1:
        return [None]
    middle = len(texts) // 2
    return halves(tool, flags, texts[:middle]) + halves(tool, flags, texts[middle:])


def answer_of(output: str | None) -> Answer:
    """The answer that an output stands for."""
    if output is None:
        return Answer.CRASHED
    return Answer.ACCEPTED if output else Answer.REFUSED


def expected(program: Program) -> Answer:
    """What the comments of a program say."""
    of_pass = program.place.startswith(OF_PASSES)
    return Answer.REFUSED if "expected-error" in program.text and not of_pass else Answer.ACCEPTED


def unstable(tool: str, texts: list[str], form: list[str]) -> list[bool]:
    """Whether printing, reading and printing again changes a text, in one form."""
    first = outputs_of(tool, form, texts)
    second = outputs_of(tool, form, [text or "" for text in first])
    return [one != two for one, two in zip(first, second, strict=True)]


def reason(tool: str, text: str) -> str:
    """The first error that a tool reports on a program."""
    _, errors = run_batch(tool, [], [text])
    found = re.search(r"error: (.*)", errors)
    return found[1][:160] if found else ""


def main() -> int:
    """Prints the table; fails where many programs differ, one crashes, or is not read again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=pathlib.Path, help="folder of openxla/stablehlo")
    parser.add_argument("--tool", default="build/bin/stablehlo-alpa-opt")
    parser.add_argument("--reference", help="stablehlo-opt built from the checkout")
    parser.add_argument("--list", action="store_true", help="name the programs that differ")
    arguments = parser.parse_args()

    programs = programs_of(arguments.checkout / "stablehlo" / "tests")
    texts = [program.text for program in programs]
    ours = [answer_of(output) for output in outputs_of(arguments.tool, [], texts)]
    if arguments.reference:
        theirs = [answer_of(output) for output in outputs_of(arguments.reference, [], texts)]
    else:
        theirs = [expected(program) for program in programs]

    groups: dict[str, list[Program]] = {}
    for program, own, other in zip(programs, ours, theirs, strict=True):
        name = f"{own.value} by ours, {other.value} by upstream's"
        groups.setdefault(name, []).append(program)
    accepted = [p for p, own in zip(programs, ours, strict=True) if own is Answer.ACCEPTED]
    for name, form in {"generic": ["--mlir-print-op-generic"], "pretty": []}.items():
        changes = unstable(arguments.tool, [program.text for program in accepted], form)
        groups[f"{name} form that changes when read again"] = [
            program for program, changed in zip(accepted, changes, strict=True) if changed
        ]
    differing = {
        answer: sum(
            own is answer and other is not answer for own, other in zip(ours, theirs, strict=True)
        )
        for answer in (Answer.REFUSED, Answer.ACCEPTED)
    }
    print(f"{len(programs):6} programs")
    for answer, count in differing.items():
        print(f"{count:6} {answer.value} by ours only, of fewer than {DIFFERING_BAR}")
    for name, members in sorted(groups.items()):
        print(f"{len(members):6} {name}")
        is_even = "accepted by ours, accepted" in name or "refused by ours, refused" in name
        for program in members if arguments.list and not is_even else []:
            print(f"       {program.place}: {reason(arguments.tool, program.text)}")
    fatal = [name for name in groups if "crashed by ours" in name or "changes" in name]
    is_far = any(count >= DIFFERING_BAR for count in differing.values())
    return int(is_far or any(groups[name] for name in fatal))


if __name__ == "__main__":
    sys.exit(main())
