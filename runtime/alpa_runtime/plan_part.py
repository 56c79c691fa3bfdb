"""What one process runs of a plan."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.sharding import NamedSharding

from alpa_runtime.analysis import ProgramReport
from alpa_runtime.array_store import ArrayStore, Held
from alpa_runtime.checkpoint import Leaf, read_part
from alpa_runtime.device_mesh import make_mesh
from alpa_runtime.errors import InputError, RuntimeMeshError
from alpa_runtime.feeding import Rows
from alpa_runtime.keys import with_impl
from alpa_runtime.local_call import LocalModule
from alpa_runtime.mesh_worker import MeshStep, MeshWorker
from alpa_runtime.placing import put
from alpa_runtime.plan import Plan
from alpa_runtime.program import ValueSpec
from alpa_runtime.tracing import Event, Tracer
from alpa_runtime.transport import Place, ProcessTransport

Feed: TypeAlias = "Held | Rows | np.ndarray[Any, Any]"
"""An input of a step: kept already, the rows of a batch that the process needs, or all of it (PRNG
keys as their data)."""


@dataclasses.dataclass(frozen=True)
class Assignment:
    """A plan, and the processes that run it.

    Attributes:
        plan: the whole plan.
        meshes: per mesh of the plan the number under which its processes are known.
        num_hosts: per mesh of the plan how many processes it has.
        traces: whether steps say what ran when; values are not overwritten then.
    """

    plan: Plan
    meshes: tuple[int, ...]
    num_hosts: tuple[int, ...]
    traces: bool = False

    @property
    def places(self) -> dict[int, tuple[Place, ...]]:
        """Per mesh of the plan its processes."""
        return {
            mesh: tuple((number, host) for host in range(count))
            for mesh, (number, count) in enumerate(zip(self.meshes, self.num_hosts, strict=True))
        }


class PlanPart:
    """The instructions of one mesh of a plan, on the devices of one of its processes.

    Attributes:
        transport: to and from other meshes of the plan.
    """

    def __init__(
        self,
        assignment: Assignment,
        place: Place,
        devices: Sequence[jax.Device],
        transport: ProcessTransport,
        store: ArrayStore,
    ) -> None:
        """Prepares and compiles.

        Args:
            assignment: the plan.
            place: this process.
            devices: of its mesh, those of other processes included.
            transport: to and from other meshes.
            store: the arrays that are kept.

        Raises:
            RuntimeMeshError: the mesh has other devices than the plan wants.
        """
        self.plan, self._number = assignment.plan, assignment.meshes.index(place[0])
        wanted = self.plan.meshes[self._number]
        if len(devices) != len(wanted.devices):
            raise RuntimeMeshError(
                f"mesh {self._number} of {self.plan.name} has {len(wanted.devices)} devices, "
                f"process {place[1]} sees {len(devices)}"
            )
        mesh = make_mesh(wanted.axes, devices)
        self.transport, self._store, self._traces = transport, store, assignment.traces
        self._worker = MeshWorker(
            self.plan, self._number, mesh, transport, donates=not assignment.traces
        )
        self._worker.compile()

    def run(
        self, first_transfer: int, feeds: Mapping[int, Feed], progress: Callable[[int], None]
    ) -> tuple[dict[int, Any], tuple[float, Sequence[Event]]]:
        """Runs a step.

        Args:
            first_transfer: what the transfers of the step are counted from.
            feeds: inputs by number.
            progress: told the position of every instruction before it is performed.

        Returns:
            by number, the outputs that this mesh makes; and, if it is traced, when the trace began
            in seconds since 1970, and what ran when.

        Raises:
            InputError: an array that is to be fed is not kept here.
        """
        buffers: dict[int, Any] = {}
        for index, feed in feeds.items():
            buffers |= self._place_input(index, feed)
        with contextlib.ExitStack() as stack:
            tracer = stack.enter_context(Tracer([self._number])) if self._traces else None
            mail = self.transport.begin(first_transfer)
            step = MeshStep(self._worker, mail, buffers, tracer)
            # Only the step holds them: what is donated or freed must be gone.
            del buffers
            for position in range(len(self._worker.instructions)):
                progress(position)
                step.perform(position)
        made = {
            index: step.buffers[output.buffer]
            for index, output in enumerate(self.plan.outputs)
            if output.mesh == self._number
        }
        return made, (tracer.begun, tracer.events) if tracer else (0.0, ())

    def create(
        self, module: LocalModule, arguments: Sequence[Any], made: Mapping[int, int]
    ) -> None:
        """Computes arrays that are kept.

        Args:
            module: a function of ``arguments``; PRNG keys are returned as their data.
            arguments: arrays.
            made: the input of a step that each result is, to the number under which it is kept.
        """
        shardings = tuple(self._sharding(index) for index in made)
        specs = [self.plan.inputs[index].value for index in made]
        results = jax.jit(
            lambda *args: tuple(
                with_impl(result, spec.key_impl)
                for result, spec in zip(module(*args), specs, strict=True)
            ),
            out_shardings=shardings,
        )(*arguments)
        self._store.put(dict(zip(made.values(), results, strict=True)))

    def restore(self, folder: str, leaves: Mapping[int, Leaf], made: Mapping[int, int]) -> None:
        """Reads arrays that are kept.

        Args:
            folder: of a checkpoint.
            leaves: by input of a step, which leaf it is.
            made: by input of a step, the number under which it is kept.
        """
        wanted = {made[index]: (leaf, self._sharding(index)) for index, leaf in leaves.items()}
        self._store.put(read_part(folder, wanted))

    def report(self) -> dict[int, ProgramReport]:
        """What the backend says of the programs of the mesh, by number."""
        return self._worker.report()

    def _sharding(self, index: int) -> NamedSharding:
        placement = next(p for p in self.plan.inputs[index].placements if p.mesh == self._number)
        return self._worker.shardings[placement.buffers[0]]

    def _place_input(self, index: int, feed: Feed) -> dict[int, Any]:
        value = self.plan.inputs[index]
        array: Any = feed
        if isinstance(feed, Held):
            if feed.number not in self._store:
                raise InputError(
                    f"{value.value.name or f'input {index}'} of {self.plan.name} is array "
                    f"{feed.number}, which mesh {self._number} does not keep"
                )
            get = self._store.take if value.is_donated else self._store.get
            array = get(feed.number)
        buffers: dict[int, Any] = {}
        for placement in value.placements:
            if placement.mesh != self._number:
                continue
            if isinstance(array, Rows):
                buffers |= self._place_rows(placement.buffers, array)
                continue
            parts = [array]
            if placement.is_cut:
                parts = np.split(np.asarray(array), len(placement.buffers))
            for buffer, part in zip(placement.buffers, parts, strict=True):
                buffers[buffer] = put_everywhere(part, self._worker.shardings[buffer], value.value)
        return buffers

    def _place_rows(self, own: Sequence[int], rows: Rows) -> dict[int, Any]:
        """A batch of which this process has its part."""
        return {
            buffer: jax.make_array_from_callback(
                self.plan.value(self._number, buffer).shape,
                self._worker.shardings[buffer],
                functools.partial(rows.of, number),
            )
            for number, buffer in enumerate(own)
        }


def put_everywhere(array: Any, sharding: NamedSharding, value: ValueSpec) -> jax.Array:
    """An array that every process of a mesh has whole, on the devices of all of them."""
    if isinstance(array, jax.Array):
        return put(array, sharding)
    if value.key_impl is not None:
        whole = NamedSharding(sharding.mesh, jax.sharding.PartitionSpec())
        data = jax.make_array_from_callback(array.shape, whole, lambda index: array[index])
        return jax.device_put(with_impl(data, value.key_impl), sharding)
    if sharding.is_fully_addressable:
        return jax.device_put(array, sharding)
    return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])
