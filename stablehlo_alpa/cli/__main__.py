"""``python -m stablehlo_alpa.cli``."""

from stablehlo_alpa.cli.application import main

main()
