"""Hardware: devices behind three calls, chips with faults of their own, and training on them."""

from phasegrad.hardware._budget import (
    Budget as Budget,
    Entry as Entry,
    advised as advised,
    error_budget,
    learn_with as learn_with,
)
from phasegrad.hardware._chips import Chip, Ensemble as Ensemble
from phasegrad.hardware._device import Device
from phasegrad.hardware._hardware import FAULTS as FAULTS, TOGETHER as TOGETHER, Hardware
from phasegrad.hardware._learning import OnDevice
from phasegrad.hardware._presets import preset, presets
from phasegrad.hardware._tasks import TASKS as TASKS, Task as Task, task as task
from phasegrad.training import DeviceError

__all__ = [
    "Chip",
    "Device",
    "DeviceError",
    "Hardware",
    "OnDevice",
    "error_budget",
    "preset",
    "presets",
]
