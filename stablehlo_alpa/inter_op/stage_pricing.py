"""Prices of stages by the intra-operator planner: what was chosen is solved exactly."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from stablehlo_alpa.cluster import Cluster
from stablehlo_alpa.compiler import Module, Signature, enumerate_strategies
from stablehlo_alpa.cost import PricedGraph, price, price_once
from stablehlo_alpa.errors import InfeasibleError, MeshError, SlowerError
from stablehlo_alpa.inter_op.layer_parts import content_digest
from stablehlo_alpa.inter_op.slicing import LayeredStep
from stablehlo_alpa.inter_op.solver_caches import SolverCaches
from stablehlo_alpa.inter_op.submeshes import Submesh
from stablehlo_alpa.inter_op.threads import in_threads
from stablehlo_alpa.intra_op import Solution, SolveOptions, in_pipeline, solve
from stablehlo_alpa.planning.mesh_search import Subject
from stablehlo_alpa.planning.stage import Slot, SlotKind
from stablehlo_alpa.store import Record

# Seconds of work that a stage is given at least (heuristic).
_LEAST_S = 1.0
# Stages that are solved at the same time. What is solved beside another is solved without knowing
# of it: by the number of processors, machines would find different plans.
_AT_ONCE = 2
# An argument of a stage, as the compiler counts them, and those that the step has as well.
_ARGUMENT = re.compile(r"\bargument (\d+)\b")
_GIVEN = (SlotKind.INPUT, SlotKind.BATCH)

Stage: TypeAlias = tuple[int, int, Submesh, int]
"""First and last layer, submesh, micro-batches in flight."""

_Key: TypeAlias = tuple[str, Submesh, int]
_Solved: TypeAlias = Solution | InfeasibleError | SlowerError


@dataclass(frozen=True)
class StagePrice:
    """What a stage costs on a submesh.

    Attributes:
        time_s: seconds per micro-batch, its share of what runs once per step included; infinite
            where no plan within the budget was found, or none that undercuts what was asked for.
        bound_s: no plan of the stage within the budget takes less.
        once_s: of ``time_s`` the share of what runs once per step.
    """

    time_s: float
    bound_s: float
    once_s: float = 0.0


@dataclass(frozen=True)
class Effort:
    """How far a stage is solved.

    Attributes:
        enough_s: seconds per micro-batch of a plan that is good enough.
        memory_price_s: seconds per step that a byte per device costs, where it is roughly known.
        time_limit_s: seconds of work after which the best so far is taken, but those of the
            options.
        most_s: seconds per micro-batch that a plan must undercut.
    """

    enough_s: float = 0.0
    memory_price_s: float | None = None
    time_limit_s: float = np.inf
    most_s: float = np.inf


class StagePricing:
    """Solves stages, each with its micro-batches in flight; equal ones once."""

    def __init__(
        self,
        layered: LayeredStep,
        cluster: Cluster,
        num_micro_batches: int,
        options: SolveOptions | Sequence[SolveOptions],
    ) -> None:
        """Takes a step with layers and phases, see ``alpa-mark-layers``.

        Options are those of all parts of the cluster, or of each.
        """
        self.layered, self._store = layered, layered.store
        self._cluster, self._micro_batches = cluster, num_micro_batches
        if isinstance(options, SolveOptions):
            options = [options] * len(cluster.parts)
        self._options = tuple(options)
        self._caches = SolverCaches()
        self._subjects: dict[tuple[int, int], tuple[Subject, str]] = {}
        self._inputs: dict[tuple[int, int], tuple[Slot, ...]] = {}
        self._parsed: dict[tuple[int, int], Module] = {}
        self._priced: dict[tuple[str, Submesh], PricedGraph] = {}
        self._found: dict[_Key, _Solved] = {}
        self._work_s: dict[_Key, float] = {}
        # What was good enough for each.
        self._enough_s: dict[_Key, float] = {}
        self._refusals: dict[Stage, InfeasibleError] = {}

    @property
    def work_s(self) -> float:
        """Seconds of work that stages took, those from the store as those that were solved."""
        # Rounded once, so that the order in which threads came does not count.
        return math.fsum(self._work_s.values())

    @property
    def refusals(self) -> list[InfeasibleError]:
        """Why stages have no price, in the order of the stages, whichever thread came first."""
        found = sorted(self._refusals.items(), key=itemgetter(0))
        return [self._named(error, first, last) for (first, last, *_), error in found]

    def prepare(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Cuts all stages of a pipeline out of the step at once.

        Args:
            ranges: first and last layers that follow each other.
        """
        if all(one in self._subjects for one in ranges):
            return
        stages = [
            number for number, (first, last) in enumerate(ranges) for _ in range(first, last + 1)
        ]
        todo = [number for number, one in enumerate(ranges) if one not in self._subjects]

        # Those of the last pipeline alone: modules take memory.
        self._parsed.clear()

        def made() -> Record:
            cut = self.layered.cut(tuple(stages))
            own = in_threads(cut.merged, todo)
            kinds = [list(Signature.of(stage).inputs.kinds) for stage in own]
            self._parsed.update(zip([ranges[number] for number in todo], own, strict=True))
            # Without locations the text is short and equal layers are equal.
            return {"merged": [one.text(locations=False) for one in own], "inputs": kinds}

        found = self._store.remember("ranges", (self.layered.content, stages, todo), made)
        for number, merged, kinds in zip(todo, found["merged"], found["inputs"], strict=True):
            first, last = ranges[number]
            self._inputs[first, last] = tuple(map(Slot.parse, kinds))
            name = f"{self.layered.name} layers {first} to {last}"
            self._subjects[first, last] = Subject(name, merged), content_digest(merged)

    def at_once(self, stages: Sequence[Stage]) -> list[Stage]:
        """The first of some stages that can be solved at the same time, in threads.

        What is known of a stage helps to solve it with other micro-batches in flight: of those that
        differ in nothing else there is one.
        """
        chosen: dict[tuple[str, Submesh], Stage] = {}
        for stage in stages[:_AT_ONCE]:
            first, last, submesh, _ = stage
            chosen.setdefault((self._subject(first, last)[1], submesh), stage)
        return list(chosen.values())

    def price(
        self, first: int, last: int, submesh: Submesh, in_flight: int, effort: Effort = Effort()
    ) -> StagePrice | None:
        """The price of a run of layers; None where it is proved not to fit the memory.

        Args:
            first: layer.
            last: layer, included.
            submesh: where it runs.
            in_flight: micro-batches whose activations are kept.
            effort: how far it is solved, where it is not known as far.
        """
        found = self._solution(first, last, submesh, in_flight, effort)
        if isinstance(found, InfeasibleError):
            self._refusals[first, last, submesh, in_flight] = found
            return None if found.is_proved else StagePrice(np.inf, 0.0)
        if isinstance(found, SlowerError):
            return StagePrice(np.inf, found.least_s / self._micro_batches)
        time_s = found.objective_s / self._micro_batches
        priced, count = self._priced[self._subject(first, last)[1], submesh], self._micro_batches
        once_s = sum(price_once(priced, count).split(found.choice)) / count
        return StagePrice(time_s, time_s * (1 - found.gap), min(once_s, time_s))

    def _named(self, error: InfeasibleError, first: int, last: int) -> InfeasibleError:
        """A refusal with arguments as the caller has them: stages that are equal share one."""
        names = self.layered.inputs
        slots = dict(enumerate(self._inputs[first, last]))

        def name(match: re.Match[str]) -> str:
            slot = slots.get(int(match[1]))
            is_known = slot is not None and slot.kind in _GIVEN and slot.number < len(names)
            return names[slot.number] if slot is not None and is_known else match[0]

        return InfeasibleError(
            _ARGUMENT.sub(name, str(error)),
            needed_bytes=error.needed_bytes,
            budget_bytes=error.budget_bytes,
            largest=[(_ARGUMENT.sub(name, one), size) for one, size in error.largest],
            least_bytes=error.least_bytes,
        )

    def solution(self, first: int, last: int, submesh: Submesh, in_flight: int) -> Solution:
        """The strategies behind a price.

        Raises:
            InfeasibleError: it does not fit the memory.
            SlowerError: none was found that undercuts what was asked for.
        """
        found = self._solution(first, last, submesh, in_flight, None)
        if not isinstance(found, Solution):
            raise found
        return found

    def _solution(
        self, first: int, last: int, submesh: Submesh, in_flight: int, effort: Effort | None
    ) -> _Solved:
        subject, digest = self._subject(first, last)
        key = (digest, submesh, in_flight)
        known = self._found.get(key)
        is_good = known is not None and (effort is None or not self._is_loose(key, effort))
        if not is_good:
            effort = effort or Effort()
            try:
                self._found[key] = self._solve(
                    subject, key, effort, self._parsed.get((first, last))
                )
            except (InfeasibleError, SlowerError) as error:
                self._found[key] = error
            except MeshError as error:
                self._found[key] = InfeasibleError(str(error))
            self._work_s[key] = self._work_s.get(key, 0.0) + self._found[key].work_s
            self._enough_s[key] = effort.enough_s
        return self._found[key]

    def _is_loose(self, key: _Key, effort: Effort) -> bool:
        """Whether it was not solved to the end, and not as far as is asked for."""
        found = self._found[key]
        if isinstance(found, InfeasibleError):
            return False
        if isinstance(found, SlowerError):
            return found.least_s < effort.most_s * self._micro_batches
        time_s = found.objective_s / self._micro_batches
        return effort.enough_s < time_s <= self._enough_s[key]

    def _subject(self, first: int, last: int) -> tuple[Subject, str]:
        """A run of layers with roles, and its digest."""
        if (first, last) not in self._subjects:
            end = self.layered.num_layers - 1
            around = ((0, first - 1), (first, last), (last + 1, end))
            self.prepare([one for one in around if one[0] <= one[1]])
        return self._subjects[first, last]

    def _solve(
        self, subject: Subject, key: _Key, effort: Effort, parsed: Module | None
    ) -> Solution:
        """Solves a stage, beginning with what is known of it with other micro-batches in flight."""
        digest, submesh, in_flight = key
        if (digest, submesh) not in self._priced:
            cluster = self._cluster.parts[submesh.part]
            cluster = cluster.part(submesh.hosts, submesh.devices_per_host)
            mesh = cluster.logical_mesh(submesh.mesh_shape)
            parsed = parsed and _without_names(parsed)
            graph = enumerate_strategies(subject.merged, mesh, subject.name, self._store, parsed)
            self._priced[digest, submesh] = price(graph, mesh, cluster.device)
        priced = self._priced[digest, submesh]
        priced = replace(priced, graph=in_pipeline(priced.graph, in_flight, self._micro_batches))
        before = [
            found
            for (other, where, _), found in list(self._found.items())
            if (other, where) == (digest, submesh) and isinstance(found, Solution)
        ]
        own = self._options[submesh.part]
        options = replace(
            own,
            enough_s=effort.enough_s * self._micro_batches,
            most_s=effort.most_s * self._micro_batches,
            time_limit_s=max(_LEAST_S, min(own.time_limit_s, effort.time_limit_s)),
        )
        with self._caches.one() as cache:
            return solve(priced, options, cache, before, effort.memory_price_s, self._store)


def _without_names(module: Module) -> Module:
    """A copy as its text without locations would be parsed: equal stages are equal."""
    found = module.clone()
    found.run("strip-debuginfo")
    return found
