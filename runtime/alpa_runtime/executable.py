"""Compiles a per-device program for a mesh and calls it on global arrays.

The local module is called inside ``jax.shard_map`` under ``jax.jit``: sharded inputs, donation,
multi-process meshes and the fast dispatch are jax's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding

from alpa_runtime.callbacks import HostCalls
from alpa_runtime.device_mesh import make_mesh
from alpa_runtime.errors import InputError, RuntimeMeshError
from alpa_runtime.inputs import check_input, checked_aval, deleted_error, fetched
from alpa_runtime.keys import data_of, with_impl
from alpa_runtime.local_call import LocalModule
from alpa_runtime.program import SpmdProgram, ValueSpec, weakened


class Executable:
    """A program on its devices. Call it with one array per input, in order.

    Attributes:
        program: what is run.
        mesh: the devices, shaped and named as the program's mesh.
        in_shardings, out_shardings: one ``NamedSharding`` per input and output.
    """

    def __init__(self, program: SpmdProgram, mesh: Mesh):
        self.program = program
        self.mesh = mesh
        self._calls = HostCalls(program.callbacks) if program.callbacks else None
        self.in_shardings = tuple(
            NamedSharding(mesh, value.logical_spec) for value in program.inputs
        )
        self.out_shardings = tuple(
            NamedSharding(mesh, value.logical_spec) for value in program.outputs
        )
        self._avals = tuple(value.aval(program.mesh_sizes) for value in program.inputs)
        self._compiled: jax.stages.Compiled | None = None
        self._array_type: type[Any] = jax.Array
        # Arrays that come with another sharding make jax refuse the call. As long as none did, the
        # arguments go to it unseen; afterwards each is looked at first.
        self._must_place = False
        self._jitted = jax.jit(
            _global_function(program, mesh, self._calls),
            in_shardings=self.in_shardings,
            out_shardings=self.out_shardings,
            donate_argnums=program.donated,
            keep_unused=True,
        )

    @property
    def local_module(self) -> str:
        """The StableHLO text that each device runs."""
        return self.program.text

    def __call__(self, *args: Any) -> tuple[jax.Array, ...]:
        """Runs the program.

        Args:
            *args: one array-like per input: jax arrays with any sharding, numpy arrays, scalars.

        Returns:
            one global ``jax.Array`` per output, with the ``NamedSharding`` of the program.

        Raises:
            InputError: when an argument has another shape or dtype than the program takes, or was
                deleted (donated to an earlier call).
        """
        # The compiled stage is called, not the jitted function: its dispatch is as fast, and it
        # never compiles again because an argument is committed, weakly typed or on the host.
        compiled = self._compiled
        if compiled is None:
            self.check(args)
            compiled = self.compile()
        # jaxlib 0.10.2 crashes the process when a deleted array reaches several CPU devices.
        array = self._array_type
        # A list costs half of a generator here, on the path of every call.
        if any([type(arg) is array and arg.is_deleted() for arg in args]):  # noqa: C419
            raise self._deleted(args)
        if self._must_place:
            return compiled(*self.place(args))
        try:
            return compiled(*args)
        except (ValueError, TypeError):
            # Either the arguments are wrong (raised here, by name), or some are placed otherwise;
            # jax refuses both before anything is donated or run.
            placed = self.place(args)
            if all(a is b for a, b in zip(args, placed, strict=True)):
                raise
            self._must_place = True
            return compiled(*placed)

    def feed(self, index: int, array: Any) -> jax.Array:
        """Puts an input where the program needs it, for one of the next calls."""
        self._check_one(index, array)
        return jax.device_put(fetched(array), self.in_shardings[index])

    def place(self, args: Sequence[Any]) -> list[Any]:
        """Moves arrays whose sharding is not the program's; leaves everything else alone."""
        self.check(args)
        return [
            arg
            if not isinstance(arg, jax.Array)
            or arg.sharding is sharding
            or not arg.committed
            or arg.sharding.is_equivalent_to(sharding, arg.ndim)
            else jax.device_put(arg, sharding)
            for arg, sharding in zip(map(fetched, args), self.in_shardings, strict=True)
        ]

    def check(self, args: Sequence[Any]) -> None:
        """Raises ``InputError`` unless shapes and dtypes of ``args`` are those of the inputs."""
        if len(args) != len(self.program.inputs):
            raise InputError(
                f"{self.program.name} takes {len(self.program.inputs)} arrays, got {len(args)}"
            )
        for index, arg in enumerate(args):
            self._check_one(index, arg)

    def _check_one(self, index: int, arg: Any) -> None:
        function, name = self.program.name, self._name(index)
        check_input(function, name, self._avals[index], checked_aval(function, name, arg))

    def _deleted(self, args: Sequence[Any]) -> InputError:
        index = next(
            i for i, arg in enumerate(args) if isinstance(arg, jax.Array) and arg.is_deleted()
        )
        return deleted_error(self.program.name, self._name(index))

    def _name(self, index: int) -> str:
        return self.program.inputs[index].name or f"input {index}"

    def compile(self) -> jax.stages.Compiled:
        """Compiles now, without arguments; the first call does so otherwise.

        Returns:
            the compiled stage, for its text, cost and memory analysis.
        """
        if self._compiled is None:
            self._compiled = self.lower().compile()
            self._array_type = type(jax.numpy.zeros(()))
        return self._compiled

    def lower(self) -> jax.stages.Lowered:
        """The whole program on its mesh, lowered and not yet compiled."""
        return self._jitted.lower(*self._avals)


class TalkingExecutable(Executable):
    """A program that calls functions of the host; a call returns once they have run."""

    def __call__(self, *args: Any) -> tuple[jax.Array, ...]:
        """Runs the program; see `Executable`.

        Raises:
            jax.errors.JaxRuntimeError: a function of the host failed.
        """
        assert self._calls is not None
        with self._calls.running(self.program.name):
            return super().__call__(*args)


def compile_spmd(program: SpmdProgram, devices: Sequence[jax.Device] | Mesh) -> Executable:
    """Binds a program to devices.

    Args:
        program: the per-device program.
        devices: as many devices as the program's mesh has, in the order of the flattened mesh; or a
            ``Mesh`` with the same axes.

    Raises:
        RuntimeMeshError: when the devices do not make up the mesh.
    """
    made = TalkingExecutable if program.callbacks else Executable
    if isinstance(devices, Mesh):
        if tuple(devices.shape.items()) != tuple(program.mesh):
            raise RuntimeMeshError(
                f"{program.name} runs on a mesh {program.mesh_sizes}, got {dict(devices.shape)}"
            )
        return made(program, devices)
    if len(devices) != program.num_devices:
        raise RuntimeMeshError(
            f"{program.name} runs on {program.num_devices} devices "
            f"({'x'.join(str(size) for _, size in program.mesh)}), got {len(devices)}"
        )
    return made(program, make_mesh(program.mesh, devices))


def _global_function(program: SpmdProgram, mesh: Mesh, calls: HostCalls | None) -> Any:
    """The function of global arrays that ``jit`` compiles."""
    module = LocalModule.of(program, calls)
    if program.is_global:
        return _restoring(program, module)
    # One trace per executable; the lambda keeps jit from writing the module's repr in its name.
    sharded = jax.shard_map(
        lambda *args: _stack(program, module(*_unstack(program, args))),
        mesh=mesh,
        in_specs=tuple(value.spec for value in program.inputs),
        out_specs=tuple(value.spec for value in program.outputs),
        check_vma=False,
    )

    return _restoring(program, sharded)


def _restoring(program: SpmdProgram, call: Any) -> Any:
    """A function of arrays as the caller has them, around one of their data."""

    def run(*args: Any) -> tuple[Any, ...]:
        data = [data_of(arg) for arg in args]
        return tuple(
            _restore(result, value)
            for result, value in zip(call(*data), program.outputs, strict=True)
        )

    run.__name__ = program.name
    return run


def _unstack(program: SpmdProgram, args: Sequence[jax.Array]) -> list[jax.Array]:
    """Takes the one summand that a device has of each partial value out of its dimension."""
    return [
        jax.numpy.squeeze(arg, 0) if value.partial else arg
        for arg, value in zip(args, program.inputs, strict=True)
    ]


def _stack(program: SpmdProgram, results: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
    """Gives each partial value the dimension of its summands."""
    return tuple(
        jax.numpy.expand_dims(result, 0) if value.partial else result
        for result, value in zip(results, program.outputs, strict=True)
    )


def _restore(result: jax.Array, value: ValueSpec) -> jax.Array:
    """Gives a result the type that the traced function had: typed key, weak type."""
    # Without the weak type the next call would see other argument types than this one.
    return weakened(result) if value.is_weak else with_impl(result, value.key_impl)
