"""Words drawn from the likeliest of a vocabulary that is split over devices, beside plain jax.jit.

    python examples/sampler.py
    python examples/sampler.py --steps 16 --keep 20

No sharding is written down: the planner splits the head by words. Each device looks for the
likeliest of its own, and only those candidates are sent.
"""

import argparse
import os
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

import stablehlo_alpa as sa

BATCH, LENGTH, HIDDEN, VOCABULARY = 4, 16, 256, 32768


class Decoder(nn.Module):
    """A layer of attention between an embedding and a head."""

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        """Logits f32[batch, vocabulary] of the word behind int32[batch, length]."""
        x = nn.Embed(VOCABULARY, HIDDEN)(tokens)
        mask = nn.make_causal_mask(tokens)
        x = x + nn.MultiHeadDotProductAttention(4)(nn.LayerNorm()(x), mask=mask)
        return nn.Dense(VOCABULARY)(x[:, -1])


def draw(params: Any, tokens: jax.Array, key: jax.Array, keep: int) -> tuple[jax.Array, jax.Array]:
    """One step: tokens with a word more, drawn of the `keep` likeliest, and the likeliest one."""
    logits = Decoder().apply(params, tokens)
    values, words = jax.lax.top_k(logits, keep)
    place = jax.random.categorical(key, values)
    word = jnp.take_along_axis(words, place[:, None], 1)
    return jnp.concatenate([tokens[:, 1:], word], 1), jnp.argmax(logits, -1)


def main() -> None:
    """Draws with one device and with all, and prints how many words are the same."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--keep", type=int, default=40)
    options = parser.parse_args()
    key = jax.random.PRNGKey(0)
    tokens = jax.random.randint(key, (BATCH, LENGTH), 0, VOCABULARY)
    params = Decoder().init(key, tokens)
    split = sa.parallelize(draw, static_argnums=3)
    whole = jax.jit(draw, static_argnums=3)
    print(split.plan(params, tokens, key, options.keep))
    one, all_devices, same = tokens, tokens, 0
    for step in range(options.steps):
        drawn = jax.random.fold_in(key, step)
        one, likeliest = whole(params, one, drawn, options.keep)
        all_devices, found = split(params, all_devices, drawn, options.keep)
        same += int(np.sum(one[:, -1] == all_devices[:, -1]) + np.sum(likeliest == found))
    print(f"{same} of {2 * BATCH * options.steps} words are those of one device")


if __name__ == "__main__":
    main()
