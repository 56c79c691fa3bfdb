"""The process that compiles for absent devices: ``python -m stablehlo_alpa.witness.compiling``.

Takes a pickled `Job` on its input and writes one pickled answer per program to its output: an
``alpa_runtime.analysis.ProgramReport``, or the `WitnessError` that came instead.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Sequence
from dataclasses import replace

import jax
from alpa_runtime import SpmdProgram
from alpa_runtime.analysis import ProgramReport
from alpa_runtime.device_mesh import make_mesh
from alpa_runtime.mesh_program import bind_program

from stablehlo_alpa.errors import WitnessError
from stablehlo_alpa.witness.job import Answer, Job, Options
from stablehlo_alpa.witness.targets import Target, target_named


def answer(program: SpmdProgram, target: Target, tried: Sequence[Options]) -> Answer:
    """What XLA makes of a program, on as many devices as it needs; see `Job`."""
    refused: list[jax.errors.JaxRuntimeError] = []
    for options in tried:
        try:
            mesh = make_mesh(program.mesh, target.devices(program.num_devices))
            report = ProgramReport.of(bind_program(program, mesh).compile(dict(options)))
            return replace(report, options=options)
        except jax.errors.JaxRuntimeError as error:
            refused.append(error)
    return WitnessError(f"XLA for {target.name} refuses {program.name}: {refused[0]}")


def main() -> None:
    """Answers the job on the input."""
    # What XLA prints must not come between answers.
    with os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)
        job: Job = pickle.load(sys.stdin.buffer)
        target = target_named(job.target)
        for program in job.programs:
            pickle.dump(answer(program, target, job.tried), output)
            output.flush()


if __name__ == "__main__":
    main()
