"""What every transport does: the same suite for each."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from alpa_runtime import LocalExecutable
from alpa_runtime.array_store import Held
from alpa_runtime.mesh_process import StepOrder
from alpa_runtime.plan import Plan
from mesh_processes import MeshProcesses
from often import seldom
from sending import Value, sending_plan

Run = Callable[[Sequence[Any]], list[Any]]


class InProcess:
    """Both meshes in this process."""

    def __init__(self, plan: Plan) -> None:
        self._run = LocalExecutable(plan, jax.devices())

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """Sends arrays; returns what landed."""
        return [np.asarray(result) for result in self._run(*arrays)]

    def close(self) -> None:
        """There is nothing to end."""


class Apart:
    """Each mesh in a process."""

    def __init__(self, plan: Plan, transport: str) -> None:
        self.processes = MeshProcesses(plan, transport)
        self._plan = plan
        self._step = 0

    def order(self, arrays: Sequence[Any]) -> tuple[StepOrder, StepOrder]:
        """What both processes are asked for in the next step."""
        count = len(arrays)
        transfer = self._step * count
        first = StepOrder(0, self._step, transfer, dict(enumerate(arrays)), {})
        second = StepOrder(0, self._step, transfer, {}, {i: i for i in range(count)})
        self._step += 1
        return first, second

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """Sends arrays; returns what landed."""
        for mesh, order in enumerate(self.order(arrays)):
            self.processes.ask(mesh, "step", order)
        for mesh in (0, 1):
            self.processes.answer(mesh)
        results = []
        for number in range(len(arrays)):
            self.processes.ask(1, "fetch", number)
            value = self._plan.value(1, number)
            whole = np.zeros(value.shape, arrays[number].dtype)
            for index, part in self.processes.answer(1):
                whole[index] = part
            results.append(whole)
        return results

    def close(self) -> None:
        """Ends both processes."""
        self.processes.close()


MAKERS: dict[str, Callable[[Plan], Any]] = {
    "in_process": InProcess,
    "jax": lambda plan: Apart(plan, "jax"),
    "tcp": lambda plan: Apart(plan, "tcp"),
    # What NCCL is called by, with a stand-in for NCCL.
    "host": lambda plan: Apart(plan, "host"),
}


@contextlib.contextmanager
def running(name: str, values: Sequence[Value]) -> Iterator[Any]:
    transport = MAKERS[name](sending_plan(values))
    try:
        yield transport
    finally:
        transport.close()


def numbers(seed: int, shape: tuple[int, ...], dtype: str) -> Any:
    found = np.random.default_rng(seed).integers(0, 100, shape)
    return np.asarray(found % 2 if dtype == "bool" else found).astype(
        getattr(ml_dtypes, dtype, dtype)
    )


def check_values(transport: Any, values: Sequence[Value], seed: int = 0) -> None:
    arrays = [
        numbers(seed + index, shape, dtype) for index, (shape, dtype, _, _) in enumerate(values)
    ]
    for array, found in zip(arrays, transport(arrays), strict=True):
        # What landed may be padded behind the value.
        box = tuple(slice(0, size) for size in array.shape)
        first = found.reshape(-1)[0] if not array.shape else found[box]
        np.testing.assert_array_equal(np.asarray(first, array.dtype), array, strict=True)


ODD: list[Value] = [
    ((8, 4), "bool", "x .", "y ."),
    ((8, 4), "bfloat16", "x y", ". ."),
    ((6,), "int8", "x", "."),
    ((4, 4), "complex64", ". .", "x y"),
    ((8,), "float8_e4m3fn", "y", "x"),
    ((), "float32", "", ""),
    ((), "int32", "", ""),
    ((5, 3), "float16", ". .", ". ."),
    ((0, 4), "float32", ". .", ". ."),
    ((2, 0), "int32", "x .", ". ."),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["in_process", "tcp", "host", seldom("jax")])
def test_odd_types_and_empty_values(name: str) -> None:
    with running(name, ODD) as transport:
        for step in range(3):
            check_values(transport, ODD, 100 * step)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["in_process", "tcp", "host", seldom("jax")])
def test_large_values(name: str) -> None:
    values: list[Value] = [((4096, 4096), "float32", "x .", "x y")]
    with running(name, values) as transport:
        check_values(transport, values)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["in_process", "jax", "tcp", seldom("host")])
def test_many_in_flight_keep_their_order(name: str) -> None:
    values: list[Value] = [((4, 4), "int32", "x y", "x y")] * 300
    with running(name, values) as transport:
        for step in range(3):
            check_values(transport, values, step)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tcp", "host", seldom("jax")])
def test_a_peer_that_dies_is_an_error(name: str) -> None:
    values: list[Value] = [((256, 256), "float32", "x .", "x y")]
    with running(name, values) as transport:
        check_values(transport, values)
        transport.processes.processes[0].kill()
        transport.processes.processes[0].join()
        _, second = transport.order([numbers(0, (256, 256), "float32")])
        transport.processes.ask(1, "step", second)
        with pytest.raises(RuntimeError, match=r"TransportError: mesh 0 host 0 |JaxRuntimeError"):
            transport.processes.answer(1, 20)


@pytest.mark.slow
def test_an_array_that_is_not_kept_is_named() -> None:
    values: list[Value] = [((4, 4), "float32", "x y", "x y")]
    with running("tcp", values) as transport:
        transport.processes.ask(0, "step", StepOrder(0, 0, 0, {0: Held(7)}, {}))
        with pytest.raises(RuntimeError, match="InputError: input 0 of sending is array 7"):
            transport.processes.answer(0)


def strangers(address: str) -> Iterator[bytes]:
    yield b""
    yield b"GET / HTTP/1.1\r\n\r\n"
    yield struct.pack("<I32sii", 0x41504C41, b"\0" * 32, 0, 0)
    yield bytes(range(256)) * 40


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tcp", seldom("jax"), "host"])
def test_strangers_are_turned_away(name: str) -> None:
    values: list[Value] = [((64, 64), "float32", "x .", "x y")]
    with running(name, values) as transport:
        check_values(transport, values)
        for address in transport.processes.addresses:
            host, port = address.rsplit(":", 1)
            for message in strangers(address):
                with socket.create_connection((host, int(port))) as connection:
                    connection.sendall(message)
        for step in range(3):
            check_values(transport, values, step)
