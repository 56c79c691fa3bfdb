"""What runs a plan, wherever it does."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from alpa_runtime.analysis import MemoryStats
from alpa_runtime.checkpoint import Leaf
from alpa_runtime.plan import Plan


@dataclasses.dataclass(frozen=True)
class RuntimeOptions:
    """How a plan is run.

    Attributes:
        trace: whether every call is timed and written to ``trace_path``. The call then waits for
            its results, and intermediate buffers are not donated.
        trace_path: a file that Perfetto reads; the last call's trace replaces earlier ones.
    """

    trace: bool = False
    trace_path: str = "alpa_trace.json"


class Executable(Protocol):
    """A plan on its devices. Call it with one array per flat input, in order.

    A call owns what it needs while it runs: threads may call at once, and a call that is
    interrupted or fails leaves nothing to those behind it. What it was to donate may be gone then,
    which a call that is given it again says.
    """

    @property
    def plan(self) -> Plan:
        """What is run."""

    @property
    def meshes(self) -> tuple[Any, ...]:
        """The meshes of the plan; abstract ones where the devices are in other processes."""

    @property
    def mesh(self) -> Any:
        """The mesh where there is one; else one of all devices, see `whole_mesh`."""

    @property
    def in_shardings(self) -> tuple[Any, ...]:
        """Per flat input its sharding on the mesh that keeps it."""

    @property
    def out_shardings(self) -> tuple[Any, ...]:
        """Per flat output."""

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        """Runs a step; returns a global array, or a handle of one, per flat output.

        Raises:
            InputError: count, shape or dtype of the arguments is wrong, or one was donated before.
            ClusterError: a process that takes part is gone.
        """

    def compile(self) -> None:
        """Compiles all programs now; the first call does so otherwise."""

    def feed(self, index: int, array: Any) -> Any:
        """Brings an input where it is needed, for one of the next steps.

        Args:
            index: of the flat input.
            array: its value.

        Returns:
            what the step takes in its place, once.

        Raises:
            InputError: its shape or dtype is wrong.
        """

    def create(
        self, make: Callable[..., Any], leaves: Sequence[Any], argnums: Sequence[int]
    ) -> list[Any]:
        """Computes arrays where they are kept.

        Args:
            make: returns a flat list of arrays, traceable by jax.
            leaves: its arguments.
            argnums: per result the flat input of a step that it is for.
        """

    def restore(self, folder: Path, leaves: Sequence[Leaf], argnums: Sequence[int]) -> list[Any]:
        """Reads arrays of a checkpoint where they are kept.

        Args:
            folder: of the checkpoint.
            leaves: of it.
            argnums: per leaf the flat input of a step that it is for.
        """

    def as_text(self, program: int | str | None = None) -> str:
        """What the backend made of the programs.

        Args:
            program: number or name of one of them; all by default.

        Raises:
            InputError: there is no such program.
        """

    def memory_analysis(self) -> tuple[MemoryStats, ...]:
        """The backend's account of memory per device, per mesh."""

    def cost_analysis(self) -> tuple[Mapping[str, float], ...]:
        """The backend's estimate of what a step costs each device, per mesh."""

    def close(self) -> None:
        """Ends the processes that it runs in, where it has some of its own."""
