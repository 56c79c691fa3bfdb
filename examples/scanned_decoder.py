"""Trains a decoder as MaxText and its like are written, as a pipeline, with nothing changed.

The layers are one ``flax.linen.scan`` over stacked parameters, with a rematerialisation policy;
parameters and activations have logical axes by name. Each of four stages holds a quarter of the
stack and of its optimiser state. Beside it runs plain ``jax.jit`` of the same step, on the whole
batch.

    python examples/scanned_decoder.py
"""

import os

# Before jax is imported.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + (
    " --xla_force_host_platform_device_count=8"
)
os.environ.setdefault("PJRT_NPROC", "32")

import argparse
from collections import Counter
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from flax.training.train_state import TrainState

import stablehlo_alpa

LAYERS, HIDDEN, HEADS, LENGTH, VOCABULARY, BATCH = 16, 64, 4, 32, 256, 16

# ----- the model, which knows nothing of the plan ------------------------------------------------

init = nn.initializers.normal(0.02)


def weight(*axes: str | None) -> Any:
    """Initialises a parameter whose dimensions have these names."""
    return nn.with_logical_partitioning(init, axes)


class Norm(nn.Module):
    """Root mean square."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, length, hidden] to the same."""
        scale = self.param(
            "scale", nn.with_logical_partitioning(nn.initializers.ones, ("norm",)), x.shape[-1:]
        )
        mean = jnp.mean(jnp.square(x.astype(jnp.float32)), -1, keepdims=True)
        return (x * jax.lax.rsqrt(mean + 1e-6)).astype(x.dtype) * scale


class DecoderLayer(nn.Module):
    """Attention and a gated feed-forward network, as the body of a scan."""

    @nn.compact
    def __call__(self, x: jax.Array, _: None) -> tuple[jax.Array, None]:
        """Maps the carried [batch, length, hidden] to the same."""
        x = nn.with_logical_constraint(x, ("batch", "length", "embed"))
        project = partial(
            nn.DenseGeneral,
            (HEADS, HIDDEN // HEADS),
            use_bias=False,
            kernel_init=weight("embed", "heads", "kv"),
        )
        y = Norm(name="before_attention")(x)
        query, key, value = (project(name=name)(y) for name in ("query", "key", "value"))
        mask = nn.make_causal_mask(jnp.ones(x.shape[:2]))
        mixed = nn.dot_product_attention(query, key, value, mask=mask)
        out = nn.DenseGeneral(
            HIDDEN,
            axis=(-2, -1),
            use_bias=False,
            kernel_init=weight("heads", "kv", "embed"),
            name="out",
        )
        x = x + out(mixed)
        y = Norm(name="before_mlp")(x)
        dense = partial(nn.Dense, use_bias=False)
        gate = dense(4 * HIDDEN, kernel_init=weight("embed", "mlp"), name="gate")(y)
        up = dense(4 * HIDDEN, kernel_init=weight("embed", "mlp"), name="up")(y)
        y = nn.with_logical_constraint(nn.silu(gate) * up, ("batch", "length", "mlp"))
        return x + dense(HIDDEN, kernel_init=weight("mlp", "embed"), name="down")(y), None


class Decoder(nn.Module):
    """Logits of the next token."""

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        """Maps int32[batch, length] to [batch, length, vocabulary]."""
        embed = nn.Embed(VOCABULARY, HIDDEN, embedding_init=weight("vocab", "embed"), name="embed")
        layer = nn.remat(
            DecoderLayer,
            policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
            prevent_cse=False,
        )
        layers = nn.scan(
            layer,
            variable_axes={"params": 0},
            split_rngs={"params": True},
            length=LAYERS,
            metadata_params={nn.PARTITION_NAME: "layers"},
        )
        x, _ = layers(name="layers")(embed(tokens), None)
        return embed.attend(Norm(name="norm")(x))


def train_step(state: TrainState, batch: jax.Array) -> tuple[TrainState, jax.Array]:
    """The next state, and the loss of int32[batch, length + 1]."""

    def loss_fn(params: Any) -> jax.Array:
        logits = state.apply_fn(params, batch[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch[:, 1:]).mean()

    loss, gradients = stablehlo_alpa.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=gradients), loss


def make_state(key: jax.Array) -> TrainState:
    """The first state."""
    model = Decoder()
    params = model.init(key, jnp.zeros((BATCH, LENGTH), jnp.int32))
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    return TrainState.create(apply_fn=model.apply, params=params, tx=optimiser)


# ----- the plan ----------------------------------------------------------------------------------


def main() -> None:
    """Trains under both, and prints the losses side by side and what each stage holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()

    method = stablehlo_alpa.PipeshardParallel(
        num_micro_batches=4,
        layers=stablehlo_alpa.AutoLayers(num_layers=4, remat=True),
        stages=stablehlo_alpa.UniformStages(4),
    )
    step = stablehlo_alpa.parallelize(train_step, method=method, donate_argnums=0)
    plain = jax.jit(train_step, donate_argnums=0)

    rows = np.random.default_rng(0)
    tokens = jnp.asarray(rows.integers(0, VOCABULARY, (BATCH, LENGTH + 1), np.int32))
    key = jax.random.key(0)
    state = step.create_state(make_state, key, batch=(tokens,))
    alone = jax.jit(make_state)(key)
    for number in range(options.steps):
        state, loss = step(state, tokens)
        alone, expected = plain(alone, tokens)
        print(f"step {number}: loss {float(loss):.5f}, on one device {float(expected):.5f}")

    held: Counter[int] = Counter()
    for leaf in jax.tree.leaves((state.params["params"]["layers"], state.opt_state)):
        # Where stages split it unlike, a stack is its parts.
        for part in getattr(leaf, "parts", [leaf]):
            for shard in part.addressable_shards:
                held[shard.device.id] += shard.data.nbytes
    whole = sum(leaf.nbytes for leaf in jax.tree.leaves((alone.params, alone.opt_state)))
    print(f"\nparameters and optimiser state: {whole / 2**20:.2f} MiB, on the devices")
    print(", ".join(f"{held[device] / 2**20:.2f}" for device in sorted(held)), "MiB")


if __name__ == "__main__":
    main()
