"""``stablehlo-alpa``: plans models, modules from files and functions, on the command line."""

from stablehlo_alpa.cli.application import app, main

__all__ = ["app", "main"]
