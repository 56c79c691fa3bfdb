"""What the page of a plan shows: its numbers are the plan's, and survive a plan file."""

from __future__ import annotations

import builtins
import dataclasses
import itertools
import json
import math
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import alpa_runtime
import jax
import jax.numpy as jnp
import pytest
from alpa_runtime import Event, ProgramError, read_member, read_trace, write_trace
from hypothesis import given
from hypothesis import strategies as st
from models import gpt
from often import seldom
from typer.testing import CliRunner

pytest.importorskip("stablehlo_alpa._core")

import stablehlo_alpa as sa
from stablehlo_alpa import cli
from stablehlo_alpa.planning import Baselines
from stablehlo_alpa.view.folding import fold, unfold
from stablehlo_alpa.view.page import (
    BATCH,
    MEMBER,
    MEMORY_KINDS,
    OPTIMISER,
    PARAMETERS,
    OperatorContent,
    PageContent,
)
from stablehlo_alpa.view.page.difference import (
    operator_difference,
    quantities,
    tensor_difference,
)
from stablehlo_alpa.view.page.document import page_html
from stablehlo_alpa.view.page.palette import PALETTE, text_colour
from stablehlo_alpa.view.page.runs import blocks, held_samples
from stablehlo_alpa.view.page.tables import operator_table, tensor_table


def planned(method: Any, **options: Any) -> Any:
    case = gpt.make(layers=2, dropout=0.0, **options)
    return sa.parallelize(case.step, method=method, donate_argnums=0).plan(*case.args)


@pytest.fixture(scope="module")
def single() -> Any:
    return planned(sa.ShardParallel(mesh_shape=(2, 4)))


@pytest.fixture(scope="module")
def pipeline() -> Any:
    return planned(
        sa.PipeshardParallel(
            num_micro_batches=2,
            schedule="1f1b",
            layers=sa.AutoLayers(num_layers=2),
            stages=sa.UniformStages(2, (4,)),
        )
    )


@pytest.fixture(params=["single", "pipeline"])
def plan(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


# Content.


def test_content_is_the_same_after_json(plan: Any) -> None:
    content = plan.content()
    assert PageContent.parse(content.dump(), "it") == content


def test_numbers_are_those_of_the_plan(plan: Any) -> None:
    page = plan.content()
    assert page.step_s == plan.step_time_s
    assert page.peak_bytes == plan.peak_bytes
    assert page.method == plan.method
    assert page.num_micro_batches == plan.runtime.num_micro_batches
    assert [stage.devices for stage in page.stages] == [stage.devices for stage in plan.stages]
    assert sum(one.time_s for one in page.operators) == pytest.approx(
        sum(stage.solution.objective_s for stage in plan.stages)
    )
    assert sum(one.count for one in page.operators) == sum(
        stage.priced.graph.num_nodes for stage in plan.stages
    )
    total = sum(row.bytes for row in plan.table("parameters").records)
    assert sum(one.bytes for one in page.tensors) == total
    sent = sum(one.bytes for one in page.communication if one.kind != "send")
    assert sent == pytest.approx(sum(one.bytes for one in plan.communication()))


def test_memory_by_kind_adds_up_to_the_peak_of_every_mesh(plan: Any) -> None:
    page = plan.content()
    peaks = [max(sum(one.bytes) for one in own) for own in page.held]
    assert peaks == pytest.approx(list(plan.simulation.peak_bytes))
    for own in page.held:
        assert all(len(one.bytes) == len(MEMORY_KINDS) for one in own)
        assert all(size >= 0 for one in own for size in one.bytes)
        assert all(first.end_s <= then.start_s for first, then in itertools.pairwise(own))


def test_parameters_and_optimiser_state_are_told_apart(plan: Any) -> None:
    kinds: dict[str, set[str]] = {}
    for one in plan.content().tensors:
        for path in unfold(one.path):
            tree = "/".join(path.split("/")[: 2 if path.startswith("state") else 1])
            kinds.setdefault(tree, set()).add(one.kind)
    expected = {"state/params": PARAMETERS, "state/opt_state": OPTIMISER, "batch": BATCH}
    assert {tree: kinds[tree] for tree in expected} == {
        tree: {kind} for tree, kind in expected.items()
    }


def test_what_lies_there_at_the_start_is_what_is_held(plan: Any) -> None:
    """Of the first mesh, before anything is made of parameters."""
    page = plan.content()
    held = dict(zip(MEMORY_KINDS, page.held[0][0].bytes, strict=True))
    stages = page.stages_of(0)
    lying = sum(one.bytes for one in page.tensors if one.stage in stages and one.kind == PARAMETERS)
    # Parameters that another mesh keeps come later.
    assert 0 < held[PARAMETERS] <= lying


def test_runs_are_those_of_the_simulation(pipeline: Any) -> None:
    page = pipeline.content()
    runs = Counter((run.stage, run.phase) for run in page.runs)
    for number, stage in enumerate(pipeline.stages):
        for phase in stage.phases:
            assert runs[number, phase.name] == (1 if phase.runs_once else 2)
    forward = [run.micro_batch for run in page.runs if run.phase == "forward" and run.stage == 0]
    assert forward == [0, 1]


def test_sends_between_stages_are_counted(pipeline: Any) -> None:
    sends = [one for one in pipeline.content().communication if one.kind == "send"]
    expected = 0
    for mesh, instructions in enumerate(pipeline.runtime.instructions):
        for one in instructions:
            if isinstance(one, alpa_runtime.plan.Send):
                pieces = pipeline.runtime.reshardings[one.resharding].pieces
                width = jax_width(pipeline.runtime.value(mesh, one.buffer).dtype)
                expected += width * sum(piece.size for piece in pieces)
    assert sum(one.bytes * 4 for one in sends) == expected > 0


def jax_width(dtype: str) -> int:
    return {"float32": 4, "bfloat16": 2, "int32": 4, "uint32": 4, "bool": 1}[dtype]


def test_alternatives_name_this_plan_and_the_baselines(single: Any) -> None:
    baselines = single.baselines([sa.DataParallel(), sa.MegatronParallel(tensor=3)])
    assert isinstance(baselines, Baselines)
    rows = single.content(baselines).alternatives
    assert [(row.is_chosen, row.is_baseline) for row in rows] == [
        (True, False),
        (False, True),
        (False, True),
    ]
    assert rows[0].step_s == single.step_time_s
    assert rows[1].step_s is not None
    assert rows[2].step_s is None
    assert rows[2].reason.startswith("refused: ")


def forward(w: Any, x: Any) -> Any:
    for _ in range(4):
        x = jnp.tanh(x @ w)
    return x


def updated(w: Any, x: Any) -> Any:
    return w - sa.grad(lambda w: jnp.mean(forward(w, x) ** 2))(w)


def keyed(key: Any, w: Any, x: Any) -> Any:
    return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x, 0.0) @ w, key


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "function", "args"),
    [
        (sa.ShardParallel(num_micro_batches=2), "train", ()),
        (sa.DataParallel(), "train", ()),
        (
            sa.PipeshardParallel(
                num_micro_batches=4,
                schedule="interleaved",
                layers=sa.AutoLayers(num_layers=4),
                stages=sa.UniformStages(4, (4,)),
                num_chunks=2,
            ),
            "train",
            (),
        ),
        seldom(
            sa.PipeshardParallel(
                num_micro_batches=2,
                schedule="zero_bubble",
                layers=sa.AutoLayers(num_layers=2),
                stages=sa.UniformStages(2, (4,)),
            ),
            "train",
            (),
        ),
        (
            sa.PipeshardParallel(
                num_micro_batches=2,
                layers=sa.AutoLayers(num_layers=2),
                stages=sa.UniformStages(2, (4,)),
            ),
            "forward",
            ((64, 64), (16, 64)),
        ),
        # A batch that does not divide by the devices is padded.
        (sa.DataParallel(), "forward", ((4, 4), (20, 4))),
        (sa.ShardParallel(), "keyed", ((8, 8), (8, 8))),
        # Nothing can be split, so that no operator has strategies.
        (sa.ShardParallel(pad=False, num_micro_batches=2), "updated", ((4, 4), (8, 4))),
        (
            sa.PipeshardParallel(layers=sa.AutoLayers(num_layers=1), stages=sa.UniformStages(1)),
            "nothing",
            ((8, 8),),
        ),
    ],
    ids=[
        "accumulated",
        "data",
        "interleaved",
        "zero_bubble",
        "inference",
        "padded",
        "keys",
        "whole",
        "nothing",
    ],
)
def test_plans_of_every_kind_have_a_page(
    method: Any, function: str, args: tuple[tuple[int, ...], ...]
) -> None:
    arrays = [jnp.ones(shape) for shape in args]
    if function == "train":
        case = gpt.make(layers=4, dropout=0.0)
        plan = sa.parallelize(case.step, method=method, donate_argnums=0).plan(*case.args)
    elif function == "keyed":
        plan = sa.parallelize(keyed, method=method).plan(jax.random.key(0), *arrays)
    elif function == "nothing":
        plan = sa.parallelize(lambda x: None, method=method).plan(*arrays)
        assert "main" in plan.module_text()
    else:
        fun = updated if function == "updated" else forward
        plan = sa.parallelize(fun, method=method, batch_argnums=1).plan(*arrays)
    assert str(plan)
    page = plan.content()
    assert PageContent.parse(page.dump(), "it") == page
    peaks = [max((sum(one.bytes) for one in own), default=0) for own in page.held]
    assert peaks == pytest.approx(list(plan.simulation.peak_bytes))
    assert len(page_html([page])) < 3e6


# Files.


def test_a_plan_file_keeps_what_is_shown(pipeline: Any, tmp_path: Path) -> None:
    path = tmp_path / "gpt.plan"
    pipeline.save(path)
    assert alpa_runtime.load(path) == pipeline.runtime
    text = read_member(path, MEMBER)
    assert text is not None
    assert PageContent.parse(text, str(path)) == pipeline.content()
    assert read_member(path, "nothing") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "what x.plan shows is damaged"),
        ('{"version": 0}', r"is of version 0, this is version 2: plan it again"),
        ('{"version": 2, "page": {"model": 3}}', "page has .'model'., a PageContent has"),
    ],
)
def test_content_that_is_damaged_is_refused(text: str, said: str) -> None:
    with pytest.raises(ProgramError, match=said):
        PageContent.parse(text, "x.plan")


def test_traces_are_read_back(tmp_path: Path) -> None:
    events = (Event(0, "stage 0 forward 0", 0.0, 0.5), Event(1, "stage 1 forward 0", 0.5, 1.25))
    write_trace(events, tmp_path / "trace.json")
    assert read_trace(tmp_path / "trace.json") == events
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(ProgramError, match=r"other\.json is no trace"):
        read_trace(tmp_path / "other.json")


@pytest.mark.slow
def test_the_command_writes_a_page_of_one_plan_or_two(
    single: Any, pipeline: Any, tmp_path: Path
) -> None:
    one, two, page = tmp_path / "a.plan", tmp_path / "b.plan", tmp_path / "page.html"
    single.save(one)
    pipeline.save(two)
    write_trace(pipeline.timeline(), tmp_path / "trace.json")
    run = CliRunner().invoke
    result = run(cli.app, ["view", str(one), "--quiet"])
    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / "a.html").stat().st_size < 3e6
    arguments = ["view", str(two), str(one), "-o", str(page)]
    result = run(cli.app, [*arguments, "--trace", str(tmp_path / "trace.json")])
    assert result.exit_code == 0, result.exception
    text = page.read_text()
    assert 'id="difference"' in text
    assert "Time line, measured" in text
    bare = tmp_path / "bare.plan"
    alpa_runtime.save(pipeline.runtime, bare)
    for file, said in ((bare, "nothing to show"), (tmp_path / "x.mlir", "is a module, no plan")):
        result = run(cli.app, ["view", str(file)])
        assert said in str(result.exception)
    result = run(cli.app, ["view", str(one), str(one), str(one)])
    assert "one plan or two, got 3" in str(result.exception)


# Differences.


def test_a_plan_does_not_differ_from_itself(pipeline: Any) -> None:
    page = pipeline.content()
    assert tensor_difference(page, page).rows == ()
    assert operator_difference(page, page).rows == ()
    assert all(one.values[0] == one.values[1] for one in quantities(page, page))


def test_differences_are_those_of_the_plans(single: Any) -> None:
    other = planned(sa.ShardParallel(mesh_shape=(8,)))
    expected = single.diff(other)
    changed = {change.name for change in expected.changes if change.first != change.second}
    table = operator_difference(single.content(), other.content())
    assert {name for row in table.rows for name in unfold(row[0])} == changed
    delta = sum(change.delta_s for change in expected.changes if change.name in changed)
    assert sum(row[-1] for row in table.rows) == pytest.approx(delta)
    rows = {one.name: one for one in quantities(single.content(), other.content())}
    assert rows["step"].ratio == pytest.approx(other.step_time_s / single.step_time_s)
    assert rows["meshes"].values == ("2x4", "8")


# What is made small.


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), max_size=30))
def test_folds_unfold(items: list[tuple[int, int]]) -> None:
    names = [f"l{i}/e{j}/w" for i, j in items]
    for one in fold(names):
        assert sorted(unfold(one.name)) == sorted({names[i] for i in one.members})


def test_names_with_other_braces_stay() -> None:
    assert unfold("a{b}/{0,2..3}") == ["a{b}/0", "a{b}/2", "a{b}/3"]
    assert unfold("a_{08..10}") == ["a_08", "a_09", "a_10"]


@pytest.mark.parametrize("most", [3, 10, 1000])
def test_blocks_keep_the_seconds_of_runs(pipeline: Any, most: int) -> None:
    runs = pipeline.content().runs
    made = blocks(runs, most)
    assert len(made) <= max(most, 2 * 2)
    for mesh in (0, 1):
        own = [run for run in runs if run.mesh == mesh]
        busy = sum(run.end_s - run.start_s for run in own)
        assert sum(one.busy_s for one in made if one.mesh == mesh) == pytest.approx(busy)
        assert max(one.end_s for one in made if one.mesh == mesh) == max(run.end_s for run in own)


def test_samples_keep_the_peak(pipeline: Any) -> None:
    for own in pipeline.content().held:
        few = held_samples(own, 3)
        assert len(few) <= 3
        assert max(sum(one.bytes) for one in few) == max(sum(one.bytes) for one in own)


def many_operators(page: PageContent, count: int) -> PageContent:
    """A page with so many operators, no two of which are alike."""
    made = tuple(
        OperatorContent(0, f"m{chr(97 + i % 26)}/{i * 7919}", f"op{i % 5}", "RR", "", 1, 1e-6, 8.0)
        for i in range(count)
    )
    return dataclasses.replace(page, operators=made)


def test_ten_thousand_operators_make_a_small_page(single: Any) -> None:
    page = many_operators(single.content(), 10_000)
    table = operator_table(page)
    assert len(table.rows) <= 4005
    assert sum(row[5] for row in table.rows) == 10_000
    assert sum(row[6] for row in table.rows) == pytest.approx(1e-2)
    assert len(page_html([page])) < 2e6


# Pages.


def test_a_page_is_one_file_that_refers_to_nothing(plan: Any, tmp_path: Path) -> None:
    text = plan.view(tmp_path / "page.html").read_text()
    markup = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    targets = re.findall(r'(?:src|href)="([^"]*)"', markup)
    assert all(target.startswith(("#", "data:,")) for target in targets)
    anchors = set(re.findall(r'id="([^"]*)"', markup))
    assert {target[1:] for target in targets if target.startswith("#")} <= anchors
    assert len(text) < 3e6


def test_a_page_is_the_same_text_twice(single: Any, tmp_path: Path) -> None:
    """But for the names that bokeh counts up."""
    heads = [
        single.view(tmp_path / f"{i}.html").read_text().split('id="data"')[0] for i in range(2)
    ]
    assert heads[0] == heads[1]


def test_names_are_escaped(single: Any) -> None:
    page = dataclasses.replace(single.content(), model="<script>x", remarks=("a < b & c",))
    text = page_html([page])
    assert "<script>x" not in text
    assert "a &lt; b &amp; c" in text


def test_pages_of_no_plan_or_of_three_are_refused(single: Any) -> None:
    for pages in ([], [single.content()] * 3):
        with pytest.raises(ValueError, match=f"of one plan or of two, got {len(pages)}"):
            page_html(pages)


def test_tensors_say_how_they_are_cut(single: Any) -> None:
    table = tensor_table(single.content())
    sizes = dict(single.mesh.axes)
    for row, (_, shape, axes) in zip(table.rows, table.tensors, strict=True):
        parts = [math.prod(sizes[name] for name in own) for own in axes]
        width = {"float32": 4, "int32": 4, "uint32": 4}.get(row[4].split("[")[0])
        if width is not None:
            cut = math.prod(-(-size // n) for size, n in zip(shape, parts, strict=True))
            assert row[6] == row[3] * width * cut


# Colours.

# Vienot, Brettel and Mollon, "Digital video colourmaps for checking the legibility of displays by
# dichromats", 1999: linear RGB as who lacks one kind of cone sees it.
PROTANOPE = ((0.11238, 0.88762, 0.0), (0.11238, 0.88762, 0.0), (0.00401, -0.00401, 1.0))
DEUTERANOPE = ((0.29275, 0.70725, 0.0), (0.29275, 0.70725, 0.0), (-0.02234, 0.02234, 1.0))
TRICHROMAT = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def as_lab(fill: str, eye: tuple[tuple[float, ...], ...]) -> tuple[float, ...]:
    """CIE L*a*b* of a colour as an eye sees it."""
    channels = [int(fill[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    red, green, blue = (sum(m * c for m, c in zip(row, linear, strict=True)) for row in eye)
    xyz = (
        (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089,
    )
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("eye", [TRICHROMAT, PROTANOPE, DEUTERANOPE])
def test_colours_differ_for_every_eye(eye: Any) -> None:
    """By ten times what can just be told apart side by side (a distance of about 1)."""
    seen = [as_lab(fill, eye) for fill in PALETTE]
    for i, first in enumerate(seen):
        for second in seen[:i]:
            assert math.dist(first, second) > 10


def test_text_stands_out_from_its_fill() -> None:
    assert text_colour("#F0E442") == "#000000"
    assert text_colour("#0072B2") == "#FFFFFF"


# Figures for papers, and packages that are not there.


def test_figures_have_time_line_and_memory(plan: Any, tmp_path: Path) -> None:
    shown = plan.plot()
    above, below = shown.axes
    assert above.get_xlim() == (0, plan.step_time_s)
    assert len(above.get_yticks()) == len(plan.runtime.meshes)
    ends = [patch.get_x() + patch.get_width() for patch in below.patches]
    assert max(ends) == pytest.approx(plan.peak_bytes / 2**30)
    shown.savefig(tmp_path / "plan.svg")
    # What a notebook shows of it, without pyplot.
    assert shown._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("package", "module", "ask"),
    [
        ("bokeh", "stablehlo_alpa.view.page.document", "view"),
        ("matplotlib", "stablehlo_alpa.view.shown_figure", "plot"),
    ],
)
def test_a_package_that_is_missing_is_named_with_its_extra(
    package: str,
    module: str,
    ask: str,
    single: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **options: Any) -> Any:
        if name.split(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=package)
        return real(name, *rest, **options)

    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModuleNotFoundError, match=rf"needs {package}.*stablehlo-alpa\[view\]"):
        single.view(tmp_path / "x.html") if ask == "view" else single.plot()


def test_json_of_content_has_no_infinities(plan: Any) -> None:
    json.loads(plan.content().dump(), parse_constant=pytest.fail)
