"""Runs a plan in this process, on submeshes of its devices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
from jax._src.api_util import InternalFloatingPointError
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from alpa_runtime.agreement import require_one_plan
from alpa_runtime.allocator import memory_limit, warn_of_limits
from alpa_runtime.analysis import Inspected, Memories, Reports
from alpa_runtime.checkpoint import Leaf, read_part
from alpa_runtime.context import outside_mesh, outside_trace
from alpa_runtime.cpu_pool import require_cpu_pool
from alpa_runtime.device_mesh import make_mesh, whole_mesh
from alpa_runtime.errors import RuntimeMeshError
from alpa_runtime.executable import RuntimeOptions
from alpa_runtime.inputs import (
    Fed,
    check_count,
    check_inputs,
    feed,
    given_away,
    input_avals,
)
from alpa_runtime.launching import order_of
from alpa_runtime.mesh_program import MeshProgram
from alpa_runtime.mesh_worker import MeshStep, MeshWorker
from alpa_runtime.order import issue_order
from alpa_runtime.placing import Placer
from alpa_runtime.plan import Plan
from alpa_runtime.program import SpmdProgram, weakened
from alpa_runtime.tracing import Event, Tracer, write_trace
from alpa_runtime.transport import InProcessTransport


class LocalExecutable(Inspected):
    """An `Executable` on devices of this process, or of all that ``jax.distributed`` has joined.

    Compiling one raises ``RuntimeMeshError`` where processes have come to different plans.
    Making one raises ``RuntimeMeshError`` when there are not as many devices as the plan is for, or
    when they are virtual CPU devices of a client on which programs of several meshes can deadlock.

    Attributes:
        plan: what is run.
        meshes: the submeshes.
        in_shardings: per flat input the sharding on the mesh that keeps it.
        out_shardings: per flat output.
        options: how it is run.
        events: of the last call, when it was traced.
    """

    def __init__(
        self,
        plan: Plan,
        devices: Sequence[jax.Device],
        options: RuntimeOptions | None = None,
    ):
        options = options or RuntimeOptions()
        _check_devices(plan, devices)
        self.plan = plan
        self.options = options
        self.events: list[Event] = []
        self.meshes = tuple(
            make_mesh(mesh.axes, [devices[position] for position in mesh.devices])
            for mesh in plan.meshes
        )
        self._transport = InProcessTransport(plan, self.meshes)
        self._workers = [
            MeshWorker(plan, number, mesh, self._transport, donates=not options.trace)
            for number, mesh in enumerate(self.meshes)
        ]
        unread = NamedSharding(self.meshes[0], PartitionSpec())
        self._placer = Placer(plan, [worker.shardings for worker in self._workers], unread)
        self.in_shardings = tuple(map(self._placer.sharding, range(len(plan.inputs))))
        self.out_shardings = tuple(self._workers[o.mesh].shardings[o.buffer] for o in plan.outputs)
        self._order = issue_order(plan.instructions)
        self._avals = input_avals(plan)
        # A trace keeps what it would overwrite.
        self._given = () if options.trace else given_away(plan)
        # A step that is one program is a call of that program.
        self._sole: MeshProgram | None = None
        if plan.sole_program is not None and not options.trace:
            ((_, self._sole),) = self._workers[0].instructions
        self._guard = functools.partial(order_of(devices[0].client).guard, devices)
        self._run = self._guard(self._sole or self._step)
        self._is_compiled = False

    @property
    def mesh(self) -> Mesh:
        """The mesh where there is one; else one of all devices, see `whole_mesh`."""
        return whole_mesh(self.meshes)

    @outside_mesh
    def compile(self) -> None:
        """See `Executable`."""
        require_one_plan(self.plan, [d for mesh in self.meshes for d in mesh.devices.flat])
        for worker in self._workers:
            worker.compile()
        self._is_compiled = True
        limits = [memory_limit(mesh.devices.flat[0]) for mesh in self.meshes]
        if any(limit is not None for limit in limits):
            peaks = [stats.peak_memory_in_bytes for stats in self.memory_analysis()]
            warn_of_limits(self.plan.name, peaks, limits)

    def __call__(self, *args: Any) -> tuple[jax.Array, ...]:
        """Runs a step.

        Args:
            *args: one array-like per flat input; a batch whole.

        Returns:
            one global array per flat output, each on the mesh that makes it.

        Raises:
            InputError: count, shape or dtype of the arguments is wrong, or one was donated before.
            FloatingPointError: a result is not finite, where ``jax_debug_nans`` or
                ``jax_debug_infs`` asks.
        """
        if not self._is_compiled:
            # Not in the guard: others may launch while this compiles.
            check_inputs(self.plan, self._avals, args)
            self.compile()
        try:
            results: tuple[jax.Array, ...] = self._run(*args)
        except InternalFloatingPointError as error:
            # What jax raises for ``jax_debug_nans``, and under ``jax.jit`` takes back itself.
            raise FloatingPointError(
                f"invalid value ({error.ty}) in a result of {self.plan.name}: called under "
                "jax.disable_jit(), it runs operator by operator and names the first that has one"
            ) from error
        for index in self._given:
            # Where a program was given a copy, on other devices, the buffers are still there.
            if isinstance(args[index], jax.Array) and not args[index].is_deleted():
                args[index].delete()
        return results

    @outside_trace
    def _step(self, *args: Any) -> tuple[jax.Array, ...]:
        """A step of several programs; all that it needs is made here, and goes with it."""
        check_inputs(self.plan, self._avals, args)
        buffers: list[dict[int, Any]] = [{} for _ in self.meshes]
        for index, arg in enumerate(args):
            is_fed = isinstance(arg, Fed) and arg.owner is self
            parts = arg.content if is_fed else self._placer.place(index, arg)
            for (mesh, buffer), part in parts.items():
                buffers[mesh][buffer] = part
        if not self.options.trace:
            return self._perform(buffers, None)
        with Tracer(range(len(self.meshes))) as tracer:
            results = self._perform(buffers, tracer)
        self.events = tracer.events
        write_trace(self.events, self.options.trace_path)
        return results

    def _perform(
        self, buffers: Sequence[Mapping[int, Any]], tracer: Tracer | None
    ) -> tuple[jax.Array, ...]:
        mail = self._transport.begin(0)
        steps = [
            MeshStep(worker, mail, own, tracer)
            for worker, own in zip(self._workers, buffers, strict=True)
        ]
        for mesh, position in self._order:
            steps[mesh].perform(position)
        return tuple(steps[o.mesh].buffers[o.buffer] for o in self.plan.outputs)

    @outside_mesh
    def inline(self, *args: Any) -> tuple[jax.Array, ...]:
        """The step as a part of the program that ``jax.jit`` is tracing, donation left out.

        Args:
            *args: one array-like per flat input, traced ones among them.

        Raises:
            RuntimeMeshError: the step runs on several meshes.
        """
        if self._sole is not None:
            return self._sole.inline(*args)
        if len(self.meshes) > 1:
            raise RuntimeMeshError(
                f"{self.plan.name} runs on several meshes, which cannot be a part of the program "
                "that jax.jit traces: call it outside of jax.jit"
            )
        check_count(self.plan, args)
        (worker,) = self._workers
        buffers: dict[int, Any] = {}
        for index, arg in enumerate(args):
            buffers |= {buffer: part for (_, buffer), part in self._placer.parts(index, arg)}
        return worker.inline(buffers, [output.buffer for output in self.plan.outputs])

    @outside_trace
    def feed(self, index: int, array: Any) -> Any:
        """See `Executable`."""
        # What comes from the host is copied; an array of several devices may be moved by a program.
        is_here = isinstance(array, jax.Array)
        place = self._guard(self._placer.place) if is_here else self._placer.place
        fed = feed(self.plan, self._avals, index, array, place, self)
        # A program takes arrays alone.
        return fed if self._sole is None else next(iter(fed.content.values()))

    @outside_mesh
    def create(
        self, make: Callable[..., Any], leaves: Sequence[Any], argnums: Sequence[int]
    ) -> list[Any]:
        """See `Executable`; every mesh computes what it keeps."""
        shardings = [self.in_shardings[index] for index in argnums]
        made: list[Any] = [None] * len(shardings)
        for mesh in self.meshes:
            own = [i for i, sharding in enumerate(shardings) if sharding.mesh == mesh]
            if not own:
                continue
            part = jax.jit(
                lambda *args, own=own: [make(*args)[i] for i in own],
                out_shardings=[shardings[i] for i in own],
            )
            for index, value in zip(own, self._guard(part)(*leaves), strict=True):
                made[index] = value
        return made

    @outside_mesh
    def restore(self, folder: Path, leaves: Sequence[Leaf], argnums: Sequence[int]) -> list[Any]:
        """See `Executable`."""
        shardings = [self.in_shardings[index] for index in argnums]
        found = read_part(folder, dict(enumerate(zip(leaves, shardings, strict=True))))
        values = [self.plan.inputs[index].value for index in argnums]
        return [weakened(found[i]) if value.is_weak else found[i] for i, value in enumerate(values)]

    def close(self) -> None:
        """See `Executable`; there is nothing to end."""

    def _memories(self) -> Memories:
        return {
            (worker.number, number): memory
            for worker in self._workers
            for number, memory in worker.memory().items()
        }

    def _reports(self) -> Reports:
        return {
            (worker.number, number): report
            for worker in self._workers
            for number, report in worker.report().items()
        }


def compile_spmd(program: SpmdProgram, devices: Sequence[jax.Device] | Mesh) -> LocalExecutable:
    """Binds one program to devices.

    Args:
        program: the per-device program.
        devices: as many devices as the program's mesh has, in the order of the flattened mesh; or a
            ``Mesh`` with the same axes.

    Raises:
        RuntimeMeshError: when the devices do not make up the mesh.
    """
    if isinstance(devices, Mesh):
        if tuple(devices.shape.items()) != tuple(program.mesh):
            raise RuntimeMeshError(
                f"{program.name} runs on a mesh {program.mesh_sizes}, got {dict(devices.shape)}"
            )
        devices = list(devices.devices.flat)
    return LocalExecutable(Plan.of_program(program), devices)


def _check_devices(plan: Plan, devices: Sequence[jax.Device]) -> None:
    if len(devices) != plan.num_devices:
        shapes = " + ".join("x".join(str(size) for _, size in mesh.axes) for mesh in plan.meshes)
        raise RuntimeMeshError(
            f"{plan.name} runs on {plan.num_devices} devices ({shapes}), got {len(devices)}"
        )
    has_collectives = any(len(mesh.devices) > 1 for mesh in plan.meshes)
    if devices[0].platform == "cpu" and has_collectives and plan.sole_program is None:
        require_cpu_pool(len(jax.devices("cpu")))
