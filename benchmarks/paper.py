"""The evaluation of the Alpa paper beside what our searches and prices say of the same models.

python benchmarks/paper.py                          # plans what is not in the cache
python benchmarks/paper.py --quick                  # one to eight devices only
python benchmarks/paper.py --families GPT --systems alpa --devices 16 32
python benchmarks/paper.py --page docs/evaluation.md --families     # the page of what was planned
"""

import report

report.prepare_devices(8)

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

from paper_cases import FAMILIES, Candidate, Family, System, candidates
from paper_page import page
from paper_records import CACHE, Record, Records, record_of
from rich.console import Console

from stablehlo_alpa.zoo.case import ModelCase

_DEVICES = (1, 4, 8, 16, 32, 64)
_QUICK = 3


def line(record: Record) -> str:
    """What became of a candidate."""
    outcome = f"no plan: {record.reason[:160]}"
    if record.step_s is not None:
        outcome = f"step {record.step_s:.2f} s, {record.pflops:.4f} PFLOP/s"
        outcome += f", {(record.peak_bytes or 0.0) / 2**30:.1f} GiB, on {' '.join(record.stages)}"
    return f"{record.candidate.name}: {outcome}; {record.search_s:.0f} s"


def wanted(options: argparse.Namespace) -> Iterator[tuple[Family, int, System]]:
    """Cells to plan, our own search first."""
    devices = options.devices or (_DEVICES[:_QUICK] if options.quick else _DEVICES)
    for family in options.families:
        for system in options.systems:
            for count in devices:
                yield FAMILIES[family], count, System(system)


def run(options: argparse.Namespace, records: Records, console: Console) -> None:
    """Plans what is asked for and not in the cache, as long as there is time."""
    start = time.perf_counter()
    for family, devices, system in wanted(options):
        case: ModelCase | None = None
        for one in candidates(family, devices, system):
            record = records.find(one)
            if record is None:
                if time.perf_counter() - start > options.seconds:
                    console.print(f"{one.name}: no time left", markup=False)
                    continue
                case = case or family.case(devices)
                record = _timed(one, case, records)
            console.print(line(record), markup=False, soft_wrap=True)


def _timed(one: Candidate, case: ModelCase, records: Records) -> Record:
    record = record_of(one, case)
    records.add(record)
    return record


def main() -> None:
    """Plans, prints a line of each, and writes the page if one is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"only {_DEVICES[:_QUICK]} devices")
    parser.add_argument("--families", nargs="*", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--systems", nargs="+", choices=list(System), default=list(System))
    parser.add_argument("--devices", nargs="+", type=int, choices=_DEVICES)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing after")
    parser.add_argument("--cache", type=Path, default=CACHE, help="what was planned before")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page of the cache")
    options = parser.parse_args()
    records = Records(options.cache)
    run(options, records, Console())
    if options.page is not None:
        options.page.write_text(page(records.latest()))


if __name__ == "__main__":
    main()
