"""One order for the instructions of all meshes, for a single issuing thread."""

from __future__ import annotations

from collections.abc import Sequence

from alpa_runtime.errors import ProgramError
from alpa_runtime.plan import Instruction, Recv, Run, Send


def issue_order(instructions: Sequence[Sequence[Instruction]]) -> list[tuple[int, int]]:
    """Merges the lists of all meshes so that every receive comes behind its send.

    Meshes take turns: each issues up to and including its next run. So launches of all meshes are
    in flight together, in about the order in which they can start.

    Returns:
        ``(mesh, position in its list)`` of every instruction.

    Raises:
        ProgramError: meshes wait for each other, or for a send that no mesh has.
    """
    position = [0] * len(instructions)
    sent: set[int] = set()
    order: list[tuple[int, int]] = []
    while True:
        has_moved = False
        for mesh, own in enumerate(instructions):
            while position[mesh] < len(own):
                instruction = own[position[mesh]]
                if isinstance(instruction, Recv) and instruction.transfer not in sent:
                    break
                if isinstance(instruction, Send):
                    sent.add(instruction.transfer)
                order.append((mesh, position[mesh]))
                position[mesh] += 1
                has_moved = True
                if isinstance(instruction, Run):
                    break
        if not has_moved:
            break
    waiting = {
        mesh: own[position[mesh]]
        for mesh, own in enumerate(instructions)
        if position[mesh] < len(own)
    }
    if waiting:
        listed = "; ".join(f"mesh {mesh} at {what}" for mesh, what in waiting.items())
        raise ProgramError(f"meshes wait for sends that never come: {listed}")
    return order
