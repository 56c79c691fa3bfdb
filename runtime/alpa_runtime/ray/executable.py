"""Runs a plan on a Ray cluster; the driver makes one call per process and step."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
from jax.sharding import AbstractMesh

from alpa_runtime.analysis import MemoryStats, Reports, cost_of, memory_of, text_of
from alpa_runtime.checkpoint import Leaf
from alpa_runtime.context import outside_mesh
from alpa_runtime.device_mesh import abstract_mesh, joined_axes
from alpa_runtime.errors import InputError, RuntimeMeshError
from alpa_runtime.executable import RuntimeOptions
from alpa_runtime.inputs import Fed, check_inputs, feed, input_avals
from alpa_runtime.keys import data_of, impl_of, with_impl
from alpa_runtime.local_call import LocalModule
from alpa_runtime.mesh_process import Held, StepOrder
from alpa_runtime.plan import Plan
from alpa_runtime.ray.arrays import ArrayType, DistributedArray, input_type, output_type
from alpa_runtime.ray.cluster import Hosts, RayCluster, register
from alpa_runtime.ray.feeder import Feeder, arrays_apart, to_numpy
from alpa_runtime.ray.supervisor import RestartedError, Supervisor
from alpa_runtime.tracing import Event, join_traces, write_trace
from alpa_runtime.transport import Place

# Steps that may be asked for before the first of them is done.
_OUTSTANDING = 2


class RayExecutable:
    """A plan on the processes of a cluster. Call it with one array per flat input, in order.

    Calls return at once, with handles. An error in a step is raised by the call that notices it:
    a later step, or whoever looks at a result. It ends all processes of the plan.

    Attributes:
        plan: what is run.
        in_shardings: per flat input where it is kept.
        out_shardings: per flat output.
        options: how it is run.
        events: of the last call, when it was traced.
    """

    def __init__(
        self,
        plan: Plan,
        cluster: RayCluster,
        hosts: Hosts,
        options: RuntimeOptions | None = None,
    ) -> None:
        """Starts the processes and compiles all programs.

        Args:
            plan: what is run.
            cluster: where.
            hosts: what the cluster has.
            options: whether calls are traced; times of several hosts are by their own clocks.

        Raises:
            RuntimeMeshError: the cluster has too few devices.
            ClusterError: a process did not start.
        """
        needed, found = plan.num_devices, hosts.num_hosts * hosts.devices_per_host
        if needed != found:
            raise RuntimeMeshError(f"{plan.name} runs on {needed} devices, the cluster has {found}")
        self.plan, self._cluster, self._hosts = plan, cluster, hosts
        self.options = options = options or RuntimeOptions()
        self.events: list[Event] = []
        self._inputs = [input_type(plan, index) for index in range(len(plan.inputs))]
        self._outputs = [output_type(plan, index) for index in range(len(plan.outputs))]
        self.meshes = tuple(abstract_mesh(mesh.axes) for mesh in plan.meshes)
        self.in_shardings = tuple(one.sharding for one in self._inputs)
        self.out_shardings = tuple(one.sharding for one in self._outputs)
        self._avals = input_avals(plan)
        self._lock = threading.RLock()
        self._next_array = 0
        self._next_step = 0
        self._dropped: deque[tuple[int, int]] = deque()
        # Numbers of arrays that someone has a handle of, and those whose value came with a step.
        self._held: set[int] = set()
        self._scalars: dict[int, Any] = {}
        self._pending: deque[dict[Place, Any]] = deque()
        self._supervisor = Supervisor(
            plan, cluster, hosts, self._forget_pending, traces=options.trace
        )
        places = self._supervisor.fleet.places
        self._places = {
            mesh: tuple(place for place in places if place[0] == mesh)
            for mesh in range(len(plan.meshes))
        }
        self._feeder = Feeder(plan, {mesh: len(own) for mesh, own in self._places.items()})
        register(self)

    # Processes

    @property
    def processes(self) -> dict[Place, tuple[str, int]]:
        """Per process Ray's name of its host, and its number there."""
        return self._supervisor.fleet.processes

    def close(self) -> None:
        """Ends all processes of the plan. Handles of arrays on them are lost."""
        with self._lock:
            self._supervisor.close()

    def compile(self) -> None:
        """Does nothing: programs were compiled when the processes started."""

    # Steps

    @outside_mesh
    def __call__(self, *args: Any) -> tuple[DistributedArray, ...]:
        """Runs a step.

        Args:
            *args: one array-like or handle per flat input; a batch whole.

        Returns:
            a handle per flat output.

        Raises:
            InputError: count, shape or dtype of the arguments is wrong, or one was donated before.
            ClusterError: an earlier step failed.
        """
        check_inputs(self.plan, self._avals, args)
        with self._lock:
            self._supervisor.check_alive()
            while len(self._pending) >= _OUTSTANDING:
                self._finish_oldest()
            feeds = self._feeds(args)
            outputs: list[dict[int, int]] = [{} for _ in self.plan.meshes]
            results = [self._handle(one) for one in self._outputs]
            for index, result in enumerate(results):
                outputs[result.sharding.mesh][index] = result.number
            dropped: list[list[int]] = [[] for _ in self.plan.meshes]
            while self._dropped:
                mesh, number = self._dropped.popleft()
                dropped[mesh].append(number)
            orders: dict[Place, tuple[Any, ...]] = {}
            for mesh, places in self._places.items():
                for place in places:
                    plain, arrays = arrays_apart(feeds[mesh], place[1])
                    order = StepOrder(self._next_step, plain, outputs[mesh], tuple(dropped[mesh]))
                    orders[place] = (order, *arrays)
            self._pending.append(self._supervisor.submit("step", orders))
            self._next_step += 1
            for arg, value in zip(args, self.plan.inputs, strict=True):
                if value.is_donated and isinstance(arg, DistributedArray):
                    arg.mark_deleted()
                    self._forget(arg.number)
            self._supervisor.snapshot(self._next_step)
            if self.options.trace:
                self.synchronize()
        return tuple(results)

    @outside_mesh
    def feed(self, index: int, array: Any) -> Fed:
        """Puts an input into Ray's object store, for one of the next steps.

        Args:
            index: of the flat input.
            array: its value.

        Raises:
            InputError: its shape or dtype is wrong.
        """
        return feed(self.plan, self._avals, index, array, self._feeder.content, self)

    def _feeds(self, args: Sequence[Any]) -> list[dict[int, Any]]:
        """What each mesh is fed."""
        feeds: list[dict[int, Any]] = [{} for _ in self.plan.meshes]
        for index, (arg, value) in enumerate(zip(args, self.plan.inputs, strict=True)):
            is_own = isinstance(arg, DistributedArray | Fed) and arg.owner is self
            if (
                is_own
                and isinstance(arg, DistributedArray)
                and value.meshes == (arg.sharding.mesh,)
            ):
                feeds[arg.sharding.mesh][index] = Held(arg.number)
            elif is_own and isinstance(arg, Fed):
                for mesh, content in arg.content.items():
                    feeds[mesh][index] = content
            elif value.meshes:
                for mesh, content in self._feeder.content(index, arg).items():
                    feeds[mesh][index] = content
        return feeds

    def _finish_oldest(self) -> None:
        refs = self._pending.popleft()
        with contextlib.suppress(RestartedError):
            reports = self._supervisor.collect_in_time("step", refs)
            for report in reports.values():
                # Of what nobody holds any more the number was dropped before.
                held = ((n, x) for n, x in report.scalars.items() if n in self._held)
                self._scalars.update(held)
            if self.options.trace:
                # Processes of one mesh run the same.
                first = [report for (_, host), report in reports.items() if host == 0]
                self.events = join_traces((one.begun, one.events) for one in first)
                write_trace(self.events, self.options.trace_path)

    def _forget_pending(self) -> None:
        """Drops steps that will never be done."""
        for refs in self._pending:
            self._supervisor.fleet.give_up(refs.values())
        self._pending.clear()

    def synchronize(self) -> None:
        """Waits until all steps that were asked for are done.

        Raises:
            ClusterError: one of them failed.
        """
        with self._lock:
            self._supervisor.check_alive()
            while self._pending:
                self._finish_oldest()

    # Arrays

    @outside_mesh
    def create(
        self, make: Callable[..., Any], leaves: Sequence[Any], argnums: Sequence[int]
    ) -> list[Any]:
        """Computes arrays where they are kept.

        Args:
            make: returns a flat list of arrays, traceable by jax.
            leaves: its arguments.
            argnums: per result the flat input of a step that it is for.

        Returns:
            a handle per result.
        """
        made: list[Any] = [None] * len(argnums)
        arguments = [to_numpy(leaf) for leaf in leaves]
        with self._lock:
            self._supervisor.check_alive()
            calls: dict[Place, tuple[Any, ...]] = {}
            for mesh, places in self._places.items():
                own = [i for i, n in enumerate(argnums) if self.in_shardings[n].mesh == mesh]
                if not own:
                    continue
                module = _lower_part(make, leaves, own)
                for i in own:
                    made[i] = self._handle(self._inputs[argnums[i]])
                numbers = {argnums[i]: made[i].number for i in own}
                calls.update(dict.fromkeys(places, (module, arguments, numbers)))
            with contextlib.suppress(RestartedError):
                self._supervisor.collect(self._supervisor.submit("create", calls))
        return made

    def save(
        self, folder: Path, arrays: Mapping[str, tuple[str, DistributedArray]]
    ) -> Callable[[], None]:
        """Begins to write arrays to a checkpoint; see ``save_checkpoint``.

        Args:
            folder: of the checkpoint, which all hosts see.
            arrays: by name, the part and the array.

        Returns:
            what waits until they are written.
        """
        parts: dict[tuple[int, str], dict[str, int]] = {}
        for name, (part, array) in arrays.items():
            if array.is_deleted():
                raise InputError(f"{array!r} was deleted: a call that donates it has taken it")
            parts.setdefault((array.sharding.mesh, part), {})[name] = array.number
        with self._lock:
            calls = {
                place: (str(folder / part), numbers)
                for (mesh, part), numbers in parts.items()
                for place in self._places[mesh]
            }
            self._ask("save", calls)
            refs = self._supervisor.fleet.submit("finish_saving", dict.fromkeys(calls, ()))
        # Not under the lock: steps go on. A failure ends the processes when a step notices it.
        fleet = self._supervisor.fleet

        def finish() -> None:
            fleet.collect(refs)

        return finish

    def _ask(self, method: str, calls: Mapping[Place, tuple[Any, ...]]) -> dict[Any, Any]:
        """Asks for something that changes nothing, of processes that have done all steps."""
        while True:
            self.synchronize()
            with contextlib.suppress(RestartedError):
                refs = self._supervisor.fleet.submit(method, calls)
                return self._supervisor.collect_in_time(method, refs)

    def restore(self, folder: Path, leaves: Sequence[Leaf], argnums: Sequence[int]) -> list[Any]:
        """Reads arrays of a checkpoint where they are kept.

        Args:
            folder: of the checkpoint.
            leaves: of it.
            argnums: per leaf the flat input of a step that it is for.

        Returns:
            a handle per leaf.
        """
        made: list[DistributedArray] = []
        numbers: dict[int, dict[int, int]] = {}
        own: dict[int, dict[int, Leaf]] = {}
        with self._lock:
            self._supervisor.check_alive()
            for leaf, index in zip(leaves, argnums, strict=True):
                made.append(self._handle(self._inputs[index]))
                mesh = made[-1].sharding.mesh
                numbers.setdefault(mesh, {})[index] = made[-1].number
                own.setdefault(mesh, {})[index] = leaf
            calls = {
                place: (str(folder), own[mesh], numbers[mesh])
                for mesh in own
                for place in self._places[mesh]
            }
            with contextlib.suppress(RestartedError):
                self._supervisor.collect(self._supervisor.submit("restore", calls))
        return made

    # Programs

    @property
    def mesh(self) -> AbstractMesh:
        """See `Executable`."""
        if len(self.meshes) == 1:
            return self.meshes[0]
        return abstract_mesh(joined_axes([mesh.axes for mesh in self.plan.meshes]))

    def as_text(self, program: int | str | None = None) -> str:
        """See `Executable`."""
        return text_of(self.plan, self._reports(), program)

    def memory_analysis(self) -> tuple[MemoryStats, ...]:
        """See `Executable`."""
        return memory_of(self.plan, self._reports())

    def cost_analysis(self) -> tuple[Mapping[str, float], ...]:
        """See `Executable`."""
        return cost_of(self.plan, self._reports())

    def _reports(self) -> Reports:
        # Processes of one mesh run the same.
        first = {places[0]: () for places in self._places.values()}
        with self._lock:
            found = self._ask("report", first)
        return {
            (mesh, number): report
            for (mesh, _), own in found.items()
            for number, report in own.items()
        }

    def _handle(self, kind: ArrayType) -> DistributedArray:
        """A handle of a new array."""
        number = self._next_array
        self._next_array += 1
        self._held.add(number)
        forget, dropped, mesh = self._forget, self._dropped, kind.sharding.mesh

        def drop(gone: int) -> None:
            forget(gone)
            dropped.append((mesh, gone))

        return DistributedArray(number, kind, self, drop)

    def _forget(self, number: int) -> None:
        """Notes that nobody has a handle of an array any more."""
        self._held.discard(number)
        self._scalars.pop(number, None)

    @outside_mesh
    def fetch(self, array: DistributedArray) -> Any:
        """The whole array in this process."""
        mesh = array.sharding.mesh
        with self._lock:
            self.synchronize()
            if array.number in self._scalars:
                return self._scalars[array.number]
            parts = self._ask("fetch", dict.fromkeys(self._places[mesh], (array.number,)))
        return array.assemble([part for own in parts.values() for part in own])


def _lower_part(make: Callable[..., Any], leaves: Sequence[Any], own: Sequence[int]) -> LocalModule:
    """Some results of a function, as a module of arrays without PRNG keys."""
    impls = [impl_of(leaf) for leaf in leaves]

    def part(*args: Any) -> tuple[Any, ...]:
        results = make(*map(with_impl, args, impls))
        return tuple(data_of(results[i]) for i in own)

    lowered = jax.jit(part, keep_unused=True).lower(*[to_numpy(leaf) for leaf in leaves])

    def types(tree: Any) -> tuple[tuple[tuple[int, ...], str], ...]:
        return tuple((tuple(leaf.shape), leaf.dtype.name) for leaf in jax.tree.leaves(tree))

    return LocalModule(
        "create", lowered.as_text(), types(lowered.args_info), types(lowered.out_info)
    )
