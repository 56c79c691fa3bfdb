"""Ways for values to go from mesh to mesh, behind one interface."""

from alpa_runtime.transport.in_process import InProcessTransport
from alpa_runtime.transport.interface import Receiver, Sender, Transport

__all__ = ["InProcessTransport", "Receiver", "Sender", "Transport"]
