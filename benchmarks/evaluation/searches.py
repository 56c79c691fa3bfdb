"""Figure 10 and table 5: how long the search takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluation.breakdown import PARTS
from evaluation.cases import FAMILIES, System
from evaluation.cells import table
from evaluation.figure_7 import planned
from evaluation.figures import Key, Published
from evaluation.records import Record, best
from stablehlo_alpa.units import format_seconds

SEARCH_HEADS = ("devices", "model", "ours", "paper", "ratio", "planned")
_TABLE_5 = ("compilation", "profiling", "stage construction", "other", "total")


def searched(
    records: Sequence[Record], figures: Mapping[Key, Published]
) -> list[tuple[int, float | None, float]]:
    """Devices, seconds of our search, None where there is none, and of the paper's."""
    found = []
    for devices in (2, *(n for n in FAMILIES["GPT"].sizes if n > 1)):
        paper = figures["10", "GPT", "alpa", devices].value
        assert paper is not None
        own = _own(records, devices)
        found.append((devices, None if own is None else own.search_s, paper))
    return found


def searches_text(records: Sequence[Record], figures: Mapping[Key, Published]) -> str:
    """Ours of the fastest plan of each GPT."""
    sizes = FAMILIES["GPT"].sizes
    rows = [
        _row(sizes.get(devices, ""), devices, paper, _own(records, devices))
        for devices, _, paper in searched(records, figures)
    ]
    plot = "![Figure 10](images/evaluation_10.svg)\n\n"
    if all(_own(records, devices) is None for devices in sizes):
        plot = ""
    return f"""## Figure 10: time of the search, GPT

Ours is measured on two cores that other work shared, from the Python function to the checked plan,
tracing included, for the number of micro-batches of the fastest plan above. The paper's includes
compiling stages, which ran on the cluster, and profiling them; ours compiles nothing and prices
operators instead: that is no like for like. Each is one run: two runs on one machine have differed
by a half. The paper's model for two devices is in none of its tables and not in our zoo.

{plot}{table(SEARCH_HEADS, rows)}

{_table_5(records, figures)}"""


def _table_5(records: Sequence[Record], figures: Mapping[Key, Published]) -> str:
    """Where the time of the largest search went."""
    parts = {key[2]: one.value for key, one in figures.items() if key[0] == "table 5"}
    own = _own(records, 64)
    theirs = [[name, f"{parts[name]:.2f} s"] for name in _TABLE_5]
    text = f"""## Table 5: where the search for GPT-39B on 64 devices spends its time

The paper, for one number of micro-batches:

{table(("part", "paper"), theirs)}
"""
    if own is None or not own.parts:
        return f"{text}\nOurs was not planned.\n"
    total = parts["total"]
    assert total is not None
    rows = [[name, format_seconds(own.parts[name])] for name in PARTS if name in own.parts]
    rows.append(["total", format_seconds(own.search_s)])
    return f"""{text}
Ours has other parts, told apart by looking at the stack of the search fifty times a second, for
{own.search_s / total:.3f} of the time:

{table(("part", "ours"), rows)}

*stage construction* has the dynamic programme over stages and the bounds that it runs on,
*intra-operator programmes* the exact solver, *compiler passes and strategies* all that waits for
the core in C++, *programs of the plan* the lowering of what was chosen.
"""


def _own(records: Sequence[Record], devices: int) -> Record | None:
    """Our search for the GPT of so many devices."""
    return best(planned(records, "GPT", devices, System.ALPA))


def _row(model: str, devices: int, paper: float, record: Record | None) -> list[str]:
    """A line of the table of figure 10."""
    if record is None:
        return [str(devices), model or "GPT-760M", "not planned", f"{paper:g} s", "", ""]
    ours = format_seconds(record.search_s)
    ratio = f"{record.search_s / paper:.3f}"
    return [str(devices), model, ours, f"{paper:g} s", ratio, record.day]
