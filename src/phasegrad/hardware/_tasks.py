"""Tasks that chips learn: where they begin, their samples, and a plan that survives noise."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from phasegrad import datasets
from phasegrad._validation import choice, whole_number
from phasegrad.datasets import Dataset
from phasegrad.hardware._hardware import Hardware
from phasegrad.hardware._specification import Range
from phasegrad.networks import Network, layered, signed_layers
from phasegrad.objectives import CosineCrossEntropy, OutputDifferences
from phasegrad.training import Plan

#: The words for tasks that chips are tried on.
TASKS = ("vowels", "digits")
_STRENGTH = 20.0
_VOWELS = Plan(
    learn={"omega": 0.2, "coupling": 0.2}, objective=OutputDifferences(), beta=5.0, epochs=10, batch_size=32,
    bounds={"omega": (-3.0, 3.0)}, lock_floor=None, evaluate_every=1_000_000,
)  # fmt: skip
_DIGITS = Plan(
    learn={"coupling": 0.1, "field_phase": 0.005}, objective=CosineCrossEntropy(sharpness=8.0), beta=2.0, epochs=30,
    batch_size=50, lock_floor=None, input_noise=0.3, evaluate_every=1_000_000,
)  # fmt: skip


@dataclass(frozen=True)
class Task:
    """Networks (one per chip), their samples, how they learn, and the range of couplings that suits them.

    See Also
    --------
    hardware.error_budget : Which fault costs how much.

    Examples
    --------
    >>> import phasegrad as pg
    >>> work = pg.hardware.task("vowels", 2)
    >>> len(work.networks), work.networks[0].size, work.coupling_range
    (2, 9, (1.0, 5.0))
    """

    networks: tuple[Network, ...]
    data: Any
    plan: Plan
    coupling_range: Range

    def fitted(self, hardware: Hardware) -> Hardware:
        """Return hardware with the range of couplings of this task, where it has none of its own."""
        if hardware.coupling_range is not None:
            return hardware
        return hardware.replace(coupling_range=self.coupling_range)

    def seconds(self, hardware: Hardware, plan: Plan) -> dict[str, float]:
        """Return about how long the trainings of `error_budget` will take here, by name: one run of each is timed."""
        sets = self.data if isinstance(self.data, list) else [self.data] * len(self.networks)
        inputs = np.stack([each.x_train[: plan.batch_size] for each in sets])
        batches = math.ceil(len(sets[0].y_train) / plan.batch_size)
        runs = batches * (1 + plan.epochs * (1 + len(plan.propagation.record.signs or ())))
        found = {}
        for name, kind in hardware.kinds().items():
            chips = kind.ensemble(self.networks[0], len(self.networks))
            chips.run(inputs)  # the first one may compile
            start = time.perf_counter()
            chips.run(inputs)
            found[name] = runs * (time.perf_counter() - start)
        return found


def task(name: str, chips: int) -> Task:
    """Return a task for so many chips.

    "vowels": /a/ and /i/ by the paper's 2+5+2 networks, chip r with the network and the split of seed r. "digits":
    8 x 8 pixels by 64-100-10 networks with fields, one start for all chips.

    See Also
    --------
    hardware.error_budget : Which fault costs how much.

    Examples
    --------
    >>> import phasegrad as pg
    >>> [network.size for network in pg.hardware.task("vowels", 2).networks]
    [9, 9]
    """
    choice("task", name, TASKS, "a chip")
    count = whole_number("chips", chips, 1, "a task")
    if name == "digits":
        # Fields much stronger than the mismatch of frequencies keep all oscillators locked.
        network = signed_layers(64, 100, 10, rest=CosineCrossEntropy.undecided, gain=_STRENGTH / 5)
        network = network.replace(field_strength=np.full(network.size, _STRENGTH))
        return Task((network,) * count, datasets.digits(), _DIGITS, (-_STRENGTH / 4, _STRENGTH / 4))
    networks = tuple(layered(2, 5, 2, seed=seed, input_scale=5.0) for seed in range(count))
    data: list[Dataset] = [datasets.vowels(["a", "i"], seed=seed) for seed in range(count)]
    return Task(networks, data, _VOWELS, (1.0, 5.0))
