"""Options that say where what was computed is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stablehlo_alpa.cli.files import check_folder
from stablehlo_alpa.cli.usage import UsageError
from stablehlo_alpa.store import Store, as_store

StoreOption = Annotated[
    Path | None,
    typer.Option(
        help="folder that keeps what is computed on the way to a plan, so that the next is found "
        "sooner; by default one in the user's cache directory"
    ),
]
NoStoreOption = Annotated[bool, typer.Option("--no-store", help="nothing is kept or read")]


def find_store(folder: Path | None, is_off: bool) -> Store:
    """What the options say.

    Raises:
        UsageError: they contradict each other, or there is a file in the folder's place.
    """
    if folder is not None and is_off:
        raise UsageError(f"--store {folder} and --no-store contradict each other: leave one out")
    check_folder("--store", folder)
    if is_off:
        return as_store(False)
    return as_store(True if folder is None else folder)
