"""Keeps the context of a caller away from programs that bring their own."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax
import numpy as np
from jax._src import config  # jax has no public way out of `ensure_compile_time_eval`.
from jax.sharding import Mesh

P = ParamSpec("P")
R = TypeVar("R")


def outside_mesh(fun: Callable[P, R]) -> Callable[P, R]:
    """Makes a function run as outside of ``with jax.set_mesh(...)``.

    Inside of it ``jax.shard_map`` takes no other mesh and ``jax.jit`` no other devices, and a
    planned program has its own.
    """

    @functools.wraps(fun)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        if jax.sharding.get_abstract_mesh().empty:
            return fun(*args, **kwargs)
        none, context = Mesh(np.empty((), object), ()), contextlib.ExitStack()
        try:
            context.enter_context(jax.set_mesh(none))
        except ValueError:
            # While jax traces, the mesh is a part of the types only.
            context.enter_context(jax.sharding.use_abstract_mesh(none.abstract_mesh))
        with context:
            return fun(*args, **kwargs)

    return wrapped


def staged(fun: Callable[P, R]) -> Callable[P, R]:
    """Makes a function trace all that it does, as outside of ``jax.ensure_compile_time_eval``.

    There jax computes at once what depends on no argument: a program that takes none would be run
    on one device while it is traced for all of its mesh.
    """

    @functools.wraps(fun)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with config.eager_constant_folding(False):
            return fun(*args, **kwargs)

    return wrapped


def outside_trace(fun: Callable[P, R]) -> Callable[P, R]:
    """Makes a function run as outside of ``jax.jit`` and of ``with jax.set_mesh(...)``.

    Arrays that are there are worked on at once, also while jax traces something that they are no
    part of.
    """
    inner = outside_mesh(fun)

    @functools.wraps(fun)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.ensure_compile_time_eval():
            return inner(*args, **kwargs)

    return wrapped


def may_not_move() -> bool:
    """Whether ``jax.transfer_guard`` asks for the word where an array goes to other devices.

    Where a plan wants its inputs elsewhere, the call is that word: ``jax.device_put`` passes.
    """
    return config.transfer_guard_device_to_device.value is not None
