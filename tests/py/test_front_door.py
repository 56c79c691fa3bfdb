"""Where and as what a parallelised function is called: methods, meshes that are set, jax.jit."""

from __future__ import annotations

import copy
import dataclasses
import functools
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jmp
import numpy as np
import pytest
from alpa_runtime import InputError
from jax.extend.core import jaxpr_as_fun
from jax.sharding import Mesh, NamedSharding, PartitionSpec

pytest.importorskip("stablehlo_alpa._core")

from oracle import assert_same

import stablehlo_alpa as sa

ROOT = Path(__file__).resolve().parents[2]
P = PartitionSpec
LINE = sa.ShardParallel(mesh_shape=(8,))
X = np.arange(64, dtype=np.float32).reshape(8, 8) / 64
DEVICES = np.array(jax.devices())


class Trainer:
    """Methods, and objects that are static or pytrees."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    @sa.parallelize(static_argnums=0, method=LINE, donate_argnames="state")
    def step(self, state: Any, x: Any) -> Any:
        """Makes a step."""
        return {"w": state["w"] - self.rate * (state["w"] @ x)}


def test_methods_are_bound() -> None:
    one, two = Trainer(1.0), Trainer(0.5)
    for trainer in (one, two, one):
        expected = {"w": X - trainer.rate * (X @ X)}
        assert_same(trainer.step({"w": X}, X), jax.jit(lambda s: s)(expected))
        assert_same(trainer.step(x=X, state={"w": X}), jax.jit(lambda s: s)(expected))
    state = one.step.create_state(lambda: {"w": jnp.ones((8, 8))}, batch=(X,))
    again = two.step.create_state(lambda: {"w": jnp.ones((8, 8))}, kwargs={"x": X}, argnum="state")
    assert_same(one.step(state, X), {"w": 1 - jnp.ones((8, 8)) @ X})
    assert again["w"].shape == (8, 8)
    assert one.step.plan({"w": X}, X).program.name == "step"
    assert one.step.lower({"w": X}, X).compile() is one.step.compile({"w": X}, X)
    assert one.step == one.step
    assert one.step != two.step
    assert Trainer.step.__doc__ == one.step.__wrapped__.__doc__ == "Makes a step."
    assert "step" in repr(one.step)


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


def test_any_callable_has_a_name() -> None:
    def named(x: Any) -> Any:
        return x

    for fun, name in (
        (named, "named"),
        (functools.partial(named), "named"),
        (jax.jit(named), "named"),
        (Scaling(), "Scaling"),
        (Layer(X, 1).apply, "apply"),
    ):
        step: sa.Parallelized[..., Any] = sa.parallelize(fun, method=LINE)
        assert step.__name__ == name
        assert step.__wrapped__ is fun or step.__wrapped__ == fun
        assert repr(step) == f"<{name} parallelized by ShardParallel(mesh_shape=(8,))>"


@sa.parallelize(method=LINE)
def doubled(x: Any) -> Any:
    """Twice the argument."""
    return 2 * x


def test_copies_are_the_function_itself() -> None:
    assert copy.copy(doubled) is doubled
    assert copy.deepcopy({"step": doubled})["step"] is doubled
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    assert pickle.loads(pickle.dumps(Trainer.step)) is Trainer.step
    with pytest.raises(TypeError, match=r"is pickled by name, and .* is not it"):
        pickle.dumps(sa.parallelize(one_step))


# Where it is called


def pipelined(state: Any, batch: Any) -> Any:
    def loss(w: Any) -> Any:
        return jnp.mean((jnp.tanh(batch @ w) @ w) ** 2)

    value, gradient = sa.value_and_grad(loss)(state["w"])
    return {"w": state["w"] - gradient, "n": state["n"] + 1}, value


STATE = {"w": X, "n": 0}
PIPELINE = sa.PipeshardParallel(
    num_micro_batches=2, layers=sa.AutoLayers(num_layers=2), stages=sa.UniformStages(2)
)
MESHES = {
    "auto": Mesh(DEVICES, "d"),
    "explicit": jax.make_mesh((8,), ("d",), axis_types=(jax.sharding.AxisType.Explicit,)),
    "some devices": Mesh(DEVICES[:4], "d"),
}


@pytest.mark.parametrize("name", MESHES)
@pytest.mark.parametrize("method", [sa.ShardParallel(mesh_shape=(2, 4)), PIPELINE], ids=type)
def test_any_mesh_may_be_set(method: sa.Method, name: str) -> None:
    expected = jax.jit(pipelined)(STATE, X)
    step = sa.parallelize(pipelined, method=method, donate_argnums=0)
    with jax.set_mesh(MESHES[name]):
        state = step.create_state(lambda: jax.tree.map(jnp.asarray, STATE), batch=(X,))
        state, loss = step(state, X)
        assert_same(jax.device_get(loss), jax.device_get(expected[1]))
        state, _ = step(state, jnp.asarray(X))
    # A plan made outside, used inside.
    other, _ = step(STATE, X)
    with jax.set_mesh(MESHES[name]):
        other, _ = step(other, X)
    np.testing.assert_allclose(other["w"], state["w"], rtol=1e-5)
    # Arrays that lie on it: its axes do not divide micro-batches.
    lying = jax.device_put(X, NamedSharding(MESHES[name], PartitionSpec("d")))
    assert_same(jax.device_get(step(STATE, lying)[1]), jax.device_get(expected[1]))


@pytest.mark.parametrize("method", [sa.ShardParallel(mesh_shape=(2, 4)), PIPELINE], ids=type)
def test_no_tracer_outlives_its_trace(method: sa.Method) -> None:
    with jax.checking_leaks():
        found = sa.parallelize(pipelined, method=method)(STATE, X)
        assert_same(found, jax.jit(pipelined)(STATE, X))


def one_step(state: Any, x: Any) -> Any:
    return {"w": state["w"] - x @ state["w"], "n": state["n"] + 1}, x.sum()


def test_it_is_a_part_of_a_jitted_program() -> None:
    step = sa.parallelize(one_step, method=sa.ShardParallel(mesh_shape=(2, 4)), donate_argnums=0)
    assert_same(jax.jit(step)(STATE, X), jax.jit(one_step)(STATE, X))
    assert_same(
        jax.jit(lambda s, x: step(s, x + 1)[1] * 2)(STATE, X),
        jax.jit(lambda s, x: one_step(s, x + 1)[1] * 2)(STATE, X),
    )
    batches = np.stack([X, 2 * X])
    theirs = jax.jit(lambda s: jax.lax.scan(one_step, s, batches))(STATE)
    assert_same(jax.jit(lambda s: jax.lax.scan(step, s, batches))(STATE), theirs)
    assert_same(jax.lax.scan(step, jax.tree.map(jnp.asarray, STATE), batches), theirs)
    with jax.set_mesh(MESHES["auto"]):
        assert_same(jax.jit(step)(STATE, X), jax.jit(one_step)(STATE, X))
    shapes = jax.eval_shape(step, STATE, X)
    assert jax.tree.map(lambda a: (a.shape, a.dtype), shapes) == jax.tree.map(
        lambda a: (a.shape, a.dtype), jax.eval_shape(one_step, STATE, X)
    )


def test_micro_batches_are_parts_of_a_jitted_program() -> None:
    step = sa.parallelize(pipelined, method=sa.DataParallel(num_micro_batches=2), donate_argnums=0)
    batches = np.stack([X, 2 * X])
    theirs = jax.jit(lambda s: jax.lax.scan(pipelined, s, batches))(STATE)
    assert_same(jax.jit(lambda s: jax.lax.scan(step, s, batches))(STATE), theirs)
    with jax.set_mesh(MESHES["auto"]):
        assert_same(jax.jit(step)(STATE, X), jax.jit(pipelined)(STATE, X))


def test_arrays_that_are_there_are_computed_with_while_jax_traces() -> None:
    for method in (LINE, PIPELINE):
        step = sa.parallelize(pipelined, method=method)
        expected = jax.jit(pipelined)(STATE, X)[1]
        found = jax.jit(lambda y, step=step: step(STATE, X)[1] + y)(1.0)
        np.testing.assert_allclose(found, expected + 1, rtol=1e-5)


@pytest.mark.parametrize("method", [LINE, PIPELINE, sa.DataParallel(num_micro_batches=2)])
def test_the_first_call_may_be_one_at_compile_time(method: sa.Method) -> None:
    """Programs without arguments are not run while they are traced."""
    expected, step = jax.jit(pipelined)(STATE, X), sa.parallelize(pipelined, method=method)
    with jax.ensure_compile_time_eval():
        assert_same(step(STATE, X), expected)
    assert_same(step(STATE, X), expected)

    @jax.jit
    def around(y: Any) -> Any:
        with jax.ensure_compile_time_eval():
            return y + sa.parallelize(pipelined, method=method)(STATE, X)[1]

    np.testing.assert_allclose(around(1.0), expected[1] + 1, rtol=1e-5)


@pytest.mark.parametrize("method", [LINE, PIPELINE, sa.DataParallel(num_micro_batches=2)])
def test_arguments_may_look_at_what_they_are_made_of(method: sa.Method) -> None:
    """Classes that take arrays and tracers alone, which jax makes of neither outside of a call."""
    scale = jmp.DynamicLossScale(jnp.float32(2**10), period=1)

    def scaled(state: Any, scale: Any, x: Any) -> Any:
        def loss(w: Any) -> Any:
            return scale.scale(jnp.mean((x @ w) ** 2))

        value, gradient = sa.value_and_grad(loss)(state)
        gradient = scale.unscale(gradient)
        new = scale.adjust(jmp.all_finite(gradient))
        return state - gradient, {"scale": new}, scale.unscale(value)

    step = sa.parallelize(scaled, method=method, donate_argnames="state")
    found, expected = step(jnp.array(X), scale, X), jax.jit(scaled)(X, scale, X)
    assert_same(found, expected)
    assert_same(
        step(found[0], found[1]["scale"], X),
        jax.jit(scaled)(*expected[:1], expected[1]["scale"], X),
    )
    plan = step.plan(X, scale, X)
    assert {0} == set(plan.program.donated)
    assert [value.name for value in plan.program.inputs][-1] == "x"


@pytest.mark.parametrize("fun", [lambda w, x: None, lambda w, x: {"none": ()}, lambda w, x: 1.0])
@pytest.mark.parametrize(
    "method",
    [
        LINE,
        sa.DataParallel(num_micro_batches=2),
        sa.PipeshardParallel(stages=sa.UniformStages(1), layers=sa.AutoLayers(num_layers=1)),
    ],
    ids=["one mesh", "micro-batches", "stages"],
)
def test_a_function_may_make_nothing_of_its_arguments(method: sa.Method, fun: Any) -> None:
    parallel = sa.parallelize(fun, method=method, batch_argnums=(1,))
    assert_same(parallel(X, X), jax.jit(fun)(X, X))


@pytest.mark.parametrize("method", [LINE, PIPELINE], ids=["one mesh", "stages"])
def test_references_that_a_function_makes_are_values(method: sa.Method) -> None:
    def step(state: Any, x: Any) -> Any:
        norm = jax.new_ref(jnp.float32(1))

        def loss(state: Any) -> Any:
            total = jax.new_ref(jnp.zeros_like(x))
            total[...] += jnp.tanh(x @ state)
            total[...] += jnp.tanh(total[...] @ state)
            return jnp.mean(total[...] ** 2)

        value, gradient = sa.value_and_grad(loss)(state)
        norm[...] += jnp.sum(gradient**2)
        return state - gradient / norm[...], value

    assert_same(sa.parallelize(step, method=method)(X, X), jax.jit(step)(X, X))


def test_types_are_no_arrays_to_call_with() -> None:
    step = sa.parallelize(lambda x, y: x @ y["w"], method=LINE)
    types = jax.ShapeDtypeStruct(X.shape, X.dtype)
    assert step.plan(X, {"w": types}).program.inputs
    with pytest.raises(sa.ArgumentError, match=r"y\['w'\] of <lambda> is a jax\.ShapeDtypeStruct"):
        step(X, {"w": types})


def test_references_from_outside_are_refused_by_name() -> None:
    held = jax.new_ref(jnp.ones(3))
    with pytest.raises(sa.ArgumentError, match=r"argument r of <lambda> is a jax\.Ref"):
        sa.parallelize(lambda r: r[...], method=LINE)(held)
    with pytest.raises(sa.TraceError, match=r"pass ref\[...\] as an argument"):
        sa.parallelize(lambda x: x * held[0], method=LINE)(X)

    def writing(w: Any, x: Any) -> Any:
        kept = jax.new_ref(jnp.zeros(8))

        def loss(w: Any) -> Any:
            kept[...] = jax.lax.stop_gradient(x @ w).mean(0)
            return jnp.mean((x @ w) ** 2)

        return w - sa.grad(loss)(w), kept[...]

    with pytest.raises(sa.TraceError, match="beside the loss"):
        sa.parallelize(writing, method=PIPELINE)(X, X)


def test_what_cannot_be_a_part_of_a_program_is_refused_by_name() -> None:
    line, pipeline = (sa.parallelize(pipelined, method=method) for method in (LINE, PIPELINE))
    xla = sa.parallelize(pipelined, method=sa.ShardParallel(backend="shardy"))
    for step in (pipeline, xla):
        with pytest.raises(sa.TraceError, match=r"inside of jax\.jit, but .* programs of its own"):
            jax.jit(step)(STATE, X)
    with pytest.raises(sa.TraceError, match=r"jax\.shard_map or another transformation"):
        jax.shard_map(
            lambda x: line(STATE, x)[1],
            mesh=MESHES["auto"],
            in_specs=P(),
            out_specs=P(),
            check_vma=False,
        )(X)
    transformations: dict[str, Any] = {
        "differentiated": jax.grad(jax.jit(lambda w: line({"w": w, "n": 0}, X)[1])),
        "batched": jax.vmap(jax.jit(lambda w: line({"w": w, "n": 0}, X)[1])),
    }
    for what, transformed in transformations.items():
        with pytest.raises(InputError, match=rf"is {what}.*transform the function"):
            transformed(X if what == "differentiated" else np.stack([X, X]))
    with jax.set_mesh(MESHES["explicit"]):
        split = jax.device_put(X, P("d"))
        with pytest.raises(sa.TraceError, match=r"explicit axes \('d',\)"):
            jax.jit(line)(STATE, split)
    with pytest.raises(sa.TraceError, match="closes over values"):
        jax.jit(lambda y: sa.parallelize(lambda x: x * y, method=LINE)(X))(2.0)


@pytest.mark.parametrize("name", ["one mesh", "pipeline", "micro-batches"])
def test_types_of_a_call_are_those_of_the_function(name: str) -> None:
    """`jax.eval_shape` and `jax.make_jaxpr` trace a call that no program can hold."""
    methods = {"one mesh": LINE, "pipeline": PIPELINE}
    method = methods.get(name, sa.DataParallel(num_micro_batches=2))

    def stepped(state: Any, x: Any, *, scale: Any = 2.0, power: int = 2) -> Any:
        state, y = pipelined(state, x)
        return {"state": state, "scale": scale * 1, "none": None, "y": y**power}

    step = sa.parallelize(stepped, method=method, static_argnames="power", donate_argnums=0)
    types = jax.eval_shape(lambda: STATE)
    for args, kwargs in [((STATE, X), {}), ((types, X), {"scale": 3})]:
        theirs: Any = jax.eval_shape(stepped, *args, **kwargs)
        found: Any = jax.eval_shape(step, *args, **kwargs)
        jax.tree.map(lambda *_: None, theirs, found)
        for ours, expected in zip(jax.tree.leaves(found), jax.tree.leaves(theirs), strict=True):
            assert (ours.shape, ours.dtype) == (expected.shape, expected.dtype)
            assert ours.weak_type == expected.weak_type
        avals = [jax.make_jaxpr(one)(*args, **kwargs).out_avals for one in (step, stepped)]
        assert str(avals[0]) == str(avals[1])
    state = jax.tree.map(jnp.array, STATE)
    assert_same(step(state, X), jax.jit(stepped)(STATE, X))


def test_calls_of_which_types_are_known_are_not_run() -> None:
    step = sa.parallelize(pipelined, method=PIPELINE)
    closed = jax.make_jaxpr(step)(STATE, X)
    flat = jax.tree.leaves((STATE, X))
    refused = pytest.raises(sa.TraceError, match="makes programs of its own: call it outside")
    with refused:
        jaxpr_as_fun(closed)(*flat)
    with refused:
        jax.jit(jaxpr_as_fun(closed))(*flat)
    with refused:
        jax.grad(jax.jit(lambda x: step(STATE, x)[1].sum()))(X)
    with refused:
        jax.vmap(jax.jit(lambda x: step(STATE, x)[1]))(np.stack([X, X]))


# What it follows


def test_followed_meshes_are_part_of_the_signature() -> None:
    fun = sa.parallelize(lambda w, x: x @ w, method=sa.FollowParallel())
    grid = {"a": 2, "b": 4}
    meshes = [
        Mesh(DEVICES.reshape(2, 4), tuple(grid)),
        Mesh(DEVICES.reshape(4, 2), tuple(grid)),
        Mesh(DEVICES[::-1].reshape(2, 4), tuple(grid)),
        Mesh(DEVICES.reshape(2, 4), ("a", "c")),
        Mesh(DEVICES[4:].reshape(2, 2), tuple(grid)),
    ]
    for number, mesh in enumerate([*meshes, *meshes]):
        weight = jax.device_put(X, NamedSharding(mesh, P("a")))
        for _ in range(2):
            found = fun(weight, X)
            np.testing.assert_allclose(found, X @ X, rtol=1e-5)
            assert found.sharding.mesh == mesh
        assert len(fun._prepared) == min(number + 1, len(meshes))
    other = jax.device_put(X, NamedSharding(meshes[0], P("b")))
    assert fun.plan(other, X).input_shardings[0][0] == P("b")
    with pytest.raises(sa.MeshError, match=r"different meshes with .* bring them to one"):
        fun(other, jax.device_put(X, NamedSharding(meshes[2], P("a"))))


# What is made once


def test_lowered_and_called_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from alpa_runtime.local_executable import LocalExecutable

    compiled: list[Any] = []
    compile_all = LocalExecutable.compile
    monkeypatch.setattr(
        LocalExecutable,
        "compile",
        lambda self: compiled.append(self) or compile_all(self),  # type: ignore
    )
    step = sa.parallelize(one_step, method=LINE)
    lowered = step.lower(STATE, X)
    assert not compiled
    ahead = lowered.compile()
    step(STATE, X)
    step(STATE, X)
    assert ahead is lowered.compile() is step.compile(STATE, X)
    assert len(compiled) == 1


def test_states_are_made_for_calls_by_keyword_and_with_static_arguments() -> None:
    @sa.parallelize(method=LINE, static_argnames=("train", "times"), donate_argnames="state")
    def step(state: Any, times: Any, x: Any, *, train: bool) -> Any:
        return {"w": state["w"] + times * x if train else state["w"]}

    def init() -> Any:
        return {"w": jnp.ones((8, 8))}

    shape = jax.ShapeDtypeStruct((8, 8), np.float32)
    state = step.create_state(init, batch=(2, shape), kwargs={"train": True})
    assert_same(step(state, 2, X, train=True), jax.jit(lambda: {"w": 1 + 2 * X})())
    assert_same(step.create_state(init), init())
    named = step.create_state(init, kwargs={"x": X, "times": 2, "train": True}, argnum="state")
    assert_same(step(state=named, x=X, times=2, train=True), jax.jit(lambda: {"w": 1 + 2 * X})())
    assert len(step._prepared) == 2
    with pytest.raises(sa.TraceError, match=r"argnum=4 is not among the 3 positional arguments"):
        step.create_state(init, batch=(2, X), kwargs={"train": True}, argnum=4)


def test_plans_of_one_function_share_its_traces() -> None:
    traced = []

    def step(w: jax.Array, x: jax.Array) -> jax.Array:
        traced.append(x.shape)
        return w - sa.grad(lambda w: jnp.mean((jnp.tanh(x @ w) @ w) ** 2))(w)

    shapes = (jax.ShapeDtypeStruct((8, 8), "float32"), jax.ShapeDtypeStruct((16, 8), "float32"))
    counts = []
    for stages in (1, 2, 2):
        layers = sa.AutoLayers(num_layers=2, remat=False)
        method = sa.PipeshardParallel(
            num_micro_batches=2, layers=layers, stages=sa.UniformStages(stages)
        )
        sa.parallelize(step, method=method).plan(*shapes)
        counts.append(len(traced))
    assert counts[0] == counts[1] == counts[2]


# The package


@pytest.mark.slow
def test_the_ten_lines_run_as_they_are(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.S | re.M)
    script = tmp_path / "lines.py"
    script.write_text(block + "\nprint(float(loss))\n")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert float(done.stdout.splitlines()[-1]) > 0


def test_public_names_are_there() -> None:
    for name in sa.__all__:
        assert getattr(sa, name) is not None
    assert {"parallelize", "Plan", "data", "PRESETS"} <= set(dir(sa))
    with pytest.raises(AttributeError, match="has no attribute 'paralelize'"):
        sa.paralelize  # type: ignore[attr-defined]  # noqa: B018


def test_the_version_is_one() -> None:
    for page, pattern in (
        ("pyproject.toml", r'^version = "(.*)"$'),
        ("pyproject.toml", r'"alpa-runtime==(.*)"'),
        ("runtime/pyproject.toml", r'^version = "(.*)"$'),
        ("CMakeLists.txt", r"project\(stablehlo_alpa VERSION (\S+)"),
    ):
        assert re.findall(pattern, (ROOT / page).read_text(), re.M) == [sa.__version__]
