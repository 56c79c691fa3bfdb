"""``stablehlo-alpa models``."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from stablehlo_alpa import zoo

MODELS_SCHEMA = "stablehlo-alpa/models/1"


def models(
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Lists the models of the zoo, with what was published of them."""
    if as_json:
        rows = [
            {
                "name": entry.name,
                "family": entry.family,
                "size": entry.size,
                "parameters": entry.parameters,
                "source": entry.source,
            }
            for entry in zoo.CATALOGUE.values()
        ]
        typer.echo(json.dumps({"schema": MODELS_SCHEMA, "models": rows}, indent=2))
        return
    table = Table(title="models of the zoo")
    table.add_column("name", no_wrap=True)
    table.add_column("parameters", justify="right")
    table.add_column("in Python", no_wrap=True)
    table.add_column("source")
    for entry in zoo.CATALOGUE.values():
        count = "" if entry.parameters is None else count_text(entry.parameters)
        table.add_row(entry.name, count, f'zoo.{entry.family}("{entry.size}")', entry.source)
    Console().print(table)


def count_text(number: float) -> str:
    """``8.03 B``: a count of parameters with three digits."""
    unit, factor = ("B", 1e9) if number >= 1e9 else ("M", 1e6)
    return f"{number / factor:.3g} {unit}"
