"""One process of a mesh in a cluster: its devices, its parts of plans, the arrays it keeps."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from alpa_runtime.array_store import ArrayStore
from alpa_runtime.errors import RuntimeMeshError
from alpa_runtime.keys import is_key
from alpa_runtime.plan_part import Assignment, Feed, PlanPart
from alpa_runtime.progress import Progress
from alpa_runtime.tracing import Event
from alpa_runtime.transport import Place, ProcessTransport, make_link


@dataclasses.dataclass(frozen=True)
class StepOrder:
    """What the driver asks of a process for one step.

    Attributes:
        plan: number of the plan.
        number: of the step.
        first_transfer: what its transfers are counted from; no two steps use the same numbers.
        feeds: the inputs that the mesh is fed.
        outputs: by number of the output, the number under which it is kept.
        dropped: arrays that nobody needs any more.
    """

    plan: int
    number: int
    first_transfer: int
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
    """Runs its mesh's instructions of any number of plans, on the devices of this process.

    A mesh may have several processes; all get the same orders, each feeds its own devices.

    Attributes:
        store: the arrays that are kept.
        parts: of plans, by number.
    """

    def __init__(
        self,
        place: Place,
        num_devices: int,
        num_hosts: int = 1,
        *,
        bind: str = "127.0.0.1",
        transport: str = "auto",
        coordinator: str | None = None,
    ) -> None:
        """Makes the mesh; blocks until all its processes are there.

        Args:
            place: which mesh, and which of its processes this is.
            num_devices: of the mesh.
            num_hosts: processes of the mesh.
            bind: address of the network interface to listen at.
            transport: between processes; see `make_link`.
            coordinator: address and port where the processes of the mesh meet; only needed when
                there are several.

        Raises:
            RuntimeMeshError: the process has other devices than its mesh needs.
        """
        self._place = place
        # Programs come as text with types of their own, and arrays with theirs: none is to be
        # narrowed because the driver's context was another one.
        jax.config.update("jax_enable_x64", True)
        if num_hosts > 1:
            # Of the CPU client alone: it has no collectives between processes otherwise.
            jax.config.update("jax_cpu_collectives_implementation", "gloo")
            jax.distributed.initialize(coordinator, num_hosts, place[1])
        # Numbers of devices have gaps between processes; their order is what counts.
        self._devices = sorted(jax.devices(), key=lambda device: (device.process_index, device.id))
        if len(self._devices) != num_devices:
            raise RuntimeMeshError(
                f"mesh {place[0]} has {num_devices} devices, process {place[1]} sees "
                f"{len(self._devices)}"
            )
        self._transport, self._bind = transport, bind
        self._link = self._make_link()
        self._progress = Progress.create()
        self.store = ArrayStore(self._devices, f"mesh_{place[0]}")
        self.parts: dict[int, PlanPart] = {}

    def describe(self) -> tuple[str, tuple[str, str]]:
        """Addresses of the transport, and of the memory that says how far the process is."""
        return self._link.address, self._progress.address

    def connect(self, addresses: Mapping[Place, str], secret: bytes) -> None:
        """Says where all processes are and what only they know; again when there are more."""
        self._link.connect(addresses, secret, self._place)

    def abort(self) -> None:
        """Makes a step that waits for other processes fail; called beside it."""
        self._link.close()

    def reset(self) -> str:
        """Forgets what is kept, and listens for other processes anew; plans stay.

        Returns:
            where they find this one; `connect` has to follow.
        """
        self.store.clear()
        self._link.close()
        self._link = self._make_link()
        for part in self.parts.values():
            part.transport.link = self._link
        return self._link.address

    def add(self, number: int, assignment: Assignment) -> None:
        """Prepares and compiles this process's part of a plan, unless it has it."""
        if number in self.parts:
            return
        mesh = assignment.meshes.index(self._place[0])
        transport = ProcessTransport(
            assignment.plan,
            (mesh, self._place[1]),
            self._devices,
            assignment.num_hosts,
            assignment.meshes,
            self._link,
        )
        self.parts[number] = PlanPart(assignment, self._place, self._devices, transport, self.store)

    def remove(self, number: int) -> None:
        """Forgets a plan."""
        self.parts.pop(number, None)

    def step(self, order: StepOrder) -> StepReport:
        """Runs a step, and waits until its results are there.

        Raises:
            InputError: an array that is to be fed is not kept here.
            jax.errors.JaxRuntimeError: a peer died.
        """
        self.store.drop(order.dropped)
        made, (begun, events) = self.parts[order.plan].run(
            order.first_transfer,
            order.feeds,
            lambda position: self._progress.write(order.plan, order.number, position),
        )
        kept = {number: made[output] for output, number in order.outputs.items()}
        self.store.put(kept)
        jax.block_until_ready(kept)
        self._progress.write(order.plan, order.number, -1)
        scalars = {
            number: np.asarray(array.addressable_data(0))
            for number, array in kept.items()
            if not array.shape and not is_key(array)
        }
        return StepReport(scalars, begun, events)

    def _make_link(self) -> Any:
        own = [d for d in self._devices if d.process_index == jax.process_index()]
        return make_link(self._transport, own, self._bind)
