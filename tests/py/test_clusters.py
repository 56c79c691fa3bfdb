"""Clusters that need not exist: presets, files, where groups lie, and planning for them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh
from typer.testing import CliRunner

import stablehlo_alpa as sa
from stablehlo_alpa import cli
from stablehlo_alpa.cluster import ClusterSpec, DeviceSpec, Group, Link, Ring, Torus, preset_for
from stablehlo_alpa.cost import (
    CollectiveKind,
    collective_seconds,
    operator_seconds,
    product_seconds,
    transfer_seconds,
)
from stablehlo_alpa.cost.curves import short_payload
from stablehlo_alpa.errors import MeshError

NAMES = {
    "p3.16xlarge:8": 64,
    "p4d.24xlarge:4": 32,
    "p5.48xlarge:16": 128,
    "dgx-a100:8": 64,
    "dgx-h100:16": 128,
    "dgx-b200:4": 32,
    "gb200-nvl72:1": 72,
    "tpu-v5p:4x4x4": 64,
    "tpu-v4:2x2x4": 16,
    "tpu-v5e:4x4": 16,
    "tpu-v6e:16x16": 256,
    "cpu:1x8": 8,
    "cpu:2x4": 8,
    "rtx-4090-24gb:1x4": 4,
    "l40s-48gb:2x8": 16,
}


@pytest.mark.parametrize("name", NAMES)
def test_presets_have_their_devices(name: str) -> None:
    assert ClusterSpec.preset(name).num_devices == NAMES[name]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("p4d.24xlrge:4", "did you mean 'p4d.24xlarge'"),
        ("p4d.24xlarge:many", "a name and sizes"),
        ("p4d.24xlarge:0", "a name and sizes"),
        ("p4d.24xlarge:1x16", "hosts have 8 devices"),
        ("tpu-v5e:4x4x4", "2 axes"),
        ("rtx-4090-24gb:8", "as in rtx-4090-24gb:1x8"),
        ("rtx-4090:1x8", "did you mean 'rtx-4090-24gb'"),
    ],
)
def test_presets_that_are_none(name: str, message: str) -> None:
    with pytest.raises(MeshError, match=message):
        ClusterSpec.preset(name)


@pytest.mark.parametrize("name", NAMES)
def test_files_and_pickles_give_the_cluster_back(name: str, tmp_path: Path) -> None:
    cluster = ClusterSpec.preset(name)
    cluster.write(tmp_path / "cluster.toml")
    assert ClusterSpec.read(tmp_path / "cluster.toml") == cluster
    assert pickle.loads(pickle.dumps(cluster)) == cluster


def test_a_file_may_describe_its_own_device(tmp_path: Path) -> None:
    link, network = Link(2e-6, 1e11), Link(1e-5, 5e10)
    rates = {"f32": 1e12, "vector": 1e11}
    device = DeviceSpec("mine", rates, 1e10, 1e11, link, network, host_bandwidth=2e10)
    cluster = ClusterSpec(device, 2, 4)
    cluster.write(tmp_path / "cluster.toml")
    assert ClusterSpec.read(tmp_path / "cluster.toml") == cluster


RATES = "flops = { f32 = 1e12, vector = 1e11 }\nmemory_bytes = 1e10\nmemory_bandwidth = 1e11\n"
HOST = "[links.host]\nlatency_s = 1e-6\nbandwidth = 1e11\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hosts = 1\ndevices_per_host = 8\n" + HOST, "device is missing"),
        ('device = "cpu"\nhosts = 2\n' + HOST, "devices_per_host is missing"),
        ('device = "cpu"\nhosts = 2\ndevices_per_host = 4\n' + HOST, "links.network is missing"),
        ('device = "cpu"\ndevices_per_host = 4\n', "links.host is missing"),
        ('device = "cpu"\ndevices_per_host = 4\n[links.host]\nlatency_s = 1.0', "host.bandwidth"),
        ('device = "cpu"\nnodes = 4\n', "unknown keys"),
        ('device = "cpu"\ndevices_per_host = 1.5\n', "must be a number"),
        ("device = [", "cluster.toml"),
        (
            "devices_per_host = 4\n" + HOST + '[device]\nplatform = "tpu v9"\n' + RATES,
            "platform of device 'device' must be the name of one of jax's",
        ),
        (
            "devices_per_host = 4\n" + HOST + "[device]\nhost_bandwidth = -1e10\n" + RATES,
            "host_bandwidth of device 'device' must not be negative, got -10000000000.0",
        ),
    ],
)
def test_files_that_lack_something(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(text)
    with pytest.raises(MeshError, match=message):
        ClusterSpec.read(path)


@pytest.mark.parametrize(
    ("name", "shape", "mask", "group"),
    [
        ("p3.16xlarge:1", (2, 4), 1, Group(2, 1, 2, stride=4)),
        ("p3.16xlarge:1", (2, 4), 2, Group(4, 1, 4)),
        ("p3.16xlarge:2", (2, 8), 1, Group(2, 2, 1, sharing=8)),
        ("p3.16xlarge:2", (4, 4), 1, Group(4, 2, 2, stride=4, sharing=4)),
        ("p3.16xlarge:2", (4, 4), 2, Group(4, 1, 4)),
        ("p3.16xlarge:2", (16,), 1, Group(16, 2, 8)),
        ("gb200-nvl72:1", (18, 4), 1, Group(18, 1, 18, hosts=18, stride=4)),
        ("gb200-nvl72:2", (2, 72), 1, Group(2, 2, 1, sharing=4)),
        ("tpu-v5p:4x4x4", (16, 4), 1, Group(16, 1, 16, rings=(Ring(4, True), Ring(4, True)))),
        ("tpu-v5e:4x4", (4, 4), 2, Group(4, 1, 4, rings=(Ring(4, False),))),
        ("tpu-v5e:16", (4, 4), 1, Group(4, 1, 4, rings=(Ring(4, True, 4),))),
    ],
)
def test_where_groups_lie(name: str, shape: tuple[int, ...], mask: int, group: Group) -> None:
    assert ClusterSpec.preset(name).logical_mesh(shape).groups[mask] == group


def test_uneven_groups_are_what_the_worst_of_them_is() -> None:
    """Three groups of four devices on hosts of six: the one in the middle reaches over both."""
    mesh = ClusterSpec(preset_for("cpu"), 2, 6).logical_mesh((3, 4))
    assert mesh.groups[2] == Group(4, 2, 2)


def test_a_mesh_covers_its_cluster() -> None:
    with pytest.raises(MeshError, match="16 devices"):
        ClusterSpec.preset("p3.16xlarge:2").logical_mesh((2, 4))


def test_parts_of_a_torus_are_open() -> None:
    torus = Torus((4, 4, 4), (True, True, True))
    assert torus.part(16) == Torus((1, 4, 4), (False, True, True))
    assert torus.part(8) == Torus((1, 2, 4), (False, False, True))
    with pytest.raises(MeshError, match="no part"):
        torus.part(3 * 64)


def seconds(name: str, shape: tuple[int, ...], mask: int, kind: CollectiveKind, size: float) -> Any:
    cluster = ClusterSpec.preset(name)
    mesh = cluster.logical_mesh(shape)
    return collective_seconds(kind, mask, size, mesh, cluster.device)[0]


def test_pairs_of_v100_have_one_link() -> None:
    """Bus bandwidth of large all-reduces: 22 GB/s of two devices, 134 of eight."""
    pairs = seconds("p3.16xlarge:1", (4, 2), 2, CollectiveKind.ALL_REDUCE, 1e9)
    assert 1e9 / pairs == pytest.approx(22e9, rel=0.05)
    whole = seconds("p3.16xlarge:1", (8,), 1, CollectiveKind.ALL_REDUCE, 1e9)
    assert 7 / 4 * 1e9 / whole == pytest.approx(134e9, rel=0.05)


def test_strided_groups_of_v100_are_slower() -> None:
    near = seconds("p3.16xlarge:1", (2, 4), 2, CollectiveKind.ALL_REDUCE, 1e9)
    far = seconds("p3.16xlarge:1", (4, 2), 1, CollectiveKind.ALL_REDUCE, 1e9)
    assert 1.5 < far / near < 2.5


def test_groups_share_the_network_of_a_host() -> None:
    alone = seconds("p3.16xlarge:2", (16,), 1, CollectiveKind.ALL_REDUCE, 1e9)
    shared = seconds("p3.16xlarge:2", (2, 8), 1, CollectiveKind.ALL_REDUCE, 1e9)
    assert shared == pytest.approx(8 * alone, rel=0.1)


def test_a_rack_has_no_network_inside() -> None:
    inside = seconds("gb200-nvl72:1", (2, 36), 1, CollectiveKind.ALL_GATHER, 1e9)
    across = seconds("gb200-nvl72:2", (2, 72), 1, CollectiveKind.ALL_GATHER, 1e9)
    assert across > 5 * inside


def test_rings_of_a_torus() -> None:
    """Closed rings send both ways, two axes at a time twice as much; interleaved groups share."""
    size, link = 1e9, 90e9
    one = seconds("tpu-v5p:4x4x4", (4, 4, 4), 1, CollectiveKind.ALL_GATHER, size)
    assert one == pytest.approx(3 / 4 * size / (2 * link), rel=0.01)
    two = seconds("tpu-v5p:4x4x4", (16, 4), 1, CollectiveKind.ALL_GATHER, size)
    assert two == pytest.approx(15 / 16 * size / (4 * link), rel=0.01)
    line = seconds("tpu-v5e:4x4", (4, 4), 1, CollectiveKind.ALL_GATHER, size)
    assert line == pytest.approx(3 / 4 * size / 45e9, rel=0.01)
    both = seconds("tpu-v5e:16", (4, 4), 1, CollectiveKind.ALL_GATHER, size)
    assert both == pytest.approx(4 * 3 / 4 * size / (2 * 45e9), rel=0.01)


def test_collectives_take_longer_the_more_they_send() -> None:
    """But where messages become too long for the protocol of low latency, as was measured."""
    sizes = np.geomspace(2**10, 2**34, 60)
    for name, shape in (("p5.48xlarge:2", (2, 8)), ("gb200-nvl72:1", (72,)), ("dgx-a100:4", (32,))):
        cluster = ClusterSpec.preset(name)
        mesh = cluster.logical_mesh(shape)
        for kind in list(CollectiveKind)[:5]:
            for mask in range(1, 1 << len(shape)):
                kinds, masks = np.full(60, int(kind)), np.full(60, mask)
                found = collective_seconds(kinds, masks, sizes, mesh, cluster.device)
                last = short_payload(kind, mesh.groups[mask].per_domain)
                is_change = (sizes[:-1] <= last) & (sizes[1:] > last)
                assert ((np.diff(found) >= 0) | is_change).all(), (name, kind, mask)


def test_transfers_share_the_network_of_a_host() -> None:
    cluster = ClusterSpec(preset_for("cpu"), 2, 4)
    link, network = cluster.device_link, cluster.host_network
    assert transfer_seconds({}, cluster) == 0
    inside = transfer_seconds({(0, 1): 1e9, (2, 3): 1e9}, cluster)
    assert inside == pytest.approx(link.alpha_s + 1e9 / link.bandwidth)
    across = transfer_seconds({(0, 4): 1e9, (1, 5): 1e9}, cluster)
    assert across == pytest.approx(network.alpha_s + 2e9 / network.bandwidth)


# Front doors.


def layered(params: Any, x: Any) -> Any:
    def loss(params: Any) -> Any:
        y = x
        for w in params:
            y = jnp.tanh(y @ w)
        return jnp.mean(y**2)

    return sa.value_and_grad(loss)(params)


PARAMS = [jax.ShapeDtypeStruct((256, 256), "float32")] * 4
X = jax.ShapeDtypeStruct((256, 256), "float32")

METHODS = [
    sa.ShardParallel(),
    sa.DataParallel(),
    sa.Zero2Parallel(),
    sa.Zero3Parallel(),
    sa.ManualSharding(),
    sa.PipeshardParallel(
        num_micro_batches=2, layers=sa.AutoLayers(num_layers=2), stages=sa.UniformStages(2)
    ),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_every_method_plans_for_a_cluster_that_is_not_there(method: Any) -> None:
    step = sa.parallelize(layered, method=method, cluster="p4d.24xlarge:2")
    plan = step.plan(PARAMS, X)
    assert plan.runtime.num_devices == 16
    assert plan.step_time_s > 0
    assert "stablehlo" in step.lower(PARAMS, X).as_text()
    with pytest.raises(sa.MeshError, match=r"16 devices.* 8 are there.*plan"):
        step.compile(PARAMS, X)


def test_a_cluster_with_as_many_devices_is_run_on() -> None:
    step = sa.parallelize(lambda x: x * 2, cluster=ClusterSpec.preset("p3.16xlarge:1"))
    np.testing.assert_array_equal(step(jnp.ones((8, 8))), 2)


def test_clusters_that_do_not_fit() -> None:
    with pytest.raises(sa.MeshError, match="pass one of both"):
        sa.parallelize(layered, method=sa.ShardParallel(device="cpu"), cluster="dgx-h100:1")
    with pytest.raises(sa.MeshError, match="did you mean"):
        sa.parallelize(layered, cluster="dgx-h10:1")
    with pytest.raises(sa.MeshError, match="must be a ClusterSpec"):
        sa.parallelize(layered, cluster=8)  # type: ignore[call-overload]
    step = sa.parallelize(layered, method=sa.ShardParallel(mesh_shape=(2, 4)), cluster="dgx-h100:2")
    with pytest.raises(sa.MeshError, match="mesh 2x4 has 8 devices, the cluster has 16"):
        step.plan(PARAMS, X)


def test_partition_and_shardings_plan_for_a_cluster() -> None:
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("x", "y"))
    into, _ = sa.shardings(layered, mesh, PARAMS, X, cluster="p3.16xlarge:1")
    assert len(into) == 2
    with pytest.raises(sa.MeshError, match="16 devices"):
        sa.shardings(layered, mesh, PARAMS, X, cluster="p3.16xlarge:2")
    with pytest.raises(sa.MeshError, match="no cluster preset"):
        sa.partition(lambda x: x, cluster="abacus")


def test_the_command_line_plans_for_a_cluster(tmp_path: Path) -> None:
    path = tmp_path / "step.mlir"
    path.write_text(jax.jit(layered).lower(PARAMS, X).as_text())
    shown = CliRunner().invoke(cli.app, ["plan", str(path), "--cluster", "dgx-a100:2"])
    assert shown.exit_code == 0, shown.output
    assert "a100-80gb" in shown.output
    refused = CliRunner().invoke(
        cli.app, ["plan", str(path), "--cluster", "dgx-a100:2", "--mesh", "2x4"]
    )
    assert isinstance(refused.exception, MeshError)


def test_random_bits_and_sorts_have_rates_of_their_own() -> None:
    ops = ("stablehlo.add", "stablehlo.sort", "stablehlo.rng_bit_generator")
    one, flops, size = np.ones(3, int), np.zeros(3), np.full(3, 1e9)
    for name, is_measured in (("a100-40gb", True), ("cpu", False)):
        found = operator_seconds(ops, ("f32",) * 3, one, flops, size, preset_for(name))
        assert (found[1:] > found[0]).all() == is_measured


def test_products_have_a_launch_and_an_efficiency() -> None:
    device = preset_for("h100-80gb")
    ops = ("stablehlo.dot_general", "stablehlo.reduce")
    one = np.ones(2)
    small = operator_seconds(ops, ("bf16",) * 2, np.ones(2, int), one, one, device)
    assert small[0] > 2e-6 > small[1]
    size = 2 * 8192.0**3
    large = product_seconds(np.array([size]), np.array([6 * 8192.0**2]), "bf16", device)[0]
    assert 0.7 < size / large / device.rate("bf16") < 0.85
