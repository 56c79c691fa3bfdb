"""Exact min-plus elimination (bucket elimination) of what the presolve leaves.

The programme without a memory budget is a sum of tables over few variables each::

    f(x) = constant + sum_v c_v(x_v) + sum_(u,v) R_uv(x_u, x_v)

Variables are eliminated one by one. With B(v) the tables that mention v when its turn comes and
N(v) their other variables, they are replaced by one table over N(v) alone::

    m_v(x_N) = min_a sum_(t in B(v)) t(a, x_N)

When none is left the constant is the optimum; going back in reverse order, every variable takes
``argmin_a sum_(t in B(v)) t(a, x_N)``, its neighbours N(v) being decided already.

Exactness: no table outside B(v) mentions v, and + distributes over min
(``min_a (g + h(a)) = g + min_a h(a)``), so ``min_x f`` is the same before and after every step.
By induction over the steps the constant left at the end is ``min_x f``. For the way back: if the
variables eliminated after v are at an optimum of the function left by that step, then adding the
argmin of v gives an optimum of the function before it, because the value of both is the same. Both
hold for +inf entries too, and up to the rounding of float64 sums.

The work is the sum over v of ``|D_v| * prod_(u in N(v)) |D_u|``. Nodes go in greedy order of that
weight, ties to the smaller index. The order is found before any table is computed, so a graph that
is too dense is given up at once.

Repeated layers: the least entry of every table moves to the constant, so that layers which do the
same get the same tables to the last bit. Tables are interned by a hash of their content, and a
step whose tables and axes were met before takes the earlier answer.

References:
    Bertele and Brioschi, "Nonserial Dynamic Programming", 1972.
    Dechter, "Bucket elimination: A unifying framework for reasoning", 1999.
"""

from __future__ import annotations

import hashlib
import heapq
import logging
import math
import time
from dataclasses import dataclass, field

import numpy as np

from stablehlo_alpa.cost.strategy_graph import Float, Int
from stablehlo_alpa.intra_op.presolve import Core

_log = logging.getLogger(__name__)

# Entries of the largest table, its eliminated variable included: 0.4 GB, a quarter of a second.
MAX_TABLE = 50_000_000
# Entries computed over all steps: about half a minute.
MAX_WORK = 5_000_000_000
# Entries kept for the way back: 2 GB.
MAX_KEPT = 250_000_000


@dataclass(frozen=True, eq=False)
class Elimination:
    """An optimum.

    Attributes:
        labels: int64[N] index into the domain of each node.
        value: least seconds, the core's constant included; +inf when every choice is.
        largest: entries of the largest table, its eliminated variable included.
        steps: nodes eliminated, all with more than one strategy.
        computed: steps that were computed, the others being repetitions.
    """

    labels: Int
    value: float
    largest: int
    steps: int
    computed: int


@dataclass(frozen=True)
class _Factor:
    """An interned table and the node of each of its axes."""

    table: int
    scope: tuple[int, ...]


@dataclass
class _Tables:
    """Tables interned by content, and the steps done with them."""

    tables: list[Float] = field(default_factory=list)
    numbers: dict[tuple[tuple[int, ...], bytes], int] = field(default_factory=dict)
    # Tables of a bucket with their axes -> number of the result (-1: zero), constant.
    steps: dict[tuple[tuple[int, tuple[int, ...]], ...], tuple[int, float]] = field(
        default_factory=dict
    )
    kept: int = 0

    def intern(self, table: Float) -> int:
        """The number of a table, -1 when it is zero everywhere."""
        if not table.any():
            return -1
        table = np.ascontiguousarray(table) + 0.0  # -0.0 becomes 0.0: equal tables, equal bytes
        key = (table.shape, hashlib.blake2b(table.tobytes(), digest_size=16).digest())
        number = self.numbers.setdefault(key, len(self.tables))
        if number == len(self.tables):
            self.tables.append(table)
            self.kept += table.size
        return number

    def project(self, bucket: list[tuple[int, tuple[int, ...]]], rank: int) -> tuple[int, float]:
        """Minimises the sum of a bucket over axis 0, its least entry taken out.

        Args:
            bucket: numbers of tables with the place of each of their axes, 0 to rank - 1.
            rank: axes of the sum.
        """
        key = tuple(bucket)
        if key not in self.steps:
            aligned = [_align(self.tables[number], axes, rank) for number, axes in bucket]
            result = _min_sum(aligned)
            least = float(result.min())
            # An infinite least entry is the whole table: it goes with the constant.
            result = result - least if math.isfinite(least) else np.zeros_like(result)
            self.steps[key] = self.intern(result), least
        return self.steps[key]


def eliminate(
    core: Core,
    *,
    max_table: int = MAX_TABLE,
    max_work: int = MAX_WORK,
    max_kept: int = MAX_KEPT,
    deadline: float = math.inf,
) -> Elimination | None:
    """Minimises the core exactly.

    Args:
        core: nodes with costs (+inf allowed, NaN not) and the edges between them.
        max_table: entries of the largest table, above which nothing is computed.
        max_work: entries of all steps together, above which nothing is computed.
        max_kept: entries of distinct tables that may be kept.
        deadline: `time.monotonic` seconds after which it is given up.

    Returns:
        An optimum, the same one for the same core; None when it was given up.
    """
    plan = elimination_order(core, max_table, max_work)
    if plan is None:
        return None
    order, largest = plan
    tables = _Tables()
    owned, constant = _factors(core, tables)
    buckets: list[list[_Factor]] = []
    for node in order:
        if time.monotonic() > deadline or tables.kept > max_kept:
            _log.info("elimination: given up with %d entries kept", tables.kept)
            return None
        # By table first: equal layers then present equal keys.
        bucket = sorted(owned[node].values(), key=lambda f: (f.table, f.scope))
        buckets.append(bucket)
        if not bucket:
            continue
        place = {node: 0}
        for factor in bucket:
            for other in factor.scope:
                place.setdefault(other, len(place))
        key = [(f.table, tuple(place[other] for other in f.scope)) for f in bucket]
        number, least = tables.project(key, len(place))
        constant += least
        for serial, factor in list(owned[node].items()):
            for other in factor.scope:
                del owned[other][serial]
        _own(owned, _Factor(number, tuple(place)[1:]))

    labels = np.zeros(len(core.domains), np.int64)
    for node, bucket in zip(reversed(order), reversed(buckets), strict=True):
        cost = np.zeros(len(core.unary[node]))
        for factor in bucket:
            at = tuple(slice(None) if u == node else labels[u] for u in factor.scope)
            cost += tables.tables[factor.table][at]
        labels[node] = np.argmin(cost)
    _log.info(
        "elimination: %d nodes, %d steps computed, largest table %d",
        len(order),
        len(tables.steps),
        largest,
    )
    return Elimination(labels, constant, largest, len(order), len(tables.steps))


def elimination_order(
    core: Core, max_table: int = MAX_TABLE, max_work: int = MAX_WORK
) -> tuple[list[int], int] | None:
    """Greedy order by the entries of the table each node would take.

    Returns:
        Nodes of more than one strategy in order, and the entries of the largest table; None when
        a table or all of them together exceed their limit.
    """
    sizes = [len(cost) for cost in core.unary]
    near: list[set[int]] = [set() for _ in sizes]
    for u, v in core.pairs:
        if sizes[u] > 1 and sizes[v] > 1:
            near[u].add(v)
            near[v].add(u)

    def weigh(node: int) -> int:
        return sizes[node] * math.prod(sizes[other] for other in near[node])

    weight = {node: weigh(node) for node, size in enumerate(sizes) if size > 1}
    heap = [(w, node) for node, w in weight.items()]
    heapq.heapify(heap)
    order: list[int] = []
    largest = work = 0
    while heap:
        entries, node = heapq.heappop(heap)
        if weight.get(node) != entries:
            continue  # it was weighed anew, or is gone
        del weight[node]
        largest, work = max(largest, entries), work + entries
        if largest > max_table or work > max_work:
            _log.debug(
                "elimination: given up, a table of %d entries (limit %d), %d in all (limit %d)",
                largest,
                max_table,
                work,
                max_work,
            )
            return None
        order.append(node)
        for other in near[node]:
            near[other] |= near[node]
            near[other] -= {node, other}
        for other in near[node]:
            new = weigh(other)
            if new != weight[other]:
                weight[other] = new
                heapq.heappush(heap, (new, other))
    return order, largest


_Owned = list[dict[int, _Factor]]


def _factors(core: Core, tables: _Tables) -> tuple[_Owned, float]:
    """The core's tables at each of their nodes, and what does not depend on any choice."""
    owned: _Owned = [{} for _ in core.unary]
    constant = core.constant
    parts: list[tuple[tuple[int, ...], Float]]
    parts = [((node,), cost) for node, cost in enumerate(core.unary)]
    parts += [(pair, matrix) for pair, matrix in sorted(core.pairs.items())]
    for nodes, table in parts:
        scope = tuple(u for u, k in zip(nodes, table.shape, strict=True) if k > 1)
        if scope:
            _own(owned, _Factor(tables.intern(table.squeeze()), scope))
        else:
            constant += float(table.reshape(-1)[0])
    return owned, constant


def _own(owned: _Owned, factor: _Factor) -> None:
    if factor.table < 0:
        return
    # Any number that no factor of these nodes has.
    serial = 1 + max((max(owned[u], default=-1) for u in factor.scope), default=-1)
    for node in factor.scope:
        owned[node][serial] = factor


def _align(table: Float, axes: tuple[int, ...], rank: int) -> Float:
    """A view with its axes at their places and 1 elsewhere."""
    order = sorted(range(len(axes)), key=lambda i: axes[i])
    shape = [1] * rank
    for i, axis in enumerate(axes):
        shape[axis] = table.shape[i]
    return table.transpose(order).reshape(shape)


def _min_sum(parts: list[Float]) -> Float:
    """Minimum over axis 0 of a sum of tables that broadcast, without forming the sum."""
    parts = list(parts)
    while len(parts) > 2:
        # The two of the smallest sum; of equal ones the first.
        first, second = min(
            ((i, j) for j in range(len(parts)) for i in range(j)),
            key=lambda pair: _entries(parts[pair[0]], parts[pair[1]]),
        )
        parts[first] = parts[first] + parts[second]
        del parts[second]
    if len(parts) == 1:
        return np.asarray(parts[0].min(axis=0))
    one, two = parts
    count = max(one.shape[0], two.shape[0])
    one = np.broadcast_to(one, (count, *one.shape[1:]))
    two = np.broadcast_to(two, (count, *two.shape[1:]))
    result = np.asarray(one[0] + two[0])
    total = np.empty_like(result)
    for a in range(1, count):
        np.add(one[a], two[a], out=total)
        np.minimum(result, total, out=result)
    return result


def _entries(one: Float, two: Float) -> int:
    return math.prod(map(max, one.shape, two.shape))
