"""Seconds of collectives on a torus: rings along its axes, all of which are used at once."""

from __future__ import annotations

from stablehlo_alpa.cluster import Group, Link
from stablehlo_alpa.cost.kinds import CollectiveKind, FloatArray, ring_share


def torus_seconds(
    kind: CollectiveKind, group: Group, payload: FloatArray, link: Link
) -> FloatArray:
    r"""Seconds of collectives over groups of n devices.

    A device sends along every axis i that its group covers over ``l_i`` links at a time (2 on a
    closed ring, 1 on a line, less where groups are interleaved). With B bytes per second a link::

        all_gather, reduce_scatter   (n - 1) / n * x / (B sum l_i);  all_reduce: twice that
        all_to_all                   max_i e_i x / (4 B l_i): half of what half the devices along an
                                     axis of e_i have crosses its middle
        collective_permute           x / (B min l_i), neighbour to neighbour

    and half the way round every axis for the first byte.

    References:
        Austin et al., "How to Scale Your Model" (jax-ml/scaling-book), "TPU networking" and
        "Sharded matrices".
    """
    lanes = [ring.lanes for ring in group.rings]
    hops = sum(max(1.0, ring.size / 2 if ring.is_closed else ring.size - 1) for ring in group.rings)
    if kind is CollectiveKind.ALL_TO_ALL:
        widest = max(ring.size / (4 * ring.lanes) for ring in group.rings)
        return hops * link.alpha_s + widest * payload / link.bandwidth
    if kind is CollectiveKind.COLLECTIVE_PERMUTE:
        shared = max(ring.sharing for ring in group.rings)
        return link.alpha_s + payload * shared / link.bandwidth
    share = ring_share(kind, group.size)
    passes = 2.0 if kind is CollectiveKind.ALL_REDUCE else 1.0
    return passes * hops * link.alpha_s + share * payload / (link.bandwidth * sum(lanes))
