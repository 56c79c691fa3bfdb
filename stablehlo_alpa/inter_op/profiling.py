"""Programs of a plan are timed on the devices at hand."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from alpa_runtime import SpmdProgram, ValueSpec
from alpa_runtime.mesh_program import MeshProgram

from stablehlo_alpa.errors import MeshError
from stablehlo_alpa.inter_op.profile_store import program_key
from stablehlo_alpa.planning.plan import Plan
from stablehlo_alpa.planning.stage import CostedProgram
from stablehlo_alpa.store import Store
from stablehlo_alpa.view import Say

# Runs of a program of which the middle one counts.
_RUNS = 5


@dataclass(frozen=True, eq=False)
class Profiler:
    """Times programs, each once.

    Attributes:
        devices: at hand; a program of n devices runs on the first n.
        store: keeps what was measured beyond the life of the profiler.
        say: is told what is being done.
    """

    devices: Sequence[jax.Device]
    store: Store
    say: Say
    _known: dict[str, float] = field(default_factory=dict)

    def measured(self, plan: Plan) -> Plan:
        """The plan with seconds of its programs as they are measured, not as they are priced.

        Programs that call functions of the host keep their prices.

        Raises:
            MeshError: a mesh has more devices than there are.
        """
        return replace(plan, costs=tuple(map(self._measured, plan.costs)))

    def _measured(self, cost: CostedProgram) -> CostedProgram:
        if cost.program.callbacks:
            return cost
        seconds = self._seconds(cost.program)
        share = cost.compute_s / cost.time_s if cost.time_s > 0 else 1.0
        return replace(cost, time_s=seconds, compute_s=share * seconds)

    def _seconds(self, program: SpmdProgram) -> float:
        if program.num_devices > len(self.devices):
            raise MeshError(
                f"{program.name} runs on {program.num_devices} devices, {len(self.devices)} are at "
                "hand: ProfiledStages() measures stages where they will run, AutoStages() prices "
                "them for a cluster that is not there"
            )
        key = program_key(program, self.devices[0])
        if key not in self._known:
            kept = self.store.get(key)
            if kept is None:
                self.say(f"running {program.name}")
                kept = {"seconds": run_seconds(program, self.devices)}
                self.store.put(key, kept)
            self._known[key] = float(kept["seconds"])
        return self._known[key]


def run_seconds(program: SpmdProgram, devices: Sequence[jax.Device]) -> float:
    """Seconds of a run of a program: the median of some, on arguments that are zero.

    Args:
        program: what is run; nothing is donated.
        devices: it runs on the first of them.
    """
    sizes = tuple(size for _, size in program.mesh)
    names = tuple(name for name, _ in program.mesh)
    own = np.array(devices[: program.num_devices], object).reshape(sizes)
    bound = MeshProgram(replace(program, donated=()), jax.sharding.Mesh(own, names))
    args = [
        jax.device_put(_zeros(value, program), sharding)
        for value, sharding in zip(program.inputs, bound.in_shardings, strict=True)
    ]
    jax.block_until_ready(bound(*args))
    times = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        jax.block_until_ready(bound(*args))
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _zeros(value: ValueSpec, program: SpmdProgram) -> Any:
    if value.key_impl is not None:
        return jax.random.wrap_key_data(jnp.zeros(value.shape, jnp.uint32), impl=value.key_impl)
    aval = value.aval(program.mesh_sizes)
    return np.zeros(aval.shape, aval.dtype)
