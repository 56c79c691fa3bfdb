"""Time of the whole search for a pipeline: from a Python function to the checked plan.

python benchmarks/search.py                        # the GPTs of the paper
python benchmarks/search.py --models Llama-3-70B   # any of `CASES` by name
"""

import report

report.prepare_devices(8)

import argparse
import resource
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from report import Row, limited, measured

import stablehlo_alpa
from stablehlo_alpa import zoo
from stablehlo_alpa.api.batches import batch_inputs
from stablehlo_alpa.cluster import ClusterSpec
from stablehlo_alpa.errors import InfeasibleError
from stablehlo_alpa.frontend import split_stacks, trace
from stablehlo_alpa.inter_op import AutoStages, PipelineOptions, plan_pipeline
from stablehlo_alpa.intra_op import SolveOptions
from stablehlo_alpa.layers import AutoLayers, layer_context
from stablehlo_alpa.zoo.case import ModelCase
from stablehlo_alpa.zoo.models import gpt
from stablehlo_alpa.zoo.train_step import next_token_task, train_case

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
    """A model of the zoo on a cluster.

    Attributes:
        model: its name in the zoo; `_DEEP` for a GPT of hidden size 1024 that is a scan over
            ``layers``.
        sizes: of the step.
        cluster: a preset.
        num_layers: layers that it is clustered into, each computed again in the backward phase.
        num_micro_batches: of a step.
        bar_s: seconds.
        gap: the bar of what is proved.
        is_usual: whether it is measured unless it is named.
        layers: of the scanned GPT.
    """

    model: str
    sizes: Mapping[str, Any] = field(hash=False)
    cluster: str
    num_layers: int
    num_micro_batches: int
    bar_s: float
    gap: float
    is_usual: bool = False
    layers: int = 0

    def made(self) -> ModelCase:
        """Its train step, as shapes."""
        if self.model != _DEEP:
            return zoo.find(self.model).case(**self.sizes)
        sizes = gpt.GPTSizes(self.layers, 1024, 16)
        model = gpt.GPT(sizes, scanned=True, remat=False, dtype=self.sizes["dtype"])
        task = next_token_task(self.sizes["batch"], sizes.sequence, sizes.vocabulary)
        return train_case(f"gpt of {self.layers} layers", model, task, depth=self.layers)


_DEEP = "scanned GPT"
_PAPER = {"batch": 1024, "dtype": jnp.float16}
# The paper's batch of 1536 images as its plan for 64 devices has it; statistics of group norm are
# those of an image, so that the whole batch can be worked on in parts.
_IMAGES = {"batch": 1520, "norm": "group"}
_ONE, _EIGHT = "p3.16xlarge:1", "p3.16xlarge:8"

CASES: Mapping[str, Case] = {
    "GPT-350M": Case("gpt-350m", _PAPER, _ONE, 8, 16, 5.0, 0.01, is_usual=True),
    "GPT-2.6B": Case("gpt-2.6b", _PAPER, _ONE, 8, 32, 10.0, 0.02, is_usual=True),
    "GPT-39B": Case("gpt-39b", _PAPER, _EIGHT, 16, 64, 60.0, 0.03, is_usual=True),
    # With gradients in f32, beside f32 masters and moments, this is more than 64 V100 have.
    "MoE-70B": Case("moe-70b", {**_PAPER, "gradients": jnp.float16}, _EIGHT, 16, 64, 60.0, 0.05),
    "Wide-ResNet-13B": Case("wide-resnet-13b", _IMAGES, _EIGHT, 16, 38, 60.0, 0.05),
    "Llama-3-70B": Case("llama-3-70b", {"batch": 1024}, "p5.48xlarge:16", 16, 256, 90.0, 0.03),
    "GPT-3-175B": Case("gpt-175b", {"batch": 1536}, "dgx-a100:128", 16, 96, 90.0, 0.03),
    "Llama-3-405B": Case(
        "llama-3-405b", {"batch": 4096, "sequence": 8192}, "p5.48xlarge:2048", 16, 32, 300.0, 0.05
    ),
    # Scanned: the time hardly depends on the depth.
    **{
        f"GPT-{layers}-layers": Case(
            _DEEP, _PAPER, "p3dn.24xlarge:4", 16, 64, 60.0, 0.05, layers=layers
        )
        for layers in (16, 64, 1024)
    },
    "DeepSeek-V3": Case("deepseek-v3", {"batch": 15360}, "p5.48xlarge:256", 16, 60, 300.0, 0.05),
}


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


def rows_of(name: str) -> list[Row]:
    """One search."""
    case = CASES[name]
    made = case.made()
    cluster = ClusterSpec.preset(case.cluster)
    title = f"{name}, {case.cluster}"
    start, ran = time.perf_counter(), time.process_time()
    with layer_context(AutoLayers(num_layers=case.num_layers, remat=True)):
        program = trace(made.step, made.args, {}, donate_argnums=made.donate_argnums)
    program = split_stacks(program, batch_inputs(program)[0])
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
        print(f"{title}: {error}")
        plan = None
    watch.begin("end")
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


def main() -> None:
    """The smallest models when quick, those that are named, or the usual ones."""
    parser = argparse.ArgumentParser(description="Time of the search for a pipeline")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, within a minute")
    parser.add_argument("--models", nargs="+", choices=CASES, help="only these")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here as well")
    options = parser.parse_args()
    names = options.models or [name for name, case in CASES.items() if case.is_usual]
    rows: list[Row] = []
    if options.models is None:
        rows += recurrent_rows(50 if options.quick else 200)
    for name in names[:1] if options.quick else names:
        rows += rows_of(name)
    print(f"{parser.description}\n\n{report.markdown(rows)}")
    report.write(rows, options.json)


if __name__ == "__main__":
    main()
