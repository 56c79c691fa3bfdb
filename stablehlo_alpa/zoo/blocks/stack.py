"""Layers one behind the other: each by itself, or one scanned over stacked parameters."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from stablehlo_alpa.zoo.linen import nn


@cache
def _traced_once(block: Any) -> Any:
    """A class of blocks that are traced once for all layers that are equal."""
    return nn.jit(block)


class _Layer(nn.Module):
    """A block, shaped as the body of a scan.

    Attributes:
        make: makes the block, called with its name.
    """

    make: partial[nn.Module]

    @nn.compact
    def __call__(self, carried: Any, shared: tuple[Any, ...]) -> tuple[Any, None]:
        """Maps what is carried to the same."""
        return self.make(name="block")(carried, *shared), None


class Stack(nn.Module):
    """Equal blocks.

    Attributes:
        make: a class of blocks with its arguments, called with its name.
        depth: how many.
        scanned: one ``lax.scan`` over parameters stacked on dimension 0, in place of ``depth``
            blocks.
        remat: the backward pass computes a block again, of which only the input is kept.
    """

    make: partial[nn.Module]
    depth: int
    scanned: bool = False
    remat: bool = False

    @nn.compact
    def __call__(self, carried: Any, *shared: Any) -> Any:
        """Maps a pytree to the same.

        Args:
            carried: goes from block to block.
            *shared: goes into every block.
        """
        # In a loop nothing can be merged with what was computed before: no barrier is needed.
        layer = nn.remat(_Layer, prevent_cse=not self.scanned) if self.remat else _Layer
        if not self.scanned:
            make = partial(_traced_once(self.make.func), *self.make.args, **self.make.keywords)
            for number in range(self.depth):
                carried, _ = layer(make, name=f"layer_{number}")(carried, shared)
            return carried
        scan = nn.scan(
            layer,
            variable_axes={"params": 0, "batch_stats": 0},
            split_rngs={"params": True},
            in_axes=nn.broadcast,
            length=self.depth,
        )
        return scan(self.make, name="layers")(carried, shared)[0]
