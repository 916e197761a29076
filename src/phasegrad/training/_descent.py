r"""One step of descent, for arrays and tensors alike: from mean gradients to the parameters after an update.

    gradient -> clip -> mask -> optimiser -> weight decay -> lock guard -> balance -> norm -> bounds

Values are (R, width) by name: NumPy arrays of R networks that learn side by side, or PyTorch tensors of one network, on
which nothing here waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from phasegrad._validation import BoolArray, FloatArray
from phasegrad.networks import Network
from phasegrad.training._norms import Norms
from phasegrad.training._optimizers import Memory, Optimizer, functions_for
from phasegrad.training._plan import Plan

#: Times that the lock guard halves an update before it refuses it: what a 64th of a step unlocks is on the edge anyway.
HALVINGS = 6
Values = dict[str, Any]


class Descent:
    """What a plan makes of gradients.

    Parameters
    ----------
    plan : Plan
    rates : mapping of str to value
        Learning rates by name, one number or one per entry.
    masks : mapping of str to value
        Which entries learn, of the names of which not all do.
    decays : mapping of str to value
        Weight decay of the names that decay.
    bounds : mapping of str to (value, value)
        Where values are kept, also of names that do not learn.
    couplings : mapping of str to Couplings
        What else couplings are kept to.
    """

    def __init__(
        self,
        plan: Plan,
        rates: Mapping[str, Any],
        masks: Mapping[str, Any],
        decays: Mapping[str, Any],
        bounds: Mapping[str, tuple[Any, Any]],
        couplings: Mapping[str, Couplings],
    ) -> None:
        self.optimizer: Optimizer = plan.optimizer
        self.clip = plan.clip
        self.rates, self.masks, self.decays = rates, masks, decays
        self.bounds, self.couplings = dict(bounds), couplings

    def begin(self, values: Values) -> None:
        """Begin an epoch."""
        for name, couplings in self.couplings.items():
            couplings.begin(values[name])

    def propose(self, values: Values, memory: Memory, slopes: Values, factor: Any, moves: Any) -> tuple[Values, Memory]:
        """Return what to add to the values of the networks that move, (R,), and the optimiser's memory after it."""
        gradients = {}
        for name, given in slopes.items():
            slope = given if self.clip is None else given.clip(-self.clip, self.clip)
            gradients[name] = slope * self.masks[name] if name in self.masks else slope
        rates = {name: rate * factor for name, rate in self.rates.items()}
        steps, memory = self.optimizer.step(memory, gradients, rates)
        for name, step in steps.items():
            if name in self.decays:
                lost = rates[name] * self.decays[name] * values[name]
                step = step - (lost * self.masks[name] if name in self.masks else lost)
            steps[name] = functions_for(step).where(moves[:, None], step, 0.0)
        return steps, memory

    def moved(self, values: Values, steps: Values, fraction: Any, moves: Any) -> Values:
        """Return the values after a fraction of the steps, (R,) or None for all of it, of the networks that move."""
        after = dict(values)
        for name in {**steps, **self.bounds}:
            before = now = values[name]
            if name in steps:
                now = before + (steps[name] if fraction is None else fraction[:, None] * steps[name])
            if name in self.couplings:
                self.couplings[name].keep_to(now)
            functions = functions_for(now)
            if name in self.bounds:
                now = functions.clip(now, *self.bounds[name])
            after[name] = functions.where(moves[:, None], now, before)
        return after

    def conclude(self) -> None:
        """Make the values that were moved last those from which the next update goes on."""
        for couplings in self.couplings.values():
            couplings.conclude()


class Couplings:
    """What couplings of layers are kept to besides their bounds: sums of zero, and a largest norm.

    ``places`` says where they lie in the last axis of what is given, by name.
    """

    def __init__(self, network: Network, plan: Plan, norms: Norms | None, places: Mapping[str, slice]) -> None:
        self.layout, self.clamped = network.graph.layout, network.clamps_inputs
        self.norms, self.places = norms, places
        self.balanced = [places[name] for name in on_edges(network, plan) if plan.balance and name in places]

    def begin(self, values: Any) -> None:
        """Look at the couplings anew."""
        if self.norms is not None:
            self.norms.begin(values[:, self.places["coupling"]])

    def keep_to(self, values: Any) -> None:
        """Change values (R, n) in place."""
        for where in self.balanced:
            assert self.layout is not None
            parts = self.layout.balanced(values[:, where], clamped=self.clamped)
            values[:, where] = functions_for(values).concatenate(parts, -1)
        if self.norms is not None:
            self.norms.bound(values[:, self.places["coupling"]])

    def conclude(self) -> None:
        """Go on from the values that were kept to last."""
        if self.norms is not None:
            self.norms.keep()


def guarded(
    moves: BoolArray, attempt: Callable[[FloatArray], Any], locked: Callable[[Any, BoolArray], BoolArray]
) -> tuple[Any, FloatArray]:
    """Return what ``attempt`` makes of the largest fractions of a step, (R,), that leave networks locked, and these.

    A fraction is halved while ``locked``, given what was made and which networks are asked about, does not say that its
    network stays so. What `HALVINGS` of them do not save is refused: its fraction is zero.
    """
    fraction, waiting = np.ones(moves.size), moves.copy()
    for _ in range(HALVINGS):
        made = attempt(fraction)
        waiting &= ~locked(made, waiting)
        if not waiting.any():
            return made, fraction
        fraction[waiting] /= 2
    fraction[waiting] = 0.0
    return attempt(fraction), fraction


def bounds_of(network: Network, plan: Plan) -> dict[str, tuple[Any, Any]]:
    """Return lower and upper bounds by name; entries of inputs, which belong to the data, have none."""
    bounds: dict[str, tuple[Any, Any]] = {}
    for term in network.terms:
        for parameter in term.parameters:
            name = parameter.name
            low, high = plan.limits.get(name, (-np.inf, np.inf))
            if not network.signed and name in plan.rates:
                low = max(low, parameter.least)
            if np.isfinite(low) or np.isfinite(high):
                free = ~parameter.learnable(network.graph)
                bounds[name] = (np.where(free, -np.inf, low), np.where(free, np.inf, high))
    return bounds


def rates_of(network: Network, plan: Plan) -> dict[str, Any]:
    """Return the learning rates by name; those of couplings go by the number of inputs where the plan says so."""
    rates: dict[str, Any] = dict(plan.rates)
    if plan.fan_in is not None:
        scale = np.minimum(1.0, plan.fan_in / network.graph.fan_in)
        rates |= {name: rates[name] * scale for name in on_edges(network, plan)}
    return rates


def decays_of(network: Network, plan: Plan) -> dict[str, float]:
    """Return the weight decay of what decays and learns, by name."""
    decaying = [name for name in plan.rates if network.term_of(name)[1].decays]
    return dict.fromkeys(decaying, plan.weight_decay) if plan.weight_decay else {}


def on_edges(network: Network, plan: Plan) -> list[str]:
    """Return what learns on edges."""
    return [name for name in plan.rates if network.term_of(name)[1].on == "edges"]
