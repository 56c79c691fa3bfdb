"""Measures the devices at hand, for a cluster file that prices them by what they do."""

from stablehlo_alpa.calibration.calibrate import calibrate
from stablehlo_alpa.calibration.timing import BusyError

__all__ = ["BusyError", "calibrate"]
