"""How a network is let settle, as one value."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import BoolArray, FloatArray, choice, positive_float
from phasegrad.equilibria._equilibrium import Equilibrium, find_equilibrium
from phasegrad.networks import Network
from phasegrad.solvers import SOLVERS

# Phases of samples that settle together where only the outputs are asked for.
_NUMBERS = 2_000_000


@dataclass(frozen=True)
class Settling:
    """Solver and tolerance with which a network is let settle from phase zero.

    Scores during training, predictions and the model file share one, and try the same solvers in the same order: a
    sample that a prediction settles counts as settled in the history too. An update of training gives a sample up
    sooner, a plan with warm starts begins where the last sample ended, and the torch engine settles by sweeps; of
    several stable states these may end in another one.

    Parameters
    ----------
    solver : {"auto", "newton", "sparse", "flow", "batch"}
        As in `find_equilibrium`.
    tolerance : float
        The residual to reach.

    See Also
    --------
    find_equilibrium : One certified equilibrium per sample.
    Plan : How networks are trained.
    Newton : Guarded Newton on the energy.

    Examples
    --------
    >>> import phasegrad as pg
    >>> bool(pg.training.Settling("batch", 1e-9).equilibrium(pg.layered(2, 5, 2), [0.5, -0.5]).stable)
    True
    """

    solver: str = "auto"
    tolerance: float = 1e-12

    def __post_init__(self) -> None:
        choice("solver", self.solver, SOLVERS, "Settling")
        positive_float("tolerance", self.tolerance, "Settling")

    def equilibrium(self, network: Network, inputs: ArrayLike | None = None) -> Equilibrium:
        """Let a network settle from phase zero."""
        return find_equilibrium(network, inputs, solver=self.solver, tolerance=self.tolerance)

    def outputs(self, network: Network, inputs: ArrayLike) -> tuple[FloatArray, BoolArray]:
        """Return the output phases (n, M) of samples (n, n_in), and which of them are stable, (n,).

        A part of the samples settles at a time, so that memory does not grow with what is not returned.
        """
        samples, count = np.asarray(inputs, dtype=float), max(1, _NUMBERS // network.size)
        phases, stable = np.empty((len(samples), len(network.outputs))), np.empty(len(samples), dtype=bool)
        for part in (slice(first, first + count) for first in range(0, len(samples), count)):
            found = self.equilibrium(network, samples[part])
            phases[part], stable[part] = found.phases[:, list(network.outputs)], found.stable
        return phases, stable

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)
