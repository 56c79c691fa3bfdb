"""Which nodes of Ray are hosts of a plan, and what is said and done where they are missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest
from injected_faults import wait_until_gone
from models.case import TrainCase
from test_pipeline import QUICK, TWO, Pipeline, make_case, parallel_step, train
from test_ray import after_a_step

import stablehlo_alpa
from stablehlo_alpa import ClusterError, RayCluster

pytest.importorskip("ray")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def local_ray() -> Iterator[None]:
    """Ray starts with the first test and ends with the last."""
    yield
    stablehlo_alpa.shutdown()


def test_gpus_that_are_not_there() -> None:
    step = parallel_step(
        make_case(QUICK[0]), QUICK[0], RayCluster(platform="gpu", num_hosts=1, devices_per_host=8)
    )
    with pytest.raises(ValueError, match="1 hosts with 8 GPUs are wanted, Ray has nodes with"):
        step.plan(*make_case(QUICK[0]).args)


def nodes(cpus: list[float]) -> list[dict[str, Any]]:
    """What Ray says of nodes with so many CPUs each."""
    return [
        {
            "Alive": True,
            "NodeManagerAddress": f"10.0.0.{number}",
            "Resources": {"CPU": count} if count else {},
        }
        for number, count in enumerate(cpus, start=1)
    ]


def test_hosts_are_nodes_with_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A head node is often started with ``--num-cpus=0``."""
    import ray
    from alpa_runtime.ray import cluster

    monkeypatch.setattr(cluster, "init", lambda _: None)
    monkeypatch.setattr(ray, "nodes", lambda: nodes([0, 2, 2]))
    assert cluster.find_hosts(RayCluster(), 4).nodes == ("10.0.0.2", "10.0.0.3")
    # More than there are: wherever there is room.
    virtual = cluster.find_hosts(RayCluster(num_hosts=3), 4)
    assert (virtual.num_hosts, virtual.nodes) == (3, ())
    monkeypatch.setattr(ray, "nodes", lambda: nodes([0, 0]))
    with pytest.raises(ValueError, match=r"a node with a CPU is wanted, .* with \[0, 0\] CPUs"):
        cluster.find_hosts(RayCluster(), 4)


def test_hosts_are_those_of_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that joins later is none, and one that is lost is replaced by the session."""
    import ray
    from alpa_runtime.ray import cluster

    class Running:
        is_over = False

        def close(self) -> None:
            self.is_over = True

    wanted = RayCluster(num_hosts=2, deadline_s=17.0)
    monkeypatch.setattr(cluster, "init", lambda _: None)
    monkeypatch.setattr(ray, "nodes", lambda: nodes([2, 2]))
    hosts = cluster.find_hosts(wanted, 4)
    session = cluster.shared_session(wanted, hosts, Running)
    monkeypatch.setattr(ray, "nodes", lambda: nodes([0, 2, 2, 2]))
    assert cluster.find_hosts(wanted, 4) == hosts
    assert cluster.find_hosts(RayCluster(num_hosts=2), 4).nodes == ("10.0.0.2", "10.0.0.3")
    session.close()
    assert cluster.find_hosts(wanted, 4).nodes == ("10.0.0.2", "10.0.0.3")


def test_what_is_free_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that is lost, or has not joined yet."""
    from alpa_runtime.ray import launcher
    from alpa_runtime.ray.cluster import Hosts, addresses_of, alive_nodes, init

    init()
    monkeypatch.setattr(launcher, "_RESERVE_S", 0.2)
    (here,) = addresses_of(alive_nodes())
    hosts = Hosts(2, 4, "cpu", (here, "198.51.100.2"))
    message = (
        r"no room for a mesh on hosts 1 to 1 \(198\.51\.100\.2\): 1 processes with a CPU and 0 "
        r"GPUs each are wanted, \d+ CPUs and 0 GPUs are free on all nodes \([\d.]+\)"
    )
    with pytest.raises(ValueError, match=message):
        launcher.Launcher(RayCluster(), hosts).launch(range(4, 8))


def test_another_node_takes_the_place_of_a_lost_one() -> None:
    import ray
    from alpa_runtime.ray import launcher
    from alpa_runtime.ray.cluster import Hosts, addresses_of, alive_nodes, init

    init()
    (here,) = addresses_of(alive_nodes())
    lost = Hosts(1, 4, "cpu", ("198.51.100.1",))
    group, (actor,) = launcher.Launcher(RayCluster(), lost).launch(range(4))
    try:
        node, _ = ray.get(actor.whereabouts.remote())
        assert [one["NodeManagerAddress"] for one in ray.nodes() if one["NodeID"] == node] == [here]
    finally:
        ray.util.remove_placement_group(group)


def losses_until_failure(step: Any, case: TrainCase, state: Any) -> None:
    """Processes outlive the raylet of their node by moments, and may do some steps yet."""
    for _ in range(200):
        state, metrics = step(state, case.batch, case.rng)
        float(metrics["loss"])


@pytest.mark.matrix
def test_meshes_lie_on_several_nodes() -> None:
    """Three raylets on this machine: a head without a CPU, and a node for each stage."""
    import ray
    from ray.cluster_utils import Cluster

    stablehlo_alpa.shutdown()
    several = Cluster()
    several.add_node(num_cpus=0, include_dashboard=False)
    several.add_node(num_cpus=1, node_ip_address="127.0.0.2")
    lost = several.add_node(num_cpus=1, node_ip_address="127.0.0.3")
    try:
        pipeline = Pipeline("mlp", 4, TWO)
        case = make_case(pipeline)
        expected = train(parallel_step(case, pipeline), case)
        cluster = RayCluster(several.address, devices_per_host=4, bind="node")
        step = parallel_step(case, pipeline, cluster)
        found = train(step, case)
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(a, b)
        processes = step.compile(*case.args).executable.processes
        assert len({node for node, _ in processes.values()}) == 2
        state = after_a_step(step, case)
        several.remove_node(lost, allow_graceful=False)
        with pytest.raises(ClusterError, match=r"mesh \d host 0 of step died"):
            losses_until_failure(step, case, state)
        stablehlo_alpa.shutdown()
        wait_until_gone([pid for _, pid in processes.values()])
    finally:
        stablehlo_alpa.shutdown()
        ray.shutdown()
        several.shutdown()
