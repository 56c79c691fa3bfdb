"""``python -m stablehlo_alpa.cli``."""

from stablehlo_alpa.cli.application import main

if __name__ == "__main__":
    main()
