"""Wires made of NCCL's sends and receives, through nccl4py.

A wire is a communicator of all devices of two processes, with a stream of its own on each, so that
what moves neither waits for programs nor holds them up. Communicators do not block: a peer that
never comes, or is gone, is noticed by whoever polls, who then aborts. See NCCL's user guide,
"Point-to-point communication" and "Fault tolerance".
"""

from __future__ import annotations

import fcntl
import importlib
import importlib.util
import os
import socket
import struct
from collections.abc import Sequence
from typing import Any

import jax

from alpa_runtime.errors import RuntimeMeshError, TransportError
from alpa_runtime.transport.wire import Move, Wire

_INTERFACE = "NCCL_SOCKET_IFNAME"
# Of Linux: asks a network interface for its address.
_SIOCGIFADDR = 0x8915


def is_available() -> bool:
    """Whether nccl4py is installed."""
    return importlib.util.find_spec("nccl") is not None


class Nccl:
    """NCCL, listening where it is told to."""

    def __init__(self, devices: Sequence[jax.Device], bind: str) -> None:
        """Loads NCCL.

        Args:
            devices: of this process.
            bind: address of the network interface that NCCL meets its peers at, unless the
                environment says (``NCCL_SOCKET_IFNAME``).

        Raises:
            RuntimeMeshError: the devices are no GPUs, or nccl4py is not installed.
        """
        if devices[0].platform not in ("gpu", "cuda"):
            raise RuntimeMeshError(
                f"transport nccl moves data between GPUs, the mesh has {devices[0].platform} "
                "devices; choose transport='tcp'"
            )
        if not is_available():
            raise RuntimeMeshError(
                "transport nccl needs nccl4py: pip install 'stablehlo-alpa[nccl-cu12]' or "
                "'stablehlo-alpa[nccl-cu13]'"
            )
        # A sign of equality asks for this interface alone, not for all whose name begins so.
        os.environ.setdefault(_INTERFACE, f"={interface_of(bind)}")
        self._core = importlib.import_module("nccl.core")

    def new_identity(self) -> bytes:
        """See `WireLibrary`."""
        return bytes(self._core.get_unique_id())

    def open(
        self, identity: bytes, num_ranks: int, first_rank: int, devices: Sequence[jax.Device]
    ) -> Wire:
        """See `WireLibrary`."""
        return NcclWire(self._core, identity, num_ranks, first_rank, devices)


class NcclWire:
    """A communicator per device, each with its stream."""

    def __init__(
        self,
        core: Any,
        identity: bytes,
        num_ranks: int,
        first_rank: int,
        devices: Sequence[jax.Device],
    ) -> None:
        """Begins to open it; see `WireLibrary.open`."""
        cuda = importlib.import_module("cuda.core")
        self._core = core
        self._devices = [cuda.Device(device.local_hardware_id) for device in devices]
        self._comms: list[Any] = []
        self._streams: list[Any] = []
        # What was recorded behind what was started; None until NCCL has launched it.
        self._events: list[Any] | None = []
        self._started: list[int] = []
        config = core.NCCLConfig(blocking=False, comm_name="stablehlo_alpa")
        known = core.UniqueId.from_bytes(identity)
        with core.group():
            for position, device in enumerate(self._devices):
                device.set_current()
                self._streams.append(
                    device.create_stream(options=cuda.StreamOptions(nonblocking=True))
                )
                comm = core.Communicator.init(num_ranks, first_rank + position, known, config)
                self._comms.append(comm)

    def is_open(self) -> bool:
        """See `Wire`."""
        return self._have_launched(self._comms)

    def start(self, sends: Sequence[Move], receives: Sequence[Move]) -> None:
        """See `Wire`."""
        # All at once: a group begins them together, in whatever order they come.
        with self._core.group():
            for move in sends:
                buffer, stream = _Memory(move.array), self._streams[move.device]
                self._comms[move.device].send(buffer, move.rank, stream=stream)
            for move in receives:
                buffer, stream = _Memory(move.array), self._streams[move.device]
                self._comms[move.device].recv(buffer, move.rank, stream=stream)
        self._started = sorted({move.device for move in [*sends, *receives]})
        self._events = None

    def is_done(self) -> bool:
        """See `Wire`."""
        if not self._have_launched([self._comms[position] for position in self._started]):
            return False
        if self._events is None:
            self._events = []
            for position in self._started:
                self._devices[position].set_current()
                self._events.append(self._streams[position].record())
        return all(event.is_done for event in self._events)

    def close(self) -> None:
        """See `Wire`."""
        comms, self._comms = self._comms, []
        for comm in comms:
            comm.abort()
        for stream in self._streams:
            stream.close()

    def _have_launched(self, comms: Sequence[Any]) -> bool:
        states = [comm.get_async_error() for comm in comms]
        for comm, state in zip(comms, states, strict=True):
            if state.name not in ("Success", "InProgress"):
                raise TransportError(f"NCCL: {state.name}: {comm.get_last_error()}")
        return all(state.name == "Success" for state in states)


class _Memory:
    """A jax array as bytes that may be overwritten, by numba's interface for CUDA arrays.

    jax's own is read-only, and knows neither bfloat16 nor float8.
    """

    def __init__(self, array: jax.Array) -> None:
        self.__cuda_array_interface__ = {
            "shape": (array.nbytes,),
            "typestr": "|u1",
            "data": (array.unsafe_buffer_pointer(), False),
            "strides": None,
            "version": 3,
        }


def interface_of(address: str) -> str:
    """The name of the network interface that has an address.

    Raises:
        RuntimeMeshError: none has.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode())
            try:
                answer = fcntl.ioctl(asking.fileno(), _SIOCGIFADDR, request)
            except OSError:
                # It has no address.
                continue
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    raise RuntimeMeshError(f"no network interface of this host has address {address}")
