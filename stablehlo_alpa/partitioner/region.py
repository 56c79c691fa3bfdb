"""A function that XLA's partitioner asks about: how shardings pass it, what each device runs."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import jax
from alpa_runtime import SpmdProgram
from alpa_runtime.device_mesh import make_mesh
from alpa_runtime.host_memory import type_of
from alpa_runtime.local_call import LocalModule
from jax.experimental.custom_partitioning import SdyShardingRule, custom_partitioning
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from stablehlo_alpa.compiler import Module
from stablehlo_alpa.frontend import SeenThrough, TracedProgram, trace
from stablehlo_alpa.partitioner.asked import Asked
from stablehlo_alpa.partitioner.proposed import proposed_entries
from stablehlo_alpa.partitioner.recent import Recent
from stablehlo_alpa.partitioner.region_planner import Proposal, digest, plan_region
from stablehlo_alpa.partitioner.sharding_rule import BoundaryRule
from stablehlo_alpa.planning import Plan

logger = logging.getLogger(__name__)

Flat: TypeAlias = Callable[..., tuple[Any, ...]]
"""A function of arrays without PRNG keys, that returns a tuple of such arrays."""

_rules: Recent[BoundaryRule] = Recent(256)


class Region(SeenThrough):
    """A function of arrays at given shapes.

    Attributes:
        name: of the function.
    """

    def __init__(self, fun: Callable[..., Any], avals: Sequence[Any], asked: Asked) -> None:
        """Takes a function of arrays that returns a tuple of arrays, neither with PRNG keys."""
        self.name = fun.__name__
        self._fun, self._avals, self._asked = fun, tuple(avals), asked

    @functools.cached_property
    def program(self) -> TracedProgram:
        """The function, traced."""
        traced = trace(self._fun, self._avals, {})
        return replace(traced, trip_count_hint=self._asked.trip_count_hint)

    @functools.cached_property
    def rule(self) -> BoundaryRule:
        """How shardings pass the function; found once for equal functions."""

        def find() -> BoundaryRule:
            module = Module(self.program.text, self.name)
            module.run("alpa-prepare-pipeline")
            return BoundaryRule.of(module)

        return _rules.get(digest(self.program), find)

    def sdy_rule(self, mesh: Mesh, operands: Any, results: Any) -> SdyShardingRule:
        """For Shardy: as ``custom_partitioning`` wants it."""
        return self.rule.to_sdy(self.program.inputs, self.program.outputs)

    def infer(self, mesh: Mesh, inputs: Sequence[Any], outputs: Any) -> Any:
        """For GSPMD: shardings of the results."""
        return self.rule.propagate(mesh, inputs)

    def partition(self, mesh: Mesh, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """What each device runs, under the shardings that XLA proposes.

        Args:
            mesh: of the program; empty when it has none with names.
            inputs: ``jax.ShapeDtypeStruct`` with shardings.
            outputs: likewise.

        Returns:
            mesh, function of local arrays, shardings of the results and of the arguments.
        """
        if mesh.empty:
            return self._replicated(inputs, outputs)
        proposal = Proposal(
            *(tuple(proposed_entries(mesh, one) for one in some) for some in (inputs, outputs))
        )
        plan = plan_region(self.program, mesh, proposal, self._asked)
        logger.info("%s: %s", self.name, plan)
        spmd = _program(plan)

        def shardings(values: Any) -> tuple[NamedSharding, ...]:
            return tuple(NamedSharding(mesh, value.spec) for value in values)

        return mesh, _local(plan), shardings(spmd.outputs), shardings(spmd.inputs)

    def _replicated(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        logger.warning(
            "%s is not planned: XLA does not say by which mesh the program is split (its "
            "shardings are not NamedShardings); every device computes all of it",
            self.name,
        )
        devices = {device for value in inputs for device in value.sharding.device_set}
        mesh = make_mesh([("devices", len(devices))], sorted(devices, key=lambda one: one.id))
        whole = NamedSharding(mesh, PartitionSpec())
        return mesh, self._fun, (whole,) * len(outputs), (whole,) * len(inputs)


def _local(plan: Plan) -> Callable[..., tuple[Any, ...]]:
    """The per-device program of a plan as a function of local arrays."""
    module = LocalModule.of(_program(plan))
    return lambda *args: tuple(module(*args))


def _program(plan: Plan) -> SpmdProgram:
    """What each device of the one mesh runs."""
    program = plan.runtime.sole_program
    assert program is not None
    return program


def call_region(fun: Callable[..., Any], args: Sequence[Any], asked: Asked) -> tuple[Any, ...]:
    """Calls a function so that XLA's partitioner asks about it.

    Args:
        fun: of arrays without PRNG keys; returns a tuple of such arrays.
        args: its arguments.
        asked: how it is planned.
    """
    region = Region(fun, [type_of(jax.typeof(arg)) for arg in args], asked)

    def body(*values: Any) -> tuple[Any, ...]:
        return tuple(fun(*values))

    body.__name__ = region.name
    partitioned = custom_partitioning(body)
    partitioned.def_partition(
        partition=region.partition,
        infer_sharding_from_operands=region.infer,
        sharding_rule=region.sdy_rule,
        # jax has no word for a part of an axis, and would raise inside of XLA: we read them.
        decode_shardings=False,
    )
    results: tuple[Any, ...] = partitioned(*args)
    return results
