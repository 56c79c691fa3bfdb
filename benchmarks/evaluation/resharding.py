"""Figure 11: what sending between stages costs a step, by three ways of sending."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import StrEnum

import alpa_runtime
from alpa_runtime import Resharding, SpmdProgram, simulate
from alpa_runtime.plan import Instruction, Recv, Run, Send

from stablehlo_alpa.planning import Plan

# What the programs behind a transfer are labelled with.
_GATHER = "gather "


class Sending(StrEnum):
    """What figure 11 compares."""

    SIGNAL = "signal"
    WITHOUT = "without all-gather"
    WITH = "with all-gather"


def step_seconds(plan: Plan) -> dict[str, float]:
    """Seconds of the simulated step of a pipeline by way of sending between its stages.

    ``signal`` sends one byte in place of every message and gathers nothing, ``without all-gather``
    sends every device all that it is to hold, ``with all-gather`` is the plan as it is.

    Args:
        plan: of more than one mesh.
    """
    seconds = [cost.time_s for cost in plan.costs]
    gathers = set(_gathers(plan.runtime).values())
    gathered_free = [0.0 if n in gathers else s for n, s in enumerate(seconds)]

    def signal(source: int, target: int, loads: Mapping[tuple[int, int], int]) -> float:
        return plan.transfer_s(source, target, dict.fromkeys(loads, 1))

    whole = _without_all_gather(plan.runtime)
    return {
        Sending.SIGNAL: simulate(plan.runtime, gathered_free, signal).step_s,
        Sending.WITHOUT: simulate(whole, gathered_free, plan.transfer_s).step_s,
        Sending.WITH: simulate(plan.runtime, seconds, plan.transfer_s).step_s,
    }


def _gathers(plan: alpa_runtime.Plan) -> dict[int, int]:
    """Number of a transfer -> that of the program that gathers what it brings."""
    found = {}
    for instructions in plan.instructions:
        landed: dict[int, int] = {}
        for one in instructions:
            if isinstance(one, Recv):
                landed[one.buffer] = one.transfer
            elif isinstance(one, Run) and one.label.startswith(_GATHER):
                found[landed[one.inputs[0]]] = one.program
    return found


def _without_all_gather(plan: alpa_runtime.Plan) -> alpa_runtime.Plan:
    """The plan with every share of a tile sent to all devices that hold the tile.

    It cannot run, as messages do not land where they did; it says what would cross.
    """
    gathers, reshardings = _gathers(plan), list(plan.reshardings)
    made: dict[tuple[int, int], int] = {}

    def changed(one: Instruction) -> Instruction:
        if not isinstance(one, Send) or one.transfer not in gathers:
            return one
        key = one.resharding, gathers[one.transfer]
        if key not in made:
            made[key] = len(reshardings)
            reshardings.append(to_all_holders(plan.reshardings[key[0]], plan.programs[key[1]]))
        return dataclasses.replace(one, resharding=made[key])

    instructions = tuple(tuple(map(changed, own)) for own in plan.instructions)
    return dataclasses.replace(plan, reshardings=tuple(reshardings), instructions=instructions)


def to_all_holders(resharding: Resharding, gather: SpmdProgram) -> Resharding:
    """Every piece to all devices that hold its tile behind the gather.

    Args:
        resharding: what lands in front of the gather.
        gather: the program.
    """
    tiles = gather.outputs[0].tiles(dict(gather.mesh))
    pieces = (
        dataclasses.replace(piece, target=target)
        for piece in resharding.pieces
        for target, tile in enumerate(tiles)
        if tile == tiles[piece.target]
    )
    return Resharding(tuple(pieces))
