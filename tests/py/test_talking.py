"""Functions that call the host while they run, as under ``jax.jit``."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tanh_layers
from alpa_runtime import ProgramError
from alpa_runtime.plan_file import save
from jax.experimental import io_callback

import stablehlo_alpa
from stablehlo_alpa import CompileError, ShardParallel, TraceError

Struct = jax.ShapeDtypeStruct


def x_of(*shape: int) -> jax.Array:
    return jax.random.normal(jax.random.key(0), shape)


def parallel(fun: Callable[..., Any], **more: Any) -> Any:
    return stablehlo_alpa.parallelize(fun, method=ShardParallel(mesh_shape=(2, 4), **more))


def assert_equal(found: Any, wanted: Any) -> None:
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def said(capsys: Any, fun: Callable[..., Any], *args: Any) -> tuple[Any, list[str]]:
    """Results of two calls and the lines they printed."""
    capsys.readouterr()
    results = [jax.block_until_ready(fun(*args)) for _ in range(2)]
    jax.effects_barrier()
    return results, capsys.readouterr().out.splitlines()


def prints(x: jax.Array) -> jax.Array:
    y = jnp.tanh(x @ x.T)
    jax.debug.print("{:.3f} of {y}", y.sum(), y=y[0, :2])
    return y


def prints_in_order(x: jax.Array) -> jax.Array:
    def body(carry: jax.Array, i: jax.Array) -> tuple[jax.Array, jax.Array]:
        jax.debug.print("step {i}", i=i, ordered=True)
        jax.lax.cond(
            i % 2 == 0,
            lambda: jax.debug.print("even {}", i, ordered=True),
            lambda: jax.debug.print("odd", ordered=True),
        )
        return jnp.tanh(carry), carry.sum()

    jax.debug.print("begin", ordered=True)
    carry, sums = jax.lax.scan(body, x, jnp.arange(4))
    jax.debug.print("end {:.3f}", sums[-1], ordered=True)
    return carry


def prints_batched(x: jax.Array) -> jax.Array:
    def one(row: jax.Array) -> jax.Array:
        jax.debug.print("row {:.3f}", row.sum())
        return row * 2

    return jax.vmap(one)(x[:3])


def prints_under_grad(x: jax.Array) -> jax.Array:
    @jax.checkpoint
    def loss(x: jax.Array) -> jax.Array:
        jax.debug.print("loss of {:.3f}", x.sum())
        return jnp.sum(jnp.sin(x) ** 2)

    return jax.grad(loss)(x)


@pytest.mark.parametrize("fun", [prints, prints_in_order, prints_batched, prints_under_grad])
def test_what_is_printed(fun: Callable[..., Any], capsys: Any) -> None:
    x = x_of(8, 16)
    found, lines = said(capsys, parallel(fun), x)
    wanted, wanted_lines = said(capsys, jax.jit(fun), x)
    assert_equal(found, wanted)
    if fun is not prints_in_order:
        lines, wanted_lines = sorted(lines), sorted(wanted_lines)
    assert lines == wanted_lines
    assert len(lines) >= 2


def test_whole_operands_once_a_step() -> None:
    seen: list[Any] = []

    def watched(x: jax.Array) -> jax.Array:
        y = jnp.tanh(x)
        jax.debug.callback(lambda tree, scale: seen.append((tree["y"], scale)), {"y": y}, scale=2)
        return y @ y.T

    x = x_of(64, 32)
    step = parallel(watched)
    assert_equal(step(x), jnp.tanh(x) @ jnp.tanh(x).T)
    ((whole, scale),) = seen
    assert scale == 2
    np.testing.assert_allclose(whole, np.tanh(x), rtol=1e-5)


DTYPES = ["float32", "bfloat16", "float16", "bool", "int8", "uint16", "int32", "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_reach_all_devices_to_the_bit(dtype: str) -> None:
    values = np.array([0.0, -0.0, 1.5, -3, np.inf, -np.inf, np.nan, 7] * 2)
    with np.errstate(all="ignore"):
        values = np.nan_to_num(values).astype(dtype) if "int" in dtype else values.astype(dtype)

    def fun(x: jax.Array) -> jax.Array:
        return jax.pure_callback(lambda x: x[::-1], Struct(x.shape, x.dtype), x)

    found, wanted = parallel(fun)(values), jax.jit(fun)(values)
    assert found.dtype == wanted.dtype
    for shard in found.addressable_shards:
        assert np.asarray(shard.data).tobytes() == np.asarray(wanted)[shard.index].tobytes()


@jax.custom_jvp
def host_sin(x: jax.Array) -> jax.Array:
    return jax.pure_callback(np.sin, Struct(x.shape, x.dtype), x, vmap_method="expand_dims")


@host_sin.defjvp
def _host_sin_jvp(primals: Any, tangents: Any) -> Any:
    return host_sin(*primals), jnp.cos(primals[0]) * tangents[0]


def scanned(x: jax.Array) -> jax.Array:
    return jax.lax.scan(lambda c, _: (host_sin(c), c.sum()), x, None, length=3)[0]


PURE: dict[str, Callable[..., Any]] = {
    "plain": lambda x: host_sin(x @ x.T),
    "scan": scanned,
    "grad of scan": jax.grad(lambda x: jnp.sum(scanned(x) ** 2)),
    "vmap": lambda x: jax.vmap(host_sin)(x),
    "while": lambda x: jax.lax.while_loop(lambda c: host_sin(c).sum() > 1, lambda c: c / 2, x),
    "cond": lambda x: jax.lax.cond(x[0, 0] > 0, host_sin, jnp.cos, x),
    "nested jit": lambda x: jax.jit(host_sin)(x) + jax.jit(host_sin)(2 * x),
    "unused": lambda x: (host_sin(x), x + 1)[1],
}


@pytest.mark.parametrize("name", PURE)
def test_pure_callbacks(name: str) -> None:
    x = x_of(8, 8)
    assert_equal(parallel(PURE[name])(x), jax.jit(PURE[name])(x))


def test_io_callbacks_run_in_order() -> None:
    def counting(log: list[Any]) -> Callable[..., Any]:
        def count(what: int, x: Any) -> Any:
            log.append((what, x.shape))
            return np.float32(len(log))

        def ask(what: int, x: jax.Array) -> jax.Array:
            kind = Struct((), jnp.float32)
            return io_callback(functools.partial(count, what), kind, x, ordered=True)

        def fun(x: jax.Array) -> Any:
            first = ask(0, x)
            # Neither removed nor merged: results are not used, or are equal.
            ask(1, x)
            ask(1, x)

            def body(i: Any, c: Any) -> Any:
                return jax.lax.fori_loop(0, 2, lambda j, c: c + ask(2, x) * (j + 1), c + ask(3, x))

            total = jax.lax.fori_loop(0, 2, body, first)
            total += jax.lax.switch(
                x.shape[0] % 2 + 0 * total.astype(int), [lambda: ask(4, x), lambda: ask(5, x)]
            )
            return total, ask(6, x[:2])

        return fun

    x = x_of(8, 16)
    log: list[Any] = []
    wanted_log: list[Any] = []
    found, wanted = parallel(counting(log))(x), jax.jit(counting(wanted_log))(x)
    assert_equal(found, wanted)
    assert log == wanted_log
    assert len(log) == 11


def test_one_branch_of_a_loop_calls_in_order() -> None:
    log: list[int] = []

    def fun(x: jax.Array) -> Any:
        def call(i: Any, x: Any) -> Any:
            jax.debug.callback(lambda i: log.append(int(i)), i, ordered=True)
            return x * 2

        def body(x: Any, i: Any) -> Any:
            return jax.lax.cond(i % 2 == 0, call, lambda i, x: x + 1, i, x), i

        return jax.lax.scan(body, x, jnp.arange(4))

    x = x_of(8, 16)
    assert_equal(parallel(fun)(x), jax.jit(fun)(x))
    jax.effects_barrier()
    assert log == [0, 2, 0, 2]


def test_unordered_io_callbacks_and_keys() -> None:
    seen: list[Any] = []

    def look(key: Any, x: Any) -> Any:
        seen.append(jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key))
        return np.asarray(x) + 1

    def fun(key: jax.Array, x: jax.Array) -> jax.Array:
        return io_callback(look, Struct(x.shape, x.dtype), key, x)

    x = x_of(8, 16)
    assert_equal(parallel(fun)(jax.random.key(0), x), x + 1)
    assert seen == [True]


@pytest.mark.parametrize("backend", ["shardy", "gspmd"])
def test_partitioners_of_xla(backend: str, capsys: Any) -> None:
    def fun(x: jax.Array) -> jax.Array:
        jax.debug.print("in order {:.3f}", x.sum(), ordered=True)
        return host_sin(x @ x.T)

    jax.config.update("jax_use_shardy_partitioner", backend == "shardy")
    try:
        x = x_of(8, 16)
        found, lines = said(capsys, parallel(fun, backend=backend), x)
        wanted, wanted_lines = said(capsys, jax.jit(fun), x)
    finally:
        jax.config.update("jax_use_shardy_partitioner", True)
    assert_equal(found, wanted)
    assert lines == wanted_lines


def root(x: jax.Array, w: jax.Array) -> jax.Array:
    x = equinox.error_if(x, jnp.any(x < 0), "x must not be negative")

    def body(c: jax.Array, _: Any) -> tuple[jax.Array, None]:
        c = equinox.error_if(c, jnp.any(c > 100), "c is too large")
        return c * c, None

    return jax.lax.scan(body, jnp.sqrt(x) @ w, None, length=4)[0]


@pytest.mark.parametrize("transform", [lambda f: f, lambda f: jax.grad(lambda x, w: f(x, w).sum())])
def test_error_if(transform: Callable[..., Any]) -> None:
    fun = transform(root)
    step, oracle = parallel(fun), jax.jit(fun)
    good, w = jnp.abs(x_of(8, 16)) + 0.1, 0.1 * x_of(16, 16)
    for x, message in [
        (good, None),
        (-good, "x must not be negative"),
        (good, None),
        (1e6 * good, "c is too large"),
        (good, None),
    ]:
        if message is None:
            assert_equal(step(x, w), oracle(x, w))
            continue
        with pytest.raises(jax.errors.JaxRuntimeError, match=message):
            step(x, w)
        with pytest.raises((RuntimeError, ValueError), match=message):
            jax.block_until_ready(oracle(x, w))


def test_after_a_failure_nothing_is_called() -> None:
    called: list[str] = []

    def fail(x: Any) -> Any:
        called.append("fail")
        raise ValueError("no such file")

    def fun(x: jax.Array) -> jax.Array:
        y = io_callback(fail, Struct(x.shape, x.dtype), x, ordered=True)
        io_callback(lambda _: called.append("after"), None, y, ordered=True)
        return y

    step = parallel(fun)
    for _ in range(2):
        with pytest.raises(jax.errors.JaxRuntimeError, match="no such file") as raised:
            step(x_of(8, 16))
        assert isinstance(raised.value.__cause__, ValueError)
    assert called == ["fail", "fail"]


def test_results_of_another_shape() -> None:
    def fun(x: jax.Array) -> jax.Array:
        return jax.pure_callback(lambda x: x[:1], Struct(x.shape, x.dtype), x)

    with pytest.raises(jax.errors.JaxRuntimeError, match=r"returned \[\(\(1, 16\)"):
        parallel(fun)(x_of(8, 16))


def test_threads() -> None:
    def fun(x: jax.Array) -> jax.Array:
        return equinox.error_if(x, x[0, 0] < 0, "negative") @ x.T

    step, x = parallel(fun), jnp.abs(x_of(8, 16))
    step(x)
    failures: list[int] = []
    wrong: list[int] = []

    def run(number: int) -> None:
        for _ in range(3):
            try:
                found = step(x if number % 2 else -x)
                if number % 2 == 0 or not np.allclose(found, x @ x.T, rtol=1e-5):
                    wrong.append(number)
            except jax.errors.JaxRuntimeError:
                failures.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(failures) == [0, 0, 0, 2, 2, 2]
    assert not wrong


def test_the_plan_says_what_it_costs() -> None:
    def silent(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.tanh(x @ w) @ w

    def talking(x: jax.Array, w: jax.Array) -> jax.Array:
        y = jnp.tanh(x @ w)
        jax.debug.print("y = {}", y)
        return y @ w

    x, w = x_of(256, 64), x_of(64, 64)
    method = stablehlo_alpa.DataParallel()
    plans = [stablehlo_alpa.parallelize(fun, method=method).plan(x, w) for fun in (silent, talking)]
    assert plans[0].step_time_s < plans[1].step_time_s
    assert "all_gather" in {row.kind for row in plans[1].communication()}
    (remark,) = [remark for remark in plans[1].remarks if "callback" in remark]
    assert "callback 'print 'y = {}'' runs on the first device: 65536 bytes are gathered" in remark


def in_two_stages(num_micro_batches: int) -> stablehlo_alpa.PipeshardParallel:
    return stablehlo_alpa.PipeshardParallel(
        num_micro_batches=num_micro_batches,
        layers=stablehlo_alpa.AutoLayers(num_layers=2),
        stages=stablehlo_alpa.UniformStages(2),
    )


MANY_PROGRAMS = {
    "stages": in_two_stages(2),
    "micro-batches": ShardParallel(num_micro_batches=4),
    "stages, searched": stablehlo_alpa.PipeshardParallel(
        num_micro_batches=4, layers=stablehlo_alpa.AutoLayers(num_layers=2)
    ),
}


def logging_step(log: Callable[..., Any]) -> Callable[..., Any]:
    """A step that shows what it has computed, in all the ways that return nothing."""

    def step(state: Any, x: jax.Array) -> Any:
        w, count = state
        new, value = tanh_layers.step(w, x)
        norm = sum(100 * jnp.vdot(a - b, a - b) for a, b in zip(w, new, strict=True))
        jax.debug.print("step {} of {n}", count, n=3)
        jax.lax.cond(
            count % 2 == 0,
            lambda: jax.debug.print("large {:.4f}", value, ordered=True),
            lambda: jax.debug.print("small {:.4f}", norm, ordered=True),
        )
        jax.debug.callback(log, {"loss": value, "corner": w[0][:2, :3]}, scale=2)
        io_callback(functools.partial(log, scale=3), None, norm, ordered=True)
        return (new, count + 1), value

    return step


@pytest.mark.parametrize(
    ("name", "cluster"),
    [
        *((name, None) for name in MANY_PROGRAMS),
        pytest.param("stages", stablehlo_alpa.RayCluster(), marks=pytest.mark.slow),
    ],
    ids=lambda one: one if isinstance(one, str) else "here" if one is None else "ray",
)
def test_what_a_step_of_many_programs_shows(name: str, cluster: Any, capfd: Any) -> None:
    seen: list[Any] = []

    def log(tree: Any, scale: int) -> None:
        seen.append((jax.tree.map(np.asarray, tree), scale))

    def shown(fun: Callable[..., Any]) -> tuple[Any, list[Any], list[str]]:
        seen.clear()
        state: Any = ([x_of(16, 16), x_of(16, 16)], jnp.int32(0))
        capfd.readouterr()
        for _ in range(3):
            state, value = fun(state, x_of(8, 16))
            jax.effects_barrier()
        return (state, value), list(seen), capfd.readouterr().out.splitlines()

    step = logging_step(log)
    wanted = shown(jax.jit(step))
    parallel = stablehlo_alpa.parallelize(
        step,
        method=MANY_PROGRAMS[name],
        donate_argnums=(0,),
        batch_argnums=(1,),
        cluster=cluster,
    )
    found = shown(parallel)
    assert_equal(found[0], wanted[0])
    # Unordered ones may come in any order among the ordered ones.
    assert sorted(found[2]) == sorted(wanted[2])
    assert [one for one in found[2] if "step" not in one] == [
        one for one in wanted[2] if "step" not in one
    ]
    for scale in (2, 3):
        assert_equal(
            [tree for tree, own in found[1] if own == scale],
            [tree for tree, own in wanted[1] if own == scale],
        )
    assert len(found[1]) == len(wanted[1]) == 6


def test_a_step_of_many_programs_fails_with_what_it_calls(tmp_path: Any) -> None:
    fails = True

    def log(tree: Any, scale: int) -> None:
        if fails:
            raise ValueError("no room for logs")

    parallel = stablehlo_alpa.parallelize(logging_step(log), method=MANY_PROGRAMS["micro-batches"])
    state: Any = ([x_of(16, 16)] * 2, jnp.int32(0))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"callback of step failed[^$]*no room"):
        parallel(state, x_of(8, 16))
    fails = False
    parallel(state, x_of(8, 16))
    plan = parallel.plan(state, x_of(8, 16))
    with pytest.raises(ProgramError, match="plan of step calls back into Python"):
        plan.save(tmp_path / "plan")
    wanted: Any = jax.tree.structure((state, 0))
    assert jax.tree.structure(plan.output_shardings) == wanted


def test_where_it_cannot_run() -> None:
    def step(w: Any, x: jax.Array) -> Any:
        def loss(w: Any) -> jax.Array:
            y = jnp.tanh(x @ w[0])
            jax.debug.print("{}", y.sum())
            return jnp.mean((y @ w[1]) ** 2)

        value, gradient = stablehlo_alpa.value_and_grad(loss)(w)
        return jax.tree.map(lambda a, b: a - b, w, gradient), value

    w, x = [0.1 * x_of(16, 16)] * 2, x_of(8, 16)
    with pytest.raises(CompileError, match=r"callback 'print '\{\}'' cannot run in a pipeline"):
        stablehlo_alpa.parallelize(step, method=in_two_stages(2)).plan(w, x)

    def in_turns(w: Any, x: jax.Array) -> Any:
        def turn(total: Any, part: jax.Array) -> Any:
            gradient = jax.grad(lambda w: jnp.mean((part @ w[0] @ w[1]) ** 2))(w)
            scale = jax.pure_callback(np.sin, jax.ShapeDtypeStruct((), jnp.float32), part.sum())
            return jax.tree.map(lambda a, b: a + scale * b, total, gradient), None

        return jax.lax.scan(turn, w, x.reshape(2, -1, 16))[0]

    method = stablehlo_alpa.ShardParallel(num_micro_batches=2)
    with pytest.raises(CompileError, match=r"callback 'pure_callback sin' cannot run in a pipe"):
        stablehlo_alpa.parallelize(in_turns, method=method).plan(w, x)

    @stablehlo_alpa.partition
    def part(x: jax.Array) -> jax.Array:
        return host_sin(x)

    with pytest.raises(TraceError, match=r"part calls back into Python \(pure_callback sin\)"):
        jax.jit(part)(x)


def test_no_file_holds_a_function(tmp_path: Any) -> None:
    # Other functions, as those of another process would be, are the same program.
    spmd, other = (parallel(prints).plan(x_of(8, 16)).runtime.programs[0] for _ in range(2))
    assert spmd.callbacks != other.callbacks
    assert spmd.digest == other.digest

    class Pipeline:
        name = "prints"
        programs = (spmd,)

    with pytest.raises(ProgramError, match="prints calls back into Python"):
        save(Pipeline(), tmp_path / "plan")  # type: ignore[arg-type]
