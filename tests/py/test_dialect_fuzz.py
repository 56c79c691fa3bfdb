"""The command line tool refuses damaged modules and options; it never crashes and never hangs."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import PROGRAMS
from test_core_fuzz import OPTIONS, damage, stages

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("STABLEHLO_ALPA_BUILD", ROOT / "build"))
TOOL = BUILD / "bin" / "stablehlo-alpa-opt"
TIMEOUT_S = 120
QUICK = ("matrix_products", "embedding_gradient", "fori_loop", "sorts", "convolution_gradient")

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")

# Arguments of the tool and the stage of the program that they take: traced, merged or planned.
# MLIR's own `--inline` is left out: it crashes on some unknown operators, which the pipeline
# refuses before.
CALLS = (
    ((), 0),
    (("--mlir-print-op-generic",), 2),
    (("--canonicalize", "--cse", "--symbol-dce"), 0),
    (("--alpa-prepare-pipeline",), 0),
    (("--alpa-print-sharding-rules",), 0),
    (("--alpa-enumerate-strategies=mesh=x:2,y:2",), 1),
    (("--alpa-plan-pipeline=mesh=x:2 solution=0,0,0,1",), 1),
    (("--alpa-spmd-pipeline",), 2),
    (("--alpa-verify-spmd",), 2),
    (("--canonicalize", "--cse"), 2),
)


def assert_survives(text: str, *arguments: str) -> None:
    """The tool ends by itself and says yes or no."""
    command = [str(TOOL), "--allow-unregistered-dialect", *arguments]
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        pytest.fail(f"{arguments} gave no answer in {TIMEOUT_S} s\n{text}")
    where = f"{arguments} ended with {done.returncode}\n{done.stderr[-2000:]}\n{text}"
    assert done.returncode in (0, 1), where
    assert done.returncode == 0 or done.stderr, where


def attack(name: str, seed: int, count: int) -> None:
    rng = random.Random(seed)
    texts = stages(name)
    for _ in range(count):
        arguments, stage = rng.choice(CALLS)
        assert_survives(damage(texts[stage], rng), *arguments)
    _, merged, _ = texts
    mesh = rng.choice(OPTIONS)
    assert_survives(merged, f"--alpa-plan-pipeline=mesh={mesh} solution={rng.randint(-2, 9)}")


@pytest.mark.parametrize("name", QUICK)
def test_damaged_modules_are_refused(name: str) -> None:
    attack(name, seed=7, count=25)


# Each run of the tests damages half of the programs here, the others in `test_core_fuzz.py`.
@pytest.mark.parametrize(
    ("name", "seed", "count"),
    [
        pytest.param(
            name,
            *seed,
            marks=pytest.mark.matrix if seed[1] > 25 or not number % 2 else pytest.mark.slow,
        )
        for number, name in enumerate(sorted(PROGRAMS))
        for seed in ((70, 25), (71, 200))
    ],
)
def test_many_damaged_modules_are_refused(name: str, seed: int, count: int) -> None:
    attack(name, seed, count)


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=200), st.sampled_from([arguments for arguments, _ in CALLS]))
def test_any_text_is_refused(text: str, arguments: tuple[str, ...]) -> None:
    assert_survives(text.replace("\r", ""), *arguments)


# Snippets around what the dialects' own parsers read.
WORDS = st.sampled_from(
    "stablehlo.constant stablehlo.while stablehlo.reduce stablehlo.dot_general stablehlo.gather "
    "stablehlo.convolution stablehlo.custom_call chlo.top_k alpa.reshard alpa.mesh alpa.resolve "
    "#stablehlo.conv<[b,0,f]x[0,i,o]->[b,0,f]> #stablehlo.dot< #stablehlo.gather< "
    "#stablehlo.result_accuracy< #alpa.sharding<S0R> #alpa.mesh<x:2> !stablehlo.token dense<0> "
    "func.func @main ( ) -> { } [ ] < > : , = %0 %arg0 %0:2 ^bb0 tensor<2x?xf32> tensor<f32> "
    "array<i64:1> dims sizes dim applies across dimensions init cond do return -1 "
    "9223372036854775808 1.0e999 loc(unknown) return module".split()
)


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS, max_size=30), st.sampled_from([arguments for arguments, _ in CALLS]))
def test_any_order_of_words_is_refused(words: list[str], arguments: tuple[str, ...]) -> None:
    assert_survives(" ".join(words), *arguments)
