r"""Power grids: a lossless grid whose voltages are held is an oscillator network.

Between buses of voltage V_i and V_j a line of reactance x carries V_i V_j / x sin(theta_i - theta_j), so the balance of
power at a bus is the balance of forces at an oscillator: coupling V_i V_j / x, and as frequency the injected
power, all per unit. The IEEE cases come with the pypower package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from phasegrad._validation import FloatArray, choice, require
from phasegrad.networks import Network

__all__ = ["CASES", "Grid", "from_case", "load"]

CASES = (
    "case4gs", "case6ww", "case9", "case14", "case24_ieee_rts", "case30", "case39", "case57", "case118", "case300",
)  # fmt: skip
"""The cases that can be loaded, by their names in pypower.

See Also
--------
datasets.grids.load : An IEEE case by name.

Examples
--------
>>> import phasegrad as pg
>>> pg.datasets.grids.CASES[:3]
('case4gs', 'case6ww', 'case9')
"""
_VOLTAGES = ("unit", "case")
_KINDS = {1: "load", 2: "generator", 3: "slack"}


class Grid(Network):
    """A power grid as a `Network`: labels are bus numbers, every edge is a line.

    Parameters
    ----------
    name : str
        Of the case.
    base_mva : float
        Power of one unit.
    circuits : tuple of int
        How many parallel lines each edge stands for.
    *network, **options
        As for `Network`.

    See Also
    --------
    datasets.grids.load : An IEEE case by name.
    power.analyse : Stressed lines, margin and relief of a grid.

    Examples
    --------
    >>> import phasegrad as pg
    >>> grid = pg.datasets.grids.load("case9")
    >>> grid.name, grid.base_mva, grid.lines[0], grid.line("4-1")
    ('case9', 100.0, '1-4', 0)
    """

    name: str
    base_mva: float
    circuits: tuple[int, ...]

    def __init__(
        self, *network: Any, name: str = "", base_mva: float = 100.0, circuits: tuple[int, ...] = (), **options: Any
    ) -> None:
        super().__init__(*network, **options)
        for key, value in (("name", name), ("base_mva", base_mva), ("circuits", tuple(circuits))):
            self._set(key, value)
        if len(self.circuits) != self.n_edges or self.labels is None or self.node_attributes is None:
            raise ValueError(
                "A Grid needs one number of circuits per edge, labels and node_attributes: use grids.load."
            )

    def _settings(self) -> dict[str, Any]:
        return {**super()._settings(), "name": self.name, "base_mva": self.base_mva, "circuits": self.circuits}

    @property
    def lines(self) -> tuple[str, ...]:
        """Names of the edges, "FROM-TO" by bus number."""
        assert self.labels is not None
        return tuple(f"{self.labels[i]}-{self.labels[j]}" for i, j in self.edges)

    @property
    def generators(self) -> tuple[int, ...]:
        """Nodes at which a generator is in service."""
        assert self.node_attributes is not None
        return tuple(k for k, attributes in enumerate(self.node_attributes) if attributes["generators"] > 0)

    def line(self, text: str) -> int:
        """Return the edge of a line named "FROM-TO", in either order of the buses."""
        names = {name: e for e, name in enumerate(self.lines)}
        names |= {"-".join(reversed(name.split("-"))): e for name, e in names.items()}
        if text not in names:
            some = ", ".join(self.lines[:6])
            raise ValueError(f"{self.name} has no line {text!r}. Name one by its two buses, such as {some}, ...")
        return names[text]


def load(name: str, *, voltages: str = "unit") -> Grid:
    """Return an IEEE power grid as an oscillator network.

    Resistances, shunts, taps and phase shifts are left out; lines and generators that are out of service and isolated
    buses too. Parallel lines add up. The slack bus is the reference and balances generation and demand. A negative
    reactance (series compensation, in case300) becomes a negative coupling, and the network is signed.

    Parameters
    ----------
    name : str
        One of `CASES`, such as "case118".
    voltages : {"unit", "case"}
        All voltages at 1, or those of the case.

    See Also
    --------
    datasets.grids.from_case : A grid from pypower's arrays.
    datasets.Grid : A power grid as a network.
    power.analyse : Stressed lines, margin and relief of a grid.

    Examples
    --------
    >>> import phasegrad as pg
    >>> grid = pg.datasets.grids.load("case9")
    >>> grid.lines[:3], grid.generators
    (('1-4', '2-8', '3-6'), (0, 1, 2))
    >>> bool(pg.find_equilibrium(grid).stable)
    True
    """
    choice("name", name, CASES, "grids.load")
    choice("voltages", voltages, _VOLTAGES, "grids.load")
    return from_case(name, _import_case(name), voltages=voltages)


def from_case(name: str, case: Mapping[str, Any], *, voltages: str = "unit") -> Grid:
    """Return the network of a case in the format of pypower: arrays "bus", "branch", "gen" and "baseMVA".

    See Also
    --------
    datasets.grids.load : An IEEE case by name.
    datasets.Grid : A power grid as a network.

    Examples
    --------
    >>> from pypower.api import case14
    >>> import phasegrad as pg
    >>> grid = pg.datasets.grids.from_case("mine", case14())
    >>> grid.size, grid.n_edges
    (14, 20)
    """
    bus, base = case["bus"][case["bus"][:, 1] != 4], float(case["baseMVA"])
    numbers = bus[:, 0].astype(np.int64)
    place = {int(number): k for k, number in enumerate(numbers)}
    magnitude = bus[:, 7] if voltages == "case" else np.ones(len(bus))
    running = case["gen"][case["gen"][:, 7] > 0]
    running = running[np.isin(running[:, 0], numbers)]
    at = np.array([place[int(number)] for number in running[:, 0]], dtype=np.int64)
    generated = np.bincount(at, running[:, 1], len(bus))
    omega = (generated - bus[:, 2]) / base
    slack = int(np.argmax(bus[:, 1] == 3))
    omega[slack] -= omega.sum()
    edges, coupling, circuits = _lines(name, case["branch"], place, magnitude)
    counts = np.bincount(at, minlength=len(bus))
    columns = ("kind", "demand_mw", "generation_mw", "generators")
    attributes = [
        dict(zip(columns, (_KINDS[int(row[1])], float(row[2]), float(power), int(count)), strict=True))
        for row, power, count in zip(bus, generated, counts, strict=True)
    ]
    return Grid(
        edges, coupling, omega,
        reference=slack, labels=tuple(str(number) for number in numbers), node_attributes=tuple(attributes),
        signed=bool(np.any(coupling < 0)), name=name, base_mva=base, circuits=tuple(circuits.tolist()),
    )  # fmt: skip


def _lines(name: str, branch: FloatArray, place: Mapping[int, int], voltage: FloatArray) -> tuple[Any, Any, Any]:
    """Return edges, couplings and numbers of parallel circuits of the branches in service, in the network's order."""
    known = [int(row[0]) in place and int(row[1]) in place for row in branch]
    branch = branch[np.array(known) & (branch[:, 10] > 0)]
    if np.any(branch[:, 3] == 0):
        row = branch[np.argmax(branch[:, 3] == 0)]
        raise ValueError(
            f"The line {row[0]:.0f}-{row[1]:.0f} of {name} has no reactance, so its coupling would be infinite. Merge "
            "its two buses first."
        )
    ends = np.sort([[place[int(row[0])], place[int(row[1])]] for row in branch], axis=1)
    edges, number = np.unique(ends, axis=0, return_inverse=True)
    susceptance = np.bincount(number, 1.0 / branch[:, 3])
    return edges, susceptance * voltage[edges[:, 0]] * voltage[edges[:, 1]], np.bincount(number)


def _import_case(name: str) -> Mapping[str, Any]:
    require(("pypower",), "grids", "A power grid")
    from pypower import api

    return getattr(api, name)()
