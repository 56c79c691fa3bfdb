"""What was planned for the page on the paper's evaluation, kept between runs."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from report import ROOT

import stablehlo_alpa
from evaluation.breakdown import Sampler
from evaluation.cases import Candidate
from evaluation.convolutions import Convolution, convolutions
from evaluation.inter import InterCandidate
from evaluation.intra import IntraCandidate
from evaluation.published_cuts import CutCandidate
from evaluation.resharding import step_seconds
from stablehlo_alpa.errors import InfeasibleError, StablehloAlpaError
from stablehlo_alpa.planning import Plan
from stablehlo_alpa.zoo.case import ModelCase

RECORDS = ROOT / "benchmarks" / "evaluation" / "records.json"
SCHEMA = 2

Asked: TypeAlias = Candidate | IntraCandidate | InterCandidate | CutCandidate
C = TypeVar("C", Candidate, IntraCandidate, InterCandidate, CutCandidate)

# Kinds of candidates by what they are of.
_KINDS: Mapping[str, type[Asked]] = {
    "figure 7": Candidate,
    "figure 8": IntraCandidate,
    "figure 9": InterCandidate,
    "published cut": CutCandidate,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


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
        layers: how many each stage has; empty where the step is not cut.
        sending: of a pipeline, seconds of the step by way of sending between its stages.
        parts: seconds of the search by what it was at.
        convolutions: of a Wide-ResNet of figure 7, how each is split.
        reason: why there is no plan.
        is_too_large: whether that is for want of memory.
    """

    candidate: Asked
    code: str
    day: str
    search_s: float
    flops: float
    step_s: float | None = None
    peak_bytes: float | None = None
    gap: float | None = None
    stages: tuple[str, ...] = ()
    layers: tuple[int, ...] = ()
    sending: Mapping[str, float] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)
    convolutions: tuple[Convolution, ...] = ()
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


def record_of(candidate: Asked) -> Record:
    """Plans a candidate."""
    case = candidate.case()
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    made = Record(candidate, code_digest(), day, 0.0, candidate.flops(case))
    start = time.perf_counter()
    with Sampler() as sampler:
        plan, changed = _planned(candidate, case)
    search_s = time.perf_counter() - start
    if plan is not None:
        changed = _said(candidate, plan)
    return dataclasses.replace(made, search_s=search_s, parts=sampler.parts(search_s), **changed)


def _planned(candidate: Asked, case: ModelCase) -> tuple[Plan | None, dict[str, Any]]:
    """The plan, or why there is none; what does not fit or go together is a result as well."""
    step = stablehlo_alpa.parallelize(
        case.step,
        method=candidate.method(case),
        cluster=candidate.cluster,
        donate_argnums=case.donate_argnums,
        # What is timed is the search, not what it has kept of another.
        store=False,
    )
    try:
        return step.plan(*case.args), {}
    except (StablehloAlpaError, ValueError) as error:
        first = str(error).splitlines()[0]
        return None, {"reason": first, "is_too_large": isinstance(error, InfeasibleError)}


def _said(candidate: Asked, plan: Plan) -> dict[str, Any]:
    """What is kept of a plan."""
    is_pipeline = len(plan.stages) > 1
    is_read = candidate.family == "Wide-ResNet" and isinstance(candidate, (Candidate, CutCandidate))
    return {
        "step_s": plan.step_time_s,
        "peak_bytes": plan.peak_bytes,
        "gap": plan.bracket.gap if plan.bracket is not None else None,
        "stages": tuple("x".join(map(str, stage.mesh.shape)) for stage in plan.stages),
        "layers": tuple(len(stage.layers) for stage in plan.stages),
        "sending": step_seconds(plan) if is_pipeline else {},
        "convolutions": tuple(convolutions(plan)) if is_read else (),
    }


class Records:
    """A file of them, by what was asked of which planner."""

    def __init__(self, path: Path = RECORDS) -> None:
        """Reads the file if it is there and of this schema."""
        self.path = path
        self._by_key = self._read()

    def _read(self) -> dict[str, Record]:
        if not self.path.exists():
            return {}
        held = json.loads(self.path.read_text())
        if held["schema"] != SCHEMA:
            return {}
        return {_key(one.candidate, one.code): one for one in map(_record, held["records"])}

    def find(self, candidate: Asked, *, by_any: bool = False) -> Record | None:
        """What the planner as it is now made of it; ``by_any``, or the last planner that did."""
        found = self._by_key.get(_key(candidate, code_digest()))
        if found is None and by_any:
            made = [one for one in self._by_key.values() if one.candidate == candidate]
            return made[-1] if made else None
        return found

    def add(self, record: Record) -> None:
        """Keeps it, in the file as well, in place of what other planners made."""
        # What other processes have added meanwhile stays.
        self._by_key = self._read()
        stale = [key for key, one in self._by_key.items() if one.candidate == record.candidate]
        for key in stale:
            del self._by_key[key]
        self._by_key[_key(record.candidate, record.code)] = record
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # A line for each, so that a change of one is a change of one line.
        lines = ",\n".join(json.dumps(_held(one)) for one in self._by_key.values())
        scratch = self.path.with_suffix(".part")
        scratch.write_text(f'{{"schema": {SCHEMA}, "records": [\n{lines}\n]}}\n')
        scratch.replace(self.path)

    def latest(self) -> list[Record]:
        """Of each candidate the last."""
        return list(self._by_key.values())


def best(records: Iterable[Record]) -> Record | None:
    """The fastest; where none has a plan, one that says why; None of none."""
    found = list(records)
    planned = [one for one in found if one.step_s is not None]
    if planned:
        return min(planned, key=lambda one: one.step_s or 0.0)
    # What does not fit says more than what could not be asked for.
    return max(found, key=lambda one: one.is_too_large, default=None)


def of_kind(records: Sequence[Record], kind: type[C]) -> list[tuple[C, Record]]:
    """Those of a figure, with their candidates."""
    return [(one.candidate, one) for one in records if isinstance(one.candidate, kind)]


def _key(candidate: Asked, code: str) -> str:
    text = json.dumps([_asked(candidate), code], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _asked(candidate: Asked) -> dict[str, Any]:
    return {"of": _NAMES[type(candidate)], **asdict(candidate)}


def _held(record: Record) -> dict[str, Any]:
    """As plain data."""
    return {**asdict(record), "candidate": _asked(record.candidate)}


def _record(held: Mapping[str, Any]) -> Record:
    """What `_held` made of one."""
    asked = dict(held["candidate"])
    kind = _KINDS[asked.pop("of")]
    lists = {key: tuple(held[key]) for key in ("stages", "layers")}
    read = tuple(Convolution(**one) for one in held["convolutions"])
    return Record(**{**held, "candidate": kind(**asked), **lists, "convolutions": read})
