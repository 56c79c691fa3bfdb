"""What a step may be called with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding

from alpa_runtime.errors import InputError
from alpa_runtime.plan import Plan


class Fed:
    """An input that lies where a step needs it already; good for one step.

    Attributes:
        aval: shape, dtype and weak type.
        content: by place, for what runs the plan.
        owner: what runs the plan.
    """

    def __init__(self, aval: Any, content: Any, owner: Any) -> None:
        """Made by ``feed`` of what runs the plan."""
        self.aval, self.content, self.owner = aval, content, owner
        self.shape, self.dtype = tuple(aval.shape), aval.dtype

    @property
    def weak_type(self) -> bool:
        """Whether it came from a Python scalar."""
        return bool(self.aval.weak_type)

    def is_deleted(self) -> bool:
        """Whether a step has taken the buffers."""
        return any(
            isinstance(part, jax.Array) and part.is_deleted() for part in self.content.values()
        )

    def __repr__(self) -> str:
        return f"Fed({self.dtype}{list(self.shape)})"


def aval_of(array: Any) -> Any:
    """Shape, dtype and weak type of an array-like, a handle, or what was fed."""
    return array.aval if hasattr(array, "aval") else jax.typeof(array)


def concrete_type() -> type[Any]:
    """The class of arrays that are there, and not traced."""
    # While jax traces, even new arrays would be.
    with jax.ensure_compile_time_eval():
        # A transfer that is asked for, which `jax.transfer_guard` lets pass.
        return type(jax.device_put(np.zeros(())))


def fetched(array: Any) -> Any:
    """An array of this process: what a cluster keeps is brought here."""
    return array.fetch() if hasattr(array, "fetch") else array


def without_types(array: jax.Array) -> jax.Array:
    """The array where it is, on a mesh whose axes are no part of its type.

    Parts of an array whose explicit mesh axes do not divide them have no type in jax.
    """
    if isinstance(array, jax.core.Tracer):
        # It is nowhere yet.
        return array
    sharding = array.sharding
    if not isinstance(sharding, NamedSharding) or not isinstance(sharding.mesh, Mesh):
        return array
    return jax.device_put(
        array,
        NamedSharding(
            Mesh(sharding.mesh.devices, sharding.mesh.axis_names),
            sharding.spec,
            memory_kind=sharding.memory_kind,
        ),
    )


def checked_aval(function: str, name: str, arg: Any) -> Any:
    """Shape, dtype and weak type of an argument.

    Raises:
        InputError: it is no array, or one that a transformation of jax traces.
    """
    if isinstance(arg, jax.core.Tracer):
        raise InputError(
            f"{name} of {function} is traced by jax.jit, jax.grad or another transformation, but a "
            "planned program runs by itself: transform the function that it was made of"
        )
    try:
        return aval_of(arg)
    except TypeError as error:
        raise InputError(f"{name} of {function} is no array: {error}") from error


def input_avals(plan: Plan) -> list[jax.ShapeDtypeStruct]:
    """Shapes and dtypes of the flat inputs, PRNG keys as keys."""
    # Only of a partial value the mesh decides the shape.
    return [
        value.value.aval(plan.sizes(value.placements[0].mesh) if value.placements else {})
        for value in plan.inputs
    ]


def check_count(plan: Plan, args: Sequence[Any]) -> None:
    """Refuses other arguments than there are inputs, as an `InputError`."""
    if len(args) != len(plan.inputs):
        raise InputError(f"{plan.name} takes {len(plan.inputs)} arrays, got {len(args)}")


def check_inputs(plan: Plan, avals: Sequence[jax.ShapeDtypeStruct], args: Sequence[Any]) -> None:
    """Refuses arguments that a step cannot take.

    Raises:
        InputError: count, shape or dtype is wrong, or an array was deleted.
    """
    check_count(plan, args)
    for index, (arg, aval) in enumerate(zip(args, avals, strict=True)):
        name = _name(plan, index)
        check_input(plan.name, name, aval, checked_aval(plan.name, name, arg))
    check_alive(plan, args)
    donated = frozenset(i for i, value in enumerate(plan.inputs) if value.is_donated)
    check_shared(plan.name, args, donated, lambda i: plan.inputs[i].value.name or f"input {i}")


def check_alive(plan: Plan, args: Sequence[Any]) -> None:
    """Refuses arrays whose buffers are gone, as an `InputError`."""
    for index, arg in enumerate(args):
        if hasattr(arg, "is_deleted") and arg.is_deleted():
            raise deleted_error(plan.name, _name(plan, index))


def check_shared(
    function: str, args: Sequence[Any], donated: frozenset[int], name: Callable[[int], str]
) -> None:
    """Refuses an array that is donated as one argument and passed as another one too.

    jaxlib 0.10.2 crashes the process when several CPU devices are given such arrays.

    Args:
        function: its name.
        args: the flat inputs.
        donated: those that are donated.
        name: of an input.

    Raises:
        InputError: naming both.
    """
    first: dict[int, int] = {}
    for index, arg in enumerate(args):
        other = first.setdefault(id(arg), index)
        if other != index and not donated.isdisjoint((other, index)) and hasattr(arg, "is_deleted"):
            taken = other if other in donated else index
            raise InputError(
                f"{name(other)} and {name(index)} of {function} are one array and {name(taken)} is "
                "donated: its buffers would be overwritten while they are read, pass a copy of one"
            )


def given_away(plan: Plan) -> tuple[int, ...]:
    """Inputs that are gone after a step, as after ``jax.jit``: an output takes their place.

    What is donated and like no output in shape and dtype stays the caller's, as jax leaves it (with
    a warning), and so does what a step returns as it came.
    """
    returned = [(output.mesh, output.buffer) for output in plan.outputs]
    made = Counter(
        (value.shape, value.dtype)
        for value in (plan.values[plan.buffers[mesh][buffer]] for mesh, buffer in returned)
    )
    found = []
    for index, one in enumerate(plan.inputs):
        held = {(place.mesh, buffer) for place in one.placements for buffer in place.buffers}
        kind = one.value.shape, one.value.dtype
        if one.is_donated and made[kind] and held.isdisjoint(returned):
            made[kind] -= 1
            found.append(index)
    return tuple(found)


def check_input(function: str, name: str, aval: Any, found: Any) -> None:
    """Refuses one argument of another shape or dtype, as an `InputError`."""
    if tuple(found.shape) != tuple(aval.shape) or found.dtype != aval.dtype:
        # Of what is no number, a PRNG key for example, there is no narrower type.
        narrowed = jax.dtypes.canonicalize_dtype(found.dtype, allow_extended_dtype=True)
        is_wide = narrowed != found.dtype and narrowed == aval.dtype
        raise InputError(
            f"{name} of {function} is {aval.dtype}{list(aval.shape)}, "
            f"got {found.dtype}{list(found.shape)}"
            + (": call it under jax.enable_x64(True), or convert it by .astype" if is_wide else "")
        )


def deleted_error(function: str, name: str) -> InputError:
    """What is said of an argument whose buffers are gone."""
    return InputError(
        f"{name} of {function} was deleted: an earlier call that donates it has taken its "
        "buffers; pass what that call returned, or, where it was interrupted or failed, begin "
        "again from a checkpoint"
    )


def _name(plan: Plan, index: int) -> str:
    return plan.inputs[index].value.name or f"input {index}"


def feed(
    plan: Plan,
    avals: Sequence[jax.ShapeDtypeStruct],
    index: int,
    array: Any,
    place: Callable[[int, Any], Any],
    owner: Any,
) -> Fed:
    """Checks an input and brings it where it is needed.

    Args:
        plan: what is run.
        avals: of its inputs.
        index: of the input.
        array: its value.
        place: brings the value of an input there.
        owner: what runs the plan.

    Raises:
        InputError: the array's shape or dtype is wrong.
    """
    name = _name(plan, index)
    aval = checked_aval(plan.name, name, array)
    check_input(plan.name, name, avals[index], aval)
    return Fed(aval, place(index, array), owner)
