"""Sharding rules of the custom calls in a module."""

from __future__ import annotations

import re

from stablehlo_alpa import _core


def call_rules(text: str, prefix: str = "") -> dict[str, str]:
    """Sharding rule of every custom call, by its target, of those that begin with ``prefix``."""
    attributes = "builtin.module(alpa-print-sharding-rules{as-attributes=true})"
    written, _ = _core.run_pipeline(text, attributes, locations=False)
    found = {}
    for line in written.splitlines():
        target = re.search(r'call_target_name = "([^"]*)"', line)
        if target and target[1].startswith(prefix):
            rule = re.search(r"alpa.rule = #alpa.rule<(.*?)>[,}]", line)
            found[target[1]] = rule[1] if rule else ""
    return found
