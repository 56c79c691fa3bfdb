"""The page on the paper's evaluation, from what was planned: docs/evaluation.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from paper_cases import FAMILIES, Family, System
from paper_figures import Key, Published, published
from paper_records import Record, best
from paper_remarks import REMARKS

from stablehlo_alpa.units import format_seconds

FAR = 0.2
"""A ratio further from 1 than this has a sentence."""

HEADS = (
    *("devices", "model", "system", "predicted", "paper", "ratio", "of linear", "paper's"),
    *("best of", "micro-batches", "stages", "planned"),
)
SEARCH_HEADS = ("devices", "model", "ours", "paper", "ratio", "planned")

_HEAD = """# The paper's evaluation

Written by `benchmarks/paper.py`: figures of [Alpa's paper](https://arxiv.org/abs/2201.12023)
(Zheng et al., OSDI 2022) beside what our searches find for the same models on `p3.16xlarge`, as
the preset describes it. **Nothing on this page ran on a V100**: the column *predicted* has
predictions of our prices for our plans, *paper* what the authors measured, read off their figures
with the errors of `benchmarks/measured/paper.csv`. Times of the search are measured, on the machine
that wrote this page.
"""

_FIGURE_7 = """## Figure 7: aggregate PFLOP/s, models that grow with the devices

FLOPs of a step are counted as the paper's code counts them, one forward phase computed again
included: 96 B S H² L (1 + S / 6H) + 6 B S H V for GPT, the like for the mixture, and for
Wide-ResNet four times the products and convolutions of the forward phase (the paper counted those
of XLA's program). They are divided by the step that is simulated from the plan. GPT and MoE compute
in f16 on f32 masters with Adam's two moments, on a batch of 1024; Wide-ResNet in f32 on a batch of
1536, 1520 on 64 devices, with group norm in place of batch norm. Every plan computes a layer
again in the backward phase and has the schedule 1F1B, as in the paper. No communication inside of a
stage runs beside computation.

| system | ours |
| --- | --- |
| alpa | `PipeshardParallel(AutoStages())`, 8 layers within a host, 16 on more |
| inter | every stage on one device, as many stages of about equal FLOPs as devices |
| intra | one stage on all devices, searched; micro-batches are accumulated |
| Megatron-LM | the best `MegatronParallel` whose state fits: powers of two, tensors in a host |
| DeepSpeed | `ExpertParallel` on one mesh; micro-batches are accumulated |
| PP-DP | the best pipeline of data-parallel stages, in powers of two |

The paper tuned the number of micro-batches for every system; here it is given, in most cells one
number, that of the authors' published plan (one device: 128 in place of 512). *of linear* is the
part of so many times the throughput of one device that is reached: ours of ours, the paper's of the
paper's, so that the level of the prices cancels. *best of* says how many plans were made for the
cell, *planned* on which day.
"""


@dataclass(frozen=True)
class Cell:
    """A figure of the paper, and ours.

    Attributes:
        family: of models.
        devices: V100.
        system: one of figure 7.
        paper: theirs.
        record: ours; None where nothing was planned.
        count: plans that were made for it.
    """

    family: Family
    devices: int
    system: System
    paper: Published
    record: Record | None
    count: int

    @property
    def ours(self) -> float | None:
        """PFLOP/s."""
        return self.record.pflops if self.record is not None else None

    @property
    def ratio(self) -> float | None:
        """Ours over theirs; None where one of both is not there or 0."""
        if self.ours is None or not self.paper.value:
            return None
        return self.ours / self.paper.value

    @property
    def system_name(self) -> str:
        """The system as people call it."""
        return self.family.rival if self.system is System.RIVAL else str(self.system)

    @property
    def name(self) -> str:
        """For a sentence."""
        return f"{self.family.name} on {self.devices}, {self.system_name}"


def page(records: Sequence[Record]) -> str:
    """The page of what was planned.

    Args:
        records: of each candidate one.
    """
    figures = published()
    parts = [_HEAD, _codes(records), _FIGURE_7]
    for family in FAMILIES.values():
        cells = figure_7(family, records, figures)
        planned = [entry for entry in with_linear(cells) if entry[0].record is not None]
        if not planned:
            continue
        lines = sentences(cells)
        parts.append(f"### {family.name}\n\n{table(HEADS, map(cell_row, planned))}\n")
        if lines:
            parts.append(
                f"Cells off by more than {FAR:.0%}, without a figure of one of both, or in which "
                "our search is beaten:\n\n" + "\n".join(f"- {one}" for one in lines) + "\n"
            )
    parts += [_searches(records, figures), _not_done(records)]
    return "\n".join(one for one in parts if one)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [" | ".join(heads), " | ".join("---" for _ in heads), *map(" | ".join, rows)]
    return "\n".join(f"| {line} |" for line in lines)


def figure_7(
    family: Family, records: Sequence[Record], figures: Mapping[Key, Published]
) -> list[Cell]:
    """Its cells, by devices. On one device there is one plan, which is that of all systems."""
    cells = []
    for devices in family.sizes:
        for system in System:
            made = System.ALPA if devices == 1 else system
            own = _planned(records, family.name, devices, made)
            paper = figures["7", family.name, str(system), devices]
            cells.append(Cell(family, devices, system, paper, best(own), len(own)))
    return cells


def with_linear(cells: Sequence[Cell]) -> list[tuple[Cell, float | None, float | None]]:
    """Cells with the parts of linear growth that ours and theirs reach."""
    one = base(cells)
    found = []
    for cell in cells:
        ours = theirs = None
        if cell.ours is not None and one is not None and one.ours:
            ours = cell.ours / one.ours / cell.devices
        if cell.paper.value is not None and one is not None and one.paper.value:
            theirs = cell.paper.value / one.paper.value / cell.devices
        found.append((cell, ours, theirs))
    return found


def base(cells: Iterable[Cell]) -> Cell | None:
    """That of one device."""
    return next((c for c in cells if c.devices == 1 and c.system is System.ALPA), None)


def cell_row(entry: tuple[Cell, float | None, float | None]) -> list[str]:
    """A line of the table of figure 7."""
    cell, ours, theirs = entry
    record = cell.record
    if record is None:
        predicted = "not planned"
    elif cell.ours is None:
        predicted = "does not fit" if record.is_too_large else "refused"
    else:
        predicted = f"{cell.ours:.4f}"
    return [
        str(cell.devices),
        cell.family.sizes[cell.devices],
        cell.system_name,
        predicted,
        cell.paper.outcome or f"{cell.paper.value:g}",
        "" if cell.ratio is None else f"{cell.ratio:.2f}",
        "" if ours is None else f"{ours:.0%}",
        "" if theirs is None else f"{theirs:.0%}",
        str(cell.count or ""),
        str(record.candidate.num_micro_batches) if record is not None else "",
        _stages(record),
        record.day if record is not None else "",
    ]


def _stages(record: Record | None) -> str:
    """Meshes of the stages, equal neighbours counted."""
    if record is None or record.step_s is None:
        return ""
    runs: list[tuple[str, int]] = []
    for shape in record.stages:
        if runs and runs[-1][0] == shape:
            runs[-1] = (shape, runs[-1][1] + 1)
        else:
            runs.append((shape, 1))
    return ", ".join(f"{count} × {shape}" if count > 1 else shape for shape, count in runs)


def sentences(cells: Sequence[Cell]) -> list[str]:
    """One for every cell that is far off, or where one of both has no figure."""
    one = base(cells)
    level = one.ratio if one is not None else None
    found = []
    for cell in cells:
        if cell.record is None or (cell.devices == 1 and cell.system is not System.ALPA):
            continue
        if cell.ratio is None:
            said = _without(cell)
        elif abs(cell.ratio - 1) <= FAR:
            continue
        else:
            said = f"{cell.ratio:.2f} times the paper's. {_why(cell, level)}"
        if said:
            found.append(f"**{cell.name}**: {said}")
    return found + _beaten(cells)


def _beaten(cells: Sequence[Cell]) -> list[str]:
    """Where our search is slower than a plan among those that it looks for."""
    searched = {cell.devices: cell for cell in cells if cell.system is System.ALPA}
    found = []
    for cell in cells:
        own = searched[cell.devices].ours
        if own is not None and cell.ours is not None and cell.ours > own:
            found.append(
                f"**{cell.name}**: {cell.ours / own - 1:.1%} faster than what our search for "
                "pipelines found, by the same prices. Not explained."
            )
    return found


def _why(cell: Cell, level: float | None) -> str:
    """What is known of the ratio: the part that one device has, and the rest."""
    remark = REMARKS.get((cell.family.name, str(cell.system), cell.devices))
    if cell.devices == 1:
        return remark or "Not explained."
    if level is None or cell.ratio is None:
        return remark or "Not explained."
    rest = cell.ratio / level
    shared = f"One device has {level:.2f}, which leaves {rest:.2f}"
    if abs(rest - 1) <= FAR:
        return f"{shared}: it is the level of one device. {remark or ''}".strip()
    return f"{shared}. {remark or 'That is not explained.'}"


def _without(cell: Cell) -> str:
    """Where one of both has no figure."""
    remark = REMARKS.get((cell.family.name, str(cell.system), cell.devices))
    assert cell.record is not None
    if cell.ours is None:
        if cell.paper.value is None:
            return ""
        # What lives where it lacks the most is for who plans it.
        reason = cell.record.reason.partition("; largest live tensors")[0]
        return f"ours has no plan ({reason}). {remark or 'Not explained.'}"
    if cell.paper.value is None:
        return (
            f"the paper's ran out of memory, ours fits by our prices. {remark or 'Not explained.'}"
        )
    return f"the paper's is too small to be read. {remark or 'Not explained.'}"


def _codes(records: Sequence[Record]) -> str:
    """By how many states of the planner it was made."""
    codes = {one.code for one in records}
    if len(codes) < 2:
        return ""
    return f"The plans were made by {len(codes)} states of the planner.\n"


def _searches(records: Sequence[Record], figures: Mapping[Key, Published]) -> str:
    """Figure 10 and table 5: ours of the fastest plan of each model."""
    gpt, rows = FAMILIES["GPT"], []
    for devices in (2, *(n for n in gpt.sizes if n > 1)):
        paper = figures["10", "GPT", "alpa", devices].value
        assert paper is not None
        rows.append(search_row(gpt.sizes.get(devices, ""), devices, paper, _own(records, devices)))
    parts = {key[2]: one.value for key, one in figures.items() if key[0] == "table 5"}
    total = parts["total"]
    assert total is not None
    own = _own(records, 64)
    text = "The model for 64 devices was not searched."
    if own is not None:
        text = (
            f"All of it took {total:.0f} s in the paper for one number of micro-batches; our "
            f"search took {own.search_s:.0f} s, {own.search_s / total:.3f} of that."
        )
    return f"""## Figure 10 and table 5: time of the search, GPT

Ours is measured on two cores, from the Python function to the checked plan, tracing included, for
the number of micro-batches of the fastest plan above. The paper's includes compiling stages,
which ran on the cluster, and profiling them; ours compiles nothing and prices operators instead:
that is no like for like. Each is one run: two runs on one machine have differed by a half. The
paper's model for two devices is in none of its tables and not in our zoo.

{table(SEARCH_HEADS, rows)}

The parts of table 5 for GPT-39B on 64 devices (compilation {parts["compilation"]} s, profiling
{parts["profiling"]} s, stage construction {parts["stage construction"]} s, other
{parts["other"]} s) have no counterparts in ours. {text}
"""


def _own(records: Sequence[Record], devices: int) -> Record | None:
    """Our search for the GPT of so many devices."""
    return best(_planned(records, "GPT", devices, System.ALPA))


def _planned(records: Sequence[Record], family: str, devices: int, system: System) -> list[Record]:
    """What was planned for a cell."""
    asked = (family, devices, system)
    return [
        one
        for one in records
        if (one.candidate.family, one.candidate.devices, one.candidate.system) == asked
    ]


def search_row(model: str, devices: int, paper: float, record: Record | None) -> list[str]:
    """A line of the table of figure 10."""
    if record is None:
        return [str(devices), model or "GPT-760M", "not planned", f"{paper:g} s", "", ""]
    ours = format_seconds(record.search_s)
    ratio = f"{record.search_s / paper:.3f}"
    return [str(devices), model, ours, f"{paper:g} s", ratio, record.day]


def _not_done(records: Sequence[Record]) -> str:
    """What the page does not have."""
    asked = {(o.candidate.family, o.candidate.devices, o.candidate.system) for o in records}
    missing = []
    for family in FAMILIES.values():
        if all(one.candidate.family != family.name for one in records):
            missing.append(f"all of {family.name}")
            continue
        for system in System:
            absent = [
                str(devices)
                for devices in family.sizes
                if (family.name, devices, system) not in asked
                and (devices > 1 or system is System.ALPA)
            ]
            if absent:
                name = family.rival if system is System.RIVAL else system
                missing.append(f"{family.name} {name} on {', '.join(absent)}")
    lines = [
        "Figure 8 (intra-operator ablation): the paper does not give the sizes of its models.",
        "Figure 9 (inter-operator ablation): not done.",
        "Figure 11 (cross-mesh resharding): not done as throughput; bytes between stages are among "
        "the [benchmarks](benchmarks.md#resharding).",
        "Figure 12 (the Wide-ResNet plan): not done.",
    ]
    if missing:
        lines.append(f"Of figure 7: {'; '.join(missing)}.")
    return "## Not done\n\n" + "\n".join(f"- {one}" for one in lines) + "\n"
