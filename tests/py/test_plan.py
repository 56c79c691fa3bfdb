"""Plans of pipelines: their file, and the proof that they can run."""

from __future__ import annotations

import dataclasses
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import alpa_runtime
import jax
import numpy as np
import pytest
from alpa_runtime import LocalExecutable, ProgramError, check
from alpa_runtime.plan import Free, Plan, Recv, Run, Send
from alpa_runtime.plan_file import PLAN_VERSION
from tanh_layers import BATCH, WEIGHTS, step

import stablehlo_alpa
from stablehlo_alpa import AutoLayers, DataParallel, PipeshardParallel, UniformStages


@pytest.fixture(scope="module")
def planned() -> Any:
    method = PipeshardParallel(
        num_micro_batches=4, layers=AutoLayers(num_layers=2), stages=UniformStages(2)
    )
    return stablehlo_alpa.parallelize(step, method=method).plan(WEIGHTS, BATCH)


@pytest.fixture(scope="module")
def plan(planned: Any) -> Plan:
    found: Plan = planned.runtime
    return found


def test_a_plan_comes_back_from_its_file(planned: Any, plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "step.plan"
    planned.save(path)
    loaded = alpa_runtime.load(path)
    assert loaded == plan
    assert list(tmp_path.iterdir()) == [path]
    outputs = LocalExecutable(loaded, jax.devices())(*WEIGHTS, BATCH)
    expected = jax.jit(step)(WEIGHTS, BATCH)
    for a, b in zip(outputs, jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def rewrite(source: Path, target: Path, change: Any) -> None:
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "plan.json":
                data = json.loads(content)
                change(data)
                content = json.dumps(data).encode()
            new.writestr(name, content)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda d: d.update(version=99),
            f"is a plan of version 99, this is version {PLAN_VERSION}",
        ),
        (lambda d: d.pop("version"), "names no version"),
        (lambda d: d["plan"].pop("meshes"), "a Plan has"),
        (lambda d: d["plan"].update(extra=1), "a Plan has"),
        (lambda d: d["plan"].update(num_micro_batches="4"), "must be of type int"),
        (lambda d: d["plan"].update(num_micro_batches=True), "must be of type int"),
        (lambda d: d["plan"]["instructions"][0][0].update(op="exec"), "the opcode 'exec', known"),
        (lambda d: d["plan"].update(values=7), "must be a list"),
        (lambda d: d["plan"]["meshes"][0]["devices"].append(9), "has 4 devices, not"),
        (lambda d: d["plan"]["programs"].append(d["plan"]["programs"][0]), "is no plan"),
    ],
)
def test_hostile_plans_are_refused(plan: Plan, tmp_path: Path, change: Any, message: str) -> None:
    good, bad = tmp_path / "good.plan", tmp_path / "bad.plan"
    alpa_runtime.save(plan, good)
    rewrite(good, bad, change)
    with pytest.raises(ProgramError, match=message):
        alpa_runtime.load(bad)


def test_damaged_files_are_refused(plan: Plan, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.plan", tmp_path / "bad.plan"
    alpa_runtime.save(plan, good)
    content = good.read_bytes()
    generator = random.Random(0)
    for size in (0, 10, len(content) // 2, len(content) - 1):
        bad.write_bytes(content[:size])
        with pytest.raises(ProgramError, match=r"cut short|damaged"):
            alpa_runtime.load(bad)
    for _ in range(200):
        damaged = bytearray(content)
        damaged[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
        bad.write_bytes(damaged)
        try:
            loaded = alpa_runtime.load(bad)
        except ProgramError:
            continue
        # A bit that no reader looks at.
        assert loaded == plan


def test_activations_give_their_places_away() -> None:
    """The gradient that goes back takes the place of an activation that nobody needs any more."""
    method = PipeshardParallel(
        num_micro_batches=4,
        schedule="1f1b",
        layers=AutoLayers(num_layers=2),
        stages=UniformStages(2, methods=DataParallel()),
    )
    plan = stablehlo_alpa.parallelize(step, method=method).plan(WEIGHTS, BATCH).runtime
    program = next(p for p in plan.programs if p.name == "stage_1_backward")
    aliased = [program.inputs[i].name for i in program.donated]
    assert [name for name in aliased if not name.startswith("accumulator")]
    assert len(aliased) <= len(program.outputs)


# The proof, on plans changed by hand.


def replace_instructions(plan: Plan, mesh: int, change: Any) -> Plan:
    lists = list(plan.instructions)
    own = list(lists[mesh])
    change(own)
    lists[mesh] = tuple(own)
    return dataclasses.replace(plan, instructions=tuple(lists))


def first(instructions: list[Any], kind: type[Any]) -> int:
    return next(i for i, one in enumerate(instructions) if isinstance(one, kind))


def drop(kind: type[Any]) -> Any:
    return lambda own: own.pop(first(own, kind))


def free_early(own: list[Any]) -> None:
    run = own[first(own, Run) + 1]
    own.insert(first(own, Run), Free((run.inputs[0],)))


def fill_twice(own: list[Any]) -> None:
    own.insert(1, own[0])


def run_nothing(own: list[Any]) -> None:
    at = first(own, Run)
    own[at] = dataclasses.replace(own[at], program=99)


def swap_buffers(own: list[Any]) -> None:
    at = next(i for i, one in enumerate(own) if isinstance(one, Run) and len(one.inputs) > 1)
    inputs = list(own[at].inputs)
    inputs[0] = inputs[1]
    own[at] = dataclasses.replace(own[at], inputs=tuple(inputs))


def send_elsewhere(own: list[Any]) -> None:
    at = first(own, Send)
    own[at] = dataclasses.replace(own[at], target=0)


def send_twice(own: list[Any]) -> None:
    at = first(own, Send)
    own.insert(at, own[at])


def name_no_buffer(own: list[Any]) -> None:
    own.append(Free((10_000,)))


@pytest.mark.parametrize(
    ("mesh", "change", "message"),
    [
        (0, drop(Send), r"transfers \[\d+\] lack their send or their receive"),
        (1, drop(Recv), r"transfers \[\d+\] lack their send or their receive"),
        (0, drop(Run), "uses buffer .*, which holds nothing"),
        (0, free_early, "uses buffer .*, which holds nothing"),
        (0, fill_twice, "fills buffer .*, which is in use"),
        (0, run_nothing, "runs program 99, there is none"),
        (0, swap_buffers, "buffer .* holds"),
        (0, send_elsewhere, "goes from mesh 0 to 0, and is received by mesh 1 from 0"),
        (0, send_twice, "is sent twice"),
        (1, name_no_buffer, "names buffer 10000, there is none"),
    ],
)
def test_contradictions_are_found(plan: Plan, mesh: int, change: Any, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        check(replace_instructions(plan, mesh, change))


def test_meshes_that_wait_for_each_other_are_found(plan: Plan) -> None:
    """Mesh 0 wants the gradient of the first micro-batch before it makes the activation."""

    def want_first(own: list[Any]) -> None:
        recv = own.pop(first(own, Recv))
        own.insert(0, recv)

    with pytest.raises(ProgramError, match="meshes wait for sends that never come: mesh 0 at Recv"):
        check(replace_instructions(plan, 0, want_first))


def test_outputs_have_to_be_there(plan: Plan) -> None:
    output = plan.outputs[0]

    def forget(own: list[Any]) -> None:
        own.append(Free((output.buffer,)))

    with pytest.raises(ProgramError, match="output 0 uses buffer"):
        check(replace_instructions(plan, output.mesh, forget))
