"""What the packages raise: one base, and names that need nothing that is not installed."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
from typing import Any

import alpa_runtime
import pytest

import stablehlo_alpa

_WITHOUT_RAY = """
import sys
sys.modules["ray"] = None
import stablehlo_alpa
assert issubclass(stablehlo_alpa.ClusterError, stablehlo_alpa.StablehloAlpaError)
try:
    stablehlo_alpa.RayCluster
except ImportError as error:
    assert "stablehlo-alpa[ray]" in str(error), error
else:
    raise AssertionError("a cluster was made without Ray")
"""


def test_errors_of_a_cluster_can_be_named_without_ray() -> None:
    path = ":".join(part for part in sys.path if part)
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_RAY], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("package", [alpa_runtime, stablehlo_alpa])
def test_all_errors_have_one_base(package: Any) -> None:
    names = [package.__name__]
    names += [m.name for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    found = 0
    for name in names:
        module = importlib.import_module(name)
        for cls in vars(module).values():
            is_own = isinstance(cls, type) and cls.__module__ == name
            # What crosses the border to C++ is turned into one of ours behind it.
            if is_own and issubclass(cls, Exception) and not name.endswith("._core"):
                assert issubclass(cls, stablehlo_alpa.StablehloAlpaError), cls
                found += 1
    assert found > 5
