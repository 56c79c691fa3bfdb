"""Values that a mesh has, and others, or other shardings, need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from alpa_runtime import Resharding, ValueSpec
from alpa_runtime.plan import Recv, Send

from stablehlo_alpa.cluster import LogicalMesh
from stablehlo_alpa.inter_op.draft import LANDING, SHARED, Key, PlanDraft
from stablehlo_alpa.inter_op.routing import Route, Router
from stablehlo_alpa.planning.schedules import Schedule
from stablehlo_alpa.planning.stage import Slot, SlotKind, StageBody, as_held

Needs = Mapping[Slot, Mapping[int, ValueSpec]]
"""By input or transfer the meshes that need it, and the sharding they first want it in."""


def find_needs(stages: Sequence[StageBody], schedule: Schedule) -> Needs:
    """What the meshes of a step need of the step and of each other."""
    needs: dict[Slot, dict[int, ValueSpec]] = {}
    for number, stage in enumerate(stages):
        mesh = schedule.mesh_of(number)
        for phase in stage.phases:
            for slot, value in zip(phase.inputs, phase.program.inputs, strict=True):
                if slot.kind in (SlotKind.TRANSFER, SlotKind.INPUT):
                    needs.setdefault(slot, {}).setdefault(mesh, as_held(value))
    return needs


class Traffic:
    """Writes sends, receives and what changes shardings.

    Attributes:
        needs: what goes where.
        reshardings: the ways in which values go from mesh to mesh, in order of their numbers.
    """

    def __init__(
        self, draft: PlanDraft, meshes: Sequence[LogicalMesh], needs: Needs, router: Router
    ) -> None:
        """Nothing is sent yet.

        Args:
            draft: takes the instructions.
            meshes: by number.
            needs: what goes where.
            router: plans the ways.
        """
        self.needs = needs
        self.reshardings: dict[Resharding, int] = {}
        self._draft, self._meshes, self._router = draft, meshes, router
        self._transfers: dict[tuple[Slot, int, int], int] = {}

    def send(
        self, slot: Slot, mesh: int, buffer: int, at: int, targets: Set[int] | None = None
    ) -> None:
        """Sends a buffer to every other mesh that needs it.

        Args:
            slot: what it holds.
            mesh: that has it.
            buffer: its number there.
            at: the micro-batch.
            targets: meshes that need this one; all that need the slot by default.
        """
        own = self._draft.meshes[mesh]
        for target, wanted in self.needs.get(slot, {}).items():
            if target != mesh and (targets is None or target in targets):
                route = self._route(own.values[buffer], mesh, wanted, target)
                transfer, number = self._transfer(slot, at, target), self._number(route)
                own.instructions.append(Send(buffer, target, transfer, number))

    def receive(self, slot: Slot, made: ValueSpec, source: int, mesh: int, at: int) -> int:
        """The buffer that holds what another mesh has sent, received when first asked for.

        Args:
            slot: what it holds.
            made: as the other mesh has it.
            source: that mesh.
            mesh: that needs it.
            at: the micro-batch.
        """
        state, wanted = self._draft.meshes[mesh], self.needs[slot][mesh]
        buffer = state.buffer((SHARED, slot, at), wanted)
        if buffer in state.filled:
            return buffer
        state.filled.add(buffer)
        route = self._route(as_held(made), source, wanted, mesh)
        landing = buffer
        if route.gather:
            landing = state.buffer((LANDING, slot, at), route.landing)
        transfer = self._transfer(slot, at, mesh)
        state.instructions.append(Recv(landing, source, transfer, self._number(route)))
        if route.gather:
            label = _label(f"gather {slot}", at)
            self._draft.convert(mesh, route.gather, landing, buffer, label)
        return buffer

    def resharded(self, buffer: int, key: Key, wanted: ValueSpec, mesh: int) -> int:
        """A buffer of a mesh in the wanted sharding."""
        state = self._draft.meshes[mesh]
        have = state.values[buffer]
        if have == as_held(wanted):
            return buffer
        result = state.buffer(key, wanted)
        if result not in state.filled:
            state.filled.add(result)
            program = self._router.reshard(have, as_held(wanted), self._meshes[mesh])
            label = _label(f"reshard {key[1]}", key[2])
            self._draft.convert(mesh, program, buffer, result, label)
        return result

    def _route(self, value: ValueSpec, mesh: int, wanted: ValueSpec, target: int) -> Route:
        return self._router.route(value, self._meshes[mesh], wanted, self._meshes[target])

    def _number(self, route: Route) -> int:
        return self.reshardings.setdefault(route.resharding, len(self.reshardings))

    def _transfer(self, slot: Slot, at: int, target: int) -> int:
        return self._transfers.setdefault((slot, at, target), len(self._transfers))


def _label(what: str, at: int) -> str:
    return f"{what} {at}" if at >= 0 else what
