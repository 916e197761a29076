"""Power grids: pypower's own AC power flow is the judge."""

import numpy as np
import pytest
from pypower import api

import phasegrad as pg
from phasegrad.datasets import grids


def ac_angles(grid):
    """Return the angles of pypower's AC power flow on the lossless grid: all voltages at 1, no shunts, no taps."""
    n = grid.size
    bus = np.zeros((n, 13))
    bus[:, 0] = np.arange(1, n + 1)
    bus[:, 1] = 2
    bus[grid.reference, 1] = 3
    bus[:, 2] = -grid.base_mva * grid.omega
    bus[:, 6:8], bus[:, 9:13] = 1, [1, 1, 1.1, 0.9]
    generators = np.zeros((n, 21))
    generators[:, 0] = np.arange(1, n + 1)
    generators[:, 3:5], generators[:, 5:9] = [1e6, -1e6], [1, grid.base_mva, 1, 1e6]
    branch = np.zeros((grid.n_edges, 13))
    branch[:, :2] = grid.edges + 1
    branch[:, 3], branch[:, 10] = 1 / grid.coupling, 1
    branch[:, 11:13] = [-360, 360]
    case = {"version": "2", "baseMVA": grid.base_mva, "bus": bus, "gen": generators, "branch": branch}
    result, success = api.runpf(case, api.ppoption(VERBOSE=0, OUT_ALL=0, PF_TOL=1e-12))
    assert success
    return np.radians(result["bus"][:, 8])


@pytest.mark.parametrize("name", [name for name in grids.CASES if name != "case300"])
def test_the_equilibrium_is_the_ac_power_flow(name):
    grid = grids.load(name)
    state = pg.find_equilibrium(grid)
    assert state.stable
    np.testing.assert_allclose(state.phases, ac_angles(grid), atol=1e-8)


def test_the_power_flow_of_the_grid_with_a_negative_line_is_an_unstable_equilibrium():
    """Power flow does not ask for stability; the certificate does, and descent finds a stable state elsewhere."""
    grid = grids.load("case300")
    angles = ac_angles(grid)
    assert np.abs(pg.force(grid, angles)[grid.free]).max() < 1e-8
    assert np.linalg.eigvalsh(pg.laplacian(grid, angles))[0] < 0
    assert pg.find_equilibrium(grid).stable


def test_names_demand_and_generation_are_kept():
    grid = grids.load("case118")
    case = api.case118()
    assert grid.labels == tuple(str(int(number)) for number in case["bus"][:, 0])
    assert sum(grid.circuits) == len(case["branch"])
    assert sum(node["demand_mw"] for node in grid.node_attributes) == pytest.approx(case["bus"][:, 2].sum())
    assert grid.node_attributes[grid.reference]["kind"] == "slack"
    assert abs(grid.omega.sum()) < 1e-12
    e = grid.line("8-5")
    assert grid.lines[e] == "5-8" == "-".join(grid.labels[k] for k in grid.edges[e])
    # Bus 49 is joined to 54 by two circuits: their susceptances add.
    both = [row for row in case["branch"] if set(row[:2]) == {49, 54}]
    e = grid.line("49-54")
    assert grid.circuits[e] == len(both) == 2
    assert grid.coupling[e] == pytest.approx(sum(1 / row[3] for row in both))


def test_voltages_of_the_case_scale_the_couplings():
    unit, own = grids.load("case14"), grids.load("case14", voltages="case")
    voltage = api.case14()["bus"][:, 7]
    i, j = unit.edges.T
    np.testing.assert_allclose(own.coupling, unit.coupling * voltage[i] * voltage[j])


def test_a_grid_stays_a_grid_and_its_negative_line_is_signed():
    grid = grids.load("case300")
    assert grid.signed
    assert grid.coupling.min() < 0
    assert isinstance(grid.replace(omega=0.5 * grid.omega), grids.Grid)
    assert not grids.load("case118").signed


def test_what_is_out_of_service_is_left_out():
    case = api.case9()
    case["branch"][1, 10] = 0
    grid = grids.from_case("case9", case)
    assert grid.n_edges == len(case["branch"]) - 1
    case["branch"][2, 3] = 0.0
    with pytest.raises(ValueError, match=r"has no reactance.*Merge"):
        grids.from_case("case9", case)


def test_unknown_cases_lines_and_a_missing_package_are_named(monkeypatch):
    with pytest.raises(ValueError, match=r"must be one of 'case4gs'.*'case118'.*Got 'case119'"):
        grids.load("case119")
    with pytest.raises(ValueError, match=r"case9 has no line '1-9'.*1-4"):
        grids.load("case9").line("1-9")
    monkeypatch.setitem(__import__("sys").modules, "pypower", None)
    with pytest.raises(ImportError, match=r"pip install phasegrad\[grids\]"):
        grids.load("case9")
