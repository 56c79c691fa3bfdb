"""Saving and restoring the state of a training run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
from alpa_runtime import InputError
from alpa_runtime.checkpoint import Leaf, PartWriter, Saving, describe, read_index, write_index
from alpa_runtime.keys import is_key

from stablehlo_alpa.option_checks import checked_flag, checked_instance


def save_checkpoint(path: str | os.PathLike[str], state: Any, *, wait: bool = True) -> Saving:
    """Saves a state, every array by the processes that hold it.

    The state may be used, and donated, as soon as this returns; the files are written behind. Under
    ``jax.distributed`` all processes call it, as they do their computations, and it is one
    checkpoint; arrays of one process alone are taken from the first.

    Args:
        path: of a folder, which appears when everything is in it. One that exists is replaced. All
            processes must see it.
        state: a pytree of arrays, of this process or of a cluster.
        wait: whether to return only once the folder is there.

    Returns:
        what can be waited for.

    Raises:
        OSError: the files cannot be written.
        ClusterError: a process that holds arrays is gone.
    """
    checked_instance("path", path, (str, os.PathLike), "a folder")
    wait = checked_flag("wait", wait)
    leaves = [
        (jax.tree_util.keystr(key), leaf if hasattr(leaf, "sharding") else jax.numpy.asarray(leaf))
        for key, leaf in jax.tree_util.tree_leaves_with_path(state)
    ]
    saving = Saving(path, lambda folder: _begin(folder, leaves))
    if wait:
        saving.wait()
    return saving


def _begin(folder: Path, leaves: Sequence[tuple[str, Any]]) -> Callable[[], None]:
    entries: list[Leaf] = []
    finishing: list[Callable[[], None]] = []
    local: dict[str, jax.Array] = {}
    elsewhere: dict[int, tuple[Any, dict[str, tuple[str, Any]]]] = {}
    for number, (key, array) in enumerate(leaves):
        name = f"leaf_{number}"
        if isinstance(array, jax.Array):
            local[name] = array
            entries.append(describe(key, array, "part_local", name))
        else:
            owner, arrays = elsewhere.setdefault(id(array.owner), (array.owner, {}))
            part = f"part_{list(elsewhere).index(id(owner))}_mesh_{array.sharding.mesh}"
            arrays[name] = (part, array)
            entries.append(describe(key, array, part, name))
    if local:
        writer = PartWriter()
        writer.save(folder / "part_local", local)
        finishing.append(writer.wait)
    for owner, arrays in elsewhere.values():
        finishing.append(owner.save(folder, arrays))

    def finish() -> None:
        for wait in finishing:
            wait()
        if jax.process_index() == 0:
            write_index(folder, entries)

    return finish


def match_leaves(
    path: str | os.PathLike[str], keys: Sequence[str], avals: Sequence[Any]
) -> list[Leaf]:
    """The leaves of a checkpoint that a state is made of.

    Args:
        path: of the checkpoint.
        keys: of the state's leaves.
        avals: their shapes and dtypes.

    Raises:
        InputError: the checkpoint has other leaves than the state.
    """
    index: Mapping[str, Leaf] = read_index(path)
    missing = [key for key in keys if key not in index]
    if missing:
        left = [key for key in index if key not in set(keys)]
        raise InputError(
            f"{os.fspath(path)} lacks {missing[0]} and {len(missing) - 1} other leaves of the "
            f"state; it has {len(left)} that the state lacks"
            + (f", such as {left[0]}" if left else "")
        )
    found = [index[key] for key in keys]
    for leaf, aval in zip(found, avals, strict=True):
        shape, dtype_fits = leaf.shape, leaf.dtype == str(aval.dtype)
        if is_key(aval):
            shape, dtype_fits = shape[: len(aval.shape)], leaf.key_impl is not None
        if tuple(shape) != tuple(aval.shape) or not dtype_fits:
            raise InputError(
                f"{leaf.key} of {os.fspath(path)} is {leaf.dtype}{list(leaf.shape)}, the state has "
                f"{aval.dtype}{list(aval.shape)}"
            )
    return found
