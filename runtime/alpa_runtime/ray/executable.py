"""Runs a plan on a Ray cluster; the driver makes one call per process and step."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import ray

from alpa_runtime.checkpoint import Leaf
from alpa_runtime.errors import InputError, RuntimeMeshError
from alpa_runtime.feeding import Rows, cut_rows, rows_per_process
from alpa_runtime.inputs import Fed, check_inputs, feed, input_avals
from alpa_runtime.local_call import LocalModule
from alpa_runtime.mesh_process import Held, StepOrder
from alpa_runtime.plan import PipelinePlan, PlanInput
from alpa_runtime.program import ValueSpec, numpy_dtype
from alpa_runtime.ray.arrays import DistributedArray, MeshSharding
from alpa_runtime.ray.cluster import Hosts, RayCluster, register
from alpa_runtime.ray.supervisor import RestartedError, Supervisor
from alpa_runtime.transport import Place

# Steps that may be asked for before the first of them is done.
_OUTSTANDING = 2

# Arrays of at most so many bytes are sent with a call. Heuristic; Ray itself inlines arguments of
# up to 100 KiB.
_SMALL_BYTES = 16 * 1024


class RayExecutable:
    """A plan on the processes of a cluster. Call it with one array per flat input, in order.

    Calls return at once, with handles. An error in a step is raised by the call that notices it:
    a later step, or whoever looks at a result. It ends all processes of the plan.

    Attributes:
        plan: what is run.
        in_shardings: per flat input where it is kept.
        out_shardings: per flat output.
    """

    def __init__(self, plan: PipelinePlan, cluster: RayCluster, hosts: Hosts) -> None:
        """Starts the processes and compiles all programs.

        Args:
            plan: what is run.
            cluster: where.
            hosts: what the cluster has.

        Raises:
            RuntimeMeshError: the cluster has too few devices.
            ClusterError: a process did not start.
        """
        needed, found = plan.num_devices, hosts.num_hosts * hosts.devices_per_host
        if needed != found:
            raise RuntimeMeshError(f"{plan.name} runs on {needed} devices, the cluster has {found}")
        self.plan, self._cluster, self._hosts = plan, cluster, hosts
        self.in_shardings = tuple(self._input_sharding(value) for value in plan.inputs)
        self.out_shardings = tuple(
            self._mesh_sharding(out.mesh, plan.value(out.mesh, out.buffer)) for out in plan.outputs
        )
        self._avals = input_avals(plan)
        self._out_avals = [
            _output_aval(plan.value(out.mesh, out.buffer), plan, out.mesh) for out in plan.outputs
        ]
        self._lock = threading.RLock()
        self._next_array = 0
        self._next_step = 0
        self._dropped: deque[tuple[int, int]] = deque()
        # Numbers of arrays that someone has a handle of, and those whose value came with a step.
        self._held: set[int] = set()
        self._scalars: dict[int, Any] = {}
        self._pending: deque[dict[Place, Any]] = deque()
        self._supervisor = Supervisor(plan, cluster, hosts, self._pending.clear)
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
            self._pending.clear()

    def compile(self) -> None:
        """Does nothing: programs were compiled when the processes started."""

    # Steps

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
            results = []
            for index, out in enumerate(self.plan.outputs):
                outputs[out.mesh][index] = self._next_array
                impl = self.plan.value(out.mesh, out.buffer).key_impl
                results.append(
                    self._handle(self._out_avals[index], self.out_shardings[index], impl)
                )
            dropped: list[list[int]] = [[] for _ in self.plan.meshes]
            while self._dropped:
                mesh, number = self._dropped.popleft()
                dropped[mesh].append(number)
            orders: dict[Place, tuple[Any, ...]] = {}
            for mesh, host in self._supervisor.fleet.places:
                plain, arrays = _arrays_apart(feeds[mesh], host)
                order = StepOrder(self._next_step, plain, outputs[mesh], tuple(dropped[mesh]))
                orders[mesh, host] = (order, *arrays)
            self._pending.append(self._supervisor.submit("step", orders))
            self._next_step += 1
            for arg, value in zip(args, self.plan.inputs, strict=True):
                if value.is_donated and isinstance(arg, DistributedArray):
                    arg.mark_deleted()
                    self._forget(arg.number)
            self._supervisor.snapshot(self._next_step)
        return tuple(results)

    def feed(self, index: int, array: Any) -> Fed:
        """Puts an input into Ray's object store, for one of the next steps.

        Args:
            index: of the flat input.
            array: its value.

        Raises:
            InputError: its shape or dtype is wrong.
        """
        return feed(self.plan, self._avals, index, array, self._content, self)

    def _feeds(self, args: Sequence[Any]) -> list[dict[int, Any]]:
        """What each mesh is fed."""
        feeds: list[dict[int, Any]] = [{} for _ in self.plan.meshes]
        for index, (arg, value) in enumerate(zip(args, self.plan.inputs, strict=True)):
            meshes = sorted({placement.mesh for placement in value.placements})
            is_held = isinstance(arg, DistributedArray)
            if is_held and arg.owner is self and meshes == [arg.sharding.mesh]:
                feeds[meshes[0]][index] = Held(arg.number)
                continue
            if not meshes:
                continue
            is_fed = isinstance(arg, Fed) and arg.owner is self
            content = arg.content if is_fed else self._content(index, arg)
            for mesh in meshes:
                feeds[mesh][index] = content[mesh]
        return feeds

    def _content(self, index: int, arg: Any) -> dict[int, list[Any]]:
        """By mesh, what each of its processes is sent of an input."""
        value, array = self.plan.inputs[index], _to_numpy(arg)
        whole: Any = None
        content: dict[int, list[Any]] = {}
        for mesh in sorted({placement.mesh for placement in value.placements}):
            count = sum(place[0] == mesh for place in self._supervisor.fleet.places)
            if value.is_batch and count > 1 and value.value.key_impl is None:
                micro_batches = self.plan.num_micro_batches
                content[mesh] = [
                    _shared(cut_rows(array, micro_batches, rows))
                    for rows in rows_per_process(self.plan, index, mesh, count)
                ]
            else:
                whole = _shared(array) if whole is None else whole
                content[mesh] = [whole] * count
        return content

    def _finish_oldest(self) -> None:
        refs = self._pending.popleft()
        with contextlib.suppress(RestartedError):
            for scalars in self._supervisor.collect_step(refs).values():
                # Of what nobody holds any more the number was dropped before.
                self._scalars.update((n, x) for n, x in scalars.items() if n in self._held)

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

    def create(
        self, make: Callable[..., Any], leaves: Sequence[Any], argnums: Sequence[int]
    ) -> Any:
        """Computes arrays where they are kept.

        Args:
            make: returns a flat list of arrays, traceable by jax.
            leaves: its arguments.
            argnums: per result the flat input of a step that it is for.

        Returns:
            a handle per result.
        """
        made: list[Any] = [None] * len(argnums)
        arguments = [_to_numpy(leaf) for leaf in leaves]
        with self._lock:
            self._supervisor.check_alive()
            calls: dict[Place, tuple[Any, ...]] = {}
            for mesh in range(len(self.plan.meshes)):
                own = [i for i, n in enumerate(argnums) if self.in_shardings[n].mesh == mesh]
                if not own:
                    continue
                module = _lower_part(make, leaves, own)
                numbers = {}
                for i in own:
                    index = argnums[i]
                    numbers[index] = self._next_array
                    impl = self.plan.inputs[index].value.key_impl
                    made[i] = self._handle(self._avals[index], self.in_shardings[index], impl)
                for place in self._supervisor.fleet.places:
                    if place[0] == mesh:
                        calls[place] = (module, arguments, numbers)
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
                for place in self._supervisor.fleet.places
                if place[0] == mesh
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
                return self._supervisor.collect(
                    self._supervisor.fleet.submit(method, calls), self._cluster.deadline_s
                )

    def restore(
        self, folder: Path, leaves: Sequence[Leaf], argnums: Sequence[int]
    ) -> list[DistributedArray]:
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
                sharding = self.in_shardings[index]
                impl = self.plan.inputs[index].value.key_impl
                made.append(self._handle(self._avals[index], sharding, impl))
                numbers.setdefault(sharding.mesh, {})[index] = made[-1].number
                own.setdefault(sharding.mesh, {})[index] = leaf
            calls = {
                (mesh, host): (str(folder), own[mesh], numbers[mesh])
                for mesh, host in self._supervisor.fleet.places
                if mesh in own
            }
            with contextlib.suppress(RestartedError):
                self._supervisor.collect(self._supervisor.submit("restore", calls))
        return made

    def _handle(
        self, aval: jax.ShapeDtypeStruct, sharding: MeshSharding, key_impl: str | None
    ) -> DistributedArray:
        number = self._next_array
        self._next_array += 1
        self._held.add(number)
        forget, dropped, mesh = self._forget, self._dropped, sharding.mesh

        def drop(gone: int) -> None:
            forget(gone)
            dropped.append((mesh, gone))

        return DistributedArray(number, aval, key_impl, sharding, self, drop)

    def _forget(self, number: int) -> None:
        """Notes that nobody has a handle of an array any more."""
        self._held.discard(number)
        self._scalars.pop(number, None)

    def fetch(self, array: DistributedArray) -> Any:
        """The whole array in this process."""
        mesh = array.sharding.mesh
        with self._lock:
            self.synchronize()
            if array.number in self._scalars:
                return self._scalars[array.number]
            calls = {p: (array.number,) for p in self._supervisor.fleet.places if p[0] == mesh}
            parts = self._ask("fetch", calls)
        return _assemble(array, [part for own in parts.values() for part in own])

    def _input_sharding(self, value: PlanInput) -> MeshSharding:
        if not value.placements:
            return self._mesh_sharding(0, value.value)
        first = value.placements[0]
        return self._mesh_sharding(first.mesh, self.plan.value(first.mesh, first.buffers[0]))

    def _mesh_sharding(self, mesh: int, value: ValueSpec) -> MeshSharding:
        return MeshSharding(mesh, self.plan.meshes[mesh].axes, value.logical_spec)


def _arrays_apart(feeds: Mapping[int, Any], host: int) -> tuple[dict[int, Any], list[Any]]:
    """Held arrays stay; what is sent to a host becomes numbers of arguments of their own."""
    plain: dict[int, Any] = {}
    arrays: list[Any] = []
    for index, sent in feeds.items():
        if isinstance(sent, Held):
            plain[index] = sent
        else:
            plain[index] = len(arrays)
            arrays.append(sent[host])
    return plain, arrays


def _shared(sent: Any) -> Any:
    """Large data in Ray's object store, once for all processes; what is small goes along."""
    size = sent.data.nbytes if isinstance(sent, Rows) else sent.nbytes
    return ray.put(sent) if size > _SMALL_BYTES else sent


def _is_key(array: Any) -> bool:
    dtype = getattr(array, "dtype", None)
    return dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)


def _to_numpy(array: Any) -> Any:
    """An array of this process, or fetched to it; keys as their data."""
    if isinstance(array, DistributedArray):
        array = array.fetch()
    return np.asarray(jax.random.key_data(array) if _is_key(array) else array)


def _lower_part(make: Callable[..., Any], leaves: Sequence[Any], own: Sequence[int]) -> LocalModule:
    """Some results of a function, as a module of arrays without PRNG keys."""
    impls = [str(jax.random.key_impl(leaf)) if _is_key(leaf) else None for leaf in leaves]

    def part(*args: Any) -> tuple[Any, ...]:
        wrapped = [
            arg if impl is None else jax.random.wrap_key_data(arg, impl=impl)
            for arg, impl in zip(args, impls, strict=True)
        ]
        results = make(*wrapped)
        chosen = [results[i] for i in own]
        return tuple(jax.random.key_data(r) if _is_key(r) else r for r in chosen)

    lowered = jax.jit(part, keep_unused=True).lower(*[_to_numpy(leaf) for leaf in leaves])

    def types(tree: Any) -> tuple[tuple[tuple[int, ...], str], ...]:
        return tuple((tuple(leaf.shape), leaf.dtype.name) for leaf in jax.tree.leaves(tree))

    return LocalModule(
        "create", lowered.as_text(), types(lowered.args_info), types(lowered.out_info)
    )


def _assemble(array: DistributedArray, parts: Sequence[tuple[Any, Any]]) -> Any:
    """The whole array from its parts."""
    if array.key_impl is None:
        whole = np.zeros(array.shape, array.dtype)
    else:
        whole = np.zeros((*array.shape, *parts[0][1].shape[array.ndim :]), np.uint32)
    for index, part in parts:
        whole[index] = part
    if array.key_impl is None:
        return whole
    return jax.random.wrap_key_data(jax.numpy.asarray(whole), impl=array.key_impl)


def _output_aval(value: ValueSpec, plan: PipelinePlan, mesh: int) -> jax.ShapeDtypeStruct:
    shape = value.array_shape(plan.sizes(mesh))
    if value.key_impl is not None:
        key = jax.eval_shape(lambda: jax.random.key(0, impl=value.key_impl))
        return jax.ShapeDtypeStruct(shape, key.dtype)
    return jax.ShapeDtypeStruct(shape, numpy_dtype(value.dtype))
