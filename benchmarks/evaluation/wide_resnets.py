"""Figures 11 and 12: sending between stages of a Wide-ResNet, and its plan on 16 devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluation.cases import FAMILIES, System
from evaluation.cells import Cell, by_devices, said_of, stages_text, table
from evaluation.convolutions import PAPER_16, as_text, splits
from evaluation.figure_7 import figure_7, planned
from evaluation.figures import Key, Published
from evaluation.published_cuts import CutCandidate
from evaluation.records import Record, best, of_kind
from evaluation.resharding import Sending

SENDING_HEADS = ("devices", "sending", "predicted", "paper", "ratio", "of signal", "paper's")
BLOCK_HEADS = ("block", "paper", "their cut, split by us", "our plan")

_FAMILY, _DEVICES = "Wide-ResNet", (16, 32)

_SENDING = """## Figure 11: sending between stages, Wide-ResNet, aggregate PFLOP/s

Of the cut that the authors published, which has stages that differ, with the shardings that our
search chooses, the simulated step by three ways of sending: *signal* sends one byte in place of
every message, *without all-gather* sends every device of the destination all that it is to hold,
*with all-gather*, which is what runs, sends each element once and gathers inside of the
destination. Only the simulation differs; a link carries one message at a time.
"""

_BLOCKS = """## Figure 12: the plan of Wide-ResNet on 16 devices

Along what the three convolutions of every residual block (1×1, 3×3, 1×1) are split in the forward
phase: **b** the batch, **o** output channels, **i** input channels; more than one in brackets.
The paper's is read off its figure: three stages, of 5 blocks on 4 devices, 4 on 4, 7 on 8.
"""


def figure_11(records: Sequence[Record], figures: Mapping[Key, Published]) -> list[Cell]:
    """Its cells, by devices; records are those of the published cut with the time of a sending."""
    cells = []
    for devices in _DEVICES:
        own = _cut(records, devices)
        for sending in Sending:
            paper = figures["11", _FAMILY, str(sending), devices]
            record = None
            if own is not None and own.sending:
                record = Record(
                    own.candidate, own.code, own.day, 0.0, own.flops, own.sending[sending]
                )
            model = FAMILIES[_FAMILY].sizes[devices]
            cells.append(Cell(paper, record, int(record is not None), model, str(sending)))
    return cells


def figure_11_text(records: Sequence[Record], figures: Mapping[Key, Published]) -> str:
    """What the page says of it."""
    cells = [cell for cell in figure_11(records, figures) if cell.record is not None]
    if not cells:
        return ""
    signals = by_devices(cells, Sending.SIGNAL)
    rows = []
    for cell in cells:
        signal = signals[cell.devices]
        ours = (cell.ours or 0.0) / (signal.ours or 1.0)
        theirs = (cell.paper.value or 0.0) / (signal.paper.value or 1.0)
        rows.append(
            [
                *(str(cell.devices), cell.system_name, cell.predicted, cell.measured),
                *(cell.ratio_text, f"{ours:.3f}", f"{theirs:.3f}"),
            ]
        )
    one = by_devices(figure_7(FAMILIES[_FAMILY], records, figures), System.ALPA)[1]
    said = said_of(cells, Sending.SIGNAL, one.ratio, "One device of figure 7")
    plot = "![Figure 11](images/evaluation_11.svg)"
    return f"{_SENDING}\n{plot}\n\n{table(SENDING_HEADS, rows)}\n\n{said}"


def figure_12_text(records: Sequence[Record], figures: Mapping[Key, Published]) -> str:
    """What the page says of it."""
    own = best(planned(records, _FAMILY, 16, System.ALPA))
    cut = _cut(records, 16)
    if own is None or own.step_s is None or not own.convolutions:
        return ""
    rows = []
    for block, theirs in PAPER_16:
        made = (cut.convolutions if cut is not None else (), own.convolutions)
        rows.append(
            [
                str(block + 1),
                theirs,
                *(as_text(splits(one, block)) if one else "not planned" for one in made),
            ]
        )
    sizes = " and ".join(map(str, own.layers))
    text = (
        f"Our search has {len(own.stages)} stage{'s' * (len(own.stages) > 1)} of {sizes} layers "
        f"(residual blocks, but for a convolution here and there) on {stages_text(own)} devices: "
        f"{own.step_s:.1f} s a step by our prices"
    )
    if cut is not None and cut.step_s:
        text += (
            f", where their cut takes {cut.step_s:.1f} s, {cut.step_s / own.step_s - 1:+.1%}. "
            f"{_agreement(own, cut)}"
        )
    return f"{_BLOCKS}\n{table(BLOCK_HEADS, rows)}\n\n{text}\n"


def _agreement(own: Record, cut: Record) -> str:
    """How many convolutions are split along what the paper's are."""
    total = 3 * len(PAPER_16)

    def same(record: Record) -> int:
        pairs = ((splits(record.convolutions, block), theirs) for block, theirs in PAPER_16)
        return sum(b in a for ours, theirs in pairs for a, b in zip(ours, theirs, strict=True))

    return (
        f"Of {total} convolutions {same(cut)} are split along the dimension that the paper's are, "
        f"along others as well or not, in their cut, and {same(own)} in our plan."
    )


def _cut(records: Sequence[Record], devices: int) -> Record | None:
    """Of the published cut of a Wide-ResNet."""
    return next(
        (
            record
            for candidate, record in of_kind(records, CutCandidate)
            if (candidate.family, candidate.devices) == (_FAMILY, devices)
        ),
        None,
    )
