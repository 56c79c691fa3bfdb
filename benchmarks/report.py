"""What every benchmark shares: options, table, JSON rows, and the way to the models."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Row:
    """One measured quantity.

    Attributes:
        metric: what was measured.
        value: the measurement, in ``unit``.
        unit: unit of ``value``.
        against: what it is compared with, or None.
        ratio: ``value`` over the value of ``against``, or over the bar when that is a quantity.
        bar: the ratio (or the quantity in ``unit``, when ``against`` is ``"bar"``) not to exceed.
        holds: whether the bar is kept; None without a bar.
    """

    metric: str
    value: float
    unit: str
    against: str | None = None
    ratio: float | None = None
    bar: float | None = None
    holds: bool | None = None


def measured(metric: str, value: float, unit: str) -> Row:
    """A row without a bar."""
    return Row(metric, value, unit)


def beside(row: Row, *, against: str, reference: float) -> Row:
    """A row with its ratio to a reference value, without a bar."""
    return replace(row, against=against, ratio=row.value / reference)


def compared(
    metric: str, value: float, unit: str, *, against: str, reference: float, bar: float
) -> Row:
    """A row whose ratio to a reference value must be at most ``bar``."""
    ratio = value / reference if reference else (1.0 if value == 0 else float("inf"))
    return Row(metric, value, unit, against, ratio, bar, ratio <= bar)


def equal(metric: str, value: float, unit: str, *, against: str, reference: float) -> Row:
    """A row whose value must be that of the reference, neither more nor less."""
    row = compared(metric, value, unit, against=against, reference=reference, bar=1.0)
    return replace(row, holds=value == reference)


def limited(metric: str, value: float, unit: str, *, bar: float) -> Row:
    """A row whose value must be at most ``bar``, in the same unit."""
    return Row(metric, value, unit, "bar", value / bar, bar, value <= bar)


def markdown(rows: list[Row]) -> str:
    """The rows as a Markdown table."""

    def cell(value: object) -> str:
        if value is None:
            return ""
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, float):
            return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
        return str(value)

    titles = list(Row.__dataclass_fields__)
    table = [titles, *([cell(value) for value in asdict(row).values()] for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(titles))]
    lines = [
        "| " + " | ".join(text.ljust(w) for text, w in zip(line, widths, strict=True)) + " |"
        for line in table
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def prepare_devices(count: int) -> None:
    """Makes JAX see ``count`` virtual CPU devices; call it before JAX is imported."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ["PJRT_NPROC"] = str(4 * count)  # XLA's CPU client starves with fewer threads
    kept = [
        flag
        for flag in os.environ.get("XLA_FLAGS", "").split()
        if not flag.startswith("--xla_force_host_platform_device_count")
    ]
    os.environ["XLA_FLAGS"] = " ".join([*kept, f"--xla_force_host_platform_device_count={count}"])
    sys.path.insert(0, str(ROOT / "tests" / "py"))  # the models of the test suite


def main(description: str, measure: Callable[[bool], list[Row]]) -> None:
    """Runs a benchmark as a script.

    Args:
        description: shown by ``--help`` and above the table.
        measure: takes whether to be quick (within a minute), returns the rows.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, within a minute")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here as well")
    options = parser.parse_args()
    rows = measure(options.quick)
    print(f"{description}\n\n{markdown(rows)}")
    write(rows, options.json)


def write(rows: Sequence[Any], path: Path | None) -> None:
    """Writes rows, dataclasses of any kind, to a file if one is asked for."""
    if path is not None:
        path.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


def conclude(console: Console, rows: list[Row], failed: Sequence[str], path: Path | None) -> int:
    """Prints rows and what failed, and writes the rows; the status of a script.

    Args:
        console: printed to.
        rows: each against its bar.
        failed: what has no row, and why.
        path: of the file, if one is asked for.
    """
    console.print(markdown(rows), markup=False)
    for text in failed:
        console.print(text, style="red", markup=False)
    write(rows, path)
    return 1 if failed or not all(row.holds for row in rows) else 0
