"""Functions whose author says how they are split: one operator each, made anew for its blocks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import test_random_plans as random_plans
from alpa_runtime import compile_spmd
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import Mesh, NamedSharding
from often import one_in
from partitioned import (
    HIDDEN,
    MESHES,
    ROWS,
    P,
    as_asked,
    axes_of,
    check_equal,
    check_split,
    draw,
    kernel_calls,
    norm,
    norm_kernel,
    slope_kernel,
)

import stablehlo_alpa as sa
from stablehlo_alpa import _core
from stablehlo_alpa.errors import ShardingError, TraceError
from stablehlo_alpa.frontend import link_kernels, trace


def loss_of(params: Any, x: Any, y: Any) -> Any:
    for one in params:
        normal = norm(x.reshape(-1, HIDDEN), one["scale"]).reshape(x.shape)
        x = x + jnp.tanh(normal @ one["up"]) @ one["down"]
    return ((x - y) ** 2).mean()


def train_step(params: Any, x: Any, y: Any) -> Any:
    loss, gradients = sa.value_and_grad(loss_of)(params, x, y)
    return jax.tree.map(lambda value, slope: value - 0.1 * slope, params, gradients), loss


def arguments(batch: int = 32) -> tuple[Any, ...]:
    layer = {
        "scale": np.ones((1, HIDDEN), "f"),
        "up": 0.1 * draw(HIDDEN, 4 * HIDDEN),
        "down": 0.1 * draw(4 * HIDDEN, HIDDEN, seed=1),
    }
    return [layer] * 2, draw(batch, 8, HIDDEN, seed=2), draw(batch, 8, HIDDEN, seed=3)


METHODS: dict[str, Any] = {
    "data parallel": lambda: sa.DataParallel(),
    "searched": lambda: sa.ShardParallel(),
    "micro-batches": lambda: sa.ShardParallel(num_micro_batches=4),
    "pipeline": lambda: sa.PipeshardParallel(num_micro_batches=2, stages=sa.UniformStages(2)),
    "by XLA": lambda: sa.ShardParallel(backend="shardy"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_a_kernel_of_pallas_is_split_as_what_is_around_it(name: str) -> None:
    step = sa.parallelize(train_step, method=METHODS[name](), batch_argnums=(1, 2))
    args = arguments()
    check_equal(train_step, args, step)
    plan = step.plan(*args)
    assert not any("kernel" in remark for remark in plan.remarks)
    for number in range(len(plan.stages)):
        check_split(plan, number)


@pytest.mark.parametrize("mesh", MESHES)
def test_gradients_of_a_kernel_are_those_of_plain_jit(mesh: str) -> None:
    shape = MESHES[mesh]
    method = sa.DataParallel(mesh_shape=shape)
    devices = jax.devices()[: math.prod(shape)]
    step = sa.parallelize(train_step, method=method, batch_argnums=(1, 2), devices=devices)
    args = arguments(batch=24)
    check_equal(train_step, args, step)
    check_split(step.plan(*args))


def test_work_of_a_kernel_is_that_of_its_body_at_every_place_of_its_grid() -> None:
    def flops_of(rows: int) -> float:
        text = trace(norm_kernel, (draw(rows, HIDDEN), np.ones((1, HIDDEN), "f")), {}).text
        return float(text.partition("flops=")[2].partition(">")[0])

    assert flops_of(64) == 16 * flops_of(ROWS)
    assert flops_of(ROWS) >= 4 * ROWS * HIDDEN


# Authors that send themselves.


def product(mesh: Any, args: Any, results: Any) -> Any:
    axes = axes_of(args[0].sharding.spec[1])

    def block(a: Any, b: Any) -> Any:
        return jax.lax.psum(a @ b, axes) if axes else a @ b

    return mesh, block, results.sharding, tuple(arg.sharding for arg in args)


def gradients(mesh: Any, args: Any, results: Any) -> Any:
    axes = axes_of(args[0].sharding.spec[0])

    def block(x: Any, slope: Any) -> Any:
        parts = (x * slope).sum(0)
        return x * slope, jax.lax.psum(parts, axes) if axes else parts

    return mesh, block, tuple(one.sharding for one in results), tuple(arg.sharding for arg in args)


matmul = custom_partitioning(lambda a, b: a @ b)
matmul.def_partition(product, sharding_rule="i k, k j -> i j", reduction_factors=("k",))
slopes = custom_partitioning(lambda x, slope: (x * slope, (x * slope).sum(0)))
slopes.def_partition(gradients, sharding_rule="... h, ... h -> ... h, h")

PRODUCTS: dict[str, dict[int | str, Any]] = {
    "depth": {0: P(None, "x"), 1: P("x")},
    "depth of two axes": {0: P(None, ("x", "y")), 1: P(("x", "y"))},
    "rows and depth": {0: P("x", "y"), 1: P("y")},
    "rows and columns": {0: P("x"), 1: P(None, "y")},
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_what_results_lack_is_added_up_by_the_author(name: str) -> None:
    method = sa.ManualSharding(mesh_shape=(2, 4), names=("x", "y"), in_specs=PRODUCTS[name])
    step = sa.parallelize(lambda a, b: matmul(a, b) + 1, method=method)
    args = draw(32, 64), draw(64, 48, seed=1)
    check_equal(lambda a, b: matmul(a, b) + 1, args, step)
    assert ("all_reduce" in step.plan(*args).module_text()) == ("depth" in name)


def test_one_result_may_have_a_loop_that_another_lacks() -> None:
    step = sa.parallelize(
        lambda x, y: slopes(2 * x, y), method=sa.DataParallel(), batch_argnums=(0, 1)
    )
    args = draw(64, 32), draw(64, 32, seed=1)
    check_equal(lambda x, y: slopes(2 * x, y), args, step)
    assert step.plan(*args).module_text().count('"stablehlo.all_reduce"') == 1


def test_a_sum_of_the_author_is_refused_in_micro_batches() -> None:
    method = sa.ShardParallel(num_micro_batches=2)

    def normalised(w: Any, x: Any, y: Any) -> Any:
        hidden = x @ w
        return (((hidden * slopes(hidden, y)[1]) @ w @ w) ** 2).sum()

    step = sa.parallelize(normalised, method=method, batch_argnums=(1, 2))
    with pytest.raises(sa.CompileError, match=r"cannot run once per micro-batch: .*alpa_kernel"):
        step.plan(draw(256, 256), draw(512, 256), draw(512, 256, seed=1))


# Random plans.


def normalised(x: Any, scale: Any, slope: Any) -> Any:
    return norm_kernel(x, scale), slope_kernel(x + 1, scale, slope)


def reduced(a: Any, b: Any) -> Any:
    return slopes(matmul(a, b), jnp.tanh(a @ b))


def moved(x: Any) -> Any:
    return cumulative(x + 1) * 2


@sa.kernel("... i k, k j -> ... i j", reductions={"k": "sum"})
def shared(a: Any, b: Any) -> Any:
    return a @ b


@sa.kernel("i k -> i", reductions={"k": "max"})
def largest(a: Any) -> Any:
    return a.max(1)


def combined(a: Any, b: Any) -> Any:
    return shared(a, b) * 2, largest(a @ b)


RANDOM: dict[Callable[..., Any], tuple[Any, ...]] = {
    combined: (draw(24, 48), draw(48, 72)),
    normalised: (draw(96, HIDDEN), draw(1, HIDDEN), draw(96, HIDDEN, seed=1)),
    reduced: (draw(24, 48), draw(48, 72)),
    moved: (draw(24, 48),),
}


@pytest.mark.parametrize(("fun", "mesh"), one_in(3, itertools.product(RANDOM, MESHES)))
def test_any_split_of_a_kernel_is_the_whole(fun: Callable[..., Any], mesh: str) -> None:
    axes = tuple(zip("xyz", MESHES[mesh], strict=False))
    option = ",".join(f"{axis}:{size}" for axis, size in axes)
    args = RANDOM[fun]
    program = random_plans.Program(fun, args)
    traced, merged = random_plans.prepare(program)
    expected = jax.tree.leaves(jax.jit(fun)(*args))
    counts = random_plans.strategy_counts(merged, axes)
    for seed in range(4):
        solution = ",".join(map(str, random_plans.choose(counts, seed)))
        planning = f"builtin.module(alpa-plan-pipeline{{mesh={option} solution={solution}}})"
        planned, _ = _core.run_pipeline(merged, planning)
        local, _ = _core.run_pipeline(planned, "builtin.module(alpa-spmd-pipeline)")
        text = link_kernels(local, traced.kernels, axes, "")[0]
        spmd = random_plans.spmd_program(traced, planned, text, axes, fun.__name__)
        results = compile_spmd(spmd, jax.devices()[: math.prod(MESHES[mesh])])(*args)
        for result, value in zip(results, expected, strict=True):
            random_plans.compare(result, value, 2e-5, f"{fun.__name__} with {solution}")


# Answers of partition callbacks.


def in_rows(mesh: Any, args: Any, results: Any) -> Any:
    """Answers that columns are whole, whatever it is asked for."""
    spec = P(args[0].sharding.spec[0], None)
    sharding = NamedSharding(mesh, spec)
    return mesh, lambda x: jnp.cumsum(x, 1), sharding, (sharding,)


cumulative = custom_partitioning(lambda x: jnp.cumsum(x, 1))
cumulative.def_partition(in_rows, sharding_rule="i j -> i j")


@pytest.mark.parametrize("spec", [P("x", "y"), P("y", "x"), P(None, ("x", "y")), P(None, "y")])
def test_other_shardings_than_asked_for_are_honoured_and_remarked(spec: Any) -> None:
    method = sa.ManualSharding(mesh_shape=(2, 4), names=("x", "y"), in_specs={0: spec})
    step = sa.parallelize(lambda x: cumulative(x + 1), method=method)
    check_equal(lambda x: cumulative(x + 1), (draw(16, 24),), step)
    remarks = step.plan(draw(16, 24)).remarks
    assert any("has its tensors split otherwise than planned" in one for one in remarks)


def answering(answer: Callable[..., Any]) -> Any:
    made = custom_partitioning(lambda x: x * 2)
    made.def_partition(answer, sharding_rule="i j -> i j")
    return lambda x: made(x)


def other_mesh(mesh: Any, args: Any, results: Any) -> Any:
    sharding = NamedSharding(Mesh(np.array(jax.devices()[:2]), "z"), P("z"))
    return mesh, lambda x: x * 2, sharding, (sharding,)


def uneven(mesh: Any, args: Any, results: Any) -> Any:
    sharding = NamedSharding(mesh, P(None, tuple(mesh.axis_names)))
    return mesh, lambda x: x * 2, sharding, (sharding,)


def other_shape(mesh: Any, args: Any, results: Any) -> Any:
    return mesh, lambda x: x[:1], results.sharding, (args[0].sharding,)


def failing(mesh: Any, args: Any, results: Any) -> Any:
    raise RuntimeError("no such block")


REFUSED = {
    other_mesh: "answers for argument 0 the sharding .*'z'.*, it is asked for one of the mesh",
    uneven: "cuts a dimension of size 6 into 8 parts: sizes must divide",
    other_shape: r"result 0 of its function of blocks is float32\[1, 6\], .* float32\[2, 6\]",
}


@pytest.mark.parametrize("answer", REFUSED)
def test_answers_that_cannot_be_run_are_refused(answer: Callable[..., Any]) -> None:
    step = sa.parallelize(answering(answer), method=sa.DataParallel(), batch_argnums=0)
    with pytest.raises(ShardingError, match=REFUSED[answer]):
        step.plan(draw(16, 6))


def test_errors_of_a_callback_say_of_which_kernel() -> None:
    step = sa.parallelize(answering(failing), method=sa.DataParallel(), batch_argnums=0)
    with pytest.raises(RuntimeError, match="no such block") as caught:
        step.plan(draw(16, 6))
    assert any("partition callback of kernel" in note for note in caught.value.__notes__)


# Rules.


def test_a_rule_may_be_made_for_the_types_of_a_call() -> None:
    seen = []

    def rule(factor: float, mesh: Any, operands: Any, results: Any) -> str:
        seen.append((factor, mesh.empty, [list(one.shape) for one in (*operands, *results)]))
        return " ".join("abc"[: operands[0].rank]) + " -> " + " ".join("abc"[: operands[0].rank])

    def partition(factor: float, mesh: Any, args: Any, results: Any) -> Any:
        return mesh, lambda x: factor * x, results.sharding, (args[0].sharding,)

    made = custom_partitioning(lambda x, factor: factor * x, static_argnums=(1,))
    made.def_partition(partition, sharding_rule=rule)

    def scaled(x: Any) -> Any:
        return made(x, 3.0)

    step = sa.parallelize(scaled, method=sa.DataParallel(), batch_argnums=0)
    check_equal(scaled, (draw(16, 6),), step)
    assert (3.0, True, [[16, 6], [16, 6]]) in seen
    assert "a=[0]" in step.plan(draw(16, 6)).module_text("planned")


def test_loops_that_need_all_of_themselves_stay_whole() -> None:
    made = custom_partitioning(lambda x: x[:, ::-1])
    made.def_partition(
        as_asked(lambda x: x[:, ::-1]), sharding_rule="i j -> i j", permutation_factors=("j",)
    )
    method = sa.ManualSharding(mesh_shape=(8,), names=("x",), in_specs={0: P(None, "x")})
    step = sa.parallelize(lambda x: made(x) + 1, method=method)
    check_equal(lambda x: made(x) + 1, (draw(6, 24),), step)


def test_a_rule_that_does_not_fit_names_the_function() -> None:
    made = custom_partitioning(lambda x: x * 2)
    made.def_partition(as_asked(lambda x: x * 2), sharding_rule="i j k -> i j k")
    with pytest.raises(TraceError, match=r"rule of <lambda> does not fit it: .*rank 3"):
        sa.parallelize(lambda x: made(x)).plan(draw(16, 6))


def test_without_a_rule_a_function_is_planned_as_what_it_is_made_of() -> None:
    made = custom_partitioning(lambda x: x * 2)
    made.def_partition(as_asked(lambda x: x * 2))
    step = sa.parallelize(lambda x: made(x), method=sa.DataParallel(), batch_argnums=0)
    check_equal(lambda x: made(x), (draw(16, 6),), step)
    assert "alpa_kernel" not in step.plan(draw(16, 6)).module_text("traced")


# The short way.


def test_blocks_of_a_function_are_combined_as_its_rule_says() -> None:
    def largest(x: Any) -> Any:
        return x.max(1)

    made = sa.kernel("i j -> i", reductions={"j": "max"})(largest)
    method = sa.ManualSharding(mesh_shape=(8,), names=("x",), in_specs={0: P(None, "x")})
    check_equal(largest, (draw(6, 24),), sa.parallelize(lambda x: made(x), method=method))
    # A loop that a result lacks, and of which nothing is said, is not split.
    kept = sa.kernel("i j -> i")(largest)
    step = sa.parallelize(lambda x: kept(x), method=method)
    check_equal(largest, (draw(6, 24),), step)
    assert "#alpa.strategy<>" in kernel_calls(step.plan(draw(6, 24)))[0]


@pytest.mark.slow
def test_sums_wait_for_those_of_other_operators_and_of_micro_batches() -> None:
    """Devices hold shares: two sums are reduced at once, behind the micro-batches."""
    total = sa.kernel("b h, b h -> h", reductions={"b": "sum"})(lambda x, y: (x * y).sum(0))

    @jax.custom_vjp
    def scaled(x: Any, scale: Any) -> Any:
        return x * scale

    scaled.defvjp(
        lambda x, scale: (x * scale, (x, scale)),
        lambda kept, slope: (slope * kept[1], total(kept[0], slope)),
    )

    def step_of(params: Any, x: Any, y: Any) -> Any:
        def loss(params: Any) -> Any:
            hidden = scaled(jnp.tanh(x @ params["up"]), params["scale"])
            return ((scaled(hidden, params["scale"]) @ params["down"] - y) ** 2).mean()

        gradients = jax.grad(loss)(params)
        return jax.tree.map(lambda value, slope: value - 0.1 * slope, params, gradients)

    params = {"up": draw(64, 96), "scale": draw(96), "down": draw(96, 64)}
    args = params, draw(64, 64, seed=1), draw(64, 64, seed=2)
    for method in (sa.DataParallel(), sa.ShardParallel(num_micro_batches=4)):
        step = sa.parallelize(step_of, method=method, batch_argnums=(1, 2))
        check_equal(step_of, args, step)
    plan = sa.parallelize(step_of, method=sa.DataParallel(), batch_argnums=(1, 2)).plan(*args)
    assert len(kernel_calls(plan)) == 2
    assert all("P0" in line.partition("alpa.results = ")[2] for line in kernel_calls(plan))
    (reduced,) = [one for one in plan.communication() if one.kind == "all_reduce"]
    assert (reduced.bytes, reduced.count) == (96 * 4, 1)


def test_whole_kernels_are_named() -> None:
    kept = sa.kernel("i j -> i j", whole=("i", "j"))(jnp.cbrt)
    remarks = sa.parallelize(lambda x: kept(x)).plan(draw(512, 512)).remarks
    assert any("'stablehlo.custom_call' @alpa_kernel 'cbrt'" in one for one in remarks)


def test_plain_jit_splits_it_by_the_same_rule() -> None:
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("x", "y"))

    def on(*spec: Any) -> NamedSharding:
        return NamedSharding(mesh, P(*spec))

    made = sa.kernel("i k, k j -> i j", reductions={"k": "sum"})(lambda a, b: a @ b)
    args = draw(32, 64), draw(64, 48, seed=1)
    for shardings in ((on("x", "y"), on("y")), (on(None, "x"), on("x", "y")), (on("y"), on())):
        found = jax.jit(made, in_shardings=shardings)(*args)
        np.testing.assert_allclose(np.asarray(found), args[0] @ args[1], rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(
    ("rule", "options", "match"),
    [
        ("i j", {}, "There is no -> in rule"),
        ("i j -> i", {"whole": ("k",)}, "has no loop 'k'"),
        ("i j -> i", {"reductions": {"i": "sum"}}, "in an argument and in no result"),
        ("i j -> i", {"reductions": {"j": "mean"}}, "reduces 'j' by 'mean', not by one of"),
        ("i (j k) -> i", {"reductions": {"j": "sum"}, "sizes": {"j": 2, "k": 3}}, "is a part of"),
        ("... i -> i", {}, "without the leading dimensions"),
    ],
)
def test_rules_that_say_nothing_are_refused(rule: str, options: Any, match: str) -> None:
    with pytest.raises(ShardingError, match=match):
        sa.kernel(rule, **options)
