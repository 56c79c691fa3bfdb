"""What XLA makes of all programs of a plan for devices that need not be there."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

import alpa_runtime
from alpa_runtime.analysis import Inspected, ProgramReport, Reports
from alpa_runtime.plan import Run

from stablehlo_alpa.witness.collective import Collective
from stablehlo_alpa.witness.compiler_process import compile_programs
from stablehlo_alpa.witness.hlo_collectives import collectives
from stablehlo_alpa.witness.hlo_cycles import kernel_cycles
from stablehlo_alpa.witness.job import Options
from stablehlo_alpa.witness.report_cache import ReportCache
from stablehlo_alpa.witness.targets import Target, target_named


class Examination(Inspected):
    """What XLA says of a plan.

    Text, memory and estimates are asked for as of an executable (``as_text``,
    ``memory_analysis``, ``cost_analysis``); of several meshes there is one each.

    Attributes:
        plan: what is run.
        target: for what it was compiled.
    """

    def __init__(
        self, plan: alpa_runtime.Plan, target: Target, reports: Mapping[int, ProgramReport]
    ) -> None:
        """Takes what was found.

        Args:
            plan: what is run.
            target: for what it was compiled.
            reports: per program that a mesh runs.
        """
        self.plan, self.target = plan, target
        self._by_program = reports

    def _reports(self) -> Reports:
        return {
            (mesh, program): self._by_program[program]
            for mesh in range(len(self.plan.meshes))
            for program in runs_of(self.plan, mesh)
        }

    @property
    def options(self) -> Options:
        """What programs were compiled with beside XLA's defaults, all of them together."""
        return dict(item for one in self._by_program.values() for item in one.options.items())

    @cached_property
    def program_collectives(self) -> Mapping[int, tuple[Collective, ...]]:
        """Those of one run of each program, by its number.

        Raises:
            HloError: what a device sends cannot be told.
        """
        return {
            number: tuple(collectives(report.text, self.plan.programs[number].num_devices))
            for number, report in self._by_program.items()
        }

    def collectives(self, mesh: int = 0) -> tuple[Collective, ...]:
        """Those of a step on a mesh.

        Args:
            mesh: number of the mesh.

        Raises:
            HloError: what a device sends cannot be told.
        """
        return tuple(
            dataclasses.replace(one, count=one.count * runs)
            for program, runs in runs_of(self.plan, mesh).items()
            for one in self.program_collectives[program]
        )

    def kernel_seconds(self, mesh: int = 0) -> float | None:
        """What XLA counts for the kernels of a step on a mesh; None where it counts none.

        Nothing that runs beside them is in it: no collectives, no copies into the vector memory.

        Args:
            mesh: number of the mesh.

        Raises:
            HloError: a compiled program is not understood.
        """
        if not self.target.clock_hz:
            return None
        cycles = sum(
            kernel_cycles(self._by_program[program].text) * runs
            for program, runs in runs_of(self.plan, mesh).items()
        )
        return cycles / self.target.clock_hz

    def optimal_seconds(self, mesh: int = 0) -> float | None:
        """XLA's account of FLOPs and bytes of a step on a mesh; None where it makes none.

        Of each instruction the larger of both, one after the other: collectives count as what they
        read and write, a copy into the vector memory beside a kernel as four times its bytes, and
        a loop as one turn.

        Args:
            mesh: number of the mesh.
        """
        total = 0.0
        for program, runs in runs_of(self.plan, mesh).items():
            seconds = self._by_program[program].cost.get("optimal_seconds", -1.0)
            if seconds < 0:  # what XLA says of a program that it cannot estimate
                return None
            total += seconds * runs
        return total


def examine(
    plan: alpa_runtime.Plan,
    target: str,
    *,
    options: Options | None = None,
    cache: Path | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Examination:
    """Compiles all programs of a plan for a kind of device; none has to be there.

    Args:
        plan: what is run.
        target: ``"h100"`` or ``"tpu-v5p"``.
        options: of XLA's compiler. By default a program is compiled with those that XLA has, and,
            where it is refused for want of a device to try choices on, without those choices: of
            plans that are compared `Examination.options` has to be the same.
        cache: folder that keeps what was compiled; nothing is kept by default.
        say: is told what is compiled.

    Raises:
        WitnessError: there is no such target, its compiler is not installed or does not take a
            program.
        MeshError: as many devices as a program needs cannot be connected.
    """
    found, kept = target_named(target), ReportCache(cache) if cache is not None else None
    wanted = {n: plan.programs[n] for mesh in range(len(plan.meshes)) for n in runs_of(plan, mesh)}
    tried = ({}, *found.untuned_options) if options is None else (options,)
    reports = {
        n: None if kept is None else kept.get(program, found, tried)
        for n, program in wanted.items()
    }
    missing = [number for number, report in reports.items() if report is None]
    compiled = compile_programs([wanted[number] for number in missing], found, tried)
    for number in missing:
        say(f"{wanted[number].name} for {target}")
        reports[number] = report = next(compiled)
        if kept is not None:
            kept.put(wanted[number], found, tried, report)
    return Examination(plan, found, {n: r for n, r in reports.items() if r is not None})


def runs_of(plan: alpa_runtime.Plan, mesh: int) -> Mapping[int, int]:
    """How often a mesh runs each program in a step, by number of the program."""
    return Counter(one.program for one in plan.instructions[mesh] if isinstance(one, Run))
