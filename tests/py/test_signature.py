"""A parallelised function has the signature that ``jax.jit`` gives it: plain jit is the oracle."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from alpa_runtime import InputError
from alpa_runtime.program import weakened
from jax.sharding import Mesh, NamedSharding, PartitionSpec

pytest.importorskip("stablehlo_alpa._core")

from oracle import assert_same

import stablehlo_alpa as sa

ROOT = Path(__file__).resolve().parents[2]
P = PartitionSpec
LINE = sa.ShardParallel(mesh_shape=(8,))
X = np.arange(64, dtype=np.float32).reshape(8, 8) / 64
DEVICES = np.array(jax.devices())


def call(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of a call."""
    return args, kwargs


def compare(fun: Callable[..., Any], *calls: Any, **options: Any) -> sa.Parallelized[..., Any]:
    """Calls one parallelised and one jitted function, one call after the other, each twice."""
    ours, theirs = sa.parallelize(fun, method=LINE, **options), jax.jit(fun, **options)
    for args, kwargs in calls:
        for _ in range(2):
            expected = theirs(*copy.deepcopy(args), **copy.deepcopy(kwargs))
            assert_same(ours(*copy.deepcopy(args), **copy.deepcopy(kwargs)), expected)
    return ours


ONES = np.ones(8, np.float32)


def optional(x: Any, y: Any = ONES, n: Any = 2, *, flag: bool = False) -> Any:
    return (x + y) * n if flag else x - y


class Scaling:
    """A callable without a name."""

    def __call__(self, x: Any) -> Any:
        """Twice the argument."""
        return 2 * x


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Layer:
    """A pytree with a static field."""

    weight: Any
    power: int = dataclasses.field(metadata={"static": True})

    def apply(self, x: Any) -> Any:
        """A power of the product."""
        return (x @ self.weight) ** self.power


def any_rows(w: Any, x: Any) -> Any:
    return jnp.tanh(x @ w) + x.shape[0], x[-1]


ROWS = jax.ShapeDtypeStruct((*jax.export.symbolic_shape("rows"), 8), np.float32)
EXPORTED = jax.export.export(jax.jit(any_rows))(jax.ShapeDtypeStruct((8, 8), np.float32), ROWS)
KEY = jax.random.PRNGKey(3)
CASES: dict[str, Any] = {
    "static values have types": (
        lambda x, p: x * p,
        [call(np.arange(8), 2), call(np.arange(8), 2.0), call(np.arange(8), True)],
        {"static_argnums": 1},
    ),
    "weak type of an array": (
        lambda w, x: w * x,
        [
            call(jnp.ones(8), jnp.ones(8, jnp.bfloat16)),
            call(weakened(jnp.ones(8)), jnp.ones(8, jnp.bfloat16)),
            call(np.ones(8, np.float32), jnp.ones(8, jnp.bfloat16)),
        ],
        {},
    ),
    "weak type of a scalar": (
        lambda w, x: w * x,
        [
            call(w, jnp.ones(8, jnp.bfloat16))
            for w in (jnp.asarray(2.0), jnp.float32(2), 2.0, 2, np.float32(2), np.float64(2))
        ],
        {},
    ),
    "scalars": (
        lambda x, a: x + a,
        [
            call(X, a)
            for a in (1, 1.0, 1j, True, np.int8(1), np.float16(1), np.bool_(True), np.complex64(1))
        ],
        {},
    ),
    "wide arrays with x64 off": (
        lambda x: 2 * x,
        [call(X.astype(kind)) for kind in (np.float64, np.int64, np.float32, np.uint64)],
        {},
    ),
    "narrow and odd types": (
        lambda x: 3 * x,
        [call(jnp.ones(8, t)) for t in ("float16", "uint8", "complex64", "float8_e4m3fn", "int4")],
        {},
    ),
    "types of eight bits and less": (
        lambda x: (x.T, x.astype("float32") + 1),
        [
            call(jnp.ones((8, 4), t))
            for t in [f"float8_{t}" for t in "e3m4 e4m3 e4m3b11fnuz e4m3fnuz e5m2fnuz".split()]
            + ["float8_e8m0fnu", "float4_e2m1fn", "uint4"]
        ],
        {},
    ),
    "what holds nothing": (
        lambda x, t: (jax.grad(lambda n: (x * n[0]).sum(), allow_int=True)((2.0, 3)), t, x @ x),
        [call(X, np.zeros(3, jax.dtypes.float0))],
        {},
    ),
    "booleans": (lambda x: (~x, x.sum()), [call(X > 0.5)], {}),
    "keyword-only": (
        lambda x, *, k: x * k,
        [call(X, k=2), call(X, k=2.5), call(X, k=np.float32(2)), call(X, k=True)],
        {},
    ),
    "any number of arguments": (
        lambda x, *rest, **named: x + sum(rest) + 3 * named.get("z", 0),
        [call(X, X, X, z=1), call(X), call(X, 1, z=X, y=X), call(X, 1, y=X, z=X)],
        {},
    ),
    "the order of keywords": (lambda **named: named, [call(b=X, a=1), call(a=1, b=X)], {}),
    "none": (lambda x, m: x if m is None else x * m, [call(X, None), call(X, X)], {}),
    "lists and tuples": (
        lambda x: x[0] + x[1],
        [call([X, 1.0]), call((X, 1.0)), call([X, 1])],
        {},
    ),
    "empty arrays": (
        lambda x: (2 * x, x.sum()),
        [call(np.zeros((0, 8), np.float32)), call(np.zeros((8, 0), np.float32))],
        {},
    ),
    "nothing but empty arrays": (
        lambda x, y: (x.sum(0), jnp.concatenate([x, y])),
        [call(np.zeros((0, 8), np.float32), np.zeros((0, 8), np.float32))],
        {},
    ),
    "an empty batch": (lambda w, b: b @ w, [call(X, np.zeros((0, 8), np.float32))], {}),
    "keys": (
        lambda k: (jax.random.normal(k, (8,)), jax.random.split(k)),
        [call(jax.random.key(3)), call(KEY), call(np.asarray(KEY))],
        {},
    ),
    "results that are inputs or constants": (
        lambda x, y: (x, y, 3, 2.0, None, True),
        [call(X, 1), call(X, 1.0), call(X, np.int32(1))],
        {},
    ),
    "one array twice": (lambda a, b: (a + 1, 2 * b), [call(*[jnp.asarray(X)] * 2)], {}),
    "defaults": (
        optional,
        [
            call(X),
            call(X, flag=True),
            call(X, X, 3, flag=True),
            call(X, y=X, n=4, flag=True),
            call(x=X, n=4.0, flag=True),
        ],
        {"static_argnames": ("n", "flag")},
    ),
    "static by number, passed by keyword": (
        lambda x, n: x * n if isinstance(n, int) else None,
        [call(X, n=5), call(X, 5), call(n=5, x=X)],
        {"static_argnums": 1},
    ),
    "static counted from the end": (
        lambda x, n: x * n if isinstance(n, int) else None,
        [call(X, 5)],
        {"static_argnums": -1},
    ),
    "static by number and by name": (
        optional,
        [call(X, X, 5, flag=True), call(X, n=5, flag=True)],
        {"static_argnums": 2, "static_argnames": ("n", "flag")},
    ),
    "donated by name": (
        lambda x, y: (x + 1, y * 2),
        [call(jnp.asarray(X), y=jnp.asarray(X)), call(x=jnp.asarray(X), y=jnp.asarray(X))],
        {"donate_argnames": "x"},
    ),
    "donated by number, passed by keyword": (
        lambda x, y: (x + 1, y * 2),
        [call(x=jnp.asarray(X), y=jnp.asarray(X))],
        {"donate_argnums": 0},
    ),
    "arrays that the function closes over": (
        functools.partial(lambda c, y: c @ y, jnp.asarray(X)),
        [call(X)],
        {},
    ),
    "arrays of other devices": (
        lambda y: y + 1,
        [call(jax.device_put(X, jax.devices()[n])) for n in (3, 5)],
        {},
    ),
    "no arrays": (lambda: (jnp.ones((8, 8)) @ jnp.ones((8, 8)), 1), [call()], {}),
    "static arguments only": (
        lambda n: jax.random.normal(jax.random.key(0), (n, 8)),
        [call(8), call(4)],
        {"static_argnums": 0},
    ),
    "a partial function": (
        functools.partial(lambda x, k: x * k, k=3),
        [call(X), call(X, k=2)],
        {},
    ),
    "a function that was exported for any number of rows": (
        lambda w, x: EXPORTED.call(w, x)[0] @ w,
        [call(X, X), call(X, X[:3])],
        {},
    ),
    "a callable object": (Scaling(), [call(X)], {}),
    "a function that is jitted": (
        jax.jit(lambda x, n: x * n, static_argnums=1),
        [call(X, 3), call(X, 3.0)],
        {"static_argnums": 1},
    ),
    "a pytree with a static field": (
        Layer.apply,
        [call(Layer(X, 1), X), call(Layer(X, 2), X)],
        {},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_jit(name: str) -> None:
    fun, calls, options = CASES[name]
    compare(fun, *calls, **options)


def test_equal_signatures_are_planned_once() -> None:
    step = compare(
        lambda x, n=2, *, k=1.0: x * n * k,
        call(X, 2),
        call(jnp.asarray(X), 2),
        call(jax.device_put(X, jax.devices()[1]), 2, k=1.0),
        call(X.astype(np.float64), 2),
        call(jax.device_put(X, NamedSharding(Mesh(DEVICES, "a"), P("a"))), 2),
        static_argnums=1,
    )
    # The keyword is there or not.
    assert len(step._prepared) == 2


CONTEXTS: dict[str, Any] = {
    "x64": lambda: jax.enable_x64(True),
    "precision": lambda: jax.default_matmul_precision("bfloat16"),
    "promotion": lambda: jax.numpy_dtype_promotion("strict"),
    "default device": lambda: jax.default_device(jax.devices()[2]),
    "a mesh": lambda: jax.set_mesh(Mesh(DEVICES, "d")),
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_the_context_is_part_of_the_signature(name: str) -> None:
    def fun(seed: Any, x: Any) -> Any:
        return jax.random.normal(jax.random.key(seed), (8,)) + x, jnp.arange(3).astype(float)

    ours, theirs = sa.parallelize(fun, method=LINE), jax.jit(fun)
    assert_same(ours(np.int32(1), X), theirs(np.int32(1), X))
    with CONTEXTS[name]():
        expected = jax.device_get(theirs(np.int32(1), X))
        for _ in range(2):
            found = jax.device_get(ours(np.int32(1), X))
            assert jax.tree.map(lambda a: a.dtype, found) == jax.tree.map(
                lambda a: a.dtype, expected
            )
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), found, expected)
    assert_same(ours(np.int32(1), X), theirs(np.int32(1), X))
    assert len(ours._prepared) == 2


def test_the_implementation_of_random_numbers_is_part_of_the_signature() -> None:
    def fun(seed: Any) -> Any:
        return jax.random.normal(jax.random.key(seed), (8,)), jax.random.key(seed)

    ours = sa.parallelize(fun, method=LINE)
    # A jitted function would keep what it was traced with: one for each.
    for impl in ("threefry2x32", "rbg", "threefry2x32"):
        with jax.default_prng_impl(impl):
            for _ in range(2):
                assert_same(ours(np.int32(1)), jax.jit(lambda seed: fun(seed))(np.int32(1)))
    assert len(ours._prepared) == 2


def test_functions_run_as_they_are_where_jit_is_disabled() -> None:
    seen: list[Any] = []

    def fun(x: Any) -> Any:
        seen.append(x)
        return 2 * x

    step = sa.parallelize(fun, method=LINE)
    step(X)
    with jax.disable_jit():
        np.testing.assert_array_equal(step(X), 2 * X)
    assert seen[-1] is X


@pytest.mark.parametrize("method", [LINE, sa.PipeshardParallel(stages=sa.UniformStages(2))])
@pytest.mark.parametrize("kind", ["int4", "uint4", "float4_e2m1fn"])
def test_weights_of_less_than_a_byte_are_fed_back(kind: str, method: Any) -> None:
    def fun(w: Any, x: Any) -> Any:
        return jnp.flip(w, 0), jnp.tanh(x @ w.astype("float32")) @ w.astype("float32")

    step = sa.parallelize(fun, method=method, donate_argnums=0)
    ours, theirs = (jnp.asarray(X > 0.5).astype(kind) for _ in range(2))
    for _ in range(3):
        (ours, found), (theirs, expected) = step(ours, X), jax.jit(fun)(theirs, X)
        assert_same(found, expected)
    np.testing.assert_array_equal(ours.astype("float32"), theirs.astype("float32"))
    with jax.set_mesh(jax.make_mesh((4,), ("other",), devices=jax.devices()[:4])):
        assert_same(step(ours, X)[1], jax.jit(fun)(theirs, X)[1])


@pytest.mark.parametrize("method", [LINE, sa.PipeshardParallel(stages=sa.UniformStages(2))])
def test_results_that_are_no_numbers_are_named_where_jax_looks_for_them(method: Any) -> None:
    step = sa.parallelize(lambda x: jnp.log(x @ X @ X), method=method)
    step(X + 1)
    with jax.debug_nans(True):
        step(X + 1)
        with pytest.raises(FloatingPointError, match=r"\(nan\) in a result of .*disable_jit"):
            step(-X - 1)
        with jax.disable_jit(), pytest.raises(FloatingPointError, match="log"):
            step(-X - 1)
    assert np.isnan(step(-X - 1)).all()


def test_a_train_state_with_functions_inside() -> None:
    from flax.training.train_state import TrainState

    optax = pytest.importorskip("optax")

    def fun(state: Any, x: Any) -> Any:
        def loss(params: Any) -> Any:
            return (state.apply_fn(params, x) ** 2).mean()

        value, gradients = jax.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads=gradients), value

    state = TrainState.create(
        apply_fn=lambda w, x: x @ w["w"], params={"w": jnp.asarray(X)}, tx=optax.adam(1e-2)
    )
    ours, theirs = sa.parallelize(fun, method=LINE), jax.jit(fun)
    mine, other = state, state
    for _ in range(3):
        (mine, a), (other, b) = ours(mine, X), theirs(other, X)
        assert_same((a, mine.params, mine.step), (b, other.params, other.step))
    assert len(ours._prepared) == 1


def test_wide_numbers_are_kept_with_x64() -> None:
    with jax.enable_x64(True):
        compare(lambda x, a: x * a, call(X.astype("f8"), 2.0), call(X, 2), call(X, 2**40))


def test_numbers_that_are_too_large_are_refused_by_name() -> None:
    step = sa.parallelize(lambda x, count: x + count, method=LINE)
    for _ in range(2):
        with pytest.raises(OverflowError, match=r"argument count of <lambda> is 1099511627776"):
            step(X, 2**40)
        assert_same(step(X, 2**31 - 1), jax.jit(step.__wrapped__)(X, 2**31 - 1))


def test_donated_arguments_are_taken_however_they_are_passed() -> None:
    # New values have the shardings of the old ones: what is donated is used.
    step = sa.parallelize(lambda x, y: (x + 1, y), method=LINE, donate_argnums=0)
    x, _ = step(X, X)
    step(x=x, y=X)
    x, _ = step(x=X, y=X)
    step(x=x, y=X)
    assert x.is_deleted()


def test_an_array_that_is_donated_and_read_is_refused() -> None:
    step = sa.parallelize(lambda x, y: (x + 1, y * 2), method=LINE, donate_argnums=0)
    array = step(X, X)[0]
    with pytest.raises(InputError, match=r"x and y of .* are one array and x is donated"):
        step(array, array)
    assert_same(step(array, jnp.copy(array)), jax.jit(step.__wrapped__)(X + 1, X + 1))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"donate_argnums": 2}, ValueError, r"donate_argnums=\(2,\), but only accepts 2"),
        ({"static_argnums": -3}, ValueError, r"static_argnums=\(-3,\), but only accepts 2"),
        ({"static_argnames": "z"}, ValueError, "'z'"),
        ({"donate_argnames": ("x", "bach")}, ValueError, "'bach'"),
        ({"donate_argnums": 0, "static_argnums": (0,)}, sa.TraceError, "donated and static"),
        ({"donate_argnames": "x", "static_argnames": "x"}, sa.TraceError, "donated and static"),
        ({"donate_argnums": 0, "static_argnames": "x"}, ValueError, "cannot intersect"),
        ({"batch_argnums": "z"}, sa.TraceError, r"batch_argnums has 'z', <lambda> takes \(x, y\)"),
        ({"batch_argnums": (0, 5)}, sa.TraceError, r"batch_argnums has 5, <lambda> takes"),
        ({"batch_argnums": 1, "static_argnames": "y"}, sa.TraceError, "1, a static argument"),
    ],
)
def test_arguments_that_are_not_there_are_refused(
    options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        sa.parallelize(lambda x, y: x, **options)


def test_what_is_not_callable_is_refused() -> None:
    with pytest.raises(TypeError, match="fun must be callable, got ShardParallel"):
        sa.parallelize(sa.ShardParallel())  # type: ignore[call-overload]


def test_batches_are_chosen_by_name() -> None:
    def fun(w: Any, table: Any, x: Any) -> Any:
        return x @ w + table

    for chosen in ("x", 2, -1, ("x",)):
        step = sa.parallelize(fun, method=sa.DataParallel(), batch_argnums=chosen)
        plan = step.plan(X, X, x=X)
        assert plan.program.batch == {2}
        assert plan.program.input_argnum == (0, 1, 2)


def test_wrong_arguments_are_said_as_python_says_them() -> None:
    step = sa.parallelize(lambda x, y: x, method=LINE)
    for args, kwargs in (call(X), call(X, X, X), call(X, X, z=1)):
        with pytest.raises(TypeError, match=r"<lambda>\(\)"):
            step(*args, **kwargs)
    with pytest.raises(sa.TraceError, match=r"argument y\['name'\] of <lambda> is no array but of"):
        step(X, {"name": "text"})


def test_arguments_that_are_no_arrays_are_errors_of_the_kind_that_jit_raises() -> None:
    def fun(x: Any, y: Any) -> Any:
        return x

    makers: list[Callable[..., Any]] = [jax.jit, sa.parallelize]
    for make in makers:
        for wrong in ("text", object(), np.array(["text"]), {1, 2}, len):
            with pytest.raises(TypeError):
                make(fun)(X, wrong)
        with pytest.raises(ValueError, match="hash"):
            make(fun, static_argnums=1)(X, [1])


@pytest.mark.parametrize("count", [1, 2])
def test_arrays_of_64_bits_say_under_what_they_are_taken(count: int) -> None:
    """Numbers of the host are narrowed, as by ``jax.jit``; arrays of jax stay what they are."""
    method = sa.ShardParallel(num_micro_batches=count)
    step = sa.parallelize(lambda x, i: (x * 2, i + 1), method=method)
    host = np.arange(8.0), np.arange(8)
    found = step(*host)
    expected = jax.jit(lambda x, i: (x * 2, i + 1))(*host)
    assert [(a.dtype, a.tolist()) for a in found] == [(a.dtype, a.tolist()) for a in expected]
    with jax.enable_x64(True):
        wide = jnp.arange(8.0), jnp.arange(8)
        assert [a.dtype.name for a in step(*wide)] == ["float64", "int64"]
    mend = r"is float32\[8\], got float64\[8\]: call it under jax.enable_x64\(True\), or convert"
    with pytest.raises(InputError, match=mend):
        step(*wide)
