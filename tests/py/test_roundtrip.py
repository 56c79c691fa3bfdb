"""Modules go from JAX through our dialect and back: same text, same module, same numbers.

The oracle is jaxlib: what it prints we read and print, what we print it reads and runs.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from alpa_runtime.local_call import LocalModule
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax
from jax._src.interpreters import mlir as jax_mlir
from jax.extend.mlir import ir
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from models.case import TrainCase
from often import one_in
from programs import PROGRAMS, Program, real, whole

from stablehlo_alpa import _core

# What a compiler may do to a module before anything is planned.
CLEANING = "builtin.module(inline,symbol-dce,cse,canonicalize)"


def lowered(fun: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The module that JAX makes of a function."""
    module = jax.jit(fun, keep_unused=True).lower(*args).compiler_ir("stablehlo")
    assert module is not None
    return module


def printed(module: Any, *, generic: bool = True, locations: bool = True) -> str:
    """Text of jaxlib."""
    text: str = module.operation.get_asm(print_generic_op_form=generic, enable_debug_info=locations)
    return text.strip()


def through(
    text: str, pipeline: str = "builtin.module()", *, generic: bool = True, locations: bool = True
) -> str:
    """Text of ours after a pipeline."""
    return _core.run_pipeline(text, pipeline, generic=generic, locations=locations)[0].strip()


def reparsed(text: str) -> str:
    """What jaxlib makes of a text: the generic form, without locations."""
    with jax_mlir.make_ir_context():
        return printed(ir.Module.parse(text), locations=False)


def assert_text_survives(module: Any) -> None:
    """Generic text is unchanged, and both pretty forms stand for the same module."""
    generic = printed(module)
    assert through(generic) == generic
    # Pretty forms have no place for empty attributes, and a reduction's none for the locations of
    # its body: jaxlib's own reading of its own pretty form is the measure.
    pretty = printed(module, generic=False)
    bare = reparsed(pretty)
    assert through(pretty, locations=False) == bare
    assert reparsed(through(generic, generic=False)) == bare


def run_text(text: str, flat_args: list[Any], out: list[Any]) -> list[np.ndarray]:
    """Runs a module on the CPU."""

    def types(values: list[Any]) -> tuple[Any, ...]:
        return tuple((tuple(value.shape), value.dtype.name) for value in values)

    module = LocalModule("cleaned", text, types(flat_args), types(out))
    return [np.asarray(result) for result in jax.jit(module)(*flat_args)]


def assert_numbers_survive(fun: Callable[..., Any], args: tuple[Any, ...], bound: float) -> None:
    """Inlined, deduplicated and canonicalised by us, a program computes what it did."""
    flat, tree = jax.tree.flatten(args)
    flat = [jnp.asarray(leaf) for leaf in flat]

    def flat_fun(*leaves: Any) -> list[Any]:
        return jax.tree.leaves(fun(*jax.tree.unflatten(tree, leaves)))

    module = lowered(flat_fun, tuple(flat))
    expected = jax.jit(flat_fun)(*flat)
    found = run_text(through(printed(module), CLEANING), flat, expected)
    for one, two in zip(found, expected, strict=True):
        two = np.asarray(two)
        if not np.issubdtype(two.dtype, np.inexact):
            assert np.array_equal(one, two)
            continue
        wide = np.complex128 if np.iscomplexobj(two) else np.float64
        one, two = one.astype(wide), two.astype(wide)
        both_nan = np.isnan(one) & np.isnan(two)
        scale = max(1.0, float(np.abs(np.where(np.isfinite(two), two, 0)).max(initial=0)))
        close = (np.abs(one - two) <= bound * scale) | (one == two) | both_nan
        assert close.all()


EXTRA: dict[str, Program] = {}


def extra(*args: Any, tolerance: float = 2e-5) -> Callable[[Callable[..., Any]], Any]:
    """Registers a program of this file."""

    def register(fun: Callable[..., Any]) -> Callable[..., Any]:
        EXTRA[fun.__name__] = Program(fun, args, tolerance)
        return fun

    return register


@extra(real(2, 8, 4, 8), real(2, 8, 4, 8, seed=1), np.array([0, 7], np.uint32))
def attention_with_dropout(query: jax.Array, value: jax.Array, key: jax.Array) -> Any:
    def loss(query: jax.Array) -> jax.Array:
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", query, value) / 8)
        kept = jax.random.bernoulli(key, 0.9, weights.shape)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jnp.where(kept, weights / 0.9, 0), value)
        return jnp.sum(mixed**2)

    return jax.value_and_grad(loss)(query)


@extra(real(5, 3, 4), real(8, 16), real(16))
def lstm(inputs: jax.Array, weight: jax.Array, bias: jax.Array) -> Any:
    def loss(weight: jax.Array, bias: jax.Array) -> jax.Array:
        def cell(carry: Any, x: jax.Array) -> Any:
            hidden, memory = carry
            gates = jnp.concatenate([x, hidden], -1) @ weight + bias
            write, keep, read, new = jnp.split(gates, 4, axis=-1)
            memory = jax.nn.sigmoid(keep) * memory + jax.nn.sigmoid(write) * jnp.tanh(new)
            hidden = jax.nn.sigmoid(read) * jnp.tanh(memory)
            return (hidden, memory), hidden

        start = (jnp.zeros((3, 4)), jnp.zeros((3, 4)))
        return jnp.sum(lax.scan(cell, start, inputs)[1] ** 2)

    return jax.value_and_grad(loss, argnums=(0, 1))(weight, bias)


@extra(real(6, 4))
def checkpointed(x: jax.Array) -> Any:
    block = jax.checkpoint(lambda y: jnp.sin(jnp.tanh(y) @ jnp.tanh(y).T @ y))
    return jax.grad(lambda y: jnp.sum(block(block(y))))(x)


@jax.custom_vjp
def clipped(x: jax.Array) -> jax.Array:
    return x


clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -0.1, 0.1),))


@extra(real(4, 4))
def custom_gradient(x: jax.Array) -> Any:
    return jax.grad(lambda y: jnp.sum(clipped(y * 3.0) ** 2))(x)


@extra(np.int32(2), real(4))
def branches(index: jax.Array, x: jax.Array) -> Any:
    picked = lax.switch(index, [jnp.sin, jnp.cos, lambda y: y * 2], x)
    return picked, lax.cond(index > 1, lambda y: y + 1, lambda y: y - 1, x)


@extra(np.int32(3), real(4))
def unknown_trip_count(limit: jax.Array, x: jax.Array) -> Any:
    return lax.while_loop(lambda c: c[0] < limit, lambda c: (c[0] + 1, c[1] * 1.5), (0, x))


@extra(np.array([1, 2], np.uint32))
def random_bits(key: jax.Array) -> Any:
    wrapped = jax.random.wrap_key_data(jnp.tile(key, 2), impl="rbg")
    return jax.random.normal(key, (3, 5)), jax.random.uniform(wrapped, (4,))


@extra(whole(200, 4, 5, dtype=np.uint8), real(4, 5, dtype=np.float16))
def narrow_types(u: jax.Array, h: jax.Array) -> Any:
    bits = lax.bitcast_convert_type(h, jnp.uint16)
    small = h.astype(jnp.float8_e4m3fn).astype(jnp.float32)
    return u >> 1, lax.population_count(bits), lax.clz(u), small, lax.reduce_precision(h, 5, 2)


@extra(real(8), real(8, seed=1))
def complex_numbers(a: jax.Array, b: jax.Array) -> Any:
    z = lax.complex(a, b)
    return jnp.abs(z * jnp.conj(z)), jnp.exp(z), jnp.fft.irfft(jnp.fft.rfft(a)), jnp.real(z / 2)


@extra(real(4, 6).astype(np.complex64))
def transforms_of_nothing(z: jax.Array) -> Any:
    return [lax.fft(z[:, :size], lax.FftType.IRFFT, (0,)) for size in (0, 1)]


@extra(real(4, 6), whole(6, 4, 2))
def batched_gather(x: jax.Array, i: jax.Array) -> Any:
    def loss(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.take_along_axis(x, i, axis=1) ** 2)

    return jax.grad(loss)(x), jax.vmap(lambda row, at: row.at[at].max(1.0))(x, i)


@extra(real(2, 8, 8, 4), real(3, 3, 2, 8))
def grouped_convolution_gradient(x: jax.Array, k: jax.Array) -> Any:
    def loss(x: jax.Array, k: jax.Array) -> jax.Array:
        numbers = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(
            x, k, (2, 2), "SAME", dimension_numbers=numbers, feature_group_count=2
        )
        return jnp.sum(lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME"))

    return jax.grad(loss, argnums=(0, 1))(x, k)


@extra(real(6))
def barrier_and_accuracy(x: jax.Array) -> Any:
    exact = lax.exp(x, accuracy=lax.AccuracyMode.HIGHEST)
    loose = lax.tanh(x, accuracy=lax.Tolerance(atol=1e-3, rtol=1e-3, ulps=2))
    return lax.optimization_barrier((exact, loose))


EVERYTHING = PROGRAMS | EXTRA


@pytest.mark.parametrize("name", sorted(EVERYTHING))
def test_text_survives(name: str) -> None:
    program = EVERYTHING[name]
    assert_text_survives(lowered(program.fun, program.args))


@pytest.mark.parametrize("name", one_in(3, sorted(EVERYTHING)))
@pytest.mark.slow
def test_numbers_survive(name: str) -> None:
    program = EVERYTHING[name]
    assert_numbers_survive(program.fun, program.args, program.tolerance)


@pytest.mark.parametrize("name", ["attention_with_dropout", "branches", "batched_gather"])
def test_numbers_survive_quickly(name: str) -> None:
    program = EVERYTHING[name]
    assert_numbers_survive(program.fun, program.args, program.tolerance)


ZOO: dict[str, dict[str, Any]] = {
    "mlp": {},
    "gpt": {"layers": 1, "vocabulary": 1001, "heads": 3, "hidden": 48},
    "llama": {"layers": 1, "dtype": jnp.bfloat16},
    "moe": {"layers": 1},
    "wide_resnet": {},
    "unet": {},
    "vit": {},
    "lstm": {"optimizer": "adafactor"},
    "mixer": {"optimizer": "sgd"},
    "encoder_decoder": {},
}


def make(model: str) -> TrainCase:
    case: TrainCase = importlib.import_module(f"models.{model}").make(**ZOO[model])
    return case


@pytest.mark.slow
@pytest.mark.parametrize("model", one_in(2, sorted(ZOO)))
def test_train_steps_survive(model: str) -> None:
    case = make(model)
    assert_text_survives(lowered(case.step, case.args))


# A transformer, a recurrence and a convolution with every run of the tests.
OFTEN = {"gpt", "lstm", "wide_resnet"}


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(model, marks=pytest.mark.slow if model in OFTEN else pytest.mark.matrix)
        for model in sorted(ZOO)
    ],
)
def test_numbers_of_train_steps_survive(model: str) -> None:
    case = make(model)
    bound = 2e-2 if ZOO[model].get("dtype") == jnp.bfloat16 else 1e-4
    assert_numbers_survive(case.step, case.args, bound)


@pytest.mark.slow
def test_scanned_layers_survive() -> None:
    case = importlib.import_module("models.gpt").make(is_scanned=True)
    assert_text_survives(lowered(case.step, case.args))
    assert_numbers_survive(case.step, case.args, 1e-4)


def test_collectives_survive() -> None:
    mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])

    def communicate(x: jax.Array) -> Any:
        gathered = lax.all_gather(x, "x", axis=0, tiled=True)
        scattered = lax.psum_scatter(gathered, "x", scatter_dimension=0, tiled=True)
        turned = lax.all_to_all(scattered, "x", 1, 0, tiled=True)
        shifted = lax.ppermute(turned, "x", [(i, (i + 1) % 4) for i in range(4)])
        total = lax.psum(shifted, "x") + lax.pmax(shifted, "x") + lax.axis_index("x")
        return total

    mapped = jax.shard_map(
        communicate, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False
    )
    # In generic form alone: the pretty form needs the dialect of the partitioner, sdy.
    generic = printed(lowered(mapped, (jax.ShapeDtypeStruct((8, 8), np.float32),)))
    assert "stablehlo.collective_permute" in generic
    assert through(generic) == generic


UNARY = (jnp.sin, jnp.tanh, jnp.abs, jnp.negative, jnp.square, jax.nn.relu, jnp.cumsum, jnp.sort)
JOINS = (jnp.add, jnp.multiply, jnp.maximum, jnp.subtract, jnp.minimum)


@st.composite
def pipelines(draw: st.DrawFn) -> tuple[Callable[[jax.Array], Any], tuple[int, ...]]:
    """A function of one array, composed at random, and the array's shape."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    steps: list[Callable[[jax.Array, jax.Array], jax.Array]] = []
    for _ in range(draw(st.integers(1, 8))):
        kind = draw(st.integers(0, 7))
        unary, join = draw(st.sampled_from(UNARY)), draw(st.sampled_from(JOINS))
        axis = draw(st.integers(0, 2))
        steps.append(_step(kind, unary, join, axis))

    def fun(x: jax.Array) -> Any:
        y = x
        for step in steps:
            y = step(y, x)
        return y, jax.grad(lambda z: jnp.sum(jnp.tanh(steps[0](z, x))))(x)

    return fun, shape


def _step(kind: int, unary: Any, join: Any, axis: int) -> Callable[[jax.Array, Any], jax.Array]:
    def step(y: jax.Array, x: jax.Array) -> jax.Array:
        dim = axis % max(y.ndim, 1)
        if y.ndim == 0:
            return join(y, jnp.sum(x))
        if kind == 0:
            return unary(y, axis=dim) if unary in (jnp.cumsum, jnp.sort) else unary(y)
        if kind == 1:
            return jnp.swapaxes(y, 0, dim)
        if kind == 2:
            return jnp.concatenate([y, join(y, y)], axis=dim)
        if kind == 3:
            return y - jnp.max(y, axis=dim, keepdims=True)
        if kind == 4:
            return y.reshape(-1) if axis else y.reshape(1, *y.shape)
        if kind == 5:
            return jnp.take(y, jnp.array([0, 0]), axis=dim)
        if kind == 6:
            return join(y, jnp.flip(y, dim))
        return jnp.tensordot(y, y, axes=((dim,), (dim,)))[(0,) * (y.ndim - 1)]

    return step


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(pipelines(), st.sampled_from(["float32", "bfloat16"]))
def test_random_programs_survive(
    pipeline: tuple[Callable[[jax.Array], Any], tuple[int, ...]], dtype: str
) -> None:
    fun, shape = pipeline
    x = jnp.asarray(real(*shape), dtype)
    assert_text_survives(lowered(fun, (x,)))
    assert_numbers_survive(fun, (x,), 1e-4 if dtype == "float32" else 5e-2)
