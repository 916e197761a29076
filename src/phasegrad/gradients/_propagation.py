"""A gradient method with its nudge, correction and options, as one value: what a training descends along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from phasegrad._validation import Array, BoolArray, choice, positive_float
from phasegrad.gradients._gradient import Gradient
from phasegrad.gradients._method import Method
from phasegrad.gradients._nudged import drawn_signs, read_nudged
from phasegrad.gradients._problem import CORRECTIONS, Problem
from phasegrad.gradients._schemes import Scheme
from phasegrad.gradients.methods import METHODS
from phasegrad.gradients.methods.finite_difference import TRAINING_STEP
from phasegrad.graphs import lazy_property
from phasegrad.networks import Network


@dataclass(frozen=True)
class Propagation:
    """A gradient method by name, its nudge, its correction, and its other options.

    Checked when it is made; ``options`` are pairs of names and values.
    """

    method: str
    beta: float
    correction: str = "none"
    options: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        owner = "the plan"
        choice("gradient", self.method, [each.name for each in METHODS.values() if each.trains], owner)
        choice("correction", self.correction, CORRECTIONS, owner)
        positive_float("beta", self.beta, owner)
        if self.correction != "none" and not self.record.correctable:
            correctable = ", ".join(each.name for each in METHODS.values() if each.correctable)
            raise ValueError(
                f"The 'correction' of {owner} is for gradients from nudged equilibria: {correctable}. "
                f"gradient={self.method!r} has none: leave it out."
            )
        known = self.record.options
        for name, _ in self.options:
            if name not in known:
                takes = f"takes {', '.join(known)}" if known else "takes none"
                raise ValueError(
                    f"The 'gradient_options' of {owner} name {name!r:.60}, but gradient={self.method!r} {takes}."
                )
        for name, needed in known.items():
            if needed and name not in dict(self.options):
                raise ValueError(
                    f"gradient={self.method!r} needs a {name}: Plan(gradient={self.method!r}, "
                    f"gradient_options={{{name!r}: 0.001}})."
                )
        _ = self.scheme

    @property
    def record(self) -> Method:
        """What is known about the method."""
        return METHODS[self.method]

    @lazy_property
    def scheme(self) -> Scheme | None:
        """Its nudges, None where it has none."""
        return None if self.record.scheme is None else self.record.scheme(**dict(self.options))

    @property
    def contrast(self) -> Scheme | None:
        """The scheme, where the gradient is the difference of two states of one network; None elsewhere."""
        scheme = self.scheme
        return scheme if scheme is not None and scheme.contrasts and self.record.slopes is None else None

    @property
    def draws(self) -> bool:
        """Whether it draws random numbers."""
        return self.record.draws

    @property
    def biased(self) -> bool:
        """Whether it is off where coupling is not reciprocal, however weak the nudge."""
        return self.record.correctable and self.correction == "none"

    @property
    def exact(self) -> bool:
        """Whether it is the exact gradient."""
        return self.record.exact

    def check_network(self, network: Network) -> None:
        """Raise ValueError where the method cannot do a network."""
        self.record.check_network(network, f"gradient={self.method!r}")

    def gradient(self, *question: Any, **options: Any) -> Gradient:
        """Return the gradient of every sample, as the method's own function does."""
        settings = {"beta": self.beta, "correction": self.correction, "step": TRAINING_STEP}
        given = {name: value for name, value in settings.items() if self.record.takes(name)}
        return self.record.function(*question, **given, **dict(self.options), **options)

    def signs(self, count: int, stream: np.random.Generator | None) -> Array | float:
        """Return the signs of the nudges of so many samples: 1, or (count, 1) where the method draws them."""
        return drawn_signs(count, stream) if self.draws else 1.0

    def slopes(self, problem: Problem, stream: np.random.Generator | None) -> tuple[Mapping[str, Array], BoolArray]:
        """Return the slopes (B, width) of a flat batch, and where they were found, (B,), without their errors."""
        if self.record.slopes is not None:
            return self.record.slopes(problem, self.beta, stream, **dict(self.options))
        scheme = self.scheme
        assert scheme is not None  # the exact gradient of a batch is one transposed solve
        signs = self.signs(problem.system.batch, stream)
        reading = read_nudged(problem, scheme, self.beta, signs=signs)
        return reading.values, reading.found
