"""The page of one plan, or of two and what differs: one file, which needs no network."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from stablehlo_alpa.view.page.content import PageContent

try:
    import jinja2
    from bokeh.embed import json_item
    from bokeh.resources import Resources

    from stablehlo_alpa.view.page.sections import (
        Section,
        difference_section,
        facts,
        sections_of,
        stage_records,
    )
except ModuleNotFoundError as error:
    if (error.name or "").startswith("stablehlo_alpa"):
        raise
    raise ModuleNotFoundError(
        f"a page of a plan needs {error.name}, which is not installed: "
        "pip install 'stablehlo-alpa[view]'",
        name=error.name,
    ) from error

# Before the names of all that a plan has on a page, of the first and of the second.
_PREFIXES = ("", "b-")


@dataclass(frozen=True)
class PlanOnPage:
    """A plan among those of a page.

    Attributes:
        title: what it is among them.
        prefix: before the names of all that is its own.
        page: its content.
        facts: heads and texts of its summary.
        sections: what is shown of it.
    """

    title: str
    prefix: str
    page: PageContent
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]


def page_html(pages: Sequence[PageContent]) -> str:
    """Writes a page.

    Args:
        pages: one plan, or two of one step.

    Raises:
        ValueError: there are none or too many.
    """
    if not 1 <= len(pages) <= len(_PREFIXES):
        raise ValueError(f"a page is of one plan or of two, got {len(pages)}")
    titles = ["Plan"] if len(pages) == 1 else ["First plan", "Second plan"]
    plans = [
        PlanOnPage(title, prefix, page, facts(page), sections_of(page, prefix))
        for title, prefix, page in zip(titles, _PREFIXES, pages, strict=False)
    ]
    difference = difference_section(pages[0], pages[1]) if len(pages) > 1 else None
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_resource),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja").render(
        title=" and ".join(dict.fromkeys(page.model for page in pages)),
        plans=plans,
        difference=difference,
        style=_resource("page.css"),
        script=_resource("page.js"),
        library="\n".join(Resources(mode="inline", components=["bokeh"]).js_raw),
        data=_packed(plans, difference),
    )


def _resource(name: str) -> str:
    return (resources.files("stablehlo_alpa.view.page") / name).read_text(encoding="utf-8")


def _packed(plans: Sequence[PlanOnPage], difference: Section | None) -> str:
    """Figures and tables as base64 of gzip of JSON: a fifth of the bytes, and nothing to escape."""
    sections = [section for plan in plans for section in plan.sections]
    sections += [difference] if difference is not None else []
    drawn: dict[str, Any] = {
        figure.name: {"item": json_item(figure.plot), "sources": figure.sources}
        for section in sections
        for figure in section.figures
    }
    tables = {
        table.name: {
            "title": table.title,
            "columns": table.columns,
            "rows": table.rows,
            "tensors": table.tensors,
        }
        for section in sections
        for table in section.tables
    }
    stages = {plan.prefix: stage_records(plan.page) for plan in plans}
    text = json.dumps({"figures": drawn, "tables": tables, "stages": stages}, allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
