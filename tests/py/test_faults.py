"""Faults of a cluster are named in time, and leave nothing half done."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import injected_faults as faults
import pytest

import stablehlo_alpa

pytest.importorskip("ray")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def local_ray() -> Iterator[None]:
    yield
    stablehlo_alpa.shutdown()


# How long it takes is what benchmarks/faults.py measures. Here: not the deadline of a step, which
# is 300 s where nothing else is said, and an end at all. Seconds.
SOON = 60.0


def check(outcome: faults.Outcome, message: str) -> None:
    assert message in str(outcome.error)
    assert outcome.known_s < SOON
    faults.wait_until_gone(outcome.processes)


def test_killed_between_meshes() -> None:
    check(faults.killed_between_meshes(), "mesh 1 host 0 of step died, while in '")


def test_killed_in_a_collective() -> None:
    with faults.no_unhandled_errors():
        check(faults.killed_in_a_collective(), "mesh 0 host 1 of step died, while in '")


def test_stopped() -> None:
    check(faults.stopped(), "mesh 0 host 0 of step is silent after")


def test_killed_in_a_checkpoint(tmp_path: Path) -> None:
    check(faults.killed_in_a_checkpoint(tmp_path), "mesh 1 host 0 of step died")
    # The one before is there, nothing of this one.
    assert [entry.name for entry in tmp_path.iterdir()] == ["good"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system takes root")
def test_disk_full(tmp_path: Path) -> None:
    check(faults.disk_full(tmp_path), "failed: ")


@pytest.mark.matrix
def test_cut_link() -> None:
    if not faults.can_make_hosts():
        pytest.skip("network namespaces take root, and iproute2")
    check(faults.cut_link(), "mesh 1 host 0 of step ")


def test_driver_killed() -> None:
    outcome = faults.driver_killed()
    assert len(outcome.processes) == 2
    assert outcome.known_s < SOON


# Ends of a driver that are tried with every run of the tests, the others with `make test-matrix`.
OFTEN = ("kill -9", "os._exit")


@pytest.mark.parametrize(
    "end",
    [end if end in OFTEN else pytest.param(end, marks=pytest.mark.matrix) for end in faults.ENDS],
)
def test_nothing_is_left(end: str, tmp_path: Path) -> None:
    processes = faults.ended(faults.ENDS[end], tmp_path)
    assert len(processes) == 2
    faults.wait_until_gone(processes)
    assert list(tmp_path.iterdir()) == []
