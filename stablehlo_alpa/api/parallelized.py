"""A parallelised function: plans and compiles once per abstract signature, then runs."""

from __future__ import annotations

import dataclasses
import functools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
from alpa_runtime import InputError, RuntimeOptions, ensure_cpu_pool
from jax.extend.core import jaxpr_as_fun

from stablehlo_alpa.api.checkpoint import match_leaves
from stablehlo_alpa.api.methods import Method, PipeshardParallel, mesh_size
from stablehlo_alpa.api.on_cluster import OnCluster, cluster_spec, find_hosts
from stablehlo_alpa.api.stages import Compiled, Lowered, Target, ThisProcess
from stablehlo_alpa.cluster import ClusterSpec, DeviceSpec, cluster_of
from stablehlo_alpa.errors import MeshError, TraceError
from stablehlo_alpa.frontend import TracedProgram, abstract, positions, trace
from stablehlo_alpa.inter_op import PipelineOptions, PlannedPipeline, sweep
from stablehlo_alpa.intra_op import SolveOptions
from stablehlo_alpa.layers import LayerOption, layer_context
from stablehlo_alpa.planning import Plan, PlanOptions, plan_program

if TYPE_CHECKING:
    from alpa_runtime.ray import RayCluster

# Hosts of accelerators that only exist on paper (heuristic: what every preset's host has).
_PAPER_HOST_DEVICES = 8


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a function is parallelised; see ``parallelize``."""

    method: Method
    devices: tuple[jax.Device, ...] | None
    cluster: RayCluster | None
    donate_argnums: tuple[int, ...]
    static_argnums: tuple[int, ...]
    batch_argnums: tuple[int, ...]


class Parallelized:
    """What ``parallelize`` returns; call it as the function it was made from.

    Plans and compiled programs are kept per abstract signature: structure, shapes, dtypes and
    values of static arguments.
    """

    __name__: str
    __wrapped__: Callable[..., Any]

    def __init__(self, fun: Callable[..., Any], settings: Settings):
        functools.update_wrapper(self, fun)
        self._fun = fun
        self._settings = settings
        self._plans: dict[Any, Plan | PlannedPipeline] = {}
        self._compiled: dict[Any, Compiled] = {}
        self._last: tuple[tuple[Any, ...], Compiled] | None = None
        self._lock = threading.RLock()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the function on the mesh; plans and compiles at the first call of a signature."""
        static, dynamic = self._split(args)
        flat, tree = jax.tree.flatten((dynamic, kwargs))
        if self._last is not None:
            last_static, compiled = self._last
            if static == last_static and compiled.takes(flat, tree):
                try:
                    return compiled.call_flat(flat)
                except InputError:
                    # Other shapes or dtypes: another signature, or a mistake that the call
                    # below reports.
                    pass
        if any(isinstance(leaf, jax.core.Tracer) for leaf in flat):
            raise TraceError(
                f"{self.__name__} is called inside of jax.jit, jax.grad or another transformation, "
                "but runs on devices of its own: transform the function that it is made of, or use "
                "stablehlo_alpa.partition"
            )
        compiled = self.compile(*args, **kwargs)
        self._last = (static, compiled)
        return compiled.call_flat(flat)

    def plan(self, *args: Any, **kwargs: Any) -> Any:
        """Plans without compiling or touching devices.

        Args:
            *args: positional arguments of the function; ``jax.ShapeDtypeStruct`` will do.
            **kwargs: its keyword arguments.

        Returns:
            a `Plan`, or a `PlannedPipeline` under ``PipeshardParallel``.
        """
        return self._plan(args, kwargs)[1]

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Plans and binds to the devices."""
        return self._lower(self.plan(*args, **kwargs))

    def _lower(self, plan: Plan | PlannedPipeline) -> Lowered:
        method, cluster = self._settings.method, self._settings.cluster
        options = method.runtime if isinstance(method, PipeshardParallel) else RuntimeOptions()
        if cluster is not None:
            target: Target = OnCluster(cluster, options)
        else:
            target = ThisProcess(self._devices(), options)
        return Lowered(plan, target, method.backend)

    def compile(self, *args: Any, **kwargs: Any) -> Compiled:
        """Plans and compiles."""
        with self._lock:
            key = self._key(args, kwargs)
            if key not in self._compiled:
                self._check_devices()
                _, plan = self._plan(args, kwargs)
                self._compiled[key] = self._lower(plan).compile()
            return self._compiled[key]

    def create_state(
        self,
        init_fn: Callable[..., Any],
        *init_args: Any,
        batch: Sequence[Any] | None = None,
        argnum: int = 0,
    ) -> Any:
        """Makes the training state already sharded as the plan wants it.

        Every device computes its part; the state is never whole on one device.

        Args:
            init_fn: makes the state from ``init_args``, traceable by jax.
            *init_args: its arguments.
            batch: the other arguments of the parallelised function, in order, as arrays or
                ``jax.ShapeDtypeStruct``; may be left out once the function was planned for such a
                state.
            argnum: which argument of the parallelised function the state is.

        Returns:
            the state.
        """
        closed, shapes = jax.make_jaxpr(init_fn, return_shape=True)(*init_args)
        avals = [
            jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type)
            if hasattr(a, "weak_type")
            else jax.ShapeDtypeStruct(a.shape, a.dtype)
            for a in closed.out_avals
        ]
        tree: Any = jax.tree.structure(shapes)
        compiled = self._for_state(tree, avals, batch, argnum)
        leaves = compiled.create(jaxpr_as_fun(closed), jax.tree.leaves(init_args), argnum)
        return tree.unflatten(leaves)

    def restore_state(
        self,
        path: str | os.PathLike[str],
        state: Any,
        *,
        batch: Sequence[Any] | None = None,
        argnum: int = 0,
    ) -> Any:
        """Reads the training state from a checkpoint, sharded as the plan wants it.

        The checkpoint may come from another plan, another number of devices or a cluster.

        Args:
            path: what ``save_checkpoint`` wrote.
            state: a pytree like the state, of ``jax.ShapeDtypeStruct`` or arrays.
            batch: as in `create_state`.
            argnum: which argument of the parallelised function the state is.

        Raises:
            InputError: there is no checkpoint, or it is of another state.
        """
        keyed = jax.tree_util.tree_leaves_with_path(state)
        tree: Any = jax.tree.structure(state)
        avals = [abstract(leaf) for _, leaf in keyed]
        keys = [jax.tree_util.keystr(key) for key, _ in keyed]
        leaves = match_leaves(path, keys, avals)
        compiled = self._for_state(tree, avals, batch, argnum)
        return tree.unflatten(compiled.restore(Path(path), leaves, argnum))

    def _for_state(
        self, tree: Any, avals: Sequence[Any], batch: Sequence[Any] | None, argnum: int
    ) -> Compiled:
        if batch is not None:
            args = list(batch)
            args.insert(argnum, tree.unflatten(avals))
            return self.compile(*args)
        wanted = [(tuple(a.shape), a.dtype) for a in avals]
        for key, compiled in self._compiled.items():
            if _argument(key, compiled.plan.program, argnum) == (tree, wanted):
                return compiled
        raise TraceError(
            f"{self.__name__} was not planned for this state yet: pass batch=(...), the shapes of "
            "its other arguments"
        )

    def _plan(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
        with self._lock:
            key = self._key(args, kwargs)
            if key not in self._plans:
                self._plans[key] = self._make_plan(args, kwargs)
            return key, self._plans[key]

    def _make_plan(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Plan | PlannedPipeline:
        method = self._settings.method
        if isinstance(method, PipeshardParallel):
            return sweep(
                lambda count: self._trace_layers(args, kwargs, method.layers, count),
                self._pipeline_options(method),
                method.num_micro_batches,
                method.schedule,
            )
        return plan_program(self._trace(args, kwargs, 1), self._options(args, kwargs))

    def _trace_layers(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        layers: LayerOption,
        num_micro_batches: int,
    ) -> TracedProgram:
        with layer_context(layers):
            return self._trace(args, kwargs, num_micro_batches)

    def _trace(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], num_micro_batches: int
    ) -> TracedProgram:
        settings, num_args = self._settings, len(args)
        return trace(
            self._fun,
            args,
            kwargs,
            static_argnums=positions(settings.static_argnums, num_args),
            donate_argnums=positions(settings.donate_argnums, num_args),
            batch_argnums=positions(settings.batch_argnums, num_args),
            num_micro_batches=num_micro_batches,
        )

    def _pipeline_options(self, method: PipeshardParallel) -> PipelineOptions:
        cluster = self._cluster(method)
        return PipelineOptions(
            cluster=cluster,
            stages=method.stages,
            num_chunks=method.num_chunks,
            solve=self._solve_options(method, cluster),
        )

    @staticmethod
    def _solve_options(method: Method, cluster: ClusterSpec) -> SolveOptions:
        budget = method.memory_budget
        return SolveOptions(
            memory_budget=cluster.device.memory_bytes if budget is None else float(budget),
            time_limit_s=method.time_limit_s,
        )

    def _options(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> PlanOptions:
        _, dynamic = self._split(args)
        method = self._settings.method.bind(jax.tree.leaves((dynamic, dict(kwargs))))
        cluster = self._cluster(method)
        return PlanOptions(
            cluster=cluster,
            mesh_shapes=method.mesh_shapes(cluster.num_devices, cluster.num_hosts),
            axis_names=method.axis_names,
            solve=self._solve_options(method, cluster),
            pins=method.pins,
        )

    def _cluster(self, method: Method) -> ClusterSpec:
        if self._settings.cluster is not None:
            assert not isinstance(method.device, str)
            return cluster_spec(find_hosts(self._settings.cluster), method.device)
        if method.device is not None and method.mesh_shape is not None:
            # Devices on paper: nothing has to exist.
            assert isinstance(method.device, DeviceSpec)
            size = mesh_size(method.mesh_shape)
            per_host = size
            if method.device.name != "cpu" and size % _PAPER_HOST_DEVICES == 0:
                per_host = _PAPER_HOST_DEVICES
            return ClusterSpec(method.device, size // per_host, per_host)
        self._check_devices()
        devices = self._devices()
        assert not isinstance(method.device, str)
        return cluster_of(devices, method.device)

    def _devices(self) -> tuple[jax.Device, ...]:
        if self._settings.devices is not None:
            return self._settings.devices
        devices = tuple(jax.devices())
        if devices[0].platform == "cpu":
            ensure_cpu_pool(len(devices), client_exists=True)
        return devices

    def _check_devices(self) -> None:
        shape = self._settings.method.mesh_shape
        if shape is None:
            return
        devices = self._devices()
        if mesh_size(shape) != len(devices):
            raise MeshError(
                f"mesh {'x'.join(map(str, shape))} has {mesh_size(shape)} devices, "
                f"{len(devices)} are given; pass devices= to choose some"
            )

    def _split(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Static and dynamic positional arguments."""
        if not self._settings.static_argnums:
            return (), args
        static = set(positions(self._settings.static_argnums, len(args)))
        return (
            tuple(arg for i, arg in enumerate(args) if i in static),
            tuple(arg for i, arg in enumerate(args) if i not in static),
        )

    def _key(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        static, dynamic = self._split(args)
        flat, tree = jax.tree.flatten((dynamic, dict(kwargs)))
        try:
            hash(static)
        except TypeError as error:
            raise TraceError(
                f"static arguments of {self.__name__} must be hashable: {error}"
            ) from error
        bound = self._settings.method.bind(flat)
        avals = []
        for leaf in flat:
            try:
                aval = abstract(leaf)
            except TypeError as error:
                raise TraceError(f"argument of {self.__name__} is no array: {error}") from error
            avals.append((tuple(aval.shape), aval.dtype, bool(aval.weak_type)))
        follow = getattr(bound, "flat_specs", ())
        return tree, tuple(avals), static, follow


def _argument(key: Any, program: TracedProgram, argnum: int) -> tuple[Any, Any]:
    """Structure and types of one positional argument of a signature."""
    tree, avals, *_ = key
    indices = [i for i, number in enumerate(program.input_argnum) if number == argnum]
    arguments = jax.tree.unflatten(tree, range(len(avals)))[0]
    for argument in arguments:
        if indices and indices[0] in jax.tree.leaves(argument):
            return jax.tree.structure(argument), [avals[i][:2] for i in indices]
    return None, None
