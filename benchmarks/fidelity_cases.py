"""Steps that were measured on one device: the suite's models in middling sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from memory_cases import Sizes

_GPT: dict[str, Any] = {
    **{"heads": 16, "vocabulary": 50304, "dropout": 0.0, "dtype": jnp.bfloat16, "length": 1024},
}
_SMALL: dict[str, Any] = {**_GPT, "layers": 12, "hidden": 768, "heads": 12}

CASES: Mapping[str, Sizes] = {
    "mlp": Sizes(
        "mlp", {"batch": 8192, "inputs": 1024, "hidden": 4096, "outputs": 1024, "layers": 4}
    ),
    "gpt 4x1024 bf16": Sizes(
        "gpt", {**_GPT, "layers": 4, "hidden": 1024, "length": 512, "batch": 16}
    ),
    "gpt 24x1024 bf16": Sizes("gpt", {**_GPT, "layers": 24, "hidden": 1024, "batch": 8}),
    "gpt 12x768 f32": Sizes("gpt", {**_SMALL, "batch": 4, "dtype": jnp.float32}),
    "gpt 6x2048 bf16 dropout": Sizes(
        "gpt", {**_GPT, "layers": 6, "hidden": 2048, "batch": 8, "dropout": 0.1}
    ),
    "gpt 12x768 scanned": Sizes("gpt", {**_SMALL, "length": 512, "batch": 16, "is_scanned": True}),
    "gpt small batch": Sizes(
        "gpt",
        {
            **_GPT,
            "layers": 4,
            "hidden": 512,
            "heads": 8,
            "length": 128,
            "batch": 4,
            "vocabulary": 8192,
        },
    ),
    "llama 8x2048": Sizes(
        "llama",
        {
            "batch": 4,
            "layers": 8,
            "hidden": 2048,
            "heads": 16,
            "groups": 8,
            "inner": 5632,
            "vocabulary": 32000,
            "length": 1024,
            "dtype": jnp.bfloat16,
        },
    ),
    "moe": Sizes("moe", {"batch": 64, "hidden": 512, "vocabulary": 16384, "length": 256}),
    "vit": Sizes(
        "vit",
        {
            "batch": 128,
            "size": 128,
            "patch": 16,
            "hidden": 768,
            "heads": 12,
            "layers": 12,
            "classes": 1024,
        },
    ),
    "wide_resnet": Sizes(
        "wide_resnet",
        {"batch": 128, "size": 64, "blocks": (2, 2, 2), "channels": 128, "classes": 1024},
    ),
    "unet": Sizes("unet", {"batch": 64, "size": 64, "channels": (128, 256), "blocks": 2}),
    "encoder_decoder": Sizes(
        "encoder_decoder",
        {"batch": 64, "layers": 4, "hidden": 512, "heads": 8, "vocabulary": 16384, "length": 256},
    ),
    "lstm": Sizes(
        "lstm", {"batch": 256, "length": 64, "hidden": 1024, "layers": 2, "vocabulary": 8192}
    ),
    "mixer": Sizes(
        "mixer",
        {"batch": 256, "size": 128, "patch": 8, "hidden": 512, "layers": 8, "classes": 1024},
    ),
}
"""By the names of ``measured/steps.csv``."""
