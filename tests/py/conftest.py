"""Eight virtual CPU devices for every test, set before jax is imported."""

import gc
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from cases import Cases, chosen
from groups import WAITING, group_of, table
from hypothesis import settings

NUM_DEVICES = 8

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + f" --xla_force_host_platform_device_count={NUM_DEVICES}"
)
os.environ["PJRT_NPROC"] = str(4 * NUM_DEVICES)
# Ray runs its workers at the lowest priorities: beside other tests they would hardly get a core.
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 (as Ray spells it)

# Processes of a run share what XLA has compiled, and runs do that are given a folder: the same
# oracle is that of several tests, and actors run what ran here. A program that differs, other flags
# and another XLA have other keys.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    _compiled = tempfile.TemporaryDirectory(prefix="compiled_")
    os.environ["JAX_COMPILATION_CACHE_DIR"] = _compiled.name
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
# What a plan is tested for is computed, and nothing is left in the home of who runs the tests.
os.environ["STABLEHLO_ALPA_STORE"] = "off"

# Traces and modules are many objects that live on: by default they are walked again every few
# hundred, which takes a twentieth of the time.
gc.set_threshold(50_000, 20, 20)

# Cores are shared with other tests: how long an example takes says nothing.
settings.register_profile("shared_cores", deadline=None)
settings.load_profile("shared_cores")

_ROOT = Path(__file__).resolve().parents[2]
for _folder in (_ROOT, _ROOT / "runtime"):
    # A checkout that was not installed can be tested too; an installed package comes first.
    if str(_folder) not in sys.path:
        sys.path.append(str(_folder))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cases",
        type=Cases,
        choices=list(Cases),
        default=Cases.ALL,
        help="which of a test with parameters run; see tests/py/cases.py",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps the cases that are asked for, those first that wait.

    A process of a run takes one piece of the list: so it is one of them that waits, beside others
    that compute, and none waits alone at the end.
    """
    seldom, whole = (
        {item.nodeid for item in items if item.get_closest_marker(mark)}
        for mark in ("matrix", "whole")
    )
    kept = chosen([item.nodeid for item in items], config.getoption("cases"), seldom, whole)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    items[:] = [item for item in items if item.nodeid in kept]
    items.sort(key=lambda item: group_of(item.nodeid) not in WAITING)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints what was checked, in groups."""
    outcomes = {
        outcome: [(one.nodeid, one.duration) for one in terminalreporter.stats.get(outcome, ())]
        for outcome in ("passed", "failed", "skipped")
    }
    outcomes["failed"] += [(one.nodeid, 0.0) for one in terminalreporter.stats.get("error", ())]
    if sum(map(len, outcomes.values())) > 1:
        terminalreporter.section("what was checked")
        for line in table(outcomes):
            terminalreporter.write_line(line)
