"""Feeds the compiler one request a line; dies with it, which is what the fuzz test looks for."""

import json
import sys
from typing import Any

from stablehlo_alpa import _core


def answer(request: dict[str, Any]) -> str:
    """``ok`` or ``refused``; anything else is raised."""
    call, text, option = request["call"], request["text"], request["option"]
    try:
        if call == "run_pipeline":
            _core.run_pipeline(text, option)
        elif call == "strategy_graph":
            _core.strategy_graph(text, [tuple(axis) for axis in option])
        else:
            getattr(_core, call)(text)
    except _core.CompilerError:
        return "refused"
    return "ok"


def main() -> None:
    """Answers until the input ends."""
    for line in sys.stdin:
        print(answer(json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
