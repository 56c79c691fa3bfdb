"""Plans of a chain of meshes, written by hand: collectives, transfers, micro-batches, donation."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from alpa_runtime import Plan, SpmdProgram, ValueSpec, check
from alpa_runtime.plan import (
    Free,
    Instruction,
    Placement,
    PlanInput,
    PlanMesh,
    PlanOutput,
    Recv,
    Run,
    Send,
)

from stablehlo_alpa.inter_op.cross_mesh import plan_transfer

# Elements of a micro-batch.
WIDTH = 16


def _value(count: int = 1, axes: tuple[str, ...] = ("x",)) -> ValueSpec:
    return ValueSpec((count * WIDTH,), "float32", (axes,))


def _program(name: str, size: int, body: str, donated: tuple[int, ...], count: int) -> SpmdProgram:
    """A program of vectors that are split over all devices."""
    kind = f"tensor<{WIDTH // size}xf32>"
    arguments = ", ".join(f"%{letter}: {kind}" for letter in "ab"[:count])
    text = (
        f"module {{ func.func public @main({arguments}) -> {kind} {{\n"
        f"{body}\nreturn %out : {kind} }} }}"
    ).replace("KIND", kind)
    return SpmdProgram(text, (("x", size),), (_value(),) * count, (_value(),), donated, name)


_FORWARD = """
%sum = "stablehlo.all_reduce"(%b) <{{
    channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids,
    replica_groups = dense<[{group}]> : tensor<1x{size}xi64>}}> ({{
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
}}) : (KIND) -> KIND
%scaled = stablehlo.multiply %a, %b : KIND
%out = stablehlo.add %scaled, %sum : KIND"""
_ADD = "%out = stablehlo.add %a, %b : KIND"


def _programs(size: int) -> tuple[SpmdProgram, SpmdProgram]:
    """Weight and activation to activation, and two summands to their sum in place of the first."""
    forward = _FORWARD.format(group=list(range(size)), size=size)
    return (
        _program(f"forward_{size}", size, forward, (), 2),
        _program(f"add_{size}", size, _ADD, (0,), 2),
    )


def chain_plan(sizes: Sequence[int], num_micro_batches: int, first_device: int = 0) -> Plan:
    """Every mesh scales what the one before it sends, and adds all it makes to its weight.

    Args:
        sizes: devices of each mesh.
        num_micro_batches: of a step.
        first_device: of the first mesh; those before it are not used.

    Inputs are the weight of every mesh, donated, and the batch; outputs are the new weights.
    """
    programs = [program for size in sizes for program in _programs(size)]
    count, last = num_micro_batches, len(sizes) - 1
    instructions: list[list[Instruction]] = []
    # Per mesh: the weight, then per micro-batch what is taken and what is made.
    for mesh in range(len(sizes)):
        own: list[Instruction] = []
        for number in range(count):
            taken, made, transfer = 1 + number, 1 + count + number, number * last
            if mesh > 0:
                own.append(Recv(taken, mesh - 1, transfer + mesh - 1, mesh - 1))
            label = f"mesh {mesh} forward {number}"
            own.append(Run(2 * mesh, (0, taken), (made,), label))
            own.append(Free((taken,)))
            if mesh < last:
                own.append(Send(made, mesh + 1, transfer + mesh, mesh))
        for number in range(count):
            made = 1 + count + number
            own.append(Run(2 * mesh + 1, (0, made), (0,), f"mesh {mesh} add {number}"))
            own.append(Free((made,)))
        instructions.append(own)
    reshardings = [
        plan_transfer(_value(), (("x", a),), _value(), (("x", b),)).resharding
        for a, b in itertools.pairwise(sizes)
    ]
    starts = np.cumsum([first_device, *sizes]).tolist()
    weights = [
        PlanInput(_value(axes=()), True, (Placement(mesh, (0,)),)) for mesh in range(len(sizes))
    ]
    batch = Placement(0, tuple(range(1, 1 + count)))
    plan = Plan(
        name="chain",
        num_micro_batches=count,
        schedule="none",
        meshes=tuple(
            PlanMesh((("x", size),), tuple(range(start, start + size)))
            for start, size in zip(starts, sizes, strict=False)
        ),
        programs=tuple(programs),
        reshardings=tuple(reshardings),
        values=(_value(),),
        buffers=((0,) * (1 + 2 * count),) * len(sizes),
        instructions=tuple(map(tuple, instructions)),
        inputs=(*weights, PlanInput(_value(count, ()), False, (batch,))),
        outputs=tuple(PlanOutput(mesh, 0) for mesh in range(len(sizes))),
    )
    check(plan)
    return plan


def chain_results(sizes: Sequence[int], weights: Sequence[Any], batch: Any) -> list[Any]:
    """What a step of `chain_plan` returns."""
    results = [np.array(weight) for weight in weights]
    for part in np.asarray(batch).reshape(-1, WIDTH):
        for mesh, size in enumerate(sizes):
            summed = np.tile(part.reshape(size, -1).sum(0), size)
            part = np.asarray(weights[mesh]) * part + summed
            results[mesh] += part
    return results
