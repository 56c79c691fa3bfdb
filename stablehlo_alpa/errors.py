"""Exceptions that a user of the package can cause or meet."""

from __future__ import annotations

from collections.abc import Sequence

from alpa_runtime.errors import (
    ClusterError,
    InputError,
    ProgramError,
    RuntimeMeshError,
    StablehloAlpaError,
)

__all__ = [
    "ArgumentError",
    "ClusterError",
    "CompileError",
    "CostError",
    "InfeasibleError",
    "InputError",
    "MeshError",
    "ModelError",
    "OptionError",
    "ProgramError",
    "RuntimeMeshError",
    "ShardingError",
    "SolverError",
    "StablehloAlpaError",
    "StageError",
    "TraceError",
    "WitnessError",
]


class TraceError(StablehloAlpaError):
    """A function could not be traced to StableHLO, or its arguments do not fit it."""


class ArgumentError(TraceError, TypeError, ValueError):
    """An argument that is no array and not static either, or a static one that has no hash.

    ``jax.jit`` raises a `TypeError` for the first and a `ValueError` for the second.
    """


class OptionError(StablehloAlpaError, TypeError, ValueError):
    """An option of the wrong type or value."""


class CompileError(StablehloAlpaError):
    """A pass refused a module; the message holds its diagnostics."""


class MeshError(StablehloAlpaError, ValueError):
    """A mesh or a device description is not valid, or does not fit the devices."""


class ShardingError(StablehloAlpaError, ValueError):
    """A sharding is not valid for its tensor and mesh."""


class StageError(StablehloAlpaError, ValueError):
    """Stages were asked for that the layers of the model do not make up."""


class CostError(StablehloAlpaError, ValueError):
    """A cost was asked for that the model does not know (nothing is silently free)."""


class InfeasibleError(StablehloAlpaError):
    """No plan satisfies the constraints.

    Attributes:
        needed_bytes: least memory budget per device that some plan is known to meet, when the
            budget is at fault. Bytes.
        least_bytes: memory per device that no plan does with less of, as far as that is proved.
            Bytes.
        least_by_mesh: by the shape of a mesh the same of plans on it, where meshes were tried.
        budget_bytes: the budget asked for. Bytes.
        largest: ``(tensor name, bytes)`` of the largest tensors live at the worst program point
            of the plan that needs the least memory, largest first.
        work_s, needed_work_s, is_late: of finding it out, see `Solution`.
    """

    def __init__(
        self,
        message: str,
        *,
        needed_bytes: float | None = None,
        budget_bytes: float | None = None,
        largest: Sequence[tuple[str, float]] = (),
        least_bytes: float | None = None,
    ) -> None:
        super().__init__(message)
        self.needed_bytes = needed_bytes
        self.least_bytes = least_bytes
        self.budget_bytes = budget_bytes
        self.largest = tuple(largest)
        self.least_by_mesh: dict[tuple[int, ...], float] = {}
        self.work_s = self.needed_work_s = 0.0
        self.is_late = False

    def reworded(self, message: str) -> InfeasibleError:
        """The same in other words."""
        error = InfeasibleError(
            message,
            needed_bytes=self.needed_bytes,
            budget_bytes=self.budget_bytes,
            largest=self.largest,
            least_bytes=self.least_bytes,
        )
        error.least_by_mesh = self.least_by_mesh
        return error

    @property
    def is_proved(self) -> bool:
        """Whether there is no plan, rather than none that was found in time."""
        if self.budget_bytes is None:
            return True
        return self.least_bytes is not None and self.least_bytes > self.budget_bytes


class SlowerError(StablehloAlpaError):
    """No plan takes less than the seconds asked for.

    Attributes:
        least_s: what each takes at least. Seconds of a step.
        work_s, needed_work_s, is_late: of finding it out, see `Solution`.
    """

    def __init__(self, message: str, least_s: float) -> None:
        super().__init__(message)
        self.least_s = least_s
        self.work_s = self.needed_work_s = 0.0
        self.is_late = False


class ModelError(StablehloAlpaError, ValueError):
    """The zoo has no such model, its sizes make none, or its packages are not installed."""


class SolverError(StablehloAlpaError):
    """The solver failed, or its answer does not agree with the programme it was given."""


class WitnessError(StablehloAlpaError):
    """XLA's compiler for an absent device is not installed, failed, or wrote what is not known."""
