"""Runs stock ``mlir-opt`` with the plugin, on the command line of ``stablehlo-alpa-opt``.

``mlir-opt`` knows passes of a plugin in textual pipelines only, so flags become a pipeline.
"""

from __future__ import annotations

import os
import re
import sys


def translate(arguments: list[str]) -> list[str]:
    """Puts passes that are named by flags into one pipeline."""
    passes, rest = [], []
    for argument in arguments:
        flag = re.fullmatch(
            r"--?((?:alpa-|cse|canonicalize|inline|symbol-dce)[a-z-]*)(?:=(.*))?", argument
        )
        if flag:
            passes.append(flag[1] + (f"{{{flag[2]}}}" if flag[2] else ""))
        else:
            rest.append(argument)
    if passes:
        rest.append(f"-pass-pipeline=builtin.module({','.join(passes)})")
    return rest


if __name__ == "__main__":
    tool, plugin, *given = sys.argv[1:]
    loading = [f"--load-dialect-plugin={plugin}", f"--load-pass-plugin={plugin}"]
    os.execv(tool, [tool, *loading, *translate(given)])
