"""Notebooks of docs/notebooks, made of the scripts beside them and run: `make notebooks`.

A script has its cells behind lines of ``# %%``; text behind ``# %% [markdown]``, every line of it a
comment.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "notebooks"

_CELL = re.compile(r"^# %%(?P<kind>.*)\n", re.MULTILINE)
_COMMENT = re.compile(r"^# ?", re.MULTILINE)

# Seconds that a cell may take (heuristic: those that are here take ten on a busy machine).
_LIMIT_S = 300


def sources() -> list[Path]:
    """The scripts."""
    return sorted(FOLDER.glob("*.py"))


def read_script(path: Path) -> nbformat.NotebookNode:
    """The cells of a script, not run.

    Raises:
        ValueError: something stands in front of the first cell.
    """
    start, *parts = _CELL.split(path.read_text())
    if start.strip():
        raise ValueError(f"{path.name} has text in front of its first cell: {start.strip()[:40]!r}")
    cells = []
    for number, (kind, text) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
        if "markdown" in kind:
            cell = nbformat.v4.new_markdown_cell(_COMMENT.sub("", text.strip("\n")))
        else:
            cell = nbformat.v4.new_code_cell(text.strip("\n"))
        # Equal scripts are equal notebooks.
        cell["id"] = f"cell-{number}"
        cells.append(cell)
    language = {"name": "python"}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(
        cells=cells, metadata={"kernelspec": kernel, "language_info": language}
    )


def run(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook with what its cells print and show.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raises.
    """
    client = NotebookClient(notebook, timeout=_LIMIT_S, record_timing=False)
    made = client.execute(cwd=str(FOLDER))
    # Of the Python that ran it: nothing of the machine stays.
    made.metadata["language_info"] = {"name": "python"}
    return made


def main() -> None:
    """Runs all, or those that are named, and writes them."""
    wanted = sys.argv[1:]
    for path in sources():
        if not wanted or path.stem in wanted:
            nbformat.write(run(read_script(path)), path.with_suffix(".ipynb"))


if __name__ == "__main__":
    main()
