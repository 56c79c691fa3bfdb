"""Figure 7: models that grow with the devices, by several systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluation.cases import FAMILIES, Candidate, Family, System
from evaluation.cells import Cell, by_devices, of_linear, said_of, stages_text, table
from evaluation.figures import Key, Published
from evaluation.published_cuts import CUTS, CutCandidate
from evaluation.records import Record, best, of_kind
from evaluation.remarks import REMARKS

HEADS = (
    *("devices", "model", "system", "predicted", "paper", "ratio", "of linear", "paper's"),
    *("best of", "micro-batches", "stages", "planned"),
)
CUT_HEADS = (
    *("devices", "model", "published stages", "theirs by our prices", "our search"),
    *("ours over theirs", "planned"),
)

_TEXT = """## Figure 7: aggregate PFLOP/s, models that grow with the devices

FLOPs of a step are counted as the paper's code counts them, one forward phase computed again
included: 96 B S H² L (1 + S / 6H) + 6 B S H V for GPT, the like for the mixture, and for
Wide-ResNet four times the products and convolutions of the forward phase (the paper counted those
of XLA's program). They are divided by the step that is simulated from the plan. GPT and MoE compute
in f16 on f32 masters, on a batch of 1024; Wide-ResNet in f32 on a batch of
1536, 1520 on 64 devices, with group norm in place of batch norm. GPT is trained by AdamW, MoE by
Adafactor and Wide-ResNet by SGD with momentum, as in the authors' programs. Every plan computes a
layer again in the backward phase and has the schedule 1F1B, as in the paper. No communication
inside of a stage runs beside computation.

| system | ours |
| --- | --- |
| alpa | `PipeshardParallel(AutoStages())` |
| inter | every stage on one device, as many stages of about equal FLOPs as devices |
| intra | one stage on all devices, searched; micro-batches are accumulated |
| Megatron-LM | the best `MegatronParallel` whose state fits: powers of two, tensors in a host |
| DeepSpeed | `ExpertParallel` on one mesh, with and without ZeRO-3; micro-batches are accumulated |
| PP-DP | the best pipeline of data-parallel stages, in powers of two |

Pipelines of GPT have 8 layers within a host and 16 on more; those of MoE a layer for every dense
layer with the mixture behind it; those of Wide-ResNet 16, on 64 devices 33. The paper tuned the
number of micro-batches for every system; here it is given, in most cells one number, that of the
authors' published plan, on one device and for DeepSpeed on 32 larger micro-batches as well, and for
systems that keep more in a device one number of smaller ones. *of linear* is the part of so many
times the throughput of one device that is reached: ours of ours, the paper's of the paper's, so
that the level of the prices cancels. *best of* says how many plans were made for the cell,
*planned* on which day.
"""

_CUTS = """## The authors' own plans by our prices

The authors published stages, submeshes and micro-batches of the plans that their search found for
these models, with the code (`benchmark/alpa/suite_*.py`). Here our planner splits the stages that
they cut, and the step is simulated as above: a search of ours that is slower than its own prices of
their cut would be at fault.
"""


def figure_7(
    family: Family, records: Sequence[Record], figures: Mapping[Key, Published]
) -> list[Cell]:
    """Its cells, by devices. On one device all systems have the same plan."""
    cells = []
    for devices in family.sizes:
        for system in System:
            made = System.ALPA if devices == 1 else system
            own = planned(records, family.name, devices, made)
            name = family.rival if system is System.RIVAL else str(system)
            paper = figures["7", family.name, str(system), devices]
            cells.append(Cell(paper, best(own), len(own), family.sizes[devices], name))
    return cells


def planned(records: Sequence[Record], family: str, devices: int, system: System) -> list[Record]:
    """What was planned for a cell."""
    asked = (family, devices, system)
    return [
        record
        for candidate, record in of_kind(records, Candidate)
        if (candidate.family, candidate.devices, candidate.system) == asked
    ]


def figure_7_text(records: Sequence[Record], figures: Mapping[Key, Published]) -> str:
    """What the page says of it."""
    parts = [_TEXT]
    for family in FAMILIES.values():
        cells = figure_7(family, records, figures)
        if all(cell.record is None for cell in cells):
            continue
        one = by_devices(cells, System.ALPA)[1]
        # On one device the systems are one.
        told = [cell for cell in cells if cell.devices > 1 or cell.system == System.ALPA]
        rows = [_row(cell, one) for cell in cells if cell.record is not None]
        parts += [
            f"### {family.name}\n\n![{family.name}](images/evaluation_7_{slug(family.name)}.svg)\n",
            f"{table(HEADS, rows)}\n",
            _at_least(cells),
            said_of(told, System.ALPA, one.ratio, "One device"),
        ]
    return "\n".join(one for one in parts if one)


def slug(family: str) -> str:
    """For the name of a file."""
    return family.lower().replace("-", "_")


def _row(cell: Cell, one: Cell) -> list[str]:
    """A line of the table."""
    record = cell.record
    assert record is not None
    assert isinstance(record.candidate, Candidate)
    return [
        *cell.compared,
        *of_linear(cell, one),
        str(cell.count),
        str(record.candidate.num_micro_batches),
        stages_text(record),
        record.day,
    ]


def _at_least(cells: Sequence[Cell]) -> str:
    """In how many cells the throughput of our search is at least the paper's."""
    own = [c for c in cells if c.system == System.ALPA and c.record is not None]
    reached = [c for c in own if c.ratio is not None and c.ratio >= 1]
    text = f"Ours is at least the paper's Alpa in {len(reached)} of {len(own)} cells"
    below = [str(c.devices) for c in own if c not in reached]
    return f"{text}{', not on ' + ', '.join(below) if below else ''}.\n"


def cuts_text(records: Sequence[Record], figures: Mapping[Key, Published]) -> str:
    """What the page says of the plans that the authors published."""
    rows = []
    for candidate, record in of_kind(records, CutCandidate):
        family = FAMILIES[candidate.family]
        own = best(planned(records, family.name, candidate.devices, System.ALPA))
        rows.append((list(FAMILIES).index(family.name), candidate, record, own))
    if not rows:
        return ""
    rows.sort(key=lambda row: (row[0], row[1].devices))
    lines = [_cut_row(candidate, record, own) for _, candidate, record, own in rows]
    slower = [
        (candidate.family, candidate.devices)
        for _, candidate, record, own in rows
        if own is not None and (record.pflops or 0.0) > (own.pflops or 0.0) * (1 + 1e-4)
    ]
    verdict = "Our search is nowhere slower than its own prices of their cut."
    if slower:
        names = " and ".join(f"{family} on {devices}" for family, devices in slower)
        remarks = [REMARKS.get(("cut", family, "", n), "Not explained.") for family, n in slower]
        verdict = f"**Their cut is faster than what our search found for {names}.** "
        verdict += " ".join(dict.fromkeys(remarks))
    return f"{_CUTS}\n{table(CUT_HEADS, lines)}\n\n{verdict}\n"


def _cut_row(candidate: CutCandidate, record: Record, own: Record | None) -> list[str]:
    cut = CUTS[candidate.family, candidate.devices]
    sizes = ", ".join(
        f"{layers} on {hosts * devices}"
        for layers, (hosts, devices) in zip(cut.layers, cut.submeshes, strict=True)
    )
    if len(set(zip(cut.layers, cut.submeshes, strict=True))) == 1:
        sizes = f"{len(cut.layers)} × {sizes.partition(',')[0]}"
    theirs, ours = record.pflops, own.pflops if own is not None else None
    return [
        str(candidate.devices),
        FAMILIES[candidate.family].sizes[candidate.devices],
        sizes,
        f"{theirs:.4f}" if theirs else "does not fit" if record.is_too_large else "refused",
        f"{ours:.4f}" if ours else "not planned",
        f"{ours / theirs:.3f}" if ours and theirs else "",
        record.day,
    ]
