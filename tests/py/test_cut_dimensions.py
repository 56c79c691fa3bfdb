"""What slices and windows without padding leave of a dimension is split as the dimension is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparing import assert_equals_jit
from jax import lax
from programs import Program, real, whole
from test_padded_sizes import MESHES, check
from test_windows import convolution, with_gradients

import stablehlo_alpa
from stablehlo_alpa import ShardParallel
from stablehlo_alpa.compiler.measures import Work
from stablehlo_alpa.inter_op import sweep
from stablehlo_alpa.inter_op.forms import layered_forms
from stablehlo_alpa.planning import planner

# Sizes that eight and three devices divide, and of which their halves and quarters are so, too.
SIZE = 96
CUT: dict[str, Program] = {}


def cut(*args: Any, tolerance: float = 1e-4) -> Callable[[Callable[..., Any]], Any]:
    """Registers a function and the gradient of a sum of it under its name."""

    def register(fun: Callable[..., Any]) -> Callable[..., Any]:
        CUT[fun.__name__] = Program(with_gradients(fun), args, tolerance)
        return fun

    return register


# Slices


@cut(real(SIZE, 3), real(3, seed=1))
def differences(x: Any, k: Any) -> Any:
    y = x * k
    return jnp.exp(y[1:] - y[:-1]) * jnp.sin(y[:-1])


@cut(real(SIZE, 3), real(3, seed=1))
def second_differences(x: Any, k: Any) -> Any:
    return jnp.tanh(jnp.diff(x * k, 2, axis=0)).sum(1)


@cut(real(4, SIZE), real(4, SIZE, seed=1))
def far_neighbours(x: Any, k: Any) -> Any:
    return jnp.tanh(x[:, 17:] * k[:, :-17]) @ jnp.cos(x[:, 5:-12].T)


@cut(real(SIZE, 5), real(SIZE, 5, seed=1))
def extrema_and_sums_of_what_is_left(x: Any, k: Any) -> Any:
    # No sum: the largest is looked for among products that may be computed twice, once rounded.
    y = x[2:] * k[:-2]
    product = jnp.prod(1 + 0.1 * y, 0)
    parts = y.sum(0), y.max(0), y.min(0), product, jnp.cumsum(y, 1).mean(0), y.std(0)
    return jnp.stack(parts)


@cut(real(2, SIZE, 7), real(7, 11, seed=1))
def next_tokens(x: Any, k: Any) -> Any:
    tokens = jnp.asarray(whole(11, 2, SIZE))
    logits = jax.nn.log_softmax(x @ k)[:, :-1]
    picked = jnp.take_along_axis(logits, tokens[:, 1:, None], 2)[..., 0]
    return jnp.where(tokens[:, 1:] > 2, picked, 0).sum(1)


@cut(real(SIZE, 3), real(3, seed=1))
def every_second(x: Any, k: Any) -> Any:
    y = jnp.sin(x * k)
    halves = y[2::2] * y[1:-1:2] + y[:-2:2]
    return jnp.concatenate([halves, y[3::3] * y[1:-2:3]])


@cut(real(SIZE, 3), real(3, seed=1))
def made_as_long_again(x: Any, k: Any) -> Any:
    y = jnp.tanh(x[1:] * k)
    after = jnp.concatenate([y[:1], jnp.exp(y)])
    before = jnp.concatenate([jnp.exp(y), 0.5 * y[:1]])
    around = jnp.concatenate([x[:1], jnp.exp(y[1:]), x[:1]])
    return after * before + around + jnp.pad(y * y, ((0, 1), (0, 0)), constant_values=1)


@cut(real(SIZE, 3), real(SIZE, seed=1))
def upwind(x: Any, k: Any) -> Any:
    """A step of a scheme of finite volumes, with what flows through the ends."""
    flow = k[1:, None] * jnp.where(k[1:, None] > 0, x[:-1], x[1:])
    return x.at[1:-1].add(-0.1 * (flow[1:] - flow[:-1])).at[0].set(0.0)


@cut(real(SIZE, 24), real(SIZE, 24, seed=1))
def writes_to_the_middle(x: Any, k: Any) -> Any:
    """Waves on a grid whose edge is held."""
    inner = x[1:-1, 1:-1] * jnp.cos(k[2:, 1:-1])
    held = x.at[1:-1, 1:-1].set(inner).at[:, 0].set(0.5)
    moved = lax.dynamic_update_slice(x, jnp.sin(x[3:] - x[:-3]), (2, 0))
    return held * moved + x.at[2:-2].add(k[4:] * k[:-4])


@cut(real(SIZE, 3), real(3, seed=1))
def one_with_what_is_not_cut(x: Any, k: Any) -> Any:
    other = jnp.cos(jnp.arange(SIZE - 1.0))[:, None]
    return jnp.sort(x[1:] * other * k, 1) + jnp.sort(x[1:] * other, 0)[:1]


# Infinities and NaN stand where nobody may look.
HOLES = real(SIZE, 3)
HOLES[[0, -1, -2]] = np.nan, np.inf, -np.inf


@cut(HOLES, real(3, seed=1))
def nothing_of_the_rest(x: Any, k: Any) -> Any:
    y = x[1:] * k
    inner = y[:-2]
    rows = (inner**2).sum(0), inner.max(0), jnp.mean(inner, 0), *(inner.T @ jnp.exp(inner))
    return jnp.stack(rows)


# Windows


def pool(kind: str, window: Any, strides: Any, padding: Any = "VALID") -> Any:
    return lambda x, k: {"max": nn.max_pool, "average": nn.avg_pool}[kind](
        x * k, window, strides, padding
    )


def add(name: str, fun: Any, *args: Any, tolerance: float = 1e-4) -> None:
    CUT[name] = Program(with_gradients(fun), args, tolerance)


for kind in ("max", "average"):
    add(f"{kind}_pool", pool(kind, (3,), (1,)), real(1, SIZE, 3), real(3, seed=1))
    add(f"{kind}_pool_wide", pool(kind, (12,), (1,)), real(1, SIZE, 3), real(3, seed=1))
    add(f"{kind}_pool_strided", pool(kind, (3, 2), (2, 2)), real(1, SIZE, 24, 3), real(3, seed=1))
    add(
        f"{kind}_pool_padded_in_front",
        pool(kind, (4,), (1,), ((1, 0),)),
        real(1, SIZE, 3),
        real(3, seed=1),
    )
for kind, strides in {"dense": (1, 1), "strided": (2, 1)}.items():

    def valid(x: Any, k: Any, strides: Any = strides) -> Any:
        return jnp.tanh(convolution(x, k, strides, "VALID"))

    add(f"convolution_{kind}", valid, real(1, SIZE, 24, 2), real(3, 3, 2, 3, seed=1))


@cut(real(1, SIZE, 3), real(3, 3, 3, seed=1))
def convolution_with_gaps(x: Any, k: Any) -> Any:
    return convolution(jnp.sin(x), k, (1,), "VALID", rhs_dilation=(5,))


@cut(real(1, SIZE, 24, 2), real(3, 3, 2, 2, seed=1))
def convolutions_one_after_another(x: Any, k: Any) -> Any:
    for _ in range(3):
        x = jax.nn.relu(convolution(x, k, (1, 1), "VALID"))
    return nn.max_pool(x, (3, 3), (1, 1)).mean((1, 2))


@cut(real(1, SIZE, 2), real(3, 2, 2, seed=1))
def convolution_strided_pooled(x: Any, k: Any) -> Any:
    x = jnp.tanh(convolution(x, k, (1,), "VALID"))
    return convolution(nn.avg_pool(x, (3,), (2,)), k, (1,), "SAME")


@cut(real(1, SIZE, 2), real(3, 2, 2, seed=1))
def down_and_up_again(x: Any, k: Any) -> Any:
    """A U-Net: what is pooled is made twice as long, and joined with the middle of what was."""

    def twice(x: Any) -> Any:
        for _ in range(2):
            x = jnp.tanh(convolution(x, k, (1,), "VALID"))
        return x

    skip = twice(x)
    low = twice(nn.avg_pool(skip, (2,), (2,)))
    high = lax.conv_transpose(low, k[:2], (2,), "VALID", dimension_numbers=("NHC", "HIO", "NHC"))
    start = (skip.shape[1] - high.shape[1]) // 2
    return twice(high + skip[:, start : start + high.shape[1]])


@cut(real(SIZE, 3), real(3, seed=1))
def nearly_as_long_again(x: Any, k: Any) -> Any:
    y = jnp.tanh(x[4:-3] * k)
    joined = jnp.concatenate([x[:1] * k, jnp.exp(y), y[:2]])
    return jnp.sin(joined[1:]) * jnp.cos(jnp.pad(y, ((0, 2), (0, 0))))


# Scans of pairs


@cut(real(SIZE, 3), real(3, seed=1))
def scan_of_sums(x: Any, k: Any) -> Any:
    return lax.associative_scan(jnp.add, jnp.sin(x * k))


@cut(real(2, SIZE, 3), real(2, SIZE, 3, seed=1))
def linear_recurrence(x: Any, k: Any) -> Any:
    def combine(first: Any, second: Any) -> Any:
        return first[0] * second[0], second[0] * first[1] + second[1]

    return lax.associative_scan(combine, (jax.nn.sigmoid(k), x), axis=1)[1]


@cut(real(SIZE, 3), real(3, seed=1))
def scan_from_behind(x: Any, k: Any) -> Any:
    return lax.associative_scan(jnp.maximum, x * k, reverse=True)


@cut(0.5 * real(SIZE, 2, 2), real(2, seed=1))
def scan_of_products_of_matrices(x: Any, k: Any) -> Any:
    x = jnp.eye(2) + 0.1 * x * k
    return lax.associative_scan(lambda a, b: jnp.einsum("nij,njk->nik", a, b), x)


@pytest.mark.parametrize("name", CUT)
def test_cut_programs_equal_jit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    number = list(CUT).index(name)
    plans = range(number, number + 1)
    check(name, list(MESHES)[number % len(MESHES)], plans, monkeypatch, CUT)


@pytest.mark.matrix
@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", CUT)
def test_cut_programs_equal_jit_on_every_mesh(
    name: str, mesh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(name, mesh, range(10, 14), monkeypatch, CUT)


# Steps -------------------------------------------------------------------------------------------


def images(kernels: Any, x: Any) -> Any:
    def loss(kernels: Any) -> Any:
        h = x
        for kernel in kernels:
            h = jax.nn.relu(convolution(h, kernel, (1, 1), "VALID"))
        return (nn.max_pool(h, (3, 3), (2, 2)) ** 2).mean()

    value, gradients = stablehlo_alpa.value_and_grad(loss)(kernels)
    return jax.tree.map(lambda k, g: k - 0.1 * g, kernels, gradients), value


def recurrences(weights: Any, x: Any) -> Any:
    """Gated linear recurrences, and the differences of what comes out."""

    def combine(first: Any, second: Any) -> Any:
        return first[0] * second[0], second[0] * first[1] + second[1]

    def loss(weights: Any) -> Any:
        h = x
        for into, gate in weights:
            pair = jax.nn.sigmoid(h @ gate), h @ into
            h = jnp.tanh(lax.associative_scan(combine, pair, axis=1)[1])
        return (jnp.diff(h, axis=1) ** 2).mean()

    value, gradients = stablehlo_alpa.value_and_grad(loss)(weights)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), value


STEPS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "images": (
        images,
        ([0.2 * real(3, 3, 4, 6), 0.2 * real(3, 3, 6, 6, seed=1)], real(4, 32, 32, 4, seed=2)),
    ),
    "recurrences": (
        recurrences,
        ([(0.3 * real(6, 6), 0.3 * real(6, 6, seed=1))] * 2, real(4, 64, 6, seed=2)),
    ),
}
METHODS: dict[str, stablehlo_alpa.Method] = {
    "whole batch": ShardParallel(mesh_shape=(2, 4)),
    "micro-batches": ShardParallel(mesh_shape=(2, 4), num_micro_batches=2),
    "stages": stablehlo_alpa.PipeshardParallel(
        num_micro_batches=2,
        layers=stablehlo_alpa.AutoLayers(num_layers=2),
        stages=stablehlo_alpa.UniformStages(2),
    ),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", STEPS)
def test_cut_steps_equal_jit(name: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The padded form of a step, be it faster or not."""
    padded: list[int] = []

    def last(make: Any) -> Any:
        def made(*args: Any) -> Any:
            forms = list(make(*args))
            padded.append(len(forms))
            return forms[-1:]

        return made

    monkeypatch.setattr(planner, "prepared_forms", last(planner.prepared_forms))
    # The package has a function of the module's name.
    monkeypatch.setattr(sys.modules[sweep.__module__], "layered_forms", last(layered_forms))
    step, args = STEPS[name]
    parallel: Any = stablehlo_alpa.parallelize(step, method=METHODS[method], batch_argnums=(1,))
    assert_equals_jit(parallel(*args), jax.jit(lambda *args: step(*args))(*args))
    assert max(padded) > 1


def test_rows_of_images_are_split_without_padding_at_their_ends() -> None:
    """No operator with a share of the FLOPs stays whole where one image is all there is."""

    def shape(*sizes: int) -> Any:
        return jax.ShapeDtypeStruct(sizes, np.float32)

    args = ([shape(3, 3, 64, 64)] * 4, shape(1, 1024, 1024, 64))

    def plan_of(pad: bool) -> stablehlo_alpa.Plan:
        method = ShardParallel(pad=pad, mesh_shape=(1, 8))
        return stablehlo_alpa.parallelize(images, method=method, cluster="dgx-a100:1").plan(*args)

    cut_, whole_ = plan_of(True), plan_of(False)
    shares = []
    for plan in (cut_, whole_):
        work = Work.of(plan.module_text("planned"))
        shares.append(float(work.flops[~work.is_split].sum() / work.flops.sum()))
    assert shares[0] < 0.01
    assert shares[1] > 0.2
    assert cut_.step_time_s < whole_.step_time_s
