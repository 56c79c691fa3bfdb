# %% [markdown]
# # A first plan, and how to read it
#
# A flax model, its training step as one writes it for one device, and what `stablehlo_alpa` makes of it on eight. Everything here runs on the CPU of a
# laptop: the eight devices are virtual. On a machine that has several devices, leave the first cell out.

# %%
import os

flags = "--xla_force_host_platform_device_count=8"
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", flags)
# Threads of XLA's CPU client: four for each device.
os.environ["PJRT_NPROC"] = os.environ.get("PJRT_NPROC", "32")

# %%
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

import stablehlo_alpa

# %% [markdown]
# ## The step
#
# Nothing of it knows of devices. `stablehlo_alpa.value_and_grad` is `jax.value_and_grad`; where the step becomes a pipeline it also says where to cut.


# %%
class Classifier(nn.Module):
    @nn.compact
    def __call__(self, x):
        for number in range(4):
            y = nn.Dense(2048, name=f"up_{number}")(nn.LayerNorm(name=f"norm_{number}")(x))
            x = x + nn.Dense(512, name=f"down_{number}")(nn.gelu(y))
        return nn.Dense(1000, name="head")(x)


model, optimizer = Classifier(), optax.adam(1e-3)


def init(key):
    params = model.init(key, jnp.zeros((1, 512)))
    return params, optimizer.init(params)


def train_step(state, batch):
    def loss_fn(params):
        logits = model.apply(params, batch["x"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()

    loss, gradients = stablehlo_alpa.value_and_grad(loss_fn)(state[0])
    updates, opt_state = optimizer.update(gradients, state[1], state[0])
    return (optax.apply_updates(state[0], updates), opt_state), loss


# %% [markdown]
# ## The plan
#
# Shapes are enough: nothing is allocated and nothing runs. The model may be larger than this machine.

# %%
state = jax.eval_shape(init, jax.random.key(0))
batch = {
    "x": jax.ShapeDtypeStruct((256, 512), jnp.float32),
    "label": jax.ShapeDtypeStruct((256,), jnp.int32),
}
step = stablehlo_alpa.parallelize(train_step, donate_argnums=0)
plan = step.plan(state, batch)
plan

# %% [markdown]
# From top to bottom:
#
# - **Parameters and other inputs**: how each lies on the devices, as a `PartitionSpec`. Equal layers are one row. `mu` and `nu` are Adam's moments, which
#   mostly lie as the parameters do.
# - **Modules**: what each takes of the step, forward and backward together, and how much of that is communication.
# - **Communication**: what is sent, over which axis of the mesh, how often, and how many bytes.
# - The last lines: the step in seconds, predicted for these devices, whether the solver proved the plan to be the best, and the memory at the peak.
#
# Every table can be asked for by itself, with the numbers behind it:

# %%
plan.table("communication")

# %%
for tensor in plan.table("memory").records[:3]:
    print(f"{tensor.bytes / 2**20:6.2f} MiB  {tensor.name}")

# %% [markdown]
# ## Why is an operator split as it is?
#
# All strategies that it had, with what each would cost beside the neighbours that were chosen. In the notation of the paper `S0R` is a matrix split by rows
# over mesh axis 0, and `P0` a value of which every device holds one summand.

# %%
plan.explain("jit(train_step)/jvp(Classifier)/up_1/dot_general")

# %% [markdown]
# ## What would people write by hand?
#
# The same step by other methods, under the same prices.

# %%
plan.baselines([stablehlo_alpa.DataParallel(), stablehlo_alpa.Zero3Parallel()])

# %% [markdown]
# ## Running it
#
# The parallel step is called as the plain one is, and returns what that returns.

# %%
keys = jax.random.split(jax.random.key(1))
data = {
    "x": jax.random.normal(keys[0], (256, 512)),
    "label": jax.random.randint(keys[1], (256,), 0, 1000),
}
first = init(jax.random.key(0))
(_, expected) = jax.jit(train_step)(first, data)
(new_state, loss) = step(jax.tree.map(jnp.copy, first), data)
print(f"loss {float(loss):.4f} on eight devices, {float(expected):.4f} by jax.jit on one")
assert abs(float(loss) - float(expected)) < 1e-4

# %% [markdown]
# The new state came out split, and goes into the next call as it is:

# %%
new_state[0]["params"]["up_1"]["kernel"].sharding
