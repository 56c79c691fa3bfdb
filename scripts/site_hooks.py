"""What MkDocs is told while it makes the site: formulas, and links to files of the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
_OUTSIDE = re.compile(r"\[([^\]]+)\]\((\.\./[^)#]+)\)")
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links to files beside the documentation, which a site does not have, become their paths.

    Raises:
        PluginError: there is no such file.
    """
    folder = Path(page.file.abs_src_path).parent
    root = Path(config.config_file_path).parent

    def path_of(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        if not target.exists():
            raise PluginError(f"{page.file.src_uri} links to {link[2]}, which is not there")
        text = link[1].strip("`")
        path = target.relative_to(root)
        return f"`{path}`" if text in str(path) else f"{link[1]} (`{path}`)"

    return _OUTSIDE.sub(path_of, markdown)


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Formulas become MathML, which browsers draw by themselves."""

    def drawn(formula: re.Match[str]) -> str:
        text = re.sub("|".join(_ENTITIES), lambda entity: _ENTITIES[entity[0]], formula[3])
        return convert(text, display="block" if formula[1] == "div" else "inline")

    return _FORMULA.sub(drawn, html)
