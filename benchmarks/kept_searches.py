"""A second search for a pipeline beside a first, when the store has what the first one computed.

python benchmarks/kept_searches.py                     # GPT-350M and GPT-2.6B
python benchmarks/kept_searches.py --models GPT-39B    # any of `search.CASES`
python benchmarks/kept_searches.py --quick             # a tiny GPT

Every search is a process of its own, from the Python function to the checked plan. Seconds are
those of all its threads, so that a busy machine changes them little; imports and the model's shapes
are left out. Each change is asked for twice: without a store, and with a copy of the store that the
unchanged question has filled.
"""

import argparse
import dataclasses
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import report
import search
from alpa_runtime.agreement import digest
from report import Row, compared, measured
from search import Case

import stablehlo_alpa as sa
from stablehlo_alpa.cluster import ClusterSpec
from stablehlo_alpa.errors import InfeasibleError
from stablehlo_alpa.store import Store

# Fewer than the clusters have: every one is planned for its own platform.
report.prepare_devices(1)

# What a second search may take of one without a store.
_BAR = 0.2
_TINY = Case("gpt-tiny", {"batch": 64}, "p3.16xlarge:1", 2, 4, 5.0, 0.02)


@dataclass(frozen=True)
class Question:
    """A search.

    Attributes:
        case: the model on its cluster.
        schedule: of the pipeline.
        budget: what may be used of a device's memory, as a part of it.
    """

    case: Case
    schedule: str = "1f1b"
    budget: float = 1.0

    def ask(self, folder: Path | None) -> dict[str, Any]:
        """Seconds, and what was found, with a store in a folder."""
        case = self.case
        made, cluster = case.made(), ClusterSpec.preset(case.cluster)
        method = sa.PipeshardParallel(
            layers=sa.AutoLayers(num_layers=case.num_layers, remat=True),
            num_micro_batches=case.num_micro_batches,
            schedule=self.schedule,
            memory_budget=int(self.budget * cluster.device.memory_bytes),
        )
        step = sa.parallelize(
            made.step,
            method=method,
            cluster=cluster,
            donate_argnums=made.donate_argnums,
            store=False if folder is None else Store(folder),
        )
        ran = time.process_time()
        try:
            plan = step.plan(*made.args)
        except InfeasibleError as error:
            return {"seconds": time.process_time() - ran, "answer": str(error)}
        seconds = time.process_time() - ran
        stages = [[list(one.layers), list(one.mesh.shape)] for one in plan.stages]
        programs = digest(plan.runtime)
        return {"seconds": seconds, "answer": [plan.step_time_s, stages, programs]}


def changes(question: Question) -> Iterator[tuple[str, Question]]:
    """What is asked for, by what differs from the first question."""
    case, sizes = question.case, dict(question.case.sizes)
    machine, hosts = case.cluster.split(":")
    count, batch = case.num_micro_batches, sizes["batch"]
    twice = sizes | {"batch": 2 * batch}

    def of(**other: Any) -> Question:
        return dataclasses.replace(question, case=dataclasses.replace(case, **other))

    yield "nothing", question
    yield "budget (90 %)", dataclasses.replace(question, budget=0.9)
    yield "schedule (gpipe)", dataclasses.replace(question, schedule="gpipe")
    yield "hosts (twice)", of(cluster=f"{machine}:{2 * int(hosts)}")
    yield "micro-batches (twice)", of(num_micro_batches=2 * count)
    yield "batch and micro-batches (twice)", of(sizes=twice, num_micro_batches=2 * count)
    yield "batch (twice)", of(sizes=twice)


def asked(name: str, change: str, folder: Path | None) -> dict[str, Any]:
    """What a question finds, in a process of its own."""
    command = [sys.executable, __file__, "--ask", name, change, str(folder or "")]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    return answer


def question_of(name: str) -> Question:
    """The first question about a model."""
    return Question(_TINY if name == "tiny" else search.CASES[name])


def rows_of(name: str, folder: Path, only: Sequence[str]) -> list[Row]:
    """Changes of a question about a model; all of them where none is named."""
    filled = folder / "filled"
    first = asked(name, "nothing", filled)
    rows: list[Row] = []
    for change, _ in changes(question_of(name)):
        if only and change not in only:
            continue
        plain = asked(name, change, None)
        own = folder / "own"
        shutil.copytree(filled, own)
        kept = asked(name, change, own)
        shutil.rmtree(own)
        title = f"{name}, changed: {change}"
        rows.append(
            compared(
                title,
                kept["seconds"],
                "s",
                against="without a store",
                reference=plain["seconds"],
                bar=_BAR,
            )
        )
        is_same = kept["answer"] == plain["answer"]
        rows.append(measured(f"{title}: the same plan", float(is_same), ""))
        if change == "nothing":
            more = first["seconds"] / plain["seconds"] - 1
            rows.append(measured(f"{name}: what keeping adds to a first search", more, ""))
    size = sum(path.stat().st_size for path in filled.rglob("*.entry"))
    return [*rows, measured(f"{name}: store after the first search", size / 2**20, "MiB")]


def main() -> None:
    """The usual models, or those that are named; or one question, as a process of its own."""
    parser = argparse.ArgumentParser(description="Searches whose parts are in the store")
    parser.add_argument("--quick", action="store_true", help="a tiny model")
    parser.add_argument("--models", nargs="+", choices=search.CASES, help="only these")
    parser.add_argument("--changes", nargs="+", default=(), help="only these, by what they change")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here as well")
    parser.add_argument("--ask", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask is not None:
        name, change, place = options.ask
        question = dict(changes(question_of(name)))[change]
        print(json.dumps(question.ask(Path(place) if place else None)))
        return
    names = ["tiny"] if options.quick else options.models or ["GPT-350M", "GPT-2.6B"]
    rows: list[Row] = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            rows += rows_of(name, Path(folder), options.changes)
    print(f"{parser.description}\n\n{report.markdown(rows)}")
    report.write(rows, options.json)


if __name__ == "__main__":
    main()
