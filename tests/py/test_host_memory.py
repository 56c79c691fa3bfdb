"""What a step keeps in the memory of the host stays there, and takes none of the device's."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from alpa_runtime.host_memory import HOST
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import SingleDeviceSharding

import stablehlo_alpa as sa

Space = jax.memory.Space
WIDTH = 64
OFFLOAD = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=[],
    names_which_can_be_offloaded=["hidden"],
    offload_src="device",
    offload_dst=HOST,
)
METHODS = {
    "data": sa.DataParallel(),
    "searched": sa.ShardParallel(mesh_shape=(2, 4)),
    "micro_batches": sa.ShardParallel(mesh_shape=(8,), num_micro_batches=2),
    "pipeline": sa.PipeshardParallel(stages=sa.UniformStages(2), num_micro_batches=2),
}


def loss_of(weights: list[jax.Array], x: jax.Array, y: jax.Array, policy: Any = None) -> Any:
    """Of layers whose first half is kept for their gradients, as ``policy`` says."""

    @functools.partial(jax.checkpoint, policy=policy)
    def layer(x: jax.Array, both: jax.Array) -> jax.Array:
        return jnp.tanh(checkpoint_name(jnp.tanh(x @ both[0]), "hidden") @ both[1])

    for both in weights:
        x = layer(x, both)
    return ((x - y) ** 2).mean()


def train(state: Any, x: jax.Array, y: jax.Array, *, grad: Any, memory: Any, policy: Any) -> Any:
    """A step with momentum, which rests in a memory."""
    weights, momentum = state
    momentum = jax.tree.map(lambda m: jax.device_put(m, Space.Device), momentum)
    loss, grads = grad(lambda w: loss_of(w, x, y, policy))(weights)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
    weights = jax.tree.map(lambda w, m: w - 0.1 * m, weights, momentum)
    return (weights, jax.tree.map(lambda m: jax.device_put(m, memory), momentum)), loss


def step_of(grad: Any, memory: Any = Space.Host, policy: Any = OFFLOAD) -> Any:
    """The step of a call, as a function of state and batch alone."""

    def step(state: Any, x: jax.Array, y: jax.Array) -> Any:
        return train(state, x, y, grad=grad, memory=memory, policy=policy)

    return step


def arguments(width: int = WIDTH, rows: int = 16) -> tuple[Any, jax.Array, jax.Array]:
    keys = jax.random.split(jax.random.key(0), 4)
    weights = [jax.random.normal(key, (2, width, width)) / 8 for key in keys]
    x = jax.random.normal(jax.random.key(1), (rows, width))
    return (weights, jax.tree.map(jnp.zeros_like, weights)), x, jnp.sin(x)


def on_host(tree: Any) -> Any:
    return jax.device_put(tree, SingleDeviceSharding(jax.devices()[0], memory_kind=HOST))


def kinds(tree: Any) -> list[Any]:
    return [leaf.sharding.memory_kind for leaf in jax.tree.leaves(tree)]


@pytest.mark.parametrize("name", METHODS)
def test_state_stays_on_the_host(name: str) -> None:
    (weights, momentum), x, y = arguments()
    state = weights, on_host(momentum)
    plain = jax.jit(step_of(jax.value_and_grad))
    parallel = sa.parallelize(step_of(sa.value_and_grad), method=METHODS[name])
    wanted, found = plain(state, x, y), parallel(state, x, y)
    assert kinds(found) == kinds(wanted)
    assert kinds(found).count(HOST) == len(momentum)
    wanted, found = plain(wanted[0], y, x), parallel(found[0], y, x)
    assert kinds(found) == kinds(wanted)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6), found, wanted)


def test_state_is_created_and_given_from_either_memory() -> None:
    (weights, momentum), x, y = arguments()
    step = sa.parallelize(step_of(jax.value_and_grad), method=METHODS["searched"])
    begun = step((weights, momentum), x, y)
    again = step((weights, on_host(momentum)), x, y)
    assert kinds(begun) == kinds(again)
    jax.tree.map(np.testing.assert_array_equal, begun, again)

    def init() -> Any:
        zeros = jax.tree.map(jnp.zeros_like, weights)
        return weights, jax.tree.map(lambda m: jax.device_put(m, Space.Host), zeros)

    made = step.create_state(init, batch=(x, y))
    assert kinds(made) == ["device"] * len(weights) + [HOST] * len(momentum)


def test_values_of_two_memories_do_not_meet() -> None:
    (weights, momentum), _, _ = arguments()
    step = sa.parallelize(lambda a, b: a + b, method=METHODS["data"])
    with pytest.raises(ValueError, match="memory_space of all inputs"):
        step(weights[0], on_host(momentum)[0])


@pytest.mark.parametrize("name", ["searched", "micro_batches", "pipeline"])
def test_on_gpus_it_takes_no_memory_of_the_device(name: str) -> None:
    # Sixteen GPUs that are not there: for those of a CPU jax leaves the moves out.
    args = jax.eval_shape(lambda: arguments(1024, 4096))
    grad = sa.value_and_grad if name == "pipeline" else jax.value_and_grad
    method: Any = {
        "searched": sa.ShardParallel(),
        "micro_batches": sa.ShardParallel(mesh_shape=(16,), num_micro_batches=2),
        "pipeline": sa.PipeshardParallel(
            stages=sa.UniformStages(2), num_micro_batches=2, layers=sa.AutoLayers(num_layers=4)
        ),
    }[name]

    def plan(memory: Any, policy: Any) -> Any:
        step = step_of(grad, memory, policy)
        return sa.parallelize(step, method=method, cluster="p5.48xlarge:2").plan(*args)

    kept = plan(Space.Device, None)
    state, x, y = args
    args = (state[0], on_host_types(state[1])), x, y
    away = plan(Space.Host, OFFLOAD)
    programs = away.runtime.programs
    assert sum(p.text.count("annotate_device_placement") for p in programs) >= 3 * len(state[1])
    inputs = [one for one in away.runtime.inputs if one.value.is_on_host]
    assert len(inputs) == len(state[1])
    held = host_bytes(away.runtime)
    assert away.peak_bytes < kept.peak_bytes - held / 2
    # There and back, over the bus of an H100.
    bus = sa.ClusterSpec.preset("p5.48xlarge:2").device.host_bandwidth
    assert away.step_time_s > kept.step_time_s + 1.9 * held / bus
    if name == "pipeline":
        assert any(v.is_on_host for p in programs if "forward" in p.name for v in p.outputs)


def host_bytes(plan: Any) -> int:
    """Of inputs per device of the first mesh."""
    places = [(one.value, place) for one in plan.inputs for place in one.placements]
    return sum(
        plan.value(0, place.buffers[0]).local_bytes(plan.sizes(0))
        for value, place in places
        if value.is_on_host and place.mesh == 0
    )


def on_host_types(tree: Any) -> Any:
    sharding = SingleDeviceSharding(jax.devices()[0], memory_kind=HOST)
    return jax.tree.map(
        lambda one: jax.ShapeDtypeStruct(one.shape, one.dtype, sharding=sharding), tree
    )
