"""What is read from optimised HLO: sizes of types, groups, and what a device sends."""

from __future__ import annotations

import pytest

from stablehlo_alpa.witness import Collective, HloError, Kind, collectives, sent_bytes
from stablehlo_alpa.witness.hlo_text import HloModule
from stablehlo_alpa.witness.hlo_types import type_bytes

ADD = """
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}
"""


def entry(*lines: str, before: str = "") -> str:
    """A module with an entry of one argument, f32[16] %x."""
    body = "\n".join(f"  {line}" for line in ("%x = f32[16]{0} parameter(0)", *lines))
    head = f"HloModule test, num_partitions=8\n{ADD}{before}"
    return f"{head}\nENTRY %main (x: f32[16]) -> f32[16] {{\n{body}\n}}\n"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("f32[8,128]{1,0}", 4096),
        ("bf16[8,128]{1,0:T(8,128)(2,1)S(1)}", 2048),
        ("f32[]", 4),
        ("f32[]{:T(128)}", 4),
        ("f32[0,4]", 0),
        ("s4[3]", 1.5),
        ("(f32[8]{0:T(256)}, /*index=1*/u32[]{:S(2)}, token[])", 36),
        ("((f32[2], f32[2]), (bf16[4]))", 24),
        ("c64[2]", 16),
    ],
)
def test_bytes_of_types(text: str, size: float) -> None:
    assert type_bytes(text) == size


@pytest.mark.parametrize("text", ["f33[8]", "f32[<=8]", "opaque[]"])
def test_unknown_types_are_errors(text: str) -> None:
    with pytest.raises(HloError):
        type_bytes(text)


@pytest.mark.parametrize(
    ("groups", "size"),
    [
        ("{{0,1,2,3},{4,5,6,7}}", 4),
        ("{{0,1},{2,3,4}}", 3),
        ("[2,4]<=[8]", 4),
        ("[4,2]<=[2,4]T(1,0)", 2),
        ("{}", 8),
        ("mesh['x'=2,'y'=4]{'y'}", 4),
        ("mesh['x'=8]{'x':(1)2}", 2),
        ("mesh['a'=4,'b'=1,'c'=2], device_ids=([2,4]T(1,0)) {'c'}", 2),
    ],
)
def test_sizes_of_groups(groups: str, size: int) -> None:
    line = f"%r = f32[16]{{0}} all-reduce(%x), channel_id=1, replica_groups={groups}, to_apply=%add"
    assert collectives(entry(line), 8) == [Collective(Kind.ALL_REDUCE, size, 64)]


def test_unknown_groups_are_errors() -> None:
    line = "%r = f32[16]{0} all-reduce(%x), replica_groups=all, to_apply=%add"
    with pytest.raises(HloError, match="replica groups"):
        collectives(entry(line), 8)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "%r = f32[64]{0} all-gather(%x), replica_groups=[2,4]<=[8], dimensions={0}",
            Collective(Kind.ALL_GATHER, 4, 256),
        ),
        (
            "%r = f32[4]{0} reduce-scatter(%x), replica_groups=[2,4]<=[8], to_apply=%add",
            Collective(Kind.REDUCE_SCATTER, 4, 64),
        ),
        (
            "%r = f32[16]{0} all-to-all(%x), replica_groups=[2,4]<=[8], dimensions={0}",
            Collective(Kind.ALL_TO_ALL, 4, 64),
        ),
        (
            "%r = f32[16]{0} collective-permute(%x), source_target_pairs={{0,1},{1,0}}",
            Collective(Kind.COLLECTIVE_PERMUTE, 2, 64),
        ),
        (
            "%r = f32[16]{0} collective-broadcast(%x), replica_groups={{0,1}}",
            Collective(Kind.COLLECTIVE_BROADCAST, 2, 64),
        ),
        (
            "%r = f32[16]{0} ragged-all-to-all(%x, %x, %x), replica_groups={{0,1}}",
            Collective(Kind.RAGGED_ALL_TO_ALL, 2, 64),
        ),
    ],
)
def test_kinds(line: str, expected: Collective) -> None:
    assert collectives(entry(line), 8) == [expected]


@pytest.mark.parametrize(
    ("kind", "size", "sent"),
    [
        (Kind.ALL_REDUCE, 4, 1.5),
        (Kind.ALL_GATHER, 4, 0.75),
        (Kind.REDUCE_SCATTER, 4, 0.75),
        (Kind.ALL_TO_ALL, 4, 0.75),
        (Kind.COLLECTIVE_PERMUTE, 2, 1),
        (Kind.RAGGED_ALL_TO_ALL, 4, 1),
    ],
)
def test_sent_bytes(kind: Kind, size: int, sent: float) -> None:
    assert Collective(kind, size, 1000, 3).sent_bytes == 3000 * sent


def test_what_stays_on_a_device_is_not_sent() -> None:
    lines = (
        "%r = f32[16]{0} all-reduce(%x), replica_groups={{0},{1}}, to_apply=%add",
        "%s = f32[16]{0} collective-permute(%r), source_target_pairs={{0,0},{1,1}}",
    )
    assert collectives(entry(*lines), 8) == []


def test_combined_collectives_are_the_sum_of_their_operands() -> None:
    line = (
        "%r = (f32[16]{0}, f32[16]{0}) all-reduce(%x, /*index=1*/%x), replica_groups={}, "
        "to_apply=%add"
    )
    assert collectives(entry(line), 8) == [Collective(Kind.ALL_REDUCE, 8, 128)]


def test_asynchronous_collectives_count_once() -> None:
    before = """
%wrapped (p: f32[16]) -> f32[4] {
  %p = f32[16]{0} parameter(0)
  ROOT %rs = f32[4]{0} reduce-scatter(%p), replica_groups=[2,4]<=[8], dimensions={0}, to_apply=%add
}
"""
    lines = (
        "%a = (f32[16]{0}, f32[64]{0}) all-gather-start(%x), replica_groups=[2,4]<=[8]",
        "%b = f32[64]{0} all-gather-done(%a)",
        "%c = ((f32[16]{0}), f32[4]{0}, u32[]) async-start(%x), calls=%wrapped",
        "%d = ((f32[16]{0}), f32[4]{0}, u32[]) async-update(%c), calls=%wrapped",
        "%e = f32[4]{0} async-done(%d), calls=%wrapped",
        "%f = ((f32[16]{0}), f32[4]{0}) reduce-scatter-start(%x), replica_groups=[2,4]<=[8]",
        "%g = f32[4]{0} reduce-scatter-done(%f)",
    )
    assert collectives(entry(*lines, before=before), 8) == [
        Collective(Kind.ALL_GATHER, 4, 256),
        Collective(Kind.REDUCE_SCATTER, 4, 64),
        Collective(Kind.REDUCE_SCATTER, 4, 64),
    ]


LOOP = """
%body (c: (s32[], f32[16])) -> (s32[], f32[16]) {
  %c = (s32[], f32[16]{0}) parameter(0)
  %v = f32[16]{0} get-tuple-element(%c), index=1
  %p = f32[16]{0} collective-permute(%v), source_target_pairs={{0,1},{1,0}}
  %i = s32[] get-tuple-element(%c), index=0
  ROOT %t = (s32[], f32[16]{0}) tuple(%i, %p)
}

%condition (c: (s32[], f32[16])) -> pred[] {
  %c = (s32[], f32[16]{0}) parameter(0)
  ROOT %true = pred[] constant(true)
}
"""
WHILE = "%w = (s32[], f32[16]{0}) while(%init), condition=%condition, body=%body"


def test_loops_count_by_their_trips() -> None:
    line = WHILE + ', backend_config={"known_trip_count":{"n":"3"},"known_init_step":{"init":"0"}}'
    (found,) = collectives(entry(line, before=LOOP), 8)
    assert found == Collective(Kind.COLLECTIVE_PERMUTE, 2, 64, 3)
    assert found.sent_bytes == 192


def test_loops_that_communicate_must_have_a_trip_count() -> None:
    with pytest.raises(HloError, match="trip count"):
        collectives(entry(WHILE, before=LOOP), 8)


def test_called_and_fused_computations_count() -> None:
    before = """
%fused (p: f32[16]) -> f32[16] {
  %p = f32[16]{0} parameter(0)
  ROOT %r = f32[16]{0} all-reduce(%p), replica_groups={}, to_apply=%add
}
"""
    lines = (
        '%f = f32[16]{0} fusion(%x), kind=kCustom, calls=%fused, metadata={op_name="a(b, c=d)"}',
        "%g = f32[16]{0} call(%f), to_apply=%fused",
    )
    one = Collective(Kind.ALL_REDUCE, 8, 64)
    assert collectives(entry(*lines, before=before), 8) == [one, one]


@pytest.mark.parametrize(("size", "kind"), [(4, Kind.REDUCE_SCATTER), (8, Kind.ALL_REDUCE)])
def test_a_fused_sum_of_which_a_part_is_kept_is_a_reduce_scatter(size: int, kind: Kind) -> None:
    before = f"""
%all-reduce-scatter (p: f32[16]) -> f32[{size}] {{
  %p = f32[16]{{0:T(128)}} parameter(0)
  %sum = f32[16]{{0:T(128)}} all-reduce(%p), replica_groups=[2,4]<=[8], to_apply=%add
  %id = u32[] partition-id()
  %bits = f32[16]{{0}} bitcast(%sum)
  ROOT %part = f32[{size}]{{0}} dynamic-slice(%bits, %id), dynamic_slice_sizes={{{size}}}
}}
"""
    line = f"%f = f32[{size}]{{0}} fusion(%x), kind=kCustom, calls=%all-reduce-scatter"
    assert collectives(entry(line, before=before), 8) == [Collective(kind, 4, 64)]


def test_of_branches_the_one_that_sends_most_counts() -> None:
    before = """
%much (p: f32[16]) -> f32[16] {
  %p = f32[16]{0} parameter(0)
  ROOT %r = f32[16]{0} all-reduce(%p), replica_groups={}, to_apply=%add
}

%nothing (p: f32[16]) -> f32[16] {
  ROOT %p = f32[16]{0} parameter(0)
}
"""
    line = "%r = f32[16]{0} conditional(%i, %x, %x), branch_computations={%nothing, %much}"
    assert collectives(entry(line, before=before), 8) == [Collective(Kind.ALL_REDUCE, 8, 64)]


@pytest.mark.parametrize(
    "line",
    [
        "%r = f32[16]{0} all-shuffle(%x), channel_id=3, replica_groups={{0,1}}",
        '%r = f32[16]{0} custom-call(%x), custom_call_target="x", replica_groups={{0,1}}',
        "%r = (f32[16]{0}, u32[], token[]) send(%x, %token), channel_id=1",
        "%r = f32[16]{0} collective-permute(%x), source_target_pairs={{0,1}}, slice_sizes={{1}}",
    ],
)
def test_unknown_communication_is_an_error(line: str) -> None:
    with pytest.raises(HloError):
        collectives(entry(line), 8)


def test_what_is_no_module_is_an_error() -> None:
    with pytest.raises(HloError, match="ENTRY"):
        collectives("HloModule nothing", 8)


def test_attributes_nest() -> None:
    line = (
        "%f = (f32[16]{0}, (s32[]{:T(128)})) fusion(%x, %x), kind=kCustom, calls=%add, "
        'metadata={op_name="jit(f)/a, b=(c" source_line=1}, backend_config={"a":{"b":[1,2]}}'
    )
    (_, one) = HloModule.parse(entry(line)).computations["main"]
    assert one.type == "(f32[16]{0}, (s32[]{:T(128)}))"
    assert one.opcode == "fusion"
    assert one.operands == ("x", "x")
    assert dict(one.attributes) == {
        "kind": "kCustom",
        "calls": "%add",
        "metadata": '{op_name="jit(f)/a, b=(c" source_line=1}',
        "backend_config": '{"a":{"b":[1,2]}}',
    }


def test_bytes_of_several() -> None:
    found = [Collective(Kind.ALL_GATHER, 2, 8), Collective(Kind.ALL_REDUCE, 2, 8)]
    assert sent_bytes(found) == 12
