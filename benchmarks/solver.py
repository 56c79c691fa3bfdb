"""Time of the exact solver, beside the same programme in HiGHS and CBC through cvxpy."""

import report

report.prepare_devices(8)

import time
from dataclasses import dataclass

import numpy as np
from model_graphs import (
    MODELS,
    enumerate_strategies,
    gpt_of,
    mesh_of,
    perturbed,
    prepare,
    trace_case,
)
from other_solvers import OTHERS, run
from report import Row, compared, limited, measured

from stablehlo_alpa import _core
from stablehlo_alpa.compiler import Module
from stablehlo_alpa.cost import PricedGraph
from stablehlo_alpa.intra_op import MemoryModel, Solution, SolveOptions, solve
from stablehlo_alpa.intra_op.costs import Costs
from stablehlo_alpa.intra_op.least_memory import least_memory
from stablehlo_alpa.intra_op.work import Work

# Seconds after which another solver is stopped, and on small graphs.
_LIMIT_S = 150.0
_QUICK_LIMIT_S = 10.0
# Seconds for a plan within a memory budget.
_BUDGET_LIMIT_S = 60.0
# Bar on seconds where the exact solver gives up and HiGHS solves what it left.
_HANDED_BAR_S = 60.0


@dataclass(frozen=True)
class Case:
    """One graph on one mesh.

    Attributes:
        name: for the table.
        mesh_shape: logical mesh.
        bar: seconds of enumerating and solving; None where none is set.
        is_perturbed: every cost differs from layer to layer.
        others_limit_s: seconds after which HiGHS, CBC and the relaxation are stopped, which are run
            beside; None where they are not.
    """

    name: str
    mesh_shape: tuple[int, ...]
    bar: float | None
    is_perturbed: bool = False
    others_limit_s: float | None = None

    @property
    def title(self) -> str:
        """Name and mesh."""
        noise = ", all layers different" if self.is_perturbed else ""
        return f"{self.name}{noise}, {'x'.join(map(str, self.mesh_shape))}"


def planned(case: Case, merged: Module) -> tuple[float, PricedGraph, Solution]:
    """Seconds of enumerating, pricing and solving, each for the first time."""
    start = time.perf_counter()
    priced = enumerate_strategies(merged, mesh_of(case.mesh_shape))
    spent = time.perf_counter() - start
    if case.is_perturbed:
        priced = perturbed(priced)
    start = time.perf_counter()
    solution = solve(priced, SolveOptions(time_limit_s=_LIMIT_S))
    return spent + time.perf_counter() - start, priced, solution


def rows_of(case: Case, merged: Module) -> list[Row]:
    """The exact solver on one graph, and what it is compared with."""
    spent, priced, solution = planned(case, merged)
    method, bar = "", case.bar
    if solution.method != "elimination":
        method, bar = ", core handed to HiGHS", _HANDED_BAR_S
    title = f"{case.title}: enumerate and solve{method}"
    rows = [measured(title, spent, "s") if bar is None else limited(title, spent, "s", bar=bar)]
    if found := solution.minimum:
        rows.append(measured(f"{case.title}: most neighbours in the elimination", found.width, ""))
    if case.others_limit_s is not None:
        rows += beside(case, priced, spent, case.others_limit_s)
    return rows


def beside(case: Case, priced: PricedGraph, ours_s: float, limit_s: float) -> list[Row]:
    """HiGHS, CBC and the linear relaxation on the raw programme, statement in cvxpy included."""
    costs = Costs.of(priced)
    exact = solve(priced).objective_s
    rows = []
    for other in OTHERS:
        spent, value = run(other, costs, limit_s)
        stopped = "" if value is not None else f" (stopped after {limit_s:.0f} s)"
        title = f"{case.title}: enumerate and solve, beside {other.name}{stopped}"
        bar = 1 / 20 if other.is_integral else 1.0
        rows.append(compared(title, ours_s, "s", against=other.name, reference=spent, bar=bar))
        if value is not None:
            title = f"{case.title}: optimum beside {other.name}"
            rows.append(
                compared(title, exact, "s", against=other.name, reference=value, bar=1.0 + 1e-6)
            )
    return rows


def budget_rows(
    name: str, merged: Module, mesh_shape: tuple[int, ...], *, has_bars: bool = True
) -> list[Row]:
    """A budget at 60 % of the free optimum, or as far between the least peak and it."""
    priced = enumerate_strategies(merged, mesh_of(mesh_shape))
    costs, memory = Costs.of(priced), MemoryModel.of(priced.graph)
    peak = solve(priced).memory_peak_bytes
    _, least, _ = least_memory(costs, memory, Work.of(_LIMIT_S), 1e-6)
    budget, what = 0.6 * peak, "60 % of the free peak"
    rows = [measured(f"{name}: least peak over the free optimum's", least / peak, "")]
    if budget < least:
        budget, what = least + 0.6 * (peak - least), "60 % of the way from the least peak to it"
    start = time.perf_counter()
    priced = enumerate_strategies(merged, mesh_of(mesh_shape))
    solution = solve(priced, SolveOptions(memory_budget=budget, time_limit_s=_BUDGET_LIMIT_S))
    spent = time.perf_counter() - start
    shape = "x".join(map(str, mesh_shape))
    title = f"{name}, {shape}, budget at {what}"
    price = solution.memory_price_s * 2**30 * 1e3
    gap = 100 * solution.gap
    if has_bars:
        rows += [
            limited(f"{title}: enumerate and solve", spent, "s", bar=5.0),
            limited(f"{title}: gap", gap, "%", bar=0.2),
        ]
    else:
        rows += [
            measured(f"{title}: enumerate and solve", spent, "s"),
            measured(f"{title}: gap", gap, "%"),
        ]
    return [
        *rows,
        measured(f"{title}: one more GiB would save", price, "ms"),
    ]


def growth_rows(layers: tuple[int, ...]) -> list[Row]:
    """Solving time over the layers of a GPT on 8x8: exponent of a power law, equal or different."""
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for count in layers:
        priced = enumerate_strategies(prepare(trace_case(gpt_of(count))), mesh_of((8, 8)))
        for is_perturbed, found in seconds.items():
            graph = perturbed(priced) if is_perturbed else priced
            found.append(min(solve(graph, cache=_core.SolverCache()).spent_s for _ in range(3)))
    rows = []
    for is_perturbed, found in seconds.items():
        what = "different" if is_perturbed else "equal"
        exponent = float(np.polyfit(np.log(layers), np.log(found), 1)[0])
        span = f"{layers[0]} to {layers[-1]}"
        rows.append(
            limited(f"GPT {span} layers, all {what}: exponent of growth", exponent, "", bar=1.3)
        )
        rows += [
            measured(f"GPT {count} layers, all {what}: solve", spent, "s")
            for count, spent in zip(layers, found, strict=True)
        ]
    return rows


def measure(quick: bool) -> list[Row]:
    """The solver on small graphs, or on all of them."""
    if quick:
        merged = prepare(trace_case(gpt_of(2)))
        case = Case("GPT 2 layers", (2, 4), 1.0, others_limit_s=_QUICK_LIMIT_S)
        rows = rows_of(case, merged)
        # No growth: of fewer than eight layers it is not that of a power law.
        return rows + budget_rows("GPT 2 layers", merged, (2, 4))
    rows = []
    for layers, bar in ((24, 1.0), (48, 2.0)):
        merged, name = prepare(trace_case(gpt_of(layers))), f"GPT {layers} layers"
        others_limit_s = _LIMIT_S if layers == 24 else None
        rows += rows_of(Case(name, (8, 8), bar, others_limit_s=others_limit_s), merged)
        rows += rows_of(Case(name, (8, 8), 5.0, is_perturbed=True), merged)
        rows += budget_rows(name, merged, (8, 8))
        if layers == 24:
            rows += rows_of(Case(name, (4, 4, 4), None), merged)
    # Here 60 % of the free peak can be kept, but only with two layouts in one model.
    merged = prepare(trace_case(gpt_of(24, batch=8)))
    rows += budget_rows("GPT 24 layers, batch 8", merged, (8, 8), has_bars=False)
    for name, make in MODELS.items():
        merged = prepare(trace_case(make))
        for shape in ((2, 4), (8, 8)):
            bar = 2.0 if name.startswith("Llama") else 5.0
            rows += rows_of(Case(name, shape, bar), merged)
    merged = prepare(trace_case(gpt_of(4)))
    rows += rows_of(Case("GPT 4 layers", (2, 2, 2), None), merged)
    return rows + growth_rows((4, 8, 16, 32, 48))


if __name__ == "__main__":
    report.main("Time of the intra-operator solver", measure)
