"""Trains a character GPT on this repository's own text, on eight virtual devices as a 2x4 mesh.

The model and its train step are plain flax and optax: nothing in them speaks of devices. One call
of ``stablehlo_alpa.parallelize`` plans how to split the step; the same step under plain ``jax.jit``
runs beside it, so that the losses can be compared.

    make demo
"""

import argparse
import itertools
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

# Both are read once, when JAX makes its client: eight devices out of one CPU, and threads for them.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("PJRT_NPROC", "32")
if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
    flag = "--xla_force_host_platform_device_count=8"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}".strip()

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

import stablehlo_alpa

ROOT = Path(__file__).resolve().parent.parent
SUFFIXES = {".md", ".py", ".cpp", ".h", ".td", ".mlir"}

BATCH, LENGTH = 16, 64
LAYERS, HIDDEN, HEADS, DROPOUT = 4, 128, 4, 0.1


class Block(nn.Module):
    """Causal self-attention and a feed-forward network, each behind a layer norm."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, length, hidden] to the same."""
        dropout = nn.Dropout(DROPOUT, deterministic=False)
        y = nn.LayerNorm()(x)
        query = nn.DenseGeneral((HEADS, HIDDEN // HEADS), name="query")(y)
        key = nn.DenseGeneral((HEADS, HIDDEN // HEADS), use_bias=False, name="key")(y)
        value = nn.DenseGeneral((HEADS, HIDDEN // HEADS), name="value")(y)
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / (HIDDEN // HEADS) ** 0.5
        scores = jnp.where(jnp.tri(x.shape[1], dtype=bool), scores, -1e9)
        weights = dropout(jax.nn.softmax(scores))
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, value)
        x = x + dropout(nn.DenseGeneral(HIDDEN, axis=(-2, -1), name="out")(mixed))
        y = nn.Dense(4 * HIDDEN, name="up")(nn.LayerNorm()(x))
        return x + dropout(nn.Dense(HIDDEN, name="down")(nn.gelu(y)))


class GPT(nn.Module):
    """Logits of the next character, with the embedding tied to the output."""

    vocabulary: int

    @nn.compact
    def __call__(self, text: jax.Array) -> jax.Array:
        """Maps int32[batch, length] to f32[batch, length, vocabulary]."""
        embed = nn.Embed(self.vocabulary, HIDDEN)
        position = self.param("position", nn.initializers.normal(0.02), (LENGTH, HIDDEN))
        x = nn.Dropout(DROPOUT, deterministic=False)(embed(text) + position)
        for layer in range(LAYERS):
            x = Block(name=f"layer_{layer}")(x)
        return embed.attend(nn.LayerNorm()(x)) / HIDDEN**0.5


def read_text() -> tuple[np.ndarray, int]:
    """The repository's documentation and sources as int32[characters], and the vocabulary's size.

    Characters outside ASCII become one character of their own; 128 in all.
    """
    folders = ("docs", "stablehlo_alpa", "runtime", "passes", "dialects", "cpp", "examples")
    files = [ROOT / "README.md"]
    for folder in folders:
        files += sorted(f for f in (ROOT / folder).rglob("*") if f.suffix in SUFFIXES)
    text = "\n".join(file.read_text(encoding="utf-8") for file in files if file.is_file())
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    return np.where(codes < 127, codes, 127).astype(np.int32), 128


def batches(text: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    """Endless batches int32[BATCH, LENGTH + 1] cut from random places of the text."""
    rng = np.random.default_rng(seed)
    while True:
        starts = rng.integers(0, len(text) - LENGTH - 1, BATCH)
        yield np.stack([text[start : start + LENGTH + 1] for start in starts])


def compare_losses(
    parallel: tuple[Any, Any],
    plain: tuple[Any, Any],
    data: Sequence[np.ndarray],
    key: jax.Array,
) -> Any:
    """Trains both on the same batches and prints their losses.

    Args:
        parallel: a step and its state.
        plain: the same under plain ``jax.jit``.
        data: a batch per step.
        key: of dropout; each step has its own.

    Returns:
        the last state of ``parallel``.
    """
    (parallel_step, state), (plain_step, plain_state) = parallel, plain
    print("\n step    parallel       plain jax.jit   difference")
    for index, batch in enumerate(data):
        step_key = jax.random.fold_in(key, index)
        state, loss = parallel_step(state, batch, step_key)
        plain_state, plain_loss = plain_step(plain_state, batch, step_key)
        if index % 10 == 0 or index == len(data) - 1:
            a, b = float(loss), float(plain_loss)
            print(f"{index:5d}   {a:10.6f}      {b:10.6f}      {abs(a - b):.1e}", flush=True)
    return state


def main() -> None:
    """Plans, trains under both, and prints the losses side by side."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--mesh", default="2x4", help="logical mesh shape (default: 2x4)")
    options = parser.parse_args()
    mesh_shape = tuple(int(size) for size in options.mesh.split("x"))

    text, vocabulary = read_text()
    model = GPT(vocabulary)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))

    def make_state(key: jax.Array) -> Any:
        shape = jnp.zeros((BATCH, LENGTH), jnp.int32)
        params = model.init({"params": key, "dropout": key}, shape)
        return params, optimizer.init(params)

    def train_step(state: Any, batch: jax.Array, key: jax.Array) -> tuple[Any, jax.Array]:
        params, opt_state = state

        def loss_fn(params: Any) -> jax.Array:
            logits = model.apply(params, batch[:, :-1], rngs={"dropout": key})
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, batch[:, 1:])
            return losses.mean()

        loss, gradients = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = optimizer.update(gradients, opt_state, params)
        return (optax.apply_updates(params, updates), opt_state), loss

    key = jax.random.PRNGKey(0)
    data = list(itertools.islice(batches(text, seed=0), options.steps))
    first = data[0]

    method = stablehlo_alpa.ShardParallel(mesh_shape=mesh_shape)
    parallel_step = stablehlo_alpa.parallelize(train_step, method=method, donate_argnums=(0,))
    print(f"{len(text):,} characters; {len(jax.devices())} devices as {options.mesh}; planning ...")
    start = time.perf_counter()
    plan = parallel_step.plan(jax.eval_shape(make_state, key), first, key)
    print(f"planned in {time.perf_counter() - start:.1f} s\n")
    print(plan)
    print(plan.table("operators", limit=12))
    rows = plan.communication()
    count, size = sum(row.count for row in rows), sum(row.bytes for row in rows)
    print(f"communication {count:,.0f} collectives, {size:,.0f} bytes per device and step")

    plain_step = jax.jit(train_step, donate_argnums=(0,))
    plain_state = jax.jit(make_state)(key)
    parallel_state = parallel_step.create_state(make_state, key, batch=(first, key))
    compare_losses((parallel_step, parallel_state), (plain_step, plain_state), data, key)


if __name__ == "__main__":
    main()
