"""Writes to standard output what the commands of the command line say of themselves, as a page."""

from __future__ import annotations

import html
import re

import click
import typer
from typer.cli import get_docs_for_click

from stablehlo_alpa.cli import app

HEAD = """# Every command and option

Made by `make command-docs`. The [command line](command_line.md) has a page with examples.
"""
# Typer lists commands by the first words of what each says below.
_LIST = re.compile(r"\*\*Commands\*\*:\n\n(\* .*\n)+\n")


def reference() -> str:
    """The page, in Markdown."""
    command = typer.main.get_command(app)
    text = get_docs_for_click(obj=command, ctx=click.Context(command), name="stablehlo-alpa")
    _, body = html.unescape(text).split("\n", 1)
    return f"{HEAD}\n{_LIST.sub('', body).strip()}\n"


if __name__ == "__main__":
    print(reference(), end="")
