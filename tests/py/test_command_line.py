"""The command line: what it says, its JSON, its exit codes, and the examples of its page."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import webbrowser
from pathlib import Path
from typing import Any

import alpa_runtime
import jax
import jax.numpy as jnp
import pytest
from typer.testing import CliRunner, Result

import stablehlo_alpa as sa
from stablehlo_alpa import cli, zoo

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "command_line.md"
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)

FUNCTIONS = """
import jax, jax.numpy as jnp
import stablehlo_alpa

def regression(batch):
    def train(w, x, y):
        loss, slope = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
        return w - 0.1 * slope, loss
    f32 = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32)
    return train, (f32(64, 32), f32(batch, 64), f32(batch, 32))

def chain(batch):
    def loss(weights, x):
        for weight in weights:
            x = jnp.tanh(x @ weight)
        return jnp.mean(x**2)

    def train(weights, x):
        value, slopes = stablehlo_alpa.value_and_grad(loss)(weights, x)
        return [w - 0.1 * s for w, s in zip(weights, slopes)], value
    f32 = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32)
    return train, ([f32(32, 32)] * 4, f32(batch, 32))

def wide(batch, width, depth=2):
    return None

def sized(**sizes):
    return stablehlo_alpa.zoo.gpt("tiny", **sizes)

def loose(batch):
    return lambda x: x, jax.ShapeDtypeStruct((batch,), jnp.float32)

def nothing():
    return None

numbers = 3
"""


def run(*arguments: str) -> Result:
    """A command in this process; errors are raised."""
    return CliRunner().invoke(cli.app, list(arguments), env={"COLUMNS": "200"})


def printed(*arguments: str) -> Any:
    """The JSON that a command prints."""
    result = run(*arguments, "--json")
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plans that the examples of the page read."""
    made = tmp_path_factory.mktemp("plans")
    (made / "my_steps.py").write_text(FUNCTIONS)
    gpt = ("gpt-tiny", "--cluster", "cpu:2x2", "--batch", "8")
    regression = ("my_steps:regression", "--cluster", "cpu:1x4", "--batch", "128")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        patch.syspath_prepend(str(made))
        for arguments in (
            (*gpt, "--method", "megatron:2x1x2", "--micro-batches", "4", "-o", "gpt.plan"),
            (*gpt, "--method", "zero3", "-o", "zero.plan"),
            (*regression, "-o", "regression.plan"),
        ):
            result = run("plan", *arguments, "--quiet")
            assert result.exit_code == 0, result.exception
    return made


@pytest.fixture
def folder(tmp_path: Path, plans: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the examples of the page are run: with plans, a module, and a file of functions."""

    def step(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ w)

    shapes = (jax.ShapeDtypeStruct((64, 64), jnp.float32),) * 2
    (tmp_path / "step.mlir").write_text(jax.jit(step).lower(*shapes).as_text())
    for path in plans.glob("*.*"):
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def examples() -> list[tuple[str, str]]:
    """Commands of the page, and what they print: dots stand for anything."""
    found = []
    for block in CONSOLE.findall(PAGE.read_text()):
        for part in block.split("$ stablehlo-alpa ")[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


@pytest.mark.whole
@pytest.mark.slow
@pytest.mark.parametrize(("command", "output"), examples(), ids=lambda text: text.split("\n")[0])
def test_examples_of_the_page_print_what_it_says(command: str, output: str, folder: Path) -> None:
    result = run(*shlex.split(command))
    if isinstance(result.exception, sa.WitnessError) and "not installed" in str(result.exception):
        pytest.skip(str(result.exception))
    assert result.exit_code in (0, 1), result.output
    # The width of a column follows from the numbers in it.
    words = [r"\s+".join(map(re.escape, part.split())) for part in output.split("...")]
    pattern = r".*".join(words)
    assert re.search(pattern, result.stdout, re.DOTALL), f"{result.stdout}\n{result.exception}"


@pytest.mark.slow
def test_a_plan_is_written_and_read(folder: Path) -> None:
    run("plan", "gpt-tiny", "--cluster", "cpu:1x4", "--batch", "8", "-o", "gpt.plan", "--quiet")
    assert alpa_runtime.load(folder / "gpt.plan").num_micro_batches == 1


@pytest.mark.slow
def test_a_plan_has_its_page_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    gpt = ("plan", "gpt-tiny", "--cluster", "cpu:1x4", "--batch", "8", "--quiet")
    run(*gpt, "--page", "page.html", "--open")
    assert opened == [(folder / "page.html").resolve().as_uri()]
    assert "gpt_tiny" in (folder / "page.html").read_text()
    run(*gpt, "--open")
    temporary = Path(opened[1].removeprefix("file://"))
    assert "<html" in temporary.read_text()
    temporary.unlink()


PLAN_KEYS = {"schema", "model", "cluster", "method", "fits", "reason", "planning_s"}
FOUND_KEYS = {
    "step_s",
    "flops_per_device_s",
    "peak_bytes",
    "micro_batches",
    "schedule",
    "gap",
    "stages",
    "communication",
    "remarks",
}


@pytest.mark.slow
def test_json_of_a_plan_is_the_plan() -> None:
    record = printed("plan", "llama-3-tiny", "--cluster", "cpu:1x8", "--batch", "16")
    assert set(record) == PLAN_KEYS | FOUND_KEYS
    assert record["schema"] == "stablehlo-alpa/plan/1"
    case = zoo.llama("tiny", batch=16, remat=True)
    plan = sa.parallelize(case.step, cluster="cpu:1x8", donate_argnums=0).plan(*case.args)
    assert record["step_s"] == plan.step_time_s
    assert record["peak_bytes"] == plan.peak_bytes
    assert record["model"]["parameters"] == case.parameters
    assert record["flops_per_device_s"] == case.flops_per_step / plan.step_time_s / 8
    assert record["stages"] == [
        {
            "layers": list(plan.stages[0].layers),
            "devices": list(range(8)),
            "mesh": dict(plan.mesh.axes),
            "seconds": record["stages"][0]["seconds"],
            "peak_bytes": plan.peak_bytes,
        }
    ]
    assert {one["kind"] for one in record["communication"]} <= {
        "all_reduce",
        "all_gather",
        "reduce_scatter",
        "all_to_all",
        "collective_permute",
    }


@pytest.mark.slow
def test_json_of_a_pipeline_has_its_stages() -> None:
    record = printed(
        *("plan", "gpt-tiny", "--cluster", "cpu:2x2", "--batch", "8", "--micro-batches", "2"),
        *("--method", "megatron:2x1x2"),
    )
    assert [stage["devices"] for stage in record["stages"]] == [[0, 1], [2, 3]]
    assert [stage["mesh"] for stage in record["stages"]] == [{"data": 1, "tensor": 2}] * 2
    assert record["micro_batches"] == 2
    assert record["method"].startswith("MegatronParallel(")


@pytest.mark.slow
def test_what_is_said_behind_megatron_is_planned() -> None:
    plan = ("plan", "gpt-tiny", "--cluster", "cpu:1x4", "--batch", "8", "--method")
    plain = printed(*plan, "megatron:2x2x1")
    lean = printed(*plan, "megatron:2x2x1+sequence+zero1")
    for text in ("sequence_parallel=True", "zero_1=True"):
        assert text in lean["method"]
        assert text not in plain["method"]
    assert lean["peak_bytes"] < plain["peak_bytes"]
    kinds = [{row["kind"] for row in one["communication"]} for one in (plain, lean)]
    assert "reduce_scatter" in kinds[1] - kinds[0]
    tight = run(*plan, "megatron:2x2x1+sequence", "--memory-budget", "9KB", "--json")
    assert isinstance(tight.exception, sa.InfeasibleError)
    assert str(tight.exception).endswith(
        'of MegatronParallel, zero_1=True, recompute="full" take less as well'
    )


@pytest.mark.slow
def test_json_says_what_does_not_fit() -> None:
    tight = ("plan", "gpt-tiny", "--cluster", "cpu:1x2", "--batch", "8", "--memory-budget", "9KB")
    result = run(*tight, "--json")
    record = json.loads(result.stdout)
    assert isinstance(result.exception, sa.InfeasibleError)
    assert set(record) == PLAN_KEYS
    assert record["fits"] is False
    assert record["reason"] == str(result.exception)


@pytest.mark.slow
def test_json_of_a_comparison_has_a_row_each() -> None:
    record = printed(
        *("compare", "gpt-tiny", "--methods", "shard,expert+zero3,megatron:2x2x2"),
        *("--clusters", "cpu:1x4", "--batch", "8,4"),
    )
    assert record["schema"] == "stablehlo-alpa/comparison/1"
    rows = [(row["asked_method"], row["model"]["batch"], row["fits"]) for row in record["rows"]]
    expected = [("shard", True), ("expert+zero3", None), ("megatron:2x2x2", None)]
    assert rows == [(name, batch, fits) for batch in (8, 4) for name, fits in expected]


def test_models_and_clusters_are_all_that_there_are() -> None:
    listed = printed("models")
    assert tuple(row["name"] for row in listed["models"]) == zoo.names()
    found = printed("clusters")
    for row in found["clusters"]:
        cluster = sa.ClusterSpec.preset(row["name"])
        assert (row["device"], row["hosts"]) == (cluster.device.name, cluster.num_hosts)


@pytest.mark.slow
def test_several_hosts_are_planned_as_a_pipeline_and_one_is_not() -> None:
    shared = ("plan", "gpt-tiny", "--batch", "8", "--micro-batches", "2")
    assert printed(*shared, "--cluster", "cpu:2x2")["method"].startswith("PipeshardParallel(")
    assert printed(*shared, "--cluster", "cpu:1x4")["method"].startswith("ShardParallel(")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("plan", "lama-3-8b", "--batch", "8"), "did you mean 'llama-3-8b'"),
        (("plan", "gpt-tiny", "--batch", "8", "--cluster", "p5.48xlarg:2"), "'p5.48xlarge'"),
        (("plan", "gpt-tiny", "--batch", "8", "--method", "zro3"), "did you mean 'zero3'"),
        (("plan", "gpt-tiny", "--batch", "8", "--method", "zero3:2"), "takes no sizes"),
        (("plan", "gpt-tiny", "--batch", "8", "--method", "megatron:2"), "tensor, data and pipe"),
        (("plan", "gpt-tiny", "--batch", "8", "--method", "data+full"), "no options behind a plus"),
        (("plan", "moe-tiny", "--batch", "8", "--method", "expert+zero2"), "expert takes +zero1,"),
        (
            ("plan", "gpt-tiny", "--batch", "8", "--method", "megatron:2x2x2+zero"),
            "got +zero, did you mean 'zero1'",
        ),
        (("plan", "gpt-tiny", "--batch", "8", "--schedule", "gpipe"), "is of pipeshard"),
        (
            ("plan", "gpt-tiny", "--batch", "8", "--method", "pipeshard", "--schedule", "fifo"),
            "got 'fifo'",
        ),
        (
            (
                *("plan", "gpt-tiny", "--batch", "8", "--method", "pipeshard"),
                *("--micro-batches", "4", "--schedule", "pipedream_2bw"),
            ),
            "behind a colon, such as pipedream_2bw:4",
        ),
        (("plan", "gpt-tiny"), "needs --batch"),
        (("plan", "gpt-tiny", "--batch", "8", "--image", "8"), "has no image, it has batch"),
        (("plan", "gpt-tiny", "--batch", "8", "--mesh", "2y4"), "joined by x"),
        (("plan", "nowhere.mlir"), "no file nowhere.mlir"),
        (("plan", "step.mlir", "--batch", "8"), "leave --batch out"),
        (("plan", "step.mlir", "--method", "zero3"), "does not say which inputs are state"),
        (("plan", "my_steps:regresion"), "no function my_steps:regresion"),
        (("plan", "my_steps:regression", "--sequence", "8"), "leave --sequence out"),
        (("plan", "my_steps:regression"), "my_steps:regression needs --batch"),
        (("plan", "my_steps:wide", "--batch", "8"), "takes width, which no option says"),
        (("plan", "my_steps:loose", "--batch", "8"), "the tuple of its arguments"),
        (("plan", "my_steps:numbers"), "is a int, must be a function"),
        (("plan", "./my_steps:chain", "--batch", "8"), "'./my_steps' is no module"),
        (("plan", "./my_steps.py"), "say which, as my_steps.py:FUNCTION"),
        (("plan", "no/my_steps.py:chain"), "no file no/my_steps.py"),
        (("plan", "gpt.plan"), "gpt.plan is a plan, no module"),
        (("module", "gpt-tiny"), "no file gpt-tiny"),
        (("calibrate", "-o", "x.toml", "--max-spread", "0"), "--max-spread is 0.0, must be more"),
        (("module", "gpt.plan"), "gpt.plan is a plan, no module"),
        (("plan", "my_steps:nothing"), "returned NoneType"),
        (("plan", "gpt-tiny", "-o", "no/x.plan"), "--output no/x.plan: there is no folder no"),
        (("plan", "gpt-tiny", "-o", "step.mlir/x"), "step.mlir is a file, must be a folder"),
        (("plan", "gpt-tiny", "-o", "."), "--output . is a folder, must be a file"),
        (("plan", "step.mlir", "-o", "step.mlir"), "must be a file of its own"),
        (("plan", "gpt-tiny", "--page", "no/x.html"), "--page no/x.html: there is no folder no"),
        (("plan", "gpt-tiny", "-o", "x.plan", "--page", "x.plan"), "--page x.plan is read or"),
        (("view", "gpt.plan", "-o", "no/x.html"), "--output no/x.html: there is no folder no"),
        (("view", "gpt.plan", "-o", "gpt.plan"), "must be a file of its own"),
        (("simulate", "gpt.plan", "--trace", "gpt.plan"), "--trace gpt.plan is read or written"),
        (("calibrate", "-o", "no/x.toml"), "--output no/x.toml: there is no folder no"),
        (("compare", "gpt-tiny", "--methods", "dta", "--clusters", "cpu:1x2"), "'data'"),
        (
            ("compare", "gpt-tiny", "--methods", "data", "--clusters", "cpu", "--batch", "8,a"),
            "--batch is '8,a', must be numbers of at least 1",
        ),
        (("view", "none.plan"), "no plan none.plan: write one by"),
        (("view", "gpt.plan", "--trace", "none.json"), "--trace none.json: there is no such file"),
    ],
)
def test_bad_usage_names_what_would_do(arguments: tuple[str, ...], said: str, folder: Path) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, ValueError | OSError)
    assert said in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--method", "shard", "--layers", "3"), "--layers 3 is of methods that make stages"),
        (("--method", "megatron:2x2x1", "--layers", "3"), "--layers 3 is of methods that make"),
        (("--method", "megatron:1x1x4", "--layers", "2"), "--layers is 2, must be at least the 4"),
        (("--method", "pipeshard", "--layers", "-3"), "--layers is -3, must be at least 1"),
        (("--method", "pipeshard", "--mesh", "2x2"), "the method is pipeshard: say --mesh 4"),
        (("--method", "megatron", "--mesh", "2x2"), "the method is megatron: say --mesh 4"),
        (("--method", "shard:"), "takes no sizes, got ''"),
        (("--method", "megatron:x"), "got 'x'"),
        (("--method", "megatron:2x0x2"), "got '2x0x2'"),
        (("--device", "h100-80gb", "--hosts", "3"), "leave --device, --hosts out"),
        (("--mesh", "-2x-2"), "--mesh is '-2x-2', must be sizes of at least 1"),
        (("--mesh", ""), "--mesh is '', must be sizes"),
        (("--hosts", "0"), "--hosts is 0, must be at least 1"),
        (("--sequence", "0"), "--sequence is 0, must be at least 1"),
        (("--image", "0"), "--image is 0, must be at least 1"),
        (("--micro-batches", "0"), "--micro-batches is 0, must be at least 1"),
        (("--trip-count-hint", "0"), "--trip-count-hint is 0, must be at least 1"),
        (("--cluster", "none.toml"), "there is no such file, `stablehlo-alpa calibrate -o none."),
        (("--explain", "layer:x"), "layer:x has no number behind the colon, as layer:3 has"),
        (("--explain", ""), "nothing is named"),
        (("--explain", "stage:0", "--json"), "leave one out"),
    ],
)
def test_options_that_say_nothing_of_a_plan_are_refused(
    arguments: tuple[str, ...], said: str, folder: Path
) -> None:
    result = run("plan", "gpt-tiny", "--batch", "8", "--cluster", "cpu:1x4", *arguments)
    assert isinstance(result.exception, ValueError | OSError)
    assert said in str(result.exception)


def test_layers_are_of_one_method_among_several(folder: Path) -> None:
    compared = ("compare", "my_steps:chain", "--batch", "16", "--layers", "2", "--methods")
    place = ("--clusters", "cpu:1x2", "--micro-batches", "2")
    refused = run(*compared, "shard,data", *place)
    assert "got shard, data: leave it out" in str(refused.exception)
    rows = printed(*compared, "shard,pipeshard", *place)["rows"]
    assert [row["fits"] for row in rows] == [True, True]


def test_functions_are_found_in_files(tmp_path: Path) -> None:
    steps = tmp_path / "steps"
    steps.mkdir()
    (steps / "sizes_of_steps.py").write_text("WIDTH = 8\n")
    (steps / "made.py").write_text(
        "from __future__ import annotations\n"
        "import dataclasses, jax\n"
        "from sizes_of_steps import WIDTH\n"
        "@dataclasses.dataclass\n"
        "class Size:\n"
        "    width: int = WIDTH\n"
        "def twice(**sizes):\n"
        "    x = jax.ShapeDtypeStruct((sizes['batch'], Size().width), 'float32')\n"
        "    return lambda x: 2 * x, (x,)\n"
    )
    place = ("--batch", "4", "--cluster", "cpu:1x2", "--quiet")
    result = run("plan", f"{steps / 'made.py'}:twice", *place)
    assert result.exit_code == 0, result.exception
    assert result.stdout.startswith("plan of ")


@pytest.mark.parametrize("columns", [60, 200])
def test_rows_that_a_terminal_has_no_room_for_are_blocks(columns: int, folder: Path) -> None:
    methods = ("data", "megatron:2x2x2")
    place = ("--clusters", "cpu:1x4", "--batch", "128")
    result = CliRunner().invoke(
        cli.app,
        ["compare", "my_steps:regression", "--methods", ",".join(methods), *place],
        env={"COLUMNS": str(columns), "FORCE_COLOR": "1"},
    )
    assert result.exit_code == 0, result.exception
    lines = re.sub(r"\x1b\[[0-9;]*m", "", result.stdout).splitlines()
    assert max(map(len, lines)) <= columns
    for word in (*methods, "cpu:1x4", "refused: tensor=2"):
        assert any(word in line for line in lines), lines
    is_row = [methods[1] in line and "cpu:1x4" in line for line in lines]
    assert any(is_row) == (columns == 200)


def test_what_may_not_be_written_is_said_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, kept = folder / "closed", folder / "kept.plan"
    closed.mkdir()
    kept.touch()

    def access(path: Path, mode: int) -> bool:
        """Root may write what nobody else may."""
        return not mode & os.W_OK or Path(path).name not in ("closed", "kept.plan")

    monkeypatch.setattr(os, "access", access)
    for path in (closed / "x.plan", kept):
        result = run("plan", "gpt-tiny", "-o", str(path))
        assert isinstance(result.exception, ValueError)
        assert f"--output {path}" in str(result.exception)


def test_a_module_that_is_no_text_is_named(folder: Path) -> None:
    (folder / "binary.mlir").write_bytes(b"\xff\xfe")
    result = run("plan", "binary.mlir")
    assert isinstance(result.exception, sa.TraceError)
    assert "binary.mlir is no text" in str(result.exception)


def ended(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'runtime'}"}
    command = [sys.executable, "-m", "stablehlo_alpa.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.slow
def test_exit_codes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def ended_here(*arguments: str) -> tuple[Any, str]:
        monkeypatch.setattr(sys, "argv", ["stablehlo-alpa", *arguments])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        return caught.value.code, capsys.readouterr().err

    small = ("plan", "gpt-tiny", "--cluster", "cpu:1x2", "--batch", "8")
    found = ended(*small, "--quiet")
    assert (found.returncode, found.stderr) == (0, "")
    tight = ended(*small, "--memory-budget", "9KB")
    assert (tight.returncode, tight.stdout) == (1, "")
    assert tight.stderr.startswith("error: ")
    code, said = ended_here("plan", "gpt-38b", "--batch", "8")
    assert code == 2
    assert said.count("\n") == 1
    assert ended_here("plan")[0] == 2
    compared = ("compare", "gpt-tiny", "--clusters", "cpu:1x2", "--batch", "8")
    assert ended_here(*compared, "--methods", "expert")[0] == 1


def test_the_shell_completes_names() -> None:
    result = CliRunner().invoke(
        cli.app,
        [],
        env={
            "_STABLEHLO_ALPA_COMPLETE": "complete_bash",
            "COMP_WORDS": "stablehlo-alpa plan llama-3-4",
            "COMP_CWORD": "2",
        },
        prog_name="stablehlo-alpa",
    )
    assert result.output.split() == ["llama-3-405b"]


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "is_slow"), [("bfloat16", True), ("float16", False)])
def test_products_in_a_type_that_a_device_has_no_units_for_are_remarked_on(
    dtype: str, is_slow: bool
) -> None:
    """A V100 multiplies f16 eight times as fast as bf16."""
    model = ("plan", "gpt-tiny", "--batch", "16", "--dtype", dtype, "--cluster", "p3.16xlarge:1")
    assert printed(*model)["model"]["dtype"] == dtype
    said = run(*model).output
    assert ("v100-16gb" in said and "in f16 it does 125" in " ".join(said.split())) == is_slow
