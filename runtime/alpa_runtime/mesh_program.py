"""A per-device program bound to a mesh, called on global arrays.

The local module is called inside ``jax.shard_map`` under ``jax.jit``: sharded inputs, donation,
multi-process meshes and the fast dispatch are jax's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
from jax.sharding import Mesh

from alpa_runtime.callbacks import HostCalls
from alpa_runtime.compiled_cache import can_be_kept, keeping
from alpa_runtime.context import may_not_move, outside_mesh, outside_trace, staged
from alpa_runtime.errors import InputError, ProgramError
from alpa_runtime.inputs import (
    aval_of,
    check_input,
    check_shared,
    checked_aval,
    concrete_type,
    deleted_error,
    fetched,
)
from alpa_runtime.keys import data_of, with_impl
from alpa_runtime.local_call import LocalModule
from alpa_runtime.platforms import compiler_options
from alpa_runtime.program import SpmdProgram, ValueSpec, numpy_dtype, weakened


class MeshProgram:
    """A program on its devices. Call it with one array per input, in order.

    Calls that overlap in time have to be ordered by the caller; see `alpa_runtime.launching`.

    Attributes:
        program: what is run.
        in_shardings, out_shardings: one ``NamedSharding`` per input and output.
    """

    def __init__(self, program: SpmdProgram, mesh: Mesh):
        self.program = program
        self._calls = HostCalls(program.callbacks) if program.callbacks else None
        self.in_shardings = tuple(value.sharding(mesh) for value in program.inputs)
        self.out_shardings = tuple(value.sharding(mesh) for value in program.outputs)
        self._avals = tuple(value.aval(program.mesh_sizes) for value in program.inputs)
        self._donated = frozenset(program.donated)
        self._compiled: jax.stages.Compiled | None = None
        self._array_type: type[Any] = jax.Array
        # A compiled stage refuses every array of less than a byte that is on a device: its layout
        # counts their bits, that of the array does not. The jitted function takes them.
        self._is_packed = any(map(_takes_less_than_a_byte, program.inputs))
        # Arrays that come with another sharding make jax refuse the call. As long as none did, the
        # arguments go to it unseen; afterwards each is looked at first.
        self._must_place = self._is_packed
        self._function = _global_function(program, mesh, self._calls)
        devices = list(mesh.devices.flat)
        self._is_kept = can_be_kept(program, devices)
        self._jitted = jax.jit(
            self._function,
            in_shardings=self.in_shardings,
            out_shardings=self.out_shardings,
            donate_argnums=program.donated,
            keep_unused=True,
            compiler_options=compiler_options(devices),
        )

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
        if self._donated and len(set(map(id, args))) < len(args):
            check_shared(self.program.name, args, self._donated, self._name)
        if self._must_place:
            run: Any = staged(outside_mesh(self._jitted)) if self._is_packed else compiled
            with keeping(self._is_kept):
                results: tuple[jax.Array, ...] = run(*self.place(args))
            return results
        try:
            return compiled(*args)
        except (ValueError, TypeError, jax.errors.JaxRuntimeError) as error:
            # Either the arguments are wrong (raised here, by name), or some are placed otherwise,
            # and may not be moved unasked; jax refuses both before anything is donated or run.
            if isinstance(error, jax.errors.JaxRuntimeError) and not may_not_move():
                raise
            placed = self.place(args)
            if all(a is b for a, b in zip(args, placed, strict=True)):
                raise
            self._must_place = True
            return compiled(*placed)

    @staged
    @outside_mesh
    def inline(self, *args: Any) -> tuple[jax.Array, ...]:
        """Puts the program into the one that ``jax.jit`` is tracing, without donation.

        Args:
            *args: one array-like per input, traced ones among them.

        Raises:
            InputError: an argument has another shape or dtype than the program takes.
            ProgramError: the text is the program of whole arrays, which XLA has to partition alone.
        """
        if self.program.is_global:
            raise ProgramError(
                f"{self.program.name} is partitioned by XLA as a whole program and cannot be a "
                "part of another"
            )
        if len(args) != len(self.program.inputs):
            raise InputError(
                f"{self.program.name} takes {len(self.program.inputs)} arrays, got {len(args)}"
            )
        for index, arg in enumerate(args):
            check_input(self.program.name, self._name(index), self._avals[index], aval_of(arg))
        results: tuple[jax.Array, ...] = self._function(*args)
        return results

    @outside_trace
    def place(self, args: Sequence[Any]) -> list[Any]:
        """Moves arrays whose sharding is not the program's; leaves everything else alone."""
        self.check(args)
        is_guarded = may_not_move()
        return [
            arg
            if not isinstance(arg, jax.Array)
            or arg.sharding is sharding
            or not (arg.committed or is_guarded)
            or arg.sharding.is_equivalent_to(sharding, arg.ndim)
            else jax.device_put(arg, sharding)
            for arg, sharding in zip(map(fetched, args), self.in_shardings, strict=True)
        ]

    def check(self, args: Sequence[Any]) -> None:
        """Raises ``InputError`` unless shapes and dtypes of ``args`` are those of the inputs."""
        function = self.program.name
        if len(args) != len(self.program.inputs):
            raise InputError(f"{function} takes {len(self.program.inputs)} arrays, got {len(args)}")
        for index, (arg, aval) in enumerate(zip(args, self._avals, strict=True)):
            name = self._name(index)
            check_input(function, name, aval, checked_aval(function, name, arg))

    def _deleted(self, args: Sequence[Any]) -> InputError:
        index = next(
            i for i, arg in enumerate(args) if isinstance(arg, jax.Array) and arg.is_deleted()
        )
        return deleted_error(self.program.name, self._name(index))

    def _name(self, index: int) -> str:
        return self.program.inputs[index].name or f"input {index}"

    @staged
    @outside_mesh
    def compile(self, options: Mapping[str, Any] | None = None) -> jax.stages.Compiled:
        """Compiles now, without arguments; the first call does so otherwise.

        Args:
            options: of the compiler, beside those of the process.

        Returns:
            the compiled stage, for its text, cost and memory analysis.

        Raises:
            jax.errors.JaxRuntimeError: XLA refuses the program.
        """
        if self._compiled is None:
            self._array_type = concrete_type()
            # Its types are its own: what has 64 bits is not narrowed without the caller's x64.
            with jax.enable_x64(True), keeping(self._is_kept):
                lowered = self._jitted.lower(*self._avals)
                try:
                    self._compiled = lowered.compile(dict(options) if options else None)
                except jax.errors.JaxRuntimeError as error:
                    if not self.program.is_global:
                        raise
                    raise jax.errors.JaxRuntimeError(
                        f"{self.program.name}: XLA cannot partition or compile this program, which "
                        'it is given whole; backend="alpa" gives it what each device does: '
                        f"{error}"
                    ) from error
        return self._compiled


def _takes_less_than_a_byte(value: ValueSpec) -> bool:
    kind = numpy_dtype(value.dtype)
    if jax.numpy.issubdtype(kind, jax.numpy.integer):
        return bool(jax.numpy.iinfo(kind).bits < 8)
    return jax.numpy.issubdtype(kind, jax.numpy.floating) and jax.numpy.finfo(kind).bits < 8


class TalkingProgram(MeshProgram):
    """A program that calls functions of the host; a call returns once they have run."""

    def __call__(self, *args: Any) -> tuple[jax.Array, ...]:
        """Runs the program; see `MeshProgram`.

        Raises:
            jax.errors.JaxRuntimeError: a function of the host failed.
        """
        assert self._calls is not None
        with self._calls.running(self.program.name):
            return super().__call__(*args)


def bind_program(program: SpmdProgram, mesh: Mesh) -> MeshProgram:
    """A program on the devices of a mesh."""
    return (TalkingProgram if program.callbacks else MeshProgram)(program, mesh)


def _global_function(program: SpmdProgram, mesh: Mesh, calls: HostCalls | None) -> Any:
    """The function of global arrays that ``jit`` compiles."""
    module = LocalModule.of(program, calls)
    if program.is_global:
        return _restoring(program, module)
    # One trace per program; the lambda keeps jit from writing the module's repr in its name.
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
    """Takes the one summand that a device has of each partial value out of its dimension.

    Arguments without elements are made here: XLA's partitioner (jaxlib 0.10.2) makes constants of
    them around the function of a device, and fails where it finds no other argument.
    """
    whole = [arg if arg.size else jax.numpy.empty(arg.shape, arg.dtype) for arg in args]
    return [
        jax.numpy.squeeze(arg, 0) if value.partial else arg
        for arg, value in zip(whole, program.inputs, strict=True)
    ]


def _stack(program: SpmdProgram, results: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
    """Gives each partial value the dimension of its summands."""
    return tuple(
        jax.numpy.expand_dims(result, 0) if value.partial else result
        for result, value in zip(results, program.outputs, strict=True)
    )


def _restore(result: jax.Array, value: ValueSpec) -> jax.Array:
    """Gives a result the type that the traced function had: typed key, weak type, memory."""
    if value.is_on_host:
        result = jax.device_put(result, jax.memory.Space.Host)
    # Without the weak type the next call would see other argument types than this one.
    return weakened(result) if value.is_weak else with_impl(result, value.key_impl)
