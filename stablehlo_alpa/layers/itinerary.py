"""Where a function has to run so that its inputs stay where they lie."""

from __future__ import annotations

from typing import Any, NamedTuple

from jax.extend.core import ClosedJaxpr, Literal

from stablehlo_alpa.layers.options import FollowInputs


class Itinerary(NamedTuple):
    """The meshes that a function visits.

    Attributes:
        layers: per equation its layer.
        stops: per layer the number of its mesh. A mesh is visited again where what lies on it is
            used with what another one has made, as under the interleaved schedule.
    """

    layers: list[int]
    stops: tuple[int, ...]


def itinerary(option: FollowInputs, closed: ClosedJaxpr) -> Itinerary:
    """Lays out a flat function: equations run where their inputs lie, as early as they can.

    An equation whose inputs lie on several meshes runs on the one that was visited last.
    """
    jaxpr = closed.jaxpr
    # Constants of the function come before the inputs.
    inputs = jaxpr.invars[len(jaxpr.invars) - len(option.meshes) :]
    home = {v: mesh for v, mesh in zip(inputs, option.meshes, strict=True) if mesh is not None}
    made_in: dict[Any, int] = {}
    layers: list[int] = []
    stops: list[int] = []
    for equation in jaxpr.eqns:
        used = [atom for atom in equation.invars if not isinstance(atom, Literal)]
        layer = max((made_in.get(atom, 0) for atom in used), default=0)
        if meshes := {home[atom] for atom in used if atom in home}:
            layer = _next_stop(stops, layer, meshes)
        layers.append(layer)
        made_in.update(dict.fromkeys(equation.outvars, layer))
    return Itinerary(layers, tuple(stops))


def _next_stop(stops: list[int], layer: int, meshes: set[int]) -> int:
    """The first layer from one on that is on the mesh; a new one where there is none."""
    known = [mesh for mesh in dict.fromkeys(stops) if mesh in meshes]
    mesh = known[-1] if len(known) == len(meshes) else min(meshes - set(known))
    for later in range(layer, len(stops)):
        if stops[later] == mesh:
            return later
    stops.append(mesh)
    return len(stops) - 1
