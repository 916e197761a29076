"""What the runs of an Ising machine found: spins, energies, cuts, and which states the machine holds by itself."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray, counted, frozen_array, whole_number
from phasegrad.equilibria import Equilibrium, find_equilibrium
from phasegrad.ising._problem import Problem
from phasegrad.networks import Network

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Energies closer than this share of the largest are one.
_ALIKE = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Solutions:
    """The solutions of many runs, in the order of the runs.

    Attributes
    ----------
    problem : Problem
    phases : ndarray, shape (runs, N)
        At the end of the schedule.
    spins : ndarray of int, shape (runs, N)
        The signs of their cosines.
    energies : ndarray, shape (runs,)
    network : Network
        The machine at the end of the schedule.

    See Also
    --------
    ising.solve : The runs.
    ising.Problem : Couplings and fields.

    Examples
    --------
    >>> import networkx as nx, phasegrad as pg
    >>> found = pg.ising.solve(pg.ising.Problem.from_networkx(nx.petersen_graph()), runs=20)
    >>> found.best_cut, bool(found.stable[found.best])
    (12.0, True)
    """

    problem: Problem
    phases: FloatArray
    spins: Array
    energies: FloatArray
    network: Network

    @property
    def cuts(self) -> FloatArray:
        """The cut of every run, shape (runs,); a problem with fields has none."""
        return np.asarray(self.problem.cut(self.spins))

    @property
    def best(self) -> int:
        """The first run of the lowest energy."""
        return int(np.argmin(self.energies))

    @property
    def best_energy(self) -> float:
        """The lowest energy."""
        return float(self.energies[self.best])

    @property
    def best_cut(self) -> float:
        """The largest cut."""
        return float(self.cuts[self.best])

    @property
    def best_spins(self) -> Array:
        """The spins of the lowest energy, shape (N,)."""
        return np.asarray(self.spins[self.best])

    def sides(self, run: int | None = None) -> tuple[list[Hashable], list[Hashable]]:
        """Return the nodes with spin 1 and those with spin -1 of a run, the best if none is named.

        By their labels, or by their numbers where they have none.
        """
        spins = self.best_spins if run is None else self.spins[whole_number("run", run, 0, "Solutions.sides")]
        labels = self.problem.labels or tuple(range(self.problem.size))
        up = [label for label, spin in zip(labels, spins, strict=True) if spin > 0]
        return up, [label for label, spin in zip(labels, spins, strict=True) if spin < 0]

    @cached_property
    def certificates(self) -> Equilibrium:
        """The binary state of every run as an equilibrium of the machine at the end of the schedule, with certificates.

        Phases 0 and pi balance every force, so that each is an equilibrium; whether it is stable is what is certified.
        """
        return self._certified(self.spins)

    def _certified(self, spins: Array) -> Equilibrium:
        return find_equilibrium(self.network, start=np.where(spins > 0, 0.0, np.pi))

    @cached_property
    def best_stable(self) -> bool:
        """Whether the machine holds the best state by itself; it alone is certified."""
        return bool(self._certified(self.best_spins).stable)

    @property
    def stable(self) -> BoolArray:
        """Whether the machine holds the binary state of a run by itself, shape (runs,)."""
        return np.asarray(self.certificates.stable)

    @property
    def binary(self) -> FloatArray:
        """How near every run came to binary phases, shape (runs,): the smallest |cos| of its oscillators."""
        return np.asarray(np.min(np.abs(np.cos(self.phases)), axis=-1))

    def distribution(self) -> tuple[FloatArray, Array]:
        """Return the energies that were found, each once and from the lowest, and how many runs found each."""
        ordered = np.sort(self.energies)
        far = np.diff(ordered) > _ALIKE * np.max(np.abs(ordered))
        begins = np.flatnonzero(np.concatenate([[True], far]))
        return frozen_array(ordered[begins]), frozen_array(np.diff(np.append(begins, ordered.size)))

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        energies, counts = self.distribution()
        cuts = None if np.any(self.problem.fields) else self.cuts.tolist()
        labels = None if self.problem.labels is None else [str(each) for each in self.problem.labels]
        return {
            "spins": self.problem.size, "couplings": len(self.problem.edges), "runs": self.energies.size,
            "best_energy": self.best_energy, "best_cut": None if cuts is None else self.best_cut,
            "best_spins": self.best_spins.tolist(), "labels": labels, "energies": self.energies.tolist(), "cuts": cuts,
            "stable": self.stable.tolist(), "distribution": [energies.tolist(), counts.tolist()],
        }  # fmt: skip

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw how often each cut, or energy, was found and return the axes: new ones by pyplot where none is given."""
        from phasegrad.ising._drawing import plot_solutions

        return plot_solutions(self, ax)

    def __repr__(self) -> str:
        hits = int(self.distribution()[1][0])
        cut = "" if np.any(self.problem.fields) else f", cut {self.best_cut:g}"
        return (
            f"Solutions({counted(self.energies.size, 'run')}, lowest energy {self.best_energy:g}{cut}, found {hits}x)"
        )
