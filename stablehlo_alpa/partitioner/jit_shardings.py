"""The shardings that the planner would choose, for a plain ``jax.jit``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding

from stablehlo_alpa.api.methods import ShardParallel
from stablehlo_alpa.cluster import ClusterSpec, as_cluster, one_part
from stablehlo_alpa.errors import MeshError
from stablehlo_alpa.frontend import positions, trace
from stablehlo_alpa.partitioner.asked import Asked
from stablehlo_alpa.partitioner.region_planner import mesh_options
from stablehlo_alpa.planning import Exactly, Prescription, plan_program


def shardings(
    fun: Callable[..., Any],
    mesh: Mesh,
    *args: Any,
    donate_argnums: int | Sequence[int] = (),
    static_argnums: int | Sequence[int] = (),
    method: ShardParallel | None = None,
    cluster: ClusterSpec | str | None = None,
    trip_count_hint: int | None = None,
) -> tuple[Any, Any]:
    """Chooses ``in_shardings`` and ``out_shardings`` of a function for ``jax.jit``.

    XLA's partitioner then splits what is between them by its own propagation.

    Args:
        fun: function of pytrees of arrays.
        mesh: mesh of the program.
        *args: its arguments, as arrays or ``jax.ShapeDtypeStruct``. Those that have a
            ``NamedSharding`` on the mesh keep it.
        donate_argnums: positions of donated arguments; their next-step values get their shardings.
        static_argnums: positions of arguments that are compile-time constants.
        method: memory budget, device and limits of the solver.
        cluster: that the mesh stands for, as ``parallelize`` takes it; by default its devices.
        trip_count_hint: how often loops run of which the program does not say it, as
            ``parallelize`` takes it.

    Returns:
        ``(in_shardings, out_shardings)``: a tuple with an entry per argument that is not static,
        and the structure of the result.

    Raises:
        MeshError: an argument lies on another mesh.
        InfeasibleError: no plan keeps the memory budget.

    Example:
        >>> into, out = stablehlo_alpa.shardings(step, mesh, state, batch, donate_argnums=0)
        >>> step = jax.jit(step, in_shardings=into, out_shardings=out, donate_argnums=0)
    """
    static = positions(static_argnums, len(args))
    program = trace(
        fun,
        args,
        {},
        static_argnums=static,
        donate_argnums=positions(donate_argnums, len(args)),
    )
    leaves = jax.tree.leaves([arg for i, arg in enumerate(args) if i not in static])
    specs = {i: _kept_spec(leaf, mesh) for i, leaf in enumerate(leaves)}
    kept = Prescription({i: Exactly(spec) for i, spec in specs.items() if spec is not None})
    described = None if cluster is None else one_part(as_cluster(cluster), "shardings")
    asked = Asked(method or ShardParallel(), described, trip_count_hint)
    program = replace(program, trip_count_hint=asked.trip_count_hint)
    plan = plan_program(program, replace(mesh_options(mesh, asked), prescription=kept))

    def named(specs: Any) -> Any:
        return jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs)

    into, _ = named(plan.input_shardings)
    return tuple(into), named(plan.output_shardings)


def _kept_spec(leaf: Any, mesh: Mesh) -> Any:
    sharding = getattr(leaf, "sharding", None)
    if not isinstance(sharding, NamedSharding):
        return None
    if sharding.mesh.shape != mesh.shape:
        raise MeshError(
            f"an argument lies on mesh {dict(sharding.mesh.shape)}, shardings are asked for on "
            f"{dict(mesh.shape)}"
        )
    return sharding.spec
