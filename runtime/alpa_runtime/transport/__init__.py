"""Ways for values to go from mesh to mesh, behind one interface."""

from alpa_runtime.errors import TransportError
from alpa_runtime.transport.between_processes import Link, Place, ProcessTransport, Wanted
from alpa_runtime.transport.direct import DirectLink
from alpa_runtime.transport.in_process import InProcessTransport
from alpa_runtime.transport.interface import Mail, Receiver, Sender, Transport
from alpa_runtime.transport.links import LINKS, make_link
from alpa_runtime.transport.pulled import PulledLink
from alpa_runtime.transport.tcp import TcpLink
from alpa_runtime.transport.wire import Move, Wire, WireLibrary

__all__ = [
    "LINKS",
    "DirectLink",
    "InProcessTransport",
    "Link",
    "Mail",
    "Move",
    "Place",
    "ProcessTransport",
    "PulledLink",
    "Receiver",
    "Sender",
    "TcpLink",
    "Transport",
    "TransportError",
    "Wanted",
    "Wire",
    "WireLibrary",
    "make_link",
]
