"""A figure that a notebook shows by itself."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class ShownFigure(Figure):
    """Matplotlib teaches notebooks to show figures when pyplot makes its first; this needs none."""

    def _repr_png_(self) -> bytes:
        """What a notebook asks for."""
        file = io.BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()
