"""Functions inside a user's own jitted program: XLA's partitioner asks the planner about them."""

from stablehlo_alpa.partitioner.decorator import partition
from stablehlo_alpa.partitioner.jit_shardings import shardings

__all__ = ["partition", "shardings"]
