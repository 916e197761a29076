"""A way to a gradient with all its settings, as one value: what a training descends along."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from phasegrad._validation import Array, BoolArray, choice, positive_float
from phasegrad.gradients._adjoint import adjoint
from phasegrad.gradients._copies import dyadic, dyadic_slopes
from phasegrad.gradients._differences import finite_difference
from phasegrad.gradients._moving import ONE_WAY as MOVING_ONE_WAY
from phasegrad.gradients._moving import RATE, continuous, moving_slopes
from phasegrad.gradients._nudged import (
    centred,
    complex_scheme,
    drawn_signs,
    holomorphic,
    nudged_slopes,
    random_sign,
    two_phase,
)
from phasegrad.gradients._question import CORRECTIONS, Gradient, Question, refuse_one_way
from phasegrad.gradients._schemes import ONE_SIDED, symmetric
from phasegrad.gradients._thermal import ONE_WAY as THERMAL_ONE_WAY
from phasegrad.gradients._thermal import Bath, stochastic, thermal_slopes
from phasegrad.networks import Network

#: Methods whose nudged dynamics can be corrected.
CORRECTED: dict[str, Callable[..., Gradient]] = {
    "two_phase": two_phase, "centred": centred, "random_sign": random_sign, "holomorphic": holomorphic,
}  # fmt: skip
#: Every method that networks are trained by.
TRAINED: dict[str, Callable[..., Gradient]] = {
    "centred": centred, "two_phase": two_phase, "adjoint": adjoint, "finite_difference": finite_difference,
    "random_sign": random_sign, "holomorphic": holomorphic, "dyadic": dyadic, "continuous": continuous,
    "stochastic": stochastic,
}  # fmt: skip
_OPTIONS: dict[str, tuple[str, ...]] = {
    "centred": ("points", "pattern"), "holomorphic": ("points",), "continuous": ("rate",),
    "stochastic": ("temperature", "averages", "walkers", "steps"),
}  # fmt: skip
# Methods that need an energy, and why.
_RECIPROCAL = {"continuous": MOVING_ONE_WAY, "stochastic": THERMAL_ONE_WAY}
_STEP = 1e-5


@dataclass(frozen=True)
class Propagation:
    """A gradient method by name, its nudge, its correction, and what else it takes, by name.

    Checked when it is made; ``options`` are pairs of names and values.
    """

    method: str
    beta: float
    correction: str = "none"
    options: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        owner = "the plan"
        choice("gradient", self.method, TRAINED, owner)
        choice("correction", self.correction, CORRECTIONS, owner)
        positive_float("beta", self.beta, owner)
        if self.correction != "none" and self.method not in CORRECTED:
            raise ValueError(
                f"The 'correction' of {owner} is for gradients from nudged equilibria: {', '.join(CORRECTED)}. "
                f"gradient={self.method!r} has none: leave it out."
            )
        known = _OPTIONS.get(self.method, ())
        for name, _ in self.options:
            if name not in known:
                takes = f"takes {', '.join(known)}" if known else "takes none"
                raise ValueError(
                    f"The 'gradient_options' of {owner} name {name!r:.60}, but gradient={self.method!r} {takes}."
                )
        self._check_values(dict(self.options))

    def _check_values(self, given: dict[str, Any]) -> None:
        if self.method == "centred":
            symmetric(given.get("points", 2), given.get("pattern", "fit"), "centred")
        elif self.method == "holomorphic":
            complex_scheme(given.get("points", 1))
        elif self.method == "continuous":
            positive_float("rate", given.get("rate", RATE), "continuous")
        elif self.method == "stochastic":
            if "temperature" not in given:
                raise ValueError(
                    "gradient='stochastic' needs a temperature: Plan(gradient='stochastic', "
                    "gradient_options={'temperature': 0.001})."
                )
            Bath(**given)

    @property
    def biased(self) -> bool:
        """Whether it is off where coupling is not reciprocal, however weak the nudge."""
        return self.method in CORRECTED and self.correction == "none"

    @property
    def exact(self) -> bool:
        """Whether it is the exact gradient."""
        return self.method == "adjoint"

    @property
    def contrasts(self) -> bool:
        """Whether it is made of two states, nudged or free, that a batch of samples can be settled to at once."""
        return self.method in ("two_phase", "centred", "random_sign") and not self.options

    def check_network(self, network: Network) -> None:
        """Raise ValueError where the method cannot do a network."""
        if self.method in _RECIPROCAL:
            refuse_one_way(f"gradient={self.method!r}", network, *_RECIPROCAL[self.method])

    def gradient(self, *question: Any, **options: Any) -> Gradient:
        """Return the gradient of every sample, as the method's own function does."""
        given: dict[str, Any] = dict(self.options)
        if self.method in CORRECTED:
            given["correction"] = self.correction
        if self.method == "finite_difference":
            given["step"] = _STEP
        elif self.method != "adjoint":
            given["beta"] = self.beta
        return TRAINED[self.method](*question, **given, **options)

    def slopes(self, question: Question, stream: np.random.Generator | None) -> tuple[Mapping[str, Array], BoolArray]:
        """Return the slopes (B, width) of a flat batch, and where they were found, (B,), without their errors."""
        given = dict(self.options)
        if self.method == "dyadic":
            return dyadic_slopes(question, self.beta)
        if self.method == "continuous":
            return moving_slopes(question, self.beta, given.get("rate", RATE))
        if self.method == "stochastic":
            values, _, found = thermal_slopes(question, self.beta, Bath(**given), stream or np.random.default_rng())
            return values, found
        if self.method == "holomorphic":
            return nudged_slopes(question, complex_scheme(given.get("points", 1)), self.beta)
        if self.method == "centred":
            scheme = symmetric(given.get("points", 2), given.get("pattern", "fit"), "centred")
            return nudged_slopes(question, scheme, self.beta)
        signs = drawn_signs(question.system.batch, stream) if self.method == "random_sign" else 1.0
        return nudged_slopes(question, ONE_SIDED, self.beta, signs)
