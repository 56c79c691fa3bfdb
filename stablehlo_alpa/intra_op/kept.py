"""Solutions that were found before, by the programme that they are of."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from stablehlo_alpa._core import SolverCache
from stablehlo_alpa.cost import PricedGraph
from stablehlo_alpa.errors import InfeasibleError, SlowerError
from stablehlo_alpa.intra_op.exact import Minimum
from stablehlo_alpa.intra_op.solution import Solution, SolveOptions
from stablehlo_alpa.intra_op.solver import solve_anew
from stablehlo_alpa.store import OFF, Record, Store

# Where less than this part of the time was needed, its limit has decided nothing; what was found in
# this part of the time that there is now will do (heuristics).
_AMPLE, _ENOUGH = 0.1, 0.5


def solve(
    priced: PricedGraph,
    options: SolveOptions | None = None,
    cache: SolverCache | None = None,
    before: Sequence[Solution] = (),
    memory_price: float | None = None,
    store: Store = OFF,
) -> Solution:
    """Chooses one allowed strategy per node with the least seconds per step; see `solve_anew`.

    What the clock may have cut short is looked for again by whom has more than twice the time.

    Args:
        priced: the strategy graph in seconds.
        options: budget and limits; how long it may take is no part of what is looked for.
        cache: the exact solver's tables, to share between calls.
        before: of the same seconds and allowed strategies with other bytes, to begin with.
        memory_price: seconds per byte at the peak under the budget, where it is roughly known.
        store: keeps solutions, and that there is none.

    Raises:
        InfeasibleError, SlowerError, SolverError: see `solve_anew`.
    """
    options = options or SolveOptions()
    if not store.is_on:
        return solve_anew(priced, options, cache, before, memory_price)
    key = store.key(
        "solution",
        _content(priced),
        dataclasses.replace(options, time_limit_s=1.0),
        [(one.choice, one.minimum) for one in before],
        memory_price,
    )
    record = store.get(key)
    if record is not None and record["limit_s"] >= _ENOUGH * options.time_limit_s:
        return _read(record)
    try:
        found = solve_anew(priced, options, cache, before, memory_price)
    except InfeasibleError as error:
        limit_s = math.inf if error.is_proved else options.time_limit_s
        store.put(key, {"infeasible": _infeasible(error), "limit_s": limit_s})
        raise
    except SlowerError as error:
        store.put(key, {"slower": str(error), "least_s": error.least_s, "limit_s": math.inf})
        raise
    is_ample = found.spent_s <= _AMPLE * options.time_limit_s and found.status != "time limit"
    limit_s = math.inf if is_ample else options.time_limit_s
    store.put(key, {"solution": dataclasses.asdict(found), "limit_s": limit_s})
    return found


def _content(priced: PricedGraph) -> tuple[Any, ...]:
    """All of a programme that its solution depends on: not what its operators are called."""
    graph = priced.graph
    ends, tables = list(priced.edges), list(priced.edges.values())
    live = (graph.value_node, graph.value_start, graph.value_end, graph.value_offset)
    return (
        (graph.node_offset, graph.allowed, priced.compute_s, priced.communication_s),
        (ends, tables),
        # Tensors are named where nothing fits.
        (*live, graph.value_bytes, "\n".join(graph.value_name), graph.num_points),
    )


def _infeasible(error: InfeasibleError) -> Record:
    return {
        "message": str(error),
        "needed": error.needed_bytes,
        "least": error.least_bytes,
        "budget": error.budget_bytes,
        "largest": list(error.largest),
    }


def _read(record: Record) -> Solution:
    """A solution; or raises that there is none."""
    if "slower" in record:
        raise SlowerError(record["slower"], record["least_s"])
    if "infeasible" in record:
        found = record["infeasible"]
        raise InfeasibleError(
            found["message"],
            needed_bytes=found["needed"],
            budget_bytes=found["budget"],
            largest=[(name, size) for name, size in found["largest"]],
            least_bytes=found["least"],
        )
    values = record["solution"]
    minimum = values["minimum"]
    minimum = None if minimum is None else Minimum(**minimum)
    return Solution(**(dict(values) | {"minimum": minimum}))
