"""Stages of a parallelised function, as in ``jax.stages``."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
from alpa_runtime import (
    Executable,
    InputError,
    PipelineExecutable,
    RuntimeOptions,
    compile_spmd,
)
from alpa_runtime.checkpoint import Leaf, read_part
from alpa_runtime.context import outside_mesh
from alpa_runtime.program import weakened
from jax.sharding import NamedSharding

from stablehlo_alpa.errors import MeshError
from stablehlo_alpa.inter_op import PlannedPipeline
from stablehlo_alpa.planning import Plan


class Lowered:
    """A planned function that is not compiled yet.

    Attributes:
        plan: the plan.
    """

    def __init__(self, plan: Plan, devices: Sequence[jax.Device], backend: str = "alpa"):
        self.plan = plan
        self._devices, self._backend = devices, backend
        self._compiled: Compiled | None = None

    @property
    def is_compiled(self) -> bool:
        """Whether `compile` was called."""
        return self._compiled is not None

    def as_text(self, stage: str = "local") -> str:
        """The module at a stage: ``traced``, ``merged``, ``planned`` or ``local``."""
        return self.plan.module_text(stage)

    @functools.cached_property
    def _executable(self) -> Executable:
        _check_count(self.plan.program.name, self.plan.mesh.num_devices, self._devices)
        program = self.plan.spmd
        if self._backend != "alpa":
            exported = self.plan.export(self._backend)
            program = dataclasses.replace(program, text=exported, is_global=True)
        return compile_spmd(program, self._devices)

    def compile(self) -> Compiled:
        """Compiles for the devices, once.

        Raises:
            MeshError: there are not as many devices as the plan is for.
        """
        if self._compiled is None:
            compiled = Compiled(self.plan, self._executable)
            compiled.executable.compile()
            self._compiled = compiled
        return self._compiled

    def inline(self, flat: Sequence[Any]) -> Any:
        """The function as a part of the program that is being traced, donation left out.

        Args:
            flat: the flat inputs, some of which are traced by ``jax.jit``.
        """
        return self.plan.program.out_tree.unflatten(self._executable.inline(*flat))


class Compiled:
    """A function on its devices. Call it as the function, without its static arguments.

    Attributes:
        plan: the plan it follows.
        executable: the program on the mesh.
    """

    def __init__(self, plan: Plan, executable: Executable):
        self.plan = plan
        self.executable = executable

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs one step."""
        flat, tree = jax.tree.flatten((args, kwargs))
        if tree != self.plan.program.in_tree:
            raise InputError(
                f"{self.plan.program.name} was compiled for arguments {self.plan.program.in_tree}, "
                f"called with {tree}"
            )
        return self.call_flat(flat)

    def call_flat(self, flat: Sequence[Any]) -> Any:
        """Runs one step on the flat inputs."""
        return self.plan.program.out_tree.unflatten(self.executable(*flat))

    @property
    def mesh(self) -> jax.sharding.Mesh:
        """The devices as a mesh."""
        return self.executable.mesh

    @property
    def input_shardings(self) -> Any:
        """``(args, kwargs)`` of ``NamedSharding``, without the static arguments."""
        return jax.tree.unflatten(self.plan.program.in_tree, self.executable.in_shardings)

    @property
    def output_shardings(self) -> Any:
        """``NamedSharding`` in the structure of the result."""
        return jax.tree.unflatten(self.plan.program.out_tree, self.executable.out_shardings)

    def argument_shardings(self, argnum: int | str) -> list[NamedSharding]:
        """Shardings of the leaves of one argument, given by position or by name."""
        return [self.executable.in_shardings[i] for i in self._leaves(argnum)]

    @outside_mesh
    def create(
        self, make: Callable[..., Any], leaves: Sequence[Any], argnum: int | str
    ) -> list[Any]:
        """Runs a function whose results are one argument, each where the plan wants it.

        Args:
            make: returns the flat leaves of the argument, traceable by jax.
            leaves: its arguments.
            argnum: which argument the result is.
        """
        return list(jax.jit(make, out_shardings=self.argument_shardings(argnum))(*leaves))

    @outside_mesh
    def restore(self, folder: Path, leaves: Sequence[Leaf], argnum: int | str) -> list[Any]:
        """Reads one argument from a checkpoint, each leaf where the plan wants it.

        Args:
            folder: of the checkpoint.
            leaves: of it, one per leaf of the argument.
            argnum: which argument it is.
        """
        shardings = self.argument_shardings(argnum)
        found = read_part(folder, dict(enumerate(zip(leaves, shardings, strict=True))))
        values = [self.plan.program.inputs[i] for i in self._leaves(argnum)]
        return [weakened(found[i]) if value.is_weak else found[i] for i, value in enumerate(values)]

    def _leaves(self, argnum: int | str) -> list[int]:
        """Flat inputs of one argument."""
        return self.plan.program.inputs_of(argnum)

    def close(self) -> None:
        """Ends the processes that it runs in, where it has some of its own."""

    def as_text(self) -> str:
        """The optimised program of the backend."""
        return self.executable.compile().as_text() or ""

    def cost_analysis(self) -> Any:
        """The backend's estimate of costs."""
        return self.executable.compile().cost_analysis()

    def memory_analysis(self) -> Any:
        """The backend's account of memory per device."""
        return self.executable.compile().memory_analysis()


class LoweredPipeline:
    """A planned pipeline that is not compiled yet.

    Attributes:
        plan: the plan.
    """

    def __init__(
        self, plan: PlannedPipeline, devices: Sequence[jax.Device], options: RuntimeOptions
    ):
        self.plan = plan
        self._devices = devices
        self._options = options
        self._compiled: CompiledPipeline | None = None

    @property
    def is_compiled(self) -> bool:
        """Whether `compile` was called."""
        return self._compiled is not None

    def as_text(self, stage: int = 0, phase: str = "forward") -> str:
        """The per-device program of a stage's phase."""
        found = self.plan.stages[stage].phase(phase)
        if found is None:
            known = [phase.name for phase in self.plan.stages[stage].phases]
            raise ValueError(f"stage {stage} has no phase {phase!r}, it has {known}")
        return found.program.text

    def compile(self) -> CompiledPipeline:
        """Compiles for the devices, once.

        Raises:
            MeshError: there are not as many devices as the plan is for.
        """
        if self._compiled is None:
            self._compiled = self._compile()
        return self._compiled

    def _compile(self) -> CompiledPipeline:
        _check_count(self.plan.program.name, self.plan.runtime.num_devices, self._devices)
        compiled = CompiledPipeline(
            self.plan, PipelineExecutable(self.plan.runtime, self._devices, self._options)
        )
        compiled.executable.compile()
        return compiled


class CompiledPipeline(Compiled):
    """A function on several meshes. Call it as the function, without its static arguments.

    Attributes:
        plan: the plan it follows.
        executable: the programs on their meshes.
    """

    plan: PlannedPipeline  # type: ignore[assignment]
    executable: PipelineExecutable  # type: ignore[assignment]

    def __init__(self, plan: PlannedPipeline, executable: PipelineExecutable):
        super().__init__(plan, executable)  # type: ignore[arg-type]

    @property
    def meshes(self) -> tuple[jax.sharding.Mesh, ...]:
        """The submeshes."""
        return self.executable.meshes

    @outside_mesh
    def create(
        self, make: Callable[..., Any], leaves: Sequence[Any], argnum: int | str
    ) -> list[Any]:
        """Every mesh computes what it keeps; see ``Compiled.create``."""
        shardings = self.argument_shardings(argnum)
        made: list[Any] = [None] * len(shardings)
        for mesh in self.meshes:
            own = [i for i, sharding in enumerate(shardings) if sharding.mesh == mesh]
            if not own:
                continue
            part = jax.jit(
                lambda *args, own=own: [make(*args)[i] for i in own],
                out_shardings=[shardings[i] for i in own],
            )
            for index, value in zip(own, part(*leaves), strict=True):
                made[index] = value
        return made


def _check_count(name: str, needed: int, devices: Sequence[jax.Device]) -> None:
    if len(devices) != needed:
        raise MeshError(f"the plan of {name} is for {needed} devices, {len(devices)} are given")
