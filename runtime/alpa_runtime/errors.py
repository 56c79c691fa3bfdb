"""What can go wrong when a plan is run, as exceptions."""

from __future__ import annotations


class StablehloAlpaError(Exception):
    """Base of every exception of the package, and of the runtime by itself."""


class ProgramError(StablehloAlpaError, ValueError):
    """A program that contradicts itself: its text, its mesh and its values do not agree."""


class InputError(StablehloAlpaError, TypeError, ValueError):
    """An argument that the program cannot take: wrong count, shape, dtype or key type."""


class RuntimeMeshError(StablehloAlpaError, ValueError):
    """Devices that do not make up the mesh of the program, or a cluster that lacks them."""


class ClusterError(RuntimeMeshError):
    """A process of a mesh died, failed or went silent.

    Attributes:
        mesh: number of its mesh; -1 when no single process is to blame.
        host: number of the process in its mesh.
        instruction: what it was doing, as far as is known.
    """

    def __init__(self, message: str, mesh: int = -1, host: int = -1, instruction: str = "") -> None:
        """See the class."""
        super().__init__(message)
        self.mesh, self.host, self.instruction = mesh, host, instruction


class TransportError(StablehloAlpaError, RuntimeError):
    """A peer is gone, or what it sent is not what was agreed."""
