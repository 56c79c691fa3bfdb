"""Damaged modules and options are refused or accepted, and never bring the process down."""

from __future__ import annotations

import json
import random
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from programs import PROGRAMS

from stablehlo_alpa import _core
from stablehlo_alpa.frontend import trace

PREPARE = "builtin.module(alpa-prepare-pipeline)"
SPMD = "builtin.module(alpa-spmd-pipeline)"
LAYERS = "builtin.module(alpa-layers-pipeline{micro-batches=2})"
VERIFY = "builtin.module(alpa-verify-plan)"
PHASES = "builtin.module(alpa-split-phases{split-backward=true})"
SEEDS = ("matrix_products", "embedding_gradient", "fori_loop", "monoids", "sorts", "scatters")
OPTIONS = ["", "x", "x:", ":2", "x:0", "x:-1", "x:2,x:2", "x:99999999999999999999", "x:2,y:4"]
OPTIONS += [",".join(f"a{i}:1" for i in range(9)), "é:2", "x:2:3", "x:1048576,y:2"]
TIMEOUT_S = 120


class Worker:
    """The compiler in a process of its own."""

    def __init__(self) -> None:
        root = Path(__file__).resolve().parents[2]
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("core_worker.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": f"{root}:{root / 'runtime'}", "JAX_PLATFORMS": "cpu"},
        )

    def ask(self, call: str, text: str, option: Any = None) -> str:
        """The worker's answer; fails the test with the request when there is none."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = json.dumps({"call": call, "text": text, "option": option})
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], TIMEOUT_S)
        result = self.process.stdout.readline().strip() if ready else ""
        if not result:
            self.process.kill()
            _, errors = self.process.communicate()
            what = "died" if ready else f"gave no answer in {TIMEOUT_S} s"
            pytest.fail(f"compiler {what} on {call} {option!r}\n{errors[-1500:]}\n{text}")
        return result

    def close(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.process.wait()


@pytest.fixture
def worker() -> Iterator[Worker]:
    started = Worker()
    yield started
    started.close()


def stages(name: str) -> tuple[str, str, str]:
    """A program as traced, with roles, and planned on one axis."""
    traced = trace(PROGRAMS[name].fun, PROGRAMS[name].args, {}).text
    merged, _ = _core.run_pipeline(traced, PREPARE, locations=False)
    nodes = len(_core.strategy_graph(merged, [("x", 2)])["node_name"])
    option = f"mesh=x:2 solution={','.join(['0'] * nodes)}"
    planned, _ = _core.run_pipeline(
        merged, f"builtin.module(alpa-plan-pipeline{{{option}}})", locations=False
    )
    return traced, merged, planned


def damage(text: str, rng: random.Random) -> str:
    """One to three edits: a number, a type, a sharding, a strategy, a line or a few characters."""
    for _ in range(rng.randint(1, 3)):
        kind = rng.randrange(7)
        pattern = [
            r"\d+",
            r"tensor<[^<>]*>",
            r"sharding<\w*>",
            r"%\d+",
            r'"[\w.]+"',
            r".",
            r"strategy<[^<>]*>",
        ][kind]
        places = list(re.finditer(pattern, text))
        if not places:
            continue
        place = rng.choice(places)
        new = [
            str(rng.choice([0, 1, 2, 3, 7, 64, -1, 2**31, 2**63 - 1])),
            rng.choice(
                ["tensor<f32>", "tensor<?xf32>", "tensor<0x4xi1>", "tensor<*xf32>", "tensor<si0>"]
            ),
            rng.choice(["sharding<>", "sharding<S0>", "sharding<RS7>", "sharding<RRP0>"]),
            rng.choice(places).group(),
            rng.choice(places).group(),
            "",
            rng.choice(["strategy<>", "strategy<a=[0]>", "strategy<linear(0)=[0]>"]),
        ][kind]
        text = text[: place.start()] + new + text[place.end() :]
        if rng.random() < 0.2:
            lines = text.split("\n")
            del lines[rng.randrange(len(lines))]
            text = "\n".join(lines)
    return text


def attack(worker: Worker, name: str, seed: int, count: int) -> None:
    rng = random.Random(seed)
    traced, merged, planned = stages(name)
    for _ in range(count):
        worker.ask("run_pipeline", damage(traced, rng), PREPARE)
        worker.ask("run_pipeline", damage(traced, rng), LAYERS)
        worker.ask("strategy_graph", damage(merged, rng), [["x", 2], ["y", 2]])
        solution = ",".join(str(rng.randint(-1, 3)) for _ in range(rng.randint(0, 12)))
        option = f"mesh={rng.choice(OPTIONS)} solution={solution}"
        worker.ask("run_pipeline", merged, f"builtin.module(alpa-plan-pipeline{{{option}}})")
        broken = damage(planned, rng)
        for pipeline in (SPMD, VERIFY, PHASES):
            worker.ask("run_pipeline", broken, pipeline)
        for call in ("communication", "memory", "signature"):
            worker.ask(call, broken)


@pytest.mark.parametrize("name", SEEDS)
def test_damaged_modules_are_refused(worker: Worker, name: str) -> None:
    attack(worker, name, seed=1, count=10)


# Each run of the tests damages half of the programs here, the others in `test_dialect_fuzz.py`.
@pytest.mark.parametrize(
    ("name", "seed", "count"),
    [
        pytest.param(
            name,
            seed,
            count,
            marks=pytest.mark.matrix if count > 8 or number % 2 else pytest.mark.slow,
        )
        for number, name in enumerate(sorted(PROGRAMS))
        for seed, count in ((100, 8), *((seed, 20) for seed in range(100, 104)))
    ],
)
def test_many_damaged_modules_are_refused(worker: Worker, name: str, seed: int, count: int) -> None:
    attack(worker, name, seed, count)


@pytest.mark.parametrize(
    "aliases", ["", "0", "0:", ":0", "0:0:0", "-1:0", "0:99", "a:b", "0:0,0:0"]
)
def test_aliases_of_any_form(worker: Worker, aliases: str) -> None:
    text = trace(PROGRAMS["adam"].fun, PROGRAMS["adam"].args, {}).text
    worker.ask("run_pipeline", text, f"builtin.module(alpa-prepare-pipeline{{aliases={aliases}}})")


@pytest.mark.parametrize("pipeline", ["", "builtin.module", "alpa-import", "x(y)", "{{", "\0"])
def test_pipelines_of_any_form(worker: Worker, pipeline: str) -> None:
    worker.ask("run_pipeline", "module {}", pipeline)
