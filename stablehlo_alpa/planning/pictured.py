"""A plan as pictures: a page for a browser, a figure for a paper."""

from __future__ import annotations

import os
import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alpa_runtime import STACKS_MEMBER, Event
from alpa_runtime.plan_file import calls_back

from stablehlo_alpa.planning.baselines import Baselines
from stablehlo_alpa.planning.page_content import page_content
from stablehlo_alpa.planning.saved_plan import SavedPlan
from stablehlo_alpa.view.page import MEMBER, PageContent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stablehlo_alpa.planning.plan import Plan


class Pictured:
    """What can be seen of a `Plan`."""

    def view(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        beside: Plan | None = None,
        baselines: Baselines | None = None,
        measured: Sequence[Event] = (),
    ) -> Path:
        """Writes the plan as one HTML page, which needs no network.

        Args:
            path: of the page; by default a temporary file, which is opened in the browser.
            beside: another plan of the step: both are shown, and what differs.
            baselines: of `baselines`, shown among the alternatives.
            measured: the events of a traced step, shown below the predicted ones.

        Returns:
            where the page is.

        Raises:
            ModuleNotFoundError: bokeh is not installed.
        """
        from stablehlo_alpa.view.page.document import page_html

        pages = [self.content(baselines, measured)]
        if beside is not None:
            pages.append(beside.content())
        html = page_html(pages)
        if path is not None:
            Path(path).write_text(html, encoding="utf-8")
            return Path(path)
        with tempfile.NamedTemporaryFile(
            "w", prefix="plan-", suffix=".html", delete=False, encoding="utf-8"
        ) as file:
            file.write(html)
        webbrowser.open(Path(file.name).as_uri())
        return Path(file.name)

    def plot(self) -> Figure:
        """The pipeline's time line and the memory of every stage, as a matplotlib figure.

        Raises:
            ModuleNotFoundError: matplotlib is not installed.
        """
        from stablehlo_alpa.view.plot import plot_page

        return plot_page(self.content())

    def content(
        self, baselines: Baselines | None = None, measured: Sequence[Event] = ()
    ) -> PageContent:
        """What `view` shows, as plain data; for the arguments see there."""
        plan: Any = self
        return page_content(plan, baselines, measured)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan to one file: what is run, for ``alpa_runtime.load``, and why.

        `read_plan` and the command line read what it costs, what it was chosen from and what
        `view` shows.

        Raises:
            ProgramError: the step calls functions of this process.
        """
        plan: Any = self
        for one in plan.program.reports:
            raise calls_back(plan.program.name, one.name)
        members = {MEMBER: self.content().dump().encode()}
        stacks = plan.program.stacks
        if stacks is not None:
            members[STACKS_MEMBER] = stacks.signature.dump()
        SavedPlan.of(plan).save(path, members)

    def __deepcopy__(self, memo: Any = None) -> Any:
        """Nothing of it changes: copies are the plan itself."""
        return self

    __copy__ = __deepcopy__

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as what its file holds, a `SavedPlan`: functions of the process stay behind."""
        plan: Any = self
        return _itself, (SavedPlan.of(plan),)


def _itself(saved: SavedPlan) -> SavedPlan:
    return saved
