"""What plans look like: names, folded layers, tables whose numbers are the plan's, HTML."""

from __future__ import annotations

import io
import math
import re
import sys
import xml.etree.ElementTree as ET
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import pytest
from alpa_runtime import ValueSpec
from hypothesis import given
from hypothesis import strategies as st
from models import gpt
from typer.testing import CliRunner

pytest.importorskip("stablehlo_alpa._core")

import stablehlo_alpa as sa
from stablehlo_alpa import cli
from stablehlo_alpa.cluster import ClusterSpec, preset_for
from stablehlo_alpa.units import format_bytes, format_seconds, parse_bytes
from stablehlo_alpa.view import Column, Sheet, progress
from stablehlo_alpa.view.folding import fold, fold_remarks
from stablehlo_alpa.view.names import cut_left, module_of, path_of
from stablehlo_alpa.view.parameters import collapsed, parameter_rows

KINDS = ("parameters", "modules", "operators", "communication", "memory")


@pytest.fixture(scope="module")
def plan() -> Any:
    case = gpt.make(layers=3)
    return sa.parallelize(case.step, method=sa.ShardParallel(mesh_shape=(2, 4))).plan(*case.args)


@pytest.fixture(scope="module")
def pipeline() -> Any:
    case = gpt.make(layers=2, dropout=0.0)
    method = sa.PipeshardParallel(
        num_micro_batches=2,
        schedule="1f1b",
        layers=sa.AutoLayers(num_layers=2),
        stages=sa.UniformStages(2, (4,)),
    )
    return sa.parallelize(case.step, method=method).plan(*case.args)


# Names.


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("state.params['layer_3']['kernel']", "state/params/layer_3/kernel"),
        ("state[0][1].mu['w']", "state/0/1/mu/w"),
        ("params['mlp/~/linear_0']['b']", "params/mlp/~/linear_0/b"),
        ("model.layers[2].weight", "model/layers/2/weight"),
        ("state['layers'][0]['kernel'].value", "state/layers/0/kernel/value"),
        ('batch["it\'s"]', "batch/it's"),
        ("tree[<flat index 4>]", "tree/4"),
        ("x", "x"),
    ],
)
def test_key_paths_become_paths(name: str, path: str) -> None:
    assert path_of(name) == path


@pytest.mark.parametrize(
    ("name", "modules"),
    [
        ("jit(step)/transpose(jvp(GPT))/layer_0/up/dot_general#2", ("GPT", "layer_0", "up")),
        ("jit(step)/jvp(GPT)/Dropout_0/jit(_bernoulli)/jit(_uniform)/while", ("GPT", "Dropout_0")),
        ("jit(step)/jvp(GPT)/embed.attend/dot_general", ("GPT", "embed")),
        ("jit(step)/jvp(alpa_layer_1)/GPT/layer_1/mul", ("GPT", "layer_1")),
        ("jit(step)/jvp(alpa_layer_1)/dot_general", ("alpa_layer_1",)),
        ("jit(step)/vmap(eqx.nn.MLP)/eqx.nn.Linear/dot_general", ("MLP", "Linear")),
        ("jit(step)/jvp()/integer_pow", ()),
        ("jit(step)/GPT/layers/while/body/bqhd,bkhd->bhqk/dot_general", ("GPT", "layers")),
        ("add", ()),
    ],
)
def test_modules_are_read_off_operators(name: str, modules: tuple[str, ...]) -> None:
    assert module_of(name) == modules


def test_modules_that_are_computed_again_are_the_same_modules() -> None:
    class Block(nn.Module):
        @nn.compact
        def __call__(self, x: jax.Array) -> jax.Array:
            return x + nn.Dense(8, name="up")(nn.relu(x))

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x: jax.Array) -> jax.Array:
            for number in range(2):
                x = nn.remat(Block)(name=f"layer_{number}")(x)
            return x

    x, model = jnp.ones((4, 8)), Model()
    params = model.init(jax.random.key(0), x)
    text = jax.jit(jax.grad(lambda p: jnp.sum(model.apply(p, x)))).lower(params)
    names = re.findall(r'"(jit[^"]*rematted_computation[^"]*)"', text.as_text(debug_info=True))
    assert {module_of(name)[:2] for name in names} == {("Model", "layer_0"), ("Model", "layer_1")}


def test_long_names_keep_their_end() -> None:
    name = "jit(step)/transpose(jvp(GPT))/layer_11/attention/query/dot_general#2"
    for width in range(24, len(name)):
        short = cut_left(name, width)
        assert len(short) <= width
        assert short.startswith("…")
        assert name.endswith(short[1:])
        assert short.endswith("query/dot_general#2")
    assert cut_left(name, len(name)) == name


# Folding.


@pytest.mark.parametrize(
    ("pattern", "folded"),
    [
        ("params/layer_{}/mlp/up", "params/layer_{{0..11}}/mlp/up"),
        ("model/layers/{}/weight", "model/layers/{{0..11}}/weight"),
        ("params/transformer/h{}/attn/~/query/w", "params/transformer/h{{0..11}}/attn/~/query/w"),
        ("state/layers/{}/kernel/value", "state/layers/{{0..11}}/kernel/value"),
        ("params/{}/w", "params/{{0..11}}/w"),
    ],
)
def test_equal_layers_are_one_row(pattern: str, folded: str) -> None:
    names = [pattern.format(i) for i in range(12)]
    # As jax sorts them: 0, 1, 10, 11, 2 ...
    (found,) = fold(sorted(names))
    assert found.name == folded.format()
    assert found.members == tuple(range(12))


def test_layers_that_differ_stand_apart() -> None:
    names = [f"layer_{i}/up" for i in range(8)]
    keys = ["split" if i in (0, 5) else "whole" for i in range(8)]
    assert [one.name for one in fold(names, keys)] == ["layer_{0,5}/up", "layer_{1..4,6,7}/up"]


def test_remarks_on_equal_layers_are_one() -> None:
    whole = "stays whole on 8 devices: 3 MFLOP"
    remarks = [
        *(f"jit(f)/layer_{layer}/attention/sort: {whole}" for layer in (0, 1, 2, 4)),
        "2 micro-batches: cut along dimension 0: x",
        "jit(f)/layer_3/attention/sort: stays whole on 8 devices: 5 MFLOP",
        "2 micro-batches: cut along dimension 0: x",
    ]
    assert fold_remarks(remarks) == [
        f"jit(f)/layer_{{0..2,4}}/attention/sort: {whole}",
        "2 micro-batches: cut along dimension 0: x",
        "jit(f)/layer_3/attention/sort: stays whole on 8 devices: 5 MFLOP",
    ]


def test_remarks_on_layers_of_a_pipeline_are_one() -> None:
    whole = "stays whole on 8 devices: 3 MFLOP"
    remarks = [f"jit(f)/jvp(alpa_layer_{max(i - 1, 0)})/layer_{i}/sort: {whole}" for i in range(9)]
    assert fold_remarks(remarks) == [f"jit(f)/jvp(alpa_layer_*)/layer_{{0..8}}/sort: {whole}"]
    assert fold_remarks(remarks[:2]) == [f"jit(f)/jvp(alpa_layer_0)/layer_{{0,1}}/sort: {whole}"]
    assert fold_remarks(remarks[4:5]) == remarks[4:5]


def test_numbers_of_two_places_fold_where_they_are_a_product() -> None:
    names = [f"layer_{i}/expert_{j}/w" for i in range(3) for j in range(4 if i < 2 else 2)]
    assert [one.name for one in fold(names)] == [
        "layer_{0,1}/expert_{0..3}/w",
        "layer_2/expert_{0,1}/w",
    ]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from("ab"))))
def test_every_name_is_in_one_fold(items: list[tuple[int, int, str]]) -> None:
    names = [f"l{i}/e{j}" for i, j, _ in items]
    folds = fold(names, [key for *_, key in items])
    assert sorted(i for one in folds for i in one.members) == list(range(len(items)))
    for one in folds:
        assert len({items[i][2] for i in one.members}) == 1


def value(name: str, shape: tuple[int, ...], *axes: tuple[str, ...]) -> ValueSpec:
    return ValueSpec(shape, "float32", (*axes, *[()] * (len(shape) - len(axes))), name=name)


def test_moments_are_like_the_parameters() -> None:
    mesh = ClusterSpec(preset_for("cpu"), 1, 8).logical_mesh((8,))
    values = [
        value(f"state.{tree}['layer_{layer}']['{name}']", (8, size), ("x",))
        for tree in ("params", "opt[0].mu", "opt[0].nu")
        for layer in range(4)
        for name, size in (("up", 16), ("down", 4), ("norm", 1))
    ]
    rows = parameter_rows(values, mesh)
    short = collapsed(rows)
    assert [(row.path, row.like, row.count) for row in short] == [
        ("state/params/layer_{0..3}/up", "", 4),
        ("state/params/layer_{0..3}/down", "", 4),
        ("state/params/layer_{0..3}/norm", "", 4),
        ("state/opt/0/mu", "state/params", 12),
        ("state/opt/0/nu", "state/params", 12),
    ]
    assert sum(row.bytes for row in short) == sum(row.bytes for row in rows)


def test_moments_that_are_split_are_shown() -> None:
    mesh = ClusterSpec(preset_for("cpu"), 1, 8).logical_mesh((8,))
    names = ("up", "down", "norm")
    values = [value(f"params['{name}']", (8, 8)) for name in names]
    values += [value(f"mu['{name}']", (8, 8), *[("x",)] * (name == "up")) for name in names]
    assert not any(row.like for row in collapsed(parameter_rows(values, mesh)))


# Numbers of tables.


@pytest.mark.slow
def test_inputs_take_what_their_shardings_say(plan: Any) -> None:
    leaves = jax.tree.leaves(plan.input_shardings)
    sizes = dict(plan.mesh.axes)
    expected = 0.0
    for traced, spec in zip(plan.program.inputs, leaves, strict=True):
        axes = [a for entry in spec for a in (entry if isinstance(entry, tuple) else (entry,)) if a]
        expected += traced.num_bytes / math.prod(sizes[axis] for axis in axes)
    rows = plan.table("parameters").records
    assert sum(row.bytes for row in rows) == expected
    assert sum(row.count for row in rows) == len(plan.program.inputs)
    assert any("layer_{0..2}" in row.path and row.count == 3 for row in rows)


def test_modules_add_up_to_the_step(plan: Any) -> None:
    rows = plan.table("modules").records
    solution = plan.stages[0].solution
    assert sum(row.total_s for row in rows) == pytest.approx(plan.step_time_s, rel=1e-9)
    moved = solution.communication_s + solution.reshard_s
    assert sum(row.communication_s for row in rows) == pytest.approx(moved, rel=1e-6)
    assert sum(row.memory_bytes for row in rows) == pytest.approx(solution.memory_peak_bytes)
    assert sum(row.count for row in rows) == plan.stages[0].priced.graph.num_nodes
    assert any(row.name.startswith("GPT/layer_{0..2}") for row in rows)


def test_operators_memory_and_communication_add_up(plan: Any) -> None:
    rows = plan.table("operators").records
    assert sum(row.time_s for row in rows) == pytest.approx(plan.step_time_s, rel=1e-9)
    assert len(plan.table("operators", 5).records) == 5
    slowest = max(row.time_s for row in rows)
    assert slowest in [row.time_s for row in plan.table("operators", 1).records]
    live = plan.table("memory").records
    assert sum(row.bytes for row in live) == pytest.approx(plan.peak_bytes)
    assert list(plan.table("communication").records) == plan.communication()


def test_stages_of_a_pipeline_add_up(pipeline: Any) -> None:
    rows = pipeline.table("modules").records
    for number, stage in enumerate(pipeline.stages):
        own = [row for row in rows if row.part == f"stage {number}"]
        assert sum(row.total_s for row in own) == pytest.approx(stage.solution.objective_s)
    text = str(pipeline)
    for word in ("bubble", "stage 0", "stage 1", "GPT/layer_0", "per micro-batch", "predicted"):
        assert word in text


# Text and HTML.


@pytest.mark.parametrize("which", ["plan", "pipeline"])
def test_plans_are_shown_in_every_form(which: str, request: Any) -> None:
    shown = request.getfixturevalue(which)
    text = str(shown)
    assert max(len(line) for line in text.splitlines()) <= 120
    assert text.index("parameters") < text.index("modules") < text.index("communication")
    assert len(repr(shown)) < 160
    assert "\n" not in repr(shown)
    assert len(shown.summary().splitlines()) < 8
    html = shown._repr_html_()
    tables = list(ET.fromstring(html).iter("table"))
    assert len(tables) >= 3
    for kind in KINDS:
        sheet = shown.table(kind)
        # A table in a session is looked at, not read as a string.
        assert repr(sheet) == str(sheet)
        for row in ET.fromstring(sheet._repr_html_()).iter("tr"):
            assert len(row) == len(sheet.columns)
    with pytest.raises(ValueError, match="table is 'params', must be one of parameters, "):
        shown.table("params")


def test_cells_are_escaped() -> None:
    sheet = Sheet("a < b", (Column("x & y"),), (("<script>",),), (), "1 > 0")
    found = ET.fromstring(sheet.html())
    assert [cell.text for cell in found.iter("td")] == ["<script>"]


def test_remarks_are_shown() -> None:
    step = sa.parallelize(lambda w, x: jnp.tanh(x @ w), method=sa.DataParallel(), batch_argnums=1)
    plan = step.plan(jnp.ones((4, 4)), jnp.ones((20, 4)))
    assert plan.remarks
    # Long ones are set in several lines.
    text = " ".join(str(plan).split())
    assert all(f"remark: {remark}" in text for remark in plan.remarks)
    assert "1 remark, in .remarks" in plan.summary()
    assert "does not divide by 8" in plan._repr_html_()


def test_the_command_line_has_a_version() -> None:
    result = CliRunner().invoke(cli.app, ["--version"])
    assert result.exit_code == 0
    assert result.output.startswith("stablehlo-alpa ")


def test_progress_is_logged_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress(said.append) as say:
        say("stage 1 of 2")
    assert said == ["stage 1 of 2"]


# Units.


@given(st.floats(1e-3, 1e15))
def test_bytes_read_back(size: float) -> None:
    text = format_bytes(size)
    assert "e" not in text
    assert len(text.split()[0]) <= 5
    if size >= 1:
        assert parse_bytes(text) == pytest.approx(size, rel=6e-3, abs=0.05)


@given(st.floats(1e-11, 900))
def test_seconds_keep_three_digits(time_s: float) -> None:
    number, unit = format_seconds(time_s).split()
    factor = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12}[unit]
    assert float(number) * factor == pytest.approx(time_s, rel=6e-3)
    assert len(number) <= 4
    assert format_seconds(-time_s) == f"-{number} {unit}"


def test_units_at_their_borders() -> None:
    assert [format_bytes(n) for n in (0, 1023, 1024, 2**20 - 1, 1.5 * 2**30)] == [
        "0 B",
        "1023 B",
        "1 KiB",
        "1 MiB",
        "1.5 GiB",
    ]
    assert [format_seconds(s) for s in (0, 9.9999e-4, 1.5e-6, 12.34, 1e5)] == [
        "0 s",
        "1 ms",
        "1.5 us",
        "12.3 s",
        "100000 s",
    ]
    with pytest.raises(ValueError, match="memory size 'much'"):
        parse_bytes("much")


def test_errors_name_sizes_in_units() -> None:
    step = sa.parallelize(lambda w: jnp.tanh(w @ w), method=sa.ShardParallel(memory_budget="3KiB"))
    with pytest.raises(sa.InfeasibleError, match=r"budget of 3 KiB per device: .* is \d+ KiB, "):
        step.plan(jnp.ones((256, 256)))
