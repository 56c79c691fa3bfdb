"""The program that puts together what a mesh received in parts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from alpa_runtime import SpmdProgram, ValueSpec

from stablehlo_alpa.cluster import DeviceSpec, LogicalMesh
from stablehlo_alpa.compiler import tensor_type
from stablehlo_alpa.cost import CollectiveKind, collective_seconds
from stablehlo_alpa.inter_op.cross_mesh import Axes, CrossMeshTransfer
from stablehlo_alpa.view import Collective


def gather_program(
    transfer: CrossMeshTransfer, target: ValueSpec, mesh: Axes, name: str
) -> SpmdProgram:
    """All-gathers over the devices that share a tile, then drops the padding of uneven parts."""
    sizes = dict(mesh)
    wanted = target.local_shape(sizes)
    shape = list(transfer.landing.local_shape(sizes))
    first = tensor_type(shape, target.dtype)
    lines: list[str] = []
    last = "%received"
    for dim, axes in enumerate(transfer.gathered):
        if not axes:
            continue
        groups = _groups(axes, mesh)
        before = tensor_type(shape, target.dtype)
        shape[dim] *= len(groups[0])
        lines.append(
            f'  %gathered_{dim} = "stablehlo.all_gather"({last}) <{{all_gather_dim = {dim} : i64, '
            "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "
            f"replica_groups = dense<{groups}> : tensor<{len(groups)}x{len(groups[0])}xi64>, "
            f"use_global_device_ids}}> : ({before}) -> {tensor_type(shape, target.dtype)}"
        )
        last = f"%gathered_{dim}"
    if target.shape and tuple(shape) != wanted:
        before = tensor_type(shape, target.dtype)
        box = ", ".join(f"0:{size}" for size in wanted)
        result = tensor_type(wanted, target.dtype)
        lines.append(f"  %whole = stablehlo.slice {last} [{box}] : ({before}) -> {result}")
        last = "%whole"
    elif not target.shape:
        before, one = tensor_type(shape, target.dtype), tensor_type((1,), target.dtype)
        result = tensor_type((), target.dtype)
        lines.append(f"  %first = stablehlo.slice {last} [0:1] : ({before}) -> {one}")
        lines.append(f"  %scalar = stablehlo.reshape %first : ({one}) -> {result}")
        last = "%scalar"
    result = tensor_type(wanted, target.dtype)
    text = "\n".join(
        [
            "module {",
            f"func.func public @main(%received: {first}) -> {result} {{",
            *lines,
            f"  return {last} : {result}",
            "}",
            "}",
        ]
    )
    return SpmdProgram(text, mesh, (transfer.landing,), (target,), (), name)


def gather_collectives(transfer: CrossMeshTransfer, mesh: LogicalMesh) -> tuple[Collective, ...]:
    """The all-gathers of the gather program, in order."""
    sizes = dict(mesh.axes)
    size = float(transfer.landing.local_bytes(sizes))
    found = []
    for axes in filter(None, transfer.gathered):
        size *= math.prod(sizes[axis] for axis in axes)
        found.append(Collective("all_gather", tuple(axes), size, 1.0))
    return tuple(found)


def gather_seconds(transfer: CrossMeshTransfer, mesh: LogicalMesh, device: DeviceSpec) -> float:
    """Predicted seconds of the gather program."""
    gathers, names = gather_collectives(transfer, mesh), mesh.axis_names
    masks = [sum(1 << names.index(axis) for axis in one.axes) for one in gathers]
    kinds = [int(CollectiveKind.ALL_GATHER)] * len(gathers)
    payloads = [one.bytes for one in gathers]
    return float(collective_seconds(kinds, masks, payloads, mesh, device).sum())


def _groups(axes: Sequence[str], mesh: Axes) -> list[list[int]]:
    """Positions of devices that differ in the given axes only, in the order of these axes."""
    names = [name for name, _ in mesh]
    groups: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = {}
    for position, at in enumerate(itertools.product(*(range(size) for _, size in mesh))):
        rest = tuple(c for name, c in zip(names, at, strict=True) if name not in axes)
        own = tuple(at[names.index(axis)] for axis in axes)
        groups.setdefault(rest, []).append((own, position))
    return [[position for _, position in sorted(group)] for group in groups.values()]
