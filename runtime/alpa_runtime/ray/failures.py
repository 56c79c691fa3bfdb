"""What went wrong in a cluster, and where."""

from __future__ import annotations

from alpa_runtime.errors import RuntimeMeshError


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
