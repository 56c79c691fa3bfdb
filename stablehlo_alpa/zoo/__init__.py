"""Models with published sizes and their train steps, in shapes until arrays are asked for.

>>> from stablehlo_alpa import zoo
>>> case = zoo.llama("70B", batch=64)
>>> stablehlo_alpa.parallelize(case.step, cluster="p5.48xlarge:16").plan(*case.args)

Parameters are f32, products take them in bf16 (f16, f32); the optimiser is AdamW; nothing is
dropped out. Needs flax and optax (``pip install 'stablehlo-alpa[zoo]'``), once a model is made.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from stablehlo_alpa.zoo.case import Field, ModelCase, TrainState
from stablehlo_alpa.zoo.catalogue import CATALOGUE, FAMILIES, Entry, find, names

if TYPE_CHECKING:
    from stablehlo_alpa.zoo.models.deepseek import deepseek
    from stablehlo_alpa.zoo.models.gpt import gpt
    from stablehlo_alpa.zoo.models.llama import llama
    from stablehlo_alpa.zoo.models.mamba import mamba
    from stablehlo_alpa.zoo.models.mixtral import mixtral
    from stablehlo_alpa.zoo.models.moe import moe
    from stablehlo_alpa.zoo.models.t5 import t5
    from stablehlo_alpa.zoo.models.unet import unet
    from stablehlo_alpa.zoo.models.vit import vit
    from stablehlo_alpa.zoo.models.wide_resnet import wide_resnet

__all__ = [
    "CATALOGUE",
    "FAMILIES",
    "Entry",
    "Field",
    "ModelCase",
    "TrainState",
    "deepseek",
    "find",
    "gpt",
    "llama",
    "mamba",
    "mixtral",
    "moe",
    "names",
    "t5",
    "unet",
    "vit",
    "wide_resnet",
]


def __getattr__(name: str) -> Any:
    """A family's function; flax is imported when it is first asked for."""
    if name not in FAMILIES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.models.{name}"), name)
