"""Every process of a mesh is sent the rows of a batch that its devices hold, and no others."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from alpa_runtime import ValueSpec
from alpa_runtime.feeding import cut_rows, rows_per_process
from alpa_runtime.plan import Placement, Plan, PlanInput, PlanMesh
from jax.sharding import Mesh, NamedSharding

AXES = (("x", 2), ("y", 4))
MICRO_BATCHES = 3


def plan_of(value: ValueSpec) -> Plan:
    """A plan that feeds a batch to one mesh."""
    whole = ValueSpec((MICRO_BATCHES * value.shape[0], *value.shape[1:]), value.dtype, ((), ()))
    placement = Placement(0, tuple(range(MICRO_BATCHES)))
    return Plan(
        name="fed",
        num_micro_batches=MICRO_BATCHES,
        schedule="none",
        meshes=(PlanMesh(AXES, tuple(range(8))),),
        programs=(),
        reshardings=(),
        values=(value,),
        buffers=((0,) * MICRO_BATCHES,),
        instructions=((),),
        inputs=(PlanInput(whole, False, (placement,)),),
        outputs=(),
    )


@pytest.mark.parametrize("count", [1, 2, 4, 8])
@pytest.mark.parametrize(
    "axes",
    [(("x",), ()), (("x", "y"), ()), (("y",), ("x",)), ((), ("y",)), (("y", "x"), ()), ((), ())],
    ids=str,
)
def test_processes_get_their_rows(axes: tuple[tuple[str, ...], ...], count: int) -> None:
    value = ValueSpec((8, 16), "float32", axes)
    plan = plan_of(value)
    batch = np.arange(MICRO_BATCHES * 8 * 16, dtype="f").reshape(-1, 16)
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("x", "y"))
    indices = NamedSharding(mesh, value.spec).devices_indices_map(value.shape)
    needed = rows_per_process(plan, 0, 0, count)
    parts = [cut_rows(batch, MICRO_BATCHES, rows) for rows in needed]
    held: list[set[int]] = [set() for _ in range(count)]
    for position, device in enumerate(mesh.devices.flat):
        process = position * count // 8
        index = indices[device]
        held[process] |= set(range(8)[index[0]])
        for number, whole in enumerate(np.split(batch, MICRO_BATCHES)):
            np.testing.assert_array_equal(parts[process].of(number, index), whole[index])
    # One range per process: no more than from the first row to the last.
    for rows, own in zip(needed, held, strict=True):
        assert (rows.start, rows.stop) == (min(own), max(own) + 1)
