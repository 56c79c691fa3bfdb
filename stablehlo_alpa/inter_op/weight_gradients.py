"""What waits for the gradients of parameters, where these are computed in tasks of their own."""

from __future__ import annotations

from stablehlo_alpa.cluster import ClusterSpec
from stablehlo_alpa.compiler import Module, Signature, enumerate_strategies, tensor_bytes
from stablehlo_alpa.planning.mesh_search import Subject
from stablehlo_alpa.planning.schedules import Schedule, TaskKind
from stablehlo_alpa.planning.stage import BACKWARD, FORWARD, WEIGHT, Slot, SlotKind
from stablehlo_alpa.store import Record, Store


def waiting_bytes(
    subject: Subject, schedule: Schedule, number: int, cluster: ClusterSpec, store: Store
) -> float:
    """Bytes of a stage on all its devices when most of its micro-batches wait.

    They are the arguments of the step, the sums of gradients, and what tasks of `TaskKind.WEIGHT`
    read that earlier tasks have made, every value once, as the phases of the stage hand it on where
    nothing is split. Where it is, every device has a part at least. It is no bound: a value that is
    resharded may be handed on in place of a larger one that it is made of.

    Args:
        subject: the stage.
        schedule: with such tasks.
        number: of the stage.
        cluster: devices, on one of which the stage is cut into phases.
        store: keeps what the compiler makes of it.
    """
    made = store.remember("unsplit phases", (subject.merged,), lambda: _phases(subject, cluster))
    held, handed_on = made["held"], made["handed_on"]
    most = max(
        gone * handed_on[FORWARD] + back * handed_on[BACKWARD]
        for gone, back in _waiting(schedule, number)
    )
    return float(held + most)


def most_waiting(schedule: Schedule, number: int) -> int:
    """Micro-batches of a stage that have gone back and wait for their weight gradients, at most."""
    return max(back for _, back in _waiting(schedule, number))


def _waiting(schedule: Schedule, number: int) -> list[tuple[int, int]]:
    """Micro-batches whose weight gradients are missing, as each begins: gone forward, and back."""
    gone = back = 0
    found = [(0, 0)]
    for task in schedule.meshes[schedule.mesh_of(number)]:
        if task.stage != number:
            continue
        gone += task.kind is TaskKind.FORWARD
        back += task.kind is TaskKind.BACKWARD
        if task.kind is TaskKind.WEIGHT:
            found.append((gone, back))
            gone, back = gone - 1, back - 1
    return found


def _phases(subject: Subject, cluster: ClusterSpec) -> Record:
    """Bytes that are there for many micro-batches, and that phases hand on to weight gradients."""
    mesh = cluster.part(1, 1).logical_mesh((1,))
    num_nodes = enumerate_strategies(subject.merged, mesh, subject.name).num_nodes
    module = subject.parsed.clone() if subject.parsed else Module(subject.merged, subject.name)
    choice = ",".join("0" * num_nodes)
    module.run(f"alpa-plan-pipeline{{mesh={mesh.pass_option} solution={choice} reach=0}}")
    module.run("alpa-split-phases{split-backward=true}")
    held: dict[Slot, float] = {}
    makers: dict[Slot, str] = {}
    read: dict[Slot, float] = {}
    for name, phase in module.submodules().items():
        signature = Signature.of(phase)
        slots = map(Slot.parse, signature.inputs.kinds)
        for slot, type_ in zip(slots, signature.inputs.types, strict=True):
            if slot.kind in (SlotKind.INPUT, SlotKind.ACCUMULATOR):
                held[slot] = tensor_bytes(type_)
            if name == WEIGHT and slot.kind is SlotKind.LOCAL:
                read[slot] = tensor_bytes(type_)
        for slot in map(Slot.parse, signature.outputs.kinds):
            makers[slot] = name
    handed_on = {
        name: sum(size for slot, size in read.items() if makers[slot] == name)
        for name in (FORWARD, BACKWARD)
    }
    return {"held": sum(held.values()), "handed_on": handed_on}
