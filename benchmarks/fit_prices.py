"""Fits the constants of prices on ``benchmarks/measured`` and writes ``stablehlo_alpa/cost/fits``.

Every second point of each series is fitted; ``benchmarks/prices.py`` judges by the others.
"""

import itertools
from pathlib import Path

import numpy as np
from measurements import Array, Products, Series, collectives, product_kernels, products, read

from stablehlo_alpa.calibration.fitting import least_deviation, mean_error, reweighted
from stablehlo_alpa.cluster import PRESETS, DeviceSpec, Group
from stablehlo_alpa.cost.curves import Curve
from stablehlo_alpa.cost.kinds import CollectiveKind
from stablehlo_alpa.cost.network import host_traffic, num_hops
from stablehlo_alpa.cost.product import TERMS, USUAL_TILES, Tiles, Waves

FITS = Path(__file__).resolve().parent.parent / "stablehlo_alpa" / "cost" / "fits"

# A plateau has as many constants again: it has to take this much of the error away.
_PLATEAU_GAIN = 0.3

# Sets of tiles that are tried, as in vendors' kernels.
_TILES = (
    ((128, 128),),
    ((128, 256),),
    ((128, 256), (128, 128)),
    ((256, 128), (128, 128), (128, 64)),
    USUAL_TILES,
)


def device_of(measured: str) -> DeviceSpec:
    """The preset of a measured device."""
    return next(one for one in PRESETS.values() if one.measured_as == measured)


def fit_curve(payload: Array, seconds: Array) -> Curve:
    """The curve of a series."""
    order = np.argsort(payload, kind="stable")
    payload, seconds = payload[order], seconds[order]
    whole = Curve(*_grown(payload, seconds))
    best, least = whole, (1 - _PLATEAU_GAIN) * mean_error(whole(payload), seconds)
    sizes = np.unique(payload)
    for first, last in itertools.combinations(range(2, len(sizes)), 2):
        below, beyond = payload < sizes[first], payload >= sizes[last]
        if below.sum() < 3:
            continue
        flat = float(np.median(seconds[~below & ~beyond]))
        grown = float(np.median(seconds[beyond] / payload[beyond]))
        curve = Curve(*_grown(payload[below], seconds[below]), flat, grown)
        error = mean_error(curve(payload), seconds)
        if error < least:
            best, least = curve, error
    return best


def _grown(payload: Array, seconds: Array) -> tuple[float, float, float]:
    columns = np.stack([np.ones(len(payload)), payload, np.sqrt(payload)], axis=1)
    latency, per_byte, per_root = least_deviation(columns, seconds).tolist()
    return latency, per_byte, per_root


def fit_collectives() -> list[list[object]]:
    """Rows of the curves of devices that are linked directly."""
    rows: list[list[object]] = []
    curves: dict[tuple[str, int], Curve] = {}
    for one in collectives():
        curve = fit_curve(one.payload[one.is_fitted], one.seconds[one.is_fitted])
        if one.kind == "all_reduce":
            curves[one.device, one.group_size] = curve
        error = _held(one, curve)
        rows.append(_curve_row(one.device, one.kind, one.group_size, "neighbours", curve, error))
    return rows + _single_points(curves)


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
        *map(_short, numbers),
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
        rows.append([device, name, _short(hop), f"{1 / reached:.3f}", _short(root), f"{error:.3f}"])
    return rows


def fit_rooflines() -> list[list[object]]:
    """Rows of what products of a type reach by their volumes."""
    rows: list[list[object]] = []
    for one in products():
        device, fitted = device_of(one.device), one.is_fitted
        rate = one.flops / device.rate(one.dtype)
        moved = one.bytes / device.memory_bandwidth
        grid = itertools.product(
            np.arange(0.5, 7, 0.5) * 1e-6, np.arange(0.5, 1, 0.02), np.arange(0.4, 1.01, 0.1)
        )
        best = min(
            grid,
            key=lambda c: mean_error(
                one.harness_s + c[0] + np.maximum(rate / c[1], moved / c[2])[fitted],
                one.seconds[fitted],
            ),
        )
        launch, efficiency, memory = map(float, best)
        found = one.harness_s + launch + np.maximum(rate / efficiency, moved / memory)
        error = mean_error(found[~fitted], one.seconds[~fitted])
        numbers = [_short(launch), f"{efficiency:.2f}", f"{memory:.2f}", f"{error:.3f}"]
        rows.append([one.device, one.dtype, *numbers])
    # Of the others only what large products reach is known; the rest is as on H100.
    like = next(row for row in rows if row[:2] == ["H100", "bf16"])
    for row in read("best_products"):
        rows.append([row["device"], row["dtype"], like[2], row["efficiency"], like[4], ""])
    return rows


def fit_waves() -> list[list[object]]:
    """Rows of what products of a type take by their shapes; kernels are fitted along."""
    rows: list[list[object]] = []
    kernels = {(one.device, one.dtype): one for one in product_kernels()}
    for one in products():
        parts = [one, *filter(None, [kernels.get((one.device, one.dtype))])]
        waves = min(
            (_waves(parts, tiles) for tiles in _TILES),
            key=lambda w: sum(_error(part, w, True) for part in parts),
        )
        tiles = "+".join(f"{r}x{w}" for r, w in waves.tiles)
        terms = [_short(term) for term in waves.terms]
        error = f"{_error(one, waves, False):.3f}"
        rows.append([one.device, one.dtype, waves.units, tiles, *terms, error])
    return rows


def _waves(parts: list[Products], tiles: Tiles) -> Waves:
    blank = Waves(device_of(parts[0].device).units, tiles, (0.0,) * len(TERMS))
    columns = [blank.columns(one.shape, one.bytes)[one.is_fitted] for one in parts]
    seconds = [(one.seconds - one.harness_s)[one.is_fitted] for one in parts]
    terms = reweighted(np.concatenate(columns), np.concatenate(seconds))
    return Waves(blank.units, tiles, tuple(terms.tolist()))


def _error(one: Products, waves: Waves, is_fitted: bool) -> float:
    rows = one.is_fitted == is_fitted
    found = one.harness_s + waves(one.shape[rows], one.bytes[rows])
    return mean_error(found, one.seconds[rows])


def _short(number: float) -> str:
    return f"{number:.4g}"


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
    curve = "latency_s,per_byte_s,per_root_s,plateau_s,plateau_per_byte_s"
    write("collectives", f"device,kind,group_size,place,{curve},error", fit_collectives())
    write("network", "device,kind,hop_s,efficiency,per_root_s,error", fit_networks())
    reached = "launch_s,efficiency,memory_efficiency"
    write("products", f"device,dtype,{reached},error", fit_rooflines())
    terms = ",".join(f"{term}_s" for term in TERMS)
    write("waves", f"device,dtype,units,tiles,{terms},error", fit_waves())


if __name__ == "__main__":
    main()
