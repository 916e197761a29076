"""Hardware: devices behind three calls, chips with faults of their own, and training on them."""

from phasegrad.hardware._budget import Budget, Entry, advised, error_budget, learn_with
from phasegrad.hardware._chips import Chip, Ensemble
from phasegrad.hardware._device import Device
from phasegrad.hardware._hardware import FAULTS, TOGETHER, Hardware
from phasegrad.hardware._learning import OnDevice
from phasegrad.hardware._presets import preset, presets
from phasegrad.hardware._tasks import TASKS, Task, task
from phasegrad.training import DeviceError

__all__ = [
    "FAULTS",
    "TASKS",
    "TOGETHER",
    "Budget",
    "Chip",
    "Device",
    "DeviceError",
    "Ensemble",
    "Entry",
    "Hardware",
    "OnDevice",
    "Task",
    "advised",
    "error_budget",
    "learn_with",
    "preset",
    "presets",
    "task",
]
