"""Megatron's three dimensions: pairs found in any model, its collectives, numbers of jax.jit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P
from often import seldom

pytest.importorskip("stablehlo_alpa._core")

from comparing import assert_equals_jit, check, collectives, specs
from models import encoder_decoder, gpt, llama, mlp, moe, vit

import stablehlo_alpa as sa

COLUMN, ROW = P(None, "tensor"), P("tensor")


def planned(case: Any, **options: Any) -> Any:
    return sa.parallelize(case.step, method=sa.MegatronParallel(**options)).plan(*case.args)


def wide_gpt(layers: int, **options: Any) -> Any:
    """Large enough that what is sent is what Megatron sends, and not a smaller table."""
    sizes: dict[str, Any] = {"batch": 8, "length": 64, "hidden": 128, "vocabulary": 4096}
    return gpt.make(layers=layers, dropout=0.0, optimizer="sgd", **sizes, **options)


# Which matrices are split.


def pairs(case: Any, tensor: int = 2) -> dict[str, str]:
    """How each parameter is split: "column", "row" or "whole"."""
    plan = planned(case, tensor=tensor)
    found = {}
    for name, spec in specs(plan).items():
        if name.startswith("state.params") and "bias" not in name and len(spec):
            found[name] = "row" if spec[0] == "tensor" else "column"
    return found


def splits(found: dict[str, str], part: str) -> set[str]:
    return {how for name, how in found.items() if f"['{part}']" in name}


@pytest.mark.slow
@pytest.mark.parametrize("is_scanned", [False, True])
def test_pairs_of_gpt(is_scanned: bool) -> None:
    plan = planned(gpt.make(dropout=0.0, is_scanned=is_scanned), tensor=4)
    stack = [None] if is_scanned else []
    for name, spec in specs(plan).items():
        if "kernel" in name:
            wanted = (*stack, "tensor") if "out" in name or "down" in name else None
            wanted = wanted or (*stack, None, "tensor")
            assert tuple(spec) == tuple(wanted), name
        elif "embedding" in name:
            assert spec == ROW
        elif "'up'" in name:
            assert tuple(spec) == (*stack, "tensor")
        elif "state" in name:
            assert spec == P(), name
        else:
            assert spec == (P("data") if "batch" in name else P()), name
    assert not plan.remarks


@pytest.mark.parametrize("module", [llama, encoder_decoder, vit])
def test_pairs_of_other_transformers(module: Any) -> None:
    found = pairs(module.make())
    for part in ("query", "key", "value", "up"):
        assert splits(found, part) == {"column"}, part
    for part in ("out", "down"):
        assert splits(found, part) == {"row"}, part
    if module is not vit:
        assert splits(found, "embed") == {"row"}
    if module is llama:
        assert splits(found, "head") == {"column"}


@pytest.mark.slow
def test_pairs_of_experts_and_plain_layers() -> None:
    found = pairs(moe.make())
    assert found["state.params['params']['embed']['embedding']"] == "row"
    plan = planned(moe.make(), tensor=2)
    assert specs(plan)["state.params['params']['experts_0']['up']"] == P(None, None, "tensor")
    assert specs(plan)["state.params['params']['experts_0']['down']"] == P(None, "tensor")
    assert any("gate" in one and "in no column-row pair" in one for one in plan.remarks)
    # A chain: the first two are a pair, the last is left.
    chain = pairs(mlp.make())
    assert chain["state.params['params']['Dense_0']['kernel']"] == "column"
    assert chain["state.params['params']['Dense_1']['kernel']"] == "row"
    assert "state.params['params']['Dense_2']['kernel']" not in chain


def fused_attention(by_heads: bool = False, parts: int = 3) -> tuple[Any, Any]:
    """A step of one layer whose queries, keys and values come from one matrix; its arguments.

    The first three of so many parts are cut out of it, or out of what each head has of it.

    The vocabulary has as many rows as there are features, which must not be taken for each other.
    """
    rng = np.random.default_rng(0)
    shapes = {"table": (32, 32), "c_attn": (32, 32 * parts), "c_proj": (32, 32)}
    params = {name: rng.normal(size=shape).astype("f") / 4 for name, shape in shapes.items()}
    params |= {"up": rng.normal(size=(32, 64)).astype("f") / 4}
    params |= {"down": rng.normal(size=(64, 32)).astype("f") / 4}

    def loss(params: Any, tokens: Any) -> Any:
        x = params["table"][tokens]
        cut = jnp.split(x @ params["c_attn"], parts, -1)
        query, key, value = (part.reshape(*tokens.shape, 4, 8) for part in cut[:3])
        if by_heads:
            heads = (x @ params["c_attn"]).reshape(*tokens.shape, 4, 24)
            query, key, value = jnp.split(heads, 3, -1)
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", query, key))
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, value).reshape(x.shape)
        x = x + mixed @ params["c_proj"]
        x = x + jax.nn.gelu(x @ params["up"]) @ params["down"]
        logits = jax.nn.log_softmax(x @ params["table"].T)
        return -jnp.take_along_axis(logits, tokens[..., None], -1).mean()

    def step(params: Any, tokens: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, tokens)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    return step, (params, rng.integers(0, 32, (8, 16)))


@pytest.mark.slow
def test_thirds_of_a_fused_projection_are_sent_to_where_the_heads_are() -> None:
    step, args = fused_attention()
    plan = check(step, args, sa.MegatronParallel(tensor=4))
    found = specs(plan)
    assert found["params['c_attn']"] == COLUMN
    assert found["params['c_proj']"] == ROW
    assert not any("in no column-row pair" in one for one in plan.remarks)
    sent = {one.kind: one.bytes for one in plan.communication() if one.axes == ("tensor",)}
    # Blocks go from device to device, and no activations are gathered.
    assert 0 < sent["collective_permute"] < sent["all_reduce"]
    assert sent["all_gather"] <= 4 * 32 * 32


@pytest.mark.slow
def test_a_fused_projection_of_many_parts_is_left_whole_or_split_by_patterns() -> None:
    step, args = fused_attention(parts=6)
    plan = check(step, args, sa.MegatronParallel(tensor=4))
    found = specs(plan)
    assert found["params['up']"] == COLUMN
    assert found["params['down']"] == found["params['table']"] == ROW
    assert found["params['c_attn']"] == found["params['c_proj']"] == P()
    assert any("params['c_attn'], params['c_proj']: in no" in one for one in plan.remarks)
    assert any("over the columns of params['c_attn'] as they are" in one for one in plan.remarks)
    patterns = (("c_attn|up", "column"), ("c_proj|down", "row"), ("table", "vocabulary"))
    found = specs(check(step, args, sa.MegatronParallel(tensor=4, patterns=patterns)))
    assert found["params['c_attn']"] == COLUMN
    assert found["params['c_proj']"] == ROW


def test_a_fused_projection_in_heads_is_in_a_pair() -> None:
    step, args = fused_attention(by_heads=True)
    plan = check(step, args, sa.MegatronParallel(tensor=4))
    found = specs(plan)
    assert found["params['c_attn']"] == COLUMN
    assert found["params['c_proj']"] == ROW
    assert not any("in no column-row pair" in one for one in plan.remarks)


def test_patterns_say_what_is_split() -> None:
    case = gpt.make(dropout=0.0, layers=1)
    method = {"tensor": 4, "patterns": (("up/kernel", "column"), ("down/kernel", "row"))}
    found = specs(planned(case, **method))
    layer = "state.params['params']['layer_0']"
    assert found[f"{layer}['up']['kernel']"] == COLUMN
    assert found[f"{layer}['up']['bias']"] == ROW
    assert found[f"{layer}['down']['kernel']"] == ROW
    assert found[f"{layer}['attention']['query']['kernel']"] == P()


# What is sent.


def per_layer(axis: str, make: Any, **options: Any) -> dict[str, float]:
    """Collectives along an axis that a layer adds, by the plans of three layers and of one."""
    counts = [collectives(planned(make(n), **options), axis, 2**14) for n in (1, 3)]
    kinds = counts[0] | counts[1]
    return {k: (counts[1][k] - counts[0][k]) / 2 for k in kinds if counts[0][k] != counts[1][k]}


@pytest.mark.slow
def test_a_layer_has_two_all_reduces_forward_and_two_backward() -> None:
    options = {"tensor": 4, "data": 2, "device": "h100-80gb"}
    assert per_layer("tensor", wide_gpt, **options) == {"all_reduce": 4}

    def forward_only(layers: int) -> Any:
        case = wide_gpt(layers)

        def evaluate(state: Any, batch: Any, rng: Any) -> Any:
            return case.step(state, batch, rng)[1]["loss"]

        return type(case)(**{**case.__dict__, "step": evaluate})

    assert per_layer("tensor", forward_only, **options) == {"all_reduce": 2}
    (one,) = [
        row
        for row in planned(wide_gpt(3), **options).communication()
        if row.axes == ("tensor",) and row.kind == "all_reduce"
    ]
    # Of each, the activations of one device: f32[4, 64, 128]; and softmax over the vocabulary. One
    # more or two are of the embedding, whose table may be gathered for the other.
    activations = 4 * 64 * 128 * 4
    assert 13 * activations <= one.bytes <= 15 * activations


@pytest.mark.slow
def test_along_the_sequence_they_are_reduce_scatters_and_all_gathers() -> None:
    options = {"tensor": 4, "data": 2, "sequence_parallel": True, "device": "h100-80gb"}
    added = per_layer("tensor", wide_gpt, **options)
    assert set(added) == {"reduce_scatter", "all_gather"}
    assert added["reduce_scatter"] == 4
    assert 4 <= added["all_gather"] <= 8


def test_the_sequence_is_split_without_an_axis_of_the_batch() -> None:
    """With data=1 no strategy splits the batch, and operators work on it all the same."""
    options = {"tensor": 8, "sequence_parallel": True, "device": "h100-80gb"}
    added = per_layer("tensor", lambda n: wide_gpt(n, heads=8), **options)
    assert added["reduce_scatter"] == 4
    assert "all_reduce" not in added


def test_the_sequence_of_one_example_is_split_between_stages() -> None:
    """A micro-batch of one has no dimension that counts examples."""
    case = gpt.make(layers=2, dropout=0.0, optimizer="sgd")
    options = {"pipeline": 2, "tensor": 4, "micro_batch": 1, "sequence_parallel": True}
    plan = planned(case, device="h100-80gb", **options)
    sent = {
        value.axes
        for stage in plan.stages
        for phase in stage.phases
        for slot, value in zip(phase.inputs, phase.program.inputs, strict=True)
        if slot.kind == "transfer" and len(value.shape) == 3
    }
    assert sent == {((), ("tensor",), ())}


def tied(params: Any, tokens: Any) -> Any:
    """A step whose table is looked up and multiplied with, in bf16; layers are recomputed."""

    def loss(params: Any) -> Any:
        half = jax.tree.map(lambda p: p.astype(jnp.bfloat16), params)
        x = half["table"][tokens]
        for up, down in zip(half["up"], half["down"], strict=True):
            x = x + jax.nn.gelu(x @ up) @ down
        logits = jax.nn.log_softmax((x @ half["table"].T).astype(jnp.float32))
        return -jnp.take_along_axis(logits, tokens[..., None], -1).mean()

    value, slopes = sa.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, slopes), value


def test_the_gradient_of_a_table_is_split_as_the_table() -> None:
    sizes = {"table": (16384, 64), "up": (64, 256), "down": (256, 64)}
    shapes = {k: jax.ShapeDtypeStruct(v, "float32") for k, v in sizes.items()}
    params = {k: v if k == "table" else [v] * 2 for k, v in shapes.items()}
    method = sa.MegatronParallel(tensor=8, recompute="full")
    step = sa.parallelize(tied, method=method, donate_argnums=0, cluster="dgx-a100:1")
    plan = step.plan(params, jax.ShapeDtypeStruct((8, 64), "int32"))
    assert "all_gather" not in collectives(plan, "tensor", 2**12)


def test_zero_1_splits_moments_and_scatters_gradients() -> None:
    case = gpt.make(dropout=0.0, layers=1)
    plain = planned(case, tensor=2, device="h100-80gb")
    plan = planned(case, tensor=2, zero_1=True, device="h100-80gb")

    def size(plan: Any, part: str) -> float:
        sizes = dict(plan.mesh.axes)
        inputs = plan.stages[0].phases[0].program.inputs
        return sum(v.local_bytes(sizes) for v in inputs if part in v.name)

    assert size(plan, "state.params") == size(plain, "state.params")
    assert size(plan, "opt_state") < 0.3 * size(plain, "opt_state")
    assert collectives(plain, "data").keys() == {"all_reduce"}
    sent = collectives(plan, "data")
    assert sent["reduce_scatter"] >= 5
    assert sent["all_gather"] >= 5


@pytest.mark.slow
def test_the_search_is_no_slower_on_the_same_mesh() -> None:
    """What a person would choose is a point of the space that is searched."""
    case = gpt.make(dropout=0.0, layers=1)
    searched = sa.ShardParallel(mesh_shape=(2, 4), device="h100-80gb")
    best = sa.parallelize(case.step, method=searched).plan(*case.args)
    for options in ({}, {"sequence_parallel": True}, {"zero_1": True}):
        plan = planned(case, tensor=4, device="h100-80gb", **options)
        assert best.step_time_s <= plan.step_time_s * (1 + 1e-9)


# Numbers.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "options"),
    [
        (lambda: gpt.make(layers=1), {"tensor": 4, "sequence_parallel": True, "zero_1": True}),
        # Three heads on two devices, a batch of 6 on four, a vocabulary of 61.
        (lambda: gpt.make(batch=6, heads=3, hidden=48, vocabulary=61, layers=1), {"tensor": 2}),
        # Two heads of keys and values on four devices.
        (lambda: llama.make(layers=1), {"tensor": 4, "sequence_parallel": True}),
        seldom(lambda: vit.make(), {"tensor": 2, "zero_1": True}),
        (lambda: moe.make(layers=1), {"tensor": 2, "micro_batch": 1}),
        seldom(lambda: gpt.make(layers=1, heads=8), {"tensor": 8, "sequence_parallel": True}),
    ],
    ids=["gpt", "gpt_odd", "llama", "vit", "moe", "gpt_sequence"],
)
def test_results_equal_jit(make: Any, options: Any) -> None:
    case = make()
    check(case.step, case.args, sa.MegatronParallel(**options))


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        seldom(
            {"pipeline": 2, "tensor": 2, "data": 2, "micro_batch": 1, "sequence_parallel": True}
        ),
        {"pipeline": 2, "interleave": 2, "tensor": 2, "micro_batch": 1, "zero_1": True},
        {"pipeline": 2, "tensor": 4, "micro_batch": 1, "sequence_parallel": True},
        seldom({"tensor": 4, "recompute": "full"}),
        seldom({"pipeline": 2, "tensor": 2, "micro_batch": 2, "recompute": "selective"}),
    ],
    ids=["3d", "interleaved", "one_example", "full", "selective"],
)
def test_pipelines_and_recomputation_equal_jit(options: Any) -> None:
    # Stages of a scan have parts of its stacks, each split as the stack is to be.
    is_scanned = options.get("pipeline", 1) * options["tensor"] == 8
    layers = 4 if "interleave" in options else 2
    case = gpt.make(layers=layers, optimizer="sgd", is_scanned=is_scanned)
    plan = check(case.step, case.args, sa.MegatronParallel(**options))
    assert len(plan.stages) == options.get("pipeline", 1) * options.get("interleave", 1)
    assert {stage.mesh.axis_names for stage in plan.stages} == {("data", "tensor")}
    if "micro_batch" not in options:
        assert plan.runtime.num_micro_batches == 1
    else:
        data = 8 // (options["pipeline"] * options["tensor"])
        assert plan.runtime.num_micro_batches == 8 // (data * options["micro_batch"])
    for stage in plan.stages:
        # Later stages have no batch of their own, and are split over data all the same.
        phase = stage.phases[0]
        for slot, value in zip(phase.inputs, phase.program.inputs, strict=True):
            if slot.kind == "transfer" and len(value.shape) == 3:
                count = dict(stage.mesh.axes)["data"]
                assert value.axes[0] == (("data",) if count > 1 else ())


@pytest.mark.slow
def test_selective_recomputation_keeps_all_but_attention() -> None:
    case = gpt.make(layers=1, dropout=0.0, optimizer="sgd", length=64)

    def products(recompute: str) -> int:
        plan = planned(case, tensor=2, recompute=recompute)
        return sum(stage.text("merged").count("stablehlo.dot_general") for stage in plan.stages)

    none, selective, full = (products(one) for one in ("none", "selective", "full"))
    # The scores alone are computed again, or all six products of the layer.
    assert none < selective < full


# Refusals.


def test_what_does_not_fit_is_refused() -> None:
    case = gpt.make(dropout=0.0, layers=1)
    with pytest.raises(sa.MeshError, match=r"tensor=3, pipeline=1 are for a multiple of 3 devices"):
        planned(case, tensor=3)
    with pytest.raises(sa.MeshError, match=r"tensor=2, data=2, pipeline=1 are for 4 devices, 8"):
        planned(case, tensor=2, data=2)
    with pytest.raises(ValueError, match=r"a batch of 8 does not divide into .* micro_batch=3"):
        planned(case, tensor=4, micro_batch=3)
    with pytest.raises(sa.ShardingError, match=r"'gate', which is found in the path of no input"):
        planned(case, tensor=4, patterns=(("gate", "column"),))
    with pytest.raises(sa.ShardingError, match=r"one of column, row, vocabulary"):
        sa.MegatronParallel(patterns=(("up", "diagonal"),))
    with pytest.raises(ValueError, match=r"interleave=2 is of a pipeline, pipeline=1 is none"):
        sa.MegatronParallel(interleave=2)
    with pytest.raises(ValueError, match=r"recompute is 'some', must be one of none, selective"):
        sa.MegatronParallel(recompute="some")
    with pytest.raises(sa.MeshError, match=r"mesh_shape=\(2, 4\) follows from tensor"):
        sa.MegatronParallel(mesh_shape=(2, 4))
    with pytest.raises(ValueError, match=r"micro_batch=1 and num_micro_batches=2 say one thing"):
        sa.MegatronParallel(micro_batch=1, num_micro_batches=2)


def test_a_function_without_pairs_is_refused() -> None:
    def step(params: Any, x: Any) -> Any:
        return jnp.tanh(x @ params)

    method = sa.MegatronParallel(tensor=2)
    with pytest.raises(sa.ShardingError, match=r"has no two matrices of which the second takes"):
        sa.parallelize(step, method=method).plan(np.ones((8, 8), "f"), np.ones((8, 8), "f"))


def test_recomputation_needs_marked_gradients() -> None:
    def step(params: Any, x: Any) -> Any:
        def loss(params: Any) -> Any:
            return (jnp.tanh(x @ params["up"]) @ params["down"]).var()

        value, gradients = jax.value_and_grad(loss)(params)
        return jax.tree.map(jnp.subtract, params, gradients), value

    params = {"up": np.ones((8, 16), "f"), "down": np.ones((16, 8), "f")}
    method = sa.MegatronParallel(tensor=2, recompute="full")
    with pytest.raises(sa.TraceError, match=r"by stablehlo_alpa.grad or value_and_grad, or leave"):
        sa.parallelize(step, method=method).plan(params, np.ones((8, 8), "f"))
    one = sa.parallelize(step, method=sa.MegatronParallel(tensor=2))
    assert_equals_jit(
        one(params, np.ones((8, 8), "f")), jax.jit(step)(params, np.ones((8, 8), "f"))
    )
