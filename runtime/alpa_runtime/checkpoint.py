"""Checkpoints: an index beside parts that orbax writes, each by the processes that hold its arrays.

A checkpoint is a folder with ``index.json`` (what each leaf of the state is, and where) and one
orbax checkpoint per part. It is data alone. Arrays come back in any sharding, whatever they were
saved in.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
from jax.sharding import Sharding

from alpa_runtime.errors import InputError
from alpa_runtime.keys import data_of, impl_of, key_shape, with_impl
from alpa_runtime.peers import Peers

Key = TypeVar("Key")

VERSION = 1
_INDEX = "index.json"
# In a checkpoint that is being written: what went wrong in the process of that number.
_FAILURE = "failed-"


@dataclasses.dataclass(frozen=True)
class Leaf:
    """An array of a checkpoint.

    Attributes:
        key: its path in the state, as ``jax.tree_util.keystr`` writes it.
        shape: of the array; of a PRNG key that of its data.
        dtype: numpy-style name.
        key_impl: name of the PRNG implementation when it is an array of typed keys.
        part: folder of the part that holds it.
        name: by which the part knows it.
    """

    key: str
    shape: tuple[int, ...]
    dtype: str
    key_impl: str | None
    part: str
    name: str


class PartWriter:
    """Writes parts from one process, in the background."""

    def __init__(self) -> None:
        """Starts nothing yet."""
        self._writer: Any = None

    def save(self, folder: str | os.PathLike[str], arrays: Mapping[str, jax.Array]) -> None:
        """Begins to write arrays; they may be donated once this returns.

        All processes of the arrays' mesh call it.
        """
        ocp = _orbax()
        if self._writer is None:
            # Meetings are named after the folder: other checkpoints may be under way.
            own = ocp.options.MultiprocessingOptions(
                barrier_sync_key_prefix=Path(folder).parent.name
            )
            self._writer = ocp.AsyncCheckpointer(
                ocp.PyTreeCheckpointHandler(multiprocessing_options=own),
                multiprocessing_options=own,
            )
        # Orbax takes no array without elements; the index has its shape and type.
        kept = {
            name: _detached(data_of(array)) for name, array in arrays.items() if data_of(array).size
        }
        if not kept:
            return
        self._writer.save(Path(folder).absolute(), args=ocp.args.PyTreeSave(kept))

    def wait(self) -> None:
        """Waits until everything is written, and raises what went wrong."""
        if self._writer is not None:
            self._writer.wait_until_finished()


def read_part(
    folder: str | os.PathLike[str], wanted: Mapping[Key, tuple[Leaf, Sharding]]
) -> dict[Key, jax.Array]:
    """Arrays of one part.

    Args:
        folder: of the checkpoint.
        wanted: by any key, the leaf and the sharding in which it is wanted; PRNG keys as keys.

    Returns:
        the arrays, by the same keys.
    """
    ocp = _orbax()
    found = {key: _without_elements(*one) for key, one in wanted.items() if 0 in one[0].shape}
    wanted = {key: one for key, one in wanted.items() if key not in found}
    for part in sorted({leaf.part for leaf, _ in wanted.values()}):
        own = {key: (leaf, to) for key, (leaf, to) in wanted.items() if leaf.part == part}
        arguments = {
            leaf.name: ocp.ArrayRestoreArgs(sharding=_data_sharding(leaf, to))
            for leaf, to in own.values()
        }
        restored = ocp.PyTreeCheckpointer().restore(
            (Path(folder) / part).absolute(),
            args=ocp.args.PyTreeRestore(
                item=dict.fromkeys(arguments, 0), restore_args=arguments, partial_restore=True
            ),
        )
        for key, (leaf, sharding) in own.items():
            array = with_impl(restored[leaf.name], leaf.key_impl)
            found[key] = jax.device_put(array, sharding) if leaf.key_impl else array
    return found


def _without_elements(leaf: Leaf, sharding: Sharding) -> jax.Array:
    data = np.zeros(leaf.shape, np.dtype(leaf.dtype))
    return jax.device_put(with_impl(jax.numpy.asarray(data), leaf.key_impl), sharding)


def write_index(folder: str | os.PathLike[str], leaves: Sequence[Leaf]) -> None:
    """Writes what a checkpoint holds."""
    data = {"version": VERSION, "leaves": [dataclasses.asdict(leaf) for leaf in leaves]}
    (Path(folder) / _INDEX).write_text(json.dumps(data))


def read_index(folder: str | os.PathLike[str]) -> dict[str, Leaf]:
    """What a checkpoint holds, by key.

    Raises:
        InputError: there is no checkpoint, it is of another version, or its index is damaged.
    """
    name = os.fspath(folder)
    try:
        data = json.loads((Path(folder) / _INDEX).read_text())
        if data["version"] != VERSION:
            raise InputError(f"{name} is a checkpoint of version {data['version']}, not {VERSION}")
        leaves = [Leaf(**{**leaf, "shape": tuple(leaf["shape"])}) for leaf in data["leaves"]]
    except FileNotFoundError as error:
        raise InputError(f"{name} is no checkpoint: it has no {_INDEX}") from error
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name} is no checkpoint, or is damaged: {error}") from error
    for leaf in leaves:
        if Path(leaf.part).name != leaf.part:
            raise InputError(f"{name} names a part outside of it: {leaf.part!r}")
    return {leaf.key: leaf for leaf in leaves}


def remove_folder(folder: Path, timeout_s: float = 5.0) -> None:
    """Removes a folder, also from under processes that were killed and are just ending."""
    deadline = time.monotonic() + timeout_s
    while True:
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists() or time.monotonic() > deadline:
            return
        time.sleep(0.05)


class Saving:
    """A checkpoint that is being written, by all processes that ``jax.distributed`` joins.

    The folder appears under its name once everything is in it, or not at all.
    """

    def __init__(
        self, target: str | os.PathLike[str], begin: Callable[[Path], Callable[[], None]]
    ) -> None:
        """Begins.

        Args:
            target: the folder, in a file system that all processes share; one that exists is
                replaced.
            begin: starts to write into a folder, and returns what waits for the end.

        Raises:
            OSError: the folder cannot be made, or some process does not see it.
        """
        self._target = Path(target).absolute()
        self._peers = Peers()
        self._temporary = self._make_folder()
        self._error: BaseException | None = None
        try:
            finish = begin(self._temporary)
        except BaseException:
            if self._peers.is_lead:
                remove_folder(self._temporary)
            raise
        self._thread = threading.Thread(target=self._finish, args=(finish,))
        self._thread.start()

    def wait(self) -> None:
        """Waits until the checkpoint is there, and raises what went wrong."""
        self._thread.join()
        if self._error is not None:
            raise self._error

    def is_done(self) -> bool:
        """Whether `wait` would return, or raise, at once."""
        return not self._thread.is_alive()

    def _make_folder(self) -> Path:
        """The folder that is written into, one for all processes."""
        name = self._peers.told_by_lead(f"{self._target.name}.partial-{uuid.uuid4().hex[:12]}")
        folder = self._target.with_name(name)
        error: OSError | None = None
        if self._peers.is_lead:
            try:
                folder.mkdir(parents=True)
            except OSError as found:
                error = found
        self._peers.are_all(True)
        seen = self._peers.are_all(folder.is_dir())
        if error is not None:
            raise error
        if not all(seen):
            if self._peers.is_lead:
                remove_folder(folder)
            raise OSError(
                f"process {seen.index(False)} does not see {folder}, which process 0 has tried to "
                "make: a checkpoint must be in a file system that all processes share"
            )
        return folder

    def _finish(self, finish: Callable[[], None]) -> None:
        """Whatever happens to one process is left as a note, so that none waits for it in vain."""
        peers, folder = self._peers, self._temporary
        try:
            self._noting(finish)
            peers.meet(f"{folder.name}-written")
            if peers.is_lead and not self._failures():
                self._noting(self._publish)
            peers.meet(f"{folder.name}-published")
            failures = self._failures()
            peers.meet(f"{folder.name}-seen")
            if failures and self._error is None:
                number, reason = next(iter(failures.items()))
                self._error = OSError(f"process {number} failed to write {self._target}: {reason}")
        except BaseException as error:
            self._error = self._error or error
        if self._error is not None and peers.is_lead:
            remove_folder(folder)

    def _noting(self, act: Callable[[], None]) -> None:
        try:
            act()
        except BaseException as error:
            self._error = error
            note = self._temporary / f"{_FAILURE}{self._peers.number}"
            note.write_text(f"{type(error).__name__}: {error}")

    def _failures(self) -> dict[int, str]:
        """What went wrong, by number of the process."""
        notes = sorted(self._temporary.glob(f"{_FAILURE}*"))
        return {int(note.name.removeprefix(_FAILURE)): note.read_text() for note in notes}

    def _publish(self) -> None:
        if not self._target.exists():
            self._temporary.rename(self._target)
            return
        old = self._temporary.with_name(self._temporary.name + "-old")
        self._target.rename(old)
        self._temporary.rename(self._target)
        remove_folder(old)


def describe(key: str, array: Any, part: str, name: str) -> Leaf:
    """The entry of an array in the index."""
    impl = impl_of(array) if isinstance(array, jax.Array) else array.key_impl
    shape = tuple(array.shape)
    if impl is not None:
        shape = (*shape, *key_shape(impl))
    return Leaf(key, shape, "uint32" if impl else str(array.dtype), impl, part, name)


def _data_sharding(leaf: Leaf, sharding: Sharding) -> Sharding:
    """That of the data of PRNG keys: whole everywhere, they are small."""
    if leaf.key_impl is None or not isinstance(sharding, jax.sharding.NamedSharding):
        return sharding
    return jax.sharding.NamedSharding(sharding.mesh, jax.sharding.PartitionSpec())


def _detached(array: jax.Array) -> Any:
    """What may be written while the array is donated."""
    if jax.process_count() > 1 and array.is_fully_addressable:
        # Of this process alone, such as a counter: orbax writes that of the first process.
        return np.array(array)
    # The host's view of a CPU array is the array: the next step would write into it.
    return jax.numpy.copy(array) if array.platform() == "cpu" else array


def _orbax() -> Any:
    try:
        return importlib.import_module("orbax.checkpoint")
    except ImportError as error:
        raise ImportError(
            "checkpoints need orbax: pip install 'stablehlo-alpa[checkpoint]'"
        ) from error
