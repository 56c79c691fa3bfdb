"""Time of the whole search for a pipeline: from a Python function to the checked plan."""

import report

report.prepare_devices(8)

import resource
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import jax
import jax.numpy as jnp
from model_graphs import abstract_case
from models import gpt
from models.case import TrainCase
from report import Row, limited, measured

import stablehlo_alpa
from stablehlo_alpa.cluster import ClusterSpec, preset_for
from stablehlo_alpa.errors import InfeasibleError
from stablehlo_alpa.frontend import trace
from stablehlo_alpa.inter_op import AutoStages, PipelineOptions, plan_pipeline
from stablehlo_alpa.intra_op import SolveOptions
from stablehlo_alpa.layers import AutoLayers, layer_context

Params: TypeAlias = dict[str, jax.Array]

# Of the recurrent network.
_WIDTH = 512
# What the search says first, and the part of it that then begins.
_PARTS = {
    "stages of": "cut into layers",
    "bounds on": "graphs and windows",
    "bound of": "prices of memory",
    "choosing": "dynamic programme",
    "layers": "exact stages",
    "stage ": "emit",
    "instructions": "emit",
}


@dataclass(frozen=True)
class Case:
    """A model on a cluster of V100 of 16 GB.

    Attributes:
        name: of the model.
        make: its train step.
        num_layers: layers that it is clustered into, each computed again in the backward phase.
        hosts: of eight devices each.
        num_micro_batches: of a step.
        bar_s: seconds.
        gap: the bar of what is proved.
    """

    name: str
    make: Callable[[], TrainCase]
    num_layers: int
    hosts: int
    num_micro_batches: int
    bar_s: float
    gap: float

    @property
    def title(self) -> str:
        """For the table."""
        return f"{self.name}, {self.hosts}x8 V100"


def gpt_of(layers: int, hidden: int, heads: int) -> Callable[[], TrainCase]:
    """A GPT of the paper: batch 1024, length 1024, vocabulary 51200 (Alpa, OSDI 2022, Table 3)."""
    return lambda: gpt.make(
        batch=1024,
        layers=layers,
        hidden=hidden,
        heads=heads,
        vocabulary=51200,
        length=1024,
        dropout=0.0,
        dtype=jnp.float16,
    )


CASES = [
    Case("GPT-350M", gpt_of(24, 1024, 16), 8, 1, 16, 5.0, 0.01),
    Case("GPT-2.6B", gpt_of(32, 2560, 32), 8, 1, 32, 10.0, 0.02),
    Case("GPT-39B", gpt_of(48, 8192, 64), 16, 8, 64, 60.0, 0.03),
]


class Watch:
    """Seconds by part of the search, told by what it says."""

    def __init__(self) -> None:
        """The clock runs."""
        self.seconds: dict[str, float] = defaultdict(float)
        self._part, self._since = "micro-batches and layers", time.perf_counter()

    def begin(self, part: str) -> None:
        """Ends the part that ran."""
        now = time.perf_counter()
        self.seconds[self._part] += now - self._since
        self._part, self._since = part, now

    def say(self, text: str) -> None:
        """Takes a line of the search."""
        for start, part in _PARTS.items():
            if text.startswith(start):
                self.begin(part)
                return


def rows_of(case: Case) -> list[Row]:
    """One search."""
    step, args = abstract_case(case.make)
    cluster = ClusterSpec(preset_for("v100-16gb"), case.hosts, 8)
    start, ran = time.perf_counter(), time.process_time()
    with layer_context(AutoLayers(num_layers=case.num_layers, remat=True)):
        program = trace(step, args, {}, donate_argnums=0)
    traced = time.perf_counter() - start
    watch = Watch()
    options = PipelineOptions(
        cluster,
        AutoStages(),
        case.num_micro_batches,
        solve=SolveOptions(memory_budget=cluster.device.memory_bytes),
    )
    try:
        plan = plan_pipeline(program, options, watch.say)
    except InfeasibleError as error:
        print(f"{case.title}: {error}")
        plan = None
    watch.begin("end")
    title = case.title
    rows = [limited(title, time.perf_counter() - start, "s", bar=case.bar_s)]
    rows.append(measured(f"{title}: processor time", time.process_time() - ran, "s"))
    rows.append(measured(f"{title}: trace", traced, "s"))
    rows += [measured(f"{title}: {part}", spent, "s") for part, spent in watch.seconds.items()]
    if plan is not None and plan.bracket is not None:
        bracket = plan.bracket
        shapes = ", ".join("x".join(map(str, stage.mesh.shape)) for stage in plan.stages)
        rows += [
            limited(f"{title}: gap", bracket.gap, "", bar=case.gap),
            measured(f"{title}: latency by prices", bracket.latency_s, "s"),
            measured(f"{title}: step simulated", plan.step_time_s, "s"),
            measured(f"{title}: stages solved", bracket.num_solved, ""),
            measured(f"{title}: stages on {shapes}", len(plan.stages), ""),
        ]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return [*rows, measured(f"{title}: peak memory of the process so far", peak, "GiB")]


def recurrent_rows(steps: int) -> list[Row]:
    """A recurrent network with shared weights, unrolled, on one mesh of 2x4."""

    def loss(params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
        hidden = jnp.zeros((x.shape[0], _WIDTH))
        for step in range(steps):
            hidden = jnp.tanh(x[:, step] @ params["in"] + hidden @ params["own"] + params["bias"])
        return jnp.mean((hidden @ params["out"] - y) ** 2)

    def train(params: Params, x: jax.Array, y: jax.Array) -> tuple[Params, jax.Array]:
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    def shape(*sizes: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(sizes, jnp.float32)

    params = {
        "in": shape(_WIDTH, _WIDTH),
        "own": shape(_WIDTH, _WIDTH),
        "bias": shape(_WIDTH),
        "out": shape(_WIDTH, _WIDTH),
    }
    start = time.perf_counter()
    method = stablehlo_alpa.ShardParallel(mesh_shape=(2, 4))
    step = stablehlo_alpa.parallelize(train, method=method)
    plan = step.plan(params, shape(64, steps, _WIDTH), shape(64, _WIDTH))
    spent, solution = time.perf_counter() - start, plan.stages[0].solution
    title = f"recurrent network of {steps} steps, 2x4"
    return [
        limited(title, spent, "s", bar=5.0),
        limited(f"{title}: gap", solution.gap, "", bar=0.01),
        measured(f"{title}: solving", solution.spent_s, "s"),
    ]


def measure(quick: bool) -> list[Row]:
    """The smallest models when quick."""
    cases = CASES[:1] if quick else CASES
    rows = recurrent_rows(50 if quick else 200)
    return rows + [row for case in cases for row in rows_of(case)]


if __name__ == "__main__":
    report.main("Time of the search for a pipeline", measure)
