"""A step cut into single layers, against the stages that are cut out of it."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from often import seldom

import stablehlo_alpa
from stablehlo_alpa import AutoLayers, ManualStages, PipeshardParallel
from stablehlo_alpa.cluster import ClusterSpec, preset_for
from stablehlo_alpa.cost import link_seconds, network_transfer_seconds, price_once
from stablehlo_alpa.errors import SlowerError
from stablehlo_alpa.frontend import trace
from stablehlo_alpa.inter_op.layer_parts import LayerParts
from stablehlo_alpa.inter_op.slicing import LayeredStep, mark_layers
from stablehlo_alpa.inter_op.stage_bounds import StageBounds
from stablehlo_alpa.inter_op.stage_pricing import Effort, StagePricing
from stablehlo_alpa.inter_op.submeshes import Submesh, submeshes
from stablehlo_alpa.inter_op.threads import in_threads
from stablehlo_alpa.intra_op import SolveOptions, solve
from stablehlo_alpa.layers import layer_context

COUNT, LAYERS = 4, 6
CLUSTER = ClusterSpec(preset_for("v100-16gb"), 2, 2)
WIDTH = 512


def loss(weights: Any, batch: Any) -> jax.Array:
    x = batch
    for up, down in weights:
        x = x + jax.numpy.tanh(x @ up) @ down
    return jax.numpy.mean(x**2)


def step(weights: Any, moments: Any, batch: Any) -> Any:
    gradients = stablehlo_alpa.grad(loss)(weights, batch)
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, gradients)
    return jax.tree.map(lambda w, m: w - 0.1 * m, weights, moments), moments


def shapes() -> tuple[Any, Any, Any]:
    up = jax.ShapeDtypeStruct((WIDTH, 4 * WIDTH), np.float32)
    down = jax.ShapeDtypeStruct((4 * WIDTH, WIDTH), np.float32)
    weights = [(up, down)] * LAYERS
    return weights, weights, jax.ShapeDtypeStruct((256, WIDTH), np.float32)


@pytest.fixture(scope="module")
def layered() -> LayeredStep:
    with layer_context(AutoLayers(num_layers=LAYERS)):
        program = trace(step, shapes(), {})
    return mark_layers(program, COUNT)


@pytest.fixture(scope="module")
def pricing(layered: LayeredStep) -> StagePricing:
    return StagePricing(layered, CLUSTER, COUNT, SolveOptions())


@pytest.fixture(scope="module")
def parts(pricing: StagePricing) -> LayerParts:
    return LayerParts.of(pricing.layered, COUNT)


def test_equal_layers_are_one_kind(parts: LayerParts) -> None:
    """The first has no gradient to hand on, the last has the loss."""
    kinds = [part.kind for part in parts.parts]
    assert len(set(kinds[1:-1])) == 1
    assert len(set(kinds)) == 3


def test_all_types_of_numbers_count() -> None:
    """And layouts, which kernels that factor a matrix are told, do not."""

    def step(weights: Any, batch: Any) -> Any:
        gradients = stablehlo_alpa.grad(loss)(weights, batch)

        def update(w: Any, g: Any) -> Any:
            return w - jnp.linalg.qr(g)[0] - g.astype("int2").astype(w.dtype)

        return jax.tree.map(update, weights, gradients)

    square = jax.ShapeDtypeStruct((6, 6), np.float32)
    with layer_context(AutoLayers(num_layers=2)):
        program = trace(step, ([(square, square)] * 2, square), {})
    layered = mark_layers(program, 1)
    assert LayerParts.of(layered, 1).divisible(3) > 0.9


def test_neighbours_share_activations_and_their_gradients(parts: LayerParts) -> None:
    for crossings in parts.crossings:
        sides = {(is_result, is_other) for is_result, _, is_other, _ in crossings}
        assert sides == {(True, False), (False, True)}


def test_what_a_run_receives_is_what_crosses_its_ends(parts: LayerParts) -> None:
    crosses = 256 / COUNT * WIDTH * 4
    assert parts.received_bytes(0, LAYERS - 1) == 0
    assert parts.received_bytes(0, 2) == crosses
    assert parts.received_bytes(2, 3) == 2 * crosses


def test_stages_on_half_a_host_receive_every_second_value_within_it(parts: LayerParts) -> None:
    cluster = ClusterSpec(preset_for("v100-16gb"), 2, 4)
    bounds, crosses = StageBounds(parts, cluster, np.inf), 2 * 256 / COUNT * WIDTH * 4
    over_network = network_transfer_seconds(crosses, cluster)
    half, whole, quarter = (
        float(bounds.received_s(one, 0)[2, 3])
        for one in (Submesh(1, 2, (2,)), Submesh(1, 4, (4,)), Submesh(1, 1, (1,)))
    )
    assert whole == pytest.approx(over_network)
    assert half == pytest.approx((over_network + link_seconds(crosses / 2, cluster)) / 2)
    assert quarter == pytest.approx((over_network + 3 * link_seconds(crosses, cluster)) / 4)


SUBMESHES = [Submesh(1, 2, (2,)), Submesh(2, 2, (2, 2)), Submesh(2, 2, (4,))]


@pytest.mark.parametrize("submesh", SUBMESHES, ids=str)
def test_bounds_lie_just_below_the_optima_of_stages(
    submesh: Submesh, parts: LayerParts, pricing: StagePricing
) -> None:
    """Of one layer they are equal; longer runs relax every second border."""
    ranges = StageBounds(parts, CLUSTER, np.inf).of(submesh)
    loose = ranges.seconds(1)[0] / COUNT
    ranges.sharpen(0, LAYERS - 1, 1)
    bounds = ranges.seconds(1)[0] / COUNT
    assert (loose <= bounds * (1 + 1e-9)).all()
    for first, last in ((0, 0), (2, 2), (5, 5), (0, 1), (1, 3), (3, 5), (0, 5)):
        price = pricing.price(first, last, submesh, 1)
        assert price is not None
        if first == last:
            assert bounds[first, last] == pytest.approx(price.time_s, rel=1e-9)
        assert bounds[first, last] <= price.time_s * (1 + 1e-3)
        # A border that is relaxed spares a collective, which is much of layers that small.
        assert bounds[first, last] >= price.time_s * 0.85


@pytest.mark.parametrize("submesh", SUBMESHES, ids=str)
@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0, 4.0, 64.0])
def test_what_stages_spend_per_micro_batch_is_bounded_by_what_they_spend_once(
    weight: float, submesh: Submesh, parts: LayerParts, pricing: StagePricing
) -> None:
    """Plans that are best where seconds that are spent once count more, or less."""
    ranges = StageBounds(parts, CLUSTER, np.inf).of(submesh)
    for first, last in ((0, 0), (2, 2), (0, 2), (3, 5), (0, 5)):
        pricing.price(first, last, submesh, 1)
        priced = pricing._priced[pricing._subject(first, last)[1], submesh]
        once = price_once(priced, COUNT)
        weighted = replace(
            priced,
            compute_s=priced.compute_s + (weight - 1) * once.compute_s,
            communication_s=priced.communication_s + (weight - 1) * once.communication_s,
            edges={
                edge: table + (weight - 1) * once.edges.get(edge, np.zeros_like(table))
                for edge, table in priced.edges.items()
            },
        )
        choice = solve(weighted, SolveOptions()).choice
        once_s = sum(once.split(choice))
        often_s = sum(priced.split(choice)) - once_s
        for _ in range(20):
            bound_s = float(ranges.often((1,), once_s)[0, first, last])
            assert bound_s <= often_s * (1 + 1e-3)
            if not ranges.weigh_once(first, last, 1, once_s):
                break
        # Borders are relaxed, mixtures of plans count, and what may be of either kind for neither.
        assert bound_s >= 0.5 * often_s


@pytest.mark.slow
def test_bounds_within_memory_lie_below_the_optima(
    parts: LayerParts, pricing: StagePricing
) -> None:
    submesh, first, last, in_flight = Submesh(2, 2, (2, 2)), 1, 3, 3
    free = pricing.solution(first, last, submesh, in_flight).memory_peak_bytes
    is_sharper = 0
    for part in (0.9, 0.7, 0.5):
        budget = part * free
        within = SolveOptions(memory_budget=budget)
        price = StagePricing(pricing.layered, CLUSTER, COUNT, within).price(
            first, last, submesh, in_flight
        )
        ranges = StageBounds(parts, CLUSTER, budget).of(submesh)
        before = ranges.seconds(in_flight)[0, first, last] / COUNT
        ranges.sharpen(first, last, in_flight)
        bound = ranges.seconds(in_flight)[0, first, last] / COUNT
        assert price is None or bound <= price.time_s * (1 + 1e-3)
        is_sharper += bound > before
    assert is_sharper


@pytest.mark.parametrize("rows", [2**16, 2**4])
@pytest.mark.parametrize("remat", [seldom(False), True])
def test_no_stage_fits_less_than_its_layers_need_at_least(remat: bool, rows: int) -> None:
    """Activations are most of it, or parameters.

    What crosses a border inside of a stage is there once, and what updates a parameter takes its
    place, also where the forward phase keeps nothing: the first layer, computed again.
    """
    weights, moments, _ = shapes()
    batch = jax.ShapeDtypeStruct((rows, WIDTH), np.float32)
    with layer_context(AutoLayers(num_layers=LAYERS, remat=remat)):
        program = trace(step, (weights, moments, batch), {}, donate_argnums=(0, 1))
    layered, submesh = mark_layers(program, COUNT), Submesh(1, 2, (2,))
    own = LayerParts.of(layered, COUNT)
    ranges = StageBounds(own, CLUSTER, np.inf).of(submesh)
    for first, last, in_flight in ((0, 0, 2), (0, 3, 1), (1, 4, 3), (2, 5, 1), (0, 5, 1)):
        least = float(ranges.least_bytes(in_flight)[first, last])
        within = SolveOptions(memory_budget=least * (1 - 1e-3))
        price = StagePricing(layered, CLUSTER, COUNT, within).price(first, last, submesh, in_flight)
        assert price is None, (first, last, in_flight)


def test_memory_of_a_stage_is_that_of_its_pipeline() -> None:
    """What is solved for counts sums, and all micro-batches in flight, as the simulation does."""
    layers, stages = AutoLayers(num_layers=2), ManualStages((1, 1), ((1, 1), (1, 1)))
    method = PipeshardParallel(
        layers=layers, stages=stages, num_micro_batches=COUNT, schedule="1f1b"
    )
    weights, moments, batch = shapes()
    cluster = ClusterSpec(preset_for("v100-16gb"), 1, 2)
    plan = stablehlo_alpa.parallelize(step, method=method, cluster=cluster).plan(
        weights[:2], moments[:2], batch
    )
    for stage, peak in zip(plan.stages, plan.simulation.peak_bytes, strict=True):
        assert stage.solution.memory_peak_bytes == pytest.approx(peak, rel=0.25)
    assert plan.gap is None


def test_aligned_shapes_alone_are_looked_at_over_hosts() -> None:
    cluster = ClusterSpec(preset_for("v100"), 7, 8)
    found = [one.mesh_shape for one in submeshes(cluster) if one.hosts == 7]
    assert found == [(56,), (7, 8), (14, 4), (28, 2)]


def test_axes_that_divide_little_are_not_looked_at(parts: LayerParts) -> None:
    """All sizes are powers of two: of three hosts only the axis inside of each is of use."""
    assert parts.divisible(4) > 0.9
    assert parts.divisible(3) == 0.0
    bounds = StageBounds(parts, ClusterSpec(preset_for("v100-16gb"), 4, 4), np.inf)
    shapes: dict[int, list[tuple[int, ...]]] = {}
    for one in bounds.submeshes:
        shapes.setdefault(one.num_devices, []).append(one.mesh_shape)
    assert shapes[12] == [(3, 4)]
    assert shapes[16] == [(16,), (2, 8), (4, 4), (8, 2)]


@pytest.mark.slow
def test_a_plan_that_is_good_enough_is_taken(pricing: StagePricing) -> None:
    submesh, first, last, in_flight = Submesh(2, 2, (2, 2)), 1, 3, 3
    free = pricing.solution(first, last, submesh, in_flight)
    options = SolveOptions(memory_budget=0.7 * free.memory_peak_bytes, budget_gap=0.0)

    def priced(enough: float, fresh: StagePricing | None = None) -> tuple[float, float]:
        one = fresh or StagePricing(pricing.layered, CLUSTER, COUNT, options)
        price = one.price(first, last, submesh, in_flight, Effort(enough))
        assert price is not None
        assert price.bound_s <= price.time_s
        peak = one.solution(first, last, submesh, in_flight).memory_peak_bytes
        assert peak <= 0.7 * free.memory_peak_bytes * (1 + 1e-9)
        return price.time_s, price.bound_s

    kept = StagePricing(pricing.layered, CLUSTER, COUNT, options)
    best, _ = priced(0.0)
    loose, bound = priced(1.5 * best, kept)
    assert best <= loose <= 1.5 * best
    assert bound <= best
    # Known to be good enough, or not.
    assert priced(1.4 * best, kept)[0] <= 1.4 * best
    assert priced(0.0, kept)[0] == pytest.approx(best, rel=1e-6)


def test_a_stage_that_is_too_slow_is_solved_for_who_may_wait(pricing: StagePricing) -> None:
    stage = 1, 3, Submesh(2, 2, (2, 2)), 3
    best = pricing.price(*stage)
    assert best is not None
    asked = StagePricing(pricing.layered, CLUSTER, COUNT, SolveOptions())
    for share in (0.5, 0.9):
        slow = asked.price(*stage, Effort(most_s=share * best.time_s))
        assert slow is not None
        assert np.isinf(slow.time_s)
        assert share * best.time_s <= slow.bound_s <= best.time_s * (1 + 1e-9)
    with pytest.raises(SlowerError):
        asked.solution(*stage)
    for most_s in (1.1 * best.time_s, 0.5 * best.time_s):
        found = asked.price(*stage, Effort(most_s=most_s))
        assert found is not None
        assert found.time_s == pytest.approx(best.time_s, rel=1e-6)


def test_stages_of_a_pipeline_are_cut_at_once(pricing: StagePricing) -> None:
    together = StagePricing(pricing.layered, CLUSTER, COUNT, SolveOptions())
    together.prepare([(0, 1), (2, 4), (5, 5)])
    for first, last in ((0, 1), (2, 4), (5, 5)):
        one = pricing.price(first, last, SUBMESHES[0], 2)
        other = together.price(first, last, SUBMESHES[0], 2)
        assert one == other


@pytest.mark.parametrize("processors", [1, 16])
def test_as_many_stages_are_solved_at_the_same_time_everywhere(
    processors: int, pricing: StagePricing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    together = StagePricing(pricing.layered, CLUSTER, COUNT, SolveOptions())
    one, other = SUBMESHES[:2]
    asked = [(0, 1, one, 2), (0, 1, other, 2), (2, 4, one, 1)]
    chosen = together.at_once(asked)
    assert chosen == asked[:2]
    # These differ in their micro-batches in flight alone.
    assert together.at_once([(0, 1, one, 2), (0, 1, one, 1)]) == asked[:1]
    found = in_threads(lambda stage: together.price(*stage), chosen)
    assert found == [pricing.price(*stage) for stage in chosen]


def test_refusals_have_the_order_of_the_stages(pricing: StagePricing) -> None:
    """What a message names does not depend on which of several threads was first."""
    within = SolveOptions(memory_budget=1.0)
    stages = [(2, 4, SUBMESHES[0], 1), (0, 1, SUBMESHES[1], 1), (0, 1, SUBMESHES[0], 1)]
    messages = []
    for order in (stages, stages[::-1]):
        refusing = StagePricing(pricing.layered, CLUSTER, COUNT, within)
        assert [refusing.price(*stage) for stage in order] == [None] * 3
        messages.append([str(error) for error in refusing.refusals])
    assert messages[0] == messages[1]
    assert len(set(messages[0])) > 1


def test_a_layer_without_anything_to_split_costs_nothing() -> None:
    """The last of five layers is a division of two numbers."""

    def step(w: Any, x: Any) -> Any:
        return stablehlo_alpa.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) @ w))(w)

    w, x = np.full((8, 8), 0.1, np.float32), np.ones((16, 8), np.float32)
    parallel = stablehlo_alpa.parallelize(
        step, method=PipeshardParallel(num_micro_batches=1, layers=AutoLayers(num_layers=5))
    )
    plan = parallel.plan(w, x)
    assert plan.step_time_s > 0
    found, expected = parallel(w, x), jax.jit(step)(w, x)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)
