"""Work that is spread over the processors."""

from __future__ import annotations

import pytest

from stablehlo_alpa.inter_op.threads import in_threads


def test_results_keep_their_order() -> None:
    assert in_threads(lambda number: number**2, range(50)) == [number**2 for number in range(50)]
    assert in_threads(str, []) == []


def test_the_first_error_is_raised() -> None:
    def work(number: int) -> int:
        if number >= 3:
            raise ValueError(f"item {number}")
        return number

    with pytest.raises(ValueError, match="item 3"):
        in_threads(work, range(6))
