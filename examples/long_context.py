"""A decoder whose sequences are too long for the scores of its attention.

    python examples/long_context.py
    python examples/long_context.py --tokens 131072 --cluster dgx-h100

The step is plain JAX: `jax.nn.dot_product_attention` over the whole sequence. Where its scores do
not fit, the planner splits the sequence, and keys and values go around the devices. With
`--cluster` the step is planned for devices that need not be there, and not run.
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

import stablehlo_alpa as sa

WORDS, HIDDEN, HEADS, LAYERS = 512, 256, 2, 2
OPTIMIZER = optax.adam(1e-3)


class Layer(nn.Module):
    """Attention to all tokens before, and a perceptron."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """f32[batch, tokens, hidden] to the same."""
        parts = nn.DenseGeneral((3, HEADS, HIDDEN // HEADS))(nn.LayerNorm()(x))
        query, key, value = jnp.moveaxis(parts, 2, 0)
        seen = jax.nn.dot_product_attention(query, key, value, is_causal=True, implementation="xla")
        x = x + nn.DenseGeneral(HIDDEN, axis=(-2, -1))(seen)
        return x + nn.Dense(HIDDEN)(nn.gelu(nn.Dense(4 * HIDDEN)(nn.LayerNorm()(x))))


class Decoder(nn.Module):
    """Says which word comes next."""

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        """int[batch, tokens] to f32[batch, tokens, words]."""
        x = nn.Embed(WORDS, HIDDEN)(tokens)
        for _ in range(LAYERS):
            x = Layer()(x)
        return nn.Dense(WORDS)(nn.LayerNorm()(x))


def train_step(params: Any, state: Any, tokens: jax.Array, words: jax.Array) -> Any:
    """One update: parameters, state of the optimiser and the loss."""

    def loss_of(params: Any) -> jax.Array:
        logits = Decoder().apply(params, tokens)
        return optax.softmax_cross_entropy_with_integer_labels(logits, words).mean()

    loss, gradients = jax.value_and_grad(loss_of)(params)
    updates, state = OPTIMIZER.update(gradients, state)
    return optax.apply_updates(params, updates), state, loss


def shapes(tokens: int) -> tuple[Any, ...]:
    """Of the arguments of a step, for one sequence."""
    text = jax.ShapeDtypeStruct((1, tokens), jnp.int32)
    params = jax.eval_shape(Decoder().init, jax.ShapeDtypeStruct((2,), jnp.uint32), text)
    return params, jax.eval_shape(OPTIMIZER.init, params), text, text


def show(method: sa.ShardParallel, arguments: Any, cluster: str | None = None) -> None:
    """Prints what a plan takes per device, or why there is none."""
    step = sa.parallelize(train_step, method=method, cluster=cluster, donate_argnums=(0, 1))
    try:
        plan = step.plan(*arguments)
    except sa.InfeasibleError as error:
        print(f"does not fit: {error}")
        return
    sent = {one.kind for one in plan.communication()}
    print(f"fits: {plan.peak_bytes / 2**20:.1f} MiB per device, sends by {', '.join(sorted(sent))}")


def main() -> None:
    """Plans with and without all scores; trains with one device and with all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--cluster", help="plan for it: a preset or a file")
    parser.add_argument("--steps", type=int, default=4)
    options = parser.parse_args()
    arguments = shapes(options.tokens)
    if options.cluster is not None:
        for keys in (None, 8192):
            show(sa.ShardParallel(attention_keys=keys), arguments, options.cluster)
        return
    # As if devices had this little memory: less than the scores of a layer.
    budget = 26 * 2**20
    methods = [sa.ShardParallel(attention_keys=keys, memory_budget=budget) for keys in (None, 256)]
    for method in methods:
        show(method, arguments)
    draw = np.random.default_rng(0).integers(0, WORDS, (2, 1, options.tokens))
    tokens, words = jnp.asarray(draw, jnp.int32)
    params = jax.jit(Decoder().init)(jax.random.PRNGKey(0), tokens)
    split, whole = sa.parallelize(train_step, method=methods[-1]), jax.jit(train_step)
    one = all_devices = (params, OPTIMIZER.init(params))
    for step in range(options.steps):
        *one, alone = whole(*one, tokens, words)
        *all_devices, together = split(*all_devices, tokens, words)
        print(f"step {step}: loss {float(together):.5f}, on one device {float(alone):.5f}")


if __name__ == "__main__":
    main()
