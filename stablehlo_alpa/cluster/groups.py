"""Where the groups of a collective lie in a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Ring:
    """The part of a torus axis that a group lies on.

    Attributes:
        size: devices of the group along the axis.
        is_closed: whether its last device is linked to the first.
        sharing: groups interleaved on the same links.
    """

    size: int
    is_closed: bool
    sharing: int = 1

    @property
    def lanes(self) -> float:
        """Links that a device of the group sends over at a time, shares of others taken off."""
        return (2.0 if self.is_closed and self.size > 2 else 1.0) / self.sharing


@dataclass(frozen=True)
class Group:
    """A group of a collective; the others of its mesh lie like it, or better.

    Attributes:
        size: devices.
        num_domains: link domains (hosts, or racks whose devices are all linked) it reaches over.
        per_domain: its devices in each.
        hosts: hosts of a domain that it has devices on.
        stride: distance between its devices in a domain: 1 when they are neighbours.
        sharing: groups that use the network of a host together; 1 inside of a domain.
        rings: the parts of torus axes that it covers; empty where there is no torus.
    """

    size: int
    num_domains: int = 1
    per_domain: int = 1
    hosts: int = 1
    stride: int = 1
    sharing: int = 1
    rings: tuple[Ring, ...] = ()

    @property
    def crosses(self) -> bool:
        """Whether it leaves a link domain."""
        return self.num_domains > 1


def positions(shape: Sequence[int], mask: int) -> npt.NDArray[np.int64]:
    """int64[groups, size]: device numbers of all groups of a collective, row-major meshes.

    Args:
        shape: of the mesh.
        mask: bit i set when mesh axis i takes part.
    """
    devices = np.arange(int(np.prod(shape))).reshape(shape)
    inside = [axis for axis in range(len(shape)) if mask >> axis & 1]
    outside = [axis for axis in range(len(shape)) if not mask >> axis & 1]
    size = int(np.prod([shape[axis] for axis in inside], initial=1))
    return devices.transpose(*outside, *inside).reshape(-1, size)


def group_of(
    devices: npt.NDArray[np.int64], domain: int, host: int, torus: Sequence[tuple[int, bool]] = ()
) -> Group:
    """Describes groups by the one that lies worst.

    Args:
        devices: int64[groups, size].
        domain: devices of a link domain.
        host: devices of a host.
        torus: size and whether it is closed, of every axis.
    """
    size = devices.shape[1]
    if torus:
        return Group(size, per_domain=size, rings=_rings(devices[0], torus))
    domains = devices // domain
    reached = np.array([len(set(row)) for row in domains.tolist()])
    worst = int(reached.argmax())
    inner = np.sort(devices[worst][domains[worst] == domains[worst][0]])
    stride = int(np.diff(inner).min()) if len(inner) > 1 else 1
    per_domain = -(-size // int(reached[worst]))
    hosts = devices // host
    num_hosts = len(set((inner // host).tolist()))
    sharing = 1
    if reached[worst] > 1:
        is_there = (hosts[reached > 1] == hosts[worst][0]).any(axis=1)
        sharing = int(is_there.sum())
    return Group(size, int(reached[worst]), per_domain, num_hosts, stride, sharing)


def _rings(devices: npt.NDArray[np.int64], torus: Sequence[tuple[int, bool]]) -> tuple[Ring, ...]:
    coordinates = np.unravel_index(devices, tuple(size for size, _ in torus))
    rings = []
    for at, (size, is_closed) in zip(coordinates, torus, strict=True):
        found = np.unique(at)
        if len(found) > 1:
            gap = int(np.diff(found).min())
            whole = len(found) * gap == size
            rings.append(Ring(len(found), is_closed and whole, gap))
    return tuple(rings)
