"""Clusters of unlike parts: how they are named, refused, priced, planned for and run on."""

from __future__ import annotations

import itertools
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh
from typer.testing import CliRunner

import stablehlo_alpa as sa
from stablehlo_alpa import cli
from stablehlo_alpa.cluster import ClusterSpec, Link, UnlikeCluster, as_cluster, preset_for
from stablehlo_alpa.cost import between_seconds, transfer_seconds
from stablehlo_alpa.errors import InfeasibleError, MeshError
from stablehlo_alpa.planning import read_plan

CPU = preset_for("cpu")
# A third of the rate, a quarter of the memory.
SLOW = replace(
    CPU,
    name="slow-cpu",
    flops={name: rate / 3 for name, rate in CPU.flops.items()},
    memory_bytes=CPU.memory_bytes / 4,
)
LINK = Link(1e-5, 5e8)
TWO = UnlikeCluster((ClusterSpec(CPU, 1, 4), ClusterSpec(SLOW, 1, 4)), LINK)
NAME = "p4d.24xlarge:2 + p3.16xlarge:4"


def parameters(layers: int = 6, width: int = 128) -> list[jax.Array]:
    keys = jax.random.split(jax.random.key(0), layers)
    return [jax.random.normal(key, (width, width)) / 12 for key in keys]


def train(weights: list[jax.Array], x: jax.Array) -> tuple[list[jax.Array], jax.Array]:
    def loss_of(weights: list[jax.Array]) -> jax.Array:
        y = x
        for weight in weights:
            y = jnp.tanh(y @ weight)
        return jnp.mean(y**2)

    loss, grads = sa.value_and_grad(loss_of)(weights)
    return [w - 0.1 * g for w, g in zip(weights, grads, strict=True)], loss


def batch() -> jax.Array:
    return jax.random.normal(jax.random.key(1), (64, 128))


def pipeline(**options: Any) -> sa.PipeshardParallel:
    options = {"layers": sa.AutoLayers(num_layers=6), "num_micro_batches": 4, **options}
    return sa.PipeshardParallel(**options)


def planned(cluster: Any, **options: Any) -> Any:
    step = sa.parallelize(train, method=pipeline(**options), cluster=cluster)
    return step.plan(parameters(), batch())


# Names and files.


def test_names_joined_by_plus_are_parts() -> None:
    cluster = as_cluster(NAME)
    assert isinstance(cluster, UnlikeCluster)
    assert [part.device.name for part in cluster.parts] == ["a100-40gb", "v100-16gb"]
    assert (cluster.num_hosts, cluster.num_devices) == (6, 48)
    # No host reaches more than the slower network has.
    assert cluster.between.bandwidth == cluster.parts[1].host_network.bandwidth
    assert str(cluster) == "2 hosts of 8 a100-40gb + 4 hosts of 8 v100-16gb"
    assert cluster == UnlikeCluster.preset("p4d.24xlarge:2+p3.16xlarge:4")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("p3.16xlarge:2 + p3.16xlarge:4", "names p3.16xlarge twice"),
        ("p3.16xlarge:2 + nothing:4", "no cluster preset 'nothing'"),
        ("p3.16xlarge:2 +", "no cluster preset ''"),
        ("p3.16xlarge:2 + tpu-v5e:4x4", "parts are of platforms cuda, tpu"),
    ],
)
def test_names_that_make_no_cluster(name: str, message: str) -> None:
    with pytest.raises(MeshError, match=message):
        as_cluster(name)


def test_what_has_parts_says_who_takes_it() -> None:
    with pytest.raises(MeshError, match=r"UnlikeCluster\.preset"):
        ClusterSpec.preset(NAME)
    with pytest.raises(MeshError, match="two parts or more, got 1"):
        UnlikeCluster((ClusterSpec(CPU, 1, 4),), LINK)
    missing: Any = None
    with pytest.raises(MeshError, match="link between parts must be a Link"):
        UnlikeCluster(TWO.parts, missing)


@pytest.mark.parametrize("cluster", [TWO, UnlikeCluster.preset(NAME)])
def test_files_and_pickles_give_the_parts_back(cluster: UnlikeCluster, tmp_path: Path) -> None:
    cluster.write(tmp_path / "unlike.toml")
    assert UnlikeCluster.read(tmp_path / "unlike.toml") == cluster
    assert as_cluster(str(tmp_path / "unlike.toml")) == cluster
    assert pickle.loads(pickle.dumps(cluster)) == cluster
    with pytest.raises(MeshError, match=r"UnlikeCluster\.read it"):
        ClusterSpec.read(tmp_path / "unlike.toml")


FILE = """
[links.between]
latency_s = 1e-5
bandwidth = 1e9

[[parts]]
machines = "p4d.24xlarge:2"

[[parts]]
device = "v100-16gb"
hosts = 1
devices_per_host = 8
links.host = {latency_s = 1e-5, bandwidth = 1e11}
"""


def test_parts_of_a_file_are_named_or_described(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(FILE)
    found = UnlikeCluster.read(tmp_path / "a.toml")
    assert found.parts[0] == ClusterSpec.preset("p4d.24xlarge:2")
    assert found.parts[1].device_link == Link(1e-5, 1e11)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[links.between]", "[links.network]", "links.between is missing: hosts of one part"),
        ('machines = "p4d', 'machines = "p5d', r"parts\[0\]: no cluster preset 'p5d"),
        ("hosts = 1\n", "", None),
        ("devices_per_host = 8\n", "", r"parts\[1\]: devices_per_host is missing"),
        ("[links.between]", "hosts = 3\n[links.between]", "they are of a part"),
        (':2"', ':2"\nhosts = 2', "machines says all of a part"),
    ],
)
def test_files_of_parts_that_lack_something(
    old: str, new: str, message: str | None, tmp_path: Path
) -> None:
    assert old in FILE
    (tmp_path / "a.toml").write_text(FILE.replace(old, new, 1))
    if message is None:
        assert UnlikeCluster.read(tmp_path / "a.toml").parts[1].num_hosts == 1
        return
    with pytest.raises(MeshError, match=message):
        as_cluster(str(tmp_path / "a.toml"))


# Prices.


def test_what_crosses_parts_crosses_their_link() -> None:
    inside = transfer_seconds({(4, 5): 1e6}, TWO)
    assert inside == transfer_seconds({(0, 1): 1e6}, TWO.parts[1])
    across = transfer_seconds({(0, 4): 1e6, (1, 5): 1e6}, TWO)
    # Both leave one host and reach one host: they share its link.
    assert across == pytest.approx(between_seconds(2e6, TWO, 0, 1))
    assert across == pytest.approx(1e-5 + 2e6 / 5e8)
    both = {(0, 4): 1e6, (1, 5): 1e6, (4, 5): 1e6}
    assert transfer_seconds(both, TWO) == pytest.approx(max(across, inside))


# Plans.


@pytest.mark.slow
@pytest.mark.parametrize("is_turned", [False, pytest.param(True, marks=pytest.mark.matrix)])
def test_a_pipeline_on_unlike_parts_computes_what_jit_does(is_turned: bool) -> None:
    cluster = replace(TWO, parts=TWO.parts[::-1]) if is_turned else TWO
    step = sa.parallelize(train, method=pipeline(), cluster=cluster)
    weights, x = parameters(), batch()
    plan = step.plan(weights, x)
    fast = 1 if is_turned else 0
    for stage in plan.stages:
        # Each lies in one part, and is priced by what that part has.
        part = stage.place.part
        assert {cluster.part_of(device) for device in stage.devices} == {part}
        assert stage.mesh.cluster.device == cluster.parts[part].device
    used = sorted(device for stage in plan.stages for device in stage.devices)
    assert used == list(range(8))
    layers = [sum(len(s.layers) for s in plan.stages if s.place.part == p) for p in range(2)]
    assert layers[fast] > layers[1 - fast]
    expected: Any = (weights, None)
    got: Any = expected
    for _ in range(2):
        expected, got = jax.jit(train)(expected[0], x), step(got[0], x)
    jax.tree.map(
        lambda one, two: np.testing.assert_allclose(one, two, rtol=2e-5, atol=1e-6), got, expected
    )


@pytest.mark.slow
def test_equal_parts_have_the_plan_of_their_sum() -> None:
    """Where no stage of the sum reaches over both hosts, which those of parts cannot."""
    whole = ClusterSpec(CPU, 2, 4, network=Link(1e-6, 5e8))
    parts = UnlikeCluster((ClusterSpec(CPU, 1, 4),) * 2, whole.host_network)
    method = pipeline(layers=sa.AutoLayers(num_layers=4), num_micro_batches=8)
    weights, x = parameters(4, 512), jnp.ones((64, 512))
    one, two = (
        sa.parallelize(train, method=method, cluster=cluster).plan(weights, x)
        for cluster in (whole, parts)
    )
    assert all(stage.submesh[0] == 1 for stage in one.stages)
    places = [(stage.layers, stage.submesh, stage.devices) for stage in one.stages]
    assert [(stage.layers, stage.submesh, stage.devices) for stage in two.stages] == places
    assert two.schedule.name == one.schedule.name
    # Both are searched to within a hundredth: logical meshes that are about as good may differ.
    assert two.step_time_s == pytest.approx(one.step_time_s, rel=1e-2)


def test_a_slow_link_is_crossed_once() -> None:
    slow = replace(TWO, between=Link(1e-5, 1e6))
    parts = [stage.place.part for stage in planned(slow).stages]
    assert sum(one != two for one, two in itertools.pairwise(parts)) == 1


@pytest.mark.matrix
def test_memory_is_that_of_each_part() -> None:
    # Less than the stages that the part has where there is room.
    free = planned(TWO, schedule="1f1b")
    needed = max(
        free.simulation.peak_bytes[free.schedule.mesh_of(number)]
        for number, stage in enumerate(free.stages)
        if stage.place.part == 1
    )
    small = replace(SLOW, memory_bytes=0.9 * needed)
    cluster = UnlikeCluster((TWO.parts[0], ClusterSpec(small, 1, 4)), LINK)
    plan = planned(cluster, schedule="1f1b")
    for number, stage in enumerate(plan.stages):
        there = cluster.parts[stage.place.part].device.memory_bytes
        assert plan.simulation.peak_bytes[plan.schedule.mesh_of(number)] <= there


def test_a_part_that_holds_no_layer_is_named() -> None:
    tiny = replace(SLOW, name="tiny", memory_bytes=100.0)
    cluster = UnlikeCluster((TWO.parts[0], ClusterSpec(tiny, 1, 4)), LINK)
    with pytest.raises(InfeasibleError, match=r"no layer fits .* part 1 \(1 host of 4 tiny\)"):
        planned(cluster)


def test_fewer_layers_than_parts_are_refused() -> None:
    with pytest.raises(ValueError, match=r"every part of the cluster .* has a stage of its own"):
        planned(TWO, layers=sa.AutoLayers(num_layers=1))


@pytest.mark.parametrize(
    "method",
    [
        sa.ShardParallel(),
        sa.DataParallel(num_micro_batches=2),
        sa.Zero3Parallel(),
        sa.MegatronParallel(tensor=2),
        sa.ExpertParallel(),
    ],
    ids=lambda method: type(method).__name__,
)
def test_methods_of_one_mesh_are_refused(method: Any) -> None:
    step = sa.parallelize(train, method=method, cluster=TWO)
    message = rf"{type(method).__name__}\(.*name one of them as the cluster, or take Pipeshard"
    with pytest.raises(MeshError, match=message):
        step.plan(parameters(), batch())


def test_programs_that_others_partition_are_refused() -> None:
    mesh, cluster = Mesh(np.array(jax.devices()), ("x",)), cast(Any, TWO)
    with pytest.raises(MeshError, match="partition splits over one mesh"):
        sa.partition(train, cluster=cluster)
    with pytest.raises(MeshError, match="shardings splits over one mesh"):
        sa.shardings(train, mesh, parameters(), batch(), cluster=cluster)


# Stages that are given.


def test_given_stages_name_their_parts() -> None:
    stages = sa.ManualStages((1, 5), ((1, 4), (1, 4)), parts=(1, 0))
    plan = planned(TWO, stages=stages)
    assert [stage.place.part for stage in plan.stages] == [1, 0]
    assert [stage.devices for stage in plan.stages] == [(4, 5, 6, 7), (0, 1, 2, 3)]
    uniform = planned(TWO, stages=sa.UniformStages(4))
    assert [stage.place.part for stage in uniform.stages] == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        (sa.ManualStages((1, 5), ((1, 4), (1, 4))), "have 8 devices, part 0 of the cluster has 4"),
        (sa.ManualStages((1, 5), ((1, 4), (1, 4)), parts=(0, 2)), "the cluster has 2"),
        (sa.UniformStages(1), "does not divide into submeshes of 8"),
    ],
)
def test_given_stages_that_do_not_fit_the_parts(stages: Any, message: str) -> None:
    with pytest.raises(MeshError, match=message):
        planned(TWO, stages=stages)


def test_as_many_parts_as_stages() -> None:
    with pytest.raises(MeshError, match=r"2 stages need as many parts, got parts=\(0,\)"):
        sa.ManualStages((1, 5), ((1, 4), (1, 4)), parts=(0,))


# What is shown.


@pytest.mark.slow
def test_other_cuts_are_explained_by_their_parts() -> None:
    step = sa.parallelize(train, method=pipeline(schedule="1f1b"), cluster=TWO)
    plan = step.plan(parameters(), batch())
    rows = [row for row in plan.explain_stages(cuts=2).rows if row.cut is not None]
    assert rows
    for row in rows:
        assert "of part 1" in str(row.cut)
        again = sa.parallelize(train, method=row.method, cluster=TWO)
        assert again.plan(parameters(), batch()).step_time_s == pytest.approx(row.step_time_s)


@pytest.mark.slow
def test_files_pages_and_simulations_know_the_parts(tmp_path: Path) -> None:
    plan = planned(TWO, schedule="1f1b")
    path = tmp_path / "step.plan"
    plan.save(path)
    saved = read_plan(path)
    assert saved.cluster == TWO
    assert saved.step_time_s == pytest.approx(plan.step_time_s)
    assert [stage.place for stage in saved.stages] == [stage.place for stage in plan.stages]
    runner = CliRunner()
    shown = runner.invoke(cli.app, ["view", str(path), "-o", str(tmp_path / "page.html")])
    assert shown.exit_code == 0, shown.output
    page = (tmp_path / "page.html").read_text()
    assert "1 host of 4 cpu + 1 host of 4 slow-cpu" in page
    assert "between parts links: 0.5 GB/s" in page
    simulated = runner.invoke(cli.app, ["simulate", str(path), "--schedule", "gpipe"])
    assert simulated.exit_code == 0, simulated.output
    assert "(slow-cpu)" in str(plan)


@pytest.mark.slow
def test_the_command_line_plans_for_parts() -> None:
    options = ["--batch", "16", "--micro-batches", "4", "--layers", "2", "--no-store"]
    found = CliRunner().invoke(
        cli.app,
        ["plan", "gpt-tiny", "--cluster", "p4d.24xlarge:1 + p3.16xlarge:1", *options, "--json"],
    )
    assert found.exit_code == 0, found.output
    record = json.loads(found.stdout)
    assert [part["device"] for part in record["cluster"]["parts"]] == ["a100-40gb", "v100-16gb"]
    devices = [device for stage in record["stages"] for device in stage["devices"]]
    assert sorted(devices) == list(range(16))
