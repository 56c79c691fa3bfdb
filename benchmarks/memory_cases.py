"""What ``memory.py`` plans: the suite's models in sizes whose peaks are tensors, not tables.

Nothing is computed: parameters and batches are shapes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from models.case import TrainCase

import stablehlo_alpa


@dataclass(frozen=True)
class MemoryCase:
    """A train step in shapes.

    Attributes:
        step: ``step(state, batch, rng)``.
        args: pytrees of ``jax.ShapeDtypeStruct``.
    """

    step: Callable[..., Any]
    args: tuple[Any, ...]

    def plan(
        self, method: stablehlo_alpa.Method, cluster: stablehlo_alpa.ClusterSpec
    ) -> stablehlo_alpa.Plan:
        """The step under a method; the state is donated."""
        step = stablehlo_alpa.parallelize(
            self.step, method=method, donate_argnums=0, cluster=cluster
        )
        return step.plan(*self.args)


@dataclass(frozen=True)
class Sizes:
    """A model of the suite and its sizes.

    Attributes:
        module: of ``tests/py/models``.
        sizes: what its ``make`` is called with.
    """

    module: str
    sizes: Mapping[str, Any] = field(hash=False)

    def case(self) -> MemoryCase:
        """The step of the model, of which no array is made."""
        made: list[TrainCase] = []

        def args() -> tuple[Any, ...]:
            made.append(importlib.import_module(f"models.{self.module}").make(**self.sizes))
            return made[0].args

        shapes = jax.eval_shape(args)
        return MemoryCase(made[0].step, shapes)


_GPT = {"layers": 4, "hidden": 1024, "heads": 16, "vocabulary": 50304, "length": 512, "batch": 64}

MODELS: Mapping[str, Sizes] = {
    "mlp": Sizes(
        "mlp", {"batch": 8192, "inputs": 1024, "hidden": 4096, "outputs": 1024, "layers": 4}
    ),
    "gpt bf16": Sizes("gpt", {**_GPT, "dropout": 0.0, "dtype": jnp.bfloat16}),
    "gpt f32 dropout": Sizes("gpt", {**_GPT, "layers": 2, "vocabulary": 32000}),
    "gpt scanned": Sizes("gpt", {**_GPT, "vocabulary": 32000, "is_scanned": True}),
    "llama bf16": Sizes(
        "llama",
        {
            "batch": 64,
            "layers": 4,
            "hidden": 1024,
            "heads": 16,
            "groups": 8,
            "inner": 2816,
            "vocabulary": 32000,
            "length": 512,
            "dtype": jnp.bfloat16,
        },
    ),
    "moe": Sizes("moe", {"batch": 64, "hidden": 512, "vocabulary": 16384, "length": 256}),
    "vit": Sizes(
        "vit",
        {
            "batch": 512,
            "size": 128,
            "patch": 16,
            "hidden": 768,
            "heads": 12,
            "layers": 4,
            "classes": 1024,
        },
    ),
    "wide_resnet": Sizes(
        "wide_resnet",
        {"batch": 512, "size": 64, "blocks": (2, 2, 2), "channels": 128, "classes": 1024},
    ),
    "unet": Sizes("unet", {"batch": 256, "size": 64, "channels": (128, 256), "blocks": 2}),
    "encoder_decoder": Sizes(
        "encoder_decoder",
        {
            "batch": 64,
            "layers": 2,
            "hidden": 512,
            "heads": 8,
            "vocabulary": 16384,
            "length": 256,
        },
    ),
    "lstm": Sizes(
        "lstm", {"batch": 512, "length": 128, "hidden": 1024, "layers": 2, "vocabulary": 8192}
    ),
    "mixer": Sizes(
        "mixer",
        {"batch": 512, "size": 128, "patch": 8, "hidden": 512, "layers": 4, "classes": 1024},
    ),
}
"""By name."""

QUICK_MODELS = ("mlp", "gpt bf16", "mixer")

MESH_SHAPES = ((1, 8), (2, 4), (8, 8))
QUICK_MESH_SHAPES = ((2, 4),)

# What does not fit is to be measured as well.
_BUDGET = "1TiB"

METHODS: Mapping[str, Callable[[tuple[int, ...]], stablehlo_alpa.Method]] = {
    "search": lambda shape: stablehlo_alpa.ShardParallel(mesh_shape=shape, memory_budget=_BUDGET),
    "data": lambda shape: stablehlo_alpa.DataParallel(mesh_shape=shape, memory_budget=_BUDGET),
    "zero3": lambda shape: stablehlo_alpa.Zero3Parallel(mesh_shape=shape, memory_budget=_BUDGET),
    "pipeline": lambda shape: stablehlo_alpa.PipeshardParallel(
        num_micro_batches=4, stages=stablehlo_alpa.UniformStages(2), memory_budget=_BUDGET
    ),
}
"""By name; each takes the shape of the mesh. A pipeline lays out its two halves itself."""
