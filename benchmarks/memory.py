"""What plans say of memory beside what XLA's compilers for H100 and TPU v5p allocate.

The suite's models in middling sizes, under the searched plan, data parallelism and ZeRO-3 on
several meshes, and as pipelines of two stages; no device has to be there.
"""

import report

report.prepare_devices(8)

import argparse
import math
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory_cases import (
    MESH_SHAPES,
    METHODS,
    MODELS,
    QUICK_MESH_SHAPES,
    QUICK_MODELS,
    MemoryCase,
)
from rich.console import Console
from rich.table import Table
from target_witness import CACHE, TargetWitness

from stablehlo_alpa import ClusterSpec
from stablehlo_alpa.errors import StablehloAlpaError
from stablehlo_alpa.planning.checking import check_plan
from stablehlo_alpa.units import format_bytes
from stablehlo_alpa.witness import TARGETS, examine

DEVICES_PER_HOST = 8
# By how much a prediction may be off: in the median, at most, and at most below.
MEDIAN_BAR, WORST_BAR, UNDER_BAR = 0.05, 0.15, 0.05


@dataclass(frozen=True)
class Outcome:
    """A mesh of a plan.

    Attributes:
        name: of model, method and mesh; of a pipeline the stage as well.
        planned_bytes, compiled_bytes: peak per device by the plan and by XLA.
    """

    name: str
    planned_bytes: float
    compiled_bytes: float

    @property
    def error(self) -> float:
        """By which part the prediction is above what XLA takes; negative below."""
        return self.planned_bytes / self.compiled_bytes - 1


class MemoryWitness(TargetWitness):
    """What XLA takes in memory, of every plan."""

    def outcomes(
        self, name: str, case: MemoryCase, method: str, shape: tuple[int, ...]
    ) -> Iterator[Outcome]:
        """The meshes of a model's plan.

        Raises:
            StablehloAlpaError: it cannot be planned, or XLA does not take it.
        """
        count = math.prod(shape)
        per_host = min(count, DEVICES_PER_HOST)
        cluster = ClusterSpec(self.device, count // per_host, per_host)
        plan = case.plan(METHODS[method](shape), cluster)
        title = f"{name}, {method} on {'x'.join(map(str, shape))}"
        self.say(f"{title} for {self.target}")
        check = check_plan(plan, examine(plan.runtime, self.target, cache=self.cache))
        for number, mesh in enumerate(check.meshes):
            stage = f", stage {number}" if len(check.meshes) > 1 else ""
            yield Outcome(title + stage, mesh.planned.peak_bytes, mesh.compiled.peak_bytes)


def summary(target: str, outcomes: Sequence[Outcome]) -> list[report.Row]:
    """How far predictions are off, against the bars."""
    errors = [one.error for one in outcomes]
    sizes = [abs(error) for error in errors]
    return [
        report.limited(f"{target}: median error", statistics.median(sizes), "", bar=MEDIAN_BAR),
        report.limited(f"{target}: largest error", max(sizes), "", bar=WORST_BAR),
        report.limited(f"{target}: most below", max(0.0, -min(errors)), "", bar=UNDER_BAR),
    ]


def table_of(target: str, outcomes: Sequence[Outcome]) -> Table:
    """A row per mesh; errors that miss their bar are red."""
    table = Table("plan", title=f"peak per device, {target}")
    for head in ("predicted", "XLA", "error"):
        table.add_column(head, justify="right")
    for one in outcomes:
        error = f"{one.error:+.1%}"
        holds = -UNDER_BAR <= one.error <= WORST_BAR
        table.add_row(
            one.name,
            format_bytes(one.planned_bytes),
            format_bytes(one.compiled_bytes),
            error if holds else f"[bold red]{error}[/]",
        )
    return table


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    quick = f"only {', '.join(QUICK_MODELS)} on {QUICK_MESH_SHAPES}"
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--models", nargs="+", choices=MODELS, help="only these")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--meshes", nargs="+", help="only these, e.g. 2x4")
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=list(TARGETS))
    parser.add_argument("--cache", type=Path, default=CACHE, help="keeps what was compiled")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here as well")
    return parser.parse_args()


def main() -> int:
    """Prints a table per target and how far predictions are off; 1 where a bar is missed."""
    options = _options()
    models = options.models or (QUICK_MODELS if options.quick else MODELS)
    shapes: Sequence[tuple[int, ...]] = QUICK_MESH_SHAPES if options.quick else MESH_SHAPES
    if options.meshes:
        shapes = [tuple(map(int, mesh.split("x"))) for mesh in options.meshes]
    console, log = Console(), Console(stderr=True)
    outcomes: dict[str, list[Outcome]] = {target: [] for target in options.targets}
    failed: list[str] = []
    for name in models:
        case = MODELS[name].case()
        for target in options.targets:
            witness = MemoryWitness(target, options.cache, log.log)
            for shape in shapes:
                for method in options.methods:
                    try:
                        outcomes[target] += witness.outcomes(name, case, method, shape)
                    except StablehloAlpaError as error:
                        first = str(error).splitlines()[0]
                        failed.append(f"{name}, {method} on {shape}, {target}: {first}")
    rows: list[report.Row] = []
    for target, found in outcomes.items():
        console.print(table_of(target, found))
        rows += summary(target, found) if found else []
    return report.conclude(console, rows, failed, options.json)


if __name__ == "__main__":
    sys.exit(main())
