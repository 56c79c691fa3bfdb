"""Stages of a parallelised function, as in ``jax.stages``."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import alpa_runtime
import jax
from alpa_runtime import (
    Executable,
    InputError,
    LocalExecutable,
    RuntimeOptions,
    StackedExecutable,
)
from alpa_runtime.analysis import MemoryStats
from alpa_runtime.checkpoint import Leaf

from stablehlo_alpa.errors import MeshError
from stablehlo_alpa.option_checks import checked_integer
from stablehlo_alpa.planning import Plan


class Target(Protocol):
    """Where plans are run."""

    def executable(self, plan: alpa_runtime.Plan) -> Executable:
        """Makes what runs a plan there."""


@dataclasses.dataclass(frozen=True)
class ThisProcess:
    """Devices of this process.

    Attributes:
        devices: in the order of the flattened meshes.
        options: how plans are run.
        is_described: whether plans are for a cluster that was described, and need not be there.
    """

    devices: Sequence[jax.Device]
    options: RuntimeOptions
    is_described: bool = False

    def executable(self, plan: alpa_runtime.Plan) -> Executable:
        """See `Target`.

        Raises:
            MeshError: there are not as many devices as the plan is for.
        """
        if len(self.devices) != plan.num_devices and self.is_described:
            raise MeshError(
                f"the cluster that {plan.name} was planned for has {plan.num_devices} devices, "
                f"{len(self.devices)} are there: it can be planned for and not run on"
            )
        if len(self.devices) != plan.num_devices:
            raise MeshError(
                f"the plan of {plan.name} is for {plan.num_devices} devices, {len(self.devices)} "
                "are given"
            )
        return LocalExecutable(plan, self.devices, self.options)


class Lowered:
    """A planned function that is not compiled yet.

    Attributes:
        plan: the plan.
    """

    def __init__(self, plan: Plan, target: Target, backend: str = "alpa"):
        """Takes a plan.

        Args:
            plan: the plan.
            target: where it is to run.
            backend: who partitions the programs.
        """
        self.plan = plan
        self._target, self._backend = target, backend
        self._compiled: Compiled | None = None

    @property
    def is_compiled(self) -> bool:
        """Whether `compile` was called."""
        return self._compiled is not None

    def as_text(self, step: str | None = None, stage: int = 0) -> str:
        """A module on the way to what is compiled; see `Plan.module_text`.

        Args:
            step: of compilation, e.g. ``"traced"``, ``"merged"``, ``"planned"`` or ``"local"``; of
                a stage with several phases the name of one. By default what each device runs.
            stage: number of the stage, of a pipeline.

        Raises:
            ShardingError: there is no such stage or step.
        """
        return self.plan.module_text(step, stage)

    def _runtime(self) -> alpa_runtime.Plan:
        if self._backend == "alpa":
            return self.plan.runtime
        return self.plan.partitioned(self._backend)

    @functools.cached_property
    def _executable(self) -> Executable:
        executable = self._target.executable(self._runtime())
        stacks = self.plan.program.stacks
        return executable if stacks is None else StackedExecutable(executable, stacks.signature)

    def inline(self, flat: Sequence[Any]) -> Any:
        """The function as a part of the program that is being traced, donation left out.

        Args:
            flat: the flat inputs, some of which are traced by ``jax.jit``.
        """
        executable = self._executable
        assert isinstance(executable, LocalExecutable)
        program = self.plan.program.of_caller
        if program.has_void:
            flat = program.with_booleans(flat)
        return program.result(executable.inline(*flat))

    def compile(self) -> Compiled:
        """Compiles for the devices, once; on a cluster, starts the processes, which compile.

        Raises:
            MeshError: there are not as many devices as the plan is for.
            ClusterError: a process did not start.
        """
        if self._compiled is None:
            compiled = Compiled(self.plan, self._executable)
            compiled.executable.compile()
            self._compiled = compiled
        return self._compiled


class Compiled:
    """A function on its devices. Call it as the function, without its static arguments.

    On a cluster results are handles (`DistributedArray`) of arrays that stay there, and a call
    returns before they are there.

    Attributes:
        plan: the plan it follows.
        executable: what runs it.
    """

    def __init__(self, plan: Plan, executable: Executable):
        self.plan = plan
        self.executable = executable
        self._program = plan.program.of_caller

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs one step."""
        flat, tree = jax.tree.flatten((args, kwargs))
        if tree != self._program.in_tree:
            raise InputError(
                f"{self._program.name} was compiled for arguments {self._program.in_tree}, "
                f"called with {tree}"
            )
        return self.call_flat(flat)

    def call_flat(self, flat: Sequence[Any]) -> Any:
        """Runs one step on the flat inputs."""
        program = self._program
        if program.has_void:
            flat = program.with_booleans(flat)
        outputs = self.executable(*flat)
        program.report(outputs)
        return program.result(outputs)

    @property
    def mesh(self) -> Any:
        """The mesh where there is one; else one of all devices, whose first axis counts meshes."""
        return self.executable.mesh

    @property
    def meshes(self) -> tuple[Any, ...]:
        """The meshes of the plan; abstract ones where the devices are in other processes."""
        return self.executable.meshes

    @property
    def input_shardings(self) -> Any:
        """``(args, kwargs)`` of shardings, without the static arguments."""
        return jax.tree.unflatten(self._program.in_tree, self.executable.in_shardings)

    @property
    def output_shardings(self) -> Any:
        """Shardings in the structure of the result."""
        return self._program.unflatten(self.executable.out_shardings)

    def argument_shardings(self, argnum: int | str) -> list[Any]:
        """Shardings of the leaves of one argument, given by position or by name."""
        return [self.executable.in_shardings[i] for i in self._leaves(argnum)]

    def create(
        self, make: Callable[..., Any], leaves: Sequence[Any], argnum: int | str
    ) -> list[Any]:
        """Runs a function whose results are one argument, each where the plan wants it.

        Args:
            make: returns the flat leaves of the argument, traceable by jax.
            leaves: its arguments.
            argnum: which argument the result is.
        """
        return self.executable.create(make, leaves, self._leaves(argnum))

    def restore(self, folder: Path, leaves: Sequence[Leaf], argnum: int | str) -> list[Any]:
        """Reads one argument from a checkpoint, each leaf where the plan wants it.

        Args:
            folder: of the checkpoint.
            leaves: of it, one per leaf of the argument.
            argnum: which argument it is.
        """
        return self.executable.restore(folder, leaves, self._leaves(argnum))

    def _leaves(self, argnum: int | str) -> list[int]:
        """Flat inputs of one argument."""
        if not isinstance(argnum, str):
            argnum = checked_integer("argnum", argnum)
        return self._program.inputs_of(argnum)

    def close(self) -> None:
        """Ends the processes that it runs in, where it has some of its own.

        Arrays that were not fetched from them are lost.
        """
        self.executable.close()

    def as_text(self, program: int | str | None = None) -> str:
        """The optimised programs of the backend.

        Args:
            program: number or name of one of them; all by default.
        """
        return self.executable.as_text(program)

    def cost_analysis(self) -> Mapping[str, float] | tuple[Mapping[str, float], ...]:
        """The backend's estimate of the costs of a step; of several meshes one each."""
        found = self.executable.cost_analysis()
        return found[0] if len(found) == 1 else found

    def memory_analysis(self) -> MemoryStats | tuple[MemoryStats, ...]:
        """The backend's account of memory per device; of several meshes one each."""
        found = self.executable.memory_analysis()
        return found[0] if len(found) == 1 else found
