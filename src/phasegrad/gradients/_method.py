"""A gradient method as a record: all that the rest of the library has to know about it.

Every file of `phasegrad.gradients.methods` has one public function and its record, ``METHOD``. Comparisons, training,
engines, the PyTorch layer, the planning of measurements, the documentation and the command line read these records and
know no method by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from phasegrad._validation import Array, BoolArray
from phasegrad.gradients._gradient import Gradient
from phasegrad.gradients._schemes import Scheme
from phasegrad.graphs import lazy_property
from phasegrad.networks import Network

#: Takes a problem, beta, a stream or None, and options by name. Returns the slopes (B, width) of the flat batch by
#: name, without their errors, and the mask (B,) of the samples that have them.
Slopes: TypeAlias = Callable[..., tuple[Mapping[str, Array], BoolArray]]


@dataclass(frozen=True)
class Method:
    """A way to a gradient.

    Attributes
    ----------
    function : callable
        The public function. Its name is the name of the method.
    scheme : callable or None
        Takes the options of the method by name, checks them, and returns the nudges with their weights, the order of
        the error in beta and the relative error aimed at. None for a method that does not nudge.
    slopes : Slopes or None
        Finds the slopes of a flat batch. None where the scheme, in one network, is all there is to the method.
    exact : bool
        Whether it is the exact gradient, which a batch has by one transposed solve.
    perturbs : bool
        Whether it changes raw frequencies itself, so that its slopes are already in the units asked for.
    needs_energy : (str, str) or None
        Why the method needs reciprocal coupling, and what to use without it. None where it does not.
    correctable : bool
        Whether its nudged dynamics can be given ``correction="asymmetric"`` where coupling is not reciprocal. Without
        the correction such a method is biased there.
    readable : bool
        Whether a phase meter can stand between its states and the gradient.
    trains : bool
        Whether networks can be trained by it.
    draws : bool
        Whether it draws random numbers.
    compared : bool
        Whether `check_gradients` compares it if no methods are named.
    package : str
        The optional package that it needs.
    lane : int or None
        Its number in the compiled lanes of training, None where they do not have it.
    """

    function: Callable[..., Gradient]
    scheme: Callable[..., Scheme] | None = None
    slopes: Slopes | None = None
    exact: bool = False
    perturbs: bool = False
    needs_energy: tuple[str, str] | None = None
    correctable: bool = False
    readable: bool = False
    trains: bool = True
    draws: bool = False
    compared: bool = False
    package: str = ""
    lane: int | None = None

    @property
    def name(self) -> str:
        """The name, that of the public function."""
        return self.function.__name__

    @lazy_property
    def options(self) -> dict[str, bool]:
        """Names of the options beyond the nudge, and whether each must be given."""
        parameters = {} if self.scheme is None else inspect.signature(self.scheme).parameters
        return {name: each.default is inspect.Parameter.empty for name, each in parameters.items()}

    @lazy_property
    def usual(self) -> Scheme | None:
        """The scheme with no option given, None where there is no such scheme."""
        return None if self.scheme is None or any(self.options.values()) else self.scheme()

    @lazy_property
    def signs(self) -> tuple[float, ...] | None:
        """Signs of the nudges that engines settle a batch under: none for the exact gradient, +, or + and -.

        None where the gradient is not made like that, or where the sign is drawn.
        """
        if self.exact:
            return ()
        scheme = self.usual
        if scheme is None or not scheme.contrasts or self.slopes is not None or self.draws:
            return None
        signs = tuple(float(np.real(strength)) for strength in scheme.nudges)
        return signs if signs in ((1.0,), (1.0, -1.0)) else None

    def takes(self, parameter: str) -> bool:
        """Return whether the public function has a parameter of this name."""
        return parameter in inspect.signature(self.function).parameters

    def check_network(self, network: Network, owner: str) -> None:
        """Raise ValueError where the method needs an energy that the network does not have."""
        if self.needs_energy is not None and not network.reciprocal:
            why, instead = self.needs_energy
            raise ValueError(f"{owner} needs reciprocal coupling: {why}. Use {instead}.")
