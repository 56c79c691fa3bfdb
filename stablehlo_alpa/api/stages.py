"""Stages of a parallelised function, as in ``jax.stages``."""

from __future__ import annotations

import dataclasses
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
from alpa_runtime.program import SpmdProgram, weakened
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

    def as_text(self, stage: str = "local") -> str:
        """The module at a stage: ``traced``, ``merged``, ``planned`` or ``local``."""
        return self.plan.module_text(stage)

    def _program(self) -> SpmdProgram:
        if self._backend == "alpa":
            return self.plan.spmd
        exported = self.plan.export(self._backend)
        return dataclasses.replace(self.plan.spmd, text=exported, is_global=True)

    def compile(self) -> Compiled:
        """Compiles for the devices.

        Raises:
            MeshError: there are not as many devices as the plan is for.
        """
        _check_count(self.plan.program.name, self.plan.mesh.num_devices, self._devices)
        compiled = Compiled(self.plan, compile_spmd(self._program(), self._devices))
        compiled.executable.compile()
        return compiled


class Compiled:
    """A function on its devices. Call it as the function, without its static arguments.

    Attributes:
        plan: the plan it follows.
        executable: the program on the mesh.
    """

    def __init__(self, plan: Plan, executable: Executable):
        self.plan = plan
        self.executable = executable
        # Only scalars change their weak type from call to call (0.1, then an array).
        self._scalars = tuple(
            (i, value.is_weak) for i, value in enumerate(plan.program.inputs) if not value.shape
        )

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

    def takes(self, flat: Sequence[Any], tree: Any) -> bool:
        """Whether a call has the structure and the weak types that this was compiled for.

        Shapes and dtypes are left to the executable, which refuses others.
        """
        if tree != self.plan.program.in_tree:
            return False
        for index, is_weak in self._scalars:
            leaf = flat[index]
            kind = type(leaf)
            weak = kind in _PYTHON_SCALARS or (
                kind not in _NUMPY_TYPES and bool(getattr(leaf, "weak_type", False))
            )
            if weak != is_weak:
                return False
        return True

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

    def argument_shardings(self, argnum: int) -> list[NamedSharding]:
        """Shardings of the leaves of one positional argument."""
        return [self.executable.in_shardings[i] for i in self._leaves(argnum)]

    def create(self, make: Callable[..., Any], leaves: Sequence[Any], argnum: int) -> list[Any]:
        """Runs a function whose results are one argument, each where the plan wants it.

        Args:
            make: returns the flat leaves of the argument, traceable by jax.
            leaves: its arguments.
            argnum: which argument the result is.
        """
        return list(jax.jit(make, out_shardings=self.argument_shardings(argnum))(*leaves))

    def restore(self, folder: Path, leaves: Sequence[Leaf], argnum: int) -> list[Any]:
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

    def _leaves(self, argnum: int) -> list[int]:
        """Flat inputs of one positional argument."""
        return [i for i, n in enumerate(self.plan.program.input_argnum) if n == argnum]

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

    def as_text(self, stage: int = 0, phase: str = "forward") -> str:
        """The per-device program of a stage's phase."""
        found = self.plan.stages[stage].phase(phase)
        if found is None:
            known = [phase.name for phase in self.plan.stages[stage].phases]
            raise ValueError(f"stage {stage} has no phase {phase!r}, it has {known}")
        return found.program.text

    def compile(self) -> CompiledPipeline:
        """Compiles for the devices.

        Raises:
            MeshError: there are not as many devices as the plan is for.
        """
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

    def create(self, make: Callable[..., Any], leaves: Sequence[Any], argnum: int) -> list[Any]:
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


_PYTHON_SCALARS = frozenset({int, float, complex})
_NUMPY_TYPES = frozenset({bool})
