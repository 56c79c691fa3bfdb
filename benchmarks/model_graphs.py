"""Strategy graphs of full-size models, from shapes alone: nothing of their size is allocated."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from models import encoder_decoder, gpt, llama, moe, unet, wide_resnet
from models.case import TrainCase

from stablehlo_alpa import compiler
from stablehlo_alpa.cluster import ClusterSpec, LogicalMesh, preset_for
from stablehlo_alpa.compiler import Module
from stablehlo_alpa.cost import PricedGraph, price
from stablehlo_alpa.frontend import TracedProgram, trace

DEVICE = preset_for("v100")

# hidden 1024 as in the paper's smallest models; the vocabulary of GPT-2, rounded up to divide.
GPT: dict[str, Any] = {"hidden": 1024, "heads": 16, "vocabulary": 50304, "length": 1024}

MODELS: dict[str, Callable[[], TrainCase]] = {
    "Llama-3 8B": lambda: llama.make(batch=64, length=2048, **llama.LLAMA_3_8B),
    "MoE 16 layers": lambda: moe.make(
        batch=64, layers=16, experts=64, hidden=1024, vocabulary=32000, length=1024
    ),
    "Wide-ResNet-101": lambda: wide_resnet.make(batch=256, **wide_resnet.WIDE_RESNET_101),
    "U-Net": lambda: unet.make(batch=64, size=64, channels=(128, 256, 512, 512), blocks=2),
    "encoder-decoder 12 layers": lambda: encoder_decoder.make(
        batch=64, layers=12, hidden=768, heads=12, vocabulary=32128, length=512
    ),
}


def gpt_of(layers: int, batch: int = 64, *, is_jitted: bool = False) -> Callable[[], TrainCase]:
    """A GPT of some layers."""
    return lambda: gpt.make(layers=layers, batch=batch, is_jitted=is_jitted, **GPT)


def abstract_case(make: Callable[[], TrainCase]) -> tuple[Any, Any]:
    """A train step and its arguments' shapes.

    Returns:
        the step, and its arguments as a pytree of ``jax.ShapeDtypeStruct``.
    """
    found: list[TrainCase] = []

    def build() -> Any:
        found.append(make())
        return found[0].args

    args = jax.eval_shape(build)
    return found[0].step, args


def trace_case(make: Callable[[], TrainCase]) -> TracedProgram:
    """The train step of a model as StableHLO."""
    step, args = abstract_case(make)
    return trace(step, args, {})


def prepare(program: TracedProgram) -> Module:
    """The module with operators merged, as planning goes on with it: it stays parsed."""
    module = Module(program.text, program.name)
    module.run(f"alpa-prepare-pipeline{{{program.state_option}}}")
    return module


def mesh_of(shape: tuple[int, ...]) -> LogicalMesh:
    """A logical mesh on hosts of eight V100; fewer devices are one host of two."""
    count = math.prod(shape)
    hosts = max(count // 8, 2)
    return ClusterSpec(DEVICE, hosts, count // hosts).logical_mesh(shape)


def enumerate_strategies(merged: Module, mesh: LogicalMesh) -> PricedGraph:
    """The strategies of a merged module on a mesh, priced."""
    return price(compiler.enumerate_strategies(merged, mesh, merged.name), mesh, DEVICE)


def perturbed(priced: PricedGraph, seed: int = 0) -> PricedGraph:
    """The graph with every cost 0 to 20 % higher, each by its own share: no two layers equal."""
    rng = np.random.default_rng(seed)

    def noisy(values: np.ndarray) -> np.ndarray:
        return values * rng.uniform(1.0, 1.2, values.shape)

    return replace(
        priced,
        compute_s=noisy(priced.compute_s),
        communication_s=noisy(priced.communication_s),
        edges={pair: noisy(table) for pair, table in priced.edges.items()},
    )
