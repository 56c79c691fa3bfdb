"""Shardings by paths and by names of dimensions: what people write in t5x and flax, as jax.jit."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from jax.sharding import PartitionSpec as P

pytest.importorskip("stablehlo_alpa._core")

from comparing import check, specs
from models import gpt

import stablehlo_alpa as sa

MESH: dict[str, Any] = {"mesh_shape": (2, 4), "names": ("data", "model")}
PATTERNS = (
    (r"attention/(query|key|value)/kernel", P(None, "model")),
    (r"(out|down)/kernel", P("model")),
    (r"up/kernel$", P(None, "model")),
    (r"embedding", P("model")),
    (r".*", P()),
)


@pytest.mark.slow
def test_patterns_split_parameters_and_their_moments() -> None:
    case = gpt.make(dropout=0.0, layers=1)
    method = sa.ManualSharding(in_specs={"batch": P("data")}, patterns=PATTERNS, **MESH)
    plan = check(case.step, case.args, method)
    found = specs(plan)
    for state in ("state.params", "state.opt_state[1][0].mu"):
        layer = f"{state}['params']['layer_0']"
        assert found[f"{layer}['attention']['query']['kernel']"] == P(None, "model")
        assert found[f"{layer}['down']['kernel']"] == P("model")
        assert found[f"{layer}['up']['bias']"] == P()
    assert found["batch['tokens']"] == P("data")
    assert not any("pattern" in remark for remark in plan.remarks)


def linear(params: Any, x: Any) -> Any:
    return jnp.tanh(x @ params["up"]["kernel"]) @ params["down"]["kernel"] * params["scale"]


def parameters(width: int = 16) -> Any:
    rng = np.random.default_rng(0)
    return {
        "up": {"kernel": rng.normal(size=(8, width)).astype("f")},
        "down": {"kernel": rng.normal(size=(width, 8)).astype("f")},
        "scale": np.float32(0.5),
    }


def planned(**options: Any) -> Any:
    method = sa.ManualSharding(**MESH, **options)
    return check(linear, (parameters(), np.ones((8, 8), "f")), method, batch_argnums=1)


def test_the_first_pattern_counts_and_in_specs_come_before() -> None:
    plan = planned(patterns=(("up", P(None, "model")), ("kernel", P("model"))))
    assert specs(plan)["params['up']['kernel']"] == P(None, "model")
    assert specs(plan)["params['down']['kernel']"] == P("model")
    by_hand = planned(
        in_specs={"params['up']": P("data")}, patterns=(("kernel", P("model")), (".*", P()))
    )
    assert specs(by_hand)["params['up']['kernel']"] == P("data")


def test_what_no_pattern_names_is_searched_and_remarked() -> None:
    plan = planned(patterns=(("up", P(None, "model")),))
    (remark,) = [one for one in plan.remarks if "no pattern" in one]
    assert remark.startswith("no pattern is found in params/down/kernel: left to the search")
    assert not any("no pattern" in r for r in planned(patterns=(("kernel", None),)).remarks)


def test_a_pattern_that_does_not_fit_is_refused() -> None:
    with pytest.raises(sa.ShardingError, match=r"patterns has 'gate', which is found in .* no inp"):
        planned(patterns=(("gate", P("model")),))
    with pytest.raises(sa.ShardingError, match=r"uses axis 'tensor', the mesh has"):
        planned(patterns=(("up", P("tensor")),))
    with pytest.raises(sa.ShardingError, match=r"'\(up', which is no regular expression"):
        sa.ManualSharding(patterns=(("(up", P()),))
    with pytest.raises(sa.ShardingError, match=r"for 'up', must be a PartitionSpec, or None"):
        sa.ManualSharding(patterns=(("up", "model"),))  # type: ignore[arg-type]
    with pytest.raises(sa.ShardingError, match=r"must be pairs of a regular expression"):
        sa.ManualSharding(patterns=("up",))  # type: ignore[arg-type]
    method = sa.ManualSharding(patterns=(("up", P(None, "model")),), **MESH)
    with pytest.raises(sa.ShardingError, match=r"size 18 does not divide by 4"):
        sa.parallelize(linear, method=method, batch_argnums=1).plan(
            parameters(18), np.ones((8, 8), "f")
        )
    with pytest.raises(sa.ShardingError, match=r"params/up/kernel is taken for a batch: batch_arg"):
        sa.parallelize(linear, method=method).plan(parameters(), np.ones((8, 8), "f"))


# Names of dimensions.


class Named(nn.Module):
    """Two dense layers whose kernels name their dimensions, and one that does not."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, 12] to [batch, 6]."""
        init = nn.initializers.lecun_normal()
        up = nn.with_logical_partitioning(init, ("embed", "mlp"))
        down = nn.with_logical_partitioning(init, ("mlp", "embed"))
        y = nn.relu(nn.Dense(16, kernel_init=up, name="up")(x))
        return nn.Dense(6, name="head")(nn.Dense(12, kernel_init=down, name="down")(y))


def named_step() -> tuple[Any, Any]:
    model, optimizer = Named(), optax.adam(1e-2)
    x = np.random.default_rng(1).normal(size=(8, 12)).astype("f")
    params = model.init(jax.random.key(0), x)

    def step(state: Any, batch: Any) -> Any:
        def loss(params: Any) -> Any:
            return (model.apply(params, batch) ** 2).mean()

        value, grads = jax.value_and_grad(loss)(state[0])
        updates, moments = optimizer.update(grads, state[1], state[0])
        return (optax.apply_updates(state[0], updates), moments), value

    return step, ((params, optimizer.init(params)), x)


@pytest.mark.slow
def test_rules_split_named_dimensions_and_tell_unmatched_names() -> None:
    step, args = named_step()
    method = sa.ManualSharding(rules=(("embed", None), ("mlp", "model")), **MESH)
    plan = check(step, args, method)
    found = specs(plan)
    for state in ("state[0]", "state[1][0].mu"):
        assert found[f"{state}['params']['up']['kernel'].value"] == P(None, "model")
        assert found[f"{state}['params']['down']['kernel'].value"] == P("model")
    assert not any("rules=" in remark for remark in plan.remarks)
    partial = sa.ManualSharding(rules=(("mlp", "model"),), **MESH)
    remarks = sa.parallelize(step, method=partial).plan(*args).remarks
    assert any("dimensions named embed are whole" in remark for remark in remarks)


def test_rules_take_the_first_free_axis_and_leave_the_rest_to_patterns() -> None:
    step, args = named_step()
    rules = (("embed", "model"), ("mlp", "model"), ("mlp", "data"))
    method = sa.ManualSharding(
        rules=rules, patterns=(("head", P()), ("kernel", P("model"))), **MESH
    )
    found = specs(sa.parallelize(step, method=method).plan(*args))
    assert found["state[0]['params']['up']['kernel'].value"] == P("model", "data")
    assert found["state[0]['params']['down']['kernel'].value"] == P("data", "model")
    assert found["state[0]['params']['head']['kernel']"] == P()


def test_rules_read_nnx_variables() -> None:
    class Model(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            init = nnx.initializers.lecun_normal()
            with nnx.use_eager_sharding(False):
                up = nnx.with_partitioning(init, ("embed", "mlp"))
                self.up = nnx.Linear(12, 16, kernel_init=up, rngs=rngs)
                self.down = nnx.Linear(16, 12, rngs=rngs)

    graph, state = nnx.split(Model(nnx.Rngs(0)))

    def apply(state: Any, x: Any) -> Any:
        model = nnx.merge(graph, state)
        return model.down(jnp.tanh(model.up(x)))

    method = sa.ManualSharding(rules=(("embed", None), ("mlp", "model")), **MESH)
    plan = check(apply, (state, np.ones((8, 12), "f")), method, batch_argnums=1)
    (kernel,) = [s for name, s in specs(plan).items() if "up" in name and "kernel" in name]
    assert kernel == P(None, "model")


def test_rules_that_do_not_fit_are_refused() -> None:
    with pytest.raises(sa.ShardingError, match=r"rules has \('mlp',\), must be pairs"):
        sa.ManualSharding(rules=(("mlp",),))  # type: ignore[arg-type]
    method = sa.ManualSharding(rules=(("mlp", "model"),), **MESH)
    with pytest.raises(sa.ShardingError, match=r"no argument of linear has any: pass the sta"):
        sa.parallelize(linear, method=method).plan(parameters(), np.ones((8, 8), "f"))
