"""Runs a plan on a Ray cluster; the driver makes one call per process and step."""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from alpa_runtime.checkpoint import Leaf
from alpa_runtime.errors import InputError, RuntimeMeshError
from alpa_runtime.inputs import check_inputs, input_avals
from alpa_runtime.local_call import LocalModule
from alpa_runtime.mesh_process import Held, StepOrder
from alpa_runtime.plan import PipelinePlan, PlanInput
from alpa_runtime.program import ValueSpec, numpy_dtype
from alpa_runtime.ray.actor import MeshActor, environment
from alpa_runtime.ray.arrays import DistributedArray, MeshSharding
from alpa_runtime.ray.cluster import Hosts, RayCluster, register
from alpa_runtime.ray.failures import ClusterError
from alpa_runtime.ray.watch import Watch
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
        self._pending: deque[tuple[int, dict[Place, Any]]] = deque()
        self._failure: BaseException | None = None
        self._groups: list[Any] = []
        self._actors: dict[Place, Any] = {}
        self._watch = Watch(plan, self._actors, cluster)
        self._num_hosts = tuple(
            -(-len(mesh.devices) // hosts.devices_per_host) for mesh in plan.meshes
        )
        register(self)
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    # Processes

    def _start(self) -> None:
        for mesh, count in enumerate(self._num_hosts):
            size = len(self.plan.meshes[mesh].devices) // count
            self._groups.append(self._reserve(mesh, count, size))
            for host in range(count):
                self._actors[mesh, host] = self._make_actor(self._groups[-1], host, size)
        bind = self._cluster.bind
        meeting = self._collect(
            {
                (mesh, 0): self._actors[mesh, 0].meeting_point.remote(bind)
                for mesh, count in enumerate(self._num_hosts)
                if count > 1
            }
        )
        plan = ray.put(self.plan)
        described = self._collect(
            {
                (mesh, host): actor.start.remote(
                    plan,
                    (mesh, host),
                    self._num_hosts,
                    bind,
                    self._cluster.transport,
                    meeting.get((mesh, 0)),
                )
                for (mesh, host), actor in self._actors.items()
            }
        )
        self._watch.progress = {place: path for place, (_, path) in described.items()}
        addresses = {place: address for place, (address, _) in described.items()}
        secret = secrets.token_bytes(32)
        self._collect(
            {
                place: actor.connect.remote(addresses, secret)
                for place, actor in self._actors.items()
            }
        )

    def _reserve(self, mesh: int, count: int, size: int) -> Any:
        gpus = {"GPU": float(size)} if self._hosts.platform == "gpu" else {}
        strategy = "PACK" if count == 1 or self._hosts.platform == "cpu" else "STRICT_SPREAD"
        group = placement_group([{"CPU": 1.0, **gpus}] * count, strategy=strategy)
        if not group.wait(timeout_seconds=60):
            remove_placement_group(group)
            raise RuntimeMeshError(
                f"Ray has no room for mesh {mesh} of {self.plan.name}: {count} processes with a "
                f"CPU and {int(gpus.get('GPU', 0))} GPUs each"
            )
        return group

    def _make_actor(self, group: Any, host: int, size: int) -> Any:
        options: dict[str, Any] = {
            "num_cpus": 1,
            "num_gpus": size if self._hosts.platform == "gpu" else 0,
            "scheduling_strategy": PlacementGroupSchedulingStrategy(
                group, placement_group_bundle_index=host
            ),
            "runtime_env": {"env_vars": environment(self._hosts, size)},
            "max_restarts": 0,
        }
        make: Any = ray.remote
        actor = make(concurrency_groups={"beside": 1, "saving": 1})(MeshActor)
        return actor.options(**options).remote()

    def close(self) -> None:
        """Ends all processes of the plan. Handles of arrays on them are lost."""
        with self._lock:
            if self._failure is None:
                self._failure = RuntimeMeshError(f"{self.plan.name} was closed")
            for actor in self._actors.values():
                with contextlib.suppress(Exception):
                    ray.kill(actor)
            for group in self._groups:
                with contextlib.suppress(Exception):
                    remove_placement_group(group)
            self._watch.forget()
            self._actors.clear()
            self._groups.clear()
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
            self._check_alive()
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
            refs = {}
            for (mesh, host), actor in self._actors.items():
                plain, arrays = _arrays_apart(feeds[mesh])
                order = StepOrder(self._next_step, plain, outputs[mesh], tuple(dropped[mesh]))
                refs[mesh, host] = actor.step.remote(order, *arrays)
            self._pending.append((self._next_step, refs))
            self._next_step += 1
            for arg, value in zip(args, self.plan.inputs, strict=True):
                if value.is_donated and isinstance(arg, DistributedArray):
                    arg.mark_deleted()
        return tuple(results)

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
            data = ray.put(_to_numpy(arg))
            for mesh in meshes:
                feeds[mesh][index] = data
        return feeds

    def _finish_oldest(self) -> None:
        _, refs = self._pending.popleft()
        self._collect(refs, self._cluster.deadline_s)

    def synchronize(self) -> None:
        """Waits until all steps that were asked for are done.

        Raises:
            ClusterError: one of them failed.
        """
        with self._lock:
            self._check_alive()
            while self._pending:
                self._finish_oldest()

    def _collect(
        self, refs: Mapping[Place, Any], deadline_s: float | None = None
    ) -> dict[Any, Any]:
        """Results of calls to several processes.

        Raises:
            ClusterError: one died, failed, or was not done in time; all are ended then.
        """
        deadline = time.monotonic() + (deadline_s or self._cluster.compile_deadline_s)
        try:
            return self._watch.collect(refs, deadline)
        except BaseException as error:
            self._failure = error
            self.close()
            raise

    def _check_alive(self) -> None:
        if self._failure is not None:
            raise ClusterError(
                f"the processes of {self.plan.name} were ended: {self._failure}"
            ) from self._failure

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
            self._check_alive()
            refs = {}
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
                for (at, host), actor in self._actors.items():
                    if at == mesh:
                        refs[at, host] = actor.create.remote(module, arguments, numbers)
            self._collect(refs)
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
            self.synchronize()
            places: dict[Place, Any] = {}
            for (mesh, part), numbers in parts.items():
                for (at, host), actor in self._actors.items():
                    if at == mesh:
                        places[at, host] = actor.save.remote(str(folder / part), numbers)
            self._collect(places)
            finishing = {place: self._actors[place].finish_saving.remote() for place in places}
        deadline_s = self._cluster.compile_deadline_s
        return lambda: self._finish_saving(finishing, deadline_s)

    def _finish_saving(self, refs: Mapping[Place, Any], deadline_s: float) -> None:
        # Not under the lock: steps go on. A failure ends the processes when a step notices it.
        self._watch.collect(refs, time.monotonic() + deadline_s)

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
            self._check_alive()
            for leaf, index in zip(leaves, argnums, strict=True):
                sharding = self.in_shardings[index]
                impl = self.plan.inputs[index].value.key_impl
                made.append(self._handle(self._avals[index], sharding, impl))
                numbers.setdefault(sharding.mesh, {})[index] = made[-1].number
                own.setdefault(sharding.mesh, {})[index] = leaf
            self._collect(
                {
                    (mesh, host): actor.restore.remote(str(folder), own[mesh], numbers[mesh])
                    for (mesh, host), actor in self._actors.items()
                    if mesh in own
                }
            )
        return made

    def _handle(
        self, aval: jax.ShapeDtypeStruct, sharding: MeshSharding, key_impl: str | None
    ) -> DistributedArray:
        number = self._next_array
        self._next_array += 1
        dropped, mesh = self._dropped, sharding.mesh
        return DistributedArray(
            number, aval, key_impl, sharding, self, lambda gone: dropped.append((mesh, gone))
        )

    def fetch(self, array: DistributedArray) -> Any:
        """The whole array in this process."""
        with self._lock:
            self.synchronize()
            mesh = array.sharding.mesh
            parts = self._collect(
                {
                    place: actor.fetch.remote(array.number)
                    for place, actor in self._actors.items()
                    if place[0] == mesh
                },
                self._cluster.deadline_s,
            )
        return _assemble(array, [part for own in parts.values() for part in own])

    def _input_sharding(self, value: PlanInput) -> MeshSharding:
        if not value.placements:
            return self._mesh_sharding(0, value.value)
        first = value.placements[0]
        return self._mesh_sharding(first.mesh, self.plan.value(first.mesh, first.buffers[0]))

    def _mesh_sharding(self, mesh: int, value: ValueSpec) -> MeshSharding:
        return MeshSharding(mesh, self.plan.meshes[mesh].axes, value.logical_spec)


def _arrays_apart(feeds: Mapping[int, Any]) -> tuple[dict[int, Any], list[Any]]:
    """Held arrays stay; references become numbers of arguments of their own."""
    plain: dict[int, Any] = {}
    arrays: list[Any] = []
    for index, feed in feeds.items():
        if isinstance(feed, Held):
            plain[index] = feed
        else:
            plain[index] = len(arrays)
            arrays.append(feed)
    return plain, arrays


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
