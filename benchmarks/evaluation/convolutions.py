"""Figure 12: along what the convolutions of a planned Wide-ResNet are split."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stablehlo_alpa.compiler.notation import parse_partial_sharding
from stablehlo_alpa.intra_op import StrategyTable
from stablehlo_alpa.planning import Plan
from stablehlo_alpa.planning.saved_plan import SavedPlan

# A convolution of the forward phase: stem, or one of a block of a group.
_FORWARD = re.compile(
    r"/jvp\(alpa_layer_\d+\)/WideResNet/"
    r"(?:(?P<stem>stem)|group_(?P<group>\d)(?P<first>_first)?/layer_(?P<layer>\d+)/block/(?P<part>\w+))"
    r"/convolution/"
)

# Dimensions of the operands, [batch, height, width, in] and [height, width, in, out].
_BATCH, _IN, _OUT = 0, 2, 3

PAPER_16: Sequence[tuple[int, str]] = (
    *((block, "bbb") for block in range(9)),
    *((9, "oio"), (10, "ioo"), (11, "ioo"), (12, "ioo"), (13, "ioi"), (14, "oio"), (15, "iio")),
)
"""Figure 12, as read off: block and the split of its three convolutions."""


@dataclass(frozen=True)
class Convolution:
    """A convolution as it is split.

    Attributes:
        block: residual block from 0 on; -1 for the stem.
        part: ``"narrow"``, ``"wide"``, ``"out"``, ``"shortcut"`` or ``"stem"``.
        stage: that runs it.
        split: letters of what is split: ``b`` the batch, ``o`` output channels, ``i`` input
            channels, ``s`` the image; ``-`` for nothing.
    """

    block: int
    part: str
    stage: int
    split: str


def convolutions(plan: Plan) -> Iterator[Convolution]:
    """Those of the forward phase, in order.

    Args:
        plan: of a Wide-ResNet of the zoo.
    """
    held = SavedPlan.of(plan)
    for stage, table in enumerate(held.tables):
        yield from _of_stage(stage, table, _depths(held.tables))


def splits(found: Sequence[Convolution], block: int) -> tuple[str, str, str]:
    """What the three convolutions of a block are split along.

    Args:
        found: all convolutions of a plan.
        block: its number.
    """
    by_part = {one.part: one.split for one in found if one.block == block}
    return by_part["narrow"], by_part["wide"], by_part["out"]


def as_text(found: Sequence[str]) -> str:
    """Letters behind each other, ``"ioo"``; of a convolution that has several in brackets."""
    return "".join(split if len(split) == 1 else f"({split})" for split in found)


def _depths(tables: Sequence[StrategyTable]) -> dict[int, int]:
    """Blocks of each group."""
    most: dict[int, int] = {}
    for table in tables:
        for name in table.name:
            match = _FORWARD.search(name)
            if match and match["group"]:
                group = int(match["group"])
                number = 0 if match["first"] else 1 + int(match["layer"])
                most[group] = max(most.get(group, 0), number + 1)
    return most


def _of_stage(stage: int, table: StrategyTable, depths: dict[int, int]) -> Iterator[Convolution]:
    for node, (name, op) in enumerate(zip(table.name, table.op, strict=True)):
        match = _FORWARD.search(name)
        if op != "stablehlo.convolution" or not match:
            continue
        split = split_of(table.label[table.chosen[node]])
        if match["stem"]:
            yield Convolution(-1, "stem", stage, split)
            continue
        group = int(match["group"])
        number = 0 if match["first"] else 1 + int(match["layer"])
        before = sum(depths.get(one, 0) for one in range(group))
        yield Convolution(before + number, match["part"], stage, split)


def split_of(label: str) -> str:
    """Letters of what a strategy of a convolution splits, see `Convolution`.

    Args:
        label: of the strategy, ``"S0RRR,RRRS1->S0RRS1"``.
    """
    operands = label.partition("->")[0].split(",")
    axes = [str(number) for number in range(10)]
    image, kernel = (parse_partial_sharding(one, axes)[0] for one in operands)
    found = "b" * bool(image[_BATCH]) + "s" * any(map(bool, image[1:3]))
    found += "o" * bool(kernel[_OUT]) + "i" * bool(kernel[_IN])
    return found or "-"
