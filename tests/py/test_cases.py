"""Runs of the tests take cases by their names, and leave none out between them."""

from __future__ import annotations

from collections.abc import Collection

from cases import ONE_IN, Cases, chosen

NODES = [f"test_a.py::test_many[{number}]" for number in range(10)]
NODES += ["test_a.py::test_one", "test_b.py::test_few[x[0]]", "test_b.py::test_few[y]"]
SELDOM = {NODES[0], NODES[-1]}


def taken(cases: Cases, whole: Collection[str] = ()) -> set[str]:
    return chosen(NODES, cases, SELDOM, whole)


def test_each_test_has_a_case() -> None:
    some = taken(Cases.SOME)
    assert {node.partition("[")[0] for node in some} == {n.partition("[")[0] for n in NODES}
    assert len(some) == -(-9 // ONE_IN) + 1 + 1
    assert not some & SELDOM


def test_what_one_run_leaves_out_the_other_has() -> None:
    some, others = taken(Cases.SOME), taken(Cases.OTHERS)
    assert not some & others
    assert some | others == taken(Cases.ALL) == set(NODES)


def test_a_case_is_drawn_by_its_name() -> None:
    assert chosen(NODES[::-1], Cases.SOME, SELDOM, ()) == taken(Cases.SOME)


def test_all_cases_of_a_whole_test_run() -> None:
    assert taken(Cases.SOME, set(NODES[:10])) >= set(NODES[1:10])


def test_one_case_is_the_first() -> None:
    assert taken(Cases.ONE) == {NODES[0], NODES[10], NODES[11]}
