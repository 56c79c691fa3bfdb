"""Pipelines equal the step on the whole batch: models, stages, submeshes, schedules."""

from __future__ import annotations

import gc
import importlib
import itertools
import json
import math
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from alpa_runtime import RuntimeOptions
from alpa_runtime.plan import Run, Send
from models.case import TrainCase
from test_models import STEPS, assert_trees_close

import stablehlo_alpa
from stablehlo_alpa import (
    AutoLayers,
    AutoStages,
    FollowModuleLayers,
    ManualStages,
    PipeshardParallel,
    UniformStages,
)
from stablehlo_alpa.cluster import ClusterSpec, preset_for
from stablehlo_alpa.errors import CompileError, InfeasibleError, MeshError, StageError
from stablehlo_alpa.frontend import trace
from stablehlo_alpa.inter_op import PipelineOptions, plan_pipeline
from stablehlo_alpa.layers import layer_context

UNEQUAL = ManualStages(layers=(1, 1, 2), submeshes=((1, 2), (1, 2), (1, 4)))


@dataclass(frozen=True)
class Pipeline:
    """One comparison: a model of the zoo under a pipeline.

    Attributes:
        is_independent: whether micro-batches are batches of their own, as statistics of a batch
            need them; then it equals a plain loop over them instead of the whole batch.
    """

    model: str
    num_micro_batches: int
    stages: Any
    schedule: str = "1f1b"
    options: dict[str, Any] = field(default_factory=dict)
    method: dict[str, Any] = field(default_factory=dict)
    is_independent: bool = False

    @property
    def id(self) -> str:
        """A readable test id."""
        match self.stages:
            case UniformStages():
                stages = f"{self.stages.num_stages}-stages"
            case ManualStages():
                stages = "+".join("x".join(map(str, mesh)) for mesh in self.stages.submeshes)
            case _:
                stages = "auto"
        options = [f"{name}={value}" for name, value in self.options.items()]
        count = f"{self.num_micro_batches}-micro-batches"
        return "-".join([self.model, stages, count, self.schedule, *options])


TWO, FOUR = UniformStages(2), UniformStages(4)

QUICK = [
    Pipeline("mlp", 2, TWO),
    Pipeline("mlp", 4, UNEQUAL, "zero_bubble"),
    Pipeline("mlp", 4, UniformStages(4, (4,)), "interleaved", {}, {"num_chunks": 2}),
]

SLOW = [
    Pipeline(
        "gpt", 2, TWO, options={"dropout": 0.0}, method={"layers": FollowModuleLayers(remat=True)}
    ),
    Pipeline("moe", 2, TWO, "gpipe"),
    Pipeline("wide_resnet", 2, TWO, is_independent=True),
]

MATRIX = [
    Pipeline("encoder_decoder", 2, TWO, "zero_bubble"),
    Pipeline("mlp", 1, FOUR, "gpipe"),
    Pipeline("gpt", 8, FOUR, "zero_bubble", {"layers": 4}),
    Pipeline("gpt", 2, UNEQUAL, "gpipe", {"dropout": 0.0}),
    Pipeline("gpt", 2, FOUR, "1f1b", {"layers": 4, "is_scanned": True}),
    Pipeline("moe", 1, FOUR),
    Pipeline("wide_resnet", 2, FOUR, is_independent=True),
    Pipeline("encoder_decoder", 2, FOUR, "zero_bubble"),
    Pipeline("unet", 2, FOUR),
    Pipeline("gpt", 4, UniformStages(4, (4,)), "interleaved", {"layers": 4}, {"num_chunks": 2}),
    Pipeline("llama", 4, UniformStages(4, (4,)), "interleaved", {"layers": 4}, {"num_chunks": 2}),
]


def make_case(pipeline: Pipeline) -> TrainCase:
    module = importlib.import_module(f"models.{pipeline.model}")
    return module.make(with_gradients=True, **pipeline.options)


def parallel_step(case: TrainCase, pipeline: Pipeline, cluster: Any = None) -> Any:
    method = {"layers": AutoLayers(num_layers=4), **pipeline.method}
    return stablehlo_alpa.parallelize(
        case.step,
        method=PipeshardParallel(
            num_micro_batches=pipeline.num_micro_batches,
            stages=pipeline.stages,
            schedule=pipeline.schedule,
            micro_batches="independent" if pipeline.is_independent else "shards",
            **method,
        ),
        cluster=cluster,
        donate_argnums=0,
    )


def train(step: Any, case: TrainCase) -> tuple[Any, Any]:
    """The state and the metrics of every step."""
    state, metrics = jax.tree.map(jax.numpy.array, case.state), []
    for number in range(STEPS):
        state, found = step(state, case.batch, jax.random.fold_in(case.rng, number))
        metrics.append(found)
    return state, metrics


def oracle(case: TrainCase, pipeline: Pipeline) -> Any:
    """The step as the user wrote it; a loop over micro-batches only where the user asks for one."""
    return case.accumulated(pipeline.num_micro_batches) if pipeline.is_independent else case.step


def compare(pipeline: Pipeline) -> None:
    case = make_case(pipeline)
    state, metrics = train(parallel_step(case, pipeline), case)
    expected_state, expected = train(jax.jit(oracle(case, pipeline)), case)
    for step in range(STEPS):
        assert_trees_close(metrics[step]["loss"], expected[step]["loss"], 1e-5, "loss")
    assert_trees_close(metrics[0]["gradients"], expected[0]["gradients"], 1e-5, "gradients")
    # Adam divides by the root of squares that it adds up: gradients that nearly cancel count too.
    assert_trees_close(state, expected_state, 2e-4, "state")


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", QUICK, ids=lambda pipeline: pipeline.id)
def test_pipeline_equals_the_whole_batch(pipeline: Pipeline) -> None:
    compare(pipeline)


@pytest.mark.slow
@pytest.mark.parametrize(
    "pipeline",
    [pytest.param(pipeline, id=pipeline.id) for pipeline in SLOW]
    + [pytest.param(one, id=one.id, marks=pytest.mark.matrix) for one in MATRIX],
)
def test_models_equal_the_whole_batch(pipeline: Pipeline) -> None:
    compare(pipeline)


@pytest.mark.slow
def test_schedules_give_the_same_bits() -> None:
    results = []
    for schedule in ("gpipe", "1f1b", "zero_bubble"):
        pipeline = Pipeline("mlp", 4, TWO, schedule)
        case = make_case(pipeline)
        results.append(train(parallel_step(case, pipeline), case))
    for other in results[1:]:
        for a, b in zip(jax.tree.leaves(results[0]), jax.tree.leaves(other), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_state_is_made_where_it_is_kept() -> None:
    pipeline = Pipeline("mlp", 2, TWO)
    case = make_case(pipeline)
    step = parallel_step(case, pipeline)
    state = step.create_state(lambda: case.state, batch=(case.batch, case.rng))
    meshes = {leaf.sharding.mesh for leaf in jax.tree.leaves(state)}
    assert len(meshes) == 2
    assert all(len(mesh.devices.flat) == 4 for mesh in meshes)
    before = jax.tree.leaves(state)
    after, _ = step(state, case.batch, case.rng)
    # Parameters and optimiser state are donated: what they were is gone, and stays on its mesh.
    large = [leaf for leaf in before if leaf.size > 1]
    assert all(leaf.is_deleted() for leaf in large)
    for old, new in zip(before, jax.tree.leaves(after), strict=True):
        assert new.sharding == old.sharding


def test_a_parallelised_function_makes_state_where_it_is_kept() -> None:
    step = parallel_mlp(stablehlo_alpa.grad(loss), num_micro_batches=2, stages=TWO)
    double = stablehlo_alpa.parallelize(lambda w: jax.tree.map(lambda leaf: 2 * leaf, w))
    state = step.create_state(double, WEIGHTS, batch=(BATCH,))
    assert_trees_close(state, jax.tree.map(lambda leaf: 2 * leaf, WEIGHTS), 0, "state")


@pytest.mark.slow
def test_many_steps_neither_stall_nor_grow() -> None:
    pipeline = Pipeline("mlp", 8, FOUR)
    case = make_case(pipeline)
    step = parallel_step(case, pipeline)
    state = case.state
    losses, arrays, resident = [], [], []
    # What earlier tests have left would be counted, and go at any time.
    gc.collect()
    for number in range(100):
        state, metrics = step(state, case.batch, case.rng)
        losses.append(float(metrics["loss"]))
        if number % 25 == 24:
            arrays.append(len(jax.live_arrays()))
            resident.append(resident_bytes())
    assert losses[-1] < losses[0]
    assert len(set(arrays)) == 1
    # Allocators keep some room; a buffer per step that nobody frees would be more.
    assert resident[-1] - resident[0] < 8 * 2**20


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_numbers_and_schedules_are_searched() -> None:
    pipeline = Pipeline("mlp", 8, TWO)
    case = make_case(pipeline)
    method = PipeshardParallel(layers=AutoLayers(num_layers=4), stages=TWO)
    plan = stablehlo_alpa.parallelize(case.step, method=method).plan(*case.args)
    assert {one.num_micro_batches for one in plan.tried} >= {1, 2, 4, 8}
    assert {one.schedule for one in plan.tried} >= {"1f1b", "zero_bubble"}
    fastest = min(plan.tried, key=lambda one: one.step_time_s or math.inf)
    assert plan.step_time_s == fastest.step_time_s
    assert plan.runtime.num_micro_batches == fastest.num_micro_batches
    assert str(fastest) in str(plan)


def test_other_schedules_are_solved_no_better_than_a_choice_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the number of micro-batches is given, too: several schedules are compared."""
    # The package has a function of the module's name.
    sweep = sys.modules["stablehlo_alpa.inter_op.sweep"]
    plan_pipeline, trials = sweep.plan_pipeline, {}

    def plan(program: Any, options: Any, *args: Any) -> stablehlo_alpa.Plan:
        trials[str(options.schedule)] = options.is_trial
        return plan_pipeline(program, options, *args)

    monkeypatch.setattr(sweep, "plan_pipeline", plan)
    case = make_case(Pipeline("mlp", 8, TWO))
    method = PipeshardParallel(layers=AutoLayers(num_layers=4), stages=TWO, num_micro_batches=8)
    stablehlo_alpa.parallelize(case.step, method=method).plan(*case.args)
    assert not trials.pop("1f1b")
    assert "zero_bubble" in trials
    assert all(trials.values())


def test_the_search_leaves_out_what_does_not_fit() -> None:
    def plan(count: int | None, budget: float | None) -> Any:
        method = PipeshardParallel(
            num_micro_batches=count,
            layers=AutoLayers(num_layers=2),
            stages=UniformStages(2, (4,)),
            schedule="1f1b",
            memory_budget=budget,
        )
        step = stablehlo_alpa.parallelize(stablehlo_alpa.grad(loss), method=method)
        return step.plan(WEIGHTS, np.ones((256, 8), "f"))

    whole = plan(1, None)
    short = plan(None, 0.7 * max(whole.simulation.peak_bytes))
    assert short.runtime.num_micro_batches > 1
    assert short.tried[0].step_time_s is None
    assert "1 micro-batch, 1f1b: does not fit" in str(short)
    with pytest.raises(InfeasibleError):
        plan(None, 100)


def plan_squares(memory_budget: float | None, **options: Any) -> Any:
    """Gradients of four square layers on four devices, in eight micro-batches."""

    def loss(weights: Any, x: Any) -> jax.Array:
        for weight in weights:
            x = jax.numpy.tanh(x @ weight)
        return jax.numpy.mean(x**2)

    step = parallel_mlp(
        stablehlo_alpa.grad(loss),
        num_micro_batches=8,
        layers=AutoLayers(num_layers=4),
        memory_budget=memory_budget,
        **options,
    )
    return step.plan([np.ones((256, 256), "f")] * 4, np.ones((1024, 256), "f"))


def test_stages_of_one_mesh_share_its_memory() -> None:
    def plan(budget: float | None) -> Any:
        stages = UniformStages(4, (4,))
        return plan_squares(budget, stages=stages, schedule="interleaved", num_chunks=2)

    needed = max(plan(None).simulation.peak_bytes)
    for part in (0.8, 0.5):
        assert max(plan(part * needed).simulation.peak_bytes) <= part * needed


def test_a_stage_holds_what_was_counted() -> None:
    """With what its operators gather, and activations until the backward phase ends."""

    def plan(budget: float | None) -> Any:
        return plan_squares(budget, stages=UniformStages(2, (4,)), schedule="1f1b")

    needed = max(plan(None).simulation.peak_bytes)
    for part in (1.0, 0.8, 0.6):
        found = plan(part * needed)
        for held, stage in zip(found.simulation.peak_bytes, found.stages, strict=True):
            assert 0.9 * stage.solution.memory_peak_bytes <= held
            assert held <= stage.solution.memory_peak_bytes


@pytest.mark.slow
def test_parts_of_a_stacked_parameter_cross_once_per_step() -> None:
    """Layers that look theirs up: the first stage keeps the stack, the second gets its part."""

    def loss(stack: Any, batch: Any) -> jax.Array:
        x = batch
        for layer in range(len(stack)):
            x = jax.numpy.tanh(x @ stack[layer])
        return jax.numpy.mean(x**2)

    stack = np.stack([np.eye(32, dtype="f")] * 4)
    batch = np.random.default_rng(0).normal(size=(16, 32)).astype("f")

    def sent(count: int) -> int:
        """Elements that cross between the meshes in a step."""
        method = PipeshardParallel(
            num_micro_batches=count, layers=AutoLayers(num_layers=4), stages=TWO, schedule="1f1b"
        )
        step = stablehlo_alpa.parallelize(stablehlo_alpa.grad(loss), method=method)
        plan = step.plan(stack, batch).runtime
        np.testing.assert_allclose(
            step(stack, batch), jax.grad(loss)(stack, batch), rtol=1e-5, atol=1e-7
        )
        return sum(
            plan.reshardings[one.resharding].size
            for own in plan.instructions
            for one in own
            if isinstance(one, Send)
        )

    # Two layers there, their gradients back, activations and their gradients.
    expected = 2 * 2 * 32 * 32 + 2 * batch.size
    assert sent(1) == expected
    assert sent(4) == expected


@pytest.mark.slow
def test_the_search_finds_stages_that_train() -> None:
    compare(Pipeline("mlp", 8, AutoStages()))


def test_a_slow_link_is_crossed_by_a_pipeline() -> None:
    """On paper: large weights and a large batch on two hosts.

    Data parallelism would send all weights, tensor parallelism the activations of every layer; a
    pipeline sends those of one. Equal layers make equal stages.
    """

    def step(weights: Any, batch: Any) -> Any:
        gradients = stablehlo_alpa.grad(loss)(weights, batch)
        return jax.tree.map(lambda w, g: w - g, weights, gradients)

    weights = [jax.ShapeDtypeStruct((8192, 8192), np.float32)] * 4
    batch = jax.ShapeDtypeStruct((4096, 8192), np.float32)
    cluster = ClusterSpec(preset_for("v100-16gb"), 2, 1)
    with layer_context(AutoLayers(num_layers=4)):
        program = trace(step, (weights, batch), {})
    planned = plan_pipeline(program, PipelineOptions(cluster, AutoStages(), 16))
    assert [stage.submesh for stage in planned.stages] == [(1, 1), (1, 1)]
    assert [stage.layers for stage in planned.stages] == [(0, 1), (2, 3)]


# What cannot be cut.


def parallel_mlp(step: Any, **options: Any) -> Any:
    return stablehlo_alpa.parallelize(step, method=PipeshardParallel(**options))


WEIGHTS = [np.eye(8, dtype="f") for _ in range(4)]
BATCH = np.ones((8, 8), "f")


def loss(weights: Any, batch: Any) -> jax.Array:
    x = batch
    for weight in weights:
        x = jax.numpy.tanh(x @ weight)
    return jax.numpy.mean(x**2)


def test_a_batch_has_to_divide() -> None:
    step = parallel_mlp(stablehlo_alpa.grad(loss), num_micro_batches=3)
    with pytest.raises(
        CompileError, match=r"no argument can be cut into 3 micro-batches; .* batch 8"
    ):
        step.plan(WEIGHTS, BATCH)


def test_a_loss_is_a_scalar() -> None:
    def step(weights: Any, batch: Any) -> Any:
        return stablehlo_alpa.grad(lambda w: w[0] * batch)(weights)

    with pytest.raises(TypeError, match="scalar"):
        parallel_mlp(step, num_micro_batches=2, stages=TWO).plan(WEIGHTS, BATCH)


def test_the_whole_batch_is_there_behind_the_gradients() -> None:
    def step(weights: Any, batch: Any) -> Any:
        gradients = stablehlo_alpa.grad(loss)(weights, batch)
        return [w - g * batch.mean() for w, g in zip(weights, gradients, strict=True)]

    parallel = parallel_mlp(step, num_micro_batches=2, stages=TWO)
    assert_trees_close(parallel(WEIGHTS, BATCH), jax.jit(step)(WEIGHTS, BATCH), 1e-5, "weights")


def test_stages_have_layers() -> None:
    step = parallel_mlp(
        stablehlo_alpa.grad(loss),
        num_micro_batches=2,
        layers=AutoLayers(num_layers=2),
        stages=FOUR,
    )
    with pytest.raises(StageError, match=r"4 stages need .* has 2: pass UniformStages\(2\)"):
        step.plan(WEIGHTS, BATCH)


def test_a_model_of_fewer_operators_than_stages_names_the_most_that_devices_divide_into() -> None:
    """A linear regression: three operators, of which two stages of eight devices can be made."""

    def step(w: Any, x: Any, y: Any) -> Any:
        return w - 0.1 * stablehlo_alpa.grad(lambda w: jax.numpy.mean((x @ w - y) ** 2))(w)

    draw = np.random.default_rng(3)
    args = [draw.normal(size=size).astype("f") for size in ((8, 4), (16, 8), (16, 4))]

    def parallel(stages: int) -> Any:
        method = PipeshardParallel(num_micro_batches=2, stages=UniformStages(stages))
        return stablehlo_alpa.parallelize(step, method=method)

    with pytest.raises(StageError, match=r"8 stages need .* has 3: pass UniformStages\(2\), the"):
        parallel(8).plan(*args)
    for stages in (1, 2):
        assert_trees_close(parallel(stages)(*args), jax.jit(step)(*args), 1e-5, "weights")


def test_a_step_that_computes_nothing_has_one_layer() -> None:
    step, w = lambda w: (w, 2), np.ones((8, 8), np.float32)
    plain = stablehlo_alpa.parallelize(step, method=PipeshardParallel())
    assert_trees_close(plain(w), jax.jit(step)(w), 0, "results")
    four = stablehlo_alpa.parallelize(step, method=PipeshardParallel(stages=FOUR))
    with pytest.raises(StageError, match="4 stages need as many layers, the model has 1"):
        four.plan(w)


GIVEN = [UniformStages(2), ManualStages(layers=(1, 1), submeshes=((1, 4), (1, 4)))]


@pytest.mark.parametrize("stages", GIVEN, ids=["uniform", "manual"])
def test_given_stages_of_a_step_in_which_jax_takes_gradients_twice(stages: Any) -> None:
    def step(w: Any, x: Any) -> Any:
        lost = jax.grad(lambda w: jax.numpy.mean(jax.numpy.tanh(x @ w) @ w.T))
        return w - lost(w - lost(w))

    parallel = stablehlo_alpa.parallelize(step, method=PipeshardParallel(stages=stages))
    reason = r"2 stages need .* has 1: the gradients of step are taken by jax, .*value_and_grad"
    with pytest.raises(StageError, match=reason):
        parallel.plan(np.ones((8, 8), "f"), np.ones((16, 8), "f"))


def test_a_stage_that_nobody_holds() -> None:
    step = parallel_mlp(
        stablehlo_alpa.grad(loss),
        num_micro_batches=2,
        layers=AutoLayers(num_layers=2),
        memory_budget=100,
    )
    lacking = r"no pipeline of 2 layers fits 8 devices .* lacks"
    with pytest.raises(InfeasibleError, match=lacking) as refused:
        step.plan(WEIGHTS, BATCH)
    # Tensors have the names that the caller gives them.
    assert re.search(r"largest live tensors there: .*weights\[0\] \(", str(refused.value))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"num_micro_batches": 0}, ValueError, "num_micro_batches must be >= 1, got 0"),
        ({"schedule": "fast"}, ValueError, "schedule must be one of gpipe"),
        ({"num_chunks": 2}, ValueError, 'num_chunks=2 needs "interleaved"'),
        ({"mesh_shape": (2, 4)}, MeshError, "a pipeline takes UniformStages"),
    ],
)
def test_wrong_options_are_refused(options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        PipeshardParallel(**options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ManualStages((1,), ((1, 4), (1, 4))), "1 stages need as many submeshes, got 2"),
        (lambda: ManualStages((0, 1), ((1, 4), (1, 4))), "at least one layer"),
        (lambda: ManualStages((1,), ((1, 8),), ((2, 2),)), r"\(2, 2\) has 4 devices, its submesh"),
        (lambda: UniformStages(0), "num_stages must be >= 1, got 0"),
    ],
)
def test_wrong_stages_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        (ManualStages((1, 2), ((1, 4), (1, 4))), "sum to 3, the model has 2"),
        (ManualStages((1, 1), ((1, 4), (1, 2))), "have 6 devices, the cluster has 8"),
    ],
)
def test_stages_fit_model_and_cluster(stages: Any, message: str) -> None:
    step = parallel_mlp(stablehlo_alpa.grad(loss), layers=AutoLayers(num_layers=2), stages=stages)
    with pytest.raises(ValueError, match=message):
        step.plan(WEIGHTS, BATCH)


def test_a_step_is_traced(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    step = parallel_mlp(
        stablehlo_alpa.value_and_grad(loss),
        num_micro_batches=4,
        layers=AutoLayers(num_layers=2),
        stages=TWO,
        runtime=RuntimeOptions(trace=True, trace_path=str(path)),
    )
    value, _ = step(WEIGHTS, BATCH)
    np.testing.assert_allclose(value, loss(WEIGHTS, BATCH), rtol=1e-6)
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
    plan = step.plan(WEIGHTS, BATCH)
    for mesh, instructions in enumerate(plan.runtime.instructions):
        own = [e for e in events if e["tid"] == mesh]
        # In the order of the plan, one after the other.
        assert [e["name"] for e in own] == [i.label for i in instructions if isinstance(i, Run)]
        for before, after in itertools.pairwise(own):
            assert before["ts"] + before["dur"] <= after["ts"] + 1e-3


def test_a_stage_that_does_not_fit_is_named() -> None:
    step = parallel_mlp(
        stablehlo_alpa.grad(loss),
        num_micro_batches=2,
        layers=AutoLayers(num_layers=2),
        stages=TWO,
        memory_budget=300,
    )
    with pytest.raises(InfeasibleError, match=r"loss stage 0 on 4 devices: .* more micro-batches"):
        step.plan(WEIGHTS, BATCH)


def test_micro_batches_in_flight_have_to_fit() -> None:
    def plan(schedule: str, budget: float | None) -> Any:
        return parallel_mlp(
            stablehlo_alpa.grad(loss),
            num_micro_batches=64,
            layers=AutoLayers(num_layers=2, remat=False),
            stages=UniformStages(2, (4,)),
            schedule=schedule,
            memory_budget=budget,
        ).plan(WEIGHTS, np.ones((64 * 64, 8), "f"))

    needed = max(plan("1f1b", None).simulation.peak_bytes)
    plan("1f1b", 1.2 * needed)
    message = r"stage 0 .* no plan fits the memory budget of .* of 63 more micro-batches"
    with pytest.raises(InfeasibleError, match=message):
        plan("gpipe", 1.2 * needed)
