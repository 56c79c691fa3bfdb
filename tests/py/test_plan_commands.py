"""Commands that read plans, and those that run them: JSON, exit codes, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import alpa_runtime
import jax
import numpy as np
import pytest
from test_command_line import FUNCTIONS, ended, printed, run

import stablehlo_alpa as sa

PIPELINE = ("--micro-batches", "2", "--layers", "2", "--schedule", "1f1b")


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chain of products on one mesh, and as a pipeline."""
    folder = tmp_path_factory.mktemp("plans")
    (folder / "chained_steps.py").write_text(FUNCTIONS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        chain = ("plan", "chained_steps:chain", "--batch", "16", "--quiet")
        one = run(*chain, "--cluster", "cpu:1x4", "-o", "one.plan")
        two = run(*chain, "--cluster", "cpu:2x2", *PIPELINE, "-o", "two.plan")
    assert (one.exit_code, two.exit_code) == (0, 0), (one.exception, two.exception)
    return folder


@pytest.fixture(autouse=True)
def here(plans: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(plans)


def test_json_of_an_operator_is_its_explanation() -> None:
    saved = sa.read_plan("one.plan")
    name = next(name for name in saved.tables[0].name if name.endswith("dot_general"))
    record = printed("explain", "one.plan", name)
    assert record["schema"] == "stablehlo-alpa/explanation/1"
    assert (record["kind"], record["name"]) == ("operator", name)
    assert set(record) == {"schema", "kind", "name", "op", "strategies", "reason"}
    assert set(record["strategies"][0]) == {
        *("label", "compute_s", "communication_s", "reshard_s", "memory_bytes"),
        *("is_chosen", "is_allowed"),
    }
    assert sum(one["is_chosen"] for one in record["strategies"]) == 1


LAYER_KEYS = {
    *("schema", "kind", "number", "stage", "devices", "mesh", "num_operators", "compute_s"),
    *("communication_s", "reshard_s", "share", "parameter_bytes", "state_bytes", "operators"),
}
STAGE_KEYS = {
    *("schema", "kind", "number", "layers", "devices", "submesh", "mesh", "in_flight"),
    *("micro_batch_s", "phases", "busy_s", "bubble", "compute_s", "communication_s", "reshard_s"),
    *("peak_bytes", "budget_bytes", "memory", "operators", "num_operators"),
}


def test_json_of_layers_and_stages() -> None:
    stages = len(sa.read_plan("two.plan").stages)
    layer, stage = (
        printed("explain", "two.plan", one) for one in ("layer:1", f"stage:{stages - 1}")
    )
    assert set(layer) == LAYER_KEYS
    assert set(stage) == STAGE_KEYS
    assert layer["stage"] == stages - 1
    assert stage["layers"][-1] == 1
    assert sum(stage["memory"].values()) == pytest.approx(stage["peak_bytes"])
    # Two of four matrices of 32 x 32 numbers, whole or in halves.
    assert layer["parameter_bytes"] in (2 * 4096, 4096)


def test_json_of_a_simulation_is_the_plans() -> None:
    record = printed("simulate", "two.plan")
    assert set(record) == {
        *("schema", "name", "schedule", "num_micro_batches", "step_s", "stages"),
        "planned_step_s",
    }
    assert record["step_s"] == record["planned_step_s"] == sa.read_plan("two.plan").step_time_s
    assert set(record["stages"][0]) == {
        *("stage", "mesh", "busy_s", "converting_s", "idle_s", "bubble", "in_flight"),
        "peak_bytes",
    }


def test_a_trace_has_every_run(tmp_path: Path) -> None:
    assert run("simulate", "two.plan", "--trace", str(tmp_path / "t.json")).exit_code == 0
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    runs = [event for event in events if event.get("ph") == "X"]
    simulated = sa.read_plan("two.plan").simulation.events
    assert len(runs) == len(simulated)
    assert max(one["ts"] + one["dur"] for one in runs) == pytest.approx(
        1e6 * max(event.end_s for event in simulated)
    )


def test_a_plan_runs_and_says_so() -> None:
    record = printed("run", "one.plan", "--steps", "2", "--virtual-devices", "4")
    assert set(record) == {
        *("schema", "name", "devices", "planned_for", "step_s", "measured_step_s"),
        *("predicted_step_s", "ratio", "platform", "not_finite", "compile_s", "first_step_s"),
    }
    assert record["predicted_step_s"] == sa.read_plan("one.plan").step_time_s
    assert len(record["step_s"]) == 2
    assert record["ratio"] == record["measured_step_s"] / record["predicted_step_s"]
    assert record["not_finite"] == []


@pytest.mark.slow
def test_a_pipeline_runs_too() -> None:
    assert printed("run", "two.plan", "--steps", "1", "--virtual-devices", "4")["not_finite"] == []


@pytest.mark.slow
def test_a_plan_runs_on_ray() -> None:
    pytest.importorskip("ray")
    done = ended("run", "one.plan", "--ray", "--steps", "1", "--virtual-devices", "4", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["platform"] == "ray"


@pytest.mark.slow
def test_virtual_devices_are_made_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process that has made none, whatever its environment says."""
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    monkeypatch.delenv("PJRT_NPROC", raising=False)
    done = ended("run", "one.plan", "--steps", "1", "--virtual-devices", "4", "--quiet")
    assert done.returncode == 0, done.stderr
    few = ended("run", "one.plan", "--steps", "1")
    assert few.returncode == 2
    assert "4 devices are needed, 2 are there (cpu): pass --virtual-devices 4" in few.stderr


def write(path: Path, arrays: dict[str, Any]) -> None:
    np.savez(path, **arrays)


def test_arguments_of_a_file_are_used(tmp_path: Path) -> None:
    plan = alpa_runtime.load("one.plan")
    names = [one.value.name for one in plan.inputs]
    batch = next(index for index, one in enumerate(plan.inputs) if one.value.shape == (16, 32))
    arrays = {names[batch]: np.full((16, 32), np.nan, "f")}
    write(tmp_path / "nan.npz", arrays)
    result = run("run", "one.plan", "--steps", "1", "--args", str(tmp_path / "nan.npz"), "--json")
    assert result.exit_code == 3
    assert len(json.loads(result.stdout)["not_finite"]) == len(plan.outputs)
    write(tmp_path / "wrong.npz", {"0": np.zeros((3, 3), "f")})
    wrong = run("run", "one.plan", "--args", str(tmp_path / "wrong.npz"))
    assert "0 is float32[3, 3], the plan takes float32[32, 32]" in str(wrong.exception)
    write(tmp_path / "unknown.npz", {"weights[9]": np.zeros(3)})
    unknown = run("run", "one.plan", "--args", str(tmp_path / "unknown.npz"))
    assert "did you mean" in str(unknown.exception)


def test_what_only_runs_is_run_without_a_prediction(tmp_path: Path) -> None:
    alpa_runtime.save(alpa_runtime.load("one.plan"), tmp_path / "bare.plan")
    record = printed("run", str(tmp_path / "bare.plan"), "--steps", "1")
    assert (record["predicted_step_s"], record["ratio"], record["planned_for"]) == (None,) * 3


def test_methods_are_timed_side_by_side() -> None:
    record = printed("bench", "chained_steps:chain", "--batch", "16", "--methods", "shard,zero3",
                     "--cluster", "cpu:1x4", "--steps", "2")  # fmt: skip
    assert set(record) == {"schema", "model", "devices", "platform", "cluster", "rows"}
    assert [row["method"] for row in record["rows"]] == ["shard", "zero3"]
    first, second = record["rows"]
    assert set(first) == {
        *("method", "fits", "reason", "predicted_step_s", "measured_step_s", "step_s"),
        *("predicted_ratio", "measured_ratio"),
    }
    assert first["measured_ratio"] == first["predicted_ratio"] == 1.0
    expected = second["measured_step_s"] / first["measured_step_s"]
    assert second["measured_ratio"] == expected


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("explain", "none.plan", "x"), "no plan none.plan: write one by"),
        (("explain", "one.plan", "dot"), "is part of"),
        (("explain", "one.plan", "dott_general"), "the closest are"),
        (("explain", "one.plan", "layer:0"), "not cut into layers"),
        (("explain", "two.plan", "stage:9"), "there is no stage 9"),
        (("explain", "two.plan", "stage:-1"), "there is no stage -1, stages are 0 to"),
        (("explain", "two.plan", "layer:"), "layer: has no number behind the colon"),
        (("explain", "two.plan", "stage:0", "--stage", "1"), "got stage:0: leave it out"),
        (("explain", "two.plan", ""), "nothing is named"),
        (("explain", ".", "x"), ". is no regular file, must be that of a plan"),
        (("explain", "two.plan", "stages"), "--explain stages"),
        (("simulate", "one.plan", "--micro-batches", "2"), "nothing to order"),
        (("simulate", "two.plan", "--schedule", "fifo"), "schedule must be one of"),
        (("simulate", "two.plan", "--micro-batches", "0"), "must be at least 1"),
        (("simulate", "two.plan", "--schedule", ""), "--schedule is empty"),
        (("check", "one.plan", "--target", "h100", "--cache", "one.plan"), "--cache one.plan is a"),
        (("run", "one.plan", "--seed", "-1"), "--seed is -1, must be at least 0"),
        (("run", "one.plan", "--args", "none.npz"), "--args none.npz: there is no such file"),
        (("run", "one.plan", "--args", "chained_steps.py"), "must be an .npz file"),
        (("bench", "chained_steps:chain", "--layers", "2"), "--layers 2 is of methods that make"),
        (("bench", "chained_steps:chain", "--cluster", "none.toml"), "there is no such file"),
        (("check", "one.plan", "--target", "h10"), "did you mean 'h100'"),
        (("run", "one.plan", "--steps", "0"), "--steps is 0"),
        (("run", "step.mlir"), "is a module, no plan"),
        (("run", "two.plan", "--virtual-devices", "64"), "--virtual-devices is 64"),
        (("bench", "chained_steps:chain", "--methods", "zro3"), "did you mean 'zero3'"),
    ],
)
def test_bad_usage_names_what_would_do(arguments: tuple[str, ...], said: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, ValueError | OSError)
    assert said in str(result.exception)


def test_the_closest_names_are_different_ones() -> None:
    """Stages have operators of one name."""
    said = str(run("explain", "two.plan", "dott_general").exception)
    assert said.startswith("no operator and no module is named 'dott_general'")
    closest = said.rpartition("the closest are: ")[2].split(", ")
    assert len(closest) == len(set(closest)) > 1


def test_a_plan_that_is_priced_at_nothing_is_run_and_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    free = sa.parallelize(lambda: np.ones(8, "f"), cluster="cpu:1x4").plan()
    assert free.step_time_s == 0
    free.save(tmp_path / "free.plan")
    result = run("run", str(tmp_path / "free.plan"), "--steps", "1", "--virtual-devices", "4")
    assert "step 0 s (predicted for cpu)\n" in result.stdout
    pytest.importorskip("bokeh")
    shown = run("view", str(tmp_path / "free.plan"))
    assert shown.exit_code == 0, shown.exception
    assert "Nothing takes time." in (tmp_path / "free.html").read_text()
    assert not caplog.records


@pytest.mark.parametrize("command", ["explain", "simulate", "check", "run", "view"])
def test_damaged_files_are_named(command: str, tmp_path: Path) -> None:
    path = tmp_path / "torn.plan"
    path.write_bytes(Path("one.plan").read_bytes()[:-300])
    more = {"explain": ("x",), "check": ("--target", "h100")}.get(command, ())
    result = run(command, str(path), *more)
    assert isinstance(result.exception, sa.StablehloAlpaError)
    assert f"{path} is no plan, is damaged or cut short" in str(result.exception)


def test_the_compiler_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata

    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    result = run("check", "one.plan", "--target", "tpu-v5p")
    assert isinstance(result.exception, sa.WitnessError)
    assert "pip install 'stablehlo_alpa[tpu-check]'" in str(result.exception)


def test_json_of_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides have the keys that the page says, by a compiler's answer that stands in."""
    from stablehlo_alpa.cli.check import check_record
    from stablehlo_alpa.planning.checking import MeshCheck, PlanCheck, planned_claims
    from stablehlo_alpa.witness import TARGETS

    saved = sa.read_plan("two.plan")
    meshes = tuple(
        MeshCheck(planned_claims(saved, mesh), planned_claims(saved, mesh))
        for mesh in range(len(saved.runtime.meshes))
    )
    examination: Any = type("Examined", (), {"target": TARGETS["h100"]})()
    record = check_record(PlanCheck("chain", meshes, examination), ("jax==1",))
    assert set(record) == {"schema", "name", "target", "compiler", "meshes"}
    for mesh in record["meshes"]:
        assert mesh["planned"] == mesh["compiled"]
        assert set(mesh["planned"]) == {
            *("peak_bytes", "sent_bytes", "compute_s", "optimal_s", "collectives")
        }
    json.dumps(record)


def test_quiet_is_a_line() -> None:
    assert run("explain", "two.plan", "stage:0", "--quiet").stdout.count("\n") == 1
    assert run("simulate", "two.plan", "--quiet").stdout.count("\n") == 1
    assert jax.device_count() >= 4
    assert run("run", "one.plan", "--steps", "1", "--quiet").stdout.count("\n") == 1
