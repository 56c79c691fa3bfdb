"""Trains the character GPT of ``gpt_char.py`` as a pipeline: two stages on four devices each.

The train step takes its gradients by ``stablehlo_alpa.value_and_grad``, so that the search may have
layers computed again. Beside it runs plain ``jax.jit`` of the same step, on the whole batch.

    make demo-pipeline
    make demo-ray       # the same on two actors of a local Ray
"""

import argparse
import itertools
import time
from typing import Any

# First of all: it says how many devices JAX is to make.
from gpt_char import BATCH, GPT, LENGTH, batches, compare_losses, read_text  # isort: skip

import jax
import jax.numpy as jnp
import optax

import stablehlo_alpa

MICRO_BATCHES = 4
TRACE = "gpt_pipeline_trace.json"


def pipeline_method(schedule: str, trace: bool) -> stablehlo_alpa.PipeshardParallel:
    """Four layers in two stages."""
    return stablehlo_alpa.PipeshardParallel(
        num_micro_batches=MICRO_BATCHES,
        layers=stablehlo_alpa.AutoLayers(num_layers=4),
        stages=stablehlo_alpa.UniformStages(2),
        schedule=schedule,
        runtime=stablehlo_alpa.RuntimeOptions(trace=trace, trace_path=TRACE),
    )


def main() -> None:
    """Plans, trains under both, and prints the losses side by side."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--schedule", default="1f1b", help="1f1b, gpipe or zero_bubble")
    parser.add_argument("--ray", action="store_true", help="run each stage in a Ray actor")
    options = parser.parse_args()

    text, vocabulary = read_text()
    model = GPT(vocabulary)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))

    def make_state(key: jax.Array) -> Any:
        shape = jnp.zeros((BATCH, LENGTH), jnp.int32)
        params = model.init({"params": key, "dropout": key}, shape)
        return params, optimizer.init(params)

    def loss_fn(params: Any, batch: jax.Array, key: jax.Array) -> jax.Array:
        logits = model.apply(params, batch[:, :-1], rngs={"dropout": key})
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch[:, 1:]).mean()

    def train_step(state: Any, batch: jax.Array, key: jax.Array) -> tuple[Any, jax.Array]:
        params, opt_state = state
        loss, gradients = stablehlo_alpa.value_and_grad(loss_fn)(params, batch, key)
        updates, opt_state = optimizer.update(gradients, opt_state, params)
        return (optax.apply_updates(params, updates), opt_state), loss

    key = jax.random.PRNGKey(0)
    data = list(itertools.islice(batches(text, seed=0), options.steps))
    first = data[0]

    cluster = stablehlo_alpa.RayCluster() if options.ray else None

    def pipeline(trace: bool) -> Any:
        method = pipeline_method(options.schedule, trace)
        return stablehlo_alpa.parallelize(
            train_step, method=method, cluster=cluster, donate_argnums=(0,)
        )

    parallel_step = pipeline(trace=False)
    print(f"{len(text):,} characters; {len(jax.devices())} devices; planning ...")
    start = time.perf_counter()
    plan = parallel_step.plan(jax.eval_shape(make_state, key), first, key)
    print(f"planned in {time.perf_counter() - start:.1f} s\n")
    print(plan)
    print(plan.schedule)

    plain = jax.jit(train_step, donate_argnums=(0,))
    plain_state = jax.jit(make_state)(key)
    state = parallel_step.create_state(make_state, key, batch=(first, key))
    state = compare_losses((parallel_step, state), (plain, plain_state), data, key)

    if cluster is not None:
        stablehlo_alpa.shutdown()
        return
    traced = pipeline(trace=True)
    for _ in range(2):  # The first call compiles.
        state, _ = traced(state, first, key)
    print(f"\ntrace of one step, for Perfetto: {TRACE}")


if __name__ == "__main__":
    main()
