"""One process of a mesh in a cluster: its devices, its part of the plan, the arrays it keeps."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.sharding import NamedSharding

from alpa_runtime.analysis import ProgramReport
from alpa_runtime.checkpoint import Leaf, PartWriter, describe, read_part
from alpa_runtime.device_mesh import make_mesh
from alpa_runtime.errors import InputError, RuntimeMeshError
from alpa_runtime.feeding import Rows
from alpa_runtime.keys import data_of, is_key, with_impl
from alpa_runtime.local_call import LocalModule
from alpa_runtime.mesh_worker import MeshStep, MeshWorker
from alpa_runtime.placing import put
from alpa_runtime.plan import Plan
from alpa_runtime.program import ValueSpec
from alpa_runtime.progress import Progress
from alpa_runtime.tracing import Event, Tracer
from alpa_runtime.transport import Place, ProcessTransport, make_link


@dataclasses.dataclass(frozen=True)
class Held:
    """An array that the processes of a mesh keep.

    Attributes:
        number: of the array, given by the driver.
    """

    number: int


Feed: TypeAlias = "Held | Rows | np.ndarray[Any, Any]"
"""An input of a step: kept already, the rows of a batch that the process needs, or all of it (PRNG
keys as their data)."""

SnapshotEntries: TypeAlias = Mapping[int, tuple[Leaf, jax.sharding.PartitionSpec]]
"""By number of an array, where it is in a snapshot, and its sharding."""


@dataclasses.dataclass(frozen=True)
class StepOrder:
    """What the driver asks of a process for one step.

    Attributes:
        number: of the step, never used twice.
        feeds: the inputs that the mesh is fed.
        outputs: by number of the output, the number under which it is kept.
        dropped: arrays that nobody needs any more.
    """

    number: int
    feeds: Mapping[int, Feed]
    outputs: Mapping[int, int]
    dropped: Sequence[int] = ()


@dataclasses.dataclass(frozen=True)
class StepReport:
    """What a process says of a step.

    Attributes:
        scalars: by number, the results that are scalars: what people look at.
        begun: when the trace began, in seconds since 1970.
        events: what ran, when the step was traced.
    """

    scalars: Mapping[int, np.ndarray[Any, Any]]
    begun: float = 0.0
    events: Sequence[Event] = ()


class MeshProcess:
    """Runs one mesh's instructions on the devices of this process.

    A mesh may have several processes; all get the same orders, each feeds its own devices.
    """

    def __init__(
        self,
        plan: Plan,
        place: Place,
        num_hosts: tuple[int, ...],
        *,
        bind: str = "127.0.0.1",
        transport: str = "auto",
        coordinator: str | None = None,
        traces: bool = False,
    ) -> None:
        """Makes the mesh; blocks until all its processes are there.

        Args:
            plan: the whole plan.
            place: which mesh, and which of its processes this is.
            num_hosts: processes of every mesh.
            bind: address of the network interface to listen at.
            transport: between processes; see `make_link`.
            coordinator: address and port where the processes of the mesh meet; only needed when
                there are several.
            traces: whether steps say what ran when; values are not overwritten then.

        Raises:
            RuntimeMeshError: the process has other devices than its mesh needs.
        """
        number, host = place
        self._plan, self._place = plan, place
        if num_hosts[number] > 1:
            # Of the CPU client alone: it has no collectives between processes otherwise.
            jax.config.update("jax_cpu_collectives_implementation", "gloo")
            jax.distributed.initialize(coordinator, num_hosts[number], host)
        # Numbers of devices have gaps between processes; their order is what counts.
        devices = sorted(jax.devices(), key=lambda device: (device.process_index, device.id))
        wanted = plan.meshes[number]
        if len(devices) != len(wanted.devices):
            raise RuntimeMeshError(
                f"mesh {number} has {len(wanted.devices)} devices, process {host} sees "
                f"{len(devices)}"
            )
        self._mesh = mesh = make_mesh(wanted.axes, devices)
        self._transport = ProcessTransport(
            plan, place, mesh, num_hosts, lambda own: make_link(transport, own, bind)
        )
        self._worker = MeshWorker(plan, number, mesh, self._transport, donates=not traces)
        self._traces = traces
        self._arrays: dict[int, Any] = {}
        self._progress = Progress.create()
        self._writer = PartWriter()

    @property
    def num_arrays(self) -> int:
        """Arrays that are kept."""
        return len(self._arrays)

    def describe(self) -> tuple[str, str]:
        """Address of the transport, and the file that says how far the process is."""
        return self._transport.link.address, self._progress.path

    def connect(self, addresses: Mapping[Place, str], secret: bytes) -> None:
        """Says where all processes are and what only they know, and compiles all programs."""
        self._transport.link.connect(addresses, secret, self._place)
        self._worker.compile()

    def abort(self) -> None:
        """Makes a step that waits for other processes fail; called beside it."""
        self._transport.link.close()

    def reset(self) -> str:
        """Forgets what is kept, and listens for other processes anew.

        Returns:
            where they find this one; `connect` has to follow.
        """
        self._arrays.clear()
        with contextlib.suppress(Exception):
            self._writer.wait()
        self._writer = PartWriter()
        self._transport.renew()
        return self._transport.link.address

    def step(self, order: StepOrder) -> StepReport:
        """Runs a step, and waits until its results are there.

        Raises:
            InputError: an array that is to be fed is not kept here.
            jax.errors.JaxRuntimeError: a peer died.
        """
        for number in order.dropped:
            self._arrays.pop(number, None)
        buffers: dict[int, Any] = {}
        for index, feed in order.feeds.items():
            buffers |= self._place_input(index, feed)
        begun, tracer = time.time(), Tracer([self._place[0]]) if self._traces else None
        mail = self._transport.begin(order.number)
        running = MeshStep(self._worker, mail, buffers, tracer)
        del buffers
        for position in range(len(self._worker.instructions)):
            self._progress.write(order.number, position)
            running.perform(position)
        held = running.buffers
        for output, number in order.outputs.items():
            self._arrays[number] = held[self._plan.outputs[output].buffer]
        made = {number: self._arrays[number] for number in order.outputs.values()}
        jax.block_until_ready(made)
        self._progress.write(order.number, -1)
        scalars = {
            number: np.asarray(array.addressable_data(0))
            for number, array in made.items()
            if not array.shape and not is_key(array)
        }
        return StepReport(scalars, begun, tracer.finish() if tracer else ())

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
        specs = [self._plan.inputs[index].value for index in made]
        results = jax.jit(
            lambda *args: tuple(
                with_impl(result, spec.key_impl)
                for result, spec in zip(module(*args), specs, strict=True)
            ),
            out_shardings=shardings,
        )(*arguments)
        self._arrays.update(zip(made.values(), results, strict=True))

    def save(self, folder: str, arrays: Mapping[str, int]) -> None:
        """Begins to write kept arrays, by name, as one part of a checkpoint."""
        self._writer.save(folder, {name: self._arrays[n] for name, n in arrays.items()})

    def finish_saving(self) -> None:
        """Waits until what was begun is written."""
        self._writer.wait()

    def save_all(self, folder: str) -> SnapshotEntries:
        """Begins to write everything that is kept.

        Returns:
            per array, what `load_all` needs to read it.
        """
        part = f"mesh_{self._place[0]}"
        entries = {
            number: (describe("", array, part, f"array_{number}"), array.sharding.spec)
            for number, array in self._arrays.items()
        }
        if entries:
            arrays = {f"array_{number}": array for number, array in self._arrays.items()}
            self._writer.save(f"{folder}/{part}", arrays)
        return entries

    def load_all(self, folder: str, entries: SnapshotEntries) -> None:
        """Reads what `save_all` has written, under the same numbers."""
        wanted = {
            number: (leaf, NamedSharding(self._mesh, spec))
            for number, (leaf, spec) in entries.items()
        }
        self._arrays = read_part(folder, wanted)

    def restore(self, folder: str, leaves: Mapping[int, Leaf], made: Mapping[int, int]) -> None:
        """Reads arrays that are kept.

        Args:
            folder: of a checkpoint.
            leaves: by input of a step, which leaf it is.
            made: by input of a step, the number under which it is kept.
        """
        wanted = {made[index]: (leaf, self._sharding(index)) for index, leaf in leaves.items()}
        self._arrays.update(read_part(folder, wanted))

    def report(self) -> dict[int, ProgramReport]:
        """What the backend says of the programs of the mesh, by number."""
        return self._worker.report()

    def fetch(self, number: int) -> list[tuple[tuple[slice, ...], np.ndarray[Any, Any]]]:
        """The parts of an array that this process has, keys as their data, each part once."""
        array = data_of(self._arrays[number])
        return [
            (shard.index, np.asarray(shard.data))
            for shard in array.addressable_shards
            if shard.replica_id == 0
        ]

    def _sharding(self, index: int) -> NamedSharding:
        placement = next(p for p in self._plan.inputs[index].placements if p.mesh == self._place[0])
        return self._worker.shardings[placement.buffers[0]]

    def _place_input(self, index: int, feed: Feed) -> dict[int, Any]:
        value = self._plan.inputs[index]
        if isinstance(feed, Held):
            if feed.number not in self._arrays:
                raise InputError(
                    f"{value.value.name or f'input {index}'} of {self._plan.name} is array "
                    f"{feed.number}, which mesh {self._place[0]} does not keep"
                )
            array = self._arrays[feed.number]
            if value.is_donated:
                del self._arrays[feed.number]
        else:
            array = feed
        if isinstance(array, Rows):
            return self._place_rows(index, array)
        buffers = {}
        for placement in value.placements:
            if placement.mesh != self._place[0]:
                continue
            parts = [array]
            if placement.is_cut:
                parts = np.split(np.asarray(array), len(placement.buffers))
            for buffer, part in zip(placement.buffers, parts, strict=True):
                buffers[buffer] = put_everywhere(part, self._worker.shardings[buffer], value.value)
        return buffers

    def _place_rows(self, index: int, rows: Rows) -> dict[int, Any]:
        """A batch of which this process has its part."""
        buffers = {}
        for placement in self._plan.inputs[index].placements:
            if placement.mesh == self._place[0]:
                for number, buffer in enumerate(placement.buffers):
                    shape = self._plan.value(self._place[0], buffer).shape
                    buffers[buffer] = jax.make_array_from_callback(
                        shape,
                        self._worker.shardings[buffer],
                        functools.partial(rows.of, number),
                    )
        return buffers


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
