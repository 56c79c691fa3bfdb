"""Tracing: text, names, state pairs, and what is refused."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend import TracedProgram, trace
from stablehlo_alpa.frontend.versions import BELOW, OLDEST, check_jax

Struct = jax.ShapeDtypeStruct
VECTOR = Struct((8,), jnp.float32)
MATRIX = Struct((8, 8), jnp.float32)


class State(NamedTuple):
    """Parameters and momentum."""

    params: dict[str, Any]
    moments: dict[str, Any]
    step: Any


PARAMS = {"w": Struct((8, 16), jnp.float32)}
STATE = State(PARAMS, PARAMS, 0)


def train_step(state, batch, key, scale=1.0):
    def loss(params):
        return jnp.sum((batch["x"] @ params["w"]) ** 2) * scale + jax.random.uniform(key)

    value, grads = jax.value_and_grad(loss)(state.params)
    params = jax.tree.map(lambda p, g: p - 0.1 * g, state.params, grads)
    return State(params, grads, state.step + 1), {"loss": value, "x": batch["x"]}


def traced(**more: Any) -> TracedProgram:
    args = (STATE, {"x": Struct((4, 8), jnp.float32)}, jax.random.key(0))
    return trace(train_step, args, {"scale": 2.0}, **more)


def test_inputs_and_outputs_are_named_by_their_path():
    program = traced()
    assert [value.name for value in program.inputs] == [
        "state.params['w']",
        "state.moments['w']",
        "state.step",
        "batch['x']",
        "key",
        "scale",
    ]
    assert program.outputs[0].name == "result[0].params['w']"
    assert program.input_argnum == (0, 0, 0, 1, 2, 3)


def test_keys_and_weak_types_are_recorded():
    program = traced()
    key = program.inputs[4]
    assert (key.shape, key.dtype, key.key_impl) == ((2,), "uint32", "threefry2x32")
    assert [value.is_weak for value in program.inputs] == [False, False, True, False, False, True]
    assert program.outputs[2].is_weak


def test_text_is_generic_and_carries_locations():
    program = traced()
    assert '"func.func"' in program.text
    assert "stablehlo.dot_general" in program.text
    assert "state.params['w']" in program.text
    assert "train_step" in program.text


def test_state_is_paired_with_its_next_value():
    program = traced()
    assert program.aliases == {0: 0, 1: 1, 2: 2}
    assert program.state_option == "aliases=0:0,1:1,2:2 donated="


def test_batch_is_what_is_neither_state_nor_key_nor_scalar():
    assert traced().batch == {3}
    assert traced(batch_argnums=(2,)).batch == {4}


@pytest.mark.parametrize(
    "chosen",
    [
        {"batch": {"x": True, "table": False}},
        {1: {"x": True, "table": False}, "w": False},
        (False, {"x": True, "table": False}),
    ],
)
def test_parts_of_an_argument_are_a_batch(chosen):
    arguments = (MATRIX, {"x": MATRIX, "table": MATRIX})
    program = trace(lambda w, batch: batch["x"] @ w, arguments, {}, batch_argnums=chosen)
    assert [program.inputs[index].name for index in program.batch] == ["batch['x']"]
    assert program.declared_batch == program.batch


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ((False, False), "names no batch"),
        ({1.5: True}, "1.5, an argument is given by its number or its name"),
        ({"batch": {"x": 1}}, "1 is no boolean"),
        ({"batch": {"y": True}}, "for argument batch of .*, which is no prefix of"),
        (None, "batch_argnums takes numbers or names of arguments"),
    ],
)
def test_what_says_no_batch_is_refused(chosen, message):
    arguments = (MATRIX, {"x": MATRIX, "table": MATRIX})
    with pytest.raises(TraceError, match=message):
        trace(lambda w, batch: batch["x"] @ w, arguments, {}, batch_argnums=chosen)


def test_donation_covers_every_leaf_of_the_argument():
    assert traced(donate_argnums=(0,)).donated == (0, 1, 2)


def test_a_prediction_shaped_like_the_batch_is_no_state():
    program = trace(lambda w, x: x @ w, (Struct((8, 8), "f4"), Struct((4, 8), "f4")), {})
    assert program.aliases == {}
    assert program.batch == {0, 1}
    donated = trace(
        lambda w, x: x @ w,
        (Struct((8, 8), "f4"), Struct((4, 8), "f4")),
        {},
        donate_argnums=(1,),
    )
    assert donated.aliases == {1: 0}


def test_each_output_is_paired_once():
    program = trace(lambda a, b: ({"w": a["w"] + 1}, {"w": b["w"] + 1}), (PARAMS, PARAMS), {})
    assert program.aliases == {0: 0, 1: 1}


def test_unused_arguments_and_static_arguments_keep_the_numbering():
    program = trace(lambda a, n, b, c: b * n, (VECTOR, 3, VECTOR, VECTOR), {}, static_argnums=(1,))
    assert [value.name for value in program.inputs] == ["a", "b", "c"]
    assert program.input_argnum == (0, 2, 3)
    assert "%arg2" in program.text


def test_variadic_arguments_are_numbered():
    def add(first, *rest):
        return first + rest[0] + rest[1]

    program = trace(add, (VECTOR, VECTOR, VECTOR), {})
    assert [value.name for value in program.inputs] == ["first", "rest[0]", "rest[1]"]


def test_tracing_touches_no_arrays():
    a = trace(lambda x: x + 1, (Struct((1 << 40,), "f4"),), {})
    assert a.inputs[0].shape == (1 << 40,)


def _look(x):
    return jax.pure_callback(np.sin, Struct(x.shape, x.dtype), x)


def _talk(x):
    jax.debug.print("x = {}", x)
    return jax.lax.scan(lambda c, _: (jax.jit(_look)(c), None), _look(x), None, length=2)[0]


def test_functions_of_the_host_go_beside_the_text():
    program = trace(_talk, (VECTOR,), {})
    assert [one.name for one in program.callbacks] == [
        "print 'x = {}'",
        "pure_callback sin",
        "pure_callback sin",
    ]
    assert program.text.count('call_target_name = "alpa_callback"') == 3
    (vector,) = {one.operands for one in program.callbacks[1:]}
    assert vector == (((VECTOR.shape), VECTOR.dtype.name),)


def test_other_effects_are_refused():
    def writes(x):
        ref = jax.new_ref(x)
        ref[0] = 1.0
        jax.debug.inspect_array_sharding(x, callback=print)
        return ref[...]

    with pytest.raises(TraceError, match="has side effects"):
        trace(writes, (VECTOR,), {})


def test_functions_without_arrays_have_no_inputs():
    assert trace(lambda: 1.0, (), {}).inputs == ()
    assert trace(lambda n: n, (3,), {}, static_argnums=(0,)).inputs == ()
    with pytest.raises(
        TraceError, match=r"argument x\['a'\] of <lambda> is no array but of type str"
    ):
        trace(lambda x: x, ({"a": "text"},), {})
    for array in (np.zeros(3, ">f4"), np.array(["2026-11-27"], "datetime64[D]"), np.longdouble(1)):
        match = rf"has dtype {re.escape(str(array.dtype))}, which is none of jax's"
        with pytest.raises(TraceError, match=match):
            trace(lambda x: x, (array,), {})


def test_dynamic_shapes_are_refused():
    (size,) = jax.export.symbolic_shape("b")
    with pytest.raises(TraceError, match="dimension 0 of argument x of <lambda> is b"):
        trace(lambda x: x, (Struct((size, 3), "f4"),), {})


@pytest.mark.parametrize("version", ["0.3.25", "0.10.1", "0.11.0", "1.0"])
def test_another_jax_is_refused(version: str) -> None:
    with pytest.raises(ImportError, match=rf"jax>=0.10.2,<0.11, jax {version} is installed"):
        check_jax(version)


def test_the_range_of_jax_is_that_of_the_package() -> None:
    text = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text()
    oldest, below = (".".join(map(str, one)) for one in (OLDEST, BELOW))
    assert f'"jax>={oldest},<{below}"' in text
    check_jax("0.10.2")
    check_jax("0.10.9")
