"""Runs the benchmarks that have bars, one after the other, and writes what they say as one page."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from report import Row, markdown

HERE = Path(__file__).resolve().parent
SCRIPTS = (
    "communication",
    "planning",
    "solver",
    "replicated",
    "overhead",
    "resharding",
    "backends",
)


def machine() -> str:
    """Of what was measured: processor, cores, memory, versions."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores of {names[0] if names else platform.machine()}, "
        f"{memory_gib:.0f} GiB, Python {platform.python_version()}, jax {version('jax')}"
    )


def page(parts: Mapping[str, Sequence[Row]], *, is_quick: bool, load: float) -> str:
    """The page, in Markdown.

    Args:
        parts: rows of each script.
        is_quick: whether sizes were the small ones.
        load: processes that ran or waited before anything was measured, mean of a minute.
    """
    barred = [row for rows in parts.values() for row in rows if row.holds is not None]
    kept = sum(bool(row.holds) for row in barred)
    head = f"""# Benchmarks

Written by `make bench`{" with `--quick`" if is_quick else ""} on {datetime.now(UTC):%Y-%m-%d}, on
{machine()}; the load before it was {load:.1f}. {kept} of {len(barred)} bars hold.

*ratio* is the value over that of *against*, or over the bar itself, which holds where it is not
exceeded. Where the load was above 0 the machine did other work as well, and its times say little.
"""
    sections = [
        f"## {name}\n\n`benchmarks/{name}.py`\n\n{markdown(list(rows))}\n"
        for name, rows in parts.items()
    ]
    return "\n".join([head, *sections])


def measured_rows(script: str, folder: Path, flags: Sequence[str]) -> list[Row]:
    """What a script measures, in a process of its own: each has its own number of devices."""
    path = folder / f"{script}.json"
    command = [sys.executable, str(HERE / f"{script}.py"), "--json", str(path), *flags]
    subprocess.run(command, check=True)
    print(flush=True)
    return [Row(**row) for row in json.loads(path.read_text())]


def main() -> None:
    """The script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, a minute each")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page here")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    flags = ["--quick"] if options.quick else []
    with tempfile.TemporaryDirectory() as folder:
        parts = {name: measured_rows(name, Path(folder), flags) for name in SCRIPTS}
    if options.page:
        options.page.write_text(page(parts, is_quick=options.quick, load=load))


if __name__ == "__main__":
    main()
