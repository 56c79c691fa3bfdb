"""Devices of this process: told by their names, with the memory that XLA has there."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from alpa_runtime import in_torus_order

import stablehlo_alpa as sa
from stablehlo_alpa.cluster import (
    PRESETS,
    ClusterSpec,
    cluster_names,
    cluster_of,
    known_device,
    preset_for,
)
from stablehlo_alpa.view import memory_text

GIB = 2**30

# As JAX spells them, and the preset.
KINDS = {
    "NVIDIA A100-SXM4-40GB": "a100-40gb",
    "NVIDIA A100-SXM4-80GB": "a100-80gb",
    "NVIDIA A100-PCIE-40GB": "a100-pcie-40gb",
    "NVIDIA A100 80GB PCIe": "a100-pcie-80gb",
    "NVIDIA A800-SXM4-80GB": "a800-80gb",
    "NVIDIA H100 80GB HBM3": "h100-80gb",
    "NVIDIA H100 PCIe": "h100-pcie-80gb",
    "NVIDIA H100 NVL": "h100-nvl-94gb",
    "NVIDIA H200": "h200-141gb",
    "NVIDIA H20": "h20-96gb",
    "NVIDIA GH200 480GB": "gh200-96gb",
    "NVIDIA B200": "b200-180gb",
    "NVIDIA GB200": "gb200-186gb",
    "Tesla V100-SXM2-16GB": "v100-16gb",
    "Tesla V100-SXM2-32GB": "v100-32gb",
    "Tesla V100-PCIE-32GB": "v100-pcie-32gb",
    "Tesla T4": "t4-16gb",
    "NVIDIA A10": "a10-24gb",
    "NVIDIA A10G": "a10g-24gb",
    "NVIDIA L4": "l4-24gb",
    "NVIDIA L40": "l40-48gb",
    "NVIDIA L40S": "l40s-48gb",
    "NVIDIA RTX A6000": "rtx-a6000-48gb",
    "NVIDIA RTX 6000 Ada Generation": "rtx-6000-ada-48gb",
    "NVIDIA GeForce RTX 4090": "rtx-4090-24gb",
    "AMD Instinct MI300X": "mi300x-192gb",
    "TPU v5 lite": "tpu-v5e",
    "TPU v5": "tpu-v5p",
    "TPU v6 lite": "tpu-v6e",
    "cpu": "cpu",
}


@dataclass(frozen=True)
class At:
    """A device of jax, as far as it is looked at."""

    limit: int | None
    device_kind: str = "NVIDIA H100 80GB HBM3"
    process_index: int = 0
    platform: str = "gpu"
    slice_index: int = 0

    def memory_stats(self) -> dict[str, int] | None:
        """As jax says it."""
        return None if self.limit is None else {"bytes_limit": self.limit}


def cluster_at(*devices: At) -> ClusterSpec:
    given: Any = devices
    return cluster_of(given)


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_have_their_preset(kind: str) -> None:
    assert preset_for(kind).name == KINDS[kind]


def test_a_kind_that_is_not_known_can_be_measured() -> None:
    with pytest.raises(sa.MeshError, match=r"Quadro K42.*calibrate -o here.toml"):
        preset_for("Quadro K42")


def test_machines_have_devices_that_are_known() -> None:
    assert all(ClusterSpec.preset(name).device.name in PRESETS for name in cluster_names())


def test_memory_is_what_the_fullest_allocator_has() -> None:
    found = cluster_at(At(60 * GIB), At(59 * GIB + 12345))
    assert found.device.memory_bytes == 59 * GIB
    assert found.device == replace(preset_for("h100-80gb"), memory_bytes=59 * GIB)


def test_memory_of_devices_that_do_not_say_is_the_preset_s() -> None:
    assert cluster_at(At(None), At(None)).device == preset_for("h100-80gb")
    assert known_device("cpu", [None]) == preset_for("cpu")


def test_devices_of_other_processes_are_not_asked() -> None:
    assert cluster_at(At(60 * GIB), At(1, process_index=1)).device.memory_bytes == 60 * GIB


@pytest.mark.parametrize(("platform", "hosts", "each"), [("gpu", 2, 2), ("tpu", 4, 1)])
def test_hosts_are_what_is_linked_not_processes(platform: str, hosts: int, each: int) -> None:
    kind = {"gpu": "NVIDIA H100 80GB HBM3", "tpu": "TPU v4"}[platform]
    found = cluster_at(*(At(None, kind, number, platform, number // 2) for number in range(4)))
    assert (found.num_hosts, found.devices_per_host) == (hosts, each)


@dataclass(frozen=True)
class Chip:
    """A TPU of jax, as far as it is looked at."""

    coords: tuple[int, ...]
    process_index: int = 0
    device_kind: str = "TPU v4"
    platform: str = "tpu"
    slice_index: int = 0

    def memory_stats(self) -> None:
        """Says nothing."""


def chips(*shape: int) -> list[Any]:
    """A slice, host by host of 2x2x1, x fastest: as XLA numbers it."""
    x, y, z = (range(size) for size in shape)
    hosts = itertools.product(z, y[::2], x[::2])
    corners = [
        ((i + dx, j + dy, k), number)
        for number, (k, j, i) in enumerate(hosts)
        for dy, dx in itertools.product(range(2), range(2))
    ]
    return [Chip(corner, number) for corner, number in corners]


@pytest.mark.parametrize("shape", [(2, 2, 1), (4, 4, 4), (2, 2, 4), (4, 4, 8)])
def test_a_slice_of_tpus_is_its_torus_row_major(shape: tuple[int, ...]) -> None:
    given = chips(*shape)
    ordered = in_torus_order(given)
    assert [one.coords for one in ordered] == list(np.ndindex(*shape))
    name = "x".join(str(size) for size in shape if size > 1)
    assert cluster_of(ordered) == ClusterSpec.preset(f"tpu-v4:{name}")
    if ordered != tuple(given):
        assert cluster_of(given).torus is None


def test_tpus_that_fill_no_box_stay_in_their_order() -> None:
    given = chips(4, 4, 4)
    assert in_torus_order(given[:6]) == tuple(given[:6])
    assert cluster_of(given[:6:4]).torus is None
    twice = [replace(one, slice_index=number) for number in range(2) for one in given]
    assert in_torus_order(twice) == tuple(twice)
    cpus = jax.devices()
    assert in_torus_order(cpus[::-1]) == tuple(cpus[::-1])


@pytest.mark.parametrize(
    ("needed", "said"),
    [
        (50.0, "at the peak: fits"),
        (78.2, "at the peak: fits, with XLA_CLIENT_MEM_FRACTION=0.98"),
        (81.0, "at the peak: does not fit"),
    ],
)
def test_plans_on_paper_say_what_xla_has_to_be_given(needed: float, said: str) -> None:
    assert memory_text(needed * GIB, preset_for("h100-80gb")).endswith(said)
    at_hand = replace(preset_for("h100-80gb"), memory_bytes=82 * GIB)
    assert memory_text(needed * GIB, at_hand).endswith("at the peak: fits")


@pytest.mark.parametrize(
    ("cluster", "is_said"), [("g6.48xlarge:1", True), ("p5.48xlarge:1", False), ("cpu:1x8", False)]
)
def test_prices_from_data_sheets_are_said_to_be(cluster: str, is_said: bool) -> None:
    step = sa.parallelize(lambda w, x: jnp.tanh(x @ w), cluster=cluster)
    shape = jax.ShapeDtypeStruct((512, 512), "bfloat16")
    remarks = step.plan(shape, shape).remarks
    assert any("from its data sheet" in remark for remark in remarks) == is_said


def test_programs_that_take_more_than_xla_has_are_warned_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("alpa_runtime.local_executable.memory_limit", lambda device: 64)
    step = sa.parallelize(lambda x: jnp.tanh(x) @ x)
    x = jnp.eye(16)
    with pytest.warns(RuntimeWarning, match=r"needs .* GiB per device .*XLA_CLIENT_MEM_FRACTION"):
        found = step(x)
    assert jnp.allclose(found, jnp.tanh(x) @ x)


@pytest.mark.parametrize("kind", ["NVIDIA H100 80GB HBM3", "NVIDIA L4", "AMD Instinct MI300X"])
def test_clusters_of_devices_at_hand_are_written_and_read(kind: str, tmp_path: Path) -> None:
    for limits in ([None], [20 * GIB]):
        cluster = ClusterSpec(known_device(kind, limits), 2, 8)
        cluster.write(tmp_path / "here.toml")
        assert ClusterSpec.read(tmp_path / "here.toml") == cluster
