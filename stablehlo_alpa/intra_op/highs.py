"""HiGHS, run on what cvxpy states, with limits that are counted.

cvxpy passes HiGHS limits of seconds, and of nodes, of which the first may take longer than all that
there is. HiGHS asks between pieces of its work whether to go on: the pieces are counted here, so
that it ends at the same place whatever runs beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stablehlo_alpa.errors import SolverError
from stablehlo_alpa.intra_op.quiet import Quiet
from stablehlo_alpa.intra_op.work import Work

if TYPE_CHECKING:
    import cvxpy as cp

# Seconds per entry of the matrix that an iteration of the simplex algorithm takes, one within the
# search for integers, and what HiGHS does there between two questions whether to go on: HiGHS 1.15
# on one core of a Xeon of 2023, programmes of 12e3 to 37e3 entries.
_ITERATION_S, _INTEGER_ITERATION_S, _PIECE_S = 5e-9, 1.2e-8, 7e-6

# That an answer is cut short is in its status.
_CUT_SHORT = Quiet("Solution may be inaccurate")


@dataclass(frozen=True)
class HighsAnswer:
    """How HiGHS ended; values are those of the problem's variables.

    Attributes:
        status: 'optimal', 'time limit' (of work, or what was found is good enough) or
            'infeasible'.
        has_values: whether the variables have values.
        bound: what the least objective is not below.
    """

    status: str
    has_values: bool
    bound: float


def run_highs(
    problem: cp.Problem,
    work: Work,
    relative_gap: float,
    *,
    limit_s: float = np.inf,
    target: float = -np.inf,
    presolve: bool = False,
    start: npt.NDArray[np.float64] | None = None,
) -> HighsAnswer:
    """Runs HiGHS.

    Args:
        problem: what to solve.
        work: what may be done; what is done is added.
        relative_gap: proved gap at which it stops.
        limit_s: a limit of its own, in seconds of work.
        target: objective at which it stops, with integers alone.
        presolve: HiGHS's own, on a programme with integers; a relaxation always has it.
        start: float64[columns] a point of a programme with integers, of one variable, to begin
            with.

    Raises:
        SolverError: it failed, or ended in another state.
    """
    import cvxpy as cp
    import highspy as hp

    data, chain, inverse = problem.get_problem_data(cp.HIGHS)
    is_integral = problem.is_mixed_integer()
    entries, limit_s = max(1, data["A"].nnz), min(limit_s, work.left_s())
    solver = hp.Highs()
    for name, value in {
        "log_to_console": False,
        "time_limit": work.clock_s(),
        "mip_rel_gap": float(relative_gap),
        "mip_abs_gap": 0.0,
        "objective_target": float(target) if is_integral else -np.inf,
        "random_seed": 0,
        # HiGHS 1.15's presolve calls feasible programmes with continuous e and a memory row
        # infeasible (seen with tied costs); the relaxation is not touched by it.
        "presolve": "choose" if presolve or not is_integral else "off",
    }.items():
        if solver.setOptionValue(name, value) == hp.HighsStatus.kError:
            raise SolverError(f"HiGHS takes no option {name}={value}")
    solver.passModel(_model(data))
    if start is not None and len(start) == len(data["c"]):
        solver.setSolution(_known(start))
    if is_integral:
        pieces = _Pieces(limit_s / (_PIECE_S * entries))
        solver.cbMipInterrupt += pieces.ask
    else:
        iterations = min(limit_s / (_ITERATION_S * entries), 2**31 - 1)
        solver.setOptionValue("simplex_iteration_limit", int(iterations))
    solver.run()
    info, ended = solver.getInfo(), solver.getModelStatus()
    each_s = _INTEGER_ITERATION_S if is_integral else _ITERATION_S
    is_late = ended == hp.HighsModelStatus.kTimeLimit
    work.spend(max(0, info.simplex_iteration_count) * each_s * entries, is_late=is_late)
    status, solution = _status(ended.name), solver.getSolution()
    if status == "infeasible" or not solution.value_valid:
        return HighsAnswer(status, False, info.mip_dual_bound if is_integral else -np.inf)
    results = {
        "solution": solution,
        "info": info,
        "model_status": "kOptimal" if status == "optimal" else "kTimeLimit",
        "run_time": solver.getRunTime(),
    }
    with _CUT_SHORT():
        problem.unpack_results(results, chain, inverse)
    bound = info.mip_dual_bound
    if not is_integral:
        bound = info.objective_function_value if status == "optimal" else -np.inf
    return HighsAnswer(status, True, float(bound))


def _known(start: npt.NDArray[np.float64]) -> Any:
    """A point as HiGHS takes it."""
    import highspy as hp

    found = hp.HighsSolution()
    found.col_value, found.value_valid = start.tolist(), True
    return found


class _Pieces:
    """Ends HiGHS after some of what it does."""

    def __init__(self, most: float) -> None:
        self._left = most

    def ask(self, event: Any) -> None:
        """Is asked by HiGHS whether to go on."""
        self._left -= 1.0
        if self._left <= 0:
            event.interrupt()


def _status(ended: str) -> str:
    """How HiGHS ended, by the name that it gives it.

    Raises:
        SolverError: it failed.
    """
    match ended:
        case "kOptimal":
            return "optimal"
        case "kInfeasible":
            return "infeasible"
        case "kInterrupt" | "kTimeLimit" | "kIterationLimit" | "kObjectiveTarget":
            return "time limit"
    raise SolverError(f"HiGHS ended with status {ended!r}")


def _model(data: dict[str, Any]) -> Any:
    """What cvxpy states as HiGHS takes it: equations come first, then what is at most."""
    import highspy as hp

    matrix, right = data["A"].tocsc(), np.asarray(data["b"], np.float64)
    left = right.copy()
    left[data["dims"].zero :] = -hp.kHighsInf
    model = hp.HighsLp()
    model.num_row_, model.num_col_ = matrix.shape
    model.col_cost_ = data["c"]
    model.row_lower_, model.row_upper_ = left, right
    model.a_matrix_.format_ = hp.MatrixFormat.kColwise
    model.a_matrix_.start_ = matrix.indptr
    model.a_matrix_.index_ = matrix.indices
    model.a_matrix_.value_ = matrix.data
    bounds, integers = (data["lower_bounds"], data["upper_bounds"]), data["bool_vars_idx"]
    free = np.full(model.num_col_, hp.kHighsInf)
    lower, upper = (
        sign * free if one is None else np.array(one, np.float64)
        for sign, one in zip((-1.0, 1.0), bounds, strict=True)
    )
    lower[integers] = np.maximum(lower[integers], 0.0)
    upper[integers] = np.minimum(upper[integers], 1.0)
    model.col_lower_, model.col_upper_ = lower, upper
    if integers:
        kinds = [hp.HighsVarType.kContinuous] * model.num_col_
        for column in integers:
            kinds[column] = hp.HighsVarType.kInteger
        model.integrality_ = kinds
    return model
