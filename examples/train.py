"""One training loop for one mesh, a pipeline and a Ray cluster.

    python examples/train.py --on mesh             # or pipeline, or ray
    python examples/train.py --on pipeline --steps 25 --save checkpoint
    python examples/train.py --on mesh --devices 4 --restore checkpoint

flax with a TrainState, dropout, a schedule, an evaluation every ten steps, a last batch of another
size, and checkpoints that continue elsewhere.
"""

import argparse
import os
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState

import stablehlo_alpa as sa

BATCH, ROWS, WIDTH, CLASSES = 64, 672, 32, 8


class Model(nn.Module):
    """Four layers with dropout."""

    @nn.compact
    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        """Logits."""
        for _ in range(4):
            x = nn.Dropout(0.1, deterministic=not train)(nn.relu(nn.Dense(128)(x)))
        return nn.Dense(CLASSES)(x)


def init(key: jax.Array) -> TrainState:
    """The state before the first step."""
    rate = optax.warmup_cosine_decay_schedule(0.0, 1e-2, 10, 200)
    params = Model().init(key, jnp.zeros((1, WIDTH)), False)
    return TrainState.create(apply_fn=Model().apply, params=params, tx=optax.adamw(rate))


def loss_fn(params: Any, state: TrainState, batch: Any, **options: Any) -> tuple[Any, Any]:
    """Mean loss, and hits."""
    logits = state.apply_fn(params, batch["x"], **options)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"])
    return losses.mean(), jnp.sum(logits.argmax(-1) == batch["y"])


def train(state: TrainState, batch: Any, key: jax.Array) -> tuple[TrainState, Any]:
    """One step."""
    options = {"train": True, "rngs": {"dropout": jax.random.fold_in(key, state.step)}}
    found, grads = sa.value_and_grad(loss_fn, has_aux=True)(state.params, state, batch, **options)
    return state.apply_gradients(grads=grads), found


def evaluate(state: TrainState, batch: Any) -> Any:
    """Loss and hits without dropout."""
    return loss_fn(state.params, state, batch, train=False)


def main() -> None:
    """Trains, and prints what it learns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--on", choices=("mesh", "pipeline", "ray"), default="mesh")
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--save", default="")
    parser.add_argument("--restore", default="")
    options = parser.parse_args()
    method: Any = sa.ShardParallel()
    if options.on != "mesh":
        method = sa.PipeshardParallel(num_micro_batches=4, stages=sa.UniformStages(2))
    cluster = sa.RayCluster(devices_per_host=options.devices) if options.on == "ray" else None
    devices = None if cluster else jax.devices()[: options.devices]
    where: dict[str, Any] = {"cluster": cluster, "devices": devices}
    step = sa.parallelize(train, method=method, donate_argnums=0, **where)
    check = sa.parallelize(evaluate, method=sa.FollowParallel(), cluster=cluster)

    generator = np.random.default_rng(0)
    x = generator.normal(size=(ROWS, WIDTH)).astype(np.float32)
    y = (x @ generator.normal(size=(WIDTH, CLASSES))).argmax(-1).astype(np.int32)
    batches = [{"x": x[i : i + BATCH], "y": y[i : i + BATCH]} for i in range(0, ROWS, BATCH)]
    key = jax.random.key(1)
    if options.restore:
        like = jax.eval_shape(init, key)
        state = step.restore_state(options.restore, like, batch=(batches[0], key))
    else:
        state = step.create_state(init, key, batch=(batches[0], key))
    for number in range(int(state.step), options.steps):
        # The last batch of an epoch has half the rows.
        state, (loss, hits) = step(state, batches[number % len(batches)], key)
        if number % 10 == 9:
            seen, right = check(state, batches[0])
            print(f"step {number + 1}: loss {float(loss):.4f}, {int(hits)} hits; evaluation "
                  f"{float(seen):.4f}, {int(right)} of {BATCH}")  # fmt: skip
    if options.save:
        sa.save_checkpoint(options.save, state)
    sa.shutdown()


if __name__ == "__main__":
    main()
