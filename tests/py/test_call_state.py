"""What a call needs belongs to it: interrupts, failures and threads leave nothing to the next."""

from __future__ import annotations

import functools
import gc
import threading
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pytest
from alpa_runtime import InputError, LocalExecutable, RuntimeOptions
from alpa_runtime.launching import LaunchOrder
from alpa_runtime.mesh_worker import MeshStep
from alpa_runtime.plan import Run
from chains import chain_plan, chain_results
from hypothesis import given, settings
from hypothesis import strategies as st
from interrupts import Interrupt

import stablehlo_alpa
from stablehlo_alpa import AutoLayers, PipeshardParallel, ShardParallel, UniformStages

# Between meshes of the same size shards are copied, between others pieces are cut and joined.
CHAINS: list[tuple[tuple[int, ...], int]] = [
    ((2, 2), 2),
    ((4, 2, 1), 2),
    ((2, 2, 2, 2), 1),
    ((2, 4, 2), 3),
]
CHAIN = st.sampled_from(CHAINS)


@functools.cache
def executable(sizes: Sequence[int], count: int) -> LocalExecutable:
    plan = chain_plan(sizes, count)
    return LocalExecutable(plan, jax.devices()[: plan.num_devices])


def make_inputs(run: LocalExecutable, seed: int) -> list[Any]:
    """Weights where they are kept, so that they are donated, and a batch of the host."""
    draw = np.random.default_rng(seed)
    *weights, batch = [
        draw.integers(-4, 5, value.value.shape).astype("f") for value in run.plan.inputs
    ]
    return [*map(jax.device_put, weights, run.in_shardings), batch]


def expected_of(sizes: Sequence[int], inputs: Sequence[Any]) -> list[Any]:
    return chain_results(sizes, [np.asarray(weight) for weight in inputs[:-1]], inputs[-1])


def check_call(run: LocalExecutable, sizes: Sequence[int], inputs: Sequence[Any]) -> None:
    expected = expected_of(sizes, inputs)
    for found, wanted in zip(run(*inputs), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def check_after_disturbance(
    run: LocalExecutable, sizes: Sequence[int], inputs: Sequence[Any], expected: Sequence[Any]
) -> None:
    """A call with the same inputs is right, or says that they are gone; others are right."""
    if any(weight.is_deleted() for weight in inputs[:-1]):
        with pytest.raises(InputError, match=r"was deleted: .* begin again from a checkpoint"):
            run(*inputs)
    else:
        for found, wanted in zip(run(*inputs), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
    check_call(run, sizes, make_inputs(run, 99))


class Disturbance:
    """Raises in one instruction of a step, before it or behind it."""

    def __init__(self, error: BaseException, position: int, is_behind: bool) -> None:
        self._error, self._left, self._is_behind = error, position, is_behind

    def __enter__(self) -> None:
        patch = self._patch = pytest.MonkeyPatch()
        perform = MeshStep.perform

        def disturbed(step: MeshStep, position: int) -> None:
            self._left -= 1
            if self._left == -1 and not self._is_behind:
                raise self._error
            perform(step, position)
            if self._left == -1:
                raise self._error

        patch.setattr(MeshStep, "perform", disturbed)

    def __exit__(self, *error: object) -> None:
        self._patch.undo()


@pytest.mark.parametrize(("sizes", "count"), CHAINS, ids=str)
@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("a device fails")], ids=repr)
def test_a_disturbed_instruction_leaves_nothing(
    sizes: Sequence[int], count: int, error: BaseException
) -> None:
    """At every instruction of the plan."""
    run = executable(sizes, count)
    check_call(run, sizes, make_inputs(run, 0))
    for position in range(sum(map(len, run.plan.instructions))):
        for is_behind in (False, True):
            inputs = make_inputs(run, position)
            expected = expected_of(sizes, inputs)
            with Disturbance(error, position, is_behind), pytest.raises(type(error)):
                run(*inputs)
            check_after_disturbance(run, sizes, inputs, expected)


def count_lines(run: LocalExecutable) -> int:
    inputs = make_inputs(run, 0)
    with Interrupt(1 << 30) as counting:
        run(*inputs)
    return (1 << 30) - counting.left


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(chain=CHAIN, place=st.floats(0, 1, exclude_max=True), seed=st.integers(0, 9))
def test_an_interrupt_at_any_line_leaves_nothing(
    chain: tuple[tuple[int, ...], int], place: float, seed: int
) -> None:
    sizes, _ = chain
    run = executable(*chain)
    inputs = make_inputs(run, seed)
    expected = expected_of(sizes, inputs)
    with pytest.raises(KeyboardInterrupt), Interrupt(int(place * count_lines(run))):
        run(*inputs)
    check_after_disturbance(run, sizes, inputs, expected)


@pytest.mark.slow
def test_an_interrupted_call_keeps_no_arrays() -> None:
    sizes, count = CHAINS[1]
    run = executable(sizes, count)
    check_call(run, sizes, make_inputs(run, 0))
    gc.collect()
    before = len(jax.live_arrays())
    for position in range(0, 20, 3):
        with Disturbance(KeyboardInterrupt(), position, True), pytest.raises(KeyboardInterrupt):
            run(*make_inputs(run, position))
    gc.collect()
    assert len(jax.live_arrays()) == before


def test_what_was_fed_to_an_interrupted_call_may_be_gone() -> None:
    sizes, count = CHAINS[0]
    run = executable(sizes, count)
    inputs = make_inputs(run, 1)
    fed = [run.feed(index, array) for index, array in enumerate(inputs)]
    with Disturbance(KeyboardInterrupt(), 12, True), pytest.raises(KeyboardInterrupt):
        run(*fed)
    assert any(one.is_deleted() for one in fed)
    with pytest.raises(InputError, match="was deleted"):
        run(*fed)
    check_call(run, sizes, make_inputs(run, 2))


def test_a_trace_ends_with_its_call(tmp_path: Any) -> None:
    sizes, count = CHAINS[0]
    plan = chain_plan(sizes, count)
    options = RuntimeOptions(trace=True, trace_path=str(tmp_path / "trace.json"))
    run = LocalExecutable(plan, jax.devices()[: plan.num_devices], options)
    before = threading.active_count()
    for position in (3, 9):
        with Disturbance(KeyboardInterrupt(), position, True), pytest.raises(KeyboardInterrupt):
            run(*make_inputs(run, position))
    assert threading.active_count() == before
    assert run.events == []
    check_call(run, sizes, make_inputs(run, 0))
    runs = [one for own in plan.instructions for one in own if isinstance(one, Run)]
    assert sorted(one.name for one in run.events) == sorted(one.label for one in runs)


# Threads


def in_threads(calls: Sequence[Callable[[], None]]) -> None:
    """Runs functions at once; the first error raises."""
    errors: list[BaseException] = []
    together = threading.Barrier(len(calls))

    def work(call: Callable[[], None]) -> None:
        try:
            together.wait()
            call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "threads wait for each other"
    for error in errors:
        raise error


def repeated(run: LocalExecutable, sizes: Sequence[int], first: int, rounds: int = 15) -> Any:
    def call() -> None:
        for number in range(rounds):
            check_call(run, sizes, make_inputs(run, first + number))

    return call


def test_threads_call_one_executable() -> None:
    for sizes, count in CHAINS:
        run = executable(sizes, count)
        in_threads([repeated(run, sizes, 100 * number, 5) for number in range(4)])


def test_threads_call_executables_that_share_devices() -> None:
    """On sets of devices that are equal, overlap, or lie in each other; and in turns."""
    runs = [(sizes, executable(sizes, count)) for sizes, count in CHAINS]
    shifted: list[tuple[int, tuple[int, ...]]] = [(2, (2, 2)), (4, (4,)), (3, (1, 2, 2))]
    for first, sizes in shifted:
        plan = chain_plan(sizes, 2)
        runs.append((sizes, LocalExecutable(plan, jax.devices()[first:][: plan.num_devices])))
    for sizes, run in runs:
        check_call(run, sizes, make_inputs(run, 0))

    def in_turns() -> None:
        for number in range(3):
            for sizes, run in runs:
                check_call(run, sizes, make_inputs(run, number))

    in_threads([*(repeated(run, sizes, 7, 5) for sizes, run in runs), in_turns, in_turns])


def test_of_threads_that_donate_the_same_one_succeeds() -> None:
    sizes, count = CHAINS[0]
    run = executable(sizes, count)
    for seed in range(10):
        inputs = make_inputs(run, seed)
        expected = expected_of(sizes, inputs)
        outcomes: list[Any] = []

        def call(inputs: Any = inputs, outcomes: list[Any] = outcomes) -> None:
            try:
                outcomes.append(run(*inputs))
            except InputError as error:
                outcomes.append(error)

        in_threads([call] * 3)
        (results,) = [one for one in outcomes if not isinstance(one, InputError)]
        for found, wanted in zip(results, expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_an_interrupted_call_lets_other_threads_go_on() -> None:
    sizes, count = CHAINS[0]
    run = executable(sizes, count)
    with Disturbance(KeyboardInterrupt(), 3, True), pytest.raises(KeyboardInterrupt):
        run(*make_inputs(run, 0))
    in_threads([repeated(run, sizes, 1, 2)])


SETS = st.lists(st.frozensets(st.integers(0, 7), min_size=1), min_size=2, max_size=5)


@settings(max_examples=30, deadline=None)
@given(SETS, st.integers(0, 4))
def test_launches_on_devices_that_overlap_exclude_each_other(
    sets: Sequence[frozenset[int]], holder: int
) -> None:
    order, devices = LaunchOrder(), jax.devices()
    holder %= len(sets)
    done: list[int] = []
    calls = [
        order.guard([devices[i] for i in own], functools.partial(done.append, number))
        for number, own in enumerate(sets)
    ]
    threads = [threading.Thread(target=call, daemon=True) for call in calls]

    def begin_all() -> None:
        for thread in threads:
            thread.start()
        threads[holder].join(0.01)
        assert not any(sets[number] & sets[holder] for number in done)

    order.guard([devices[i] for i in sets[holder]], begin_all)()
    for thread in threads:
        thread.join(10)
    assert sorted(done) == list(range(len(sets)))


def test_launches_on_other_devices_do_not_wait() -> None:
    order, devices = LaunchOrder(), jax.devices()
    other = order.guard(devices[4:], lambda: None)

    def call() -> None:
        thread = threading.Thread(target=other, daemon=True)
        thread.start()
        thread.join(10)
        assert not thread.is_alive()

    order.guard(devices[:4], call)()


# The methods


def loss(weights: Any, batch: Any) -> Any:
    for weight in weights:
        batch = jax.numpy.tanh(batch @ weight)
    return jax.numpy.mean(batch**2)


def step(weights: Any, batch: Any) -> Any:
    value, gradients = stablehlo_alpa.value_and_grad(loss)(weights, batch)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), value


METHODS = {
    "one mesh": ShardParallel(mesh_shape=(2, 4)),
    "pipeline": PipeshardParallel(
        num_micro_batches=4, layers=AutoLayers(num_layers=2), stages=UniformStages(2)
    ),
}


@pytest.mark.slow
def test_threads_call_functions_of_every_method() -> None:
    draw = np.random.default_rng(0)
    weights = [0.3 * draw.normal(size=(16, 16)).astype("f") for _ in range(2)]
    batches = [draw.normal(size=(16, 16)).astype("f") for _ in range(4)]
    plain = jax.jit(step)
    expected = [jax.device_get(plain(weights, batch)) for batch in batches]
    functions = [
        stablehlo_alpa.parallelize(step, method=method, donate_argnums=0)
        for method in METHODS.values()
    ]

    def call(function: Any, number: int) -> None:
        for _ in range(3):
            found = function(weights, batches[number])
            for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected[number]), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)

    in_threads([functools.partial(call, function, n) for function in functions for n in range(4)])


PIPELINE = functools.partial(PipeshardParallel, layers=AutoLayers(num_layers=4))


@pytest.mark.parametrize(
    "method",
    [
        ShardParallel(),
        ShardParallel(num_micro_batches=2),
        # Stages join the pieces of each other's blocks.
        PIPELINE(num_micro_batches=2, stages=UniformStages(2)),
        # Some devices of a stage have no piece of a key.
        PIPELINE(
            num_micro_batches=4, stages=UniformStages(4), schedule="interleaved", num_chunks=2
        ),
    ],
    ids=["mesh", "parts", "pipeline", "interleaved"],
)
@pytest.mark.parametrize("guard", [jax.transfer_guard_host_to_device, jax.transfer_guard])
def test_a_guard_against_transfers_lets_calls_pass(method: Any, guard: Any) -> None:
    """As it does under ``jax.jit``: what planning, compiling and placing need is asked for."""
    draw = np.random.default_rng(5)
    sizes = {"in": (8, 16), "mid": (16, 16), "out": (16, 4)}
    weights = {name: 0.3 * draw.normal(size=size).astype("f") for name, size in sizes.items()}
    args = jax.device_put([weights, draw.normal(size=(16, 8)).astype("f"), jax.random.key(1)])

    def step(weights: Any, x: jax.Array, key: jax.Array) -> tuple[Any, Any]:
        def loss(weights: Any) -> jax.Array:
            hidden = jax.numpy.tanh(x @ weights["in"])
            hidden = jax.random.bernoulli(key, 0.5, hidden.shape) * hidden
            return ((jax.numpy.tanh(hidden @ weights["mid"]) @ weights["out"]) ** 2).mean()

        gradients = stablehlo_alpa.grad(loss)(weights)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), key

    parallel = stablehlo_alpa.parallelize(step, method=method)
    first = jax.jit(step)(*args)
    expected = jax.jit(step)(first[0], *args[1:])
    with guard("disallow"):
        found = parallel(parallel(*args)[0], *args[1:])
    for name, wanted in expected[0].items():
        np.testing.assert_allclose(found[0][name], wanted, rtol=1e-5, atol=1e-6)
