"""A program of every operator is read, printed and verified as jaxlib does, and so are its changes.

The oracle is jaxlib's StableHLO: its parser, its printer and its verifier.
"""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

import pytest
from jax._src.interpreters import mlir as jax_mlir
from jax.extend.mlir import ir
from module_damage import changed
from often import seldom
from test_roundtrip import printed, reparsed, through

from stablehlo_alpa import _core

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from check_upstream_plans import REFUSAL, Outcome, check, prepared

PROGRAMS = (Path(__file__).parent / "operators.mlir").read_text().split("// -----")

# What the specification asks for and jaxlib's verifier lets through.
STRICTER = re.compile(
    "'stablehlo.fft' op operand must have size|'stablehlo.fft' op length .* is negative|"
    "'stablehlo.bitcast_convert' op tensor of the narrower elements must have rank|"
    "op number of sizes must be|"
    "'stablehlo.(real_dynamic_slice|dynamic_conv)' op result must have rank|"
    "'stablehlo.all_gather' op (global device ids need a channel|result size 0 must be)|"
    "'stablehlo.scatter' op update must be of|"
    "'chlo.broadcast_add' op result must have|"
    "'chlo.scan' op (result|argument) .* of the body is of"
)


def name_of(program: str) -> str:
    found = re.search(r"(?:stablehlo|chlo)\.(?!return)[a-z_]+", program)
    assert found
    return found.group()


def names() -> list[str]:
    """Of the programs; several of one operator are numbered."""
    found: list[str] = []
    for program in PROGRAMS:
        name = name_of(program)
        found.append(f"{name}-{found.count(name)}" if name in found else name)
    return found


def read_by_jaxlib(text: str) -> ir.Module | None:
    """A module that is good."""
    try:
        module = ir.Module.parse(text)
        module.operation.verify()
    except ir.MLIRError:
        return None
    return module


def refusal(text: str) -> str:
    """What we say against a module; empty where it is good."""
    try:
        _core.run_pipeline(text, "builtin.module()")
    except _core.CompilerError as error:
        return str(error)
    return ""


def generic_of(program: str) -> str:
    with jax_mlir.make_ir_context():
        return printed(ir.Module.parse(program), locations=False)


def assert_changes_are_judged_alike(program: str, seed: int, count: int) -> None:
    rng, generic = random.Random(seed), generic_of(program)
    context = jax_mlir.make_ir_context()
    for _ in range(count):
        text = changed(generic, rng)
        with context:
            is_good = read_by_jaxlib(text) is not None
        said = refusal(text)
        assert is_good == (not said) or (is_good and STRICTER.search(said)), f"{said}\n{text}"


@pytest.mark.parametrize("program", PROGRAMS, ids=names())
def test_forms_are_those_of_jaxlib(program: str) -> None:
    with jax_mlir.make_ir_context():
        module = ir.Module.parse(program)
        pretty = printed(module, generic=False, locations=False)
        generic = printed(module, locations=False)
    assert through(pretty, locations=False) == reparsed(pretty)
    assert reparsed(through(generic, generic=False, locations=False)) == reparsed(pretty)
    assert through(pretty, generic=False, locations=False) == pretty


@pytest.mark.parametrize("program", PROGRAMS, ids=names())
def test_changes_are_judged_as_by_jaxlib(program: str) -> None:
    assert_changes_are_judged_alike(program, seed=1, count=20)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=names())
@pytest.mark.parametrize("count", [40, seldom(100)])
def test_many_changes_are_judged_as_by_jaxlib(program: str, count: int) -> None:
    assert_changes_are_judged_alike(program, seed=2, count=count)


def outcomes(line: str) -> list[Outcome]:
    """What `make check-upstream` says of a program of one line, on quantized elements."""
    kind = "tensor<8x4x!quant.uniform<i8:f32, 0.5>>"
    text = prepared(f"func.func @f(%x: {kind}) -> {kind} {{ {line}\n return %0 : {kind} }}")
    assert text is not None
    return [outcome for outcome, _ in check(text.replace("KIND", kind), seed=0)]


def test_quantized_programs_of_upstream_are_planned() -> None:
    assert outcomes("%0 = stablehlo.add %x, %x : KIND") == [Outcome.LOWERED]
    gathered = (
        '%0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, '
        "replica_groups = dense<[[0]]> : tensor<1x1xi64>} : (KIND) -> KIND"
    )
    assert outcomes(gathered) == [Outcome.NOT_PLANNED]


@pytest.mark.parametrize(
    ("said", "is_refusal"),
    [
        ("'stablehlo.custom_call' @call is partitioned by hand already", True),
        ("argument 0 has the dynamic type 'tensor<?xf32>'", True),
        ("'stablehlo.optimization_barrier' op sharding rule names 2 operands", False),
        ("symbol declaration cannot have public visibility", False),
    ],
)
def test_refusals_are_told_from_what_verifiers_say(said: str, is_refusal: bool) -> None:
    assert bool(REFUSAL.match(f"module:2:10: {said}")) == is_refusal
