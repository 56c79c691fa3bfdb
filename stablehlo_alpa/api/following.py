"""A function that runs where the state of a pipeline lies, and as it lies."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import jax
from alpa_runtime import ensure_cpu_pool

from stablehlo_alpa.api.methods import FollowedMesh, FollowParallel
from stablehlo_alpa.cluster import ClusterSpec
from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend import Function, TracedProgram
from stablehlo_alpa.inter_op import ManualStages, PipelineOptions
from stablehlo_alpa.inter_op.slicing import mark_layers
from stablehlo_alpa.intra_op import SolveOptions
from stablehlo_alpa.layers import FollowInputs, flatten_for, itinerary


@dataclasses.dataclass(frozen=True)
class Following:
    """The stages of a function whose inputs lie on several meshes.

    Attributes:
        method: bound to the inputs.
        layers: one for each time that the function comes to a mesh.
        meshes: per layer its mesh.
    """

    method: FollowParallel
    layers: FollowInputs
    meshes: tuple[FollowedMesh, ...]

    @classmethod
    def of(
        cls,
        method: FollowParallel,
        function: Function,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Following:
        """Looks at what the function uses when.

        Raises:
            TraceError: it takes gradients.
        """
        traced = function.trace(args, kwargs)
        layers = FollowInputs(method.flat_meshes)
        stops = itinerary(layers, flatten_for(layers, traced.jaxpr)).stops
        return cls(method, layers, tuple(method.meshes[number] for number in stops))

    @property
    def devices(self) -> tuple[jax.Device, ...] | None:
        """Devices of this process, in the order in which stages take them: the largest mesh first.

        None where the meshes are a cluster's.
        """
        order = sorted(dict.fromkeys(self.meshes), key=lambda mesh: -math.prod(mesh.shape))
        devices = tuple(device for mesh in order for device in mesh.devices or ())
        if not devices:
            return None
        if devices[0].platform == "cpu":
            ensure_cpu_pool(len(jax.devices()), client_exists=True)
        return devices

    def options(self, program: TracedProgram, cluster: ClusterSpec) -> PipelineOptions:
        """For the plan of the function, traced in these layers.

        Args:
            program: the function.
            cluster: the devices.

        Raises:
            TraceError: it takes gradients.
        """
        if program.has_gradients:
            raise TraceError(
                f"{program.name} takes gradients and follows a state that lies on several meshes: "
                "a training step takes PipeshardParallel(...), FollowParallel() is for what only "
                "reads the state (evaluation, sampling, metrics)"
            )
        count = mark_layers(program, self.method.num_micro_batches or 1).num_layers
        meshes = self.meshes[:count]
        numbers = {mesh: number for number, mesh in enumerate(dict.fromkeys(meshes))}
        longest = max(meshes, key=lambda mesh: len(mesh.axis_names))
        return PipelineOptions(
            cluster=cluster,
            stages=ManualStages(
                layers=(1,) * count,
                submeshes=tuple(_submesh(math.prod(mesh.shape), cluster) for mesh in meshes),
                mesh_shapes=tuple(mesh.shape for mesh in meshes),
                meshes=tuple(numbers[mesh] for mesh in meshes),
            ),
            prescription=self.method.prescription(program),
            axis_names=longest.axis_names,
            attention_keys=self.method.attention_keys,
            solve=SolveOptions(
                memory_budget=self._budget(cluster), time_limit_s=self.method.time_limit_s
            ),
        )

    def _budget(self, cluster: ClusterSpec) -> float:
        budget = self.method.memory_budget
        return cluster.device.memory_bytes if budget is None else float(budget)


def _submesh(size: int, cluster: ClusterSpec) -> tuple[int, int]:
    """Hosts and devices per host of a mesh."""
    hosts = max(1, size // cluster.devices_per_host)
    return hosts, size // hosts
