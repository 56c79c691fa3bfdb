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


# A process takes longer to begin than the blocks of most pages: they share some. Of each the first
# name is that of the test; what is in none has a process of its own.
TOGETHER = (
    (
        *("index", "installing", "kernels", "scanned", "inference"),
        *("from_shardy", "one_device_to_cluster"),
    ),
    ("command_line", "adding_an_op", "how_a_strategy_is_chosen", "zoo", "from_megatron"),
    ("methods", "jit", "memory", "nnx"),
    ("tutorial", "pipelines", "pictures"),
)
# The block of the first page runs in `test_front_door.py`.
ELSEWHERE = ("README",)


def code_of(page: Path) -> str:
    """The blocks of a page as one script."""
    return "\n".join(BLOCK.findall(page.read_text()))


def script_of(pages: Sequence[Path]) -> str:
    """One script that runs pages one after the other, each with names of its own."""
    return "\n".join(
        f"exec(compile({code_of(page)!r}, {page.name!r}, 'exec'), {{'__name__': '__main__'}})"
        for page in pages
    )


WITH_CODE = {page.stem: page for page in PAGES if code_of(page) and page.stem not in ELSEWHERE}
ALONE = set(WITH_CODE) - {name for names in TOGETHER for name in names}
RUNS = [tuple(WITH_CODE[name] for name in names) for names in (*TOGETHER, *zip(sorted(ALONE)))]


@pytest.mark.whole
@pytest.mark.slow
@pytest.mark.parametrize("pages", RUNS, ids=lambda pages: pages[0].stem)
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
