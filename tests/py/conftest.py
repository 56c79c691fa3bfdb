"""Eight virtual CPU devices for every test, set before jax is imported."""

import os
import sys
from pathlib import Path

NUM_DEVICES = 8

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + f" --xla_force_host_platform_device_count={NUM_DEVICES}"
)
os.environ["PJRT_NPROC"] = str(4 * NUM_DEVICES)
# Ray runs its workers at the lowest priorities: beside other tests they would hardly get a core.
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 (as Ray spells it)

_ROOT = Path(__file__).resolve().parents[2]
for _folder in (_ROOT, _ROOT / "runtime"):
    # A checkout that was not installed can be tested too; an installed package comes first.
    if str(_folder) not in sys.path:
        sys.path.append(str(_folder))
