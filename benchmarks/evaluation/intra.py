"""Figure 8: ways to split one step over the devices of one host, without a pipeline.

The paper does not print the sizes of its models; they are those of the experiment that the authors
published with the code (``benchmark/alpa/exp_intra_ablation.py``): wide and shallow, the batch one
for all numbers of devices, worked on at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import jax
from jax.sharding import PartitionSpec

from evaluation.cases import TIME_LIMIT_S, cluster_of
from evaluation.flops import gpt_flops, mixture_flops
from evaluation.models import decoder_case, image_case, mixture_case
from stablehlo_alpa import (
    ClusterSpec,
    DataParallel,
    ManualSharding,
    Method,
    ShardParallel,
    Zero2Parallel,
    Zero3Parallel,
)
from stablehlo_alpa.zoo.case import ModelCase
from stablehlo_alpa.zoo.models.gpt import GPTSizes
from stablehlo_alpa.zoo.models.moe import MoESizes
from stablehlo_alpa.zoo.models.wide_resnet import WideResNetSizes

_AXIS = "devices"
_SEQUENCES, _IMAGES = 8, 32
_RESNET_50 = (3, 4, 6, 3)

GPT: Mapping[int, GPTSizes] = {
    1: GPTSizes(8, 2048, 16, vocabulary=25600),
    2: GPTSizes(8, 3072, 24, vocabulary=25600),
    4: GPTSizes(8, 4096, 32, vocabulary=25600),
    8: GPTSizes(8, 5760, 40, vocabulary=25600),
}
MOE: Mapping[int, MoESizes] = {
    1: MoESizes(8, 1024, 32, 8, vocabulary=51200, group=1024),
    2: MoESizes(8, 1280, 40, 16, vocabulary=51200, group=1024),
    4: MoESizes(8, 1536, 24, 16, vocabulary=51200, group=1024),
    8: MoESizes(8, 1536, 24, 32, vocabulary=51200, group=1024),
}
WIDE_RESNET: Mapping[int, WideResNetSizes] = {
    1: WideResNetSizes(_RESNET_50, 160, 2),
    2: WideResNetSizes(_RESNET_50, 224, 2),
    4: WideResNetSizes(_RESNET_50, 320, 2),
    8: WideResNetSizes(_RESNET_50, 448, 2),
}
INTRA_FAMILIES = ("GPT", "MoE", "Wide-ResNet")
INTRA_DEVICES = (1, 2, 4, 8)


class Way(StrEnum):
    """What figure 8 compares."""

    DATA = "data"
    ZERO_2 = "zero-2"
    ZERO_3 = "zero-3"
    HEURISTIC = "heuristic"
    ILP = "ilp"


@dataclass(frozen=True)
class IntraCandidate:
    """One way to split one model over one mesh.

    Attributes:
        family: of the model.
        devices: V100 of one host; the model follows.
        way: of splitting.
    """

    family: str
    devices: int
    way: Way

    def __post_init__(self) -> None:
        object.__setattr__(self, "way", Way(self.way))

    @property
    def cluster(self) -> ClusterSpec:
        """A part of a p3.16xlarge."""
        return cluster_of(self.devices)

    @property
    def name(self) -> str:
        """For lines and tables."""
        return f"figure 8, {self.family} on {self.devices}, {self.way}"

    def case(self) -> ModelCase:
        """What is planned: layers of GPT and MoE are computed again in the backward phase."""
        name = f"{self.family.lower()}-{self.devices}"
        if self.family == "GPT":
            return decoder_case(name, GPT[self.devices], _SEQUENCES, remat=True)
        if self.family == "MoE":
            return mixture_case(name, MOE[self.devices], _SEQUENCES, remat=True)
        return image_case(name, WIDE_RESNET[self.devices], _IMAGES, "batch")

    def flops(self, case: ModelCase) -> float:
        """Of a step, as the paper counts them; the Wide-ResNets compute nothing twice."""
        if self.family == "GPT":
            return gpt_flops(_SEQUENCES, GPT[self.devices])
        if self.family == "MoE":
            return mixture_flops(_SEQUENCES, MOE[self.devices])
        return case.flops_per_step

    def method(self, case: ModelCase) -> Method:
        """How it is planned, the batch as a whole."""
        options: dict[str, Any] = {"num_micro_batches": 1, "time_limit_s": TIME_LIMIT_S}
        match self.way:
            case Way.DATA:
                return DataParallel(**options)
            case Way.ZERO_2:
                return Zero2Parallel(**options)
            case Way.ZERO_3:
                return Zero3Parallel(**options)
            case Way.HEURISTIC:
                return ManualSharding(
                    mesh_shape=(self.devices,),
                    names=(_AXIS,),
                    in_specs=dict(enumerate(largest_split(case.args, self.devices))),
                    **options,
                )
        return ShardParallel(**options)


def largest_split(args: Any, devices: int) -> Any:
    """The same tree of `PartitionSpec`: of each input the largest dimension that divides is split.

    Args:
        args: pytree of what has a shape.
        devices: that it is split over.
    """

    def spec(leaf: Any) -> PartitionSpec:
        sizes = [size if size % devices == 0 else 0 for size in leaf.shape]
        if not any(sizes) or math.prod(leaf.shape) == 0:
            return PartitionSpec()
        largest = sizes.index(max(sizes))
        return PartitionSpec(*(_AXIS if n == largest else None for n in range(largest + 1)))

    return jax.tree.map(spec, args)


def intra_candidates(family: str, devices: int) -> Iterator[IntraCandidate]:
    """What is planned for the bars of one model, our search first."""
    for way in reversed(Way):
        yield IntraCandidate(family, devices, way)
