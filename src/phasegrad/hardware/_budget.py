"""The error budget of a chip: what each fault costs alone, and all together."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from phasegrad._validation import FloatArray, whole_number
from phasegrad.equilibria import find_equilibrium
from phasegrad.gradients import cosine, gradient_from_phases
from phasegrad.hardware._chips import Ensemble
from phasegrad.hardware._hardware import TOGETHER, Hardware
from phasegrad.hardware._learning import OnDevice
from phasegrad.measurement import Measurement, Readout, plan_measurement
from phasegrad.networks import Network
from phasegrad.training import History, Plan, Training, train_whole

# Training samples whose mean gradient is compared with the exact one.
_PROBED = 32
_WEAK = 1e-3
# Training samples whose measurement is planned, and oscillators beyond which that takes too long.
_ADVISED, _SMALL = 8, 64


@dataclass(frozen=True)
class Entry:
    """What became of chips with some faults: test accuracy of each, and the cosine of its first gradient, (R,).

    ``skipped`` counts the training samples that no update used, ``shortened`` the updates in which a nudge was halved
    because it unlocked a sample; both are sums over chips and epochs.

    Examples
    --------
    >>> import phasegrad as pg
    >>> work = pg.hardware.task("vowels", 1)
    >>> entry, _ = pg.hardware.learn_with(pg.hardware.Hardware(), work.networks, work.data, work.plan.replace(epochs=1))
    >>> entry.fault, entry.accuracy.shape, entry.skipped, entry.shortened
    ('all together', (1,), 0, 0)
    """

    fault: str
    accuracy: FloatArray
    cosine: FloatArray
    skipped: int
    shortened: int

    @property
    def mean_cosine(self) -> float | None:
        """The mean cosine of the chips that show a gradient; None where none does."""
        there = self.cosine[np.isfinite(self.cosine)]
        return float(there.mean()) if there.size else None

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "fault": self.fault, "mean_accuracy": float(self.accuracy.mean()),
            "worst_accuracy": float(self.accuracy.min()), "mean_cosine": self.mean_cosine,
            "skipped": self.skipped, "shortened": self.shortened, "accuracies": self.accuracy.tolist(),
        }  # fmt: skip


@dataclass(frozen=True)
class Budget:
    """What chips of a kind reach when they learn, fault by fault; ``entries`` begin with no fault and end with all.

    ``deployed`` are the accuracies of chips that were given what an ideal network had learned, without learning on
    them. ``runs`` is how often each chip settled while it learned. ``measurement`` is what `plan_measurement` advises
    for the first network with this meter, or a sentence that says why it cannot; None where the meter is perfect or the
    network has more than 64 oscillators.

    See Also
    --------
    hardware.error_budget : Which fault costs how much.

    Examples
    --------
    >>> import phasegrad as pg
    >>> work = pg.hardware.task("vowels", 1)
    >>> kind = pg.hardware.Hardware(coupling_mismatch=0.01)
    >>> budget = pg.hardware.error_budget(work.networks, work.data, kind, work.plan.replace(epochs=1))
    >>> [entry.fault for entry in budget.entries]
    ['none', 'all together']
    """

    hardware: Hardware
    beta: float
    entries: tuple[Entry, ...]
    deployed: FloatArray
    runs: int
    measurement: Measurement | str | None = None

    @property
    def blame(self) -> str:
        """The fault that alone costs most accuracy; empty where none costs anything."""
        ideal, *others = self.entries
        # The last entry has all faults together; with a single fault there is no other entry for it.
        alone = others if len(others) < 2 else others[:-1]
        worst = min(alone, key=lambda each: float(each.accuracy.mean()), default=ideal)
        return worst.fault if worst.accuracy.mean() < ideal.accuracy.mean() else ""

    @property
    def seconds(self) -> float:
        """How long a chip would have settled in all, NaN where its times are not known."""
        return self.runs * self.hardware.seconds

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        seconds = {"seconds_per_run": self.hardware.seconds, "seconds": self.seconds}
        return {
            "hardware": self.hardware.name, "sources": dict(self.hardware.sources), "beta": self.beta,
            "readings": self.hardware.readout.readings, "runs": self.runs, "blame": self.blame,
            **{name: value if math.isfinite(value) else None for name, value in seconds.items()},
            "measurement": dataclasses.asdict(self.measurement)
            if isinstance(self.measurement, Measurement) else self.measurement,
            "faults": [each.as_dict() for each in self.entries], "deployed": self.deployed.tolist(),
        }  # fmt: skip


def error_budget(
    networks: Sequence[Network], data: Any, hardware: Hardware, plan: Plan,
    *, alone: bool = True, progress: Callable[[str, int], object] | None = None,
    report: Callable[[Entry], object] | None = None,
) -> Budget:  # fmt: skip
    """Let chips learn, one per network, with no fault, with each fault alone and with all; return what they reach.

    Chip r has the seed r, so that its faults are the same ones alone and together.

    Parameters
    ----------
    networks : sequence of Network
        Where each chip begins.
    data : Dataset, or a list of one per network
        With a test part.
    hardware : Hardware
    plan : Plan
        As `OnDevice` takes it.
    alone : bool
        Whether to train with each fault alone, too.
    progress : callable, optional
        Called with the name of the faults and the epoch: 0 before each training, and between epochs as `train` does.
        ``hardware.kinds(alone)`` are the trainings, one after another.
    report : callable, optional
        Called with each `Entry` as soon as its chips have learned, so that what is finished can be kept: Ctrl-C raises
        KeyboardInterrupt.

    See Also
    --------
    hardware.Hardware : A kind of chip with its faults.
    hardware.preset : A kind of chip by name.

    Examples
    --------
    >>> import phasegrad as pg
    >>> from phasegrad.hardware import Hardware, error_budget
    >>> networks = [pg.layered(2, 5, 2, seed=seed) for seed in range(2)]
    >>> plan = pg.Plan(learn=("omega", "coupling"), objective=pg.objectives.OutputDifferences(), beta=2.0, epochs=2)
    >>> kind = Hardware(coupling_mismatch=0.02, readout=pg.measurement.Readout(0.01))
    >>> found = error_budget(networks, pg.datasets.vowels(["a", "i"]), kind, plan)
    >>> [entry.fault for entry in found.entries]
    ['none', 'coupling mismatch', 'reading', 'all together']
    """
    whole_number("number of networks", len(networks), 1, "error_budget")
    learned = {}
    for fault, kind in hardware.kinds(alone).items():
        show = None if progress is None else partial(progress, fault)
        if show is not None:
            show(0)
        learned[fault] = learn_with(kind, networks, data, plan, fault, show)
        if report is not None:
            report(learned[fault][0])
    chips = hardware.ensemble(networks[0], len(networks))
    deployed = _deployed(learned["none"][1], data, plan, chips)
    return Budget(
        hardware, plan.beta, tuple(entry for entry, _ in learned.values()), deployed, _runs(plan, data),
        advised(hardware, networks[0], data, plan),
    )  # fmt: skip


def advised(hardware: Hardware, network: Network, data: Any, plan: Plan) -> Measurement | str | None:
    """Return how the meter of a kind of chip should measure the gradient of a network on some training samples.

    See Also
    --------
    plan_measurement : Which nudge and how many readings.
    hardware.error_budget : Which fault costs how much.

    Examples
    --------
    >>> import phasegrad as pg
    >>> work = pg.hardware.task("vowels", 1)
    >>> kind = pg.hardware.Hardware(readout=pg.measurement.Readout(noise=0.01))
    >>> advice = pg.hardware.advised(kind, work.networks[0], work.data[0], work.plan)
    >>> type(advice).__name__
    'Measurement'
    """
    first = data[0] if isinstance(data, list) else data
    inputs = first.x_train[:_ADVISED].reshape(-1, len(network.inputs))
    if not hardware.readout.deviation or network.size > _SMALL:
        return None
    times: dict[str, Any] = {}
    if math.isfinite(hardware.seconds) and hardware.frequency is not None:
        times = {"frequency": hardware.frequency, "settling_cycles": hardware.seconds * hardware.frequency}
    try:
        return plan_measurement(
            network, find_equilibrium(network, inputs), plan.objective, first.y_train[:_ADVISED], hardware.readout,
            wrt=tuple(plan.rates), frequencies=plan.frequencies, method=plan.gradient, **times,
        )  # fmt: skip
    except ValueError as error:
        return str(error)


def learn_with(
    hardware: Hardware, networks: Sequence[Network], data: Any, plan: Plan, name: str = TOGETHER,
    progress: Callable[[int], object] | None = None,
) -> tuple[Entry, Training]:  # fmt: skip
    """Let chips of one kind learn, chip r with the seed r; return what became of them, and the training.

    ``progress`` is called with the epoch.

    See Also
    --------
    hardware.error_budget : Which fault costs how much.
    hardware.OnDevice : The engine that trains on devices.

    Examples
    --------
    >>> import phasegrad as pg
    >>> work = pg.hardware.task("vowels", 1)
    >>> kind = pg.hardware.Hardware(frequency_mismatch=0.01)
    >>> entry, training = pg.hardware.learn_with(kind, work.networks, work.data, work.plan.replace(epochs=1))
    >>> training.ended
    'finished'
    """

    def show(epoch: int, _history: History) -> None:
        if progress is not None:
            progress(epoch)

    chips = hardware.ensemble(networks[0], len(networks))
    cosines = _cosines(chips, networks, data, plan)
    result = train_whole(list(networks), data, plan, engine=OnDevice(chips, dead="count"), progress=show)
    history = result.history
    skipped, shortened = int(history.skipped.sum()), int(history.shortened.sum())
    return Entry(name, history.test_accuracy[:, -1], cosines, skipped, shortened), result


def _deployed(ideal: Training, data: Any, plan: Plan, chips: Ensemble) -> FloatArray:
    """Return the test accuracies of chips that are given what ideal networks learned."""
    result = train_whole(list(ideal.networks), data, plan, epochs=0, engine=OnDevice(chips, dead="count"))
    return np.asarray(result.history.test_accuracy[:, -1])


def _runs(plan: Plan, data: Any) -> int:
    """Return how often one chip settles for one sample while it learns, scores left aside."""
    first = data[0] if isinstance(data, list) else data
    per_sample = 1 + len(plan.propagation.record.signs or ()) + (plan.lock_floor is not None)
    return per_sample * plan.epochs * len(first.y_train)


def _cosines(chips: Ensemble, networks: Sequence[Network], data: Any, plan: Plan) -> FloatArray:
    """Return the cosine of the gradient that every chip measures and the one that it has, (R,).

    The latter is what a perfect meter would find by a very weak nudge after a very long time.
    """
    perfect = chips.hardware.replace(readout=Readout(), settling_time=None, jitter=0.0, drift=0.0)
    exact = _gradients(Ensemble(perfect, networks[0], chips.seeds), networks, data, plan, _WEAK)
    measured = _gradients(chips, networks, data, plan, plan.beta)
    return np.array(
        [cosine(*both) if np.isfinite(both).all() else math.nan for both in zip(measured, exact, strict=True)]
    )


def _gradients(chips: Ensemble, networks: Sequence[Network], data: Any, plan: Plan, beta: float) -> FloatArray:
    """Return the mean gradient of the first training samples that every chip shows under centred nudges, (R, width)."""
    sets = data if isinstance(data, list) else [data] * len(networks)
    inputs = np.stack([each.x_train[:_PROBED].reshape(-1, len(networks[0].inputs)) for each in sets])
    chips.program({name: np.stack([each.parameters[name] for each in networks]) for name in networks[0].parameters})
    chips.run(inputs)
    free, nodes = chips.read(), list(networks[0].outputs)
    targets = np.stack([plan.objective.check_target(each.y_train[:_PROBED], networks[0]) for each in sets])
    torques = beta * plan.objective.force(np.nan_to_num(free[:, :, nodes]), targets)
    shown = []
    for sign in (1, -1):
        chips.run(inputs, sign * torques)
        shown.append(chips.read())
    gradients = []
    for r, network in enumerate(networks):
        good = np.all(np.isfinite([free[r], shown[0][r], shown[1][r]]), axis=(0, 2))
        slopes = gradient_from_phases(
            network, free[r, good], shown[0][r, good], beta, opposite=shown[1][r, good], inputs=inputs[r, good],
            wrt=tuple(plan.rates), frequencies=plan.frequencies,
        )  # fmt: skip
        total = np.concatenate([each.sum(axis=0) for each in slopes.values()])
        gradients.append(total if good.any() else np.full(total.shape, np.nan))
    return np.stack(gradients)
