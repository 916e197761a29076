r"""What a power engineer asks of a grid: is it synchronous, which lines are strained, how far is the edge, what helps.

Relieving a line (i, j) is a gradient like any other: with the cost C = 1/2 [(theta_i - m)^2 + (theta_j - m)^2] that
draws both ends to their midpoint m, the phase shift under a weak nudge tells every generator how its output bears on
the angle across the line.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from phasegrad._validation import FloatArray, float_between
from phasegrad.dynamics import wrapped
from phasegrad.equilibria import CriticalScale, Equilibrium, critical_scale, find_equilibrium
from phasegrad.gradients import adjoint, cosine, two_phase
from phasegrad.grids._grid import Grid
from phasegrad.objectives import PhaseTargets

#: Share of a line's angle that a redispatch is sized to take away, by the linear prediction.
RELIEF = 0.1
MOST_STRESSED = 5
#: Factors on all injections that make sense.
SCALES = (1e-6, 1e6)
_SMALLER = 60


@dataclass(frozen=True, eq=False)
class Relief:
    """A redispatch that relieves one line.

    Attributes
    ----------
    line : int
        The edge.
    redispatch : ndarray, shape (N,)
        Change of injected power, per unit; it sums to zero and is zero where no generator is.
    agreement : float
        Cosine between the two-phase and the adjoint gradient.
    before, predicted, after : float
        Angle across the line in radians: now, by the gradient, and by solving again.

    See Also
    --------
    grids.analyse : Stressed lines, margin and relief of a grid.

    Examples
    --------
    >>> import numpy as np
    >>> import phasegrad as pg
    >>> relief = pg.grids.analyse(pg.grids.load("case9"), relieve="9-4").relief
    >>> np.degrees([relief.before, relief.predicted, relief.after]).round(2)
    array([1.85, 1.67, 1.67])
    """

    line: int
    redispatch: FloatArray
    agreement: float
    before: float
    predicted: float
    after: float


@dataclass(frozen=True, eq=False)
class GridAnalysis:
    """Everything `phasegrad grid` reports: the grid with its injections scaled, its state, its margin and a relief.

    ``angles`` (E,) are the phase differences from the first to the second bus of every line, where there is a stable
    state. ``margin`` is the critical scale, counted from the grid as it is here: of that state or, where there is none,
    of the one at half the injections, a quarter, and so on; None if none of them has one. ``flat`` says whether all
    phases equal is a stable state without injections: near it a power flow ends, and negative couplings may undo it.

    See Also
    --------
    grids.analyse : Stressed lines, margin and relief of a grid.

    Examples
    --------
    >>> import phasegrad as pg
    >>> found = pg.grids.analyse(pg.grids.load("case9"))
    >>> found.synchronous, [found.grid.lines[line] for line in found.stressed[:2]]
    (True, ['8-9', '5-6'])
    """

    grid: Grid
    scale: float
    equilibrium: Equilibrium
    angles: FloatArray
    margin: CriticalScale | None
    flat: bool
    relief: Relief | None

    @property
    def synchronous(self) -> bool:
        """Whether there is a stable state; without one there are no angles to speak of."""
        return bool(self.equilibrium.stable)

    @property
    def negative(self) -> list[int]:
        """The lines of negative coupling."""
        return np.flatnonzero(self.grid.coupling < 0).tolist()

    @property
    def beyond(self) -> list[int]:
        """The lines whose ends are more than a quarter turn apart, in a stable state."""
        return np.flatnonzero(np.abs(self.angles) > np.pi / 2).tolist() if self.synchronous else []

    @property
    def stressed(self) -> list[int]:
        """The lines of largest angle, the largest first; none without a stable state."""
        if not self.synchronous:
            return []
        return np.argsort(-np.abs(self.angles), kind="stable")[:MOST_STRESSED].tolist()

    @property
    def blocking(self) -> int | None:
        """The bus whose lines cannot carry its power, where there is one; the worst of them."""
        bus = int(self.equilibrium.blocking)
        return None if bus < 0 else bus

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        grid, relief, margin, settled = self.grid, self.relief, self.margin, bool(self.equilibrium.converged)
        assert grid.labels is not None
        found: dict[str, Any] = {
            "case": grid.name,
            "scale": self.scale,
            "status": self.equilibrium.status.item().name,
            "synchronous": self.synchronous,
            "residual": float(self.equilibrium.residual) if settled else None,
            "smallest_eigenvalue": float(np.asarray(self.equilibrium.smallest_eigenvalue)) if settled else None,
            "cannot_lock": None if self.blocking is None else grid.labels[self.blocking],
            "critical_scale": None if margin is None else margin.scale,
            "gives_way": [] if margin is None else [grid.lines[e] for e in margin.edges],
            "breaks_away": [] if margin is None else [grid.labels[k] for k in margin.oscillators],
            "flat_stable": self.flat,
            "negative_coupling": [grid.lines[e] for e in self.negative],
            "beyond_90_deg": [grid.lines[e] for e in self.beyond],
            "stressed": [
                {"line": grid.lines[e], "angle_deg": float(np.degrees(self.angles[e])), "flow_mw": float(self.flow(e))}
                for e in self.stressed
            ],
            "angles_deg": None,
        }
        if self.synchronous:
            degrees = np.degrees(self.equilibrium.phases).tolist()
            found["angles_deg"] = dict(zip(map(str, grid.labels), degrees, strict=True))
        if relief is not None:
            moved = np.flatnonzero(relief.redispatch)
            found["relief"] = {
                "line": grid.lines[relief.line],
                "cosine_two_phase_adjoint": relief.agreement,
                "before_deg": float(np.degrees(relief.before)),
                "predicted_deg": float(np.degrees(relief.predicted)),
                "after_deg": float(np.degrees(relief.after)),
                "redispatch_mw": {str(grid.labels[k]): float(grid.base_mva * relief.redispatch[k]) for k in moved},
            }
        return found

    def flow(self, line: int) -> float:
        """Return the power over a line in MW, from its first to its second bus."""
        return float(self.grid.base_mva * self.grid.coupling[line] * np.sin(self.angles[line]))


def analyse(
    grid: Grid,
    *,
    scale: float = 1.0,
    relieve: str | None = None,
    progress: Callable[[float, float], object] | None = None,
) -> GridAnalysis:
    """Analyse a grid with all injections scaled, and relieve one line if asked to.

    Parameters
    ----------
    grid : Grid
    scale : float
        Factor on all injected power, from 1e-6 to 1e6.
    relieve : str, optional
        A line, "FROM-TO" by bus number.
    progress : callable, optional
        As in `critical_scale`, which takes most of the time.

    Returns
    -------
    GridAnalysis
        ``grid`` with its injections scaled, its ``equilibrium``, whether it is ``synchronous``, the ``angles`` (E,)
        across its lines, the ``stressed`` lines, the ``margin`` (a `CriticalScale`) and the ``relief``; ``as_dict()``
        has everything as plain data. A relief has the ``redispatch`` (N,) of the generators in per unit, which sums to
        zero, and the angle across the line ``before``, as ``predicted`` by the gradient and ``after`` solving again.

    See Also
    --------
    grids.load : An IEEE case by name.
    critical_scale : How much faster all may run before locking is lost.

    Examples
    --------
    >>> import phasegrad as pg
    >>> found = pg.grids.analyse(pg.grids.load("case39"), relieve="2-30")
    >>> round(found.margin.scale, 2), found.relief.agreement > 0.999999
    (6.4, True)
    """
    scale = float_between("scale", scale, *SCALES, "analyse")
    scaled = grid.replace(omega=scale * grid.omega)
    assert isinstance(scaled, Grid)
    line = None if relieve is None else scaled.line(relieve)
    equilibrium = find_equilibrium(scaled, eigenvalue=True)
    i, j = scaled.edges.T
    angles = wrapped(equilibrium.phases[i] - equilibrium.phases[j])
    relief = None
    if line is not None:
        if not equilibrium.stable:
            raise ValueError(f"{grid.name} has no stable state at scale {scale:g}, so no line can be relieved there.")
        relief = _relieve(scaled, line)
    flat = bool(find_equilibrium(grid.replace(omega=np.zeros(grid.size))).stable)
    return GridAnalysis(scaled, scale, equilibrium, angles, _margin(scaled, progress), flat, relief)


def _margin(grid: Grid, progress: Callable[[float, float], object] | None) -> CriticalScale | None:
    """Return where the state of a grid is lost, or that of the first half, quarter, ... of its injections with one."""
    for share in (0.5**k for k in range(_SMALLER)):
        smaller = grid.replace(omega=share * grid.omega)
        state = find_equilibrium(smaller)
        if state.stable:
            margin = critical_scale(smaller, start=state, progress=progress)
            return dataclasses.replace(margin, scale=share * margin.scale, locked=share * margin.locked)
    return None


def _relieve(grid: Grid, line: int) -> Relief:
    i, j = (int(end) for end in grid.edges[line])
    # Neither end may be held; which bus is the reference changes no angle difference.
    held = next(node for node in (grid.reference, *range(grid.size)) if node not in (i, j))
    network = grid.replace(reference=held)
    state = find_equilibrium(network)
    before = float(state.phases[i] - state.phases[j])
    middle = float(state.phases[i] + state.phases[j]) / 2
    question = (network, state, PhaseTargets(outputs=(i, j)), [middle, middle])
    gradient = two_phase(*question, frequencies="raw").omega
    exact = adjoint(*question, frequencies="raw").omega
    generators = np.asarray(grid.generators)
    direction = np.zeros(grid.size)
    direction[generators] = np.mean(gradient[generators]) - gradient[generators]
    # dC = (angle / 2) d angle, so the gradient along the direction says how fast the angle falls.
    slope = 2.0 / before * float(gradient @ direction)
    if not slope * before < 0:
        raise ValueError(f"No redispatch of the generators of {grid.name} relieves the line {grid.lines[line]}.")
    redispatch = direction * (-RELIEF * before / slope)
    after = find_equilibrium(network.replace(omega=network.omega + redispatch), start=state.phases)
    return Relief(
        line=line,
        redispatch=redispatch,
        agreement=cosine(gradient, exact),
        before=before,
        predicted=(1 - RELIEF) * before,
        after=float(after.phases[i] - after.phases[j]),
    )
