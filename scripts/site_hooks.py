"""What MkDocs is told while it makes the site: formulas, notebooks, and links to other files."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).resolve().parent))

from notebook_pages import page_of

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
_NOTEBOOK = re.compile(r"\((notebooks/\w+)\.ipynb\)")
_OUTSIDE = re.compile(r"\[([^\]]+)\]\((\.\./[^)#]+)\)")
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}


def on_files(files: Any, config: Any) -> Any:
    """Every notebook has a page."""
    folder = Path(config.docs_dir)
    for path in sorted(folder.glob("notebooks/*.ipynb")):
        name = path.relative_to(folder).with_suffix(".md").as_posix()
        files.append(File.generated(config, name, content=page_of(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links to notebooks lead to their pages.

    Those to files beside the documentation, which a site does not have, become their paths.

    Raises:
        PluginError: there is no such file.
    """
    docs = Path(config.docs_dir)
    folder = (docs / page.file.src_uri).parent
    root = Path(config.config_file_path).parent

    def path_of(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        if target.is_relative_to(docs):
            return link[0]
        if not target.exists():
            raise PluginError(f"{page.file.src_uri} links to {link[2]}, which is not there")
        text = link[1].strip("`")
        path = target.relative_to(root)
        return f"`{path}`" if text in str(path) else f"{link[1]} (`{path}`)"

    return _OUTSIDE.sub(path_of, _NOTEBOOK.sub(r"(\1.md)", markdown))


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Formulas become MathML, which browsers draw by themselves."""

    def drawn(formula: re.Match[str]) -> str:
        text = re.sub("|".join(_ENTITIES), lambda entity: _ENTITIES[entity[0]], formula[3])
        return convert(text, display="block" if formula[1] == "div" else "inline")

    return _FORMULA.sub(drawn, html)
