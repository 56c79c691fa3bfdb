"""A notebook as a page of the site: text, code, and what the code showed when it was run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def page_of(path: Path) -> str:
    """Markdown of a notebook that was run.

    Args:
        path: of the ``.ipynb``.
    """
    parts: list[str] = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(_fenced(source, "python"))
        parts += filter(None, map(_output, cell["outputs"]))
    return "\n\n".join(parts) + "\n"


def _output(output: Mapping[str, Any]) -> str:
    """What a cell printed or showed; a table as HTML, where it says so."""
    if output["output_type"] == "stream":
        return _fenced("".join(output["text"]).rstrip(), "text") if output["text"] else ""
    data = output["data"]
    if "image/png" in data:
        image = "".join(_lines(data["image/png"])).replace("\n", "")
        return f'<img alt="figure" src="data:image/png;base64,{image}">'
    if "text/html" in data:
        # An empty line would end the HTML.
        return "\n".join(line for line in _lines(data["text/html"]) if line.strip())
    return _fenced("".join(data["text/plain"]), "text")


def _lines(text: str | list[str]) -> Iterator[str]:
    return iter("".join(text).splitlines())


def _fenced(text: str, language: str) -> str:
    return f"```{language}\n{text}\n```"
