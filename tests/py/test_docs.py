"""The code of the documentation runs: the Python blocks of a page one after the other."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from build_settings import llvm_tool

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def code_of(page: Path) -> str:
    """The blocks of a page as one script."""
    return "\n".join(BLOCK.findall(page.read_text()))


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if code_of(p)], ids=lambda p: p.name)
def test_blocks_run(page: Path, tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text(code_of(page))
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
    assert done.returncode == 0, f"{page.name}:\n{done.stderr[-3000:]}"


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
