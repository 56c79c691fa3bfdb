"""How a forward function is cut into layers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from stablehlo_alpa.errors import OptionError
from stablehlo_alpa.option_checks import (
    checked_integer,
    checked_number,
    checked_pattern,
    settle,
)

Remat: TypeAlias = bool | Literal["attention"]
"""What of a layer is computed again: nothing, what is between the products of an attention, all."""

# Least first.
_RECOMPUTATIONS: tuple[Remat, ...] = (False, "attention", True)


@dataclass(frozen=True)
class LayerOption:
    """What every way of cutting has in common.

    Attributes:
        remat: what the backward pass computes again. True: all but the values between layers, and
            between the equal blocks that a layer consists of (``jax.checkpoint`` of each);
            ``"attention"``: what is between the two products of an attention; False: nothing.
            ``"search"``: the least that fits the memory, or more where that makes the step faster.
    """

    remat: Remat | Literal["search"] = field(default="search", kw_only=True)

    def __post_init__(self) -> None:
        is_text = isinstance(self.remat, str) and self.remat in ("attention", "search")
        if not isinstance(self.remat, bool) and not is_text:
            raise OptionError(
                f'remat is {self.remat!r}, must be True, False, "attention" or "search"'
            )

    @property
    def recomputations(self) -> tuple[Remat, ...]:
        """What to try, least first."""
        return _RECOMPUTATIONS if self.remat == "search" else (self.remat,)


@dataclass(frozen=True)
class FollowInputs(LayerOption):
    """Operators run where their inputs lie; what several lie on, on the last of them.

    Attributes:
        meshes: per flat input a number of the mesh that it lies on, None of one that lies nowhere.
    """

    meshes: tuple[int | None, ...]


@dataclass(frozen=True)
class WholeFunction:
    """The function that is planned is itself cut into layers: it takes no gradients.

    Attributes:
        option: how.
    """

    option: LayerOption


@dataclass(frozen=True)
class AutoLayers(LayerOption):
    """Layers of about equal FLOPs with little data between them (paper, Eq. 6).

    Attributes:
        num_layers: how many.
        tolerance: how much more than the mean a layer's FLOPs may be, as a part of the mean; the
            delta of the paper. Doubled until there is a solution.
    """

    num_layers: int = 8
    tolerance: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, checked_integer, "num_layers", least=1)
        settle(self, checked_number, "tolerance", least=0)


@dataclass(frozen=True)
class ManualLayers(LayerOption):
    """The forward function says where layers end, with ``layer_boundary()``."""


@dataclass(frozen=True)
class FollowModuleLayers(LayerOption):
    """Layers begin where modules (flax, haiku, equinox under ``jax.named_scope``) begin.

    Attributes:
        pattern: regular expression, searched in the path of names of an operator
            (``GPT/layer_3/attention``); a layer begins where the text of its first group, or of
            the whole match, changes. Operators whose path does not match belong to the layer that
            is open; those before the first match to the first layer.
    """

    pattern: str = r"(?:^|/)([A-Za-z_]+_\d+)(?:/|$)"

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, checked_pattern, "pattern")
