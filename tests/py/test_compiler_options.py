"""Options that programs of devices that share a processor are compiled with."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from alpa_runtime.platforms import compiler_options
from jax._src import config

import stablehlo_alpa as sa

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


@pytest.mark.parametrize(("products", "is_written"), [(2, False), (0, True)])
def test_programs_that_lose_their_order_when_read_back_are_not_kept(
    products: int, is_written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(
        "jax._src.compilation_cache.put_executable_and_time",
        lambda key, name, *_: written.append(name),
    )
    monkeypatch.setattr(
        "jax._src.compilation_cache.get_executable_and_time", lambda *_: (None, None)
    )

    def order(x: jax.Array) -> list[jax.Array]:
        return [jnp.sum(x * (number + 1.5), 0) for number in range(products)] or [x * 2.5]

    step = sa.parallelize(order, method=sa.DataParallel())
    with config.persistent_cache_min_compile_time_secs(0.0):
        step.compile(jax.ShapeDtypeStruct((16, 8), "float32"))
    assert any("order" in name for name in written) == is_written
