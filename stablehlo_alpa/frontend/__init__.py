"""From a JAX function to StableHLO text and what the text does not say."""

from stablehlo_alpa.frontend.state import state_pairs
from stablehlo_alpa.frontend.trace import TracedProgram, TracedValue, trace

__all__ = ["TracedProgram", "TracedValue", "state_pairs", "trace"]
