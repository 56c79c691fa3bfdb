"""Small arguments and results of which a sharding is asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from stablehlo_alpa.compiler import Module
from stablehlo_alpa.frontend import TracedValue
from stablehlo_alpa.planning.mesh_search import Subject
from stablehlo_alpa.planning.prescription import Exactly, Prescription, SplitBatch, Wish
from stablehlo_alpa.store import OFF, Record, Store

# Of the compiler (`kTinyElements`): values of no more elements have no strategies of their own.
_SMALL = 16


def with_small_values(subject: Subject, prescription: Prescription, store: Store = OFF) -> Subject:
    """A subject whose small arguments and results have strategies where they are to be split.

    Others are the same on every device: to split them saves nothing, and would cost the search a
    node each. What is only preferred, or split to save memory, stays so.

    Args:
        subject: what is split.
        prescription: what is asked for.
        store: keeps modules.
    """
    boundary = subject.boundary
    if boundary is None:
        return subject
    inputs = _asked(boundary.inputs, prescription.inputs)
    results = _asked(boundary.outputs, prescription.outputs)
    if not inputs and not results:
        return subject
    pipeline = f"alpa-place-small-values{{inputs={inputs} results={results}}}"
    parsed: Module | None = None

    def made() -> Record:
        nonlocal parsed
        module = subject.parsed or Module.kept(subject.merged, subject.name)
        parsed = module.clone()
        parsed.run(pipeline)
        return {"merged": parsed.text()}

    found = store.remember("small values", (subject.merged, pipeline), made)
    return replace(subject, merged=found["merged"], parsed=parsed)


def _asked(entries: Iterable[tuple[int, TracedValue] | None], wishes: Mapping[int, Wish]) -> str:
    """Positions of small values that are to be split, as the compiler reads them."""
    found = []
    for position, entry in enumerate(entries):
        if entry is not None and 1 < math.prod(entry[1].shape) <= _SMALL:
            wish = wishes.get(entry[0])
            if isinstance(wish, SplitBatch) or (isinstance(wish, Exactly) and any(wish.spec)):
                found.append(str(position))
    return ",".join(found)
