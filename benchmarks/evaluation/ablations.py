"""Figures 8 and 9: what each kind of parallelism is worth by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluation.cases import FAMILIES, System
from evaluation.cells import Cell, by_devices, of_linear, said_of, stages_text, table
from evaluation.figure_7 import figure_7, planned, slug
from evaluation.figures import Key, Published
from evaluation.inter import INTER_CELLS, Cut, InterCandidate
from evaluation.intra import INTRA_DEVICES, INTRA_FAMILIES, IntraCandidate, Way
from evaluation.records import Record, best, of_kind

INTRA_HEADS = (
    *("devices", "way", "predicted", "paper", "ratio", "of linear", "paper's"),
    *("mesh", "GiB", "planned"),
)
INTER_HEADS = (
    *("devices", "model", "stages by", "predicted", "paper", "ratio", "of dp", "paper's"),
    *("best of", "stages", "layers", "planned"),
)
DP = "dp"

_INTRA = """## Figure 8: splitting one step over one host, aggregate PFLOP/s

One mesh, no pipeline, the batch worked on at once. The paper does not print the sizes of these
models; they are those of the experiment in the authors' repository
(`benchmark/alpa/exp_intra_ablation.py`): 8 layers of GPT, hidden 2048, 3072, 4096, 5760 on 1, 2, 4,
8 devices, vocabulary 25600; 8 layers of the mixture, hidden 1024, 1280, 1536, 1536 with 8, 16, 16,
32 experts, vocabulary 51200; Wide-ResNet-50 with 160, 224, 320, 448 channels, width 2, batch norm.
Batches are 8 sequences or 32 images; GPT and the mixture compute every layer again, Wide-ResNet
nothing.

| way | ours |
| --- | --- |
| data | `DataParallel()` |
| zero-2, zero-3 | `Zero2Parallel()`, `Zero3Parallel()`; masters of the parameters are f32 |
| heuristic | `ManualSharding`: of every input the largest dimension is split that divides |
| ilp | `ShardParallel()` |

What the inputs leave open is searched for in all of them; the paper's heuristic propagates instead.
"""

_INTER = """## Figure 9: cutting into stages, aggregate PFLOP/s

Models, micro-batches and numbers of layers are those of figure 7, and *dp* is its search.
*equal operator* has layers of as many operators of the traced forward function each, and searches
for stages. *equal layer* has the layers of the search, and as many of them, on as many devices, in
every stage; the fastest of 2, 4 and 8 stages counts (the paper's let the devices of its stages
differ). *of dp* is the part of the search's throughput that is left, ours of ours and the paper's
of the paper's.
"""


def figure_8(
    family: str, records: Sequence[Record], figures: Mapping[Key, Published]
) -> list[Cell]:
    """Its cells, by devices."""
    made = {(c.family, c.devices, c.way): one for c, one in of_kind(records, IntraCandidate)}
    cells = []
    for devices in INTRA_DEVICES:
        for way in Way:
            record = made.get((family, devices, way))
            paper = figures["8", family, str(way), devices]
            cells.append(Cell(paper, record, int(record is not None), family, str(way)))
    return cells


def figure_8_text(records: Sequence[Record], figures: Mapping[Key, Published]) -> str:
    """What the page says of it."""
    parts = [_INTRA]
    for family in INTRA_FAMILIES:
        cells = figure_8(family, records, figures)
        found = [cell for cell in cells if cell.record is not None]
        if not found:
            continue
        one = by_devices(cells, Way.ILP)[1]
        parts += [
            f"### {family}, one host\n\n![{family}](images/evaluation_8_{slug(family)}.svg)\n",
            f"{table(INTRA_HEADS, [_intra_row(cell, one) for cell in found])}\n",
            said_of(cells, Way.ILP, one.ratio, "One device"),
        ]
    return "\n".join(one for one in parts if one) if len(parts) > 1 else ""


def _intra_row(cell: Cell, one: Cell) -> list[str]:
    record = cell.record
    assert record is not None
    gib = f"{record.peak_bytes / 2**30:.1f}" if record.peak_bytes else ""
    return [
        str(cell.devices),
        cell.system_name,
        cell.predicted,
        cell.measured,
        cell.ratio_text,
        *of_linear(cell, one),
        stages_text(record),
        gib,
        record.day,
    ]


def figure_9(
    family: str, records: Sequence[Record], figures: Mapping[Key, Published]
) -> list[Cell]:
    """Its cells, by devices."""
    cells = []
    own = FAMILIES[family]
    for devices in INTER_CELLS[family]:
        for name in (*Cut, DP):
            made = planned(records, family, devices, System.ALPA)
            if name != DP:
                made = [
                    record
                    for candidate, record in of_kind(records, InterCandidate)
                    if (candidate.family, candidate.devices, candidate.cut)
                    == (family, devices, name)
                ]
            paper = figures["9", family, str(name), devices]
            cells.append(Cell(paper, best(made), len(made), own.sizes[devices], str(name)))
    return cells


def figure_9_text(records: Sequence[Record], figures: Mapping[Key, Published]) -> str:
    """What the page says of it."""
    rows, said = [], []
    for family in INTER_CELLS:
        cells = figure_9(family, records, figures)
        searched = by_devices(cells, DP)
        # Where only the search was planned there is nothing to compare.
        told = [c for c in cells if c.system != DP and c.record is not None]
        shown = {cell.devices for cell in told}
        rows += [
            _inter_row(cell, searched[cell.devices])
            for cell in cells
            if cell.devices in shown and cell.record is not None
        ]
        one = by_devices(figure_7(FAMILIES[family], records, figures), System.ALPA)[1]
        compared = [cell for cell in cells if cell.devices in shown]
        said.append(said_of(compared, DP, one.ratio, "One device of figure 7"))
    if not rows:
        return ""
    plot = "![Figure 9](images/evaluation_9.svg)"
    said_text = "\n".join(one for one in said if one)
    return f"{_INTER}\n{plot}\n\n{table(INTER_HEADS, rows)}\n\n{said_text}"


def _inter_row(cell: Cell, searched: Cell) -> list[str]:
    record = cell.record
    assert record is not None
    ours = theirs = ""
    if cell.ours and searched.ours:
        ours = f"{cell.ours / searched.ours:.2f}"
    if cell.paper.value and searched.paper.value:
        theirs = f"{cell.paper.value / searched.paper.value:.2f}"
    return [
        *cell.compared,
        ours,
        theirs,
        str(cell.count),
        stages_text(record),
        " ".join(map(str, record.layers)),
        record.day,
    ]
