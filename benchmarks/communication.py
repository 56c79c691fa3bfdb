"""Bytes that a GPT train step moves on a 2x4 mesh: the planner's, and hand-written shardings."""

import report

report.prepare_devices(8)

from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec
from models import gpt
from models.case import TrainCase

import stablehlo_alpa
from stablehlo_alpa.witness import Collective, collectives

MESH_SHAPE = (2, 4)


def data_parallel(path: str, shape: tuple[int, ...]) -> PartitionSpec:
    """Every weight whole on every device."""
    return PartitionSpec()


def megatron(path: str, shape: tuple[int, ...]) -> PartitionSpec:
    """Heads and hidden units over ``y``, the vocabulary too; column-split, then row-split."""
    rules = {
        "query": PartitionSpec(None, "y"),
        "key": PartitionSpec(None, "y"),
        "value": PartitionSpec(None, "y"),
        "out']['kernel": PartitionSpec("y"),
        "up']['kernel": PartitionSpec(None, "y"),
        "up']['bias": PartitionSpec("y"),
        "down']['kernel": PartitionSpec("y"),
        "embedding": PartitionSpec("y"),
    }
    return next((spec for part, spec in rules.items() if part in path), PartitionSpec())


def fsdp(path: str, shape: tuple[int, ...]) -> PartitionSpec:
    """Every weight split eight ways along its largest dimension that divides."""
    sizes = [size if size % 8 == 0 else 0 for size in shape]
    if not sizes or max(sizes) == 0:
        return PartitionSpec()
    dimension = sizes.index(max(sizes))
    return PartitionSpec(*[None] * dimension, ("x", "y"))


def hand_written(
    case: TrainCase,
    rule: Callable[[str, tuple[int, ...]], PartitionSpec],
    batch_axes: tuple[str, ...],
) -> list[Collective]:
    """The collectives XLA makes of hand-written shardings of state and batch."""
    mesh = jax.make_mesh(
        MESH_SHAPE, ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * len(MESH_SHAPE)
    )
    state = jax.tree_util.tree_map_with_path(
        lambda path, leaf: NamedSharding(mesh, rule(jax.tree_util.keystr(path), leaf.shape)),
        case.state,
    )
    batch = NamedSharding(mesh, PartitionSpec(batch_axes))
    whole = NamedSharding(mesh, PartitionSpec())
    step = jax.jit(case.step, in_shardings=(state, batch, whole), out_shardings=(state, whole))
    return collectives(step.lower(*case.args).compile().as_text() or "", mesh.size)


def planned(case: TrainCase) -> tuple[list[Collective], Any]:
    """The collectives of the planned step in optimised HLO, and its plan."""
    method = stablehlo_alpa.ShardParallel(mesh_shape=MESH_SHAPE)
    step = stablehlo_alpa.parallelize(case.step, method=method)
    hlo = step.lower(*case.args).compile().as_text()
    return collectives(hlo, 8), step.plan(*case.args)


def measure(quick: bool) -> list[report.Row]:
    """Bytes per device and step of every sharding, and ours over the best of them."""
    size: dict[str, Any] = {"layers": 4, "hidden": 256, "heads": 8, "length": 128, "batch": 16}
    if quick:
        size = {"layers": 2, "hidden": 64, "heads": 4, "length": 32, "batch": 16}
    case = gpt.make(vocabulary=1024, **size)
    by_hand = {
        "data parallel": hand_written(case, data_parallel, ("x", "y")),
        "Megatron": hand_written(case, megatron, ("x",)),
        "FSDP": hand_written(case, fsdp, ("x", "y")),
    }
    ours, plan = planned(case)

    rows = []
    for quantity, of in (
        ("sent", lambda found: sum(c.sent_bytes for c in found)),
        ("payload", lambda found: sum(c.total_bytes for c in found)),
    ):
        values = {name: of(found) for name, found in by_hand.items()}
        best = min(values, key=lambda name: values[name])
        rows += [
            report.measured(f"bytes {quantity}, {name}", value, "B/device")
            for name, value in values.items()
        ]
        rows.append(
            report.compared(
                f"bytes {quantity}, planned",
                of(ours),
                "B/device",
                against=best,
                reference=values[best],
                bar=1.0,
            )
        )
    predicted = float(sum(row.bytes for row in plan.communication()))
    actual = sum(c.total_bytes for c in ours)
    rows.append(
        report.equal(
            "payload bytes, predicted by the plan",
            predicted,
            "B/device",
            against="optimised HLO",
            reference=actual,
        )
    )
    return rows


if __name__ == "__main__":
    report.main("Communication of a GPT train step on 2x4", measure)
