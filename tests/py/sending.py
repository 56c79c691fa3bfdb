"""A plan that sends values from one mesh to another, and does nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from alpa_runtime import ValueSpec, check
from alpa_runtime.plan import (
    Placement,
    Plan,
    PlanInput,
    PlanMesh,
    PlanOutput,
    Recv,
    Send,
)
from mesh_processes import NUM_DEVICES

from stablehlo_alpa.inter_op.cross_mesh import plan_transfer

Value = tuple[tuple[int, ...], str, str, str]
"""Shape, dtype, and the sharding on both sides: axes per dimension, a dot for none."""

AXES = (("x", 2), ("y", 2))


def spec(shape: tuple[int, ...], dtype: str, text: str) -> ValueSpec:
    axes = tuple(() if part == "." else tuple(part) for part in text.split())
    return ValueSpec(shape, dtype, axes)


def sending_plan(values: Sequence[Value]) -> Plan:
    """Every value goes from the first mesh to the second, in order, as it lands there."""
    specs: list[ValueSpec] = []
    buffers: list[list[int]] = [[], []]
    reshardings, sends, recvs, inputs, outputs = [], [], [], [], []
    for number, (shape, dtype, have, want) in enumerate(values):
        source, target = spec(shape, dtype, have), spec(shape, dtype, want)
        transfer = plan_transfer(source, AXES, target, AXES)
        for mesh, value in enumerate((source, transfer.landing)):
            buffers[mesh].append(len(specs))
            specs.append(value)
        reshardings.append(transfer.resharding)
        sends.append(Send(number, 1, number, number))
        recvs.append(Recv(number, 0, number, number))
        inputs.append(PlanInput(source, False, (Placement(0, (number,)),)))
        outputs.append(PlanOutput(1, number))
    size = NUM_DEVICES
    plan = Plan(
        name="sending",
        num_micro_batches=1,
        schedule="none",
        meshes=(PlanMesh(AXES, tuple(range(size))), PlanMesh(AXES, tuple(range(size, 2 * size)))),
        programs=(),
        reshardings=tuple(reshardings),
        values=tuple(specs),
        buffers=tuple(map(tuple, buffers)),
        instructions=(tuple(sends), tuple(recvs)),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
    )
    check(plan)
    return plan
