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


EXAMPLES = ROOT / "examples"


def steps_of(printed: str) -> list[str]:
    """The lines that the program prints of its steps."""
    return re.findall(r"step \d+: loss .*", printed)


def run(name: str, *options: str) -> str:
    """What a program of examples/ prints, in a process of its own."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "runtime"), os.environ.get("PYTHONPATH", "")])
    flags = os.environ.get("XLA_FLAGS", "")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *options],
        env={**os.environ, "PYTHONPATH": paths, "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def train(*options: str) -> list[str]:
    """The lines that examples/train.py prints of its steps."""
    return steps_of(run("train.py", *options))


@pytest.mark.slow
def test_a_sampler_over_split_words_draws_what_one_device_draws() -> None:
    printed = run("sampler.py", "--steps", "2")
    assert "16 of 16 words are those of one device" in printed
    assert re.search(r"Dense_0/kernel +f32\[256,32768\] +P\(None, \('x', 'y'\)\)", printed)


def trains_as_on_one_device(name: str, rel: float) -> str:
    """Runs an example that prints both losses of every step; what it printed."""
    printed = run(name, "--steps", "2")
    losses = re.findall(r"step \d+: loss (\S+), on one device (\S+)", printed)
    assert len(losses) == 2
    for together, alone in losses:
        assert float(together) == pytest.approx(float(alone), rel=rel)
    return printed


@pytest.mark.slow
def test_a_unet_split_along_space_trains_as_on_one_device() -> None:
    printed = trains_as_on_one_device("unet_space.py", rel=1e-3)
    assert re.search(r"image +f32\[1,128,128,3\] +P\(None, '.', '.'\)", printed)
    assert "collective_permute" in printed


@pytest.mark.slow
def test_a_kernel_of_pallas_is_split_and_trains_as_on_one_device() -> None:
    printed = trains_as_on_one_device("pallas_norm.py", rel=1e-4)
    assert "norm_kernel: 2 of 2 calls are split" in printed
    assert "slope_kernel: 2 of 2 calls are split" in printed


@pytest.mark.slow
def test_experts_of_any_length_train_as_on_one_device() -> None:
    printed = trains_as_on_one_device("ragged_experts.py", rel=1e-3)
    assert re.search(
        r"Experts_\{0,1\}/up +2 +f32\[8,128,512\] +P\(None, None, (\('x', 'y'\)|'x')\)", printed
    )
    assert "on 8 x cpu" in printed


@pytest.mark.matrix
def test_keys_and_values_of_a_long_sequence_go_around_and_train_as_on_one_device() -> None:
    printed = trains_as_on_one_device("long_context.py", rel=1e-4)
    assert re.search(r"does not fit: .*\nfits: .* collective_permute", printed)


@pytest.mark.matrix
def test_a_scanned_decoder_trains_on_four_stages_as_on_one_device() -> None:
    printed = trains_as_on_one_device("scanned_decoder.py", rel=1e-4)
    held = re.search(r"state: (\S+) MiB, on the devices\n(.*) MiB", printed)
    assert held is not None
    # A quarter each, of what a stage of two devices splits half of it.
    assert max(map(float, held[2].split(", "))) < 0.3 * float(held[1])


@pytest.mark.slow
def test_one_loop_trains_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Losses are printed to four digits: they are the same on one mesh and on several."""
    spec: Any = importlib.util.spec_from_file_location("train", EXAMPLES / "train.py")
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)

    def train_here(*options: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", [str(EXAMPLES / "train.py"), *options])
        program.main()
        return steps_of(capsys.readouterr().out)

    mesh = train_here("--on", "mesh", "--steps", "20", "--save", str(tmp_path / "saved"))
    assert len(mesh) == 2
    further = train_here("--on", "pipeline", "--steps", "30")
    assert further[:2] == mesh
    if importlib.util.find_spec("ray") is not None:
        assert train("--on", "ray", "--steps", "20", "--devices", "4") == mesh
    restored = ("--steps", "30", "--restore", str(tmp_path / "saved"))
    assert train_here("--on", "mesh", "--devices", "4", *restored) == further[2:]
