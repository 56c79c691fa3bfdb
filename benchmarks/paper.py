"""The evaluation of the Alpa paper beside what our searches and prices say of the same models.

python benchmarks/paper.py --page docs/evaluation.md          # the page of what was planned
python benchmarks/paper.py --plan                             # plans what this planner has not
python benchmarks/paper.py --plan --parts 7 --families GPT --systems alpa --devices 16 32

What was planned is kept in ``benchmarks/evaluation/records.json``, with the day and a digest of the
planner that made it.
"""

import report

report.prepare_devices(8)

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

from evaluation.cases import FAMILIES, System, candidates
from evaluation.inter import INTER_CELLS, inter_candidates
from evaluation.intra import INTRA_DEVICES, INTRA_FAMILIES, intra_candidates
from evaluation.page import page
from evaluation.plots import write_plots
from evaluation.published_cuts import cut_candidates
from evaluation.records import RECORDS, Asked, Record, Records, record_of
from rich.console import Console

_DEVICES = (1, 2, 4, 8, 16, 32, 64)
PARTS = ("7", "cuts", "8", "9")


def line(record: Record) -> str:
    """What became of a candidate."""
    outcome = f"no plan: {record.reason[:160]}"
    if record.step_s is not None:
        outcome = f"step {record.step_s:.2f} s, {record.pflops:.4f} PFLOP/s"
        outcome += f", {(record.peak_bytes or 0.0) / 2**30:.1f} GiB, on {' '.join(record.stages)}"
    return f"{record.candidate.name}: {outcome}; {record.search_s:.0f} s"


def asked(options: argparse.Namespace) -> Iterator[Asked]:
    """What is to be planned, by part and family, few devices first."""
    for part in options.parts:
        for family in options.families:
            for devices in options.devices:
                yield from asked_of(part, family, devices, options.systems)


def asked_of(part: str, family: str, devices: int, systems: list[str]) -> Iterator[Asked]:
    """What one part of the evaluation plans of a family on some devices.

    Args:
        part: one of ``PARTS``.
        family: of models.
        devices: V100.
        systems: of figure 7.
    """
    own = FAMILIES[family]
    searched = list(candidates(own, devices, System.ALPA)) if devices in own.sizes else []
    if part == "7" and searched:
        for system in map(System, systems):
            yield from candidates(own, devices, system)
    elif part == "cuts":
        yield from cut_candidates(family, devices)
    elif part == "8" and family in INTRA_FAMILIES and devices in INTRA_DEVICES:
        yield from intra_candidates(family, devices)
    elif part == "9" and devices in INTER_CELLS.get(family, ()):
        for one in searched:
            yield from inter_candidates(one)


def run(options: argparse.Namespace, records: Records, console: Console) -> None:
    """Plans what is asked for and not in the records, as long as there is time."""
    start = time.perf_counter()
    for one in asked(options):
        record = records.find(one, by_any=options.keep)
        if record is None:
            if time.perf_counter() - start > options.seconds:
                console.print(f"{one.name}: no time left", markup=False)
                continue
            record = record_of(one)
            records.add(record)
        console.print(line(record), markup=False, soft_wrap=True)


def main() -> None:
    """Plans, prints a line of each, and writes the page if one is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", action="store_true", help="plan what is not in the records")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--systems", nargs="+", choices=list(System), default=list(System))
    parser.add_argument("--devices", nargs="+", type=int, choices=_DEVICES, default=_DEVICES)
    parser.add_argument("--keep", action="store_true", help="what other planners made counts")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing after")
    parser.add_argument("--records", type=Path, default=RECORDS, help="what was planned before")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page and its plots")
    options = parser.parse_args()
    records = Records(options.records)
    if options.plan:
        run(options, records, Console())
    if options.page is not None:
        options.page.write_text(page(records.latest()))
        write_plots(records.latest(), options.page.parent / "images")


if __name__ == "__main__":
    main()
