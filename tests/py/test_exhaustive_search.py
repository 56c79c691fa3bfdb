"""The whole search against exhaustive search: every cut, submesh, number, schedule, recomputation.

The models and clusters are small and random, with and without a budget of memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("stablehlo_alpa._core")

import stablehlo_alpa as sa
from stablehlo_alpa.cluster import ClusterSpec, Link, preset_for
from stablehlo_alpa.errors import InfeasibleError
from stablehlo_alpa.inter_op.count_search import Outcome, climb
from stablehlo_alpa.planning.plan import Plan

# The search compares latencies, and what is compared here is simulated: sends are placed, and
# collectives run beside products. Of seeds 100 to 112 those that fit (10 of 13) had the fastest
# plan of all, and latencies up to 2.5 % below what is simulated where the gap is 0. The rest is
# margin (heuristic).
TOLERANCE = 0.1

# As what a run of layers may be on: hosts, devices of each.
Size = tuple[int, int]


@dataclass(frozen=True)
class Case:
    """A step and a cluster.

    Attributes:
        num_layers: of the model.
        batch: examples.
        cluster: four devices.
        step: with what it takes.
        weights, examples: of the step, by shape.
        share: of what a plan takes in memory that there is; None for all of a device.
    """

    num_layers: int
    batch: int
    cluster: ClusterSpec
    weights: list[jax.ShapeDtypeStruct]
    examples: jax.ShapeDtypeStruct
    share: float | None

    @classmethod
    def of(cls, seed: int, num_layers: int | None = None) -> Case:
        """A random one, with so many layers or with two or three."""
        rng = np.random.default_rng(seed)
        num_layers = num_layers or int(rng.integers(2, 4))
        widths = [int(2 ** rng.integers(6, 12)) for _ in range(num_layers + 1)]
        batch, rows = int(2 ** rng.integers(1, 4)), int(2 ** rng.integers(2, 8))
        hosts = int(rng.integers(1, 3))
        network = Link(
            alpha_s=float(10 ** rng.uniform(-6, -4)), bandwidth=float(10 ** rng.uniform(7, 10.5))
        )
        device = preset_for(str(rng.choice(["cpu", "v100-16gb", "h100-80gb"])))
        return cls(
            num_layers,
            batch,
            ClusterSpec(device, hosts, 4 // hosts, network=network),
            [jax.ShapeDtypeStruct(pair, jnp.float32) for pair in itertools.pairwise(widths)],
            jax.ShapeDtypeStruct((batch, rows, widths[0]), jnp.float32),
            float(rng.uniform(0.5, 0.95)) if rng.random() < 0.6 else None,
        )

    def plan(self, remat: bool | str = "search", **options: Any) -> Plan:
        """What is found under some options of a pipeline."""
        layers = sa.ManualLayers(remat=remat)  # type: ignore[arg-type]
        method = sa.PipeshardParallel(layers=layers, **options)
        planned = sa.parallelize(
            step, method=method, cluster=self.cluster, donate_argnums=0, store=False
        )
        return planned.plan(self.weights, self.examples)

    def cuts(self) -> Iterator[tuple[tuple[int, ...], tuple[Size, ...]]]:
        """Layers and submesh of each stage."""
        sizes: list[Size] = [(1, 1), (1, 2), (1, 4) if self.cluster.num_hosts == 1 else (2, 2)]
        for number in range(1, self.num_layers + 1):
            for ends in itertools.combinations(range(1, self.num_layers), number - 1):
                layers = tuple(np.diff((0, *ends, self.num_layers)).tolist())
                for chosen in itertools.product(sizes, repeat=number):
                    if sum(hosts * devices for hosts, devices in chosen) == 4:
                        yield layers, chosen

    def all_plans(self, budget: float | None) -> Iterator[Plan]:
        """Those that fit."""
        counts = [1 << power for power in range(self.batch.bit_length())]
        remats = (False, True) if budget else (False,)
        for (layers, sizes), count, remat in itertools.product(self.cuts(), counts, remats):
            schedules = ("1f1b", "zero_bubble", "gpipe") if len(layers) > 1 else ("1f1b",)
            for schedule in schedules:
                try:
                    yield self.plan(
                        remat,
                        stages=sa.ManualStages(layers, sizes),
                        num_micro_batches=count,
                        schedule=schedule,
                        memory_budget=budget,
                    )
                except InfeasibleError:
                    continue


def loss(weights: Any, examples: jax.Array) -> jax.Array:
    for number, weight in enumerate(weights):
        if number:
            sa.layer_boundary()
        examples = jnp.tanh(examples @ weight)
    return jnp.mean(examples**2)


def step(weights: Any, examples: jax.Array) -> Any:
    value, gradients = sa.value_and_grad(loss)(weights, examples)
    return [one - 0.1 * gradient for one, gradient in zip(weights, gradients, strict=True)], value


def check(case: Case) -> None:
    budget = case.share and case.share * case.plan().peak_bytes
    best_s = min((one.step_time_s for one in case.all_plans(budget)), default=None)
    try:
        found = case.plan(memory_budget=budget)
    except InfeasibleError:
        assert best_s is None, f"{best_s:.4g} s fits"
        return
    assert budget is None or found.peak_bytes <= budget
    if best_s is None:
        return
    gap = found.gap or 0.0
    assert found.step_time_s * (1 - gap) <= best_s * (1 + TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_other_plan_is_faster(seed: int) -> None:
    check(Case.of(seed, num_layers=2))


@pytest.mark.matrix
@pytest.mark.parametrize("seed", range(100, 160))
def test_no_other_plan_is_faster_by_far(seed: int) -> None:
    check(Case.of(seed))


def fixed(
    device: str, network: Link, widths: list[int], batch: int, share: float | None = None
) -> Case:
    """A case of two hosts with two devices each."""
    return Case(
        len(widths) - 1,
        batch,
        ClusterSpec(preset_for(device), 2, 2, network=network),
        [jax.ShapeDtypeStruct(pair, jnp.float32) for pair in itertools.pairwise(widths)],
        jax.ShapeDtypeStruct((batch, widths[0]), jnp.float32),
        share,
    )


def test_one_micro_batch_may_fit_where_more_do_not() -> None:
    """It has no sums of gradients beside the gradients."""
    case = fixed("cpu", Link(alpha_s=6.6e-6, bandwidth=1.5e8), [512, 512, 1024, 4096], 32)
    budget = 0.945 * case.plan(False).peak_bytes
    for count in (2, 4):
        with pytest.raises(InfeasibleError, match="lacks least"):
            case.plan(False, num_micro_batches=count, memory_budget=budget)
    found = case.plan(False, memory_budget=budget)
    assert found.runtime.num_micro_batches == 1
    assert found.peak_bytes <= budget


def test_what_lacks_least_is_said() -> None:
    case = fixed("cpu", Link(alpha_s=6.6e-6, bandwidth=1.5e8), [512, 512, 1024, 4096], 8)
    budget = 0.5 * case.plan(False).peak_bytes
    with pytest.raises(InfeasibleError) as one:
        case.plan(False, num_micro_batches=1, memory_budget=budget)
    with pytest.raises(InfeasibleError) as all_:
        case.plan(False, memory_budget=budget)
    assert str(all_.value) == str(one.value)


# One whose programs take more than its tensors, so that others are chosen with less memory.
TIGHT = fixed("h100-80gb", Link(alpha_s=1.1e-6, bandwidth=1.56e8), [256, 2048, 4096], 1024)
TIGHT_BYTES = 65848480


def test_latency_is_of_the_plan_that_fits() -> None:
    found = TIGHT.plan(False, num_micro_batches=1, schedule="1f1b", memory_budget=TIGHT_BYTES)
    assert found.bracket is not None
    (stage,) = found.stages
    assert found.bracket.latency_s == pytest.approx(stage.solution.objective_s)
    # It was another one that the search for stages had found.
    assert found.bracket.bound_s < found.bracket.latency_s
    assert found.gap == 1 - found.bracket.bound_s / found.bracket.latency_s


def test_what_fits_is_looked_for_on_all_meshes() -> None:
    case = fixed("h100-80gb", Link(alpha_s=3.9e-6, bandwidth=5.16e9), [256, 1024, 1024], 64)
    options: dict[str, Any] = {"num_micro_batches": 1, "memory_budget": 11870098}
    given = case.plan(False, stages=sa.ManualStages((2,), ((2, 2),)), **options)
    found = case.plan(False, **options)
    assert found.step_time_s <= given.step_time_s * (1 + 1e-9)


def climbed(counts: list[int], start: int, outcomes: dict[int, Outcome], **options: bool) -> Any:
    tried = []

    def attempt(count: int, likely: float, most: int) -> Outcome:
        assert 0 <= likely <= most < len(counts)
        tried.append(count)
        return outcomes[count]

    climb(counts, start, attempt, **options)
    return tried


COUNTS = [1, 2, 4, 8, 16]
BEST, CLOSE, SLOWER, REFUSED = (
    Outcome.BEST,
    Outcome.CLOSE,
    Outcome.SLOWER,
    Outcome.REFUSED,
)


@pytest.mark.parametrize(
    ("outcomes", "tried"),
    [
        # Up as long as it gains, and then not down.
        ([SLOWER, SLOWER, BEST, BEST, SLOWER], [4, 8, 16]),
        ([SLOWER, BEST, BEST, SLOWER, BEST], [4, 8, 2, 1]),
        # One micro-batch has no sums of gradients beside it.
        ([BEST, REFUSED, REFUSED, REFUSED, REFUSED], [4, 8, 16, 2, 1]),
        ([BEST, SLOWER, REFUSED, REFUSED, REFUSED], [4, 8, 16, 2]),
        # What gains little may lead to what gains more.
        ([BEST, CLOSE, BEST, CLOSE, SLOWER], [4, 8, 16, 2, 1]),
        ([BEST, BEST, SLOWER, BEST, BEST], [4]),
    ],
)
def test_numbers_are_walked_as_long_as_they_gain(outcomes: list[Outcome], tried: list[int]) -> None:
    own = dict(zip(COUNTS, outcomes, strict=True))
    assert climbed(COUNTS, 4, own) == tried
    assert climbed(COUNTS, 4, own, tries_all=True) == [4, 8, 16, 2, 1]
