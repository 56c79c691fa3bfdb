"""The models, clusters and methods of the Alpa paper's figure 7, planned by our prices.

Table 4 of Zheng et al., OSDI 2022: the batch is one for all sizes of a family, models grow with the
devices. Micro-batches are those of the plans that the authors published with the code, where they
have not been varied.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import jax.numpy as jnp

import stablehlo_alpa
from evaluation.flops import gpt_flops, mixture_flops
from stablehlo_alpa import ClusterSpec, Method, zoo
from stablehlo_alpa.inter_op import AutoStages, StageOption, UniformStages
from stablehlo_alpa.layers import AutoLayers
from stablehlo_alpa.zoo.case import ModelCase
from stablehlo_alpa.zoo.models.gpt import SIZES as GPT_SIZES
from stablehlo_alpa.zoo.models.moe import SIZES as MOE_SIZES

# Of V100 in a p3.16xlarge.
_PER_HOST = 8

# Seconds of the solver on one mesh shape: a rival that takes longer counts with its best so far.
TIME_LIMIT_S = 60.0

# Bytes per parameter of f32 masters, two moments, and gradients: what a device cannot do without.
_STATE_BYTES = 16


def cluster_of(devices: int) -> ClusterSpec:
    """Hosts of p3.16xlarge, or a part of one."""
    hosts = max(1, devices // _PER_HOST)
    preset = ClusterSpec.preset(f"p3.16xlarge:{hosts}")
    return preset.part(hosts, min(devices, _PER_HOST))


class System(StrEnum):
    """What figure 7 compares."""

    ALPA = "alpa"
    RIVAL = "rival"
    INTER = "inter"
    INTRA = "intra"


@dataclass(frozen=True)
class Family:
    """Models that grow with the devices.

    Attributes:
        name: in ``measured/paper.csv``.
        rival: the system that people wrote by hand for it.
        sizes: devices -> name in the zoo.
        options: of the zoo's case.
        micro_batches: devices -> numbers of them that are tried.
        layers: devices -> how many a pipeline is cut into.
        smaller: devices -> a number of micro-batches that is tried as well where stages are not
            searched for, and may hold more.
        larger: devices -> numbers that are tried as well for a rival on one mesh, which gathers
            parameters for every micro-batch.
    """

    name: str
    rival: str
    sizes: Mapping[int, str]
    options: Mapping[str, Any]
    micro_batches: Mapping[int, tuple[int, ...]]
    layers: Mapping[int, int]
    smaller: Mapping[int, int]
    larger: Mapping[int, tuple[int, ...]]

    def case(self, devices: int) -> ModelCase:
        """The step of the model for so many devices."""
        options = dict(self.options)
        if self.name == "Wide-ResNet" and devices == 64:
            # As the authors' plan for 64 devices has it: 1536 is not divided by what fits.
            options["batch"] = 1520
        return zoo.find(self.sizes[devices]).case(**options)


# The paper: 8 or 16 for decoders.
_LAYERS: Mapping[int, int] = {1: 8, 4: 8, 8: 8, 16: 16, 32: 16, 64: 16}

FAMILIES: Mapping[str, Family] = {
    one.name: one
    for one in (
        Family(
            "GPT",
            "Megatron-LM",
            {
                1: "gpt-350m",
                4: "gpt-1.3b",
                8: "gpt-2.6b",
                16: "gpt-6.7b",
                32: "gpt-15b",
                64: "gpt-39b",
            },
            {"batch": 1024, "dtype": jnp.float16},
            {1: (512, 256, 128), 4: (128,), 8: (128,), 16: (64,), 32: (128,), 64: (64, 256)},
            _LAYERS,
            {16: 256, 32: 512, 64: 1024},
            {},
        ),
        Family(
            "MoE",
            "DeepSpeed",
            {1: "moe-380m", 4: "moe-1.3b", 8: "moe-2.4b", 16: "moe-10b", 32: "moe-27b"}
            | {64: "moe-70b"},
            # As the authors' programs train it.
            {"batch": 1024, "dtype": jnp.float16, "optimizer": "adafactor"},
            {1: (512, 256, 128), 4: (32,), 8: (32,), 16: (16, 64), 32: (128,), 64: (64, 128)},
            # Of a dense layer and a mixture.
            dict.fromkeys((1, 4, 8, 16, 32), 8) | {64: 16},
            {4: 128, 8: 128, 16: 128, 32: 512, 64: 256},
            {32: (16, 32)},
        ),
        Family(
            "Wide-ResNet",
            "PP-DP",
            {1: "wide-resnet-250m", 4: "wide-resnet-1b", 8: "wide-resnet-2b"}
            | {16: "wide-resnet-4b", 32: "wide-resnet-6.7b", 64: "wide-resnet-13b"},
            # Statistics of group norm are those of an image: the batch can be worked on in parts.
            {"batch": 1536, "norm": "group", "optimizer": "sgd"},
            {1: (24,), 4: (24,), 8: (24,), 16: (32,), 32: (32,), 64: (38,)},
            # Of as many residual blocks.
            dict.fromkeys((1, 4, 8, 16, 32), 16) | {64: 33},
            {4: 96, 8: 96, 16: 96, 32: 96, 64: 190},
            {},
        ),
    )
}


@dataclass(frozen=True)
class Candidate:
    """One way to plan one model.

    Attributes:
        family: of the model.
        devices: V100; the model follows.
        system: whose way it is.
        num_layers: that the model is cut into, each computed again in the backward phase.
        num_micro_batches: of a step.
        tensor, pipeline, zero: of the rival that has them.
    """

    family: str
    devices: int
    system: System
    num_layers: int
    num_micro_batches: int
    tensor: int = 1
    pipeline: int = 1
    zero: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "system", System(self.system))

    @property
    def cluster(self) -> ClusterSpec:
        """Hosts of p3.16xlarge, or a part of one."""
        return cluster_of(self.devices)

    @property
    def model(self) -> str:
        """Its name in the zoo."""
        return FAMILIES[self.family].sizes[self.devices]

    @property
    def name(self) -> str:
        """For lines and tables."""
        rival = f" t{self.tensor} p{self.pipeline} zero-{self.zero}"
        sizes = rival if self.system is System.RIVAL else ""
        return (
            f"{self.model} on {self.devices}, {self.system}{sizes}, "
            f"{self.num_micro_batches} micro-batches"
        )

    def case(self) -> ModelCase:
        """What is planned."""
        return FAMILIES[self.family].case(self.devices)

    def flops(self, case: ModelCase) -> float:
        """Of a step, as the paper counts them."""
        return step_flops(FAMILIES[self.family], self.devices, case)

    def method(self, case: ModelCase) -> Method:
        """How it is planned."""
        if self.system is System.RIVAL and self.family == "GPT":
            return stablehlo_alpa.MegatronParallel(
                tensor=self.tensor,
                pipeline=self.pipeline,
                recompute="full",
                num_micro_batches=self.num_micro_batches,
                time_limit_s=TIME_LIMIT_S,
            )
        return stablehlo_alpa.PipeshardParallel(
            layers=AutoLayers(num_layers=self.num_layers, remat=True),
            stages=self._stages(),
            schedule="1f1b",
            num_micro_batches=self.num_micro_batches,
            time_limit_s=TIME_LIMIT_S,
        )

    def _stages(self) -> StageOption:
        match self.system:
            case System.ALPA:
                return AutoStages()
            case System.INTER:
                return UniformStages(self.devices)
            case System.INTRA:
                return UniformStages(1)
        if self.family == "MoE":
            experts = MOE_SIZES[_size(self.model)].experts
            count = math.gcd(self.devices, experts)
            method = stablehlo_alpa.ExpertParallel(expert=count, zero=self.zero)
            return UniformStages(1, methods=method)
        return UniformStages(self.pipeline, methods=stablehlo_alpa.DataParallel())


def candidates(family: Family, devices: int, system: System) -> Iterator[Candidate]:
    """What is planned for a cell of the figure; the fastest counts.

    Nothing but the search is planned for one device, where all systems are one.
    """
    if devices == 1 and system is not System.ALPA:
        return
    layers = family.layers[devices]
    if system is System.INTER:
        layers = max(layers, devices)
    counts = family.micro_batches[devices]
    if system in (System.INTER, System.RIVAL) and devices in family.smaller:
        counts = (*counts, family.smaller[devices])
    if system is System.RIVAL:
        counts = (*counts, *family.larger.get(devices, ()))
    for count in counts:
        one = Candidate(family.name, devices, system, layers, count)
        if system is not System.RIVAL:
            yield one
        elif family.name == "GPT":
            yield from _megatron(one)
        elif family.name == "MoE":
            yield from (replace(one, zero=zero) for zero in (0, 3))
        else:
            depths = [1 << power for power in range(devices.bit_length())]
            yield from (replace(one, pipeline=depth) for depth in depths if depth <= layers)


def _megatron(one: Candidate) -> Iterator[Candidate]:
    """The grid of powers of two whose state fits, tensor parallelism within a host."""
    case = zoo.find(one.model)
    assert case.parameters is not None
    depth = GPT_SIZES[_size(one.model)].layers
    memory = one.cluster.device.memory_bytes
    for power in range(min(one.devices, _PER_HOST).bit_length()):
        tensor = 1 << power
        for pipeline in (1 << p for p in range((one.devices // tensor).bit_length())):
            fits = _STATE_BYTES * case.parameters <= memory * tensor * pipeline
            if fits and depth % pipeline == 0:
                yield replace(one, tensor=tensor, pipeline=pipeline)


def _size(model: str) -> str:
    """Of a family, "gpt-2.6b" -> "2.6B"."""
    return model.split("-", 1)[1].upper()


def step_flops(family: Family, devices: int, case: ModelCase) -> float:
    """FLOPs of a step as the paper's code counts them, the forward phase computed again included.

    For GPT and mixtures by its formulas; for Wide-ResNet, whose compiled program was counted, four
    times the products and convolutions of the forward phase.
    """
    batch, size = float(family.options["batch"]), _size(family.sizes[devices])
    if family.name == "GPT":
        return gpt_flops(batch, GPT_SIZES[size])
    if family.name == "MoE":
        return mixture_flops(batch, MOE_SIZES[size])
    return case.flops_per_step * 4 / 3
