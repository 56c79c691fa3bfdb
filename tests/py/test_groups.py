"""The suite says what it has checked, in groups."""

from __future__ import annotations

from pathlib import Path

from groups import GROUPS, OTHERS, WAITING, group_of, table


def test_groups_name_files_that_are_there_once() -> None:
    stems = [stem for group in GROUPS.values() for stem in group]
    assert len(stems) == len(set(stems))
    assert set(WAITING) <= set(GROUPS)
    for stem in stems:
        assert (Path(__file__).parent / f"test_{stem}.py").exists(), stem


def test_every_file_has_a_group() -> None:
    names = [path.name for path in Path(__file__).parent.glob("test_*.py")]
    assert [name for name in names if group_of(name) == OTHERS] == []


def test_every_group_that_ran_has_a_row() -> None:
    lines = table(
        {
            "passed": [("tests/py/test_ilp.py::a", 1.0), ("tests/py/test_exact.py::b[x/y]", 2.0)],
            "failed": [("tests/py/test_ilp.py::c", 0.5)],
            "skipped": [("tests/py/test_new.py::d", 0.0)],
        }
    )
    assert [line.split() for line in lines[1:]] == [
        ["searches", "against", "brute", "force", "2", "1", "4"],
        [OTHERS, "1", "0"],
    ]
    assert group_of("tests/py/test_docs.py::test_blocks_run[README.md]").startswith("documentation")
