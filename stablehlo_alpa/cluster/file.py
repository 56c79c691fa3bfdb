"""Clusters as TOML files, see ``docs/how_a_strategy_is_chosen.md``."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stablehlo_alpa.cluster.device import DeviceSpec, Fit, Link
from stablehlo_alpa.cluster.overlap import Overlap
from stablehlo_alpa.cluster.presets import PRESETS, preset_for
from stablehlo_alpa.cluster.spec import ClusterSpec, Torus
from stablehlo_alpa.cluster.unlike import Cluster, UnlikeCluster
from stablehlo_alpa.errors import MeshError

_KEYS = {
    *("device", "hosts", "devices_per_host", "hosts_per_rack"),
    *("links", "torus", "overlap", "fits"),
}
# Where the name of a table begins.
_HEAD = re.compile(r"^(\[+)")
_OVERLAP = ("gradients", "parameters", "slowdown", "products")

# Tables of measured constants, and what a row of each has to say.
_FITS = {
    "collectives": ("kind", "group_size", "latency_s", "per_byte_s"),
    "network": ("kind", "hop_s", "efficiency"),
    "products": ("dtype", "launch_s", "efficiency", "memory_efficiency"),
}


def parse_cluster(text: str, name: str) -> Cluster:
    """The cluster of a file; of unlike parts where it has ``[[parts]]``.

    Args:
        text: of the file.
        name: of the file, for messages.

    Raises:
        MeshError: something is missing, unknown, or makes no cluster.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise MeshError(f"{name}: {error}") from error
    try:
        return _unlike(table) if "parts" in table else _cluster(table)
    except MeshError as error:
        raise MeshError(f"{name}: {error}") from error


def _unlike(table: Mapping[str, Any]) -> UnlikeCluster:
    unknown = sorted(set(table) - {"parts", "links"})
    if unknown:
        raise MeshError(
            f"beside [[parts]] there are links alone, got {unknown}: they are of a part"
        )
    if not isinstance(table["parts"], list):
        raise MeshError("parts must be tables [[parts]], one after the other")
    parts = []
    for number, part in enumerate(table["parts"]):
        try:
            parts.append(_part(part))
        except MeshError as error:
            raise MeshError(f"parts[{number}]: {error}") from error
    between = _link(table.get("links", {}), "between")
    if between is None:
        raise MeshError(
            "links.between is missing: hosts of one part reach those of another with its latency_s "
            "and bandwidth"
        )
    return UnlikeCluster(tuple(parts), between)


def _part(table: Mapping[str, Any]) -> ClusterSpec:
    """Machines by name, or what else describes a cluster."""
    if "machines" not in table:
        return _cluster(table)
    unknown = sorted(set(table) - {"machines"})
    if unknown:
        raise MeshError(f"machines says all of a part, leave {unknown} out")
    return ClusterSpec.preset(str(table["machines"]))


def _cluster(table: Mapping[str, Any]) -> ClusterSpec:
    unknown = sorted(set(table) - _KEYS)
    if unknown:
        raise MeshError(f"unknown keys {unknown}, known are {sorted(_KEYS)}")
    hosts = _number(table, "hosts", int, 1)
    per_host = _number(table, "devices_per_host", int, None)
    links = table.get("links", {})
    # A level that is crossed needs its link.
    needed = {"host": hosts * per_host > 1, "network": hosts > 1 and "torus" not in table}
    for level, is_needed in needed.items():
        if is_needed and level not in links:
            raise MeshError(
                f"links.{level} is missing: {hosts} hosts of {per_host} devices need its "
                "latency_s and bandwidth"
            )
    torus = table.get("torus")
    device = _device(table)
    if "fits" in table:
        device = replace(device, fits=_fits(table["fits"]))
    return ClusterSpec(
        device,
        hosts,
        per_host,
        host_link=_link(links, "host"),
        network=_link(links, "network"),
        hosts_per_rack=_number(table, "hosts_per_rack", int, 1),
        torus=None if torus is None else _torus(torus),
        overlap=_overlap(table["overlap"]) if "overlap" in table else None,
    )


def _overlap(table: Mapping[str, Any]) -> Overlap:
    unknown = sorted(set(table) - set(_OVERLAP))
    if unknown:
        raise MeshError(f"overlap has unknown keys {unknown}, known are {list(_OVERLAP)}")
    usual = Overlap()
    return Overlap(
        *(_number(table, key, float, getattr(usual, key), "overlap.") for key in _OVERLAP)
    )


def _torus(table: Mapping[str, Any]) -> Torus:
    for key in ("shape", "closed"):
        if not isinstance(table.get(key), list):
            raise MeshError(f"torus.{key} is missing, or no list")
    return Torus(tuple(map(int, table["shape"])), tuple(map(bool, table["closed"])))


def _device(table: Mapping[str, Any]) -> DeviceSpec:
    given = table.get("device")
    if isinstance(given, str):
        return preset_for(given)
    if given is None:
        raise MeshError("device is missing: the name of a preset, or a table")
    unlinked = Link(0.0, float("inf"))
    return DeviceSpec(
        name=str(given.get("name", "device")),
        flops=given.get("flops", {}),
        memory_bytes=_number(given, "memory_bytes", float, None),
        memory_bandwidth=_number(given, "memory_bandwidth", float, None),
        intra_host=_link(table.get("links", {}), "host") or unlinked,
        inter_host=_link(table.get("links", {}), "network") or unlinked,
        measured_as=str(given.get("measured_as", "")),
        units=_number(given, "units", int, 0),
        platform=str(given.get("platform", "")),
        host_bandwidth=_number(given, "host_bandwidth", float, 0.0),
    )


def _fits(tables: Mapping[str, Any]) -> tuple[Fit, ...]:
    found = []
    for name, rows in tables.items():
        if name not in _FITS:
            raise MeshError(f"fits.{name} is unknown, known are {sorted(_FITS)}")
        for number, row in enumerate(rows):
            missing = [key for key in _FITS[name] if key not in row]
            if missing:
                raise MeshError(f"fits.{name}[{number}]: {', '.join(missing)} is missing")
            found.append(Fit(name, tuple((key, str(value)) for key, value in row.items())))
    return tuple(found)


def _link(links: Mapping[str, Any], level: str) -> Link | None:
    if level not in links:
        return None
    table = links[level]
    where = f"links.{level}."
    return Link(
        _number(table, "latency_s", float, None, where),
        _number(table, "bandwidth", float, None, where),
    )


def _number(table: Mapping[str, Any], key: str, kind: type, default: Any, where: str = "") -> Any:
    value = table.get(key, default)
    if value is None:
        raise MeshError(f"{where}{key} is missing")
    if isinstance(value, bool) or not isinstance(value, int | float) or kind(value) != value:
        raise MeshError(f"{where}{key} is {value!r}, must be a number ({kind.__name__})")
    return kind(value)


def format_cluster(cluster: Cluster) -> str:
    """The file of a cluster."""
    if isinstance(cluster, ClusterSpec):
        return "\n".join(_lines(cluster)) + "\n"
    between = cluster.between
    lines = ["[links.between]", f"latency_s = {between.alpha_s!r}"]
    lines += [f"bandwidth = {between.bandwidth!r}"]
    for part in cluster.parts:
        lines += ["", "[[parts]]", *(_HEAD.sub(r"\1parts.", line) for line in _lines(part))]
    return "\n".join(lines) + "\n"


def _lines(cluster: ClusterSpec) -> list[str]:
    device = cluster.device
    is_preset = PRESETS.get(device.name) == replace(device, fits=())
    lines = [f"device = {json.dumps(device.name)}"] if is_preset else []
    lines += [
        f"hosts = {cluster.num_hosts}",
        f"devices_per_host = {cluster.devices_per_host}",
        f"hosts_per_rack = {cluster.hosts_per_rack}",
    ]
    if cluster.torus is not None:
        shape, closed = list(cluster.torus.shape), json.dumps(list(cluster.torus.closed))
        lines += ["", "[torus]", f"shape = {shape}", f"closed = {closed}"]
    for level, link in (("host", cluster.device_link), ("network", cluster.host_network)):
        lines += ["", f"[links.{level}]", f"latency_s = {link.alpha_s!r}"]
        lines += [f"bandwidth = {link.bandwidth!r}"]
    if cluster.overlap is not None:
        lines += ["", "[overlap]"]
        # Files say nothing of what is off, as they did before it was there.
        kept = [key for key in _OVERLAP if key != "products" or cluster.overlap.products]
        lines += [f"{key} = {float(getattr(cluster.overlap, key))!r}" for key in kept]
    if not is_preset:
        lines += ["", "[device]", f"name = {json.dumps(device.name)}"]
        lines += [f"memory_bytes = {float(device.memory_bytes)!r}"]
        lines += [f"memory_bandwidth = {float(device.memory_bandwidth)!r}"]
        lines += [f"measured_as = {json.dumps(device.measured_as)}", f"units = {device.units}"]
        lines += [f"platform = {json.dumps(device.platform)}"]
        if device.host_bandwidth:
            lines += [f"host_bandwidth = {float(device.host_bandwidth)!r}"]
        lines += ["", "[device.flops]"]
        lines += [f"{json.dumps(key)} = {float(value)!r}" for key, value in device.flops.items()]
    for fit in device.fits:
        lines += ["", f"[[fits.{fit.table}]]"]
        lines += [f"{key} = {_written(value)}" for key, value in fit.entries]
    return lines


def _written(value: str) -> str:
    """A number as it is, text in quotes."""
    try:
        float(value)
    except ValueError:
        return json.dumps(value)
    return value
