"""The documentation as a site, and its pages that are made of something else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from stablehlo_alpa.frontend.versions import BELOW, OLDEST

ROOT = Path(__file__).resolve().parents[2]
PINS = dict(
    line.split("==")
    for line in (ROOT / "requirements/pins.txt").read_text().splitlines()
    if "==" in line
)


@pytest.mark.slow
def test_the_site_is_made_without_a_warning_or_the_network(tmp_path: Path) -> None:
    """Links, anchors, and that every page is in the navigation: MkDocs's strict mode."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > len(list((ROOT / "docs").glob("*.md"))) - 1
    for page in pages:
        text = page.read_text()
        fetched = re.findall(r"<(?:script|img|iframe)[^>]* src=[\"']?(?:https?:)?//", text)
        fetched += re.findall(r"<link[^>]* href=[\"']?(?:https?:)?//", text)
        assert not fetched, page.name
        # The theme would fetch what draws them.
        assert 'class="mermaid"' not in text, page.name
    formulas = (tmp_path / "how_a_strategy_is_chosen.html").read_text()
    assert formulas.count("<math") > 20
    assert "arithmatex" not in formulas


@pytest.mark.slow
def test_the_reference_of_commands_is_up_to_date() -> None:
    made = subprocess.run(
        [sys.executable, str(ROOT / "scripts/make_command_docs.py")],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'runtime'}"},
    ).stdout
    page = ROOT / "docs/command_line_reference.md"
    assert page.read_text() == made, "run `make command-docs`"


def table() -> dict[str, tuple[str, str]]:
    """What docs/installing.md says: name -> (supported, tested with)."""
    page = (ROOT / "docs/installing.md").read_text()
    part = page.split("## What it runs with")[1]
    rows = re.findall(r"^\| ([\w ,]+) \| ([^|]+) \| ([^|]+) \|$", part, re.MULTILINE)
    return {name: (supported, tested) for name, supported, tested in rows}


@pytest.mark.parametrize("name", ["jax", "jaxlib", "numpy"])
def test_supported_versions_are_those_that_are_asked_for(name: str) -> None:
    supported, tested = table()[name]
    for file in ("pyproject.toml", "runtime/pyproject.toml"):
        project = tomllib.loads((ROOT / file).read_text())["project"]
        asked = [one for one in project["dependencies"] if re.match(rf"{name}\W", one)]
        if name != "jaxlib" or file == "pyproject.toml":
            assert asked == [f"{name}{supported}"], file
    assert PINS[name] == tested


def test_the_planner_asks_for_the_jax_that_the_table_names() -> None:
    oldest, below = (".".join(map(str, version)) for version in (OLDEST, BELOW))
    assert table()["jax"][0] == f">={oldest},<{below}"


def test_supported_pythons_have_wheels() -> None:
    supported, _ = table()["Python"]
    makefile = (ROOT / "Makefile").read_text()
    (pythons,) = re.findall(r"^PYTHONS \?= (.*)$", makefile, re.MULTILINE)
    assert pythons.split() == [f"python{version}" for version in supported.split(", ")]
    for file in ("pyproject.toml", "runtime/pyproject.toml"):
        project = tomllib.loads((ROOT / file).read_text())["project"]
        assert project["requires-python"] == f">={supported.split(', ')[0]}", file


def test_packages_are_pinned_in_one_place() -> None:
    for file in (ROOT / "requirements").glob("*.txt"):
        if file.name != "pins.txt":
            assert "==" not in file.read_text(), file.name
