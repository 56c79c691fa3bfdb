"""Pipelines that update their weights without a flush, against a sequential model of staleness."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import alpa_runtime
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("stablehlo_alpa._core")

from comparing import assert_equals_jit

import stablehlo_alpa as sa
from stablehlo_alpa import OwnSchedule, Task, TaskKind
from stablehlo_alpa.cli.method_names import parse_schedule
from stablehlo_alpa.cli.usage import UsageError
from stablehlo_alpa.inter_op.rescheduling import reschedule
from stablehlo_alpa.planning.schedules import Schedule, timeline

LAYERS, WIDTH, BATCH, COUNT, CALLS = 4, 16, 64, 8, 4

OPTIMIZERS = {
    "sgd": lambda: optax.sgd(0.5),
    "adam": lambda: optax.adam(2e-2),
    "adamw, a schedule of rates": lambda: optax.adamw(
        optax.exponential_decay(3e-2, 4, 0.7), weight_decay=0.1
    ),
    "clipped by the norm of all gradients": lambda: optax.chain(
        optax.clip_by_global_norm(0.3), optax.sgd(0.9, momentum=0.9)
    ),
}


def loss_of(weights: Sequence[jax.Array], batch: Any, boundary: Callable[[], None]) -> jax.Array:
    h = batch["x"]
    for number, weight in enumerate(weights):
        if number:
            boundary()
        h = jnp.tanh(h @ weight)
    return jnp.mean((h - batch["y"]) ** 2)


def train_step(optimizer: optax.GradientTransformation) -> Callable[..., Any]:
    def step(state: Any, batch: Any) -> Any:
        weights, opt_state = state
        loss, grads = sa.value_and_grad(lambda w: loss_of(w, batch, sa.layer_boundary))(weights)
        updates, opt_state = optimizer.update(grads, opt_state, weights)
        return (optax.apply_updates(weights, updates), opt_state), loss

    return step


def first_state(optimizer: optax.GradientTransformation) -> Any:
    keys = jax.random.split(jax.random.key(0), LAYERS)
    weights = [0.4 * jax.random.normal(key, (WIDTH, WIDTH)) for key in keys]
    return weights, optimizer.init(weights)


def batches(seed: int) -> Any:
    x, y = jax.random.normal(jax.random.key(seed), (2, BATCH, WIDTH))
    return {"x": x, "y": jnp.tanh(y)}


def method(schedule: Any, num_stages: int, count: int = COUNT, **options: Any) -> Any:
    return sa.PipeshardParallel(
        num_micro_batches=count,
        layers=sa.ManualLayers(remat=False),
        stages=sa.UniformStages(num_stages),
        schedule=schedule,
        **options,
    )


def sequential(
    optimizer: optax.GradientTransformation,
    state: Any,
    batch: Any,
    per_update: int,
    version: Callable[[int, int], int],
) -> Any:
    """The model: ``w(t + 1) = w(t) - update(grad f(w of the versions))``, one update at a time.

    Args:
        optimizer: makes updates.
        state: that a call begins with.
        batch: of the call.
        per_update: micro-batches of an update.
        version: of the weights of a layer, those behind so many updates, that a micro-batch reads.
    """
    weights, opt_state = state
    versions, loss = [weights], jnp.zeros(())
    parts = [
        {key: jnp.split(value, COUNT)[m] for key, value in batch.items()} for m in range(COUNT)
    ]
    for update in range(COUNT // per_update):
        losses, grads = [], []
        for m in range(update * per_update, (update + 1) * per_update):
            read = [versions[version(layer, m)][layer] for layer in range(LAYERS)]
            one = jax.value_and_grad(lambda w, m=m: loss_of(w, parts[m], lambda: None))(read)
            losses.append(one[0])
            grads.append(one[1])
        loss = sum(losses) / per_update
        mean = jax.tree.map(lambda *leaves: sum(leaves) / per_update, *grads)
        updates, opt_state = optimizer.update(mean, opt_state, versions[-1])
        versions.append(optax.apply_updates(versions[-1], updates))
    return (versions[-1], opt_state), loss


def pipedream_version(num_stages: int, per_update: int) -> Callable[[int, int], int]:
    """Stage ``s`` has sent ``n - 1 - s`` micro-batches ahead of the one that comes back."""

    def version(layer: int, m: int) -> int:
        behind = num_stages - 1 - layer * num_stages // LAYERS
        return max(0, m - behind) // per_update

    return version


def two_versions(per_update: int) -> Callable[[int, int], int]:
    return lambda layer, m: max(0, m // per_update - 1)


def newest(per_update: int) -> Callable[[int, int], int]:
    return lambda layer, m: m // per_update


CASES = {
    "pipedream": (sa.pipedream(), 4, 1, pipedream_version(4, 1)),
    "pipedream, two stages": (sa.pipedream(), 2, 1, pipedream_version(2, 1)),
    "pipedream, two micro-batches": (sa.pipedream(2), 4, 2, pipedream_version(4, 2)),
    "2bw": (sa.pipedream_2bw(4), 4, 4, two_versions(4)),
    "2bw, two stages": (sa.pipedream_2bw(1), 2, 1, two_versions(1)),
}


# Every optimiser under one schedule, and one under every other; half of them with every run.
OFTEN = {
    ("pipedream", "adam"),
    ("pipedream", "clipped by the norm of all gradients"),
    ("pipedream, two micro-batches", "adam"),
    ("2bw", "adam"),
}
PAIRS = [
    pytest.param(
        case,
        name,
        marks=() if (case, name) in OFTEN else pytest.mark.matrix,
    )
    for case in CASES
    for name in OPTIMIZERS
]


@pytest.mark.slow
@pytest.mark.parametrize(("case", "name"), PAIRS)
def test_steps_equal_the_sequential_model(case: str, name: str) -> None:
    schedule, num_stages, per_update, version = CASES[case]
    optimizer = OPTIMIZERS[name]()
    step = sa.parallelize(
        train_step(optimizer), method=method(schedule, num_stages), donate_argnums=0
    )
    ours, theirs = first_state(optimizer), first_state(optimizer)
    plain = first_state(optimizer)
    for call in range(CALLS):
        ours, loss = step(ours, batches(call + 1))
        theirs, expected = sequential(optimizer, theirs, batches(call + 1), per_update, version)
        plain, _ = sequential(optimizer, plain, batches(call + 1), per_update, newest(per_update))
        assert_equals_jit((ours, loss), (theirs, expected), 2e-5)
    # Weights without staleness are others: the test would see it.
    gap = max(
        np.abs(np.asarray(a) - np.asarray(b)).max() for a, b in zip(ours[0], plain[0], strict=True)
    )
    assert gap > 1e-3


@pytest.mark.slow
def test_a_weight_of_two_stages_has_one_version() -> None:
    """A tied embedding is as old everywhere as in the stage that keeps it."""
    optimizer, words = optax.adam(2e-2), 48

    def loss_of(params: Any, batch: Any, boundary: Callable[[], None]) -> jax.Array:
        h = params["table"][batch["ids"]]
        for weight in params["weights"]:
            boundary()
            h = jnp.tanh(h @ weight)
        logits = h @ params["table"].T
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean()

    def step(state: Any, batch: Any) -> Any:
        params, opt_state = state
        loss, grads = sa.value_and_grad(lambda p: loss_of(p, batch, sa.layer_boundary))(params)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return (optax.apply_updates(params, updates), opt_state), loss

    def first() -> Any:
        keys = jax.random.split(jax.random.key(1), LAYERS)
        weights = [0.4 * jax.random.normal(key, (WIDTH, WIDTH)) for key in keys[1:]]
        params = {"table": jax.random.normal(keys[0], (words, WIDTH)), "weights": weights}
        return params, optimizer.init(params)

    ids = jax.random.randint(jax.random.key(2), (2, BATCH), 0, words)
    batch = {"ids": ids[0], "labels": ids[1]}
    parts = [{k: jnp.split(v, COUNT)[m] for k, v in batch.items()} for m in range(COUNT)]
    params, opt_state = first()
    versions, version = [params], pipedream_version(LAYERS, 1)
    for m in range(COUNT):
        weights = [versions[version(at + 1, m)]["weights"][at] for at in range(LAYERS - 1)]
        read = {"table": versions[version(0, m)]["table"], "weights": weights}
        loss, grads = jax.value_and_grad(lambda p, m=m: loss_of(p, parts[m], lambda: None))(read)
        updates, opt_state = optimizer.update(grads, opt_state, versions[-1])
        versions.append(optax.apply_updates(versions[-1], updates))
    parallel = sa.parallelize(step, method=method(sa.pipedream(), LAYERS), donate_argnums=0)
    assert_equals_jit(parallel(first(), batch), ((versions[-1], opt_state), loss), 2e-5)


def noisy_loss(weights: Any, noise: Any, batch: Any, boundary: Callable[[], None]) -> jax.Array:
    h, (count, key) = batch["x"], noise
    for number, weight in enumerate(weights):
        if number:
            boundary()
        drawn = jax.random.normal(jax.random.fold_in(key, number), (WIDTH,))
        h = jnp.tanh(h @ weight + drawn / (1 + count))
    return jnp.mean((h - batch["y"]) ** 2)


def next_noise(noise: Any) -> Any:
    return noise[0] + 1, jax.random.split(noise[1])[0]


def descended(weights: Any, grads: Any) -> Any:
    return jax.tree.map(lambda w, g: w - 0.5 * g, weights, grads)


def noisy_step(state: Any, batch: Any) -> Any:
    weights, noise = state
    grads = sa.grad(lambda w: noisy_loss(w, noise, batch, sa.layer_boundary))(weights)
    return descended(weights, grads), next_noise(noise)


def noisy_state(key: Any) -> Any:
    return first_state(optax.sgd(0.1))[0], (jnp.zeros((), jnp.int32), key)


@pytest.mark.slow
@pytest.mark.parametrize("donated", [(), (0,)], ids=["kept", "donated"])
def test_state_that_passes_read_is_as_old_as_the_weights(donated: tuple[int, ...]) -> None:
    """A count and a key that noise is drawn by: all stages read those of the first."""
    batch, version = batches(1), pipedream_version(LAYERS, 1)
    parts = [{k: jnp.split(v, COUNT)[m] for k, v in batch.items()} for m in range(COUNT)]
    versions = [noisy_state(jax.random.PRNGKey(3))]
    for m in range(COUNT):
        weights, noise = versions[-1]
        read = [versions[version(layer, m)][0][layer] for layer in range(LAYERS)]
        old = versions[version(0, m)][1]
        grads = jax.grad(lambda w, m=m, old=old: noisy_loss(w, old, parts[m], lambda: None))(read)
        versions.append((descended(weights, grads), next_noise(noise)))
    step = sa.parallelize(noisy_step, method=method(sa.pipedream(), LAYERS), donate_argnums=donated)
    assert_equals_jit(step(noisy_state(jax.random.PRNGKey(3)), batch), versions[-1], 2e-5)


def test_keys_that_stages_share_are_refused() -> None:
    step = sa.parallelize(noisy_step, method=method(sa.pipedream(), LAYERS), donate_argnums=0)
    with pytest.raises(sa.CompileError, match=r"state\[1\]\[1\] is a PRNG key .*fold_in"):
        step(noisy_state(jax.random.key(3)), batches(1))


def test_what_micro_batches_cannot_cut_is_cut_for_updates() -> None:
    """A row per update, which all of its micro-batches read."""
    per_update, updates = 2, COUNT // 2

    def scaled(weights: Any, batch: Any, row: jax.Array, boundary: Any = lambda: None) -> jax.Array:
        h = batch["x"]
        for number, weight in enumerate(weights):
            if number:
                boundary()
            h = jnp.tanh((h * row[:1] if number == 1 else h) @ weight)
        return jnp.mean((h - batch["y"]) ** 2)

    def step(weights: Any, batch: Any, rows: jax.Array) -> Any:
        loss = lambda w: scaled(w, batch, rows, sa.layer_boundary)  # noqa: E731
        value, grads = sa.value_and_grad(loss)(weights)
        return descended(weights, grads), value

    weights = first_state(optax.sgd(0.1))[0]
    batch = batches(1)
    rows = 1 + 0.3 * jax.random.normal(jax.random.key(5), (updates, WIDTH))
    versions, value = [weights], jnp.zeros(())
    for update in range(updates):
        part = {key: jnp.split(one, updates)[update] for key, one in batch.items()}
        old, row = versions[max(0, update - 1)], rows[update : update + 1]
        value, grads = jax.value_and_grad(scaled)(old, part, row)
        versions.append(descended(versions[-1], grads))
    parallel = sa.parallelize(
        step, method=method(sa.pipedream_2bw(per_update), 2), donate_argnums=0
    )
    plan = parallel.plan(weights, batch, rows)
    assert any("part of: batch['x'], batch['y'], rows" in one for one in plan.remarks)
    assert_equals_jit(parallel(weights, batch, rows), (versions[-1], value), 2e-5)


def test_the_state_may_be_saved_run_and_evaluated(tmp_path: Any) -> None:
    optimizer = optax.adam(2e-2)
    step = sa.parallelize(
        train_step(optimizer), method=method(sa.pipedream_2bw(2), 2), donate_argnums=0
    )
    plan = step.plan(first_state(optimizer), batches(1))
    path = tmp_path / "step.plan"
    plan.save(path)
    saved = sa.read_plan(path)
    assert saved.schedule == plan.schedule
    again, order = reschedule(saved)
    assert (again.step_time_s, order) == (plan.step_time_s, plan.schedule)
    with pytest.raises(ValueError, match=r"updates its state 4 times .* plan again under '1f1b'"):
        reschedule(saved, "1f1b")
    run = alpa_runtime.LocalExecutable(alpa_runtime.load(path), jax.devices())
    flat = run(*jax.tree.leaves((first_state(optimizer), batches(1))))
    state, loss = step(first_state(optimizer), batches(1))
    assert_equals_jit(list(flat), jax.tree.leaves((state, loss)), 1e-6)
    evaluation = sa.parallelize(
        lambda state, batch: loss_of(state[0], batch, lambda: None), method=sa.FollowParallel()
    )
    expected = loss_of(jax.device_get(state[0]), batches(2), lambda: None)
    assert float(evaluation(state, batches(2))) == pytest.approx(float(expected), rel=1e-5)


def late(stage_meshes: Sequence[int], num_micro_batches: int) -> list[list[Task]]:
    """One stage after the other, with each update behind the next forward pass."""
    meshes: list[list[Task]] = []
    for stage in range(len(stage_meshes)):
        own = [Task(TaskKind.FORWARD, stage, 0)]
        for m in range(num_micro_batches):
            own.append(Task(TaskKind.BACKWARD, stage, m))
            if m + 1 < num_micro_batches:
                own.append(Task(TaskKind.FORWARD, stage, m + 1))
            own.append(Task(TaskKind.UPDATE, stage, m))
        meshes.append(own)
    return meshes


def test_a_schedule_of_ones_own_says_when_to_update() -> None:
    optimizer, schedule = optax.adam(2e-2), OwnSchedule("late", late, 1)
    step = sa.parallelize(train_step(optimizer), method=method(schedule, 2), donate_argnums=0)
    ours = step(first_state(optimizer), batches(1))
    version = lambda layer, m: max(0, m - 1)  # noqa: E731
    theirs = sequential(optimizer, first_state(optimizer), batches(1), 1, version)
    assert_equals_jit(ours, theirs, 2e-5)


def idle(schedule: Schedule) -> list[int]:
    """Per mesh the units of time in which it waits, every task taking one."""
    rows = timeline(schedule)
    end = max(map(len, rows))
    return [row.count(None) + end - len(row) for row in rows]


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 2))
def test_meshes_wait_as_the_pipeline_fills_and_drains_and_never_between(
    stages: int, updates: int, more: int
) -> None:
    per_update = max(1, stages - 1) + more
    for schedule in (sa.pipedream(per_update), sa.pipedream_2bw(per_update)):
        short, long = (
            schedule.make(range(stages), (updates + add) * per_update) for add in (2, 12)
        )
        assert idle(long) == idle(short)


def test_stages_are_as_stale_as_the_papers_say() -> None:
    stashed = sa.pipedream().make(range(4), 12)
    assert [stashed.staleness(stage) for stage in range(4)] == [3, 2, 1, 0]
    double = sa.pipedream_2bw(4).make(range(4), 16)
    assert [double.staleness(stage) for stage in range(4)] == [1] * 4


def test_stashed_weights_are_counted_and_calls_have_one_bubble() -> None:
    wide = 512

    def loss(weights: Any, x: jax.Array) -> jax.Array:
        for number, weight in enumerate(weights):
            if number:
                sa.layer_boundary()
            x = jnp.tanh(x @ weight)
        return jnp.mean(x**2)

    def step(weights: Any, x: jax.Array) -> Any:
        return descended(weights, sa.grad(lambda w: loss(w, x))(weights))

    weights = [jax.ShapeDtypeStruct((wide, wide), jnp.float32)] * LAYERS
    rows = jax.ShapeDtypeStruct((64, wide), jnp.float32)

    def plan(schedule: Any, count: int = 32) -> Any:
        stages = sa.ManualStages((1,) * 4, ((1, 2),) * 4, mesh_shapes=((2,),) * 4)
        options = method(schedule, 4, count)
        options = dataclasses.replace(options, stages=stages)
        return sa.parallelize(step, method=options, donate_argnums=0).plan(weights, rows)

    flush, stashed, double = map(plan, ("1f1b", sa.pipedream(), sa.pipedream_2bw(4)))
    held = wide * wide * 4 / 2
    # The only layer of stage 0 sends nothing back: its backward pass reads no weights.
    for stage in range(1, LAYERS):
        more = stashed.simulation.peak_bytes[stage] - stashed.simulation.peak_bytes[-1]
        assert more == pytest.approx((LAYERS - 1 - stage) * held, abs=0.05 * held)
        more = double.simulation.peak_bytes[stage] - flush.simulation.peak_bytes[stage]
        assert more == pytest.approx(held, abs=0.05 * held)
    one = plan("1f1b", 4).simulation.bubble(1)
    assert double.simulation.bubble(1) < 0.3 * one


def test_what_has_no_meaning_is_refused() -> None:
    with pytest.raises(ValueError, match=r"several times in a call, .* pass num_micro_batches"):
        sa.PipeshardParallel(schedule=sa.pipedream())
    with pytest.raises(ValueError, match=r"after every 3 micro-batches, which 8 do not divide"):
        method(sa.pipedream(3), 2)
    with pytest.raises(ValueError, match=r"at least 3 micro-batches per update with 4 stages"):
        sa.pipedream_2bw(2).make(range(4), 8)
    with pytest.raises(ValueError, match=r"one stage per mesh, got stages on meshes \(0, 0\)"):
        sa.pipedream().make((0, 0), 8)
    with pytest.raises(ValueError, match=r"update 0 of stage 0: pass micro_batches_per_update"):
        OwnSchedule("late", late).make(range(2), 4)
    with pytest.raises(ValueError, match=r"update 2 of stage 0, there are 2 updates"):
        OwnSchedule("late", late, 2).make(range(2), 4)
    with pytest.raises(ValueError, match=r"delay of schedule late .* takes micro_batches_per_up"):
        OwnSchedule("late", late, delay=1)
    with pytest.raises(ValueError, match=r"waits for update 0 of stage 0"):
        OwnSchedule("late", late, 1, delay=0).make(range(1), 4)

    def stateless(weights: Any, batch: Any) -> Any:
        grads = sa.grad(lambda w: loss_of(w, batch, sa.layer_boundary))(weights)
        return sum(map(jnp.sum, grads))

    step = sa.parallelize(stateless, method=method(sa.pipedream(), 2), batch_argnums=1)
    with pytest.raises(ValueError, match=r"no result of stateless is the next value"):
        step.plan(first_state(optax.sgd(0.1))[0], batches(1))


def test_stages_are_searched_and_explained() -> None:
    options = dataclasses.replace(method(sa.pipedream(), 2), stages=sa.AutoStages())
    optimizer = optax.sgd(0.1)
    step = sa.parallelize(train_step(optimizer), method=options, donate_argnums=0)
    plan = step.plan(first_state(optimizer), batches(1))
    assert plan.bracket is None
    assert "8 updates in a call" in str(plan)
    rows = plan.explain_stages(cuts=1).rows
    assert all(row.method.schedule == options.schedule for row in rows)


def test_the_command_line_names_them() -> None:
    assert parse_schedule("1f1b") == "1f1b"
    stages = range(2)
    for text, schedule in {
        "pipedream": sa.pipedream(),
        "pipedream:2": sa.pipedream(2),
        "pipedream_2bw:2": sa.pipedream_2bw(2),
    }.items():
        read = parse_schedule(text)
        assert isinstance(read, OwnSchedule)
        assert read.make(stages, 8) == schedule.make(stages, 8)
    for text in ("pipedream:", "pipedream:0", "pipedream_2bw", "pipedream_2bw:x"):
        with pytest.raises(UsageError, match=r"micro-batches per update behind a colon"):
            parse_schedule(text)
