"""The programs of examples/ do what they say, wherever they run."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


SCRIPT = ROOT / "examples" / "train.py"


def steps_of(printed: str) -> list[str]:
    """The lines that the program prints of its steps."""
    return re.findall(r"step \d+: loss .*", printed)


def train(*options: str) -> list[str]:
    """What the program prints of its steps, in a process of its own."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "runtime"), os.environ.get("PYTHONPATH", "")])
    flags = os.environ.get("XLA_FLAGS", "")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *options],
        env={**os.environ, "PYTHONPATH": paths, "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return steps_of(done.stdout)


@pytest.mark.slow
def test_one_loop_trains_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Losses are printed to four digits: they are the same on one mesh and on several."""
    spec: Any = importlib.util.spec_from_file_location("train", SCRIPT)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)

    def train_here(*options: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *options])
        program.main()
        return steps_of(capsys.readouterr().out)

    mesh = train("--on", "mesh", "--steps", "20", "--save", str(tmp_path / "saved"))
    assert len(mesh) == 2
    further = train_here("--on", "pipeline", "--steps", "30")
    assert further[:2] == mesh
    if importlib.util.find_spec("ray") is not None:
        assert train("--on", "ray", "--steps", "20", "--devices", "4") == mesh
    restored = ("--steps", "30", "--restore", str(tmp_path / "saved"))
    assert train_here("--on", "mesh", "--devices", "4", *restored) == further[2:]
