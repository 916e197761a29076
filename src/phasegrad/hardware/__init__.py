"""Hardware: devices behind three calls, chips with faults of their own, and training on them."""

from phasegrad.hardware._device import Device

__all__ = ["Device"]
