"""Figure 9: what layers and stages of equal size cost against those that are searched for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import jax.numpy as jnp

from evaluation.cases import FAMILIES, TIME_LIMIT_S, Candidate, cluster_of, step_flops
from evaluation.models import EqualOperators, image_task
from stablehlo_alpa import ClusterSpec, Method, PipeshardParallel
from stablehlo_alpa.inter_op import AutoStages, UniformStages
from stablehlo_alpa.layers import AutoLayers, ManualLayers
from stablehlo_alpa.zoo.case import ModelCase
from stablehlo_alpa.zoo.models.gpt import GPT
from stablehlo_alpa.zoo.models.gpt import SIZES as GPT_SIZES
from stablehlo_alpa.zoo.models.wide_resnet import SIZES as RESNET_SIZES
from stablehlo_alpa.zoo.models.wide_resnet import WideResNet
from stablehlo_alpa.zoo.train_step import OPTIMIZERS, next_token_task, train_case

INTER_CELLS: Mapping[str, tuple[int, ...]] = {"GPT": (16,), "Wide-ResNet": (8, 16, 32)}

_MOST_STAGES = 8


class Cut(StrEnum):
    """What figure 9 compares with the search of figure 7, which it calls dp."""

    EQUAL_OPERATOR = "equal operator"
    EQUAL_LAYER = "equal layer"


@dataclass(frozen=True)
class InterCandidate:
    """One way to cut one model of figure 7.

    Attributes:
        family: of the model.
        devices: V100; the model follows.
        cut: ``EQUAL_OPERATOR``: layers of as many operators each, stages searched for;
            ``EQUAL_LAYER``: layers searched for, as many in every stage.
        num_layers: that the model is cut into, each computed again in the backward phase.
        num_micro_batches: of a step.
        stages: how many, of as many devices each; 0 where they are searched for.
    """

    family: str
    devices: int
    cut: Cut
    num_layers: int
    num_micro_batches: int
    stages: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "cut", Cut(self.cut))

    @property
    def cluster(self) -> ClusterSpec:
        """Hosts of p3.16xlarge, or a part of one."""
        return cluster_of(self.devices)

    @property
    def name(self) -> str:
        """For lines and tables."""
        stages = f" {self.stages} stages" if self.stages else ""
        return f"figure 9, {self.family} on {self.devices}, {self.cut}{stages}"

    def case(self) -> ModelCase:
        """What is planned."""
        family = FAMILIES[self.family]
        if self.cut is Cut.EQUAL_LAYER:
            return family.case(self.devices)
        model, batch = family.sizes[self.devices], family.options["batch"]
        if self.family == "GPT":
            sizes = GPT_SIZES[model.removeprefix("gpt-").upper()]
            decoder = EqualOperators(GPT(sizes, False, False, jnp.float16), self.num_layers)
            task = next_token_task(batch, sizes.sequence, sizes.vocabulary)
            return train_case(model, decoder, task, depth=self.num_layers)
        network = RESNET_SIZES[model.removeprefix("wide-resnet-").upper()]
        images = EqualOperators(
            WideResNet(network, family.options["norm"], False, False, jnp.float32), self.num_layers
        )
        optimizer, task = OPTIMIZERS[family.options["optimizer"]], image_task(network, batch)
        return train_case(model, images, task, depth=self.num_layers, optimizer=optimizer)

    def flops(self, case: ModelCase) -> float:
        """Of a step, as the paper counts them."""
        return step_flops(FAMILIES[self.family], self.devices, case)

    def method(self, case: ModelCase) -> Method:
        """How it is planned."""
        is_equal = self.cut is Cut.EQUAL_OPERATOR
        return PipeshardParallel(
            layers=(
                ManualLayers(remat=True)
                if is_equal
                else AutoLayers(num_layers=self.num_layers, remat=True)
            ),
            stages=UniformStages(self.stages) if self.stages else AutoStages(),
            schedule="1f1b",
            num_micro_batches=self.num_micro_batches,
            time_limit_s=TIME_LIMIT_S,
        )


def inter_candidates(searched: Candidate) -> Iterator[InterCandidate]:
    """What stands beside a search of figure 7; of equal layers the fastest number of stages counts.

    Args:
        searched: the search.
    """
    family, devices = searched.family, searched.devices
    layers, count = searched.num_layers, searched.num_micro_batches
    yield InterCandidate(family, devices, Cut.EQUAL_OPERATOR, layers, count)
    for power in range(1, _MOST_STAGES.bit_length()):
        stages = 1 << power
        if stages <= devices:
            yield InterCandidate(family, devices, Cut.EQUAL_LAYER, layers, count, stages)
