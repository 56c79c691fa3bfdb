"""How a function is parallelised, and on what."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import jax
from alpa_runtime import ensure_cpu_pool, in_torus_order
from alpa_runtime.platforms import platform_of

from stablehlo_alpa.api.methods import (
    FollowParallel,
    Method,
    PipeshardParallel,
    ShardParallel,
    mesh_size,
)
from stablehlo_alpa.api.on_cluster import OnCluster, cluster_spec, find_hosts
from stablehlo_alpa.api.stages import Target, ThisProcess
from stablehlo_alpa.cluster import (
    Cluster,
    UnlikeCluster,
    cluster_of,
    cluster_of_devices,
    cluster_text,
    one_part,
    part_memories,
)
from stablehlo_alpa.errors import MeshError, OptionError
from stablehlo_alpa.frontend import (
    BatchArguments,
    KernelRule,
    TracedProgram,
    check_trip_count_hint,
)
from stablehlo_alpa.inter_op import PipelineOptions, UniformStages
from stablehlo_alpa.intra_op import SolveOptions
from stablehlo_alpa.option_checks import checked_number, restated, settle
from stablehlo_alpa.planning import PlanOptions
from stablehlo_alpa.store import OFF, Store

if TYPE_CHECKING:
    from alpa_runtime.ray import RayCluster
    from alpa_runtime.ray.cluster import Hosts


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a function is parallelised; see ``parallelize``.

    Attributes:
        method: how; bound to its inputs where it follows them.
        devices: that were chosen; None for all.
        cluster: to run on instead.
        described: the cluster to plan for; its devices need not exist.
        batches: the arguments that hold a batch.
        rules: of custom calls, before those that are registered.
        reuse_gap: how far from the best a plan may be that has the strategies of one for other
            sizes, as a part of it; 0 or None where all are searched.
        trip_count_hint: how often loops run of which it is not known; None if nobody says.
        store: keeps what is computed on the way to plans.
    """

    method: Method
    devices: tuple[jax.Device, ...] | None
    cluster: RayCluster | None
    described: Cluster | None
    batches: BatchArguments
    rules: tuple[KernelRule, ...] = ()
    reuse_gap: float | None = None
    trip_count_hint: int | None = None
    store: Store = OFF

    def __post_init__(self) -> None:
        with restated():
            check_trip_count_hint(self.trip_count_hint)
        settle(self, checked_number, "reuse_gap", is_optional=True)
        gap = self.reuse_gap
        if gap is not None and not 0 <= gap < 1:
            raise OptionError(f"reuse_gap must be None or in [0, 1), got {gap!r}")
        if self.described is not None and self.method.device is not None:
            raise MeshError(
                f"cluster= has {cluster_text(self.described)} and method has device=: pass one of "
                "both"
            )

    @property
    def has_one_mesh(self) -> bool:
        """Whether the function becomes one program on devices of this process."""
        return self.cluster is None and self.method.has_one_mesh

    def find_devices(self) -> tuple[jax.Device, ...]:
        """The devices to run on, in the order of the flattened mesh."""
        if isinstance(self.method, FollowParallel):
            # Where the inputs lie, and as they do.
            given = self.devices or self.method.devices
            if given is not None:
                return given
        devices = self.devices or tuple(jax.devices())
        if self.devices is None and devices[0].platform == "cpu":
            ensure_cpu_pool(len(devices), client_exists=True)
        return in_torus_order(devices)

    def find_target(self, devices: tuple[jax.Device, ...] | None = None) -> Target:
        """Where plans are run: on all devices, or on those that are given."""
        options = self.method.runtime_options
        if self.cluster is not None:
            return OnCluster(self.cluster, options)
        is_described = self.described is not None
        return ThisProcess(devices or self.find_devices(), options, is_described)

    def check_devices(self) -> None:
        """Raises ``MeshError`` unless the mesh that the method asks for can be made."""
        method = self.method
        if self.described is not None:
            self._check_described(len(self.find_devices()))
        if method.mesh_shape is None:
            return
        if self.cluster is not None:
            self._check_cluster(find_hosts(self.cluster))
            return
        devices = self.find_devices()
        if mesh_size(method.mesh_shape) != len(devices):
            raise MeshError(
                f"mesh {'x'.join(map(str, method.mesh_shape))} has {mesh_size(method.mesh_shape)} "
                f"devices, {len(devices)} are given; pass devices= to choose some"
            )
        if isinstance(method, FollowParallel) and method.devices not in (None, devices):
            raise MeshError(
                f"the inputs lie on devices {[d.id for d in method.devices or ()]}, devices= are "
                f"{[d.id for d in devices]}: a function that follows its inputs runs where they "
                "lie, leave devices= out"
            )

    def find_cluster(self, devices: tuple[jax.Device, ...] | None = None) -> Cluster:
        """What is planned for: all devices, or those that are given."""
        method = self.method
        assert not isinstance(method.device, str)
        if self.cluster is not None:
            hosts = find_hosts(self.cluster)
            self._check_cluster(hosts)
            return cluster_spec(hosts, method.device)
        if self.described is not None:
            self._check_covers(self.described)
            return self.described
        if method.device is not None and method.mesh_shape is not None:
            # Devices on paper: nothing has to exist.
            return cluster_of_devices(method.device, mesh_size(method.mesh_shape))
        if devices is not None:
            return cluster_of(devices, method.device)
        self.check_devices()
        return cluster_of(self.find_devices(), method.device)

    def find_platform(self) -> str:
        """What programs are lowered for: the devices that will run them.

        A cluster that is described is taken for the devices at hand where there are as many.
        """
        if self.cluster is not None:
            return find_hosts(self.cluster).platform
        devices, paper = self.find_devices(), self.described
        if paper is None and self.method.device is not None and self.method.mesh_shape is not None:
            assert not isinstance(self.method.device, str)
            paper = cluster_of_devices(self.method.device, mesh_size(self.method.mesh_shape))
        if paper is not None and paper.num_devices != len(devices):
            return paper.parts[0].device.platform
        return platform_of(devices[0])

    def _check_described(self, found: int) -> None:
        described = self.described
        assert described is not None
        if described.num_devices != found:
            raise MeshError(
                f"the cluster has {described.num_devices} devices ({cluster_text(described)}), "
                f"{found} are there: it can be planned for and not run on"
            )

    def _check_covers(self, cluster: Cluster) -> None:
        if isinstance(cluster, UnlikeCluster) and self.method.follows_inputs:
            raise MeshError(
                f"{self.method.brief()} runs where its inputs lie, cluster= has parts of unlike "
                "devices: leave cluster= out"
            )
        if self.method.has_one_mesh:
            one_part(cluster, self.method.brief())
        shape = self.method.mesh_shape
        if shape is not None and mesh_size(shape) != cluster.num_devices:
            raise MeshError(
                f"mesh {'x'.join(map(str, shape))} has {mesh_size(shape)} devices, the cluster has "
                f"{cluster.num_devices}: {cluster_text(cluster)}"
            )

    def _check_cluster(self, hosts: Hosts) -> None:
        shape, found = self.method.mesh_shape, hosts.num_hosts * hosts.devices_per_host
        if shape is not None and mesh_size(shape) != found:
            raise MeshError(
                f"mesh {'x'.join(map(str, shape))} has {mesh_size(shape)} devices, the cluster has "
                f"{found}: {hosts.num_hosts} hosts with {hosts.devices_per_host} each"
            )

    def plan_options(self, program: TracedProgram) -> PlanOptions:
        """For a plan of one mesh."""
        method = self.method
        cluster = one_part(self.find_cluster(), method.brief())
        return PlanOptions(
            cluster=cluster,
            mesh_shapes=method.mesh_shapes(cluster.num_devices, cluster.num_hosts),
            axis_names=method.axis_names,
            solve=self._solve_options(cluster),
            prescription=method.prescription(program),
            pads_sizes=isinstance(method, ShardParallel) and method.pad,
            attention_keys=self._attention_keys(),
            store=self.store,
        )

    def _attention_keys(self) -> int | None:
        method = self.method
        # Other back ends know nothing of it.
        return method.attention_keys if method.backend == "alpa" else None

    def pipeline_options(self) -> PipelineOptions:
        """For a plan of a pipeline."""
        method, cluster = self.method, self.find_cluster()
        assert isinstance(method, PipeshardParallel)
        return PipelineOptions(
            cluster=cluster,
            stages=method.stages,
            num_chunks=method.num_chunks,
            reduction=method.reduction,
            solve=self._solve_options(cluster),
            budgets=part_memories(cluster) if method.memory_budget is None else (),
            pads_sizes=method.pad,
            attention_keys=method.attention_keys,
            store=self.store,
        )

    def accumulation_options(self, program: TracedProgram) -> PipelineOptions:
        """For a plan of several micro-batches on one mesh."""
        method = self.method
        cluster = one_part(self.find_cluster(), method.brief())
        return PipelineOptions(
            cluster=cluster,
            stages=UniformStages(1),
            reduction=method.reduction,
            prescription=method.prescription(program),
            mesh_shapes=method.mesh_shapes(cluster.num_devices, cluster.num_hosts),
            axis_names=method.axis_names,
            solve=self._solve_options(cluster),
            pads_sizes=isinstance(method, ShardParallel) and method.pad,
            attention_keys=self._attention_keys(),
            store=self.store,
        )

    def _solve_options(self, cluster: Cluster) -> SolveOptions:
        budget = self.method.memory_budget
        most = max(part.device.memory_bytes for part in cluster.parts)
        return SolveOptions(
            memory_budget=most if budget is None else float(budget),
            time_limit_s=self.method.time_limit_s,
        )
