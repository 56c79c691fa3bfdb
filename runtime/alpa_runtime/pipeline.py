"""Runs a pipeline plan in one process, on submeshes of its devices."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding

from alpa_runtime.context import outside_mesh, outside_trace
from alpa_runtime.cpu_pool import require_cpu_pool
from alpa_runtime.device_mesh import make_mesh
from alpa_runtime.errors import RuntimeMeshError
from alpa_runtime.inputs import Fed, check_inputs, feed, input_avals
from alpa_runtime.mesh_worker import MeshWorker, put
from alpa_runtime.order import issue_order
from alpa_runtime.plan import Plan, PlanInput
from alpa_runtime.tracing import Event, Tracer, write_trace
from alpa_runtime.transport import InProcessTransport


@dataclasses.dataclass(frozen=True)
class RuntimeOptions:
    """How a plan is run.

    Attributes:
        trace: whether every call is timed and written to ``trace_path``. The call then waits for
            its results, and intermediate buffers are not donated.
        trace_path: a file that Perfetto reads; the last call's trace replaces earlier ones.
    """

    trace: bool = False
    trace_path: str = "alpa_trace.json"


class PipelineExecutable:
    """A plan on its devices. Call it with one array per flat input, in order.

    Making one raises ``RuntimeMeshError`` when there are not as many devices as the plan is for, or
    when they are virtual CPU devices of a client on which programs of several meshes can deadlock.

    Attributes:
        plan: what is run.
        meshes: the submeshes.
        in_shardings: per flat input the sharding on the mesh that keeps it.
        out_shardings: per flat output.
        events: of the last call, when it was traced.
    """

    def __init__(
        self,
        plan: Plan,
        devices: Sequence[jax.Device],
        options: RuntimeOptions = RuntimeOptions(),
    ):
        if len(devices) != plan.num_devices:
            raise RuntimeMeshError(
                f"{plan.name} runs on {plan.num_devices} devices, got {len(devices)}"
            )
        if devices[0].platform == "cpu" and any(len(mesh.devices) > 1 for mesh in plan.meshes):
            require_cpu_pool(len(jax.devices("cpu")))
        self.plan = plan
        self.options = options
        self.events: list[Event] = []
        self.meshes = tuple(
            make_mesh(mesh.axes, [devices[position] for position in mesh.devices])
            for mesh in plan.meshes
        )
        transport = InProcessTransport(plan, self.meshes)
        self._workers = [
            MeshWorker(plan, number, mesh, transport, donates=not options.trace)
            for number, mesh in enumerate(self.meshes)
        ]
        self.in_shardings = tuple(self._input_sharding(value) for value in plan.inputs)
        self.out_shardings = tuple(self._workers[o.mesh].shardings[o.buffer] for o in plan.outputs)
        self._order = issue_order(plan.instructions)
        self._avals = input_avals(plan)
        self._splitters: dict[int, Any] = {}

    @outside_mesh
    def compile(self) -> None:
        """Compiles all programs now; the first call does so otherwise."""
        for worker in self._workers:
            worker.compile()

    @outside_trace
    def __call__(self, *args: Any) -> tuple[jax.Array, ...]:
        """Runs a step.

        Args:
            *args: one array-like per flat input; a batch whole.

        Returns:
            one global array per flat output, each on the mesh that makes it.

        Raises:
            InputError: count, shape or dtype of the arguments is wrong, or one was donated before.
        """
        check_inputs(self.plan, self._avals, args)
        buffers: list[dict[int, Any]] = [{} for _ in self.meshes]
        for index, arg in enumerate(args):
            is_fed = isinstance(arg, Fed)
            parts = arg.content if is_fed and arg.owner is self else self._placed(index, arg)
            for (mesh, buffer), part in parts.items():
                buffers[mesh][buffer] = part
        for worker, own in zip(self._workers, buffers, strict=True):
            worker.begin(own)
        tracer = Tracer(range(len(self.meshes))) if self.options.trace else None
        workers = self._workers
        for mesh, position in self._order:
            workers[mesh].perform(position, tracer)
        if tracer:
            self.events = tracer.finish()
            write_trace(self.events, self.options.trace_path)
        held = [worker.finish() for worker in workers]
        return tuple(held[o.mesh][o.buffer] for o in self.plan.outputs)

    @outside_trace
    def feed(self, index: int, array: Any) -> Fed:
        """Puts an input on the meshes that need it, for one of the next steps.

        Args:
            index: of the flat input.
            array: its value.

        Raises:
            InputError: its shape or dtype is wrong.
        """
        return feed(self.plan, self._avals, index, array, self._placed, self)

    def _placed(self, index: int, arg: Any) -> dict[tuple[int, int], Any]:
        """An input in the buffers (by mesh) that hold it or its micro-batches."""
        placed: dict[tuple[int, int], Any] = {}
        for placement in self.plan.inputs[index].placements:
            shardings = self._workers[placement.mesh].shardings
            parts = self._split(index, arg) if placement.is_cut else [arg]
            for buffer, part in zip(placement.buffers, parts, strict=True):
                placed[placement.mesh, buffer] = put(part, shardings[buffer])
        return placed

    def _split(self, index: int, arg: Any) -> Sequence[Any]:
        """The micro-batches of a batch."""
        count = self.plan.num_micro_batches
        if not isinstance(arg, jax.Array):
            return np.split(np.asarray(arg), count)
        if index not in self._splitters:
            self._splitters[index] = jax.jit(lambda x: jax.numpy.split(x, count))
        parts: Sequence[Any] = self._splitters[index](arg)
        return parts

    def _input_sharding(self, value: PlanInput) -> NamedSharding:
        if not value.placements:
            return NamedSharding(self.meshes[0], jax.sharding.PartitionSpec())
        first = value.placements[0]
        return self._workers[first.mesh].shardings[first.buffers[0]]
