"""Compiles in a process of its own.

What XLA's compilers read from the environment they read once, before the first device of a process
is made, and a failed check inside of them ends the process: neither may touch the user's.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO

import jax
from alpa_runtime import SpmdProgram
from alpa_runtime.analysis import ProgramReport

from stablehlo_alpa.errors import WitnessError
from stablehlo_alpa.witness.job import Answer, Job, Options
from stablehlo_alpa.witness.targets import Target

_MODULE = "stablehlo_alpa.witness.compiling"
_SHOWN_LINES = 20


def compile_programs(
    programs: Sequence[SpmdProgram], target: Target, tried: Sequence[Options]
) -> Iterator[ProgramReport]:
    """What XLA says of each program, as soon as it is compiled.

    Args:
        programs: to compile.
        target: for what.
        tried: see `Job`.

    Raises:
        WitnessError: the compiler is not installed, does not take a program, or crashed; or a
            program calls functions of the host.
    """
    if not programs:
        return
    target.versions  # noqa: B018 (raises unless all are there)
    for program in programs:
        if program.callbacks:
            raise WitnessError(
                f"{program.name} calls functions of the host, which cannot be compiled elsewhere"
            )
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            [sys.executable, "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=_environment(target),
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with process.stdin as stdin:
                pickle.dump(Job(target.name, tuple(programs), tuple(tried)), stdin)
            for program in programs:
                yield _report(process, process.stdout, log, f"{program.name} for {target.name}")
        finally:
            process.kill()


def _report(
    process: subprocess.Popen[bytes], answers: IO[bytes], log: IO[bytes], what: str
) -> ProgramReport:
    """The next answer."""
    try:
        answer: Answer = pickle.load(answers)
    except EOFError:
        log.seek(0)
        lines = log.read().decode(errors="replace").splitlines()[-_SHOWN_LINES:]
        raise WitnessError(
            f"XLA's compiler ended with status {process.wait()} at {what}:\n" + "\n".join(lines)
        ) from None
    if isinstance(answer, WitnessError):
        raise answer
    return answer


def _environment(target: Target) -> dict[str, str]:
    """That of this process, without options that are meant for the devices at hand."""
    own = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    return {
        **own,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_X64": str(int(jax.config.jax_enable_x64)),  # type: ignore[attr-defined]
        **target.environment,
    }
