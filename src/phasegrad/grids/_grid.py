r"""Power grids: a lossless grid whose voltages are held is an oscillator network.

Between buses of voltage V_i and V_j a line of reactance x carries V_i V_j / x sin(theta_i - theta_j), so the balance of
power at a bus is the balance of forces at an oscillator: coupling V_i V_j / x, and as frequency the injected
power, all per unit. The IEEE cases come with the pypower package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from phasegrad._validation import FloatArray, IntArray, choice, finite_array, positive_float, require
from phasegrad.networks import Network

#: The cases that can be loaded, by their names in pypower.
CASES = (
    "case4gs", "case6ww", "case9", "case14", "case24_ieee_rts", "case30", "case39", "case57", "case118", "case300",
)  # fmt: skip
_VOLTAGES = ("unit", "case")
#: Types of a bus that is in service. A bus of type 4 is isolated.
_KINDS = {1: "load", 2: "generator", 3: "slack"}
_SLACK, _ISOLATED = 3, 4
#: Columns that are read: number, type, demand and voltage of a bus; bus, output and status of a generator; two buses,
#: reactance and status of a line.
_COLUMNS = {"bus": (0, 1, 2, 7), "gen": (0, 1, 7), "branch": (0, 1, 3, 10)}
#: Those of them that are whole numbers.
_WHOLE = {"bus": (0, 1), "gen": (0,), "branch": (0, 1)}
_FROM_CASE = "grids.from_case"


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
    grids.load : An IEEE case by name.
    grids.analyse : Stressed lines, margin and relief of a grid.

    Examples
    --------
    >>> import phasegrad as pg
    >>> grid = pg.grids.load("case9")
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
    grids.from_case : A grid from pypower's arrays.
    grids.Grid : A power grid as a network.
    grids.analyse : Stressed lines, margin and relief of a grid.

    Examples
    --------
    >>> import phasegrad as pg
    >>> grid = pg.grids.load("case9")
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

    Parameters
    ----------
    name : str
        Name of the grid.
    case : mapping
        Arrays or nested lists with the columns of pypower and MATPOWER, and one slack bus (type 3).
    voltages : {"unit", "case"}
        All voltages at 1, or those of the case.

    See Also
    --------
    grids.load : An IEEE case by name.
    grids.Grid : A power grid as a network.

    Examples
    --------
    >>> from pypower.api import case14
    >>> import phasegrad as pg
    >>> grid = pg.grids.from_case("mine", case14())
    >>> grid.size, grid.n_edges
    (14, 20)
    """
    choice("voltages", voltages, _VOLTAGES, _FROM_CASE)
    bus, gen, branch, base = _read(case)
    bus = bus[bus[:, 1] != _ISOLATED]
    numbers, slack = _buses(name, bus)
    place = {int(number): k for k, number in enumerate(numbers)}
    magnitude = bus[:, 7] if voltages == "case" else np.ones(len(bus))
    running = gen[(gen[:, 7] > 0) & np.isin(gen[:, 0], numbers)]
    at = np.array([place[int(number)] for number in running[:, 0]], dtype=np.int64)
    generated = np.bincount(at, running[:, 1], len(bus))
    omega = (generated - bus[:, 2]) / base
    omega[slack] -= omega.sum()
    edges, coupling, circuits = _lines(name, branch, place, magnitude)
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


def _read(case: Mapping[str, Any]) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Return the tables "bus", "gen" and "branch" of a case as arrays, and the power of one unit."""
    if not isinstance(case, Mapping):
        raise ValueError(
            f"The 'case' parameter of {_FROM_CASE} must be a mapping, as pypower's case9() returns. "
            f"Got {type(case).__name__} instead."
        )
    for key in (*_COLUMNS, "baseMVA"):
        if key not in case:
            given = ", ".join(map(repr, case)) or "no key"
            raise ValueError(f"The 'case' parameter of {_FROM_CASE} must have the key {key!r}. Got {given}.")
    bus, gen, branch = (_table(key, case[key]) for key in _COLUMNS)
    return bus, gen, branch, positive_float("case['baseMVA']", case["baseMVA"], _FROM_CASE)


def _table(key: str, value: Any) -> FloatArray:
    """Return one table of a case; a column that is not read, such as a limit, may be infinite."""
    parameter, width = f"case[{key!r}]", max(_COLUMNS[key]) + 1
    try:
        table = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"The '{parameter}' parameter of {_FROM_CASE} must be a table of numbers. Got {value!r:.80} instead."
        ) from None
    if table.ndim != 2 or table.shape[1] < width:
        raise ValueError(
            f"The '{parameter}' parameter of {_FROM_CASE} must be a table with at least {width} columns. "
            f"Got the shape {table.shape}."
        )
    finite_array(parameter, table[:, _COLUMNS[key]], _FROM_CASE)
    whole = table[:, _WHOLE[key]]
    if np.any(whole != np.round(whole)):
        first = whole[whole != np.round(whole)][0]
        raise ValueError(
            f"The '{parameter}' parameter of {_FROM_CASE} must number and type buses by whole numbers. Got {first:g}."
        )
    return table


def _buses(name: str, bus: FloatArray) -> tuple[IntArray, int]:
    """Return the numbers of the buses in service, and the row of the slack bus."""
    numbers = bus[:, 0].astype(np.int64)
    found, counts = np.unique(numbers, return_counts=True)
    if np.any(counts > 1):
        twice = found[np.argmax(counts > 1)]
        raise ValueError(f"The 'case' parameter of {_FROM_CASE} has bus {twice} twice in {name}.")
    for number, kind in zip(numbers, bus[:, 1], strict=True):
        if int(kind) not in _KINDS:
            raise ValueError(
                f"The 'case' parameter of {_FROM_CASE}: bus {number} has the type {kind:g}. It must be 1 (load), "
                "2 (generator), 3 (slack) or 4 (isolated)."
            )
    slack = np.flatnonzero(bus[:, 1] == _SLACK)
    if len(slack) == 0:
        raise ValueError(
            f"The 'case' parameter of {_FROM_CASE} has no slack bus in {name}. Set the type (second column) of the bus "
            f"that balances generation and demand to {_SLACK}."
        )
    return numbers, int(slack[0])


def _lines(name: str, branch: FloatArray, place: Mapping[int, int], voltage: FloatArray) -> tuple[Any, Any, Any]:
    """Return edges, couplings and numbers of parallel circuits of the branches in service, in the network's order."""
    known = np.array([int(row[0]) in place and int(row[1]) in place for row in branch], dtype=bool)
    branch = branch[known & (branch[:, 10] > 0)]
    if len(branch) == 0:
        raise ValueError(f"The 'case' parameter of {_FROM_CASE} has no line in service in {name}.")
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
