"""Whether the processes of a mesh are about to run one plan."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Sequence

import jax

from alpa_runtime.errors import RuntimeMeshError
from alpa_runtime.peers import Peers
from alpa_runtime.plan import Plan

# Where an operator comes from: paths of files are others on other hosts.
_PLACES = re.compile(r"^#loc.*\n?|loc\((?:[^()]|\([^()]*\))*\)", re.MULTILINE)


def require_one_plan(plan: Plan, devices: Sequence[jax.Device]) -> None:
    """Refuses a plan that not all processes have: their collectives would wait for each other.

    All processes that ``jax.distributed`` has joined call it; where the devices are those of some
    of them only, it looks at nothing.

    Args:
        plan: of this process.
        devices: that it runs on.

    Raises:
        RuntimeMeshError: another process has another plan; raised in all of them.
    """
    if jax.process_count() == 1 or len({d.process_index for d in devices}) < jax.process_count():
        return
    peers, own = Peers(), digest(plan)
    told = peers.told_by_lead(own)
    others = [number for number, is_same in enumerate(peers.are_all(told == own)) if not is_same]
    if others:
        raise RuntimeMeshError(
            f"{plan.name}: process {' and '.join(map(str, others))} came to another plan than "
            "process 0; all have to plan with the same versions, arguments and options, or one "
            "saves its plan and all load the file"
        )


def digest(plan: Plan) -> str:
    """SHA-256 of what decides what devices compute, wherever the files of the model lie."""
    programs = [
        dataclasses.replace(program, text=_PLACES.sub("", program.text)).digest
        for program in plan.programs
    ]
    content = repr((plan.meshes, plan.inputs, plan.outputs, plan.instructions, programs))
    return hashlib.sha256(content.encode()).hexdigest()
