"""A plan: how a step runs on one mesh or on several, what that costs, and why."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import alpa_runtime
import jax
from alpa_runtime.plan import PlanInput
from jax.sharding import PartitionSpec

from stablehlo_alpa.cluster import LogicalMesh
from stablehlo_alpa.compiler import Module
from stablehlo_alpa.errors import MeshError, ShardingError
from stablehlo_alpa.frontend import TracedProgram, link_kernels
from stablehlo_alpa.intra_op import Difference, Explanation, StrategyTable, diff, explain
from stablehlo_alpa.option_checks import checked_instance, checked_integer, restated
from stablehlo_alpa.planning.applied import Applied, PlansSizes, Transferable
from stablehlo_alpa.planning.baselines import Compared
from stablehlo_alpa.planning.checking import PlanCheck, check_plan
from stablehlo_alpa.planning.explained_stages import Considered, PlansPinned, Staged
from stablehlo_alpa.planning.pictured import Pictured
from stablehlo_alpa.planning.plan_report import Alternative, plan_report
from stablehlo_alpa.planning.prediction import Predicted
from stablehlo_alpa.planning.schedules import Schedule
from stablehlo_alpa.planning.stage import PlannedStage
from stablehlo_alpa.planning.stage_part import collectives_of
from stablehlo_alpa.view import Collective, Report, Sheet, Shown
from stablehlo_alpa.witness import examine

FORMS = ("shardy", "gspmd")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Plan(Shown, Predicted, Compared, Transferable, Staged, Pictured):
    """How a step runs. Printing it shows shardings, modules and remarks.

    What runs on one mesh is a pipeline of one stage.

    Attributes:
        cluster: the devices that it was made for.
        runtime: what is run.
        costs: predicted, one per program of ``runtime``.
        program: what was planned.
        stages: each on its mesh, with its strategies and its modules.
        schedule: the order in which stages work on micro-batches.
        recomputed: what the backward phase computes again for the sake of memory: ``"layers"``, all
            but the values between them, ``"attention"``, or nothing.
        tried: plans that this one was chosen from; empty when nothing was left to choose.
        remarks: what the compiler wants known, e.g. operators that it could only replicate, and
            what was prescribed and cannot be.
        method: that it was made by, as Python spells it; empty where it was made of a module.
        rivals: plans the step by other methods, by those that are usual where none are given; None
            where the function is not at hand.
        considered: stages that a search has chosen from; None where they were given.
        applied: the plan whose strategies it has; None of one that was searched.
        transfers: plans the step in other sizes by the strategies of a plan; None where the
            function is not at hand.
    """

    program: TracedProgram
    stages: tuple[PlannedStage, ...]
    schedule: Schedule
    recomputed: str = ""
    tried: tuple[Alternative, ...] = ()
    remarks: tuple[str, ...] = ()
    method: str = ""
    rivals: PlansPinned | None = None
    considered: Considered | None = None
    applied: Applied | None = None
    transfers: PlansSizes | None = None

    @property
    def mesh(self) -> LogicalMesh:
        """The logical mesh.

        Raises:
            MeshError: there are several.
        """
        if len(self.runtime.meshes) > 1:
            raise MeshError(
                f"the plan of {self.program.name} has {len(self.runtime.meshes)} meshes, not one: "
                "each of its stages has a mesh, see plan.stages"
            )
        return self.stages[0].mesh

    @property
    def mesh_shape(self) -> tuple[int, ...]:
        """Sizes of the axes of the mesh; see `mesh`."""
        return self.mesh.shape

    @property
    def input_shardings(self) -> Any:
        """``(args, kwargs)`` of ``PartitionSpec``, without the static arguments.

        Of several meshes, the one that keeps the input is meant.
        """
        return jax.tree.unflatten(self.program.in_tree, map(self._input_spec, self.runtime.inputs))

    @property
    def output_shardings(self) -> Any:
        """``PartitionSpec`` in the structure of the result."""
        found = (self.runtime.value(out.mesh, out.buffer) for out in self.runtime.outputs)
        return self.program.unflatten([value.logical_spec for value in found])

    @property
    def memory_price_s_per_gib(self) -> float:
        """Seconds per step that one more GiB per device would save; 0 without a tight budget.

        The stages' prices together.
        """
        return sum(stage.solution.memory_price_s for stage in self.stages) * 2**30

    def module_text(self, step: str | None = None, stage: int = 0) -> str:
        """The module of a stage at a step of compilation.

        Args:
            step: ``traced``, ``merged``, ``planned``, ``local`` and the like; of a stage with
                several phases the name of one, ``forward``. By default what each device runs, of
                the first phase.
            stage: number of the stage.

        Raises:
            ShardingError: there is no such stage or step.
        """
        if not 0 <= stage < len(self.stages):
            raise ShardingError(
                f"{self.program.name} has no stage {stage}, stages are numbers below "
                f"{len(self.stages)}"
            )
        return self.stages[stage].text(step)

    def export(self, form: str = "shardy") -> str:
        """The whole program with the plan's shardings, for one of XLA's partitioners.

        Args:
            form: ``"shardy"`` (``sdy.sharding_constraint``) or ``"gspmd"`` (``mhlo.sharding``).

        Raises:
            ShardingError: the form is not known, or the plan has several programs.
        """
        if form not in FORMS:
            raise ShardingError(f"form is {form!r}, must be 'shardy' or 'gspmd'")
        if self.runtime.sole_program is None:
            raise ShardingError(
                f"the plan of {self.program.name} has {len(self.runtime.programs)} programs, XLA "
                "partitions one: plan it with ShardParallel for one mesh and one micro-batch"
            )
        module = Module(self.module_text("planned"), self.program.name)
        module.run(f"alpa-export-shardings{{form={form}}}")
        # XLA splits kernels as what they are made of, as it does what jax lowers for one device.
        axes, program = self.runtime.sole_program.mesh, self.program
        return link_kernels(module.text(), program.kernels, axes, program.platform)[0]

    def explain(self, name: str) -> Explanation:
        """Says which strategies an operator has, what each costs and why one was chosen.

        Args:
            name: of the operator, or a part of it that no other operator has.

        Raises:
            ShardingError: no operator, or more than one, has the name; the closest are listed.
        """
        tables = [StrategyTable.of(one.priced, one.solution) for one in self.stages]
        found = explain(tables, name)
        for stage in self.stages:
            if found.name in stage.done_beside:
                reason = f"{found.reason}; {stage.done_beside[found.name]}"
                found = replace(found, reason=reason)
        return found if self.applied is None else self.applied.explained(found)

    def diff(self, other: Plan) -> Difference:
        """Says which operators another plan of the program splits differently, at which cost.

        Raises:
            OptionError: the other one is no plan.
        """
        checked_instance("other", other, Plan, "a Plan")
        first, second = (
            [(stage.priced, stage.solution) for stage in plan.stages] for plan in (self, other)
        )
        return diff(first, second)

    def partitioned(self, backend: str) -> alpa_runtime.Plan:
        """What is run when one of XLA's partitioners carries the plan out.

        Args:
            backend: ``"shardy"`` or ``"gspmd"``.

        Raises:
            ShardingError: the back end is not known, or the plan has several programs.
        """
        text, sole = self.export(backend), self.runtime.sole_program
        assert sole is not None
        return alpa_runtime.Plan.of_program(replace(sole, text=text, is_global=True))

    def check(self, target: str, *, cache: str | os.PathLike[str] | None = None) -> PlanCheck:
        """Compiles for devices that need not be there, and compares with what was predicted.

        XLA says what the optimised programs keep in memory and what they send, and for TPU how
        long they would compute. The compilers are packages of their own, see ``Raises``.

        Args:
            target: ``"h100"`` or ``"tpu-v5p"``.
            cache: folder that keeps what was compiled; nothing is kept by default.

        Raises:
            WitnessError: there is no such target; its compiler is not installed (the message says
                how to) or refuses a program.
            MeshError: as many devices as a program needs cannot be connected.
        """
        folder = None if cache is None else Path(cache)
        return check_plan(self, examine(self.runtime, target, cache=folder))

    def communication(self) -> list[Collective]:
        """Collectives of one step per stage, kind and axes, most bytes of a stage first."""
        return [one for stage in self.stages for one in collectives_of(stage, self.schedule)]

    def table(self, kind: str = "operators", limit: int | None = None) -> Sheet:
        """See `SavedPlan.table`.

        Raises:
            OptionError: there is no such table, or the limit is no number of rows.
        """
        if limit is not None:
            limit = checked_integer("limit", limit, least=0)
        with restated():
            return super().table(kind, limit)

    def report(self) -> Report:
        """What is shown of it."""
        again = f"computed again in the backward phase: {self.recomputed}"
        return plan_report(
            self.program.name,
            self.stages,
            self.schedule,
            self,
            (
                *([again] if self.recomputed else []),
                *(f"considered {one}" for one in self.tried),
            ),
            self.remarks,
        )

    def _input_spec(self, value: PlanInput) -> PartitionSpec:
        if not value.placements:
            return PartitionSpec()
        kept = value.placements[0]
        return self.runtime.value(kept.mesh, kept.buffers[0]).logical_spec
