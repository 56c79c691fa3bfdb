"""XLA's compilers for GPU and TPU as witness of what the suite's models are lowered to.

Every model under the searched plan on 2x4, and as a pipeline of two stages, for 8 H100 and 8
TPU v5p; none has to be there. Beside what was planned, and what Shardy makes of the same plan.
The steps of some examples are among them, on one mesh.
"""

import report

report.prepare_devices(8)

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accelerator_cases import MODELS, QUICK_MODELS, Step, step_of
from rich.console import Console
from rich.table import Table
from target_witness import CACHE, TargetWitness

import stablehlo_alpa
from stablehlo_alpa.cluster import ClusterSpec, preset_for
from stablehlo_alpa.planning.checking import MeshCheck, MeshClaims, check_plan, compiled_claims
from stablehlo_alpa.units import format_bytes, format_seconds
from stablehlo_alpa.witness import TARGETS, Collective, Examination, Kind, WitnessError, examine

MESH_SHAPE = (2, 4)
# XLA for TPU has the links add rather than scatter where it joins small reduce-scatters with
# all-reduces, and where a gather is less than a row of 128 words: our programs and Shardy's alike.
ADDS_ON_LINKS = {"tpu-v5p"}
ROW_BYTES = 512.0


@dataclass(frozen=True)
class Quantity:
    """What is compared.

    Attributes:
        name: of it.
        unit: of its values.
        read: takes it out of what is said of a mesh.
        show: makes text of it.
        bars: by what it is compared with, the ratio not to exceed.
    """

    name: str
    unit: str
    read: Callable[[MeshClaims], float | None]
    show: Callable[[float], str]
    bars: dict[str, float]


QUANTITIES = (
    Quantity("sent", "B", lambda c: c.sent_bytes, format_bytes, {"plan": 1.0, "Shardy": 1.0}),
    # Room for the order of instructions, which the backend's scheduler finds.
    Quantity("memory", "B", lambda c: c.peak_bytes, format_bytes, {"Shardy": 1.05}),
    Quantity("compute", "s", lambda c: c.optimal_s, format_seconds, {"Shardy": 1.0}),
)


@dataclass(frozen=True)
class Outcome:
    """One mesh of a plan.

    Attributes:
        name: of the model, and of the mesh in a pipeline.
        compiled: what XLA says.
        others: what it is compared with: what the plan says, and what XLA says where Shardy
            carries out a plan of one mesh.
    """

    name: str
    compiled: MeshClaims
    others: dict[str, MeshClaims]

    def row(self, target: str, quantity: Quantity, against: str) -> report.Row | None:
        """A comparison; None where one side says nothing."""
        value = quantity.read(self.compiled)
        reference = quantity.read(self.others[against]) if against in self.others else None
        if value is None or reference is None:
            return None
        return report.compared(
            f"{self.name} on {target}: {quantity.name}",
            value,
            quantity.unit,
            against=against,
            reference=reference,
            bar=quantity.bars[against],
        )

    def rows(self, target: str) -> list[report.Row]:
        """All comparisons."""
        found = [self.row(target, q, against) for q in QUANTITIES for against in q.bars]
        return [row for row in found if row is not None]


class NoWitnessError(Exception):
    """XLA's compiler does not take a model from its own partitioner either."""


class ModelWitness(TargetWitness):
    """What XLA makes of the models."""

    def outcomes(self, model: str) -> list[Outcome]:
        """A model on one mesh, and the two meshes of its pipeline if it has one.

        Raises:
            NoWitnessError: the compiler has a fault at this model.
            WitnessError: it refuses what we lower.
        """
        step = step_of(model)
        found = [self.one_mesh(model, step)]
        return found + self.pipeline(model, step) if step.has_layers else found

    def one_mesh(self, model: str, step: Step) -> Outcome:
        """The searched plan on one mesh, by our lowering and, where it can, by Shardy."""
        plan = self.plan(step, stablehlo_alpa.ShardParallel(mesh_shape=MESH_SHAPE))
        others, ours = {}, self.examine(plan.runtime)
        if step.has_rival:
            try:
                rival = self.examine(plan.partitioned("shardy"))
            except WitnessError as error:
                raise NoWitnessError(f"by Shardy: {error}") from error
            options = {**ours.options, **rival.options}
            ours, rival = (
                one if one.options == options else self.examine(one.plan, options)
                for one in (ours, rival)
            )
            others["Shardy"] = compiled_claims(rival, 0)
        (mesh,) = check_plan(plan, ours).meshes
        return Outcome(model, mesh.compiled, {"plan": self.planned(mesh), **others})

    def pipeline(self, model: str, step: Step) -> list[Outcome]:
        """Two stages, two micro-batches."""
        method = stablehlo_alpa.PipeshardParallel(
            num_micro_batches=2,
            stages=stablehlo_alpa.UniformStages(2),
            micro_batches="independent" if step.has_statistics else "shards",
        )
        plan = self.plan(step, method)
        check = check_plan(plan, self.examine(plan.runtime))
        return [
            Outcome(f"{model}, stage {number}", mesh.compiled, {"plan": self.planned(mesh)})
            for number, mesh in enumerate(check.meshes)
        ]

    def plan(self, step: Step, method: stablehlo_alpa.Method) -> stablehlo_alpa.Plan:
        """The plan at the prices of the devices at hand, lowered for the target's compiler.

        At an accelerator's prices hardly anything of models so small would be split.
        """
        device = replace(preset_for("cpu"), platform=self.device.platform)
        return step.plan(method, ClusterSpec(device, 1, 8))

    def planned(self, mesh: MeshCheck) -> MeshClaims:
        """What the plan says, with the collectives that the compiler makes of others."""
        if self.target not in ADDS_ON_LINKS:
            return mesh.planned
        return replace(mesh.planned, collectives=tuple(map(added, mesh.planned.collectives)))

    def examine(self, plan: Any, options: Mapping[str, Any] | None = None) -> Examination:
        """What XLA makes of a plan of the runtime; options as of `examine`."""
        return examine(plan, self.target, options=options, cache=self.cache, say=self.say)


def added(one: Collective) -> Collective:
    """A planned collective as one that adds: all of a reduce-scatter, at least a row of others."""
    if one.group_size == 1:
        return one
    whole = replace(one, kind=Kind.ALL_REDUCE)
    row = replace(whole, payload_bytes=ROW_BYTES)
    first = whole if one.kind is Kind.REDUCE_SCATTER else one
    return max(first, row, key=lambda c: c.sent_bytes)


def table_of(target: str, outcomes: list[Outcome]) -> Table:
    """A row per mesh; ratios that miss their bar are red."""
    table = Table(title=f"8 x {target}, per device and step")
    table.add_column("model")
    for quantity in QUANTITIES:
        for head in (quantity.name, *(h for a in quantity.bars for h in (a, "ratio"))):
            table.add_column(head, justify="right")
    for one in outcomes:
        cells = [cell for quantity in QUANTITIES for cell in _cells(one, target, quantity)]
        table.add_row(one.name, *cells)
    return table


def _cells(one: Outcome, target: str, quantity: Quantity) -> list[str]:
    value = quantity.read(one.compiled)
    cells = ["" if value is None else quantity.show(value)]
    for against in quantity.bars:
        row = one.row(target, quantity, against)
        if row is None:
            cells += ["", ""]
            continue
        other = quantity.read(one.others[against])
        ratio = f"{row.ratio:.3f}"
        cells += [quantity.show(other or 0.0), ratio if row.holds else f"[bold red]{ratio}[/]"]
    return cells


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def main() -> int:
    """Prints a table per target, then what failed; the status is 1 where something did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK_MODELS)}")
    parser.add_argument("--models", nargs="+", choices=MODELS, help="only these")
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=list(TARGETS))
    parser.add_argument("--cache", type=Path, default=CACHE, help="keeps what was compiled")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here as well")
    options = parser.parse_args()
    models = options.models or (QUICK_MODELS if options.quick else MODELS)
    console, log = Console(), Console(stderr=True)

    rows: list[report.Row] = []
    failed: list[str] = []
    skipped: list[str] = []
    for target in options.targets:
        witness, outcomes = ModelWitness(target, options.cache, log.log), []
        for model in models:
            try:
                outcomes += witness.outcomes(model)
            except NoWitnessError as error:
                skipped.append(f"{model} on {target} cannot be told, {_first_line(error)}")
            except WitnessError as error:
                failed.append(f"{model} on {target}: {error}")
        console.print(table_of(target, outcomes))
        rows += [row for one in outcomes for row in one.rows(target)]
    failed += [
        f"{row.metric} is {row.ratio:.4f} of {row.against}, must be at most {row.bar}"
        for row in rows
        if not row.holds
    ]
    for text in skipped:
        console.print(text, style="yellow", markup=False)
    for text in failed:
        console.print(text, style="red", markup=False)
    report.write(rows, options.json)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
