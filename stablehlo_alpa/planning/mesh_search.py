"""The logical mesh and the strategies of what runs on one mesh: every mesh is priced and solved."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from stablehlo_alpa.cluster import ClusterSpec, LogicalMesh
from stablehlo_alpa.compiler import Module, enumerate_strategies
from stablehlo_alpa.cost import PricedGraph, StrategyGraph, price
from stablehlo_alpa.errors import (
    CompileError,
    InfeasibleError,
    MeshError,
    ShardingError,
    SlowerError,
    StablehloAlpaError,
)
from stablehlo_alpa.intra_op import (
    CarriedStrategies,
    MemoryModel,
    Solution,
    SolveOptions,
    SolverCache,
    in_pipeline,
    solve,
    solve_carried,
)
from stablehlo_alpa.intra_op.work import LATE
from stablehlo_alpa.planning.boundary import Boundary
from stablehlo_alpa.planning.gathering import charge_gathers
from stablehlo_alpa.planning.pins import masks
from stablehlo_alpa.planning.prescription import Prescription
from stablehlo_alpa.planning.problems import Problem, Problems, Proofs
from stablehlo_alpa.planning.refusals import leanest
from stablehlo_alpa.store import OFF, Store
from stablehlo_alpa.view import Say

_log = logging.getLogger(__name__)

ROUGH_GAP = 0.02
"""At which a plan is good enough to tell meshes and forms from each other (heuristic)."""

# Mesh shapes that are tried as they come (heuristic).
_FEW = 3
# Seconds of work to find any plan on a mesh, where another mesh has one (heuristic).
_OPEN_S = 3.0


@dataclass(frozen=True)
class PlanOptions:
    """What a plan of one mesh is looked for under.

    Attributes:
        cluster: the devices.
        mesh_shapes: logical mesh shapes to try.
        axis_names: names of their axes, at least as many as they have; x, y, z when None.
        solve: budget and limits of the ILP.
        prescription: what is prescribed for inputs and outputs of the step.
        in_flight: micro-batches whose activations a stage of a pipeline keeps, the running one
            included.
        num_micro_batches: of a step.
        known: strategies found before; they are taken if they are of the same programme.
        carried: strategies of the same operators in other sizes, to be taken where they exist.
        memory_price_s: seconds per step that a byte per device costs, where it is roughly known.
        before: what was found under another budget, to begin with where the programme is the same.
        pads_sizes: sizes that the devices do not divide may be padded inside of the program, where
            nothing is prescribed.
        attention_keys: attention over that many keys and more may be computed in blocks of keys;
            None leaves all as it is.
        names_lack: where nothing fits, the leanest plan is looked for, to say what it lacks.
        store: keeps what is computed on the way.
    """

    cluster: ClusterSpec
    mesh_shapes: tuple[tuple[int, ...], ...]
    axis_names: tuple[str, ...] | None = None
    solve: SolveOptions = field(default_factory=SolveOptions)
    prescription: Prescription = field(default_factory=Prescription)
    in_flight: int = 1
    num_micro_batches: int = 1
    known: Solution | None = None
    carried: CarriedStrategies | None = None
    memory_price_s: float | None = None
    before: Solution | None = None
    pads_sizes: bool = False
    attention_keys: int | None = None
    names_lack: bool = True
    store: Store = OFF


@dataclass(frozen=True, eq=False)
class Subject:
    """What is to be split over one mesh: a step or a stage of one.

    Attributes:
        name: for messages.
        merged: the module with roles.
        boundary: what the step calls its arguments and results; None where only the price counts.
        parsed: the module as it was made, to be read and not to be changed; None where it came as
            text.
    """

    name: str
    merged: str
    boundary: Boundary | None = None
    parsed: Module | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, eq=False)
class Candidate:
    """The best intra-operator plan of a subject on one logical mesh.

    Attributes:
        name, merged: of the subject.
        mesh: the mesh.
        priced, solution: strategies and the choice. Seconds are those of a whole step.
        remarks: of the strategies, and on what was prescribed and cannot be.
        least_s: seconds that no plan takes less than on any mesh that was asked for, as far as that
            is proved.
        parsed: see `Subject`.
    """

    name: str
    merged: str
    mesh: LogicalMesh
    priced: PricedGraph
    solution: Solution
    remarks: tuple[str, ...] = ()
    least_s: float = 0.0
    parsed: Module | None = field(default=None, compare=False, repr=False)

    def module(self) -> Module:
        """The module with roles, to be changed."""
        return self.parsed.clone() if self.parsed else Module(self.merged, self.name)


def find_candidate(
    subject: Subject,
    options: PlanOptions,
    cache: SolverCache | None = None,
    say: Say = _log.debug,
    problems: Problems | None = None,
) -> Candidate:
    """The fastest of the logical meshes.

    Args:
        subject: what is split.
        options: the meshes, and what else counts.
        cache: tables of the solver, to share between calls.
        say: is told what is being done.
        problems: made before; those that are made are added.

    Raises:
        CompileError: a pass refused the module.
        InfeasibleError: no mesh has a plan within the memory budget; what lacks least.
        SlowerError: none has one that undercuts what is asked for.
        ShardingError: what is prescribed exactly fits no mesh.
        MeshError: there is no mesh.
    """
    if not options.mesh_shapes:
        raise MeshError(f"{subject.name}: there is no mesh shape to plan for")
    # Parsed once, where it is not all in the store or made before.
    parsed = subject.parsed or Module.kept(subject.merged, subject.name)

    known = Problems() if problems is None else problems

    def solved(shape: tuple[int, ...], options: PlanOptions) -> Candidate:
        say(f"mesh {'x'.join(map(str, shape))}: strategies")
        known.proofs.check(subject.merged, shape, options.solve)
        problem = problem_on(subject, shape, options, known, parsed)
        # That what is carried, some of the strategies, comes to nothing is no proof.
        proofs = Proofs() if options.carried else known.proofs
        is_free = options.prescription == Prescription()
        with proofs.of(subject.merged, shape, options.solve, is_free=is_free):
            return replace(_solved(subject, problem, options, cache), parsed=parsed)

    search = _Meshes(solved)
    if len(options.mesh_shapes) == 1:
        search.attempt(options.mesh_shapes[0], options)
    else:
        search.look(options)
    if len(options.mesh_shapes) > 1 or not options.solve.closes:
        search.close(options)
    return search.best()


@dataclass
class _Meshes:
    """What was found on meshes, by shape: the last that was found or refused.

    Attributes:
        solved: finds a candidate.
        found: candidates.
        refused: why there is none.
    """

    solved: Callable[[tuple[int, ...], PlanOptions], Candidate]
    found: dict[tuple[int, ...], Candidate] = field(default_factory=dict)
    refused: dict[tuple[int, ...], StablehloAlpaError] = field(default_factory=dict)

    def attempt(self, shape: tuple[int, ...], options: PlanOptions) -> None:
        """Looks for a plan on a mesh."""
        try:
            self.found[shape] = self.solved(shape, options)
            self.refused.pop(shape, None)
        except (InfeasibleError, SlowerError, ShardingError, MeshError) as error:
            _log.info("mesh %s: %s", "x".join(map(str, shape)), error)
            self.refused[shape] = error

    def look(self, options: PlanOptions) -> None:
        """Looks at all meshes; under a budget roughly, for plans clearly better than those before.

        Args:
            options: what plans are looked for under.
        """
        gap, rough = 0.0, options
        if options.solve.memory_budget is not None:
            gap = max(ROUGH_GAP, options.solve.budget_gap)
            rough = replace(options, solve=replace(options.solve, closes=False, budget_gap=gap))
        # What was found under another budget says itself which mesh comes first.
        shapes = options.mesh_shapes if options.before else _likeliest_first(options.mesh_shapes)
        for shape in shapes:
            within = self.undercutting(rough)
            if self.found:
                clearly_s = (1 - gap) * within.solve.most_s
                within = replace(within, solve=replace(within.solve, most_s=clearly_s))
            self.attempt(shape, within)

    def undercutting(self, options: PlanOptions) -> PlanOptions:
        """The same for what is better than the plans that were found."""
        return undercutting(options, self._fastest()) if self.found else options

    def close(self, options: PlanOptions) -> None:
        """Looks to the end where it is open whether there is a plan, or a better one.

        The best mesh comes first: by what is found on it others are told to be slower. Where there
        is a plan, less work is done to find any on the meshes that have none yet (heuristic), and
        none at all where no gap is to be closed.

        Args:
            options: what plans are looked for under.
        """
        if not options.solve.closes:
            if self.found:
                return
            options = replace(options, solve=replace(options.solve, closes=True))
        good_gap = options.solve.budget_gap
        for shape, candidate in sorted(self.found.items(), key=lambda one: _seconds(one[1])):
            solution, best = candidate.solution, self._fastest()
            least_s = solution.objective_s * (1 - solution.gap)
            if solution.gap <= good_gap or (candidate is not best and least_s >= _seconds(best)):
                continue
            within = options if candidate is best else self.undercutting(options)
            self.attempt(shape, replace(within, before=solution))
        for shape, error in list(self.refused.items()):
            within = self.undercutting(options)
            if isinstance(error, SlowerError) and error.least_s < within.solve.most_s:
                self.attempt(shape, within)
            elif isinstance(error, InfeasibleError) and not error.is_proved:
                if self.found:
                    limit_s = min(_OPEN_S, options.solve.time_limit_s)
                    within = replace(within, solve=replace(within.solve, time_limit_s=limit_s))
                self.attempt(shape, within)
        if options.names_lack:
            self._name(options)

    def _name(self, options: PlanOptions) -> None:
        """Looks for what is lacking least, where nothing fits and no search has said it."""
        refused = self.refused.values()
        if self.found or any(isinstance(error, SlowerError) for error in refused):
            return
        short = [
            (error.least_bytes, shape, error.needed_bytes)
            for shape, error in self.refused.items()
            if isinstance(error, InfeasibleError) and error.least_bytes is not None
        ]
        if short and all(needed is None for _, _, needed in short):
            self.attempt(min(short)[1], options)

    def best(self) -> Candidate:
        """The fastest candidate; raises why there is none."""
        if self.found:
            return replace(self._fastest(), least_s=self._least_s())
        refused = list(self.refused.values())
        slower = [error for error in refused if isinstance(error, SlowerError)]
        if slower:
            raise min(slower, key=lambda error: error.least_s)
        short = {m: e for m, e in self.refused.items() if isinstance(e, InfeasibleError)}
        if not short:
            raise refused[0]
        found = leanest(tuple(short.values()))
        found.least_by_mesh = {
            mesh: error.least_bytes
            for mesh, error in short.items()
            if error.least_bytes is not None
        }
        raise found

    def _least_s(self) -> float:
        """Seconds that no plan takes less than on any of the meshes."""
        bounds = [one.solution.objective_s * (1 - one.solution.gap) for one in self.found.values()]
        for error in self.refused.values():
            if isinstance(error, SlowerError):
                bounds.append(error.least_s)
            elif isinstance(error, InfeasibleError) and not error.is_proved:
                bounds.append(0.0)
        return min(bounds)

    def _fastest(self) -> Candidate:
        return min(self.found.values(), key=_seconds)


def _likeliest_first(shapes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Mesh shapes, where they are many those with alike axes first (heuristic).

    What is found early tells others to be slower. Of few the first is taken where several are
    equally fast, so that a mesh has no more axes than it needs.
    """
    if len(shapes) <= _FEW:
        return list(shapes)
    return sorted(shapes, key=lambda shape: max(shape) / (1 if len(shape) == 1 else min(shape)))


def _seconds(candidate: Candidate) -> float:
    return candidate.solution.objective_s


def undercutting(options: PlanOptions, found: Candidate) -> PlanOptions:
    """The same for what is better than a plan that was found.

    What a byte was worth there, if memory was short, is where the next search begins.
    """
    return replace(
        options,
        solve=replace(options.solve, most_s=min(options.solve.most_s, found.solution.objective_s)),
        memory_price_s=found.solution.memory_price_s or options.memory_price_s,
    )


def problem_on(
    subject: Subject,
    shape: tuple[int, ...],
    options: PlanOptions,
    problems: Problems | None = None,
    parsed: Module | None = None,
) -> Problem:
    """What is chosen from for a subject on a mesh.

    Args:
        subject: what is split.
        shape: of the mesh.
        options: what else counts.
        problems: made before; one that is made is added.
        parsed: the module of the subject, where several shapes are asked for.

    Raises:
        CompileError: a pass refused the module.
        MeshError: there is no such mesh.
        InfeasibleError, ShardingError: an exact wish cannot be kept.
    """
    key = subject.merged, shape
    if problems is not None and key in problems.made:
        return problems.made[key]
    names = options.axis_names and options.axis_names[: len(shape)]
    mesh = options.cluster.logical_mesh(shape, names)
    problem = _make_problem(subject, mesh, options, parsed)
    if problems is not None:
        problems.made[key] = problem
    return problem


def _make_problem(
    subject: Subject, mesh: LogicalMesh, options: PlanOptions, parsed: Module | None
) -> Problem:
    graph = enumerate_strategies(subject.merged, mesh, subject.name, options.store, parsed)
    remarks: tuple[str, ...] = ()
    device, boundary = options.cluster.device, subject.boundary
    if boundary is not None:
        if len(graph.input_node) != len(boundary.inputs):
            raise CompileError(
                f"{subject.name}: the compiler sees {len(graph.input_node)} inputs, "
                f"the function has {len(boundary.inputs)}"
            )
        graph = _name_inputs(graph, boundary)
        pinned = masks(options.prescription, boundary, graph, mesh)
        remarks = pinned.remarks
        graph = graph.restrict(pinned.nodes) if pinned.nodes else graph
    graph = in_pipeline(graph, options.in_flight, options.num_micro_batches)
    priced = price(graph, mesh, device)
    if boundary is not None:
        gathered = options.prescription.gathered
        priced = charge_gathers(priced, boundary.outputs, gathered, mesh, device)
    return Problem(mesh, priced, (*remarks, *graph.remarks))


def _solved(
    subject: Subject,
    problem: Problem,
    options: PlanOptions,
    cache: SolverCache | None,
) -> Candidate:
    """The best plan of a subject on a mesh; raises ``InfeasibleError`` over the budget."""
    priced = problem.priced
    if options.known is not None and _is_of(options.known, priced):
        solution = options.known
    elif options.carried is not None:
        solution = solve_carried(priced, options.carried, options.solve, cache)
    else:
        price_s, before = options.memory_price_s, _begun(options.before, priced)
        solution = solve(priced, options.solve, cache, before, price_s, options.store)
    remarks = (*problem.remarks, LATE) if solution.is_late else problem.remarks
    return Candidate(subject.name, subject.merged, problem.mesh, priced, solution, remarks)


def _is_choice(choice: npt.NDArray[np.int32], priced: PricedGraph) -> bool:
    """Whether strategies (int32[N]) are allowed ones of the graph."""
    graph = priced.graph
    if len(choice) != graph.num_nodes or (choice >= graph.num_strategies).any():
        return False
    return bool(graph.allowed[graph.node_offset[:-1] + choice].all())


def _begun(before: Solution | None, priced: PricedGraph) -> tuple[Solution, ...]:
    """What the search may begin with: choices that are some of this programme, too.

    What was proved of them need not be of it: a stage is cut out with what is around it, and
    priced before without.
    """
    if before is None or not _is_choice(before.choice, priced):
        return ()
    is_choice = np.array([_is_choice(choice, priced) for choice in before.mixed], np.bool_)
    return (replace(before, mixed=before.mixed[is_choice], minimum=None),)


def _is_of(solution: Solution, priced: PricedGraph) -> bool:
    """Whether it chooses allowed strategies of the graph, at the seconds and bytes it says."""
    choice = solution.choice
    if not _is_choice(choice, priced):
        return False
    peak, _ = MemoryModel.of(priced.graph).peak(choice)
    return math.isclose(sum(priced.split(choice)), solution.objective_s) and math.isclose(
        peak, solution.memory_peak_bytes
    )


def _name_inputs(graph: StrategyGraph, boundary: Boundary) -> StrategyGraph:
    """The compiler counts arguments; the function's own names say more."""
    names = list(graph.node_name)
    for entry, node in zip(boundary.inputs, graph.input_node.tolist(), strict=True):
        if entry is not None and node >= 0:
            names[node] = entry[1].name
    return replace(graph, node_name=tuple(names))
