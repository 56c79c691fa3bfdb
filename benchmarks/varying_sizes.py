"""Planning a GPT in other sizes: by the strategies of the nearest plan, beside a search.

python benchmarks/varying_sizes.py           # ten lengths and four batch sizes of twelve layers
python benchmarks/varying_sizes.py --quick   # three lengths of two layers

Seconds are those of all threads of the process, so that a busy machine changes them little. What
jax takes to trace and to lower the function is in both, and given beside them.
"""

import report

report.prepare_devices(8)

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import jax.numpy as jnp
from report import Row, beside, compared, limited, measured

import stablehlo_alpa as sa
from stablehlo_alpa import Plan
from stablehlo_alpa.frontend import trace
from stablehlo_alpa.layers import AutoLayers, layer_context
from stablehlo_alpa.zoo.case import ModelCase
from stablehlo_alpa.zoo.models.gpt import GPT, GPTSizes
from stablehlo_alpa.zoo.train_step import next_token_task, train_case

_CLUSTER = "p3.16xlarge:1"
_BATCH, _LENGTH = 64, 512
_LENGTHS = (512, 448, 576, 384, 640, 320, 768, 256, 896, 1024)
_BATCHES = (48, 96, 32, 128)
# As `parallelize` has it.
_GAP = 0.05
# What a plan in other sizes may take of a search.
_BAR = 0.1

T = TypeVar("T")


@dataclass(frozen=True)
class Sizes:
    """Sizes of a step.

    Attributes:
        batch: sequences.
        length: tokens of each.
        layers: of the model.
    """

    batch: int
    length: int
    layers: int

    def case(self) -> ModelCase:
        """The train step of a GPT as wide as GPT-2."""
        sizes = GPTSizes(self.layers, 768, 12)
        task = next_token_task(self.batch, self.length, sizes.vocabulary)
        return train_case("gpt", GPT(sizes, False, False, jnp.bfloat16), task, depth=self.layers)


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """A result and the seconds of the process that it took."""
    start = time.process_time()
    return work(), time.process_time() - start


class Planner:
    """One function of the model in all sizes, parallelised with plans of other sizes or without."""

    def __init__(self, method: Any, reuse_gap: float | None) -> None:
        """Takes a method and the gap that is given to ``parallelize``."""
        self._case: ModelCase | None = None

        def step(state: Any, batch: Any) -> Any:
            assert self._case is not None
            return self._case.step(state, batch)

        self._step = sa.parallelize(
            step, method=method, cluster=_CLUSTER, donate_argnums=0, reuse_gap=reuse_gap
        )

    def plan(self, case: ModelCase) -> tuple[Plan, float]:
        """The plan of a call, and the seconds that it took."""
        self._case = case
        return timed(lambda: self._step.plan(*case.args))


def trace_s(case: ModelCase, has_layers: bool) -> float:
    """Seconds of tracing and lowering."""
    with layer_context(AutoLayers(remat=False) if has_layers else None):
        return timed(lambda: trace(case.step, case.args, {}, donate_argnums=(0,)))[1]


def price_s(plan: Plan) -> float:
    """What a plan is chosen by: of stages the paper's latency, of one mesh the solver's seconds."""
    count = plan.runtime.num_micro_batches
    times = [stage.solution.objective_s / count for stage in plan.stages]
    return sum(times) + (count - 1) * max(times)


def rows_of(title: str, method: Any, sizes: Sequence[Sizes]) -> list[Row]:
    """One search and plans by its strategies, beside searches of all."""
    reusing, searching = Planner(method, _GAP), Planner(method, None)
    rows: list[Row] = []
    totals = [0.0, 0.0]
    num_searched = 0
    for number, one in enumerate(sizes):
        case = one.case()
        name = f"{title}, {one.batch} x {one.length}"
        traced = trace_s(case, isinstance(method, sa.PipeshardParallel))
        plan, spent_s = reusing.plan(case)
        if number == 0:
            rows.append(measured(f"{name}: first search", spent_s, "s"))
            continue
        best, search_s = searching.plan(case)
        how = "searched" if plan.applied is None else "strategies applied"
        num_searched += plan.applied is None
        row = measured(f"{name}: {how}", spent_s, "s")
        rows.append(beside(row, against="search", reference=search_s))
        rows.append(measured(f"{name}: trace, in both", traced, "s"))
        if plan.applied is not None and plan.gap is not None:
            rows.append(limited(f"{name}: gap", plan.gap, "", bar=_GAP))
        ratio = measured(f"{name}: price", price_s(plan), "s")
        rows.append(beside(ratio, against="search", reference=price_s(best)))
        totals = [totals[0] + spent_s - traced, totals[1] + search_s - traced]
    rows.append(measured(f"{title}: searched as well", num_searched, ""))
    return [*rows, _all(title, method, *totals)]


def _all(title: str, method: Any, spent_s: float, search_s: float) -> Row:
    """All calls together; on one mesh what is bounded is priced first, most of a search."""
    name = f"{title}: all but the first, without tracing"
    if isinstance(method, sa.PipeshardParallel):
        return compared(name, spent_s, "s", against="search", reference=search_s, bar=_BAR)
    return beside(measured(name, spent_s, "s"), against="search", reference=search_s)


def measure(is_quick: bool) -> list[Row]:
    """One mesh and a pipeline."""
    layers = 2 if is_quick else 12
    lengths = _LENGTHS[:3] if is_quick else _LENGTHS
    sizes = [Sizes(_BATCH, length, layers) for length in lengths]
    if not is_quick:
        sizes += [Sizes(batch, _LENGTH, layers) for batch in _BATCHES]
    methods = {
        "one mesh": sa.ShardParallel(),
        "pipeline": sa.PipeshardParallel(),
    }
    return [row for title, method in methods.items() for row in rows_of(title, method, sizes)]


if __name__ == "__main__":
    report.main("Plans in other sizes", measure)
