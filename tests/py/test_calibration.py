"""Calibration: what is fitted, how it is written down, and what is refused."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablehlo_alpa import ClusterSpec, MeshError, ShardParallel, cli, parallelize
from stablehlo_alpa.calibration import BusyError, calibrate, compute, links, timing
from stablehlo_alpa.calibration import calibrate as calibrate_module
from stablehlo_alpa.calibration.links import KINDS, PAYLOADS, fit_curve, time_collective
from stablehlo_alpa.calibration.timing import Timing
from stablehlo_alpa.cost import CollectiveKind, collective_seconds, product_seconds
from stablehlo_alpa.cost.kinds import FloatArray

RATE, LAUNCH_S, BANDWIDTH = 3e12, 4e-6, 8e11
LATENCY_S, PER_BYTE_S = 6e-6, 2e-11


def a_product(shape: tuple[int, int, int], *_: Any) -> Timing:
    return Timing(LAUNCH_S + 2 * float(np.prod(np.array(shape, float))) / RATE, 0.01)


def a_stream(num_bytes: int, _: Any) -> Timing:
    return Timing(2 * num_bytes / BANDWIDTH, 0.01)


def a_collective(kind: CollectiveKind, payload: int, size: int, is_strided: bool, _: Any) -> Timing:
    scale = (1 + int(kind)) * size * (2 if is_strided else 1)
    return Timing(LATENCY_S + scale * PER_BYTE_S * payload, 0.01)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose rates are known, instead of this one."""
    module = sys.modules["stablehlo_alpa.calibration.calibrate"]
    monkeypatch.setattr(compute, "time_product", a_product)
    monkeypatch.setattr(compute, "time_stream", a_stream)
    monkeypatch.setattr(module, "time_collective", a_collective)


@pytest.mark.usefixtures("machine")
def test_what_was_measured_is_what_is_priced(tmp_path: Path) -> None:
    cluster = calibrate()
    assert cluster.num_devices == 8
    device = cluster.device
    assert device.memory_bandwidth == pytest.approx(BANDWIDTH)
    flops = np.array([1e6, 1e9, 1e12])
    priced = product_seconds(flops, np.zeros(3), "f32", device)
    assert priced == pytest.approx(LAUNCH_S + flops / RATE, rel=1e-3)
    mesh = cluster.logical_mesh((2, 4))
    for kind in KINDS:
        for mask, size, is_strided in ((1, 2, True), (2, 4, False), (3, 8, False)):
            payload = np.array([1e4, 1e6, 1e8])
            found = collective_seconds([kind] * 3, [mask] * 3, payload, mesh, device)
            scale = (1 + int(kind)) * size * (2 if is_strided else 1)
            assert found == pytest.approx(LATENCY_S + scale * PER_BYTE_S * payload, rel=1e-3)


@pytest.mark.usefixtures("machine")
def test_a_file_keeps_all_of_it(tmp_path: Path) -> None:
    cluster = calibrate(jax.devices()[:4])
    path = tmp_path / "here.toml"
    cluster.write(path)
    assert ClusterSpec.read(path) == cluster
    step = parallelize(lambda x: x @ x, method=ShardParallel(), cluster=str(path))
    assert step.plan(jax.ShapeDtypeStruct((64, 64), np.float32)).step_time_s > 0


@pytest.mark.usefixtures("machine")
def test_the_command_line_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "here.toml"
    cli.app(["calibrate", "-o", str(path), "--devices", "2"], standalone_mode=False)
    assert ClusterSpec.read(path).num_devices == 2
    assert "all_reduce of 4096 B, groups of 2, neighbours: " in capsys.readouterr().err
    with pytest.raises(MeshError, match="--devices is 99, must be 1 to 8"):
        cli.app(["calibrate", "-o", str(path), "--devices", "99"], standalone_mode=False)


@pytest.mark.usefixtures("machine")
def test_a_busy_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["stablehlo_alpa.calibration.calibrate"]
    monkeypatch.setattr(compute, "time_product", lambda *_: Timing(1e-3, 0.8))
    monkeypatch.setattr(module, "time_collective", lambda *_: Timing(1e-3, 0.5))
    with pytest.raises(BusyError, match=r"equal runs differ by .*product.*80%.*at most 25%"):
        calibrate()
    assert calibrate(max_spread=1.0).num_devices == 8


@given(
    latency=st.floats(1e-7, 1e-3),
    per_byte=st.floats(1e-12, 1e-8),
    per_root=st.floats(0, 1e-7),
)
def test_curves_go_through_what_was_measured(
    latency: float, per_byte: float, per_root: float
) -> None:
    payload = np.array(PAYLOADS, float)
    seconds: FloatArray = latency + per_byte * payload + per_root * np.sqrt(payload)
    assert fit_curve(seconds)(payload) == pytest.approx(seconds, rel=1e-4)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name.lower())
@pytest.mark.parametrize(("size", "is_strided"), [(2, True), (4, False), (8, False)])
def test_each_collective_runs(kind: CollectiveKind, size: int, is_strided: bool) -> None:
    """What is timed is the collective that is meant, over groups of that size."""
    lowered = jax.jit(links.collective_steps(kind, size, is_strided, jax.devices())).lower(
        np.int32(1), np.ones(8 * size, np.float32)
    )
    text = lowered.as_text()
    assert f"stablehlo.{kind.name.lower()}" in text
    if kind is not CollectiveKind.COLLECTIVE_PERMUTE:
        assert f"tensor<{8 // size}x{size}xi64>" in text
    assert time_collective(kind, 64, size, is_strided, jax.devices()).seconds > 0


def test_slow_devices_are_spared_the_largest_products() -> None:
    seen: list[tuple[int, int, int]] = []
    device = jax.devices()[0]

    def note(shape: tuple[int, int, int], timing: Timing) -> float:
        seen.append(shape)
        return timing.seconds

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compute, "time_product", a_product)
        seconds = compute.time_products(np.float32, device, note)
    assert tuple(seen) == compute.SHAPES[: len(seconds)]
    assert seen[-1] == (2048,) * 3
    assert compute.fit_products(seconds) == pytest.approx((LAUNCH_S, RATE), rel=1e-3)


def test_what_the_loop_takes_is_no_part_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    loop_s, step_s = 25e-6, 3e-6

    def iteration(stepped: timing.Stepped) -> Timing:
        return Timing(loop_s + stepped() * step_s, 0.01)

    monkeypatch.setattr(timing, "time_iteration", iteration)
    assert timing.time_step(lambda steps: lambda: steps).seconds == pytest.approx(step_s)


@pytest.mark.parametrize("shape", [(8, 16, 4), (3, 5, 7)])
def test_products_are_those_that_are_meant(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    stepped = compute._there_and_back(3)
    left, there, back = (np.ones(of, np.float32) for of in ((m, k), (k, n), (n, k)))
    text = jax.jit(stepped).lower(np.int32(1), left, there, back).as_text()
    assert text.count(f"(tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>) -> tensor<{m}x{n}xf32>") == 3
    assert text.count(f"(tensor<{m}x{n}xf32>, tensor<{n}x{k}xf32>) -> tensor<{m}x{k}xf32>") == 3


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name.lower())
def test_no_collective_of_an_iteration_is_left_out(kind: CollectiveKind) -> None:
    """XLA removes what makes no difference, a reduction of what is reduced already for instance."""
    stepped = links.collective_steps(kind, 4, False, jax.devices(), steps=3)
    values = jax.device_put(
        np.zeros(8 * 8, np.float32),
        jax.sharding.NamedSharding(
            links._mesh(4, False, jax.devices()), jax.sharding.PartitionSpec(("rest", "group"))
        ),
    )
    text = jax.jit(stepped).lower(np.int32(1), values).compile().as_text() or ""
    name = kind.name.lower().replace("_", "-")
    assert len(re.findall(rf" {name}(?:-start)?\(", text)) == 3


def test_devices_of_several_hosts_are_refused() -> None:
    class Device:
        device_kind = "cpu"

        def __init__(self, host: int) -> None:
            self.process_index = host

    with pytest.raises(MeshError, match="are of several hosts: calibrate one host"):
        calibrate_module([Device(0), Device(1)])
