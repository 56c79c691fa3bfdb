# %% [markdown]
# # A pipeline
#
# Where links between hosts are slow, layers become stages on parts of the cluster, and a batch is worked on in micro-batches. The cut, the submeshes, how each
# stage is split, the number of micro-batches and the schedule are searched for. Here: a small GPT on eight virtual devices.

# %%
import os

flags = "--xla_force_host_platform_device_count=8"
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", flags)
os.environ["PJRT_NPROC"] = os.environ.get("PJRT_NPROC", "32")

# %%
import jax

import stablehlo_alpa
from stablehlo_alpa import zoo

case = zoo.gpt("tiny", batch=32, dtype="float32")

# %% [markdown]
# ## Two stages
#
# `UniformStages(2)` asks for two stages of four devices; `AutoStages()`, the default, searches. The step takes its gradients by `stablehlo_alpa.value_and_grad`,
# which is where the backward phase of a micro-batch ends.

# %%
method = stablehlo_alpa.PipeshardParallel(
    layers=stablehlo_alpa.AutoLayers(num_layers=2),
    stages=stablehlo_alpa.UniformStages(2),
    num_micro_batches=8,
)
step = stablehlo_alpa.parallelize(case.step, method=method, donate_argnums=case.donate_argnums)
plan = step.plan(*case.args)
print(plan.summary())

# %% [markdown]
# What each mesh does when, by predicted times: with 1F1B a stage alternates between the forward phase of one micro-batch and the backward phase of another.

# %%
plan.plot()

# %%
for stage in range(len(plan.stages)):
    waits = plan.simulation.bubble(stage)
    print(f"stage {stage}: layers {plan.stages[stage].layers}, waits {waits:.0%} of the step")

# %% [markdown]
# ## It computes what `jax.jit` computes
#
# A micro-batch is a part of the batch in time: the loss is that of the whole batch.

# %%
state, batch = case.make()
_, expected = jax.jit(case.step)(state, batch)
new_state, loss = step(state, batch)
print(f"loss {float(loss):.5f} as a pipeline, {float(expected):.5f} by jax.jit")
assert abs(float(loss) - float(expected)) < 1e-4

# %% [markdown]
# ## When does one pay?
#
# The same search for hosts that are not there: two of eight V100 with 25 Gbit/s between them. Reducing all gradients over that network takes longer than
# waiting for a pipeline to fill.

# %%
large = zoo.gpt("1.3B", batch=128, dtype="float16", scanned=True)
searched = stablehlo_alpa.parallelize(
    large.step,
    method=stablehlo_alpa.PipeshardParallel(
        layers=stablehlo_alpa.AutoLayers(num_layers=4, remat=True),
        num_micro_batches=16,
        schedule="1f1b",
    ),
    cluster="p3.16xlarge:2",
    donate_argnums=large.donate_argnums,
)
found = searched.plan(*large.args)
print(found.summary())

# %%
for stage in found.stages:
    print(f"layers {stage.layers} on {stage.submesh[0]} x {stage.submesh[1]} devices")
