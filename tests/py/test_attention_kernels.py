"""cuDNN's attention on blocks of batch and heads.

No GPU is needed: what a device has to call is what jax itself writes for tensors of a block's size.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from call_rules import call_rules
from jax._src.cudnn import fused_attention_stablehlo as cudnn
from test_random_plans import choose, strategy_counts

import stablehlo_alpa as sa
from stablehlo_alpa import KernelRule, _core
from stablehlo_alpa.cluster import ClusterSpec
from stablehlo_alpa.errors import CompileError

BATCH, LENGTH, DEPTH = 8, 64, 32
# Two hosts of eight GPUs: none that could be run on here.
CLUSTER = ClusterSpec.preset("p4d.24xlarge:2")
MESH = (("x", 2), ("y", 4))
MASK = cudnn.MaskType
CUDNN = "__cudnn"
_CONFIG = "cudnn_fmha_backend_config"


@pytest.fixture(autouse=True)
def _any_cudnn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets jax write calls of a library that is not there."""
    monkeypatch.setattr(cudnn, "check_cudnn_version", lambda: 91100)
    monkeypatch.setattr(cudnn, "check_compute_capability", lambda capability: True)
    monkeypatch.setattr(cudnn, "is_cuda_compute_capability_equal", lambda capability: False)


def shape(*sizes: int, dtype: Any = jnp.bfloat16) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(sizes, dtype)


def tensors(layout: str, batch: int, heads: int, groups: int) -> tuple[jax.ShapeDtypeStruct, ...]:
    """Queries, keys and values."""

    def tensor(count: int) -> jax.ShapeDtypeStruct:
        inner = (LENGTH, count) if layout == "BTNH" else (count, LENGTH)
        return shape(batch, *inner, DEPTH)

    return tensor(heads), tensor(groups), tensor(groups)


def lowered(function: Callable[..., Any], *args: Any) -> str:
    traced = jax.jit(function).trace(*args).lower(lowering_platforms=("cuda",))
    operation: Any = traced.compiler_ir("stablehlo")
    return str(operation.operation.get_asm(print_generic_op_form=True))


def calls(text: str) -> list[tuple[str, Any, str]]:
    """Target, configuration and type of every call of cuDNN."""
    found = []
    for line in text.splitlines():
        target = re.search(r'call_target_name = "(__cudnn[^"]*)"', line)
        if target is None:
            continue
        config = re.search(r'backend_config = "((?:[^"\\]|\\.)*)"', line)
        assert config
        plain = config[1].replace("\\22", '"')
        found.append((target[1], json.loads(plain), line[line.rindex(" : (") :].split(" loc(")[0]))
    return found


@dataclass(frozen=True)
class Case:
    """A call of jax's attention.

    Attributes:
        options: of jax's function.
        bias: batch and heads of the bias that it adds, 1 where they have it in common.
        has_lengths: whether sequences end early.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    bias: tuple[int, int] | None = None
    has_lengths: bool = False
    heads: int = 8
    groups: int = 8

    @property
    def layout(self) -> str:
        """The order of dimensions, as jax names it."""
        return str(self.options.get("qkv_layout", "BTNH"))

    def arguments(self, batch: int, heads: int, groups: int) -> list[jax.ShapeDtypeStruct]:
        """Those of a block."""
        made = list(tensors(self.layout, batch, heads, groups))
        if self.bias:
            sizes = (min(self.bias[0], batch), min(self.bias[1], heads))
            made.append(shape(*sizes, LENGTH, LENGTH))
        if self.has_lengths:
            made += [shape(batch, dtype=jnp.int32)] * 2
        return made

    def forward(self, q: Any, k: Any, v: Any, *rest: Any) -> Any:
        """The attention of `arguments`."""
        inputs = list(rest)
        bias = inputs.pop(0) if self.bias else None
        lengths = inputs or [None, None]
        return cudnn.dot_product_attention(
            *(q, k, v, bias), q_seqlen=lengths[0], kv_seqlen=lengths[1], **self.options, scale=0.3
        )

    def gradients(self, *args: Any) -> Any:
        """Of the sum of the attention, by all of its tensors of floats."""
        count = len(args) - 2 * self.has_lengths

        def loss(*inner: Any) -> Any:
            return self.forward(*inner, *args[count:]).astype(jnp.float32).sum()

        return jax.grad(loss, argnums=tuple(range(count)))(*args[:count])


CASES = {
    "plain": Case(),
    "heads first": Case({"qkv_layout": "BNTH"}),
    "causal": Case({"mask_type": MASK.CAUSAL}),
    "window": Case({"mask_type": MASK.CAUSAL, "sliding_window_length": 8}),
    "grouped": Case(heads=8, groups=4),
    "one group": Case({"qkv_layout": "BNTH"}, heads=8, groups=1),
    "lengths": Case({"mask_type": MASK.PADDING}, has_lengths=True),
    "bias": Case(bias=(BATCH, 8)),
    "bias of a head": Case(bias=(1, 8)),
    "bias of an example": Case({"qkv_layout": "BNTH"}, bias=(BATCH, 1), heads=8, groups=2),
}


def block_of(case: Case, type_: str) -> tuple[int, int, int]:
    """Batch, heads and groups that a call was given, by the types of its operands."""
    sizes = [
        tuple(map(int, dims[:-1].split("x"))) for dims in re.findall(r"tensor<([\dx]+x)", type_)
    ]
    head = 2 if case.layout == "BTNH" else 1
    return sizes[0][0], sizes[0][head], sizes[1][head]


@pytest.mark.parametrize("name", CASES)
def test_blocks_of_any_plan_are_called_as_jax_calls_them(name: str) -> None:
    case = CASES[name]
    args = case.arguments(BATCH, case.heads, case.groups)
    text = lowered(case.gradients, *args)
    merged, _ = _core.run_pipeline(text, "builtin.module(alpa-prepare-pipeline)")
    expected: dict[tuple[int, int, int], list[Any]] = {}
    seen = set()
    for seed in range(12):
        solution = ",".join(map(str, choose(strategy_counts(merged, MESH), seed)))
        plan = f"alpa-plan-pipeline{{mesh=x:2,y:4 solution={solution}}},alpa-spmd-pipeline"
        local, _ = _core.run_pipeline(merged, f"builtin.module({plan})")
        found = calls(local)
        assert len(found) == 2
        for index, (target, config, type_) in enumerate(found):
            block = block_of(case, type_)
            if block not in expected:
                expected[block] = calls(lowered(case.gradients, *case.arguments(*block)))
            assert (target, config, type_) == expected[block][index]
            seen.add((index, block))
    # Heads are split by themselves too, whatever is left of the batch.
    assert any(index == 0 and batch > 1 and h < case.heads for index, (batch, h, _) in seen), seen


def test_a_plan_splits_the_batch() -> None:
    case = Case({"mask_type": MASK.CAUSAL})
    method = sa.DataParallel(mesh_shape=(16,))
    step = sa.parallelize(case.gradients, method=method, cluster=CLUSTER, batch_argnums=(0, 1, 2))
    found = calls(step.plan(*case.arguments(32, 8, 8)).module_text("local"))
    assert found == calls(lowered(case.gradients, *case.arguments(2, 8, 8)))


def test_micro_batches_are_called_as_jax_calls_them() -> None:
    case = Case()
    method = sa.ShardParallel(mesh_shape=(16,), num_micro_batches=2)

    def step(w: Any, q: Any, k: Any, v: Any) -> Any:
        def loss(w: Any) -> Any:
            return case.forward(q * w, k, v).astype(jnp.float32).mean()

        return w - sa.grad(loss)(w)

    parallel = sa.parallelize(step, method=method, cluster=CLUSTER, batch_argnums=(1, 2, 3))
    args = case.arguments(64, 8, 8)
    plan = parallel.plan(shape(1, 1, 1, DEPTH), *args)
    found = calls(plan.module_text("forward")) + calls(plan.module_text("backward"))
    assert len(found) == 2
    batch, heads = map(int, found[0][1][_CONFIG]["intermediate_tensor_shape"]["dimensions"][:2])
    assert batch * heads == 64 * 8 // 16 // 2
    assert found == calls(lowered(case.gradients, *case.arguments(batch, heads, heads)))


def test_work_is_that_of_the_products() -> None:
    case = Case({"mask_type": MASK.CAUSAL})
    found = call_rules(lowered(case.gradients, *case.arguments(BATCH, 8, 8)), CUDNN)
    # Half of the scores are left by the mask.
    product = 2 * BATCH * 8 * LENGTH * LENGTH * DEPTH / 2
    flops = [float(rule.rsplit("flops=", 1)[1]) for rule in found.values()]
    assert flops == [2 * product, 5 * product]


def _packed(q: Any, k: Any, v: Any) -> Any:
    ends: Any = {f"{side}_seqlen": jnp.full((BATCH, 2), 8, jnp.int32) for side in ("q", "kv")}
    starts: Any = {f"{side}_offsets": jnp.zeros((BATCH, 3), jnp.int32) for side in ("q", "kv")}
    return cudnn.dot_product_attention(q, k, v, mask_type=MASK.PADDING, **ends, **starts)


def _paged(q: Any, k: Any, v: Any) -> Any:
    lengths = jnp.full((BATCH,), 8, jnp.int32)
    pages = jnp.arange(BATCH, dtype=jnp.int32).reshape(BATCH, 1, 1, 1)
    return cudnn.paged_attention(q, k, v, lengths, lengths, pages, pages)


def _in_8_bits(q: Any, k: Any, v: Any) -> Any:
    scales: Any = {name: jnp.ones((1, 1, 1, 1), jnp.float32) for name in cudnn.fp8_params_keys}
    q, k, v = (x.astype(jnp.float8_e4m3fn) for x in (q, k, v))
    return cudnn.dot_product_attention(q, k, v, fp8_params=scales, use_fp8=True)[0]


WHOLE = {
    "dropout": Case({"dropout_rate": 0.1}).gradients,
    "packed sequences": _packed,
    "pages": _paged,
    "8 bits": _in_8_bits,
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_made_of_the_whole_stays_whole(name: str) -> None:
    found = call_rules(lowered(WHOLE[name], *tensors("BTNH", BATCH, 8, 8)), CUDNN)
    assert found
    for rule in found.values():
        kinds = rule[rule.index("{") + 1 : rule.index("}")].split(", ")
        assert all(kind.endswith((":replicated", "=1")) for kind in kinds), rule


def test_slopes_of_heads_belong_to_their_numbers() -> None:
    # jax has no program with them: XLA reads the name.
    text = lowered(Case().forward, *tensors("BTNH", BATCH, 8, 8)).replace("NO_MASK", "ALIBI")
    (rule,) = call_rules(text, CUDNN).values()
    assert "=8," not in rule


def test_rules_of_users_are_refused_on_kernels_that_name_their_sizes() -> None:
    rule = KernelRule.parse("__cudnn$fmhaSoftmaxDropout", "b t h d, b s h d, b s h d -> b h t d, w")
    step = sa.parallelize(
        Case({"dropout_rate": 0.1}).forward,
        method=sa.DataParallel(mesh_shape=(16,)),
        cluster=CLUSTER,
        rules=[rule],
    )
    message = r"no rule can split @__cudnn\$fmhaSoftmaxDropout: it is made for the sizes"
    with pytest.raises(CompileError, match=message):
        step.plan(*tensors("BTNH", BATCH, 8, 8))
