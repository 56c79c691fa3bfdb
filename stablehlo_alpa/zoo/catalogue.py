"""The models by name, with what was published of them."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import jax.numpy as jnp

from stablehlo_alpa.errors import ModelError
from stablehlo_alpa.nearest import nearest
from stablehlo_alpa.store import with_recipe
from stablehlo_alpa.zoo.case import ModelCase

_GRADIENTS, _OPTIMIZER = "gradients", "optimizer"
# Options that are dtypes.
_DTYPES = {"dtype", _GRADIENTS}


@dataclass(frozen=True)
class Entry:
    """A model of one size.

    Attributes:
        name: for the command line.
        family: the function of the zoo that makes it.
        size: what that is called with.
        parameters: as published; None of the tiny ones, which are for tests.
        source: where.
    """

    name: str
    family: str
    size: str
    parameters: float | None
    source: str

    def case(self, **options: Any) -> ModelCase:
        """Its train step.

        Args:
            **options: of the family's function, ``batch`` at least; and ``gradients``, the dtype
                of `ModelCase.with_gradients`, and ``optimizer``, ``"adamw"``,
                ``"adafactor"`` or ``"sgd"``.

        Raises:
            ModelError: the sizes make no model, there is no such option or optimiser, or the zoo's
                packages are missing.
        """
        module = importlib.import_module(f"stablehlo_alpa.zoo.models.{self.family}")
        make = getattr(module, self.family)
        known = inspect.signature(make).parameters
        unknown = [name for name in options if name not in {*known, _GRADIENTS, _OPTIMIZER}]
        if unknown:
            raise ModelError(
                f"{self.name} has no {', '.join(unknown)}, it has "
                f"{', '.join(name for name in known if name != 'size')}"
            )
        made: ModelCase = make(self.size, **{one: options[one] for one in options if one in known})
        if options.get(_GRADIENTS) is not None:
            made = made.with_gradients(options[_GRADIENTS])
        if options.get(_OPTIMIZER) is not None:
            made = made.with_optimizer(_optimizer(options[_OPTIMIZER]))
        # Names and sizes are all that it depends on, beside the code of the zoo.
        with_recipe(made.step, "zoo", self.family, self.size, _plain(options))
        return made


def _optimizer(name: str) -> Any:
    """That of the name, which the zoo's packages must be there for."""
    known = importlib.import_module("stablehlo_alpa.zoo.train_step").OPTIMIZERS
    if name not in known:
        raise ModelError(
            f"there is no optimiser {name}{nearest(name, known)}; there are {', '.join(known)}"
        )
    return known[name]


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options, types of numbers by their names."""
    return {
        name: jnp.dtype(value).name if name in _DTYPES and value is not None else value
        for name, value in options.items()
    }


FAMILIES = (
    "deepseek",
    "gpt",
    "llama",
    "mamba",
    "mixtral",
    "moe",
    "t5",
    "unet",
    "vit",
    "wide_resnet",
)

_ALPA = "Zheng et al., OSDI 2022"
_PREFIXES = {"llama": "llama-3", "wide_resnet": "wide-resnet"}

# Family, size, parameters and where they are printed.
_PUBLISHED: tuple[tuple[str, str, float, str], ...] = (
    ("gpt", "350M", 350e6, f"{_ALPA}, table 6"),
    ("gpt", "1.3B", 1.3e9, f"{_ALPA}, table 6"),
    ("gpt", "2.6B", 2.6e9, f"{_ALPA}, table 6"),
    ("gpt", "6.7B", 6.7e9, f"{_ALPA}, table 6"),
    ("gpt", "15B", 15e9, f"{_ALPA}, table 6"),
    ("gpt", "39B", 39e9, f"{_ALPA}, table 6"),
    ("gpt", "175B", 175e9, "Brown et al., NeurIPS 2020, table 2.1"),
    ("moe", "380M", 380e6, f"{_ALPA}, table 7"),
    ("moe", "1.3B", 1.3e9, f"{_ALPA}, table 7"),
    ("moe", "2.4B", 2.4e9, f"{_ALPA}, table 7"),
    ("moe", "10B", 10e9, f"{_ALPA}, table 7"),
    ("moe", "27B", 27e9, f"{_ALPA}, table 7"),
    ("moe", "70B", 70e9, f"{_ALPA}, table 7"),
    ("wide_resnet", "250M", 250e6, f"{_ALPA}, table 8"),
    ("wide_resnet", "1B", 1e9, f"{_ALPA}, table 8"),
    ("wide_resnet", "2B", 2e9, f"{_ALPA}, table 8"),
    ("wide_resnet", "4B", 4e9, f"{_ALPA}, table 8"),
    ("wide_resnet", "6.7B", 6.7e9, f"{_ALPA}, table 8"),
    ("wide_resnet", "13B", 13e9, f"{_ALPA}, table 8"),
    ("llama", "8B", 8.03e9, "model card of Meta-Llama-3-8B"),
    ("llama", "70B", 70.6e9, "model card of Meta-Llama-3-70B"),
    ("llama", "405B", 405e9, "Grattafiori et al., 2024, table 3"),
    ("mixtral", "8x7B", 46.7e9, "Mistral AI, Mixtral of experts, 2023"),
    ("mixtral", "8x22B", 141e9, "Mistral AI, Cheaper, better, faster, stronger, 2024"),
    ("deepseek", "V3", 671e9, "DeepSeek-AI, 2024, section 4.2"),
    ("vit", "g", 1011e6, "Zhai et al., CVPR 2022, table 2"),
    ("unet", "860M", 860e6, "model card of Stable Diffusion v1"),
    ("t5", "60M", 60e6, "Raffel et al., JMLR 2020, section 3.7"),
    ("t5", "220M", 220e6, "Raffel et al., JMLR 2020, section 3.7"),
    ("t5", "770M", 770e6, "Raffel et al., JMLR 2020, section 3.7"),
    ("t5", "3B", 2.8e9, "Raffel et al., JMLR 2020, section 3.7"),
    ("t5", "11B", 11e9, "Raffel et al., JMLR 2020, section 3.7"),
    ("mamba", "130M", 130e6, "Gu and Dao, 2023, table 12"),
    ("mamba", "370M", 370e6, "Gu and Dao, 2023, table 12"),
    ("mamba", "790M", 790e6, "Gu and Dao, 2023, table 12"),
    ("mamba", "1.4B", 1.4e9, "Gu and Dao, 2023, table 12"),
    ("mamba", "2.8B", 2.8e9, "Gu and Dao, 2023, table 12"),
)


def _name(family: str, size: str) -> str:
    return f"{_PREFIXES.get(family, family)}-{size.lower()}"


CATALOGUE: Mapping[str, Entry] = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            *(Entry(_name(one[0], one[1]), *one) for one in _PUBLISHED),
            *(Entry(_name(one, "tiny"), one, "tiny", None, "for tests") for one in FAMILIES),
        )
    }
)


def names() -> tuple[str, ...]:
    """Names that `find` knows."""
    return tuple(CATALOGUE)


def find(name: str) -> Entry:
    """The model of that name, in whatever case.

    Raises:
        ModelError: there is none; the nearest is named.
    """
    entry = CATALOGUE.get(name.lower())
    if entry is None:
        raise ModelError(
            f"no model {name!r} in the zoo{nearest(name.lower(), CATALOGUE)}, "
            f"families are {', '.join(FAMILIES)}: see zoo.names()"
        )
    return entry
