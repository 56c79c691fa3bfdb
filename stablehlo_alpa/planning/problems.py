"""What is chosen from on logical meshes, and what was proved of it: kept between rounds."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from stablehlo_alpa.cluster import LogicalMesh
from stablehlo_alpa.cost import PricedGraph
from stablehlo_alpa.errors import InfeasibleError, SlowerError
from stablehlo_alpa.intra_op import SolveOptions, check_undercuts, refusal

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Problem:
    """What is chosen from on one logical mesh.

    Attributes:
        mesh: the mesh.
        priced: strategies, those that are allowed by what was prescribed.
        remarks: of the strategies, and on what was prescribed and cannot be.
    """

    mesh: LogicalMesh
    priced: PricedGraph
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Proofs:
    """What was proved of all plans of modules on meshes, to be asked under other limits.

    Less memory makes no plan possible, and none faster. Bytes per device do not depend on the order
    of the axes of a mesh, where nothing is prescribed by their names; seconds do.

    Attributes:
        needed: by module and mesh shape, why no plan does with less than its ``least_bytes``.
        least_s: by module and mesh shape a budget in bytes per device, and seconds that no plan
            within it takes less than.
    """

    needed: dict[tuple[str, Shape], InfeasibleError] = field(default_factory=dict)
    least_s: dict[tuple[str, Shape], tuple[float, float]] = field(default_factory=dict)

    def check(self, merged: str, shape: Shape, options: SolveOptions) -> None:
        """Raises what a search is known to come to.

        Args:
            merged: the module.
            shape: of the mesh.
            options: what a plan is looked for under.

        Raises:
            InfeasibleError: no plan is within the budget.
            SlowerError: none undercuts what is asked for.
        """
        budget = _budget(options)
        within, least_s = self.least_s.get((merged, shape), (-math.inf, 0.0))
        if budget <= within:
            check_undercuts(least_s, options.most_s)
        known = self.needed.get((merged, shape))
        # A search to the end says what is lacking as well.
        if known is None or (options.closes and known.needed_bytes is None):
            return
        if known.least_bytes is not None and known.least_bytes > budget:
            raise refusal(budget, known.needed_bytes, known.least_bytes, known.largest)

    @contextlib.contextmanager
    def of(
        self, merged: str, shape: Shape, options: SolveOptions, *, is_free: bool
    ) -> Iterator[None]:
        """Takes why a search over all strategies of a module on a mesh comes to nothing.

        Args:
            merged: the module.
            shape: of the mesh.
            options: what a plan is looked for under.
            is_free: whether nothing is prescribed.
        """
        try:
            yield
        except SlowerError as error:
            # That of a larger budget holds for more: another one is kept only where it says more.
            within, least_s = self.least_s.get((merged, shape), (-math.inf, 0.0))
            if _budget(options) >= within or error.least_s > least_s:
                self.least_s[merged, shape] = _budget(options), error.least_s
            raise
        except InfeasibleError as error:
            if error.is_proved and error.least_bytes is not None:
                for same in {shape, shape[::-1] if is_free else shape}:
                    self.needed[merged, same] = error
            raise


@dataclass(frozen=True)
class Problems:
    """Those of the same options but for the limits of the search, to be made once.

    Attributes:
        made: by module and mesh shape.
        proofs: what was proved of them.
    """

    made: dict[tuple[str, Shape], Problem] = field(default_factory=dict)
    proofs: Proofs = field(default_factory=Proofs)


def _budget(options: SolveOptions) -> float:
    return math.inf if options.memory_budget is None else options.memory_budget
