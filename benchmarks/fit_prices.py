"""Fits the constants of prices on ``benchmarks/measured`` and writes ``stablehlo_alpa/cost/fits``.

Every second point of each series is fitted; ``benchmarks/prices.py`` judges by the others.
"""

import itertools
from dataclasses import replace
from pathlib import Path

import fit_products
import fit_tpus
import numpy as np
from fit_products import short
from measurements import Array, Series, collectives, read

from stablehlo_alpa.calibration.fitting import least_deviation, mean_error
from stablehlo_alpa.cluster import Group
from stablehlo_alpa.cost.curves import MESSAGE_KINDS, Curve, short_payload
from stablehlo_alpa.cost.kinds import CollectiveKind
from stablehlo_alpa.cost.network import host_traffic, num_hops

FITS = Path(__file__).resolve().parent.parent / "stablehlo_alpa" / "cost" / "fits"

# A plateau has as many constants again: it has to take this much of the error away.
_PLATEAU_GAIN = 0.3

# So does a root of each group size, beside one for all of a kind, and what no size is below, which
# takes a number of sizes on either side to be told.
_ROOTS_GAIN, _LEAST_GAIN, _LEAST_SIZES = 0.1, 0.3, 4

Points = tuple[Array, Array]
"""Payloads, rising, and seconds."""


def fit_curves(kind: CollectiveKind, points: dict[int, Points]) -> dict[int, Curve]:
    """The curves of a kind by group size."""
    if kind in MESSAGE_KINDS:
        return {size: _messages(kind, size, *own) for size, own in points.items()}
    curves = {size: _grown(*own, 0.0) for size, own in points.items()}
    shared = _grown_together(points)
    if _mean(curves, points) > (1 - _ROOTS_GAIN) * _mean(shared, points):
        curves = shared
    return {size: _bounded(curve, *points[size]) for size, curve in curves.items()}


def _mean(curves: dict[int, Curve], points: dict[int, Points]) -> float:
    errors = [np.abs(curves[size](x) / seconds - 1) for size, (x, seconds) in points.items()]
    return float(np.concatenate(errors).mean())


def _grown_together(points: dict[int, Points]) -> dict[int, Curve]:
    """With one root for all sizes: how a library adds channels is not a matter of the group."""
    rows = []
    for number, (payload, _) in enumerate(points.values()):
        terms = np.zeros((len(payload), 2 * len(points) + 1))
        terms[:, 2 * number] = 1
        terms[:, 2 * number + 1] = payload
        terms[:, -1] = np.sqrt(payload)
        rows.append(terms)
    seconds = np.concatenate([seconds for _, seconds in points.values()])
    *own, root = least_deviation(np.concatenate(rows), seconds).tolist()
    return {
        size: Curve(latency, per_byte, root)
        for size, latency, per_byte in zip(points, own[::2], own[1::2], strict=True)
    }


def _bounded(curve: Curve, payload: Array, seconds: Array) -> Curve:
    """The curve with what no size is below, where that takes enough of the error away."""
    best, least = curve, (1 - _LEAST_GAIN) * mean_error(curve(payload), seconds)
    sizes = np.unique(payload)
    for first in sizes[_LEAST_SIZES : 1 - _LEAST_SIZES]:
        level = payload < first
        grown = _grown(payload[~level], seconds[~level], 0.0)
        bounded = replace(grown, least_s=float(np.median(seconds[level])))
        error = mean_error(bounded(payload), seconds)
        if error < least:
            best, least = bounded, error
    return best


def _messages(kind: CollectiveKind, size: int, payload: Array, seconds: Array) -> Curve:
    """The curve of what goes as messages, which may be short, or have a plateau."""
    short = short_payload(kind, size)
    whole = _grown(payload, seconds, short)
    best, least = whole, (1 - _PLATEAU_GAIN) * mean_error(whole(payload), seconds)
    sizes = np.unique(payload)
    for first, last in itertools.combinations_with_replacement(range(2, len(sizes)), 2):
        below, beyond = payload < sizes[first], payload >= sizes[last]
        if sizes[first] <= short or below.sum() < 3:
            continue
        grown = _grown(payload[below], seconds[below], short)
        level = ~below & ~beyond
        # A plateau that no point lies on begins at the last one before it.
        flat = float(np.median(seconds[level] if level.any() else grown(payload[below][-1:])))
        per_byte = float(np.median(seconds[beyond] / payload[beyond]))
        curve = replace(grown, plateau_s=flat, plateau_per_byte_s=per_byte)
        error = mean_error(curve(payload), seconds)
        if error < least:
            best, least = curve, error
    return best


def _grown(payload: Array, seconds: Array, short: float) -> Curve:
    is_short = payload <= short
    terms = [
        np.ones(len(payload)),
        ~is_short * payload,
        ~is_short * np.sqrt(payload),
        *([is_short * payload] if short else []),
    ]
    latency, per_byte, per_root, *rest = least_deviation(np.stack(terms, 1), seconds).tolist()
    curve = Curve(latency, per_byte, per_root)
    return replace(curve, short_bytes=short, short_per_byte_s=rest[0]) if short else curve


def fit_collectives() -> list[list[object]]:
    """Rows of the curves of devices that are linked directly."""
    rows: list[list[object]] = []
    known: dict[tuple[str, int], Curve] = {}
    for series, curves in fit_series(collectives()):
        for size, curve in curves.items():
            one = series[size]
            if one.kind == "all_reduce":
                known[one.device, size] = curve
            error = _held(one, curve)
            rows.append(_curve_row(one.device, one.kind, size, "neighbours", curve, error))
    return rows + _single_points(known)


def fit_series(series: list[Series]) -> list[tuple[dict[int, Series], dict[int, Curve]]]:
    """By device and kind: the series of each group size, and the curves of what is fitted."""
    found: dict[tuple[str, str], dict[int, Series]] = {}
    for one in series:
        found.setdefault((one.device, one.kind), {})[one.group_size] = one
    return [
        (own, fit_curves(CollectiveKind[kind.upper()], {s: _fitted(o) for s, o in own.items()}))
        for (_, kind), own in found.items()
    ]


def _fitted(one: Series) -> Points:
    payload, seconds = one.payload[one.is_fitted], one.seconds[one.is_fitted]
    order = np.argsort(payload, kind="stable")
    return payload[order], seconds[order]


def _held(one: Series, curve: Curve) -> float:
    held = ~one.is_fitted
    return mean_error(curve(one.payload[held]), one.seconds[held])


def _single_points(curves: dict[tuple[str, int], Curve]) -> list[list[object]]:
    """Kinds and places in a host of which one large size is known: the latency is all-reduce's."""
    rows: list[list[object]] = []
    measured = {(one.device, one.kind, one.group_size) for one in collectives()}
    for row in read("hosts"):
        size, payload = int(row["group_per_host"]), float(row["payload_bytes"])
        is_known = (row["device"], row["kind"], size) in measured and row["place"] == "neighbours"
        if row["group_hosts"] != "1" or is_known or payload < 2**26:
            continue
        latency = curves[row["device"], size].latency_s
        curve = Curve(latency, (float(row["microseconds"]) * 1e-6 - latency) / payload)
        rows.append(_curve_row(row["device"], row["kind"], size, row["place"], curve, None))
    return rows


def _curve_row(
    device: str, kind: str, size: int, place: str, curve: Curve, error: float | None
) -> list[object]:
    numbers = (
        curve.latency_s,
        curve.per_byte_s,
        curve.per_root_s,
        curve.plateau_s,
        curve.plateau_per_byte_s,
    )
    return [
        device,
        kind,
        size,
        place,
        *map(short, numbers),
        short(curve.short_per_byte_s) if curve.short_bytes else "",
        short(curve.least_s),
        "" if error is None else f"{error:.3f}",
    ]


def fit_networks() -> list[list[object]]:
    """Rows of what kinds reach across hosts, per device."""
    points: dict[tuple[str, str], list[tuple[list[float], float]]] = {}
    for row in read("hosts"):
        kind, size = CollectiveKind[row["kind"].upper()], int(row["group_per_host"])
        domains = int(row["group_hosts"])
        if domains == 1:
            continue
        group = Group(size * domains, domains, size, sharing=int(row["groups"]))
        sent = host_traffic(kind, group) * float(row["payload_bytes"])
        share = float(row["gbit_per_s"]) * 1e9 / 8 / group.sharing
        columns = [num_hops(kind, group), sent / share, float(np.sqrt(sent))]
        point = (columns, float(row["microseconds"]) * 1e-6)
        points.setdefault((row["device"], row["kind"]), []).append(point)
    rows: list[list[object]] = []
    for (device, name), found in points.items():
        terms, seconds = np.array([c for c, _ in found]), np.array([s for _, s in found])
        constants = np.zeros(3)
        # One size says nothing of what does not grow with it.
        is_one_size = terms[:, 1].max() < 100 * terms[:, 1].min()
        chosen = [1] if is_one_size else [0, 1, 2]
        constants[chosen] = least_deviation(terms[:, chosen], seconds)
        hop, reached, root = constants.tolist()
        error = mean_error(terms @ constants, seconds)
        rows.append([device, name, short(hop), f"{1 / reached:.3f}", short(root), f"{error:.3f}"])
    return rows


def write(name: str, header: str, rows: list[list[object]]) -> None:
    """Writes a table of the package."""
    lines = [
        "# Written by benchmarks/fit_prices.py; sources: benchmarks/measured/README.md.",
        "# The error is the mean relative one on what was not fitted (network: on what was), empty",
        "# where one point is all there is.",
        header,
        *(",".join(map(str, row)) for row in rows),
    ]
    (FITS / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Fits and writes all."""
    curve = "latency_s,per_byte_s,per_root_s,plateau_s,plateau_per_byte_s,short_per_byte_s,least_s"
    write("collectives", f"device,kind,group_size,place,{curve},error", fit_collectives())
    write("network", "device,kind,hop_s,efficiency,per_root_s,error", fit_networks())
    reached = "launch_s,efficiency,memory_efficiency"
    write("products", f"device,dtype,{reached},error", fit_products.rooflines())
    write("streams", "device,operator,dtype,share", fit_tpus.streams())
    terms = "depth_s,launch_s,byte_s,flop_s,element_s,split_depth,split_ratio,split_s"
    write("waves", f"device,dtype,products,units,tiles,{terms},error", fit_products.waves())
    write("forms", "device,dtype,form,ratio,error", fit_products.forms())


if __name__ == "__main__":
    main()
