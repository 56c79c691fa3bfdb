"""What stays whole on 8 devices: shares of FLOPs and of bytes, of models made of packages.

Train and sampling steps, planned by `ShardParallel` without pins. An operator whose strategy splits
no loop is done by every device, be it that it cannot be split or that splitting it would take
longer; its share is that of the step, by the program as it is planned. What devices do to shares of
a sum, as adding up gradients over the turns of a loop, counts as well.
"""

import report

report.prepare_devices(8)

from dataclasses import dataclass

from replicated_cases import QUICK, STEPS, Step
from report import Row

import stablehlo_alpa
from stablehlo_alpa.compiler.measures import Work

NUM_DEVICES = 8
CLUSTER = "dgx-a100:1"
# The part of its FLOPs that no model may have whole.
BAR = 0.02


@dataclass(frozen=True)
class Whole:
    """Parts of a step that every device does.

    Attributes:
        flops, bytes: of those of the step.
    """

    flops: float
    bytes: float


def whole_of(step: Step) -> Whole:
    """What stays whole of a step as it is planned."""
    method = stablehlo_alpa.ShardParallel(mesh_shape=(1, NUM_DEVICES))
    parallel = stablehlo_alpa.parallelize(step.fun, method=method, cluster=CLUSTER)
    work = Work.of(parallel.plan(*step.args).module_text("planned"))
    is_whole = ~work.is_split
    return Whole(
        flops=float(work.flops[is_whole].sum() / max(1.0, work.flops.sum())),
        bytes=float(work.bytes[is_whole].sum() / max(1.0, work.bytes.sum())),
    )


def measure(quick: bool) -> list[Row]:
    """Two rows a model; that of the FLOPs has a bar."""
    rows = []
    for name in QUICK if quick else STEPS:
        whole = whole_of(STEPS[name]())
        rows += [
            report.limited(f"{name}: FLOPs that stay whole", whole.flops, "", bar=BAR),
            report.measured(f"{name}: bytes that stay whole", whole.bytes, ""),
        ]
    return rows


if __name__ == "__main__":
    report.main(__doc__ or "", measure)
