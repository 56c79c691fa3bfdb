"""Compiles a per-device program for a mesh and calls it on global arrays.

The local module is called inside ``jax.shard_map`` under ``jax.jit``: sharded inputs, donation,
multi-process meshes and the fast dispatch are jax's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding

from alpa_runtime.errors import InputError, RuntimeMeshError
from alpa_runtime.local_call import LocalModule
from alpa_runtime.program import SpmdProgram, ValueSpec, numpy_dtype


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
        self.in_shardings = tuple(
            NamedSharding(mesh, value.logical_spec) for value in program.inputs
        )
        self.out_shardings = tuple(
            NamedSharding(mesh, value.logical_spec) for value in program.outputs
        )
        self._avals = tuple(
            _logical_aval(value, sharding, program.mesh_sizes)
            for value, sharding in zip(program.inputs, self.in_shardings, strict=True)
        )
        self._compiled: jax.stages.Compiled | None = None
        self._array_type: type[Any] = jax.Array
        # Arrays that come with another sharding make jax refuse the call. As long as none did, the
        # arguments go to it unseen; afterwards each is looked at first.
        self._must_place = False
        self._jitted = jax.jit(
            _global_function(program, mesh),
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
            raise _deleted(self.program, args)
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
        _check_aval(self.program, index, jax.typeof(array), self._avals[index])
        return jax.device_put(array, self.in_shardings[index])

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
            for arg, sharding in zip(args, self.in_shardings, strict=True)
        ]

    def check(self, args: Sequence[Any]) -> None:
        """Raises ``InputError`` unless shapes and dtypes of ``args`` are those of the inputs."""
        if len(args) != len(self.program.inputs):
            raise InputError(
                f"{self.program.name} takes {len(self.program.inputs)} arrays, got {len(args)}"
            )
        for index, (arg, aval) in enumerate(zip(args, self._avals, strict=True)):
            _check_aval(self.program, index, jax.typeof(arg), aval)

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


def compile_spmd(program: SpmdProgram, devices: Sequence[jax.Device] | Mesh) -> Executable:
    """Binds a program to devices.

    Args:
        program: the per-device program.
        devices: as many devices as the program's mesh has, in the order of the flattened mesh; or a
            ``Mesh`` with the same axes.

    Raises:
        RuntimeMeshError: when the devices do not make up the mesh.
    """
    shape = tuple(size for _, size in program.mesh)
    names = tuple(axis for axis, _ in program.mesh)
    if isinstance(devices, Mesh):
        if dict(devices.shape) != program.mesh_sizes or tuple(devices.axis_names) != names:
            raise RuntimeMeshError(
                f"{program.name} runs on a mesh {program.mesh_sizes}, got {dict(devices.shape)}"
            )
        return Executable(program, devices)
    if len(devices) != program.num_devices:
        raise RuntimeMeshError(
            f"{program.name} runs on {program.num_devices} devices "
            f"({'x'.join(map(str, shape))}), got {len(devices)}"
        )
    # np.array would try to iterate over the devices; a mesh without axes holds one device.
    flat = np.empty(len(devices), dtype=object)
    flat[:] = devices
    return Executable(program, Mesh(flat.reshape(shape), names))


def _logical_aval(
    value: ValueSpec, sharding: NamedSharding, sizes: dict[str, int]
) -> jax.ShapeDtypeStruct:
    """The aval that the caller passes: keys are typed, not raw data."""
    if value.key_impl is None:
        shape = value.array_shape(sizes)
        return jax.ShapeDtypeStruct(shape, numpy_dtype(value.dtype), weak_type=value.is_weak)
    key = jax.eval_shape(lambda: jax.random.key(0, impl=value.key_impl))
    return jax.ShapeDtypeStruct(value.logical_shape, key.dtype, sharding=sharding)


def _deleted(program: SpmdProgram, args: Sequence[Any]) -> InputError:
    index = next(i for i, arg in enumerate(args) if isinstance(arg, jax.Array) and arg.is_deleted())
    name = program.inputs[index].name or f"input {index}"
    return InputError(
        f"{name} of {program.name} was deleted: an earlier call that donates it has taken its "
        "buffers; pass what that call returned"
    )


def _check_aval(program: SpmdProgram, index: int, found: Any, expected: Any) -> None:
    if found.shape == expected.shape and found.dtype == expected.dtype:
        return
    name = program.inputs[index].name or f"input {index}"
    raise InputError(
        f"{name} of {program.name} is {expected.dtype}{list(expected.shape)}, "
        f"got {found.dtype}{list(found.shape)}"
    )


def _global_function(program: SpmdProgram, mesh: Mesh) -> Any:
    """The function of global arrays that ``jit`` compiles."""
    sizes = program.mesh_sizes
    module = LocalModule(
        name=program.name,
        text=program.text,
        inputs=tuple((value.local_shape(sizes), value.dtype) for value in program.inputs),
        outputs=tuple((value.local_shape(sizes), value.dtype) for value in program.outputs),
    )
    # One trace per executable; the lambda keeps jit from writing the module's repr in its name.
    sharded = jax.shard_map(
        lambda *args: _stack(program, module(*_unstack(program, args))),
        mesh=mesh,
        in_specs=tuple(value.spec for value in program.inputs),
        out_specs=tuple(value.spec for value in program.outputs),
        check_vma=False,
    )

    def run(*args: Any) -> tuple[Any, ...]:
        data = [
            arg if value.key_impl is None else jax.random.key_data(arg)
            for arg, value in zip(args, program.inputs, strict=True)
        ]
        return tuple(
            _restore(result, value)
            for result, value in zip(sharded(*data), program.outputs, strict=True)
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
    if value.key_impl is not None:
        return jax.random.wrap_key_data(result, impl=value.key_impl)
    if value.is_weak:
        # No operation is emitted: only the type changes. Without it the next call would see other
        # argument types than this one.
        return jax.lax.convert_element_type_p.bind(
            result, new_dtype=result.dtype, weak_type=True, sharding=None
        )
    return result
