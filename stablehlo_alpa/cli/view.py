"""``stablehlo-alpa view``."""

from __future__ import annotations

import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from alpa_runtime import ProgramError, read_trace
from alpa_runtime.plan_file import load_members

from stablehlo_alpa.cli.files import check_input, check_output
from stablehlo_alpa.cli.model_options import QuietOption
from stablehlo_alpa.cli.plan_file import checked_path
from stablehlo_alpa.cli.usage import UsageError
from stablehlo_alpa.planning.page_content import runs_of
from stablehlo_alpa.view.page import MEMBER, PageContent


def view(
    plans: Annotated[
        list[Path], typer.Argument(help="one plan that `plan -o` wrote, or two of one step")
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="the page; by default beside the first plan"),
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(help="trace of a step of the first plan, shown below")
    ] = None,
    is_opened: Annotated[bool, typer.Option("--open", help="open it in the browser")] = False,
    quiet: QuietOption = False,
) -> None:
    """Writes one HTML page of a plan, or of two and what differs."""
    if len(plans) > 2:
        raise UsageError(f"view takes one plan or two, got {len(plans)}")
    target = plans[0].with_suffix(".html") if output is None else output
    check_input("--trace", trace)
    check_output("--output", target, others=(*plans, trace))
    # Only who wants a page waits for the library that draws it.
    from stablehlo_alpa.view.page.document import page_html

    pages = [read_page(path) for path in plans]
    if trace is not None:
        pages[0] = replace(pages[0], measured=runs_of(read_trace(trace)))
    page = page_html(pages).encode()
    target.write_bytes(page)
    if not quiet:
        size = len(page) / 1e6
        typer.echo(f"{target}: {size:.1f} MB, {' and '.join(str(path) for path in plans)}")
    if is_opened:
        webbrowser.open(target.resolve().as_uri())


def read_page(path: Path) -> PageContent:
    """What a plan file has to show; that it can run is proved as well.

    Raises:
        UsageError: it is a module, or no file.
        ProgramError: it is no plan, is damaged, of another version, or has nothing to show.
        OSError: it cannot be read.
    """
    if path.suffix == ".mlir":
        raise UsageError(
            f"{path} is a module, no plan: stablehlo-alpa module {path} prints it, "
            f"stablehlo-alpa plan {path} -o x.plan makes a plan"
        )
    _, members = load_members(checked_path(path), (MEMBER,))
    if MEMBER not in members:
        raise ProgramError(
            f"{path} keeps what is run and nothing to show: it was written by alpa_runtime.save or "
            "by an older version; plan.save, and plan -o, keep both"
        )
    return PageContent.parse(members[MEMBER], str(path))
