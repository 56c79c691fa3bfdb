"""What is said where no plan fits the memory."""

from __future__ import annotations

from collections.abc import Sequence

from stablehlo_alpa.errors import InfeasibleError
from stablehlo_alpa.units import format_bytes, format_seconds


def refusal(
    budget: float,
    needed: float | None,
    least: float,
    largest: Sequence[tuple[str, float]],
    *,
    is_least: bool = False,
    limit_s: float = 0.0,
) -> InfeasibleError:
    """The error that says by how much no plan is within a budget, or none was found.

    Args:
        budget: bytes per device.
        needed: of the leanest plan that is known; None where none was looked for.
        least: bytes that no plan does with less of, as far as that is proved.
        largest: names and bytes of the largest tensors live at the peak of the leanest plan.
        is_least: whether that is known to be the leanest of all.
        limit_s: seconds of work within which it was looked for.
    """
    if needed is None:
        peak, lacks = f"every plan takes {format_bytes(least)} at least", least
    elif is_least:
        peak, lacks = f"the least reachable peak is {format_bytes(needed)}", needed
    elif least > budget:
        peak = f"the least peak that was found is {format_bytes(needed)}, and every plan takes "
        peak, lacks = f"{peak}{format_bytes(least)} at least", least
    else:
        found = f"found within {format_seconds(limit_s)}"
        peak, lacks = f"the least reachable peak {found} is {format_bytes(needed)}", needed
    listed = ", ".join(f"{name} ({format_bytes(size)})" for name, size in largest)
    live = f"; largest live tensors there: {listed}" if needed is not None else ""
    return InfeasibleError(
        f"no plan fits the memory budget of {format_bytes(budget)} per device: {peak}, "
        f"{format_bytes(lacks - budget)} more{live}",
        needed_bytes=needed,
        budget_bytes=budget,
        largest=largest,
        least_bytes=least,
    )
