"""What is computed whole on every device leaves its neighbours split, and is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import test_random_plans
from programs import PROGRAMS, Program, real

import stablehlo_alpa
from stablehlo_alpa import Plan, ShardParallel
from stablehlo_alpa.compiler.measures import Work

NUM_DEVICES = 8
KEY = np.array([1, 2, 3, 4], np.uint32)


def masked_product(x: Any, w: Any, key: Any) -> Any:
    h = x @ w
    keep = jax.random.bernoulli(jax.random.wrap_key_data(key, impl="rbg"), 0.8, h.shape)
    return jnp.where(keep, h / 0.8, 0)


def product_with_orthogonal(x: Any, w: Any, a: Any) -> Any:
    return (x @ w) * jnp.linalg.qr(a)[0]


def gradient_of(fun: Callable[..., Any]) -> Callable[..., Any]:
    def gradients(x: Any, w: Any, other: Any) -> Any:
        return jax.grad(lambda x, w: (fun(x, w, other) ** 2).sum(), (0, 1))(x, w)

    gradients.__name__ = f"gradient_of_{fun.__name__}"
    return gradients


def square(size: int) -> Any:
    return jax.ShapeDtypeStruct((size, size), np.float32)


FUNCTIONS = {
    masked_product: jax.ShapeDtypeStruct((4,), np.uint32),
    product_with_orthogonal: square(2048),
}


def plan_of(fun: Any, *args: Any) -> Plan:
    method = ShardParallel(mesh_shape=(NUM_DEVICES,))
    return stablehlo_alpa.parallelize(fun, method=method, cluster="dgx-a100:1").plan(*args)


def flops_of_products(plan: Plan) -> float:
    """Of one device."""
    work = Work.of(plan.stages[0].text())
    is_product = np.array(work.ops) == "stablehlo.dot_general"
    return float(work.flops[is_product].sum())


@pytest.mark.parametrize("fun", FUNCTIONS)
@pytest.mark.parametrize("num_products", [1, 3])
def test_products_beside_whole_values_are_split(fun: Any, num_products: int) -> None:
    step = fun if num_products == 1 else gradient_of(fun)
    plan = plan_of(step, square(2048), square(2048), FUNCTIONS[fun])
    assert flops_of_products(plan) == num_products * 2 * 2048**3 / NUM_DEVICES
    # Products are split by rows: the gradient of w is all that has to be summed.
    moved = sum(one.bytes for one in plan.communication())
    assert moved <= (0 if num_products == 1 else 4 * 2048**2)


def test_a_remark_says_what_a_whole_operator_costs() -> None:
    args = (square(2048), square(2048))
    (said,) = plan_of(masked_product, *args, FUNCTIONS[masked_product]).remarks
    assert "rng_bit_generator" in said
    assert f"{4 * 2048**2 + 2 * 16} bytes" in said
    said, _ = plan_of(product_with_orthogonal, *args, FUNCTIONS[product_with_orthogonal]).remarks
    assert "@lapack_sgeqrf_ffi" in said
    assert f"{4 * (2 * 2048**2 + 2048)} bytes" in said


PLANNED = {
    "masked": Program(masked_product, (real(16, 24), real(24, 32), KEY)),
    "orthogonal": Program(product_with_orthogonal, (real(16, 24), real(24, 16), real(16, 16))),
}
PLANNED |= {
    f"gradient_of_{name}": Program(gradient_of(one.fun), one.args) for name, one in PLANNED.items()
}


@pytest.mark.parametrize("mesh", test_random_plans.MESHES)
@pytest.mark.parametrize("name", PLANNED)
def test_random_plans_equal_jit(name: str, mesh: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROGRAMS, name, PLANNED[name])
    test_random_plans.check(name, test_random_plans.MESHES[mesh], range(2))
