"""What the compiler makes of a planned module for one device, and says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stablehlo_alpa.cluster import DeviceSpec
from stablehlo_alpa.compiler import Live, Module, Signature, Traffic, Work
from stablehlo_alpa.store import Record

_ORDERED = "alpa-order-gradients"
_COMPARED = "alpa-compare-maxima"
_FORMS = {"cuda": (_ORDERED, _COMPARED), "rocm": (_ORDERED, _COMPARED)}
"""What is tried in turn by platform; nothing on others. Products of XLA for TPU compute positive
parts in their operands, and which gradients it waits for does not depend on what that saves. XLA
for CPU keeps as much in either form, and where products wait, at times copies of their operands."""
_WORTH = 0.01
"""A part of the memory for which a program is bound to a form (heuristic)."""


@dataclass(frozen=True, eq=False)
class DeviceModule:
    """A module of one device.

    Attributes:
        text: its own.
        signature: of the planned module: global types, and shardings.
        traffic: its collectives.
        live: what it keeps where it needs the most.
        work: what its operators do.
        remarks: what the compiler wants known.
    """

    text: str
    signature: Signature
    traffic: Traffic
    live: Live
    work: Work
    remarks: tuple[str, ...]

    @classmethod
    def of(
        cls,
        module: Module,
        device: DeviceSpec,
        donated: Sequence[int] = (),
        trip_count_hint: int | None = None,
    ) -> DeviceModule:
        """That of a planned module, which becomes it.

        Args:
            module: global shapes, shardings and reshards.
            device: what the devices are.
            donated: arguments whose bytes results may take.
            trip_count_hint: how often loops run of which it is not known; None if nobody says.
        """
        signature, traffic = Signature.of(module), Traffic.of(module)
        remarks = lower_planned(module, device)
        live = save_memory(module, device, donated)
        text = module.text()
        work = work_of(module, device.platform, trip_count_hint)
        return cls(text, signature, traffic, live, work, tuple(remarks))

    @classmethod
    def from_record(cls, record: Record) -> DeviceModule:
        """One of which `record` was kept."""
        live = record["live"]
        work = dict(record["work"])
        work |= {name: tuple(work[name]) for name in ("ops", "dtypes")}
        return cls(
            record["text"],
            Signature.from_record(record["signature"]),
            Traffic(**record["traffic"]),
            Live(live["peak_bytes"], tuple((name, size) for name, size in live["tensors"])),
            Work(**work),
            tuple(record["remarks"]),
        )

    def record(self) -> Record:
        """It, as plain data, which shares its arrays."""
        parts = {name: dict(vars(getattr(self, name))) for name in ("traffic", "live", "work")}
        signature = self.signature.record()
        return {"text": self.text, "signature": signature, "remarks": self.remarks} | parts


def lower_planned(module: Module, device: DeviceSpec) -> list[str]:
    """Makes a planned module that of one device.

    Args:
        module: global shapes, shardings and reshards.
        device: what the devices are; its platform chooses among forms of equal meaning.

    Returns:
        remarks.
    """
    option = f"{{platform={device.platform}}}" if device.platform else ""
    return module.run(f"alpa-spmd-pipeline{option}")


def save_memory(local: Module, device: DeviceSpec, donated: Sequence[int] = ()) -> Live:
    """Has a per-device program in forms of equal meaning of which XLA keeps less.

    Args:
        local: the program; a form is taken if what it keeps at the peak decreases by `_WORTH`.
        device: what the devices are.
        donated: arguments whose bytes results may take.

    Returns:
        what the program keeps then.
    """
    live = Live.of(local, donated, device.platform)
    for form in _FORMS.get(device.platform, ()):
        changed = local.clone()
        if not changed.run(form):
            # It says what it has changed.
            continue
        found = Live.of(changed, donated, device.platform)
        if found.peak_bytes <= (1 - _WORTH) * live.peak_bytes:
            local.become(changed)
            live = found
    return live


def work_of(local: Module, platform: str, trip_count_hint: int | None = None) -> Work:
    """What the operators of a per-device program do.

    Args:
        local: the program; the hint is noted on its loops.
        platform: as of `Live.of`.
        trip_count_hint: how often loops run of which it is not known; None if nobody says.
    """
    if trip_count_hint is not None:
        local.run(f"alpa-hint-trip-counts{{count={trip_count_hint}}}")
    return Work.of(local, platform)
