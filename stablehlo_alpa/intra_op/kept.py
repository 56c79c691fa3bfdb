"""Solutions that were found before, by the programme that they are of."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from stablehlo_alpa._core import SolverCache
from stablehlo_alpa.cost import PricedGraph
from stablehlo_alpa.errors import InfeasibleError, SlowerError
from stablehlo_alpa.intra_op.exact import Minimum
from stablehlo_alpa.intra_op.solution import Solution, SolveOptions
from stablehlo_alpa.intra_op.solver import solve_anew
from stablehlo_alpa.store import OFF, Record, Store

# Where no more than this part of the work was needed, its limit has decided nothing (heuristic: no
# step of the solver is given a smaller part).
_AMPLE = 0.05


def solve(
    priced: PricedGraph,
    options: SolveOptions | None = None,
    cache: SolverCache | None = None,
    before: Sequence[Solution] = (),
    memory_price: float | None = None,
    store: Store = OFF,
) -> Solution:
    """Chooses one allowed strategy per node with the least seconds per step; see `solve_anew`.

    What the limit of work has cut short is found again under the same limit alone, what the clock
    has cut short is not kept: whether anything is kept changes no plan.

    Args:
        priced: the strategy graph in seconds.
        options: budget and limits.
        cache: the exact solver's tables, to share between calls.
        before: of the same seconds and allowed strategies with other bytes or another budget, to
            begin with.
        memory_price: seconds per byte at the peak under the budget, where it is roughly known.
        store: keeps solutions, and that there is none.

    Raises:
        InfeasibleError, SlowerError, SolverError: see `solve_anew`.
    """
    options = options or SolveOptions()
    if not store.is_on:
        return solve_anew(priced, options, cache, before, memory_price)
    limit_s = options.time_limit_s
    own = dataclasses.replace(options, time_limit_s=1.0)
    others = [(one.choice, one.mixed, one.minimum) for one in before]
    key = store.key("solution", _content(priced), own, others, memory_price)
    within = store.key("solution within", key, limit_s)
    record = store.get(key)
    if record is None or record["needed_work_s"] > _AMPLE * limit_s:
        record = store.get(within)
    if record is not None:
        return _read(record)
    try:
        found = solve_anew(priced, options, cache, before, memory_price)
    except (InfeasibleError, SlowerError) as error:
        if not error.is_late:
            is_ample = error.needed_work_s <= _AMPLE * limit_s
            store.put(key if is_ample else within, _refusal(error))
        raise
    if not found.is_late:
        is_ample = found.needed_work_s <= _AMPLE * limit_s
        kept = {"solution": dataclasses.asdict(found), "needed_work_s": found.needed_work_s}
        store.put(key if is_ample else within, kept)
    return found


def _content(priced: PricedGraph) -> tuple[Any, ...]:
    """All of a programme that its solution depends on: not what its operators are called."""
    graph = priced.graph
    ends, tables = list(priced.edges), list(priced.edges.values())
    live = (graph.value_node, graph.value_start, graph.value_end, graph.value_offset)
    between = (graph.copy_source, graph.copy_target, graph.copy_start, graph.copy_end)
    copied = (graph.copy_table, graph.copy_offset, graph.copy_bytes)
    return (
        (graph.node_offset, graph.allowed, priced.compute_s, priced.communication_s),
        (ends, tables),
        # Tensors are named where nothing fits.
        (*live, graph.value_bytes, "\n".join(graph.value_name), graph.num_points),
        (*between, *copied, "\n".join(graph.copy_name)),
    )


def _refusal(error: InfeasibleError | SlowerError) -> Record:
    """Why there is no solution."""
    spent = {"work_s": error.work_s, "needed_work_s": error.needed_work_s}
    if isinstance(error, SlowerError):
        return {"slower": str(error), "least_s": error.least_s, **spent}
    refused = {
        "message": str(error),
        "needed": error.needed_bytes,
        "least": error.least_bytes,
        "budget": error.budget_bytes,
        "largest": list(error.largest),
    }
    return {"infeasible": refused, **spent}


def _refused(record: Record) -> InfeasibleError | SlowerError:
    """Why there is none, of what was kept."""
    error: InfeasibleError | SlowerError
    if "slower" in record:
        error = SlowerError(record["slower"], record["least_s"])
    else:
        found = record["infeasible"]
        error = InfeasibleError(
            found["message"],
            needed_bytes=found["needed"],
            budget_bytes=found["budget"],
            largest=[(name, size) for name, size in found["largest"]],
            least_bytes=found["least"],
        )
    error.work_s, error.needed_work_s = record["work_s"], record["needed_work_s"]
    return error


def _read(record: Record) -> Solution:
    """A solution; or raises that there is none."""
    if "solution" not in record:
        raise _refused(record)
    values = record["solution"]
    minimum = values["minimum"]
    minimum = None if minimum is None else Minimum(**minimum)
    return Solution(**(dict(values) | {"minimum": minimum}))
