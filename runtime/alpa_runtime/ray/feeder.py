"""What the driver sends to processes with a step."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import ray

from alpa_runtime.array_store import Held
from alpa_runtime.feeding import Rows, cut_rows, rows_per_process
from alpa_runtime.keys import data_of
from alpa_runtime.plan import Plan
from alpa_runtime.ray.arrays import DistributedArray

# Arrays of at most so many bytes are sent with a call. Heuristic; Ray itself inlines arguments of
# up to 100 KiB.
_SMALL_BYTES = 16 * 1024

Content = dict[int, list[Any]]
"""By mesh, what each of its processes is sent of an input."""


class Feeder:
    """Cuts inputs into what each process needs."""

    def __init__(self, plan: Plan, num_hosts: Mapping[int, int]) -> None:
        """Takes a plan, and how many processes each of its meshes has."""
        self._plan, self._num_hosts = plan, num_hosts
        self._rows = functools.cache(self._rows_of)

    def content(self, index: int, array: Any, meshes: Sequence[int] | None = None) -> Content:
        """What is sent of the value of an input.

        Args:
            index: of the input.
            array: its value.
            meshes: those that it is sent to; all that need it by default.
        """
        # What jax would make of it: a Python number, say, is one of float32.
        data = to_numpy(array).astype(self._plan.inputs[index].value.dtype, copy=False)
        whole: Any = None
        content: Content = {}
        for mesh in self._plan.inputs[index].meshes if meshes is None else meshes:
            rows = self._rows(index, mesh)
            if rows is None:
                whole = _shared(data) if whole is None else whole
                content[mesh] = [whole] * self._num_hosts[mesh]
            else:
                count = self._plan.num_micro_batches
                content[mesh] = [_shared(cut_rows(data, count, own)) for own in rows]
        return content

    def _rows_of(self, index: int, mesh: int) -> list[range] | None:
        """The rows that each process needs of a batch; None where all get all of it."""
        value, count = self._plan.inputs[index], self._num_hosts[mesh]
        own = {len(one.buffers) for one in value.placements if one.mesh == mesh}
        if (
            own != {self._plan.num_micro_batches}
            or own == {1}
            or count == 1
            or value.value.key_impl is not None
        ):
            return None
        return rows_per_process(self._plan, index, mesh, count)


def arrays_apart(feeds: Mapping[int, Any], host: int) -> tuple[dict[int, Any], list[Any]]:
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


def to_numpy(array: Any) -> Any:
    """An array of this process, or fetched to it; keys as their data."""
    if isinstance(array, DistributedArray):
        array = array.fetch()
    return np.asarray(data_of(array))


def _shared(sent: Any) -> Any:
    """Large data in Ray's object store, once for all processes; what is small goes along."""
    size = sent.data.nbytes if isinstance(sent, Rows) else sent.nbytes
    return ray.put(sent) if size > _SMALL_BYTES else sent
