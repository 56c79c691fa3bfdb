"""Ways for values to go from mesh to mesh, behind one interface."""

from alpa_runtime.transport.between_processes import Link, Place, ProcessTransport, Wanted
from alpa_runtime.transport.in_process import InProcessTransport
from alpa_runtime.transport.interface import Receiver, Sender, Transport, TransportError
from alpa_runtime.transport.pulled import PulledLink
from alpa_runtime.transport.tcp import TcpLink

__all__ = [
    "InProcessTransport",
    "Link",
    "Place",
    "ProcessTransport",
    "PulledLink",
    "Receiver",
    "Sender",
    "TcpLink",
    "Transport",
    "TransportError",
    "Wanted",
]
