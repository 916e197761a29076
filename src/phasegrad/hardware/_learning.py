"""Training on devices: every state and every reading comes from a device.

The digital side knows what it programmed and what it read. An update is: program, run without a nudge, read; freeze the
error of what was read, run with it and against it, read; from the readings a gradient (`gradient_from_phases`), from
that a step of the plan's optimiser. What the optimiser moves are copies in full precision, which the device rounds when
it is programmed, so that small steps add up to a change of level.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from phasegrad._validation import BoolArray, FloatArray, IntArray, choice, counted
from phasegrad.gradients import METHODS, gradient_from_phases
from phasegrad.hardware._chips import Ensemble
from phasegrad.hardware._device import Device
from phasegrad.networks import Network
from phasegrad.training import (
    HALVINGS,
    Arrays,
    DeviceError,
    Learner,
    Problem,
    Samples,
    Tallies,
    TrainingWarning,
    missing,
    tally,
)

_SCORED_AT_ONCE = 4096
_CALLS = ("program", "run", "read")
# Radians beyond which the phases of most samples are taken for degrees. A settled network spreads over less than a
# turn, and in degrees even the small phases of the paper's networks, 0.15 rad, are beyond.
_FARTHEST = 2 * np.pi


class Devices(Protocol):
    """The three calls of a device with one more axis in front, one entry per device."""

    limits: Any

    def __len__(self) -> int:
        """Return how many there are."""

    def program(self, parameters: Mapping[str, FloatArray]) -> None:
        """Set parameters by name, (R, width) each."""

    def run(self, inputs: FloatArray, torques: FloatArray | None = None) -> None:
        """Let all settle for inputs (R, B, n_in), under torques (R, B, M)."""

    def read(self) -> FloatArray:
        """Return phases (R, B, N)."""


class Bench:
    """Devices of any kind, one after another."""

    def __init__(self, devices: Iterable[Device]) -> None:
        self.devices = tuple(devices)
        for k, device in enumerate(self.devices):
            lacking = [name for name in _CALLS if not callable(getattr(device, name, None))]
            if lacking or isinstance(device, type):
                words = (
                    "is a class: make one of it" if isinstance(device, type) else f"has no {' and no '.join(lacking)}"
                )
                raise TypeError(f"Device {k} ({device!r:.60}) {words}. A device has program, run and read.")

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.devices)

    @property
    def limits(self) -> dict[str, tuple[float, float]]:
        """Between which values all of them can be programmed, as far as they say so in ``limits``."""
        joint: dict[str, tuple[float, float]] = {}
        for device in self.devices:
            for name, (low, high) in dict(getattr(device, "limits", {})).items():
                least, most = joint.get(name, (-np.inf, np.inf))
                joint[name] = max(low, least), min(high, most)
        return joint

    def program(self, parameters: Mapping[str, FloatArray]) -> None:
        """Set parameters by name, (R, width) each."""
        for r, device in enumerate(self.devices):
            _called(r, device, "program", {name: values[r] for name, values in parameters.items()})

    def run(self, inputs: FloatArray, torques: FloatArray | None = None) -> None:
        """Let all settle for inputs (R, B, n_in), under torques (R, B, M)."""
        for r, device in enumerate(self.devices):
            _called(r, device, "run", inputs[r], None if torques is None else torques[r])

    def read(self) -> FloatArray:
        """Return phases (R, B, N)."""
        shown = []
        for r, device in enumerate(self.devices):
            try:
                shown.append(np.asarray(_called(r, device, "read"), dtype=np.float64))
            except (TypeError, ValueError) as error:
                raise ValueError(f"Device {r} did not return numbers: {error}.") from error
        odd = [r for r, each in enumerate(shown) if each.shape != shown[0].shape]
        if odd:
            raise ValueError(
                f"Device {odd[0]} returned phases of shape {shown[odd[0]].shape}, device 0 of {shown[0].shape}. All "
                "must return one row per sample and one phase per oscillator."
            )
        return np.stack(shown)


def _called(r: int, device: Device, call: str, *given: Any) -> Any:
    """Return what a call to device r returns; raise `DeviceError` where it fails, unless it was called wrongly."""
    try:
        return getattr(device, call)(*given)
    except (TypeError, ValueError):
        raise
    except Exception as error:
        raise DeviceError(
            f"Device {r} failed in {call}: {type(error).__name__}: {error}. What was trained until the last "
            "full epoch is kept: go on by train(..., state=error.state)."
        ) from error


class OnDevice:
    """An engine for `train`: one device per network, in the same order.

    Plans with ``gradient="centred"`` (default) or ``"two_phase"`` are taken; the nudge is frozen, so that ``beta`` may
    be as strong as the devices hold. Where it unlocks a sample it is halved there, up to six times, and said once; the
    history counts such updates as ``shortened``. The lock guard of a plan (``lock_floor``) goes by what a device shows:
    after an update the same samples run again, and the update is halved until all that were locked still are. Scores
    are of readings too.

    A device that raises an exception, as when a bus does not answer, ends the training by a `DeviceError`, which keeps
    the last full epoch to go on from. Phases are radians; where most samples read more than one turn before training,
    the device is refused, with a hint at degrees.

    Parameters
    ----------
    devices : Ensemble, or sequence of Device
        Chips of an ensemble run at once, devices of a sequence one after another.
    dead : {"refuse", "count"}
        What to do about a device none of whose samples settles before training: stop with an error, or go on and count
        all of them as wrong.

    See Also
    --------
    train : Train one network or many.
    hardware.Device : The three calls of a chip.
    hardware.DeviceError : A device failed while it trained.

    Examples
    --------
    Fifty chips with five coupling levels would be ``ensemble(network, 50)``; here two:

    >>> import phasegrad as pg
    >>> network, data = pg.layered(2, 5, 2), pg.datasets.vowels(["a", "i"])
    >>> chips = pg.hardware.Hardware(coupling_levels=5).ensemble(network, 2)
    >>> rates, objective = {"omega": 0.05, "coupling": 0.05}, pg.objectives.OutputDifferences()
    >>> plan = pg.Plan(learn=rates, objective=objective, beta=1.0, epochs=5)
    >>> result = pg.train([network] * 2, data, plan, engine=pg.hardware.OnDevice(chips))
    >>> result.history.test_accuracy.shape
    (2, 6)

    An instrument, or any function of one's own, needs three methods. Here a function from parameters, inputs and
    torques to phases stands for the laboratory:

    >>> import numpy as np
    >>> def laboratory(parameters, inputs, torques):
    ...     set_up = network.replace(**parameters)
    ...     nudge = None if torques is None else pg.Nudge(pg.objectives.Torques(), torques, 1.0)
    ...     found = pg.find_equilibrium(set_up, inputs, nudge=nudge)
    ...     return np.where(found.stable[:, None], found.phases, np.nan)
    >>> class Laboratory:
    ...     def __init__(self):
    ...         self.parameters = {}
    ...     def program(self, parameters):
    ...         self.parameters.update(parameters)
    ...     def run(self, inputs, torques=None):
    ...         self.phases = laboratory(self.parameters, inputs, torques)
    ...     def read(self):
    ...         return self.phases
    >>> result = pg.train(network, data, plan, epochs=2, engine=pg.hardware.OnDevice([Laboratory()]))
    >>> bool(result.history.train_loss[0, -1] < result.history.train_loss[0, 0])
    True
    """

    def __init__(self, devices: Any, *, dead: str = "refuse") -> None:
        if not isinstance(devices, Ensemble):
            if not isinstance(devices, Iterable):
                raise TypeError(f"OnDevice takes an Ensemble, or a list of devices. Got {devices!r:.80}.")
            devices = Bench(devices)
        if not len(devices):
            raise ValueError("OnDevice needs at least one device. Got none.")
        self.devices: Devices = devices
        self.dead = choice("dead", dead, ("refuse", "count"), "OnDevice")

    def refuses(self, problem: Problem) -> str:
        """Return why it cannot do this, in a sentence; empty if it can."""
        plan, networks = problem.plan, problem.networks
        if len(networks) != len(self.devices):
            have = f"{counted(len(self.devices), 'device')} and {counted(len(networks), 'network')}"
            return f"Training on devices needs one device per network. There are {have}."
        readable = [name for name, method in METHODS.items() if method.readable]
        if plan.gradient not in readable:
            return (
                f"A device shows no gradient={plan.gradient!r}: it can only be nudged and read. Use gradient="
                f"{' or '.join(map(repr, readable))}."
            )
        if plan.gradient_options:
            return "A device is nudged by +beta and -beta, or by +beta. Train without 'gradient_options'."
        if not networks[0].reciprocal:
            return "Without reciprocal coupling nudged phases do not show the gradient, so that devices cannot learn."
        if plan.warm_start != "none":
            return "A device starts every run by itself. Train with warm_start='none'."
        if plan.accept is not None or plan.record:
            return "A device shows phases and nothing else. Train without 'accept' and 'record'."
        return ""

    def __call__(self, problem: Problem) -> _Trainer:
        """Return the engine of a problem."""
        return _Trainer(problem, self.devices, self.dead)


class _Nudged(NamedTuple):
    """Readings under nudges, (R, B, N) each, their strengths (R, B), and which samples were locked in all of them."""

    ahead: FloatArray
    behind: FloatArray | None
    beta: FloatArray
    locked: BoolArray


class _Trainer(Learner):
    """Networks that learn on devices; see `phasegrad.training.Engine`."""

    def __init__(self, problem: Problem, devices: Devices, dead: str) -> None:
        super().__init__(problem, np.arange(len(problem.networks)))
        self.devices, self.dead, self.warned = devices, dead, False
        for name, (low, high) in dict(devices.limits).items():
            if name in self.learn:
                least, most = self.descent.bounds.get(name, (-np.inf, np.inf))
                self.descent.bounds[name] = np.maximum(low, least), np.minimum(high, most)

    @staticmethod
    def refuses(problem: Problem) -> str:
        """Return nothing: `OnDevice` has been asked."""
        del problem
        return ""

    def stop(self, chosen: BoolArray) -> None:
        """Let some of the networks learn no more."""
        self.active &= ~chosen

    def score(self, part: str) -> Tallies:
        """Return the sums over readings of a part, (R, 1)."""
        samples, count = self.parts[part], self.parts[part].count
        at_once, total = max(1, _SCORED_AT_ONCE // self.rows.size), Tallies.zeros(self.rows.size)
        self.devices.program(self.progress.parameters)
        for first in range(0, count, at_once):
            numbers = np.arange(first, min(first + at_once, count))
            some = self.samples_of(samples, np.broadcast_to(numbers, (self.rows.size, numbers.size)))
            phases = self._read(some.inputs)
            if part == "train":
                _check_radians(phases)
            total += self._tallied(phases, some)
        lost = np.flatnonzero(total.unsettled >= count)
        if lost.size and part == "train" and self.dead == "refuse":
            raise ValueError(
                f"Device {lost[0]} returned NaN for all of {counted(count, 'sample')}: nothing settles there, or "
                "nothing is read. Check what is programmed, or go on without it by OnDevice(..., dead='count')."
            )
        return Tallies.epochs([total])

    def update(self, some: Samples, inputs: FloatArray, factor: float) -> Tallies:
        """Program, run, nudge and step for one batch of every network; return its sums."""
        self.devices.program(self.progress.parameters)
        free = self._read(inputs)
        tallies, settled = self._tallied(free, some), _locked(free)
        if not self.learn or not np.any(some.weights * settled):
            return tallies._replace(skipped=tallies.skipped + missing(settled, some))
        nudged = self._nudged(free, settled, inputs, some)
        weights = np.where(nudged.locked, some.weights, 0.0)
        share = weights / np.maximum(np.sum(weights, axis=1, keepdims=True), 1e-300)
        moves = np.any(weights > 0, axis=1) & self.active
        gradient = self._gradient(free, nudged, inputs, share, moves)

        def locked(trial: Arrays, asked: BoolArray) -> BoolArray:
            del asked
            self.devices.program(trial)
            return ~np.any(settled & ~_locked(self._read(inputs)), axis=1)

        short = self.step(gradient, factor, moves, locked)
        short |= np.any(nudged.locked & (nudged.beta < self.plan.beta), axis=1)
        return tallies._replace(
            skipped=tallies.skipped + missing(nudged.locked, some),
            shortened=short.astype(float), updates=moves.astype(float),
        )  # fmt: skip

    def _read(self, inputs: FloatArray, torques: FloatArray | None = None) -> FloatArray:
        """Return readings (R, B, N) of a run; samples without a reading of every oscillator are NaN."""
        self.devices.run(inputs, torques)
        phases = np.asarray(self.devices.read(), dtype=np.float64)
        shape = (*inputs.shape[:2], self.network.size)
        if phases.shape != shape:
            raise ValueError(
                f"A device must return one row per sample and one phase per oscillator, here {shape[1:]}. Got shape "
                f"{phases.shape[1:]}."
            )
        return np.where(_locked(phases)[..., None], phases, np.nan)

    def _tallied(self, phases: FloatArray, some: Samples) -> Tallies:
        settled = _locked(phases)
        outputs = np.take(phases, self.nodes, axis=2)
        return tally(self.cost, outputs, settled, np.zeros_like(settled), some)

    def _nudged(self, free: FloatArray, settled: BoolArray, inputs: FloatArray, some: Samples) -> _Nudged:
        """Return readings under the frozen error of what was read, weaker where a sample does not stay locked."""
        outputs = np.nan_to_num(np.take(free, self.nodes, axis=2))
        flat = outputs.reshape(-1, self.nodes.size), some.targets.reshape(settled.size, -1)
        error = self.cost.force(*flat).reshape(outputs.shape) * settled[..., None]
        beta = np.where(settled, self.plan.beta, 0.0)
        both = len(self.plan.propagation.record.signs or ()) > 1
        ahead, behind = np.full(free.shape, np.nan), np.full(free.shape, np.nan) if both else None
        waiting = settled.copy()
        for _ in range(1 + HALVINGS):
            torques = beta[..., None] * error
            now = self._read(inputs, torques)
            then = self._read(inputs, -torques) if both else now
            good = waiting & _locked(now) & _locked(then)
            ahead[good] = now[good]
            if behind is not None:
                behind[good] = then[good]
            waiting &= ~good
            if not waiting.any():
                break
            self._say(int(waiting.sum()))
            beta = np.where(waiting, beta / 2, beta)
        return _Nudged(ahead, behind, beta, settled & ~waiting)

    def _say(self, samples: int) -> None:
        if not self.warned:
            self.warned = True
            warnings.warn(
                f"A nudge of {self.plan.beta:g} unlocked {counted(samples, 'sample')} of a batch. It is halved there, "
                "now and in later updates, without another warning; the history counts such updates as shortened.",
                TrainingWarning,
                stacklevel=2,
            )

    def _gradient(
        self, free: FloatArray, nudged: _Nudged, inputs: FloatArray, share: FloatArray, moves: BoolArray
    ) -> dict[str, FloatArray]:
        """Return the mean gradient of every network by what learns, (R, width), from readings alone."""
        parameters, plan = self.progress.parameters, self.plan
        mean = {name: np.zeros_like(parameters[name]) for name in self.learn}
        for r in np.flatnonzero(moves):
            rows: IntArray = np.flatnonzero(share[r])
            network = self._network(int(r))
            slopes = gradient_from_phases(
                network, free[r, rows], nudged.ahead[r, rows], plan.beta,
                opposite=None if nudged.behind is None else nudged.behind[r, rows], inputs=inputs[r, rows],
                wrt=self.learn, frequencies=plan.frequencies,
            )  # fmt: skip
            # A weaker nudge shifts phases less.
            weight = share[r, rows] * plan.beta / nudged.beta[r, rows]
            for name in self.learn:
                mean[name][r] = weight @ slopes[name]
        return mean

    def _network(self, r: int) -> Network:
        return self.network.replace(**{name: values[r] for name, values in self.progress.parameters.items()})


def _check_radians(phases: FloatArray) -> None:
    """Refuse readings (R, B, N) whose samples are for the most part more than a turn away from the reference."""
    farthest = np.max(np.abs(phases), axis=2)
    for r, settled in enumerate(farthest[k][np.isfinite(farthest[k])] for k in range(len(farthest))):
        if settled.size and np.median(settled) > _FARTHEST:
            raise ValueError(
                f"Device {r} returned phases as large as {settled.max():.4g}, beyond one turn for most samples. "
                "Phases are radians, counted from the reference: convert degrees by np.deg2rad, and take off whole "
                "turns."
            )


def _locked(phases: FloatArray) -> BoolArray:
    """Return which samples have a phase of every oscillator, (R, B)."""
    return np.all(np.isfinite(phases), axis=2)
