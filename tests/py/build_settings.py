"""How the build that is tested was configured."""

from __future__ import annotations

import re
from pathlib import Path

BUILD = Path(__file__).parents[2] / "build"


def cached(name: str) -> str:
    """A setting of CMake."""
    text = (BUILD / "CMakeCache.txt").read_text()
    found = re.search(rf"^{name}:[A-Z]+=(.*)$", text, re.MULTILINE)
    assert found, f"{name} is not in CMakeCache.txt"
    return found[1]


def llvm_tool(name: str) -> Path:
    """A program of the LLVM that was built against."""
    return Path(cached("MLIR_DIR")).parents[2] / "bin" / name
