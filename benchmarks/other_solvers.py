"""The intra-operator programme in other solvers, each in a process that is stopped in time."""

import contextlib
import multiprocessing
import queue
import time
import warnings
from dataclasses import dataclass
from typing import Any

import cvxpy as cp

from stablehlo_alpa.intra_op.costs import Costs
from stablehlo_alpa.intra_op.ilp import Programme


@dataclass(frozen=True)
class Other:
    """A solver of cvxpy.

    Attributes:
        name: for the table.
        solver: cvxpy's name of it.
        is_integral: False for the linear relaxation.
    """

    name: str
    solver: str
    is_integral: bool


OTHERS = (
    Other("HiGHS", cp.HIGHS, is_integral=True),
    Other("CBC", cp.CBC, is_integral=True),
    Other("the relaxation in HiGHS", cp.HIGHS, is_integral=False),
)


def run(other: Other, costs: Costs, limit_s: float) -> tuple[float, float | None]:
    """Seconds of stating and solving, and the optimum; None when it was stopped.

    Solvers do not keep their own time limits in the first relaxation.
    """
    context = multiprocessing.get_context("spawn")
    answers: Any = context.Queue()
    process = context.Process(target=_solve, args=(other, costs, answers), daemon=True)
    process.start()
    try:
        answers.get(timeout=120)  # it has its data
        spent, value = answers.get(timeout=limit_s)
    except queue.Empty:
        spent, value = limit_s, None
    process.kill()
    process.join()
    return spent, value


def _solve(other: Other, costs: Costs, answers: Any) -> None:
    answers.put(None)
    start = time.perf_counter()
    programme = Programme.of(costs, None)
    problem, _, scale = programme.state(is_integral=other.is_integral)
    with contextlib.suppress(cp.SolverError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver=other.solver)
    spent = time.perf_counter() - start
    is_done = problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
    value = programme.constant + float(problem.value) / scale if is_done else None
    answers.put((spent, value))
