"""The code of the documentation runs: the Python blocks of a page one after the other."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from build_settings import llvm_tool

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


# Pages whose blocks take less time than a process takes to begin: they share one.
SHORT = (
    *("index", "installing", "kernels", "scanned", "inference"),
    *("from_shardy", "one_device_to_cluster"),
)


def code_of(page: Path) -> str:
    """The blocks of a page as one script."""
    return "\n".join(BLOCK.findall(page.read_text()))


def script_of(pages: Sequence[Path]) -> str:
    """One script that runs pages one after the other, each with names of its own."""
    return "\n".join(
        f"exec(compile({code_of(page)!r}, {page.name!r}, 'exec'), {{'__name__': '__main__'}})"
        for page in pages
    )


WITH_CODE = [page for page in PAGES if code_of(page)]
RUNS = [
    *((page,) for page in WITH_CODE if page.stem not in SHORT),
    tuple(page for page in WITH_CODE if page.stem in SHORT),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "pages", RUNS, ids=lambda pages: pages[0].name if len(pages) == 1 else "short"
)
def test_blocks_run(pages: tuple[Path, ...], tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text(script_of(pages))
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'runtime'}"}
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=tmp_path,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_pass_documentation_is_up_to_date() -> None:
    tools = llvm_tool("llvm-tblgen").parent
    command = [str(ROOT / "scripts/make_pass_docs.sh"), str(tools)]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert (ROOT / "docs/passes.md").read_text() == made, "run `make pass-docs`"


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
