# %% [markdown]
# # Which cluster for which model?
#
# A plan needs no device: it is made for a cluster that is described. So one can ask what a model would take on machines that one does not have, before they
# are rented. All numbers here are predictions, whose errors [accelerators and prices](../accelerators.md) states.

# %%
import os

os.environ["JAX_PLATFORMS"] = os.environ.get("JAX_PLATFORMS", "cpu")

# %%
from dataclasses import replace

import matplotlib.pyplot as plt

import stablehlo_alpa
from stablehlo_alpa import zoo

# %% [markdown]
# ## The model
#
# GPT with 1.3 billion parameters, 64 sequences of 1024 tokens in a step; f32 masters, AdamW. Its layers are one `lax.scan`, so that planning takes seconds. Of a
# layer only the input is kept for the backward phase.

# %%
case = zoo.gpt("1.3B", batch=64, scanned=True, remat=True)
print(f"{case.parameters / 1e9:.2f} G parameters, {case.flops_per_step / 1e12:.0f} TFLOP a step")

# %% [markdown]
# ## The same step on several clusters
#
# Names are instance types of clouds, and how many of them; `stablehlo-alpa clusters` lists all. A `ClusterSpec` describes one's own.


# %%
def plan_on(cluster):
    step = stablehlo_alpa.parallelize(
        case.step, cluster=cluster, donate_argnums=case.donate_argnums
    )
    try:
        return step.plan(*case.args)
    except stablehlo_alpa.InfeasibleError as error:
        print(f"{cluster}: {str(error).splitlines()[0]}")
        return None


clusters = ("p4d.24xlarge:1", "p4d.24xlarge:2", "p5.48xlarge:1", "p5.48xlarge:2", "tpu-v5p:2x2x1")
plans = {name: plan_on(name) for name in clusters}

# %%
print(f"{'cluster':<16}{'mesh':>8}{'step':>10}{'memory':>11}{'of peak':>9}")
for name, plan in plans.items():
    if plan is not None:
        peak = plan.cluster.num_devices * plan.cluster.device.rate("bf16")
        mesh = "x".join(map(str, plan.mesh_shape))
        used = case.flops_per_step / plan.step_time_s / peak
        memory = f"{plan.peak_bytes / 2**30:.1f} GiB"
        print(f"{name:<16}{mesh:>8}{plan.step_time_s:>8.3f} s{memory:>11}{used:>9.0%}")

# %%
figure, axes = plt.subplots(figsize=(7, 2.5), layout="constrained")
found = {name: plan.step_time_s for name, plan in plans.items() if plan is not None}
axes.barh(list(found), list(found.values()), color="#0072B2")
axes.invert_yaxis()
axes.set_xlabel("seconds of a step, predicted")

# %% [markdown]
# ## By hand on the same cluster
#
# What data parallelism, ZeRO and others would make of it, by the same prices. What does not fit says so.

# %%
plans["p4d.24xlarge:1"].baselines([stablehlo_alpa.DataParallel(), stablehlo_alpa.Zero3Parallel()])

# %% [markdown]
# ## A cluster of one's own
#
# Two hosts of four cards each, 80 GB, with a network of 100 Gbit/s between them in place of what the preset has: where does the time go?

# %%
own = stablehlo_alpa.ClusterSpec.preset("p5.48xlarge:2").part(2, 4)
slow = replace(own, network=replace(own.host_network, bandwidth=12.5e9))
for cluster in (own, slow):
    gigabytes = cluster.host_network.bandwidth / 1e9
    print(f"{gigabytes:.0f} GB/s between hosts: {plan_on(cluster).step_time_s:.3f} s")
plan_on(slow).table("communication")
