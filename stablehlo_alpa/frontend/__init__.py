"""From a JAX function to StableHLO text and what the text does not say."""

from stablehlo_alpa.frontend import versions as versions
from stablehlo_alpa.frontend.argnums import positions
from stablehlo_alpa.frontend.state import state_pairs
from stablehlo_alpa.frontend.trace import (
    TracedProgram,
    TracedValue,
    abstract,
    check_supported,
    trace,
)

__all__ = [
    "TracedProgram",
    "TracedValue",
    "abstract",
    "check_supported",
    "positions",
    "state_pairs",
    "trace",
]
