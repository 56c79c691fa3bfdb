"""Bytes between the stages of the paper's Wide-ResNets, against plain send and receive.

Plain: every device of the destination is sent what it is to hold. Shapes and plans: paper, Table 8,
Figures 11 and 12, and the plans that its repository lists.
"""

import report

report.prepare_devices(8)

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from alpa_runtime import ValueSpec, compile_spmd
from alpa_runtime.transport.pieces import Lander, Packer
from jax.sharding import Mesh, NamedSharding
from report import Row, compared

from stablehlo_alpa.inter_op.cross_mesh import Axes, CrossMeshTransfer, plan_transfer
from stablehlo_alpa.inter_op.gather import gather_program


@dataclass(frozen=True)
class Boundary:
    """What goes forward from one stage to the next; its gradient goes back.

    Attributes:
        shape: of the activation, float32.
        source, target: devices of both stages.
        splits_source, splits_target: whether a stage splits the batch, or has all of it everywhere.
    """

    shape: tuple[int, ...]
    source: int
    target: int
    splits_source: bool
    splits_target: bool

    def directions(self) -> list[tuple[ValueSpec, Axes, ValueSpec, Axes]]:
        """The activation, and its gradient."""
        first = self._value(self.splits_source), (("x", self.source),)
        second = self._value(self.splits_target), (("x", self.target),)
        return [(*first, *second), (*second, *first)]

    def _value(self, is_split: bool) -> ValueSpec:
        axes: tuple[tuple[str, ...], ...] = (("x",) if is_split else (), (), (), ())
        return ValueSpec(self.shape, "float32", axes)


def activation(micro_batch: int, base: int, block: int, blocks: tuple[int, ...]) -> tuple[int, ...]:
    """Of a ResNet with images of 224x224 behind so many residual blocks."""
    group = next(i for i in range(len(blocks)) if block <= sum(blocks[: i + 1]))
    side = 56 >> group
    return (micro_batch, side, side, 4 * base << group)


_RESNET_50, _RESNET_101 = (3, 4, 6, 3), (3, 4, 23, 3)

# What the first stages split is the batch; then output and input channels in turn, which needs all
# of the input everywhere. Of the largest model every other stage splits the batch.
PLANS = {
    "2B on 8 GPUs": [Boundary(activation(64, 448, 8, _RESNET_50), 4, 4, True, False)],
    "4B on 16 GPUs": [
        Boundary(activation(48, 640, 5, _RESNET_50), 4, 4, True, True),
        Boundary(activation(48, 640, 9, _RESNET_50), 4, 8, True, False),
    ],
    "13B on 64 GPUs": [
        Boundary(activation(40, 320, 4 * (i + 1), _RESNET_101), 8, 8, i % 2 == 0, i % 2 == 1)
        for i in range(7)
    ],
}


def plain_bytes(target: ValueSpec, mesh: Axes) -> int:
    """Every device of the destination is sent its tile."""
    return target.local_bytes(dict(mesh)) * math.prod(size for _, size in mesh)


def bytes_row(name: str, boundaries: list[Boundary]) -> Row:
    """What crosses between all stages for one micro-batch."""
    cases = [case for boundary in boundaries for case in boundary.directions()]
    ours = sum(4 * plan_transfer(*case).resharding.size for case in cases)
    plain = sum(plain_bytes(target, mesh) for _, _, target, mesh in cases)
    return compared(
        f"WRN {name}: between stages, per micro-batch",
        ours / 2**20,
        "MiB",
        against="plain send and receive",
        reference=plain / 2**20,
        bar=0.5,
    )


def moved(
    transfer: CrossMeshTransfer, case: tuple[ValueSpec, Axes, ValueSpec, Axes], meshes: list[Mesh]
) -> Callable[[jax.Array], Any]:
    """The transfer and the gather behind it, as the pipeline runs them."""
    source, source_mesh, target, target_mesh = case
    pack = Packer(transfer.resharding, source.local_shape(dict(source_mesh)))
    sharding = NamedSharding(meshes[1], transfer.landing.spec)
    land = Lander(transfer.resharding, transfer.landing.shape, target.dtype, sharding)
    gather = compile_spmd(gather_program(transfer, target, target_mesh, "gather"), meshes[1])
    receivers = [meshes[1].devices.flat[piece.target] for piece in transfer.resharding.pieces]
    return lambda array: gather(land(jax.device_put(pack(array), receivers)))


def time_row(rounds: int) -> Row:
    """Four devices that split a batch to four that hold all of it, in this process."""
    case = Boundary((64, 14, 14, 448), 4, 4, True, False).directions()[0]
    source, _, target, _ = case
    devices = np.array(jax.devices())
    meshes = [Mesh(devices[:4], "x"), Mesh(devices[4:], "x")]
    value = np.ones(source.shape, "f")
    array = jax.device_put(value, NamedSharding(meshes[0], source.spec))
    transfer = moved(plan_transfer(*case), case, meshes)
    wanted = NamedSharding(meshes[1], target.spec)
    times: dict[str, list[float]] = {"ours": [], "plain": []}
    for _ in range(rounds):
        for name, send in (
            ("ours", transfer),
            ("plain", lambda array: jax.device_put(array, wanted)),
        ):
            start = time.perf_counter()
            jax.block_until_ready(send(array))
            times[name].append(time.perf_counter() - start)
    ours, plain = (1e3 * statistics.median(times[name]) for name in ("ours", "plain"))
    row = report.measured("22 MB to four virtual devices of this process", ours, "ms")
    return report.beside(row, against="jax.device_put", reference=plain)


def measure(quick: bool) -> list[Row]:
    """Bytes of the paper's plans, and the time of one transfer."""
    rows = [bytes_row(name, boundaries) for name, boundaries in PLANS.items()]
    return [*rows, time_row(5 if quick else 30)]


if __name__ == "__main__":
    report.main("Bytes between stages", measure)
