"""Hardware: devices behind three calls, chips with faults of their own, and training on them."""

from phasegrad.hardware._chips import Chip, Ensemble
from phasegrad.hardware._device import Device
from phasegrad.hardware._hardware import FAULTS, Hardware
from phasegrad.hardware._learning import OnDevice
from phasegrad.hardware._presets import preset, presets

__all__ = ["FAULTS", "Chip", "Device", "Ensemble", "Hardware", "OnDevice", "preset", "presets"]
