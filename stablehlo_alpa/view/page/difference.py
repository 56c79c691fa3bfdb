"""Where two plans of a step differ."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stablehlo_alpa.units import format_bytes, format_seconds
from stablehlo_alpa.view.folding import fold, unfold
from stablehlo_alpa.view.page.content import PageContent
from stablehlo_alpa.view.page.tables import SECONDS, TEXT, Table, spec_text

# Rows of operators that differ (heuristic: who reads more has to look at both plans).
_MOST_OPERATORS = 1000


@dataclass(frozen=True)
class Quantity:
    """A line of the comparison.

    Attributes:
        name: what is compared.
        values: of both plans, as text.
        ratio: second over first; None where that says nothing.
    """

    name: str
    values: tuple[str, str]
    ratio: float | None = None


def quantities(first: PageContent, second: PageContent) -> list[Quantity]:
    """Both plans in a few numbers."""
    pair = (first, second)

    def numbers(name: str, values: Iterable[float], is_time: bool) -> Quantity:
        one, two = values
        form = format_seconds if is_time else format_bytes
        return Quantity(name, (form(one), form(two)), two / one if one else None)

    return [
        Quantity("method", _both(page.method or "not known" for page in pair)),
        Quantity("cluster", _both(page.cluster_text for page in pair)),
        numbers("step", (page.step_s for page in pair), True),
        numbers("memory per device", (page.peak_bytes for page in pair), False),
        Quantity("stages", _both(str(len(page.stages)) for page in pair)),
        Quantity("meshes", _both(_meshes(page) for page in pair)),
        Quantity("micro-batches", _both(str(page.num_micro_batches) for page in pair)),
        Quantity("schedule", _both(page.schedule for page in pair)),
        Quantity("computed again", _both(page.recomputed or "nothing" for page in pair)),
        numbers("computation, all stages", (_compute_s(page) for page in pair), True),
        numbers("communication, all stages", (_communication_s(page) for page in pair), True),
        numbers("bytes sent per device", (_sent_bytes(page) for page in pair), False),
    ]


def _both(values: Iterable[str]) -> tuple[str, str]:
    one, two = values
    return one, two


def _meshes(page: PageContent) -> str:
    shapes = dict.fromkeys("x".join(str(size) for _, size in one.axes) for one in page.stages)
    return " + ".join(shapes)


def _compute_s(page: PageContent) -> float:
    return sum(p.compute_s * p.count for stage in page.stages for p in stage.phases)


def _communication_s(page: PageContent) -> float:
    return sum((p.time_s - p.compute_s) * p.count for s in page.stages for p in s.phases)


def _sent_bytes(page: PageContent) -> float:
    """By the stage that sends most."""
    found: dict[str, float] = {}
    for one in page.communication:
        found[one.where] = found.get(one.where, 0.0) + one.bytes
    return max(found.values(), default=0.0)


def tensor_difference(first: PageContent, second: PageContent) -> Table:
    """Inputs that the plans split otherwise, or keep in other stages."""
    one, two = _tensors(first), _tensors(second)
    return _table(
        "different-tensors",
        "Parameters and other inputs that are split otherwise",
        ("tensor", "first", "second"),
        one,
        two,
    )


def operator_difference(first: PageContent, second: PageContent) -> Table:
    """Operators with other strategies, those with most seconds to win or lose first."""
    one, two = _operators(first), _operators(second)
    names = [name for name in one if name in two and one[name][0] != two[name][0]]
    keys = [(one[name][0], two[name][0]) for name in names]
    rows = []
    for group in fold(names, keys):
        own = [names[place] for place in group.members]
        before, after = (sum(plan[name][1] for name in own) for plan in (one, two))
        rows.append((group.name, *keys[group.members[0]], before, after, after - before))
    rows.sort(key=lambda row: -abs(row[-1]))
    lacking = [
        f"{len(missing)} operators are in the {which} plan alone"
        for which, missing in (("first", one.keys() - two), ("second", two.keys() - one))
        if missing
    ]
    if len(rows) > _MOST_OPERATORS:
        lacking.append(f"{len(rows) - _MOST_OPERATORS} rows with least difference are left out")
    columns = (
        ("operator", TEXT),
        ("first", TEXT),
        ("second", TEXT),
        ("seconds, first", SECONDS),
        ("seconds, second", SECONDS),
        ("difference", SECONDS),
    )
    title = "Operators with other shardings"
    shown = tuple(rows[:_MOST_OPERATORS])
    return Table("different-operators", title, columns, shown, "; ".join(lacking))


def _tensors(page: PageContent) -> dict[str, str]:
    """By path the sharding and the sizes of the axes in it; those of several stages together."""
    found: dict[str, list[str]] = {}
    for one in page.tensors:
        sizes = dict(page.stages[one.stage].axes)
        used = dict.fromkeys(name for own in one.axes for name in own)
        text = ", ".join([spec_text(one.axes), *(f"{name}={sizes[name]}" for name in used)])
        for path in unfold(one.path):
            found.setdefault(path, []).append(text)
    return {path: "; ".join(dict.fromkeys(texts)) for path, texts in found.items()}


def _operators(page: PageContent) -> dict[str, tuple[str, float]]:
    """By name the strategy and the seconds; what several stages have is added up."""
    found: dict[str, tuple[str, float]] = {}
    for one in page.operators:
        for name in unfold(one.name):
            strategy, seconds = found.get(name, (one.strategy, 0.0))
            both = strategy if strategy == one.strategy else f"{strategy}, {one.strategy}"
            found[name] = (both, seconds + one.time_s / one.count)
    return found


def _table(
    name: str, title: str, heads: tuple[str, ...], one: dict[str, str], two: dict[str, str]
) -> Table:
    """Names with other values in two plans; those with the same two are one row."""
    names = [key for key in one if key in two and one[key] != two[key]]
    keys = [(one[key], two[key]) for key in names]
    rows = tuple((group.name, *keys[group.members[0]]) for group in fold(names, keys))
    note = "" if rows else "none"
    return Table(name, title, tuple((head, TEXT) for head in heads), rows, note)
