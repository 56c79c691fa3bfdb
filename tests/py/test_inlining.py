"""What inlining does grows with the depth of a model, and no faster.

Operators are counted, not seconds: `benchmarks/planning.py` has the times, up to 192 layers.
"""

from __future__ import annotations

import re
from typing import Any

import jax
import pytest
from models import gpt

from stablehlo_alpa import _core
from stablehlo_alpa.frontend import trace


def num_visits(text: str) -> int:
    """How often an operator of a module was read, moved or copied."""
    pipeline = "builtin.module(alpa-inline-calls{report=true})"
    (remark,) = _core.run_pipeline(text, pipeline)[1]
    found = re.search(r"inlining read, moved or copied (\d+) operators", remark)
    assert found
    return int(found[1])


def gpt_text(layers: int) -> str:
    """The traced train step of a GPT."""
    found: list[Any] = []

    def build() -> Any:
        found.append(gpt.make(layers=layers, hidden=16, heads=2, vocabulary=32, length=8))
        return found[0].args

    args = jax.eval_shape(build)
    return trace(found[0].step, args, {}).text


@pytest.mark.slow
def test_every_layer_of_a_gpt_costs_the_same() -> None:
    at_2, at_4, at_8 = (num_visits(gpt_text(layers)) for layers in (2, 4, 8))
    assert at_8 - at_4 == 2 * (at_4 - at_2)


def called(calls: int) -> str:
    """A function of three operators that is called some times."""
    chain = "".join(
        f"  %{i + 1} = call @f(%{i}) : (tensor<8xf32>) -> tensor<8xf32>\n" for i in range(calls)
    )
    return (
        "func.func public @main(%0: tensor<8xf32>) -> tensor<8xf32> {\n"
        f"{chain}  return %{calls} : tensor<8xf32>\n"
        "}\n"
        "func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {\n"
        "  %0 = stablehlo.sine %x : tensor<8xf32>\n"
        "  %1 = stablehlo.cosine %0 : tensor<8xf32>\n"
        "  %2 = stablehlo.tanh %1 : tensor<8xf32>\n"
        "  return %2 : tensor<8xf32>\n"
        "}\n"
    )


def test_a_call_costs_its_body_however_many_there_are() -> None:
    # The call and the three operators that come in its place; two returns and the body are read.
    for calls in (1, 10, 1000):
        assert num_visits(called(calls)) == 4 * calls + 5
