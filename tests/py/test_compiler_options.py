"""Options that programs of devices that share a processor are compiled with."""

from __future__ import annotations

import jax
import pytest
from alpa_runtime.platforms import compiler_options

AT_ONCE = "xla_cpu_enable_concurrency_optimized_scheduler"


def test_collectives_of_devices_that_share_a_cpu_keep_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    devices = jax.devices()
    monkeypatch.delenv("XLA_FLAGS")
    assert compiler_options(devices) == {AT_ONCE: False}
    assert compiler_options(devices[:1]) is None
    monkeypatch.setenv("XLA_FLAGS", f"--{AT_ONCE}=true")
    assert compiler_options(devices) is None


def test_xla_knows_the_option() -> None:
    compiled = jax.jit(lambda x: x + 1, compiler_options={AT_ONCE: False})
    assert compiled(1.0) == 2.0
    with pytest.raises(jax.errors.JaxRuntimeError, match="No such compile option"):
        jax.jit(lambda x: x + 1, compiler_options={f"{AT_ONCE}_": False})(1.0)
