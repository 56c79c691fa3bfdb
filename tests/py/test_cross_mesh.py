"""Cross-mesh resharding: the data arrives, each element crosses once, devices share the work."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import jax
import numpy as np
import pytest
from alpa_runtime import ProgramError, Resharding, ValueSpec, compile_spmd
from alpa_runtime.transport.pieces import Lander, Packer
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import Mesh, NamedSharding

from stablehlo_alpa.inter_op.cross_mesh import Axes, CrossMeshTransfer, plan_transfer
from stablehlo_alpa.inter_op.gather import gather_program

SIZES = (1, 2, 3, 4, 5, 6, 8, 12, 24)


@st.composite
def meshes(draw: Any) -> Axes:
    sizes = draw(st.lists(st.sampled_from((1, 2, 3, 4)), min_size=1, max_size=3))
    return tuple(zip("xyz", sizes, strict=False))


@st.composite
def shardings(draw: Any, shape: tuple[int, ...], mesh: Axes) -> ValueSpec:
    """Some axes split some dimensions, wherever they divide them."""
    axes: list[list[str]] = [[] for _ in shape]
    left = list(shape)
    for name, size in draw(st.permutations(mesh)):
        dim = draw(st.integers(-1, len(shape) - 1))
        if dim >= 0 and left[dim] % size == 0:
            axes[dim].append(name)
            left[dim] //= size
    return ValueSpec(shape, "float32", tuple(map(tuple, axes)))


@st.composite
def transfers(draw: Any) -> tuple[ValueSpec, Axes, ValueSpec, Axes]:
    shape = tuple(draw(st.lists(st.sampled_from(SIZES), max_size=3)))
    source_mesh, target_mesh = draw(meshes()), draw(meshes())
    source = draw(shardings(shape, source_mesh))
    return source, source_mesh, draw(shardings(shape, target_mesh)), target_mesh


def boxes(value: ValueSpec, mesh: Axes) -> list[tuple[slice, ...]]:
    """What each device holds, said by jax."""
    sizes = [size for _, size in mesh]
    devices = jax.sharding.AbstractMesh(tuple(sizes), tuple(name for name, _ in mesh))
    sharding = NamedSharding(devices, value.spec)
    local = sharding.shard_shape(value.shape)
    found = []
    for at in itertools.product(*map(range, sizes)):
        place = dict(zip((name for name, _ in mesh), at, strict=True))
        box = []
        for size, axes in zip(local, value.axes, strict=True):
            index = 0
            for axis in axes:
                index = index * dict(mesh)[axis] + place[axis]
            box.append(slice(index * size, (index + 1) * size))
        found.append(tuple(box))
    return found


def moved(
    transfer: CrossMeshTransfer, value: Any, source: Any, source_mesh: Axes, mesh: Axes
) -> Any:
    """The landing array after every piece was copied."""
    sent = [value[box] for box in boxes(source, source_mesh)]
    shape = transfer.landing.local_shape(dict(mesh))
    received = [np.zeros(shape, "f") for _ in range(math.prod(size for _, size in mesh))]
    for piece in transfer.resharding.pieces:
        cut = sent[piece.source][
            tuple(slice(a, a + n) for a, n in zip(piece.source_offset, piece.shape, strict=True))
        ]
        extent = piece.shape or (1,) * len(shape)
        place = tuple(slice(a, a + n) for a, n in zip(piece.target_offset, extent, strict=True))
        received[piece.target][place] = cut
    whole = np.zeros(transfer.landing.shape, "f")
    for box, part in zip(boxes(transfer.landing, mesh), received, strict=True):
        whole[box] = part
    return whole


def without_padding(transfer: CrossMeshTransfer, target: ValueSpec, mesh: Axes, whole: Any) -> Any:
    """What gathering makes of the landing array: the padding behind every tile is dropped."""
    if not target.shape:
        return whole.reshape(-1)[0]
    tile = target.local_shape(dict(mesh))
    for dim, size in enumerate(tile):
        parts = target.shape[dim] // size if size else 1
        cut = whole.shape[dim] // parts if parts else 0
        whole = np.concatenate(
            [whole.take(range(p * cut, p * cut + size), axis=dim) for p in range(parts)], axis=dim
        )
    return whole


@pytest.mark.slow
@given(transfers())
@settings(max_examples=500, deadline=None)
def test_every_element_crosses_once_and_arrives(case: Any) -> None:
    source, source_mesh, target, target_mesh = case
    transfer = plan_transfer(*case)
    value = np.arange(1, 1 + math.prod(source.shape), dtype="f").reshape(source.shape)
    whole = moved(transfer, value, source, source_mesh, target_mesh)
    np.testing.assert_array_equal(
        without_padding(transfer, target, target_mesh, whole), value, strict=True
    )
    # The bound: whoever has nothing of the value must get each of its elements at least once.
    assert transfer.resharding.size == value.size
    transfer.resharding.check(source, dict(source_mesh), transfer.landing, dict(target_mesh))


@pytest.mark.slow
@given(transfers())
@settings(max_examples=300, deadline=None)
def test_devices_share_the_work(case: Any) -> None:
    source, source_mesh, target, target_mesh = case
    resharding = plan_transfer(*case).resharding
    sent: dict[int, int] = {}
    received: dict[int, int] = {}
    for piece in resharding.pieces:
        sent[piece.source] = sent.get(piece.source, 0) + piece.size
        received[piece.target] = received.get(piece.target, 0) + piece.size
    if not resharding.pieces:
        return
    largest = max(piece.size for piece in resharding.pieces)
    # Per tile of the source nobody sends more than the mean and one piece.
    tiles: dict[Any, list[int]] = {}
    for position, box in enumerate(boxes(source, source_mesh)):
        tiles.setdefault(str(box), []).append(position)
    for holders in tiles.values():
        loads = [sent.get(position, 0) for position in holders]
        assert max(loads) <= sum(loads) / len(loads) + largest
    # No cut along dimensions gives the busiest receiver less than this.
    sizes = dict(target_mesh)
    tile = target.local_shape(sizes)
    shares = [n for name, n in target_mesh if not any(name in axes for axes in target.axes)]
    least = min(
        (
            math.prod(
                -(-n // math.prod(s for s, at in zip(shares, split, strict=True) if at == dim))
                for dim, n in enumerate(tile)
            )
            for split in itertools.product(range(len(tile)), repeat=len(shares))
        ),
        default=1,
    )
    assert max(received.values()) == least


CASES = {
    "same": ((8, 6), (("x", 2), ("y", 2)), "x y", (("x", 2), ("y", 2)), "x y"),
    "gathered": ((8, 6), (("x", 4),), "x .", (("x", 2), ("y", 2)), "x ."),
    "replicated": ((8, 6), (("x", 4),), ". .", (("x", 4),), ". ."),
    "uneven": ((5, 3), (("x", 2),), ". .", (("x", 2), ("y", 3)), ". ."),
    "uneven tiles": ((10, 3), (("x", 2),), "x .", (("x", 2), ("y", 3)), "x ."),
    "three to four": ((12, 5), (("x", 3),), "x .", (("x", 4),), "x ."),
    "scalar": ((), (("x", 2),), "", (("x", 4),), ""),
    "scalar to one": ((), (("x", 2),), "", (("x", 1),), ""),
    "fewer than devices": ((2,), (("x", 1),), ".", (("x", 4),), "."),
    "transposed": ((8, 8), (("x", 4),), "x .", (("x", 4),), ". x"),
    "two axes of a dimension": ((8, 4), (("x", 2), ("y", 2)), "yx .", (("x", 4),), ". ."),
}


def spec(shape: tuple[int, ...], text: str, dtype: str) -> ValueSpec:
    return ValueSpec(
        shape, dtype, tuple(() if part == "." else tuple(part) for part in text.split())
    )


def device_mesh(axes: Axes, first: int) -> Mesh:
    count = math.prod(size for _, size in axes)
    devices = np.array(jax.devices()[first : first + count])
    return Mesh(devices.reshape([size for _, size in axes]), [name for name, _ in axes])


@pytest.mark.parametrize("dtype", ["float32", "bool", "bfloat16", "int8"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_arrays_cross(case: Any, dtype: str) -> None:
    shape, source_mesh, source_text, target_mesh, target_text = case
    source, target = spec(shape, source_text, dtype), spec(shape, target_text, dtype)
    transfer = plan_transfer(source, source_mesh, target, target_mesh)
    first = device_mesh(source_mesh, 0)
    second = device_mesh(target_mesh, 8 - math.prod(size for _, size in target_mesh))
    value = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    array = jax.device_put(value, NamedSharding(first, source.spec))
    pack = Packer(transfer.resharding, source.local_shape(dict(source_mesh)))
    land = Lander(
        transfer.resharding,
        transfer.landing.shape,
        dtype,
        NamedSharding(second, transfer.landing.spec),
    )
    receivers = [second.devices.flat[piece.target] for piece in transfer.resharding.pieces]
    arrived = land(jax.device_put(pack(array), receivers))
    if transfer.needs_gather:
        program = gather_program(transfer, target, target_mesh, "gather")
        (arrived,) = compile_spmd(program, second)(arrived)
    assert arrived.sharding == NamedSharding(second, target.spec)
    np.testing.assert_array_equal(arrived, value)


def planned() -> tuple[Resharding, ValueSpec, Axes, ValueSpec, Axes]:
    case = spec((8,), "x", "float32"), (("x", 2),), spec((8,), "x", "float32"), (("x", 4),)
    return plan_transfer(*case).resharding, *case


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda pieces: pieces[1:], "pieces have 6 elements"),
        (lambda pieces: (*pieces[1:], pieces[1]), "fill the same elements"),
        (lambda pieces: (change(pieces[0], source=2), *pieces[1:]), "source 2 of 2 devices"),
        (lambda pieces: (change(pieces[0], target_offset=(1,)), *pieces[1:]), "the target's shard"),
        (lambda pieces: (change(pieces[0], source_offset=(-1,)), *pieces[1:]), "source's shard"),
        (lambda pieces: (change(pieces[0], shape=(0,)), *pieces[1:]), "has no elements"),
    ],
)
def test_contradictions_are_found(change: Any, message: str) -> None:
    resharding, source, source_mesh, target, target_mesh = planned()
    broken = Resharding(change(resharding.pieces))
    with pytest.raises(ProgramError, match=message):
        broken.check(source, dict(source_mesh), target, dict(target_mesh))


def change(piece: Any, **fields: Any) -> Any:
    return dataclasses.replace(piece, **fields)
