"""Whole training steps that others measured, beside what plans predict for them.

Megatron-LM on A100: steps, layers and memory of published runs, planned by `MegatronParallel` on
`dgx-a100` for the model in ``megatron_model.py``; and steps of the suite's models that were run on
one H100. No TPU was measured: there it is the cycles that XLA's compiler for v5p counts for the
kernels of steps of the suite's models on eight chips, where that compiler is installed. Nothing is
fitted on these figures.
"""

import report

report.prepare_devices(8)

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import memory_cases
from fidelity_cases import CASES
from measurements import read
from megatron_model import GPTSizes, gradients, step, step_shapes
from rich.console import Console
from rich.table import Table
from target_witness import CACHE

import stablehlo_alpa
from stablehlo_alpa import ClusterSpec, MegatronParallel, Plan
from stablehlo_alpa.cluster import preset_for
from stablehlo_alpa.errors import StablehloAlpaError
from stablehlo_alpa.planning.checking import planned_claims
from stablehlo_alpa.witness import TARGETS, WitnessError

# How far predictions may be off in the mean: steps, one layer, memory.
BARS = {
    **{"step s": 0.08, "TFLOP/s per device": 0.08, "layer ms": 0.10, "memory GiB": 0.10},
    **{"one device, step s": 0.15, "one device, memory GiB": 0.15},
    "kernels s": 0.15,
}

# Plans that are compiled for v5p.
_COMPILED = ("gpt bf16", "llama bf16", "moe", "encoder_decoder", "vit", "wide_resnet", "mixer")
_METHODS, _MESH_SHAPE = ("search", "zero3", "data"), (2, 4)

# Stages that are planned without asking for --all: planning takes a second per stage.
_STAGES = 8

# What does not fit is to be predicted as well.
_BUDGET = "1TiB"

# A source that does not say how many examples a device works on at a time has taken the best.
_MICRO_BATCHES = (1, 2, 4, 8)

# Layers of one mesh that are planned in place of all, see `Row.scaled`.
_FEW, _MORE = 2, 3


@dataclass(frozen=True)
class Row:
    """A published figure.

    Attributes:
        source, quantity, value: of ``measured/end_to_end.csv``.
        sizes: of the model.
        devices: of the cluster, in hosts of eight.
        method: what it was split by; its micro-batch is None where the source does not say.
    """

    source: str
    quantity: str
    value: float
    sizes: GPTSizes
    devices: int
    method: MegatronParallel

    @property
    def name(self) -> str:
        """For tables."""
        billions, method = self.sizes.num_parameters / 1e9, self.method
        parts = [f"{billions:.1f}B", f"{self.devices} devices", f"t{method.tensor}"]
        parts += [f"p{method.pipeline}"] if method.pipeline > 1 else []
        parts += [method.recompute] + ["sequence"] * method.sequence_parallel
        return f"{self.source} {' '.join(parts)}, {self.quantity}"

    @property
    def num_stages(self) -> int:
        """Stages that are planned."""
        return self.method.pipeline * self.method.interleave

    def predict(self) -> float:
        """The figure by the plan, in the row's unit.

        Raises:
            StablehloAlpaError: it cannot be planned.
        """
        match self.quantity:
            case "step s":
                return self.scaled(lambda plan: plan.step_time_s)
            case "memory GiB":
                return self.scaled(lambda plan: plan.peak_bytes) / 2**30
            case "layer ms":
                few, more = (self._plan(n, is_step=False).step_time_s for n in (_FEW, _MORE))
                return (more - few) * 1e3
        seconds = self.scaled(lambda plan: plan.step_time_s)
        return self.flops / seconds / self.devices / 1e12

    @property
    def flops(self) -> float:
        """Of a step, what is computed again included (Narayanan et al., SC'21, section 5.1)."""
        one = self.sizes
        share = 1 + one.length / (6 * one.hidden)
        share += one.vocabulary / (16 * one.layers * one.hidden)
        return 96.0 * one.batch * one.length * one.layers * one.hidden**2 * share

    def scaled(self, figure: Callable[[Plan], float]) -> float:
        """A figure of the whole model.

        Layers are equal, and on one mesh a plan treats them so: what one more takes is the same for
        all. Three are planned then, and the difference is added for the others. Pipelines, whose
        bubbles are no sum over layers, are planned whole.
        """
        if self.num_stages > 1:
            return figure(self._plan(self.sizes.layers))
        few, more = figure(self._plan(_FEW)), figure(self._plan(_MORE))
        return more + (self.sizes.layers - _MORE) * (more - few)

    def _plan(self, layers: int, *, is_step: bool = True) -> Plan:
        return _plan(replace(self.sizes, layers=layers), self.devices, self.method, is_step)


@cache
def _plan(sizes: GPTSizes, devices: int, method: MegatronParallel, is_step: bool) -> Plan:
    """The plan of a step, or of the gradients alone; the best where the micro-batch is open."""
    if method.micro_batch is None:
        data = devices // (method.tensor * method.pipeline)
        sized = [n for n in _MICRO_BATCHES if sizes.batch % (data * n) == 0]
        found = [_plan(sizes, devices, replace(method, micro_batch=n), is_step) for n in sized]
        return min(found, key=lambda plan: plan.step_time_s)
    state, tokens = step_shapes(sizes)
    # Nothing runs beside computation: Megatron-LM sent when it had computed.
    cluster = ClusterSpec.preset(f"dgx-a100:{devices // 8}")
    planned = stablehlo_alpa.parallelize(
        step if is_step else gradients,
        method=method,
        donate_argnums=0 if is_step else (),
        cluster=cluster,
    )
    return planned.plan(state if is_step else state.params, tokens)


@dataclass(frozen=True)
class DeviceRow:
    """A figure of a step on one device, of ``measured/steps.csv``.

    Attributes:
        device: preset.
        model: of ``fidelity_cases.py``.
        quantity, value: seconds or GiB.
    """

    device: str
    model: str
    quantity: str
    value: float

    @property
    def name(self) -> str:
        """For tables."""
        return f"{self.device} {self.model}, {self.quantity.removeprefix('one device, ')}"

    @property
    def num_stages(self) -> int:
        """It is not cut."""
        return 1

    def predict(self) -> float:
        """The figure by the plan, in the row's unit."""
        plan = _device_plan(self.device, self.model)
        return plan.peak_bytes / 2**30 if "memory" in self.quantity else plan.step_time_s


@cache
def _device_plan(device: str, model: str) -> Plan:
    cluster = ClusterSpec(preset_for(device), 1, 1)
    method = stablehlo_alpa.DataParallel(mesh_shape=(1, 1), memory_budget=_BUDGET)
    return CASES[model].case().plan(method, cluster)


@dataclass(frozen=True)
class CompiledRow:
    """Seconds of the kernels of a step on eight chips of v5p, as XLA's compiler counts them.

    Attributes:
        model, method: of ``memory_cases.py``.
    """

    model: str
    method: str
    quantity: str = "kernels s"

    @property
    def name(self) -> str:
        """For tables."""
        return f"XLA for v5p, {self.model}, {self.method}"

    @property
    def num_stages(self) -> int:
        """It is not cut."""
        return 1

    @property
    def value(self) -> float:
        """Seconds of a step on a device."""
        checked = _compiled_plan(self.model, self.method).check("tpu-v5p", cache=CACHE)
        return checked.meshes[0].compiled.compute_s or 0.0

    def predict(self) -> float:
        """Seconds by the plan."""
        return planned_claims(_compiled_plan(self.model, self.method), 0).compute_s or 0.0


@cache
def _compiled_plan(model: str, method: str) -> Plan:
    cluster = ClusterSpec(preset_for("tpu-v5p"), 1, 8)
    chosen = memory_cases.METHODS[method](_MESH_SHAPE)
    return memory_cases.MODELS[model].case().plan(chosen, cluster)


def compiled_rows() -> Iterator[CompiledRow]:
    """Those of v5p, none where its compiler is not installed."""
    try:
        found = TARGETS["tpu-v5p"].versions
    except WitnessError:
        found = ()
    for model in _COMPILED if found else ():
        for method in _METHODS:
            yield CompiledRow(model, method)


AnyRow = Row | DeviceRow | CompiledRow


def rows() -> Iterator[AnyRow]:
    """All figures of the tables."""
    yield from compiled_rows()
    for row in read("steps"):
        own = row["device"], row["model"]
        yield DeviceRow(*own, "one device, step s", float(row["seconds"]))
        yield DeviceRow(*own, "one device, memory GiB", float(row["peak_bytes"]) / 2**30)
    for row in read("end_to_end"):
        number = {key: int(row[key] or 1) for key in row if row[key].isdigit() or not row[key]}
        yield Row(
            row["source"],
            row["quantity"],
            float(row["value"]),
            GPTSizes(
                number["layers"],
                number["hidden"],
                number["heads"],
                number["batch"],
                vocabulary=number["vocabulary"],
            ),
            number["devices"],
            MegatronParallel(
                tensor=number["tensor"],
                pipeline=number["pipeline"],
                micro_batch=number["micro_batch"] if row["micro_batch"] else None,
                interleave=number["interleave"],
                sequence_parallel=row["sequence_parallel"] == "yes",
                recompute=row["recompute"],
                memory_budget=_BUDGET,
            ),
        )


@dataclass(frozen=True)
class Outcome:
    """A row and what was predicted for it."""

    row: AnyRow
    predicted: float

    @property
    def deviation(self) -> float:
        """By which part the prediction is above the figure; negative below."""
        return self.predicted / self.row.value - 1


def table_of(outcomes: list[Outcome]) -> Table:
    """A line per row; deviations over their bar are red."""
    table = Table("figure")
    for head in ("published", "predicted", "deviation"):
        table.add_column(head, justify="right")
    for one in outcomes:
        holds = abs(one.deviation) <= BARS[one.row.quantity]
        shown = f"{one.deviation:+.1%}"
        values = (f"{one.row.value:.4g}", f"{one.predicted:.4g}")
        table.add_row(one.row.name, *values, shown if holds else f"[red]{shown}[/]")
    return table


def summary(outcomes: list[Outcome]) -> list[report.Row]:
    """Mean deviations against the bars."""
    found = []
    for title, quantities in (
        ("steps", ("step s", "TFLOP/s per device")),
        ("one layer", ("layer ms",)),
        ("memory", ("memory GiB",)),
        ("steps on one device", ("one device, step s",)),
        ("memory on one device", ("one device, memory GiB",)),
    ):
        sizes = [abs(one.deviation) for one in outcomes if one.row.quantity in quantities]
        if sizes:
            name = f"{title}: mean deviation of {len(sizes)}"
            found.append(report.limited(name, statistics.mean(sizes), "", bar=BARS[quantities[0]]))
    kernels = [abs(one.deviation) for one in outcomes if one.row.quantity == "kernels s"]
    if kernels:
        name = f"kernels on v5p: median deviation of {len(kernels)} from XLA's cycles"
        found.append(report.limited(name, statistics.median(kernels), "", bar=BARS["kernels s"]))
    return found


def main() -> int:
    """Prints every row and the mean deviations; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="rows of one stage only")
    parser.add_argument("--all", action="store_true", help=f"rows of over {_STAGES} stages too")
    parser.add_argument("--only", help="rows whose name has this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here as well")
    options = parser.parse_args()
    most = 1 if options.quick else 10**9 if options.all else _STAGES
    console, log = Console(), Console(stderr=True)
    outcomes, failed = [], []
    for row in rows():
        if row.num_stages > most or (options.only and options.only not in row.name):
            continue
        if options.quick and isinstance(row, CompiledRow):
            continue
        log.log(row.name)
        try:
            outcomes.append(Outcome(row, row.predict()))
            log.log(f"{outcomes[-1].predicted:.4g} ({outcomes[-1].deviation:+.1%})")
        except StablehloAlpaError as error:
            failed.append(f"{row.name}: {str(error).splitlines()[0]}")
    console.print(table_of(outcomes))
    return report.conclude(console, summary(outcomes), failed, options.json)


if __name__ == "__main__":
    sys.exit(main())
