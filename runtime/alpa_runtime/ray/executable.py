"""Runs a plan on a Ray cluster; the driver makes one call per process and step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
from jax.sharding import AbstractMesh

from alpa_runtime.analysis import Inspected, Reports
from alpa_runtime.checkpoint import Leaf
from alpa_runtime.context import outside_mesh
from alpa_runtime.device_mesh import abstract_mesh, joined_axes
from alpa_runtime.errors import ClusterError, RuntimeMeshError
from alpa_runtime.executable import RuntimeOptions
from alpa_runtime.inputs import Fed, check_alive, check_inputs, feed, input_avals
from alpa_runtime.keys import data_of, impl_of, with_impl
from alpa_runtime.local_call import LocalModule
from alpa_runtime.plan import Plan
from alpa_runtime.platforms import lower
from alpa_runtime.ray.arrays import DistributedArray, input_type, output_type
from alpa_runtime.ray.cluster import Hosts, RayCluster, shared_session
from alpa_runtime.ray.feeder import to_numpy
from alpa_runtime.ray.orders import Orders
from alpa_runtime.ray.session import Session
from alpa_runtime.tracing import Event, join_traces, write_trace
from alpa_runtime.transport import Place


class RayExecutable(Inspected):
    """A plan on the processes of a cluster. Call it with one array per flat input, in order.

    Calls return at once, with handles. An error in a step is raised by the call that notices it:
    a later step, or whoever looks at a result. It ends all processes of the session. An interrupt
    ends nothing: what was asked for is done, and what it was to donate is gone.

    Attributes:
        plan: what is run.
        session: the processes, which executables of equal clusters share.
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
        """Starts the processes that are not there yet, and compiles all programs.

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
        self.plan, self._platform = plan, hosts.platform
        self.options = options = options or RuntimeOptions()
        self.events: list[Event] = []
        self.meshes = tuple(abstract_mesh(mesh.axes) for mesh in plan.meshes)
        self.session = session = shared_session(cluster, hosts, lambda: Session(cluster, hosts))
        self._number, assigned = session.run(lambda: session.add(plan, traces=options.trace))
        self._meshes, self._places = assigned.meshes, assigned.places
        self._inputs = [input_type(plan, i, assigned.meshes) for i in range(len(plan.inputs))]
        self._outputs = [output_type(plan, i, assigned.meshes) for i in range(len(plan.outputs))]
        self.in_shardings = tuple(one.sharding for one in self._inputs)
        self.out_shardings = tuple(one.sharding for one in self._outputs)
        self._avals = input_avals(plan)
        self._is_closed = False
        self._orders = Orders(self._number, assigned, session.handles)

    @property
    def processes(self) -> dict[Place, tuple[str, int]]:
        """Per process of the session Ray's name of its host, and its number there."""
        return self.session.processes

    def close(self) -> None:
        """Ends the processes, unless other executables run on them; their arrays are lost then."""
        self._is_closed = True
        self.session.release(self._number)

    def compile(self) -> None:
        """Does nothing: programs were compiled when the processes got the plan."""

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
        # In this thread: its context says what numbers are.
        check_inputs(self.plan, self._avals, args)
        # Other sessions have threads of their own, which must not wait for each other.
        own = [
            arg.fetch()
            if isinstance(arg, DistributedArray) and arg.owner is not self.session
            else arg
            for arg in args
        ]
        return self.session.run(self._step, own)

    def _step(self, args: Sequence[Any]) -> tuple[DistributedArray, ...]:
        # Another thread may have given something away meanwhile.
        check_alive(self.plan, args)
        session = self.session
        session.check_alive()
        if self._is_closed:
            raise ClusterError(f"{self.plan.name} was closed: make another executable of the plan")
        session.steps.make_room()
        feeds = self._orders.feeds(args, self)
        results = [session.handles.make(one, session) for one in self._outputs]
        orders = self._orders.written(feeds, [result.number for result in results])
        session.steps.add(self._number, self.plan, orders, self._note)
        for arg, value in zip(args, self.plan.inputs, strict=True):
            if value.is_donated and isinstance(arg, DistributedArray):
                session.handles.give_away(arg, [self._meshes[mesh] for mesh in value.meshes])
        if self.options.trace:
            session.steps.synchronize()
        return tuple(results)

    @outside_mesh
    def feed(self, index: int, array: Any) -> Fed:
        """See `Executable`; what is fed lies in Ray's object store."""
        return feed(self.plan, self._avals, index, array, self._orders.feeder.content, self)

    def _note(self, reports: Mapping[Place, Any]) -> None:
        if self.options.trace:
            # Processes of one mesh run the same.
            first = [report for (_, host), report in reports.items() if host == 0]
            self.events = join_traces((one.begun, one.events) for one in first)
            write_trace(self.events, self.options.trace_path)

    # Arrays

    @outside_mesh
    def create(
        self, make: Callable[..., Any], leaves: Sequence[Any], argnums: Sequence[int]
    ) -> list[Any]:
        """See `Executable`; the results are handles."""
        # In this thread, whose context (number types, say) the function is to be traced in.
        asked = {
            mesh: _lowered_part(make, leaves, own, self._platform)
            for mesh, own in self._kept(argnums).items()
        }
        return self.session.run(self._make, "create", argnums, asked)

    def restore(self, folder: Path, leaves: Sequence[Leaf], argnums: Sequence[int]) -> list[Any]:
        """See `Executable`; the results are handles."""
        asked = {
            mesh: (str(folder), {argnums[i]: leaves[i] for i in own})
            for mesh, own in self._kept(argnums).items()
        }
        return self.session.run(self._make, "restore", argnums, asked)

    def _kept(self, argnums: Sequence[int]) -> dict[int, list[int]]:
        """By mesh, which of some flat inputs it keeps, by their positions in the list."""
        kept: dict[int, list[int]] = {}
        for position, index in enumerate(argnums):
            mesh = self._meshes.index(self.in_shardings[index].mesh)
            kept.setdefault(mesh, []).append(position)
        return kept

    def _make(
        self, method: str, argnums: Sequence[int], asked: Mapping[int, tuple[Any, ...]]
    ) -> list[DistributedArray]:
        """Lets every mesh make the arrays that it keeps.

        Args:
            method: of `PlanPart`.
            argnums: per array the flat input that it is for.
            asked: by mesh the arguments of the method, all but the last: by input, the number under
                which it is kept.
        """
        session = self.session
        made = [session.handles.make(self._inputs[index], session) for index in argnums]
        calls: dict[Place, tuple[Any, ...]] = {}
        for mesh, own in self._kept(argnums).items():
            numbers = {argnums[i]: made[i].number for i in own}
            arguments = (self._number, method, *asked[mesh], numbers)
            calls |= dict.fromkeys(self._places[mesh], arguments)
        session.steps.change(method, calls)
        return made

    # Programs

    @property
    def mesh(self) -> AbstractMesh:
        """See `Executable`."""
        if len(self.meshes) == 1:
            return self.meshes[0]
        return abstract_mesh(joined_axes([mesh.axes for mesh in self.plan.meshes]))

    def _reports(self) -> Reports:
        # Processes of one mesh run the same.
        first = {places[0]: (self._number, "report") for places in self._places.values()}
        found = self.session.run(self.session.steps.ask, "part", first)
        return {
            (mesh, number): report
            for mesh, places in self._places.items()
            for number, report in found[places[0]].items()
        }


def _lowered_part(
    make: Callable[..., Any], leaves: Sequence[Any], own: Sequence[int], platform: str
) -> tuple[LocalModule, list[Any]]:
    """Some results of a function, as a module of arrays without PRNG keys, and its arguments."""
    impls = [impl_of(leaf) for leaf in leaves]
    arguments = [to_numpy(leaf) for leaf in leaves]

    def part(*args: Any) -> tuple[Any, ...]:
        results = make(*map(with_impl, args, impls))
        return tuple(data_of(results[i]) for i in own)

    lowered = lower(jax.jit(part, keep_unused=True).trace(*arguments), platform)

    def types(tree: Any) -> tuple[tuple[tuple[int, ...], str], ...]:
        return tuple((tuple(leaf.shape), leaf.dtype.name) for leaf in jax.tree.leaves(tree))

    taken = types(lowered.args_info)
    module = LocalModule("create", lowered.as_text(), taken, types(lowered.out_info))
    return module, [
        argument.astype(dtype, copy=False)
        for argument, (_, dtype) in zip(arguments, taken, strict=True)
    ]
