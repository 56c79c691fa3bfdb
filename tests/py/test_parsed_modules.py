"""A module that stays parsed between passes is the one that its text says."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import jax
import numpy as np
import pytest

from stablehlo_alpa.cluster import ClusterSpec, preset_for
from stablehlo_alpa.compiler import enumerate_strategies
from stablehlo_alpa.frontend import trace
from stablehlo_alpa.intra_op import SolveOptions
from stablehlo_alpa.planning import PlanOptions
from stablehlo_alpa.planning.planner import prepared_forms
from stablehlo_alpa.store import Store


def _program(model: str) -> Any:
    module = importlib.import_module(f"models.{model}")
    found: list[Any] = []

    def build() -> Any:
        found.append(module.make())
        return found[0].args

    args = jax.eval_shape(build)
    return trace(found[0].step, args, {})


@pytest.mark.parametrize("model", ["mlp", "gpt", "moe", "unet", "lstm"])
def test_strategies_are_those_of_the_text(model: str) -> None:
    """The graph of every form of a program, in memory and read from what was printed."""
    cluster = ClusterSpec(preset_for("cpu"), 1, 6)
    options = PlanOptions(cluster, ((6,),), solve=SolveOptions())
    mesh = cluster.logical_mesh((2, 3))
    for form in prepared_forms(_program(model), options):
        assert form.subject.parsed is not None
        kept = enumerate_strategies(form.subject.merged, mesh, model, parsed=form.subject.parsed)
        read = enumerate_strategies(form.subject.merged, mesh, model)
        for field in dataclasses.fields(read):
            np.testing.assert_equal(getattr(kept, field.name), getattr(read, field.name))


def test_what_the_store_has_stays_a_text(tmp_path: Any) -> None:
    """Of a program that was prepared before nothing is parsed before it is needed."""
    program = _program("mlp")
    store = Store(tmp_path, worth_s=0.0)
    options = PlanOptions(
        ClusterSpec(preset_for("cpu"), 1, 8), ((8,),), solve=SolveOptions(), store=store
    )
    first, second = (prepared_forms(program, options)[0].subject for _ in range(2))
    assert first.parsed is not None
    assert second.parsed is None
    assert first.merged == second.merged


@pytest.mark.slow
def test_strategies_of_a_module_that_was_rewritten_are_those_of_its_text() -> None:
    """What was known of a module for other meshes is forgotten once passes have run on it."""
    options = PlanOptions(ClusterSpec(preset_for("cpu"), 1, 8), ((8,),), solve=SolveOptions())
    module = prepared_forms(_program("gpt"), options)[0].subject.parsed
    assert module is not None
    meshes = [options.cluster.logical_mesh(shape) for shape in ((8,), (2, 4), (4, 2))]

    def check() -> str:
        text = module.text(locations=True)
        for mesh in meshes:
            kept, read = (enumerate_strategies(text, mesh, "gpt", parsed=p) for p in (module, None))
            for field in dataclasses.fields(read):
                np.testing.assert_equal(getattr(kept, field.name), getattr(read, field.name))
        return text

    before = check()
    module.run("alpa-outline-attention,canonicalize,cse,alpa-merge-operators")
    assert check() != before
