"""The zoo: published counts, and tiny models that equal plain ``jax.jit`` when they are split."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import stablehlo_alpa as sa
from stablehlo_alpa import zoo
from stablehlo_alpa.zoo.blocks.gating import gate
from stablehlo_alpa.zoo.blocks.state_space import states

TINY = [name for name in zoo.names() if name.endswith("-tiny")]


def tiny(name: str, **options: Any) -> zoo.ModelCase:
    """A tiny model in f32, whose batch does not divide into nothing."""
    if name == "wide-resnet-tiny":
        options.setdefault("norm", "group")
    return zoo.find(name).case(**{"batch": 8, "dtype": jnp.float32, **options})


def norm(leaf: Any) -> float:
    """Euclidean."""
    return float(np.linalg.norm(np.asarray(leaf, np.float64)))


def assert_close(actual: Any, expected: Any, bound: float, is_seen: list[bool]) -> None:
    """Relative errors, leaf by leaf, of those that are seen."""
    paths = jax.tree_util.tree_leaves_with_path(expected)
    for (path, e), a, seen in zip(paths, jax.tree.leaves(actual), is_seen, strict=True):
        error = norm(np.asarray(a, np.float64) - np.asarray(e, np.float64)) / max(norm(e), 1e-30)
        assert error <= bound or not seen, f"{jax.tree_util.keystr(path)}: {error:.2e}"


@functools.cache
def by_jit(name: str) -> tuple[zoo.ModelCase, Any, Any, Any, Any]:
    """A tiny model, its first state and batch, and the state and loss after a step."""
    case = tiny(name)
    state, batch = case.make()
    return case, state, batch, *jax.jit(case.step)(state, batch)


def assert_trains_as_jit(name: str, method: sa.Method) -> None:
    """One step from the same state: loss, gradients (first moments) and parameters.

    The softmax does not see the bias of the keys: its gradient is rounding noise, which the
    optimiser makes steps of.
    """
    case, state, batch, expected, loss = by_jit(name)
    found, found_loss = sa.parallelize(case.step, method=method)(state, batch)
    assert float(found_loss) == pytest.approx(float(loss), rel=1e-5)
    gradients = expected.opt_state[0].mu
    sizes = [norm(leaf) for leaf in jax.tree.leaves(gradients)]
    is_seen = [size > 1e-6 * max(sizes) for size in sizes]
    assert sum(is_seen) > 0.8 * len(is_seen)
    assert_close(found.opt_state[0].mu, gradients, 1e-4, is_seen)
    assert_close(found.params, expected.params, 1e-3, is_seen)


def quick_or_slow(
    names: Iterable[str], quick: Collection[str], matrix: Collection[str] = ()
) -> list[Any]:
    """The names as parameters: quick, one of a matrix, or slow."""
    marked: dict[str, tuple[Any, ...]] = dict.fromkeys(names, (pytest.mark.slow,))
    marked |= dict.fromkeys(quick, ())
    marked |= dict.fromkeys(matrix, (pytest.mark.matrix,))
    return [pytest.param(name, marks=marks) for name, marks in marked.items()]


# Models like these are on one mesh, and are pipelines, elsewhere.
ALIKE = [f"{name}-tiny" for name in ("gpt", "unet", "vit", "wide-resnet")]
OF_ONE_STAGE = [f"{name}-tiny" for name in ("deepseek", "mixtral", "llama-3", "t5", "moe")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", quick_or_slow(TINY, ("llama-3-tiny",), [*ALIKE, "deepseek-tiny", "mixtral-tiny"])
)
def test_one_mesh_equals_jit(name: str) -> None:
    assert_trains_as_jit(name, sa.ShardParallel(mesh_shape=(2, 4)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    quick_or_slow(TINY, ("mamba-tiny",), [*ALIKE, *OF_ONE_STAGE]),
)
def test_two_stages_equal_jit(name: str) -> None:
    method = sa.PipeshardParallel(
        layers=sa.AutoLayers(num_layers=2),
        stages=sa.UniformStages(2, mesh_shape=(2, 2)),
        num_micro_batches=2,
    )
    assert_trains_as_jit(name, method)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    quick_or_slow(
        [name for name in TINY if name != "unet-tiny"],
        ("gpt-tiny", "deepseek-tiny", "t5-tiny"),
        ("wide-resnet-tiny", "mixtral-tiny"),
    ),
)
def test_scanned_and_recomputed_are_the_same_model(name: str) -> None:
    plain, scanned = tiny(name), tiny(name, scanned=True, remat=True)
    assert scanned.parameters == plain.parameters
    assert scanned.active_parameters == plain.active_parameters
    assert scanned.flops_per_step == pytest.approx(plain.flops_per_step)
    text = str(jax.make_jaxpr(scanned.step)(*scanned.args))
    assert "scan[" in text
    assert "scan[" not in str(jax.make_jaxpr(plain.step)(*plain.args))


# Published with two or three digits; what is printed more coarsely is said here.
COARSE = {
    "gpt-15b": 15.37e9,  # 48 layers of 12 * 5120^2 and the table are more than 15e9
    "moe-1.3b": 1.347e9,  # half the layers have 16 experts of 16 * 768^2
    "wide-resnet-13b": 12.63e9,
    "t5-770m": 737.7e6,  # the published weights; the paper prints 770 million
    "t5-11b": 11.31e9,  # the published weights; the paper prints 11 billion
}


@pytest.mark.parametrize(
    "name",
    quick_or_slow(
        [name for name in zoo.names() if name not in TINY],
        ("gpt-15b", "moe-1.3b", "llama-3-70b", "mixtral-8x7b", "t5-770m", "mamba-130m"),
        [f"wide-resnet-{size}" for size in ("1b", "2b", "4b", "6.7b")] + ["moe-2.4b", "moe-10b"],
    ),
)
def test_parameters_are_those_published(name: str) -> None:
    entry = zoo.find(name)
    scanned = {} if entry.family == "unet" else {"scanned": True}
    case = entry.case(batch=8, **scanned)
    assert case.parameters == pytest.approx(COARSE.get(name, entry.parameters), rel=0.02)


def test_active_parameters_are_those_published() -> None:
    """Mixtral: 12.9 billion (Mistral AI, 2023); DeepSeek-V3: 37 billion (section 4.2)."""
    for name, published in (("mixtral-8x7b", 12.9e9), ("deepseek-v3", 37e9)):
        case = zoo.find(name).case(batch=1, scanned=True)
        assert case.active_parameters == pytest.approx(published, rel=0.02)


def gpt_flops(batch: int, length: int, hidden: int, layers: int, vocabulary: int) -> float:
    """Narayanan et al., SC 2021, section 5.1, without recomputation."""
    layer = 72 * batch * length * hidden**2 * (1 + length / (6 * hidden))
    return layers * layer + 6 * batch * length * hidden * vocabulary


def moe_flops(
    batch: int, length: int, hidden: int, layers: int, experts: int, vocabulary: int
) -> float:
    """The Alpa benchmarks' count for GShard, without recomputation; groups of 2048 tokens."""
    tokens, group = batch * length, 2048
    attention = 8 * tokens * hidden**2 + 4 * tokens * length * hidden
    dense = attention + 32 * tokens * hidden**2
    sent = 8 * tokens * hidden * group + 2 * tokens * hidden * experts
    mixture = attention + 64 * tokens * hidden**2 + sent
    return 3 * layers / 2 * (dense + mixture) + 6 * tokens * hidden * vocabulary


def llama_flops(batch: int, length: int, hidden: int, layers: int, parameters: float) -> float:
    """Six per trained number but the table's, and full attention (Chowdhery et al., appendix B)."""
    table = 128256 * hidden
    return batch * length * (6 * (parameters - table) + 12 * layers * hidden * length)


def t5_flops(batch: int, source: int, written: int, hidden: int, layers: int) -> float:
    """As above: the encoder meets what is read, the decoder what is written but for its keys."""
    inner, attention = 4 * hidden, 4 * hidden**2
    dense = 2 * inner * hidden
    encoder = source * (6 * (attention + dense) + 12 * hidden * source)
    own = written * (6 * (attention + dense) + 12 * hidden * written)
    cross = 6 * hidden**2 * 2 * (written + source) + 12 * hidden * written * source
    return batch * (layers * (encoder + own + cross) + 6 * written * hidden * 32128)


@dataclass(frozen=True)
class Counted:
    """A model and the FLOPs that others count for its step."""

    name: str
    batch: int
    flops: float


FLOPS = [
    Counted("gpt-350m", 32, gpt_flops(32, 1024, 1024, 24, 51200)),
    Counted("gpt-39b", 1024, gpt_flops(1024, 1024, 8192, 48, 51200)),
    Counted("gpt-175b", 8, gpt_flops(8, 2048, 12288, 96, 50257)),
    Counted("moe-380m", 8, moe_flops(8, 1024, 768, 8, 8, 32000)),
    Counted("moe-70b", 1024, moe_flops(1024, 1024, 2048, 32, 64, 32000)),
    Counted("llama-3-8b", 64, llama_flops(64, 8192, 4096, 32, 8.03e9)),
    Counted("llama-3-70b", 16, llama_flops(16, 8192, 8192, 80, 70.55e9)),
    Counted("llama-3-405b", 16, llama_flops(16, 8192, 16384, 126, 405.85e9)),
    # Zhai et al., table 2: 533.1 GFLOP an image, forward.
    Counted("vit-g", 8, 3 * 8 * 533.1e9),
    Counted("t5-220m", 8, t5_flops(8, 512, 128, 768, 12)),
]


@pytest.mark.parametrize(
    "name",
    quick_or_slow([one.name for one in FLOPS], ("gpt-39b", "moe-70b", "llama-3-405b", "t5-220m")),
)
def test_flops_are_those_that_others_count(name: str) -> None:
    counted = next(one for one in FLOPS if one.name == name)
    case = zoo.find(counted.name).case(batch=counted.batch, scanned=True)
    assert case.flops_per_step == pytest.approx(counted.flops, rel=0.02)


@pytest.mark.slow
def test_flops_of_mixtures_are_those_of_their_active_parameters() -> None:
    """Six per active number but the table's, full attention, and sending to the experts."""
    for name, hidden, layers, attention, sent in (
        ("mixtral-8x7b", 4096, 32, 4 * 32 * 128, 8 * 512 / 2 * 2),
        ("deepseek-v3", 7168, 61, 2 * 128 * (192 + 128), 8 * 256 / 2 * 8),
    ):
        case = zoo.find(name).case(batch=2, sequence=4096, scanned=True)
        vocabulary = {"mixtral-8x7b": 32000, "deepseek-v3": 129280}[name]
        mixtures = layers - (3 if name == "deepseek-v3" else 0)
        token = 6.0 * (case.active_parameters - vocabulary * hidden)
        token += 3 * layers * attention * 4096 + 3 * mixtures * sent * hidden
        assert case.flops_per_step == pytest.approx(2 * 4096 * token, rel=0.02)


@pytest.mark.slow
def test_xla_counts_the_same_products() -> None:
    """XLA's count of a forward pass has elementwise operators besides: a little more."""
    case = zoo.gpt("350M", batch=1, scanned=False, dtype=jnp.float32)
    state, batch = case.args
    lowered = jax.jit(case.forward).lower(state.params, state.statistics, batch)
    counted = (lowered.cost_analysis() or {})["flops"]
    assert 1.0 <= counted / (case.flops_per_step / 3) <= 1.03


def test_states_are_those_of_a_loop() -> None:
    keys = jax.random.split(jax.random.key(0), 2)
    decay, driven = (jax.random.uniform(key, (2, 13, 3, 2)) for key in keys)
    h, found = np.zeros((2, 3, 2)), []
    for t in range(13):
        h = np.asarray(decay[:, t]) * h + np.asarray(driven[:, t])
        found.append(h)
    np.testing.assert_allclose(states(decay, driven), np.stack(found, axis=1), rtol=1e-5)


@pytest.mark.slow
def test_tokens_go_to_their_best_experts_while_there_is_room() -> None:
    """By hand: each token to its two best, first choices first, at most `capacity` an expert."""
    scores = np.asarray(jax.nn.softmax(jax.random.normal(jax.random.key(1), (1, 12, 4))))
    combine, balance = gate(jnp.asarray(scores), 2, 3)
    expected, taken = np.zeros((12, 4, 3)), np.zeros(4, int)
    best = np.argsort(-scores[0], axis=-1)[:, :2]
    for choice in range(2):
        for token in range(12):
            expert = best[token, choice]
            if taken[expert] < 3:
                weight = scores[0, token, expert] / scores[0, token, best[token]].sum()
                expected[token, expert, taken[expert]] = weight
            taken[expert] += 1
    np.testing.assert_allclose(combine[0], expected, rtol=1e-5)
    assert 0.5 < float(balance) < 2


@pytest.mark.slow
def test_masters_are_f32_and_products_bf16() -> None:
    case = zoo.llama("tiny", batch=2)
    assert {leaf.dtype for leaf in jax.tree.leaves(case.args[0].params)} == {jnp.dtype("float32")}
    text = jax.jit(case.step).lower(*case.args).as_text()
    products = [line for line in text.splitlines() if "dot_general" in line]
    assert products
    assert all("bf16" in line for line in products)


@pytest.mark.matrix
def test_gradients_are_added_up_in_the_dtype_that_is_asked_for() -> None:
    """Of micro-batches too: what they are added up in is rounded as often as they are added."""
    case = tiny("moe-tiny", gradients=jnp.bfloat16)
    state, batch = case.make()
    expected, loss = jax.jit(case.step)(state, batch)
    method = sa.PipeshardParallel(
        layers=sa.AutoLayers(num_layers=2),
        stages=sa.UniformStages(2, mesh_shape=(2, 2)),
        num_micro_batches=2,
    )
    step = sa.parallelize(case.step, method=method)
    zeros = [one for one in step.plan(state, batch).runtime.programs if one.name.endswith("zeros")]
    sums = [value for program in zeros for value in program.outputs]
    assert {value.dtype for value in sums if value.shape} == {"bfloat16"}
    found, found_loss = step(state, batch)
    assert float(found_loss) == pytest.approx(float(loss), rel=1e-2)
    gradients = expected.opt_state[0].mu
    sizes = [norm(leaf) for leaf in jax.tree.leaves(gradients)]
    is_seen = [size > 1e-3 * max(sizes) for size in sizes]
    assert_close(found.opt_state[0].mu, gradients, 2e-2, is_seen)
    assert {leaf.dtype for leaf in jax.tree.leaves(found.params)} == {jnp.dtype("float32")}


@pytest.mark.matrix
def test_a_mixture_is_trained_by_adafactor() -> None:
    """Whose moments are sums of rows and columns, of matrices as small as these too."""
    case = tiny("moe-tiny").with_optimizer(optax.adafactor(1e-2, min_dim_size_to_factor=4))
    state, batch = case.make()
    expected, loss = jax.jit(case.step)(state, batch)
    found, found_loss = sa.parallelize(case.step, method=sa.ShardParallel(mesh_shape=(2, 4)))(
        state, batch
    )
    assert float(found_loss) == pytest.approx(float(loss), rel=1e-4)
    kept = [sum(leaf.nbytes for leaf in jax.tree.leaves(one)) for one in (state, state.params)]
    assert kept[0] < 1.2 * kept[1]
    # Of the signs of small gradients a step makes updates as large as of large ones.
    near = jax.tree.map(lambda a, b: jnp.mean(abs(a - b) > 1e-4), found.params, expected.params)
    assert max(map(float, jax.tree.leaves(near))) < 0.02
    with pytest.raises(sa.ModelError, match="no optimiser adam, did you mean 'adamw'"):
        tiny("moe-tiny", optimizer="adam")


def test_names_are_found_in_any_case_and_unknown_ones_name_the_nearest() -> None:
    assert zoo.find("Llama-3-70B").size == "70B"
    with pytest.raises(sa.ModelError, match="did you mean 'llama-3-70b'"):
        zoo.find("llama-70b")
    with pytest.raises(sa.ModelError, match="gpt has no size '38B', did you mean '39b'"):
        zoo.gpt("38B", batch=8)
    with pytest.raises(sa.ModelError, match="batch must be >= 1, got 0"):
        zoo.gpt("tiny", batch=0)
    with pytest.raises(sa.ModelError, match="no groups of 2048"):
        zoo.moe("380M", batch=3)
    with pytest.raises(sa.ModelError, match="no run of equal blocks"):
        zoo.unet("tiny", batch=1, scanned=True)
    with pytest.raises(sa.ModelError, match="multiple of patches of 14"):
        zoo.vit("g", batch=1, image=100)
    with pytest.raises(sa.ModelError, match="norm is 'layer'"):
        zoo.wide_resnet("tiny", batch=1, norm="layer")


@pytest.mark.slow
def test_flax_is_needed_only_when_a_model_is_made() -> None:
    code = """
import sys
import stablehlo_alpa
from stablehlo_alpa import zoo
assert zoo.find("gpt-39b").parameters == 39e9
assert "flax" not in sys.modules
sys.modules["flax"] = None
try:
    zoo.gpt("tiny", batch=1)
except stablehlo_alpa.ModelError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'stablehlo-alpa[zoo]'" in done.stdout
