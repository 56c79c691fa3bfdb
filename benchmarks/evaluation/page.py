"""The page on the paper's evaluation, from what was planned: docs/evaluation.md."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.ablations import figure_8_text, figure_9_text
from evaluation.cases import FAMILIES, Candidate, System, candidates
from evaluation.figure_7 import cuts_text, figure_7_text
from evaluation.figures import published
from evaluation.inter import INTER_CELLS, Cut, InterCandidate, inter_candidates
from evaluation.intra import INTRA_DEVICES, INTRA_FAMILIES, IntraCandidate, Way
from evaluation.published_cuts import CUTS, CutCandidate
from evaluation.records import Record, of_kind
from evaluation.searches import searches_text
from evaluation.wide_resnets import figure_11_text, figure_12_text

_HEAD = """# The paper's evaluation

Written by `benchmarks/paper.py`: figures of [Alpa's paper](https://arxiv.org/abs/2201.12023)
(Zheng et al., OSDI 2022) beside what our searches find for the same models on `p3.16xlarge`, as
the preset describes it. **Nothing on this page ran on a V100**: the column *predicted* has
predictions of our prices for our plans, *paper* what the authors measured, read off their figures
with the errors of `benchmarks/measured/paper.csv`. Times of the search are measured, on the machine
that wrote this page. What was planned is kept in `benchmarks/evaluation/records.json`, from which
the page can be made again.
"""


def page(records: Sequence[Record]) -> str:
    """The page of what was planned.

    Args:
        records: of each candidate one.
    """
    figures = published()
    parts = [
        _HEAD,
        _codes(records),
        figure_7_text(records, figures),
        cuts_text(records, figures),
        figure_8_text(records, figures),
        figure_9_text(records, figures),
        searches_text(records, figures),
        figure_11_text(records, figures),
        figure_12_text(records, figures),
        _not_done(records),
    ]
    return "\n".join(one for one in parts if one)


def _codes(records: Sequence[Record]) -> str:
    """How much was planned, and by how many states of the planner."""
    if not records:
        return ""
    days = sorted({one.day for one in records})
    span = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    codes = len({one.code for one in records})
    states = "one state" if codes == 1 else f"{codes} states"
    return f"{len(records)} plans were asked for, {span}, of {states} of the planner.\n"


def _not_done(records: Sequence[Record]) -> str:
    """What the page does not have."""
    lines = [
        f"{title}: {'; '.join(found)}."
        for title, found in (
            ("Of figure 7", [*_absent_7(records)]),
            ("Of the published cuts", _absent_cuts(records)),
            ("Of figure 8", _absent_8(records)),
            ("Of figure 9", _absent_9(records)),
        )
        if found
    ]
    lines += [
        "Figure 10 on two devices: the paper does not say which model that is.",
        "Figure 13 (plans of Wide-ResNet on 4 and 8 devices): not compared.",
    ]
    return "## Not done\n\n" + "\n".join(f"- {one}" for one in lines) + "\n"


def _absent_7(records: Sequence[Record]) -> list[str]:
    """Cells of which not all candidates were planned."""
    asked = {candidate for candidate, _ in of_kind(records, Candidate)}
    missing = []
    for family in FAMILIES.values():
        if all(one.family != family.name for one in asked):
            missing.append(f"all of {family.name}")
            continue
        for system in System:
            name = family.rival if system is System.RIVAL else system
            absent = []
            for devices in family.sizes:
                wanted = list(candidates(family, devices, system))
                made = sum(one in asked for one in wanted)
                if made < len(wanted):
                    absent.append(f"{devices}{f' ({made} of {len(wanted)} plans)' * (made > 0)}")
            if absent:
                missing.append(f"{family.name} {name} on {', '.join(absent)}")
    return missing


def _absent_cuts(records: Sequence[Record]) -> list[str]:
    made = {(c.family, c.devices) for c, _ in of_kind(records, CutCandidate)}
    return [f"{family} on {devices}" for family, devices in CUTS if (family, devices) not in made]


def _absent_8(records: Sequence[Record]) -> list[str]:
    made = {candidate for candidate, _ in of_kind(records, IntraCandidate)}
    missing = []
    for family in INTRA_FAMILIES:
        for devices in INTRA_DEVICES:
            ways = [way for way in Way if IntraCandidate(family, devices, way) not in made]
            if ways:
                which = "all of" if len(ways) == len(Way) else f"{', '.join(ways)} of"
                missing.append(f"{which} {family} on {devices}")
    return missing


def _absent_9(records: Sequence[Record]) -> list[str]:
    made = {candidate for candidate, _ in of_kind(records, InterCandidate)}
    missing = []
    for family, counts in INTER_CELLS.items():
        for devices in counts:
            searched = next(candidates(FAMILIES[family], devices, System.ALPA))
            for cut in Cut:
                wanted = [one for one in inter_candidates(searched) if one.cut is cut]
                found = sum(one in made for one in wanted)
                if found < len(wanted):
                    some = f" ({found} of {len(wanted)} plans)" * (found > 0)
                    missing.append(f"{family} {cut} on {devices}{some}")
    return missing
