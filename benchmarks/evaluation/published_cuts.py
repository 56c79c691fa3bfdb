"""The plans that the authors found and published with the code, priced by us.

``benchmark/alpa/suite_auto_gpt.py``, ``suite_auto_moe.py`` and ``suite_wresnet.py`` of the paper's
repository list stages, submeshes and micro-batches of their searches. Cut and submeshes are taken
as they are; how a stage is split is searched, so that nothing is lost to an axis that is called
otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evaluation.cases import FAMILIES, TIME_LIMIT_S, cluster_of, step_flops
from stablehlo_alpa import ClusterSpec, Method, PipeshardParallel
from stablehlo_alpa.inter_op import ManualStages
from stablehlo_alpa.layers import AutoLayers
from stablehlo_alpa.zoo.case import ModelCase

_HOST, _HALF, _PAIR = (1, 8), (1, 4), (1, 2)


@dataclass(frozen=True)
class PublishedCut:
    """Layers and submesh of every stage.

    Attributes:
        layers: of each stage.
        submeshes: hosts and devices of each.
    """

    layers: tuple[int, ...]
    submeshes: tuple[tuple[int, int], ...]

    @classmethod
    def even(cls, stages: int, layers: int, submesh: tuple[int, int]) -> PublishedCut:
        """As many layers in every stage."""
        return cls((layers // stages,) * stages, (submesh,) * stages)


CUTS: Mapping[tuple[str, int], PublishedCut] = {
    ("GPT", 4): PublishedCut.even(2, 8, _PAIR),
    ("GPT", 8): PublishedCut((2, 2, 4), (_PAIR, _PAIR, _HALF)),
    ("GPT", 16): PublishedCut.even(2, 16, _HOST),
    ("GPT", 32): PublishedCut.even(4, 16, _HOST),
    ("GPT", 64): PublishedCut.even(16, 16, _HALF),
    ("MoE", 4): PublishedCut.even(2, 8, _PAIR),
    ("MoE", 8): PublishedCut.even(2, 8, _HALF),
    ("MoE", 16): PublishedCut.even(2, 8, _HOST),
    ("MoE", 32): PublishedCut.even(8, 8, _HALF),
    ("MoE", 64): PublishedCut.even(8, 16, _HOST),
    ("Wide-ResNet", 8): PublishedCut((8, 8), (_HALF, _HALF)),
    ("Wide-ResNet", 16): PublishedCut((5, 4, 7), (_HALF, _HALF, _HOST)),
    ("Wide-ResNet", 32): PublishedCut((5, 4, 4, 3), (_HOST,) * 4),
    ("Wide-ResNet", 64): PublishedCut((4, 4, 4, 4, 4, 4, 5, 4), (_HOST,) * 8),
}

# Where it is not the first that the search is tried with.
_MICRO_BATCHES: Mapping[tuple[str, int], int] = {("GPT", 64): 1024}


@dataclass(frozen=True)
class CutCandidate:
    """A model of figure 7, cut as the authors' search cut it.

    Attributes:
        family: of the model.
        devices: V100; the model follows.
        num_micro_batches: of a step.
    """

    family: str
    devices: int
    num_micro_batches: int

    @property
    def cluster(self) -> ClusterSpec:
        """Hosts of p3.16xlarge, or a part of one."""
        return cluster_of(self.devices)

    @property
    def name(self) -> str:
        """For lines and tables."""
        return f"{self.family} on {self.devices}, as published"

    def case(self) -> ModelCase:
        """What is planned."""
        return FAMILIES[self.family].case(self.devices)

    def flops(self, case: ModelCase) -> float:
        """Of a step, as the paper counts them."""
        return step_flops(FAMILIES[self.family], self.devices, case)

    def method(self, case: ModelCase) -> Method:
        """How it is planned."""
        cut = CUTS[self.family, self.devices]
        return PipeshardParallel(
            layers=AutoLayers(num_layers=sum(cut.layers), remat=True),
            stages=ManualStages(cut.layers, cut.submeshes),
            schedule="1f1b",
            num_micro_batches=self.num_micro_batches,
            time_limit_s=TIME_LIMIT_S,
        )


def cut_candidates(family: str, devices: int) -> Iterator[CutCandidate]:
    """What stands beside a search, with the authors' number of micro-batches; maybe nothing."""
    key = family, devices
    if key in CUTS:
        usual = FAMILIES[family].micro_batches[devices][0]
        yield CutCandidate(family, devices, _MICRO_BATCHES.get(key, usual))
