"""Lower bounds of every run of layers on every submesh, from the step cut into its layers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from stablehlo_alpa.cluster import Cluster, ClusterSpec, UnlikeCluster
from stablehlo_alpa.compiler import Module
from stablehlo_alpa.cost import between_seconds, link_seconds, network_transfer_seconds
from stablehlo_alpa.cost.strategy_graph import Float
from stablehlo_alpa.errors import MeshError
from stablehlo_alpa.inter_op.layer_costs import Layer, LayerCosts
from stablehlo_alpa.inter_op.layer_parts import LayerPart, LayerParts
from stablehlo_alpa.inter_op.range_bounds import RangeBounds
from stablehlo_alpa.inter_op.submeshes import Submesh, submeshes
from stablehlo_alpa.inter_op.threads import in_threads, num_threads
from stablehlo_alpa.inter_op.windows import Windows
from stablehlo_alpa.store import OFF, Store

# An axis is useful that divides dimensions of so much of what is computed, by bytes (heuristic).
_MOST = 0.5
# The first price of memory that is tried: a byte is worth this many transfers of it over a link,
# per micro-batch (heuristic).
_FIRST_PRICE = 0.25


class StageBounds:
    """Bounds for the pipelines of one step on one cluster."""

    def __init__(
        self,
        parts: LayerParts,
        cluster: Cluster,
        budget: float | Sequence[float],
        store: Store = OFF,
    ) -> None:
        """Nothing is priced yet.

        Args:
            parts: the layers of the step.
            cluster: all devices.
            budget: bytes per device, of all parts of the cluster or of each.
            store: keeps what layers cost, and the least of it.
        """
        self._store = store
        self._parts, self._cluster = parts, cluster
        shared = (budget,) * len(cluster.parts) if isinstance(budget, int | float) else budget
        self._budgets = tuple(shared)
        self._by_submesh: dict[Submesh, RangeBounds] = {}
        self._start_s: float | None = None

    @property
    def num_layers(self) -> int:
        """L."""
        return len(self._parts.parts)

    @property
    def num_parts(self) -> int:
        """Parts of the cluster."""
        return len(self._cluster.parts)

    @cached_property
    def submeshes(self) -> tuple[Submesh, ...]:
        """Those that a stage may run on.

        Where no axis of a logical shape but a few divides the sizes of the step (3 x 8 over three
        hosts), most devices do the same. Of the shapes of a part of the cluster only those are kept
        along whose axes most can be split. This is a heuristic: a stage that does not gain by more
        devices could be faster on one of the others.
        """
        found: dict[tuple[int, int, int], list[tuple[int, Submesh]]] = {}
        every = (submeshes(part, number) for number, part in enumerate(self._cluster.parts))
        for submesh in itertools.chain.from_iterable(every):
            try:
                self._part(submesh).logical_mesh(submesh.mesh_shape)
            except MeshError:
                continue
            size = submesh.part, submesh.hosts, submesh.devices_per_host
            found.setdefault(size, []).append((self._useful(submesh.mesh_shape), submesh))
        return tuple(
            submesh
            for group in found.values()
            for useful, submesh in group
            if useful == max(group)[0]
        )

    def _useful(self, shape: tuple[int, ...]) -> int:
        """Devices along axes that divide most of what the step computes."""
        return math.prod(size for size in shape if self._parts.divisible(size) >= _MOST)

    def of(self, submesh: Submesh) -> RangeBounds:
        """The bounds on a submesh."""
        if submesh not in self._by_submesh:
            kinds = self._kinds[submesh]
            layers = tuple(kinds[part.kind] for part in self._parts.parts)
            links_s = link_seconds(1e9, self._part(submesh)) / 1e9
            start_s = _FIRST_PRICE * self._parts.num_micro_batches * links_s
            windows = Windows(self._parts, layers, self._store)
            budget = self._budgets[submesh.part]
            self._by_submesh[submesh] = RangeBounds(windows, layers, budget, start_s)
        return self._by_submesh[submesh]

    @cached_property
    def _kinds(self) -> dict[Submesh, dict[object, Layer]]:
        """Every kind of layer on every submesh, all processors taking part."""
        parts = {part.kind: part for part in self._parts.parts}

        def on_some(work: tuple[LayerPart, Sequence[Submesh]]) -> list[Layer]:
            # Parsed once, if at all: that takes longer than to enumerate strategies of one axis.
            part, submeshes = work
            module, count = Module.kept(part.merged, "a layer"), self._parts.num_micro_batches
            meshes = (self._part(one).logical_mesh(one.mesh_shape) for one in submeshes)
            return [LayerCosts.kept(part, module, one, count, self._store) for one in meshes]

        # Kinds are few, and as many as processors by chance alone: each is shared out.
        each = num_threads()
        shares = [self.submeshes[start::each] for start in range(each)]
        todo = [(part, share) for part in parts.values() for share in shares if share]
        found: dict[Submesh, dict[object, Layer]] = {one: {} for one in self.submeshes}
        for (part, share), costs in zip(todo, in_threads(on_some, todo), strict=True):
            for submesh, cost in zip(share, costs, strict=True):
                found[submesh][part.kind] = cost
        return found

    def sharpen(
        self, submesh: Submesh, first: int, last: int, in_flight: int, *, with_pairs: bool = True
    ) -> bool:
        """Makes the bound of a run of layers as good as it gets; False where it was.

        What a byte is worth differs little from submesh to submesh: each begins with the last one's
        price.
        """
        ranges = self.of(submesh)
        if ranges.is_sharp(first, last, in_flight, with_pairs=with_pairs):
            return False
        ranges.start_s = self._start_s or ranges.start_s
        ranges.sharpen(first, last, in_flight, with_pairs=with_pairs)
        self._start_s = ranges.best_price_s(first, last, in_flight) or self._start_s
        return True

    def memory_price_s(
        self, submesh: Submesh, first: int, last: int, in_flight: int
    ) -> float | None:
        """What makes a bound that was sharpened largest: seconds per step and byte per device."""
        return self.of(submesh).best_price_s(first, last, in_flight) or None

    def leanest(self) -> Submesh:
        """The submesh of all devices, of a part, on which the whole step needs least memory."""
        parts = self._cluster.parts
        whole = [one for one in self.submeshes if one.num_devices == parts[one.part].num_devices]
        return min(whole, key=lambda one: float(self.of(one).least_bytes(1)[0, -1]))

    def parts_without_room(self) -> list[int]:
        """Numbers of the parts of the cluster on which no layer fits the memory."""
        with_room = {
            one.part
            for one in self.submeshes
            if (np.diagonal(self.of(one).least_bytes(1)) <= self._budgets[one.part]).any()
        }
        return [part for part in range(self.num_parts) if part not in with_room]

    def received_s(self, submesh: Submesh, source: int) -> Float:
        """float64[L, L] seconds in which runs of layers receive their inputs (heuristic).

        Every device receives its part, from the part of the cluster where the stage before runs,
        whatever stage has made it.

        Args:
            submesh: that receives.
            source: number of the part that sends.
        """
        cluster, whole = self._cluster.parts[submesh.part], self._cluster
        if source != submesh.part and isinstance(whole, UnlikeCluster):
            # The link of a host of the stage before may be all that there is to send by.
            hosts = min(submesh.hosts, whole.parts[source].num_hosts)
            sizes = self.received_bytes / hosts
            return _seconds(sizes, lambda one: between_seconds(one, whole, source, submesh.part))
        inside = _seconds(
            self.received_bytes / submesh.num_devices, lambda one: link_seconds(one, cluster)
        )
        if cluster.num_devices <= cluster.devices_per_domain:
            return inside
        outside = _seconds(
            self.received_bytes / submesh.hosts,
            lambda one: network_transfer_seconds(one, cluster),
        )
        # Of stages of one size that stand side by side so many begin a domain.
        share = min(1.0, submesh.num_devices / cluster.devices_per_domain)
        return share * outside + (1 - share) * inside

    @cached_property
    def received_bytes(self) -> Float:
        """float64[L, L] that runs of layers receive per micro-batch."""
        found = np.zeros((self.num_layers, self.num_layers))
        for first in range(self.num_layers):
            for last in range(first, self.num_layers):
                found[first, last] = self._parts.received_bytes(first, last)
        return found

    def _part(self, submesh: Submesh) -> ClusterSpec:
        cluster = self._cluster.parts[submesh.part]
        return cluster.part(submesh.hosts, submesh.devices_per_host)


def _seconds(sizes: Float, price: Callable[[float], float]) -> Float:
    """Seconds of bytes; nothing takes none."""
    distinct, places = np.unique(sizes, return_inverse=True)
    times = np.array([price(float(size)) if size > 0 else 0.0 for size in distinct])
    return times[places].reshape(sizes.shape)
