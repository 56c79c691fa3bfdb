"""What devices send each other: collectives over groups of every size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from stablehlo_alpa.calibration.fitting import least_deviation
from stablehlo_alpa.calibration.timing import Stepped, Timing, time_step
from stablehlo_alpa.cost.curves import Curve
from stablehlo_alpa.cost.kinds import CollectiveKind, FloatArray

KINDS = tuple(kind for kind in CollectiveKind if kind is not CollectiveKind.LOCAL)
# Payload per device, as `cost.collective` counts it.
PAYLOADS = (2**12, 2**15, 2**18, 2**20, 2**22, 2**24)
_GROUP, _REST = "group", "rest"
_SPEC = PartitionSpec((_REST, _GROUP))


def group_sizes(count: int) -> list[int]:
    """Sizes of groups that a number of devices can be divided into."""
    return [size for size in range(2, count + 1) if count % size == 0]


def time_collective(
    kind: CollectiveKind, payload: int, size: int, is_strided: bool, devices: Sequence[jax.Device]
) -> Timing:
    """Seconds of a collective over all groups at a time.

    Args:
        kind: of it.
        payload: bytes per device.
        size: of the groups.
        is_strided: whether their members lie apart.
        devices: all of them.
    """
    elements = max(payload // 4 // size, 1) * size
    # Zeros stay what they are, however often they are added up.
    values = np.zeros(elements * len(devices), np.float32)
    sharding = NamedSharding(_mesh(size, is_strided, devices), _SPEC)
    operand = jax.device_put(values, sharding)
    return time_step(
        lambda steps: collective_steps(kind, size, is_strided, devices, steps), operand
    )


def collective_steps(
    kind: CollectiveKind,
    size: int,
    is_strided: bool,
    devices: Sequence[jax.Device],
    steps: int = 1,
) -> Stepped:
    """A program of collectives one behind the other, over all groups at a time.

    Args:
        kind: of them.
        size: of the groups.
        is_strided: whether their members lie apart.
        devices: all of them.
        steps: collectives of an iteration.
    """
    step = _step(kind, size)

    def stepped(count: jax.Array, values: jax.Array) -> jax.Array:
        def iteration(_: Any, values: jax.Array) -> jax.Array:
            for _ in range(steps):
                values = step(values)
            return values

        return lax.fori_loop(0, count, iteration, values)

    return jax.shard_map(
        stepped,
        mesh=_mesh(size, is_strided, devices),
        in_specs=(PartitionSpec(), _SPEC),
        out_specs=_SPEC,
        check_vma=False,
    )


def _mesh(size: int, is_strided: bool, devices: Sequence[jax.Device]) -> Mesh:
    grid = np.array(devices).reshape((size, -1) if is_strided else (-1, size))
    return Mesh(grid, (_GROUP, _REST) if is_strided else (_REST, _GROUP))


def _step(kind: CollectiveKind, size: int) -> Callable[[jax.Array], jax.Array]:
    """One collective whose result has the shape of its operand."""

    def gather(values: jax.Array) -> jax.Array:
        part = lax.dynamic_slice_in_dim(values, 0, len(values) // size)
        return lax.all_gather(part, _GROUP, tiled=True)

    def scatter(values: jax.Array) -> jax.Array:
        part = lax.psum_scatter(values, _GROUP, tiled=True)
        return lax.dynamic_update_slice_in_dim(values, part, 0, 0)

    def reduce(values: jax.Array) -> jax.Array:
        # What is the same on all devices is not reduced again, it would be multiplied: one number
        # stays each device's own.
        own = lax.slice_in_dim(values, 0, 1)
        return lax.dynamic_update_slice_in_dim(lax.psum(values, _GROUP), own, 0, 0)

    steps: dict[CollectiveKind, Callable[[jax.Array], Any]] = {
        CollectiveKind.ALL_REDUCE: reduce,
        CollectiveKind.ALL_GATHER: gather,
        CollectiveKind.REDUCE_SCATTER: scatter,
        CollectiveKind.ALL_TO_ALL: lambda x: lax.all_to_all(x, _GROUP, 0, 0, tiled=True),
        CollectiveKind.COLLECTIVE_PERMUTE: lambda x: lax.ppermute(
            x, _GROUP, [(i, (i + 1) % size) for i in range(size)]
        ),
    }
    return steps[kind]


def fit_curve(seconds: FloatArray) -> Curve:
    """The curve of least mean relative error.

    Args:
        seconds: float64[T] of `PAYLOADS`.
    """
    payload = np.array(PAYLOADS, np.float64)
    columns = np.stack([np.ones(len(payload)), payload, np.sqrt(payload)], axis=1)
    return Curve(*least_deviation(columns, seconds).tolist())
