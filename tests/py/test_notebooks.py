"""The notebooks of docs/notebooks: as their scripts have them, as they were run, and run again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from make_notebooks import read_script, run, sources  # noqa: E402
from notebook_pages import page_of  # noqa: E402

SCRIPTS = pytest.mark.parametrize("script", sources(), ids=lambda path: path.stem)


def stored(script: Path) -> Any:
    """The notebook beside a script."""
    return nbformat.read(script.with_suffix(".ipynb"), as_version=4)


def kinds(notebook: Any) -> list[list[tuple[str, ...]]]:
    """What each cell shows, without what it is."""
    return [
        [(one.output_type, *sorted(one.get("data", {}))) for one in cell.get("outputs", [])]
        for cell in notebook.cells
    ]


@SCRIPTS
def test_a_notebook_has_the_cells_of_its_script(script: Path) -> None:
    made, notebook = read_script(script), stored(script)
    nbformat.validate(notebook)
    assert [(one.cell_type, one.source) for one in notebook.cells] == [
        (one.cell_type, one.source) for one in made.cells
    ], f"run `make notebooks`: {script.stem} is older than its script"


@SCRIPTS
def test_a_notebook_was_run_and_names_no_machine(script: Path) -> None:
    notebook = stored(script)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert sum(bool(cell.outputs) for cell in code) >= len(code) / 2
    text = script.with_suffix(".ipynb").read_text()
    assert not any(part in text for part in ("/home/", "/work/", "/tmp/", "/root/"))


@pytest.mark.whole
@pytest.mark.slow
@SCRIPTS
def test_a_notebook_runs_and_shows_what_it_showed(script: Path) -> None:
    assert kinds(run(read_script(script))) == kinds(stored(script))


def test_text_in_front_of_the_first_cell_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "one.py"
    script.write_text("import os\n\n# %%\nprint(1)\n")
    with pytest.raises(ValueError, match=r"one\.py has text in front of its first cell: 'import"):
        read_script(script)


def test_a_page_has_text_code_and_what_was_shown(tmp_path: Path) -> None:
    script = tmp_path / "one.py"
    script.write_text("# %% [markdown]\n# # Title\n#\n# Text.\n\n# %%\nprint(1 + 1)\n")
    notebook = read_script(script)
    html = {"text/html": "<table>\n\n<tr></tr></table>", "text/plain": "table"}
    notebook.cells[1].outputs = [
        nbformat.v4.new_output("stream", text="2\n"),
        nbformat.v4.new_output("execute_result", data=html),
        nbformat.v4.new_output("display_data", data={"image/png": "aGk=\n", "text/plain": "f"}),
        nbformat.v4.new_output("execute_result", data={"text/plain": "'end'"}),
    ]
    nbformat.write(notebook, tmp_path / "one.ipynb")
    assert page_of(tmp_path / "one.ipynb").split("\n\n") == [
        "# Title",
        "Text.",
        "```python\nprint(1 + 1)\n```",
        "```text\n2\n```",
        "<table>\n<tr></tr></table>",
        '<img alt="figure" src="data:image/png;base64,aGk=">',
        "```text\n'end'\n```\n",
    ]
