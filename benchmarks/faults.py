"""What happens when parts of a cluster break: how long until the driver knows, what is lost."""

import report

report.prepare_devices(8)

import injected_faults as faults
from report import Row

import stablehlo_alpa

# Seconds; a process that is silent is only missed when its step is late.
_BAR_S = {
    "SIGSTOP": faults.DEADLINE_S + 8.0,
    "link cut": faults.DEADLINE_S + 8.0,
    "disk full": 30.0,
}


def measure(quick: bool) -> list[Row]:
    """Every fault once."""
    rows = []
    for outcome in faults.all_faults():
        title = f"{outcome.what}: {outcome.where}; lost: {outcome.lost}"
        bar = _BAR_S.get(outcome.what, 20.0 if outcome.where == "driver" else 4.0)
        rows.append(report.limited(title, outcome.known_s, "s", bar=bar))
        faults.wait_until_gone(outcome.processes)
    stablehlo_alpa.shutdown()
    return rows


if __name__ == "__main__":
    report.main("Seconds until the driver knows of a fault", measure)
