"""Plans in files: they say what plans say, by oracles that are none of theirs."""

from __future__ import annotations

import copy
import dataclasses
import io
import json
import math
import os
import pickle
import re
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import alpa_runtime
import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec

import stablehlo_alpa as sa
from stablehlo_alpa import zoo
from stablehlo_alpa.errors import ProgramError, ShardingError
from stablehlo_alpa.inter_op.rescheduling import reschedule
from stablehlo_alpa.planning.explaining import explain_layer, explain_operator, explain_stage
from stablehlo_alpa.planning.explaining_modules import explain_module
from stablehlo_alpa.planning.memory_kinds import MemoryKind, memory_by_kind
from stablehlo_alpa.planning.occupation import Occupation
from stablehlo_alpa.view.modules import ARGUMENTS, OUTSIDE

CLUSTER = "cpu:2x2"
STAGES = sa.ManualStages((1, 1), ((1, 2), (1, 2)), ((2,), (2,)))


def planned(method: Any, batch: int = 8, cluster: str = CLUSTER) -> Any:
    """GPT's plan, of two layers."""
    case = zoo.gpt("tiny", batch=batch, remat=False)
    step = sa.parallelize(case.step, method=method, cluster=cluster, donate_argnums=0)
    return step.plan(*case.args)


def pipeline(schedule: str = "1f1b", count: int = 4) -> sa.PipeshardParallel:
    layers = sa.AutoLayers(num_layers=2, remat=False)
    return sa.PipeshardParallel(
        num_micro_batches=count, schedule=schedule, layers=layers, stages=STAGES
    )


@pytest.fixture(scope="module")
def piped() -> Any:
    return planned(pipeline())


@pytest.fixture(scope="module")
def single() -> Any:
    return planned(sa.ShardParallel())


@pytest.fixture(scope="module")
def files(piped: Any, single: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("plans")
    found = {}
    for name, plan in (("piped", piped), ("single", single)):
        found[name] = folder / f"{name}.plan"
        plan.save(found[name])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["piped", "single"])
def test_a_file_predicts_what_the_plan_predicts(
    name: str, files: dict[str, Path], request: pytest.FixtureRequest
) -> None:
    plan, saved = request.getfixturevalue(name), sa.read_plan(files[name])
    assert saved.runtime == plan.runtime == alpa_runtime.load(files[name])
    assert saved.simulation == plan.simulation
    assert saved.schedule == plan.schedule
    assert saved.cluster == plan.cluster
    for own, other in zip(saved.stages, plan.stages, strict=True):
        assert (own.place, own.mesh.axes) == (other.place, other.mesh.axes)
        assert [phase.inputs for phase in own.phases] == [phase.inputs for phase in other.phases]


@pytest.mark.parametrize("name", ["piped", "single"])
def test_a_plan_is_pickled_as_what_its_file_holds(
    name: str, files: dict[str, Path], request: pytest.FixtureRequest
) -> None:
    plan, saved = request.getfixturevalue(name), sa.read_plan(files[name])
    again = pickle.loads(pickle.dumps(plan))
    assert (again.runtime, again.account) == (saved.runtime, saved.account)
    operator = plan.stages[0].priced.graph.node_name[0]
    assert explain_operator(again, operator, 0) == explain_operator(saved, operator, 0)
    assert copy.deepcopy({"plan": plan})["plan"] is copy.copy(plan) is plan


@pytest.mark.parametrize("name", ["piped", "single"])
def test_a_file_explains_operators_as_the_plan_does(
    name: str, files: dict[str, Path], request: pytest.FixtureRequest
) -> None:
    plan, saved = request.getfixturevalue(name), sa.read_plan(files[name])
    for number, stage in enumerate(plan.stages):
        for operator in stage.priced.graph.node_name[::40]:
            found = explain_operator(saved, operator, number)
            assert str(found).splitlines()[0].startswith(operator)
            chosen = next(one for one in found.strategies if one.is_chosen)
            graph, node = stage.priced.graph, stage.priced.graph.node_name.index(operator)
            row = graph.node_offset[node] + stage.solution.choice[node]
            assert chosen.label == graph.strategy_label[row]
            assert chosen.compute_s == stage.priced.compute_s[row]
    # What only one stage has needs no number.
    last = plan.stages[-1].priced.graph.node_name[-1]
    assert explain_operator(saved, last) == plan.explain(last)


def test_what_a_link_leads_to_is_written(single: Any, tmp_path: Path) -> None:
    there, link = tmp_path / "there" / "real.plan", tmp_path / "link.plan"
    there.parent.mkdir()
    link.symlink_to(there)
    for _ in range(2):
        single.save(link)
        assert link.is_symlink()
        assert alpa_runtime.load(there) == single.runtime
        assert [one.name for one in there.parent.iterdir()] == ["real.plan"]


def test_a_pipe_is_written_to(single: Any, tmp_path: Path) -> None:
    pipe, copy_of_it = tmp_path / "pipe", tmp_path / "copy.plan"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as reader:
        content = reader.submit(pipe.read_bytes)
        single.save(pipe)
        copy_of_it.write_bytes(content.result(timeout=60))
    assert pipe.is_fifo()
    assert alpa_runtime.load(copy_of_it) == single.runtime


@pytest.mark.parametrize("where", ["nowhere/x.plan", "file/x.plan", "folder"])
def test_a_plan_that_cannot_be_written_names_the_path_that_was_given(
    where: str, single: Any, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=re.escape(f"'{tmp_path / where}'")):
        single.save(tmp_path / where)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "folder"]


@pytest.mark.slow
def test_layers_of_operators_are_their_scopes() -> None:
    """Jax puts the scope of a layer into the name of what is traced in it."""
    plan = planned(sa.PipeshardParallel(
        num_micro_batches=2,
        schedule="1f1b",
        layers=sa.AutoLayers(num_layers=2, remat=False),
        stages=sa.UniformStages(1),
    ))  # fmt: skip
    saved = sa.SavedPlan.of(plan)
    (table,), (layers,) = saved.tables, saved.layers
    scopes = [re.search(r"alpa_layer_(\d+)", name) for name in table.name]
    found = [(int(s[1]), layer) for s, layer in zip(scopes, layers.tolist(), strict=True) if s]
    assert len(found) > 100
    # The ones that gradients of a gather are scattered from were traced in the other layer.
    assert sum(scope != layer for scope, layer in found) <= 1
    of_state = [
        (int(match[1]), layer)
        for name, layer in zip(table.name, layers.tolist(), strict=True)
        if (match := re.search(r"layer_(\d+)'\]", name))
    ]
    assert len(of_state) == 96
    assert all(scope == layer for scope, layer in of_state)


def test_seconds_of_layers_are_those_of_their_stage(files: dict[str, Path]) -> None:
    saved = sa.read_plan(files["piped"])
    for number, stage in enumerate(saved.account.stages):
        layers = [explain_layer(saved, layer) for layer in stage.place.layers]
        for key in ("compute_s", "communication_s", "reshard_s"):
            total = sum(getattr(layer, key) for layer in layers)
            assert total == pytest.approx(getattr(stage, key), rel=1e-9, abs=1e-15)
        assert sum(layer.share for layer in layers) == pytest.approx(1.0)
        assert {layer.stage for layer in layers} == {number}


@pytest.mark.parametrize(("name", "modules"), [("piped", 1), ("single", 4)])
def test_seconds_of_modules_are_those_of_the_table(
    name: str, modules: int, files: dict[str, Path], request: pytest.FixtureRequest
) -> None:
    saved = sa.read_plan(files[name])
    rows = request.getfixturevalue(name).table("modules").records
    # Stages have equal layers as different rows; all that is in the model is in both.
    asked = {row.name for row in rows} - {ARGUMENTS, OUTSIDE} if name == "single" else {"GPT"}
    assert len(asked) >= modules
    for module in asked:
        found = explain_module(saved, module)
        assert found is not None
        own = [row for row in rows if f"{row.name}/".startswith(f"{module}/")]
        assert found.num_operators == sum(row.count for row in own)
        total_s = sum(row.total_s for row in own)
        assert found.total_s == pytest.approx(total_s, rel=1e-9, abs=1e-15)
        assert sum(one.count for one in found.inside) == found.num_operators
        assert found.inside[0].name in str(found)
    assert explain_module(saved, "layer_7") is None


def test_a_module_is_named_by_its_end_and_by_stage(files: dict[str, Path]) -> None:
    saved = sa.read_plan(files["piped"])
    every = explain_module(saved, "attention")
    stages = [explain_module(saved, "attention", number) for number in (0, 1)]
    assert every is not None
    assert every.stages == (0, 1)
    assert len(every.modules) == 2
    assert every.num_operators == sum(one.num_operators for one in stages if one)
    assert every.share < 1.0
    assert explain_module(saved, "attention", 2) is None


@pytest.mark.parametrize("name", ["piped", "single"])
def test_kinds_of_memory_are_the_peak(
    name: str, files: dict[str, Path], request: pytest.FixtureRequest
) -> None:
    plan, saved = request.getfixturevalue(name), sa.read_plan(files[name])
    for mesh, peak in enumerate(plan.simulation.peak_bytes):
        assert sum(memory_by_kind(saved, mesh).values()) == pytest.approx(peak, rel=1e-12)


def test_parameters_take_what_their_shardings_say(single: Any, files: dict[str, Path]) -> None:
    (state, _), _ = single.input_shardings
    case = zoo.gpt("tiny", batch=8, remat=False)
    sizes = dict(single.mesh.axes)

    def local(leaf: Any, spec: Any) -> float:
        parts = [(part,) if isinstance(part, str) else part or () for part in spec]
        count = math.prod(sizes[axis] for part in parts for axis in part)
        return leaf.size * leaf.dtype.itemsize / count

    specs = jax.tree.leaves(state.params, is_leaf=lambda one: isinstance(one, PartitionSpec))
    expected = sum(map(local, jax.tree.leaves(case.args[0].params), specs))
    found = memory_by_kind(sa.read_plan(files["single"]), 0)
    assert found[MemoryKind.PARAMETERS] == expected


def test_a_stage_is_explained_by_its_schedule(piped: Any, files: dict[str, Path]) -> None:
    saved = sa.read_plan(files["piped"])
    for number in range(2):
        stage = explain_stage(saved, number)
        assert stage.in_flight == piped.schedule.most_in_flight(number) == 2 - number
        assert stage.bubble == piped.simulation.bubble(number)
        assert stage.layers == piped.stages[number].layers
        runs = {"forward": 4, "backward": 4}
        once = sum(time_s for name, time_s in stage.phases.items() if name not in runs)
        own = 4 * stage.micro_batch_s + once
        # What brings values from sharding to sharding runs besides.
        assert own <= stage.busy_s * (1 + 1e-12)


def test_busy_and_idle_seconds_are_the_step(files: dict[str, Path]) -> None:
    for name in ("piped", "single"):
        saved = sa.read_plan(files[name])
        found = Occupation.of(saved, saved.schedule)
        for stage in found.stages:
            total = stage.busy_s + stage.converting_s + stage.idle_s
            assert total == pytest.approx(found.step_s, rel=1e-12)


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
def test_micro_batches_in_flight_are_the_schedules(schedule: str, files: dict[str, Path]) -> None:
    predicted, order = reschedule(sa.read_plan(files["piped"]), schedule)
    found = Occupation.of(predicted, order)
    assert [one.in_flight for one in found.stages] == [order.most_in_flight(n) for n in range(2)]


def test_a_plan_in_its_own_order_is_itself(piped: Any, files: dict[str, Path]) -> None:
    predicted, order = reschedule(sa.read_plan(files["piped"]))
    assert predicted.runtime == piped.runtime
    assert order == piped.schedule
    assert predicted.simulation == piped.simulation


@pytest.mark.slow
def test_another_order_is_what_planning_by_it_gives(files: dict[str, Path]) -> None:
    predicted, _ = reschedule(sa.read_plan(files["piped"]), "gpipe")
    assert predicted.step_time_s == planned(pipeline("gpipe")).step_time_s


@pytest.mark.slow
def test_more_micro_batches_are_those_of_a_larger_batch(tmp_path: Path) -> None:
    # What runs once per step weighs less among more micro-batches: a search would choose others.
    stages = sa.UniformStages(2, methods=sa.DataParallel())
    few, many = (dataclasses.replace(pipeline(count=count), stages=stages) for count in (4, 8))
    planned(few).save(tmp_path / "few.plan")
    predicted, _ = reschedule(sa.read_plan(tmp_path / "few.plan"), None, 8)
    larger = planned(many, batch=16)
    assert predicted.runtime.inputs[0].value.shape == larger.runtime.inputs[0].value.shape
    assert predicted.step_time_s == pytest.approx(larger.step_time_s, rel=0.01)
    assert predicted.peak_bytes == pytest.approx(larger.peak_bytes, rel=0.05)


@pytest.mark.parametrize(
    ("name", "schedule", "said"),
    [
        ("single", None, "one program, which is all of a step"),
        ("piped", "zero_bubble", "plan again with --schedule zero_bubble"),
        ("piped", "inference", "has backward passes"),
        ("piped", "fifo", "must be one of"),
    ],
)
def test_what_cannot_be_ordered_is_refused(
    name: str, schedule: str | None, said: str, files: dict[str, Path]
) -> None:
    with pytest.raises(ValueError, match=said):
        reschedule(sa.read_plan(files[name]), schedule, 2)


def rewritten(path: Path, target: Path, change: Any) -> Path:
    """A copy of an archive, one member changed; None leaves it out."""
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(target, "w") as other:
        for member in archive.namelist():
            content = change(member, archive.read(member))
            if content is not None:
                other.writestr(member, content)
    return target


def versioned(member: str, content: bytes) -> bytes:
    if member != "account.json":
        return content
    return json.dumps(json.loads(content) | {"version": 99}).encode()


def shortened(member: str, content: bytes) -> bytes:
    if member != "operators.npz":
        return content
    arrays = dict(np.load(io.BytesIO(content)))
    arrays["0/choice"] = arrays["0/choice"][:-1]
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def mistyped(member: str, content: bytes) -> bytes:
    if member != "account.json":
        return content
    data = json.loads(content)
    data["account"]["stages"][0]["compute_s"] = "much"
    return json.dumps(data).encode()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (versioned, "explains itself in version 99, this is version 6"),
        (shortened, "is damaged.*do not fit each other"),
        (mistyped, r"stages\[0\].compute_s is 'much', must be of type float"),
        (lambda name, content: None if name == "account.json" else content, "not what it costs"),
        (lambda name, content: content[:-9] if name == "operators.npz" else content, "is damaged"),
        (lambda name, content: None if name == "plan.json" else content, "is no plan"),
    ],
)
def test_other_versions_and_damage_are_named(
    change: Any, said: str, files: dict[str, Path], tmp_path: Path
) -> None:
    path = rewritten(files["single"], tmp_path / "x.plan", change)
    with pytest.raises(ProgramError, match=said):
        sa.read_plan(path)


def test_what_there_is_not_is_refused(files: dict[str, Path]) -> None:
    piped, single = sa.read_plan(files["piped"]), sa.read_plan(files["single"])
    with pytest.raises(ShardingError, match="there is no layer 2, layers are 0 to 1"):
        explain_layer(piped, 2)
    with pytest.raises(ShardingError, match="is one stage that is not cut into layers"):
        explain_layer(single, 0)
    with pytest.raises(ShardingError, match="name one of its modules instead, as GPT/embed, GPT/"):
        explain_layer(single, 0)
    with pytest.raises(ShardingError, match="there is no stage 5, stages are 0 to 1"):
        explain_stage(piped, 5)
    twice = dataclasses.replace(piped, tables=(piped.tables[0],) * 2)
    shared = piped.tables[0].name[0]
    with pytest.raises(ShardingError, match="is an operator of the stages 0, 1: say which"):
        explain_operator(twice, shared)
    assert explain_operator(twice, shared, 1).name == shared
