"""What was planned for the page on the paper's evaluation, kept between runs."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from paper_cases import FAMILIES, Candidate, System, step_flops
from report import ROOT

import stablehlo_alpa
from stablehlo_alpa.errors import InfeasibleError, StablehloAlpaError
from stablehlo_alpa.planning import Plan
from stablehlo_alpa.zoo.case import ModelCase

CACHE = ROOT / "build" / "paper_evaluation.json"
SCHEMA = 1


@dataclass(frozen=True)
class Record:
    """One plan, or why there is none.

    Attributes:
        candidate: what was planned.
        code: digest of the planner that did.
        day: when, UTC.
        search_s: seconds from the function to the plan, tracing included.
        flops: of a step as the paper counts them.
        step_s: of the simulated step; None without a plan.
        peak_bytes: of the fullest device.
        gap: how much faster another cut could be, by what the search proved; None if it proves
            nothing.
        stages: mesh of each.
        reason: why there is no plan.
        is_too_large: whether that is for want of memory.
    """

    candidate: Candidate
    code: str
    day: str
    search_s: float
    flops: float
    step_s: float | None = None
    peak_bytes: float | None = None
    gap: float | None = None
    stages: tuple[str, ...] = ()
    reason: str = ""
    is_too_large: bool = False

    @property
    def pflops(self) -> float | None:
        """PFLOP/s of all devices, predicted."""
        return self.flops / self.step_s / 1e15 if self.step_s else None


@cache
def code_digest() -> str:
    """Of the planner: its Python sources and its core."""
    found = hashlib.sha256()
    for path in sorted((ROOT / "stablehlo_alpa").rglob("*")):
        if path.suffix in (".py", ".so", ".txtpb"):
            found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()[:12]


def record_of(candidate: Candidate, case: ModelCase) -> Record:
    """Plans a candidate."""
    flops = step_flops(FAMILIES[candidate.family], candidate.devices, case)
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    start = time.perf_counter()
    made = dataclasses.replace(
        Record(candidate, code_digest(), day, 0.0, flops), **_planned(candidate, case)
    )
    return dataclasses.replace(made, search_s=time.perf_counter() - start)


def _planned(candidate: Candidate, case: ModelCase) -> dict[str, Any]:
    """What planning says; what does not fit or go together is a result as well."""
    step = stablehlo_alpa.parallelize(
        case.step,
        method=candidate.method(),
        cluster=candidate.cluster,
        donate_argnums=case.donate_argnums,
    )
    try:
        plan: Plan = step.plan(*case.args)
    except (StablehloAlpaError, ValueError) as error:
        first = str(error).splitlines()[0]
        return {"reason": first, "is_too_large": isinstance(error, InfeasibleError)}
    return {
        "step_s": plan.step_time_s,
        "peak_bytes": plan.peak_bytes,
        "gap": plan.bracket.gap if plan.bracket is not None else None,
        "stages": tuple("x".join(map(str, stage.mesh.shape)) for stage in plan.stages),
    }


class Records:
    """A file of them, by what was asked of which planner."""

    def __init__(self, path: Path = CACHE) -> None:
        """Reads the file if it is there and of this schema."""
        self.path = path
        self._by_key: dict[str, Record] = {}
        if path.exists():
            held = json.loads(path.read_text())
            if held["schema"] == SCHEMA:
                found = map(_record, held["records"])
                self._by_key = {_key(one.candidate, one.code): one for one in found}

    def find(self, candidate: Candidate) -> Record | None:
        """What the planner as it is now made of it."""
        return self._by_key.get(_key(candidate, code_digest()))

    def add(self, record: Record) -> None:
        """Keeps it, in the file as well."""
        self._by_key[_key(record.candidate, record.code)] = record
        self.path.parent.mkdir(parents=True, exist_ok=True)
        records = [asdict(one) for one in self._by_key.values()]
        text = json.dumps({"schema": SCHEMA, "records": records}, indent=1)
        scratch = self.path.with_suffix(".part")
        scratch.write_text(text + "\n")
        scratch.replace(self.path)

    def latest(self) -> list[Record]:
        """Of each candidate the last."""
        return list({one.candidate: one for one in self._by_key.values()}.values())


def best(records: Iterable[Record]) -> Record | None:
    """The fastest; where none has a plan, one that says why; None of none."""
    found = list(records)
    planned = [one for one in found if one.step_s is not None]
    if planned:
        return min(planned, key=lambda one: one.step_s or 0.0)
    # What does not fit says more than what could not be asked for.
    return max(found, key=lambda one: one.is_too_large, default=None)


def _key(candidate: Candidate, code: str) -> str:
    text = json.dumps([asdict(candidate), code], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _record(held: dict[str, Any]) -> Record:
    """What `asdict` made of one."""
    candidate = dict(held["candidate"])
    candidate["system"] = System(candidate["system"])
    values = {**held, "candidate": Candidate(**candidate), "stages": tuple(held["stages"])}
    return Record(**values)
