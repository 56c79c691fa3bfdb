"""Shardings of values of a few elements, of which the planner splits none by itself."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

pytest.importorskip("stablehlo_alpa._core")

from comparing import check, specs

import stablehlo_alpa as sa

DRAW = np.random.default_rng(6)


def step(weights: Any, batch: Any) -> Any:
    def loss(weights: Any) -> Any:
        logits = jnp.tanh(batch["x"] @ weights["kernel"] + weights["bias"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()

    value, gradients = jax.value_and_grad(loss)(weights)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), value


def args(examples: int, width: int = 16) -> Any:
    weights = {
        "kernel": DRAW.normal(size=(32, width)).astype("f"),
        "bias": DRAW.normal(size=width).astype("f"),
    }
    x = DRAW.normal(size=(examples, 32)).astype("f")
    return weights, {"x": x, "label": DRAW.integers(0, width, examples).astype("i4")}


@pytest.mark.parametrize("count", [None, 2])
@pytest.mark.parametrize("examples", [8, 16])
def test_labels_are_split_with_their_examples(examples: int, count: int | None) -> None:
    count = count if examples == 16 else None
    method = sa.ManualSharding(
        mesh_shape=(8,), names=("data",), in_specs={"batch": P("data")}, num_micro_batches=count
    )
    found = specs(check(step, args(examples), method))
    assert found["batch['x']"] == found["batch['label']"] == P("data")


def test_data_parallelism_splits_them_too() -> None:
    plan = check(step, args(16), sa.DataParallel())
    assert specs(plan)["batch['label']"] in (P("x"), P(("x", "y")))
    assert not any("label" in remark for remark in plan.remarks)


@pytest.mark.parametrize("width", [4, 8, 16])
def test_a_bias_is_split_with_its_matrix(width: int) -> None:
    method = sa.ManualSharding(
        mesh_shape=(2, 4),
        names=("data", "model"),
        in_specs={0: {"kernel": P(None, "model"), "bias": P("model")}, 1: P("data")},
    )
    found = specs(check(step, args(24, width), method))
    assert found["weights['bias']"] == P("model")


@pytest.mark.parametrize("shape", [(8, 2), (2, 8), (4, 4), (16, 1), (2,)])
def test_what_is_only_handed_on_or_not_read_at_all(shape: tuple[int, ...]) -> None:
    def change(x: Any, same: Any, unused: Any) -> Any:
        return jnp.cumsum(x), x * 2, same

    spec = P("data")
    method = sa.ManualSharding(
        mesh_shape=(2,), names=("data",), in_specs={0: spec, 1: spec, 2: spec}
    )
    x = DRAW.normal(size=shape).astype("f")
    plan = check(change, (x, x + 1, x + 2), method, devices=jax.devices()[:2])
    assert set(specs(plan).values()) == {spec}


def test_what_lies_split_already_stays_so() -> None:
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
    weights, batch = args(16)
    batch = jax.device_put(batch, NamedSharding(mesh, P("data")))
    found = sa.shardings(step, mesh, weights, batch)
    assert found[0][1]["label"].spec == P("data")
    parallel = jax.jit(step, in_shardings=found[0], out_shardings=found[1])
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
        parallel(weights, batch),
        jax.jit(step)(*args_of(weights, batch)),
    )


def args_of(weights: Any, batch: Any) -> Any:
    """The same on one device."""
    return weights, jax.tree.map(np.asarray, batch)
