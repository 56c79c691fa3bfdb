"""Plans that are made with a store are those that are made without."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparing import assert_equals_jit
from graphs import random_priced
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import stablehlo_alpa as sa
from stablehlo_alpa import cli, zoo
from stablehlo_alpa.cli.store_options import find_store
from stablehlo_alpa.cli.usage import UsageError
from stablehlo_alpa.errors import InfeasibleError
from stablehlo_alpa.frontend import KernelRule, rules
from stablehlo_alpa.intra_op import MemoryModel, solve
from stablehlo_alpa.planning import Plan
from stablehlo_alpa.store import OFF, Store, recipe_of
from stablehlo_alpa.zoo.catalogue import Entry

WIDTH, LAYERS = 64, 3


def loss(weights: Any, batch: jax.Array) -> jax.Array:
    x = batch
    for weight in weights:
        x = x + jnp.tanh(x @ weight) @ weight.T
    return jnp.mean(x**2)


def step(weights: Any, batch: jax.Array) -> tuple[Any, jax.Array]:
    value, gradients = sa.value_and_grad(loss)(weights, batch)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), value


def arguments(batch: int, width: int = WIDTH) -> Any:
    weight = jax.ShapeDtypeStruct((width, 4 * width), jnp.float32)
    return [weight] * LAYERS, jax.ShapeDtypeStruct((batch, width), jnp.float32)


def assert_same(one: Plan, two: Plan) -> None:
    assert one.runtime == two.runtime
    assert one.step_time_s == two.step_time_s
    assert [cost.time_s for cost in one.costs] == [cost.time_s for cost in two.costs]
    assert [cost.inside_bytes for cost in one.costs] == [cost.inside_bytes for cost in two.costs]
    assert one.remarks == two.remarks
    assert one.bracket == two.bracket
    assert str(one) == str(two)
    for first, second in zip(one.stages, two.stages, strict=True):
        assert np.array_equal(first.solution.choice, second.solution.choice)
        assert first.solution.gap == second.solution.gap
        assert first.texts == second.texts
        assert first.priced.graph.node_name == second.priced.graph.node_name


def planned(
    store: Any, batch: int, cluster: str, method: Any, fun: Any = step, width: int = WIDTH
) -> Plan | InfeasibleError:
    parallelized = sa.parallelize(fun, method=method, cluster=cluster, store=store)
    try:
        return parallelized.plan(*arguments(batch, width))
    except InfeasibleError as error:
        return error


def assert_plans_are_kept(store: Store, *question: Any) -> None:
    """A question asked without the store, with it, and of it."""
    plain = planned(False, *question)
    for _ in range(2):
        found = planned(Store(store.folder, worth_s=0.0), *question)
        if isinstance(plain, InfeasibleError):
            assert isinstance(found, InfeasibleError)
            assert str(found) == str(plain)
            assert found.needed_bytes == plain.needed_bytes
        else:
            assert isinstance(found, Plan)
            assert_same(found, plain)


def several_stages() -> tuple[Any, ...]:
    """A question whose plan has several stages, as the link between the hosts is slow."""
    method = sa.PipeshardParallel(
        num_micro_batches=4,
        schedule="1f1b",
        layers=sa.AutoLayers(num_layers=LAYERS, remat=False),
    )
    return 64, "p3.16xlarge:2x2", method, step, 1024


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Any, Plan]:
    """A store with all that a question needs, the question and its plan without a store."""
    store, question = Store(tmp_path_factory.mktemp("filled"), worth_s=0.0), several_stages()
    planned(store, *question)
    plain = planned(False, *question)
    assert isinstance(plain, Plan)
    assert len(plain.stages) > 1
    return store, question, plain


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One for all questions, so that what one has kept is there for all others."""
    return Store(tmp_path_factory.mktemp("store"), worth_s=0.0)


PIPELINES = st.builds(
    sa.PipeshardParallel,
    num_micro_batches=st.sampled_from([2, 4]),
    schedule=st.sampled_from(["1f1b", "gpipe", "zero_bubble"]),
    layers=st.builds(
        sa.AutoLayers, num_layers=st.just(LAYERS), remat=st.sampled_from([False, True])
    ),
    memory_budget=st.sampled_from([None, 600_000, 250_000, 1_000]),
)


QUESTIONS = given(
    st.sampled_from([32, 64]), st.sampled_from(["p3.16xlarge:1x2", "p3.16xlarge:2x2"]), PIPELINES
)


@pytest.mark.slow
@settings(max_examples=3, deadline=None, derandomize=True)
@QUESTIONS
def test_pipelines_are_the_same(shared: Store, batch: int, cluster: str, method: Any) -> None:
    assert_plans_are_kept(shared, batch, cluster, method)


@pytest.mark.matrix
@settings(max_examples=6, deadline=None, derandomize=True)
@QUESTIONS
def test_more_pipelines_are_the_same(shared: Store, batch: int, cluster: str, method: Any) -> None:
    assert_plans_are_kept(shared, batch, cluster, method)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_what_is_left_of_a_store_changes_no_plan(
    filled: tuple[Store, Any, Plan], seed: int
) -> None:
    """Entries that are gone, cut short or changed are made anew, whichever others are there."""
    store, question, plain = filled
    assert store.folder is not None
    rng = np.random.default_rng(seed)
    for path in sorted(store.folder.rglob("*.entry")):
        content = bytearray(path.read_bytes())
        at = int(rng.integers(len(content)))
        match rng.choice(["whole", "whole", "gone", "short", "changed"]):
            case "gone":
                path.unlink()
            case "short":
                path.write_bytes(content[:at])
            case "changed":
                content[at] ^= 1
                path.write_bytes(content)
    found = planned(Store(store.folder, worth_s=0.0), *question)
    assert isinstance(found, Plan)
    assert_same(found, plain)
    again = Store(store.folder, worth_s=0.0)
    planned(again, *question)
    assert again.asked[1] == 0


PLANNER = """
import sys
from pathlib import Path
import test_kept_plans as kept
from stablehlo_alpa.store import Store
store = Store(Path(sys.argv[1]), worth_s=0.0)
print("begins", flush=True)
print(kept.planned(store, *kept.several_stages())
      .step_time_s.hex())
"""


@pytest.mark.slow
def test_processes_that_plan_beside_each_other_and_are_killed_find_the_same(
    tmp_path: Path,
) -> None:
    """One of three is killed while it fills the store, the others find what all find."""
    command = [sys.executable, "-c", PLANNER, str(tmp_path)]
    here = Path(__file__).resolve().parent
    paths = [here, here.parents[1], here.parents[1] / "runtime"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    killed, *others = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert killed.stdout is not None
    assert killed.stdout.readline() == "begins\n"
    while not list(tmp_path.rglob("*.entry")) and killed.poll() is None:
        time.sleep(0.01)
    killed.kill()
    killed.communicate()
    answers = [one.communicate()[0].split()[-1] for one in others]
    plain = planned(False, *several_stages())
    assert isinstance(plain, Plan)
    assert answers == [plain.step_time_s.hex()] * 2
    found = planned(Store(tmp_path, worth_s=0.0), *several_stages())
    assert isinstance(found, Plan)
    assert_same(found, plain)


@pytest.mark.parametrize(
    ("batch", "cluster", "budget"),
    [
        (32, "p3.16xlarge:1x2", None),
        (32, "p5.48xlarge:1x2", None),
        (63, "p3.16xlarge:1x2", None),
        (32, "p3.16xlarge:1x2", 600_000),
    ],
)
def test_plans_of_one_mesh_are_the_same(
    shared: Store, batch: int, cluster: str, budget: int | None
) -> None:
    method = sa.ShardParallel(memory_budget=budget, num_micro_batches=1)
    assert_plans_are_kept(shared, batch, cluster, method)


@pytest.mark.parametrize("seed", range(5))
def test_a_solution_is_of_what_its_operators_gather(seed: int, tmp_path: Path) -> None:
    """Programmes that differ in nothing else are not each other's."""
    store = Store(tmp_path)
    gathers = random_priced(seed, values=6, points=9)
    graph = gathers.graph
    assert graph.copy_bytes.any()
    bare = dataclasses.replace(graph, copy_bytes=np.zeros_like(graph.copy_bytes))
    for priced in (gathers, dataclasses.replace(gathers, graph=bare)):
        found = [solve(priced, store=store) for _ in range(2)]
        peak, _ = MemoryModel.of(priced.graph).peak(found[0].choice)
        assert [one.memory_peak_bytes for one in found] == [peak, peak]
    assert store.asked[0] == 2


def test_another_function_of_the_same_shapes_is_another_plan(shared: Store) -> None:
    def other_loss(weights: Any, batch: jax.Array) -> jax.Array:
        x = batch
        for weight in weights:
            x = jnp.tanh(x @ weight) @ weight.T
        return jnp.mean(x**2)

    def other(weights: Any, batch: jax.Array) -> tuple[Any, jax.Array]:
        value, gradients = sa.value_and_grad(other_loss)(weights, batch)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), value

    method = sa.PipeshardParallel(num_micro_batches=2, schedule="1f1b")
    question = (32, "p3.16xlarge:1x2", method)
    assert_plans_are_kept(shared, *question)
    assert_plans_are_kept(shared, *question, other)


@pytest.mark.slow
def test_what_a_plan_from_the_store_computes_is_what_jit_computes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weights = [rng.normal(0, 0.1, (WIDTH, 4 * WIDTH)).astype("f") for _ in range(LAYERS)]
    batch = rng.normal(size=(16, WIDTH)).astype("f")
    method = sa.PipeshardParallel(num_micro_batches=2, schedule="1f1b")
    for _ in range(2):
        kept = Store(tmp_path, worth_s=0.0)
        parallelized = sa.parallelize(step, method=method, devices=jax.devices()[:2], store=kept)
        found = parallelized(weights, jnp.asarray(batch))
        assert_equals_jit(found, jax.jit(step)(weights, batch))
    hits, misses = kept.asked
    assert hits > 5
    assert misses == 0


def test_a_second_question_is_answered_by_the_first(tmp_path: Path) -> None:
    """Of the same question nothing is missing; of others most is there."""
    method = sa.PipeshardParallel(num_micro_batches=2, schedule="1f1b")
    planned(Store(tmp_path, worth_s=0.0), 32, "p3.16xlarge:2x2", method)
    changed = sa.PipeshardParallel(num_micro_batches=2, schedule="1f1b", memory_budget=1 << 30)
    for question, most in (
        ((32, "p3.16xlarge:2x2", method), 0.0),
        ((32, "p3.16xlarge:1x2", method), 0.5),
        ((32, "p3.16xlarge:2x2", changed), 0.2),
    ):
        again = Store(tmp_path, worth_s=0.0)
        planned(again, *question)
        hits, misses = again.asked
        assert misses <= most * (hits + misses), question


@pytest.mark.slow
def test_models_of_the_zoo_need_not_be_traced_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan(entry: Entry, batch: int) -> Plan:
        case = entry.case(batch=batch)
        kept = Store(tmp_path, worth_s=0.0)
        parallelized = sa.parallelize(
            case.step, cluster="cpu:1x2", donate_argnums=case.donate_argnums, store=kept
        )
        return parallelized.plan(*case.args)

    entry = zoo.find("gpt-tiny")
    first = plan(entry, 8)
    other = plan(entry, 4)
    assert other.program.inputs != first.program.inputs

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("it was traced")

    from stablehlo_alpa.api import tracing

    monkeypatch.setattr(tracing, "trace_function", fail)
    again = plan(entry, 8)
    assert_same(first, again)
    for name in ("inputs", "outputs", "in_tree", "out_tree", "aliases", "batch", "donated", "text"):
        assert getattr(again.program, name) == getattr(first.program, name)
    with pytest.raises(AssertionError, match="traced"):
        plan(entry, 16)
    # A custom call of the model could have a rule now.
    other_rule = {"other": KernelRule.parse("other", "i -> i")}
    monkeypatch.setattr(rules, "_registered", {**rules.registered_rules(), **other_rule})
    with pytest.raises(AssertionError, match="traced"):
        plan(entry, 8)


def test_functions_do_not_say_what_they_are_made_of() -> None:
    assert recipe_of(step) is None
    one, other = (zoo.find("gpt-tiny").case(batch=batch).step for batch in (4, 8))
    assert recipe_of(one) != recipe_of(other)


def test_switched_off_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("STABLEHLO_ALPA_STORE")
    planned(False, 32, "p3.16xlarge:1x2", sa.ShardParallel())
    assert list(tmp_path.iterdir()) == []
    planned(True, 32, "p3.16xlarge:1x2", sa.ShardParallel())
    assert [one.name for one in tmp_path.iterdir()] == ["stablehlo_alpa"]


@pytest.mark.slow
def test_the_command_line_keeps_what_it_computes(tmp_path: Path) -> None:
    asked = ["plan", "gpt-tiny", "--cluster", "cpu:1x2", "--batch", "8", "--quiet"]
    folder = tmp_path / "store"

    def run(*options: str) -> str:
        result = CliRunner().invoke(cli.app, [*asked, *options])
        assert result.exit_code == 0, result.output
        return result.stdout

    plain = run("--no-store")
    assert not folder.exists()
    assert run("--store", str(folder)) == plain
    kept = sorted(folder.rglob("*.entry"))
    assert kept
    assert run("--store", str(folder)) == plain
    assert sorted(folder.rglob("*.entry")) == kept


def test_the_command_line_refuses_stores_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file, must be a folder"):
        find_store(tmp_path / "file", False)
    with pytest.raises(UsageError, match="contradict each other"):
        find_store(tmp_path, True)
    assert find_store(None, True) is OFF
    assert find_store(tmp_path / "new", False).folder == tmp_path / "new"
