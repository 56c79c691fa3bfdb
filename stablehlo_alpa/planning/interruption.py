"""What a search that is interrupted leaves behind."""

from __future__ import annotations

from stablehlo_alpa.planning.plan import Plan


class SearchInterrupted(KeyboardInterrupt):
    """The search for a plan was interrupted, as by Ctrl-C, when it had found one.

    Attributes:
        plan: the fastest so far. What it has in ``bracket`` bounds pipelines with the numbers of
            micro-batches and recomputations tried until then; others were not looked at.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__(
            f"the search for a plan was interrupted; the best so far, {_describe(plan)}, is in the "
            "attribute plan of this exception"
        )
        self.plan = plan


def _describe(plan: Plan) -> str:
    gap = plan.gap
    proved = "" if gap is None else f", at most {gap:.1%} slower than the best of its kind"
    return f"{plan!r}{proved}"
