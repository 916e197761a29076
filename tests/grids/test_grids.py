"""Power grids: pypower's own AC power flow is the judge."""

import json

import numpy as np
import pytest
from command_line import run
from pypower import api

import phasegrad as pg
from phasegrad import grids
from phasegrad.grids import analyse


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
    np.testing.assert_allclose(state.phases, ac_angles(grid), atol=1e-8, rtol=0)


def test_the_power_flow_of_the_grid_with_a_negative_line_is_an_unstable_equilibrium():
    """Power flow does not ask for stability; the certificate does, and descent finds a stable state elsewhere."""
    grid = grids.load("case300")
    angles = ac_angles(grid)
    assert np.abs(pg.dynamics.force(grid, angles)[grid.free]).max() < 1e-8
    assert np.linalg.eigvalsh(pg.dynamics.laplacian(grid, angles))[0] < 0
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


def test_a_generator_that_is_switched_off_gives_nothing():
    """The second generator of case14 gives 40 MW at bus 2; the slack makes up for them."""
    case = api.case14()
    before = grids.from_case("on", case)
    case["gen"][1, 7] = 0
    after = grids.from_case("off", case)
    assert after.node_attributes[1]["generation_mw"] == after.node_attributes[1]["generators"] == 0
    expected = np.zeros(14)
    expected[[0, 1]] = [0.4, -0.4]
    np.testing.assert_allclose(after.omega - before.omega, expected, atol=1e-12)


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


def test_a_case_may_be_made_of_lists():
    case = api.case9()
    lists = {"baseMVA": 100, **{key: case[key].tolist() for key in ("bus", "gen", "branch")}}
    grid, same = grids.from_case("mine", lists), grids.from_case("mine", case)
    np.testing.assert_array_equal(grid.coupling, same.coupling)
    np.testing.assert_array_equal(grid.omega, same.omega)


def without(case, key):
    return {name: value for name, value in case.items() if name != key}


def changed(case, key, row, column, value):
    case[key][row, column] = value
    return case


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (without(api.case9(), "gen"), "'case' parameter of grids.from_case must have the key 'gen'.*'branch'"),
        ([1, 2], "'case' parameter of grids.from_case must be a mapping.*Got list"),
        ({**api.case9(), "bus": [1, 2, 3]}, "case\\['bus'\\].*at least 8 columns.*Got.*\\(3,\\)"),
        ({**api.case9(), "branch": "line"}, "case\\['branch'\\].*Got 'line'"),
        ({**api.case9(), "baseMVA": 0}, "case\\['baseMVA'\\].*Got 0"),
        (changed(api.case9(), "bus", 0, 1, 2), "no slack bus"),
        (changed(api.case9(), "bus", 4, 1, 7), "bus 5 has the type 7"),
        (changed(api.case9(), "bus", 4, 0, 1), "has bus 1 twice"),
        (changed(api.case9(), "bus", 4, 0, 1.5), "whole numbers.*Got 1.5"),
        (changed(api.case9(), "bus", 3, 2, np.nan), "case\\['bus'\\].*finite.*Got nan"),
        (changed(api.case9(), "branch", slice(None), 10, 0), "no line in service"),
    ],
)
def test_what_is_wrong_with_a_case_is_named(case, words):
    with pytest.raises(ValueError, match=words):
        grids.from_case("mine", case)


def test_a_wrong_word_for_the_voltages_is_refused():
    with pytest.raises(ValueError, match=r"'voltages' parameter of grids\.from_case.*'unit', 'case'.*Got 'cases'"):
        grids.from_case("mine", api.case9(), voltages="cases")


def test_unknown_cases_lines_and_a_missing_package_are_named(monkeypatch):
    with pytest.raises(ValueError, match=r"must be one of 'case4gs'.*'case118'.*Got 'case119'"):
        grids.load("case119")
    with pytest.raises(ValueError, match=r"case9 has no line '1-9'.*1-4"):
        grids.load("case9").line("1-9")
    monkeypatch.setitem(__import__("sys").modules, "pypower", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[grids\]'"):
        grids.load("case9")


class TestAnalysis:
    def test_relief_does_what_its_gradient_promises(self):
        grid = grids.load("case118")
        found = analyse(grid, scale=1.3, relieve="5-8")
        relief = found.relief
        # Two-phase at its default beta: within 1e-3 of the adjoint direction, so 1 - cosine is of order 1e-6 at most.
        assert 1 - relief.agreement < 1e-6
        assert abs(relief.redispatch.sum()) < 1e-12
        assert set(np.flatnonzero(relief.redispatch)) <= set(grid.generators)
        assert relief.predicted == pytest.approx(0.9 * relief.before)
        # The prediction is linear in a change of a tenth of the angle; the rest is of second order in it.
        assert relief.after == pytest.approx(relief.predicted, abs=0.01 * abs(relief.before))
        turned = grid.replace(omega=1.3 * grid.omega + relief.redispatch)
        phases = pg.find_equilibrium(turned).phases
        i, j = grid.edges[relief.line]
        assert phases[i] - phases[j] == pytest.approx(relief.after, abs=1e-9)

    def test_a_line_at_the_reference_bus_can_be_relieved_too(self):
        grid = grids.load("case39")
        line = next(name for name in grid.lines if grid.labels[grid.reference] in name.split("-"))
        found = analyse(grid, relieve=line)
        assert abs(found.relief.after) < abs(found.relief.before)

    def test_scaling_moves_the_margin_in_proportion(self):
        grid = grids.load("case30")
        once, twice = analyse(grid), analyse(grid, scale=2.0)
        assert twice.margin.scale == pytest.approx(once.margin.scale / 2, rel=1e-5)
        assert [grid.lines[e] for e in once.stressed] == [
            name for _, name in sorted(zip(-np.abs(once.angles), grid.lines, strict=True))[:5]
        ]
        assert pg.find_equilibrium(grid.replace(omega=0.999 * once.margin.scale * grid.omega)).stable
        assert not pg.find_equilibrium(grid.replace(omega=1.01 * once.margin.scale * grid.omega)).stable

    def test_the_negative_line_costs_no_margin(self):
        """Bus 1201 injects nothing: its two reactances in series make an ordinary line of the same grid."""
        grid = grids.load("case300")
        found = analyse(grid)
        middle, (i, j) = grid.labels.index("1201"), (grid.labels.index(name) for name in ("118", "120"))
        at = np.flatnonzero((grid.edges == middle).any(axis=1))
        reactance = np.sum(1 / grid.coupling[at])
        assert grid.omega[middle] == 0
        assert reactance > 0
        place = np.arange(grid.size) - (np.arange(grid.size) > middle)
        edges = np.vstack([np.delete(grid.edges, at, axis=0), [i, j]])
        coupling = np.append(np.delete(grid.coupling, at), 1 / reactance)
        plain = pg.Network(place[edges], coupling, np.delete(grid.omega, middle), reference=place[grid.reference])
        assert found.margin.scale == pytest.approx(pg.critical_scale(plain).scale, rel=1e-4)
        assert found.margin.scale == pytest.approx(analyse(grid, scale=1.7).margin.scale * 1.7, rel=1e-5)

    def test_a_grid_out_of_step_has_a_margin_below_one_and_nothing_else(self):
        for name, scale in (("case9", 8.0), ("case300", 3.0)):
            grid = grids.load(name)
            found, whole = analyse(grid, scale=scale), analyse(grid)
            assert not found.synchronous
            assert found.margin.scale == pytest.approx(whole.margin.scale / scale, rel=1e-5)
            assert found.margin.scale < 1
            data = found.as_dict()
            assert (data["synchronous"], data["stressed"], data["angles_deg"]) == (False, [], None)
            assert data["beyond_90_deg"] == []

    @pytest.mark.parametrize("scale", [0.0, -1.0, 1e-320, 1e-7, 1e7, np.inf, np.nan])
    def test_a_scale_that_makes_no_sense_is_refused(self, scale):
        with pytest.raises(ValueError, match="'scale' parameter of analyse must be a float from 1e-06 to 1e"):
            analyse(grids.load("case9"), scale=scale)

    def test_a_line_can_be_relieved_only_in_a_grid_that_is_synchronous(self):
        with pytest.raises(ValueError, match="no stable state at scale 50"):
            analyse(grids.load("case14"), scale=50, relieve="1-2")


class TestCommand:
    def test_it_prints_writes_and_draws(self, tmp_path):
        data, picture = tmp_path / "grid.json", tmp_path / "grid.svg"
        words = ("grid", "case14", "--scale", "1.3", "--relieve", "2-1", "--json", str(data), "--plot", str(picture))
        result = run(*words)
        assert result.returncode == 0, result.stderr
        for said in ("Converged and stable", "Most stressed lines", "Synchrony is lost at", "Relieving line 1-2"):
            assert said in result.stdout
        found = json.loads(data.read_text())
        assert len(found["stressed"]) == 5
        assert abs(found["relief"]["after_deg"]) < abs(found["relief"]["before_deg"])
        assert abs(sum(found["relief"]["redispatch_mw"].values())) < 1e-9
        assert "<svg" in picture.read_text()

    def test_a_grid_without_a_stable_state_exits_with_1(self, tmp_path):
        picture = tmp_path / "grid.svg"
        result = run("grid", "case9", "--scale", "40", "--plot", str(picture))
        assert result.returncode == 1
        drawn = picture.read_text()
        assert "no stable state" in drawn
        assert "phase (degrees)" not in drawn
        assert "stress" not in drawn
        assert "Synchrony is lost at" in result.stdout
        assert "To blame is bus 2: it exchanges 6520 MW, its lines carry 1600 MW at most." in result.stdout
        assert "eigenvalue" not in result.stdout
        found = analyse(grids.load("case9"), scale=40).as_dict()
        assert (found["cannot_lock"], found["residual"], found["smallest_eigenvalue"]) == ("2", None, None)

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("case119",), "'case118'"),
            (("case9", "--relieve", "1-2"), "case9 has no line '1-2'"),
            (("case9", "--scale", "-1"), "--scale must be a float from 1e-06 to 1e+06"),
            (("case9", "--plot", "grid.txt"), "must end in one of svg"),
        ],
    )
    def test_wrong_input_is_one_sentence(self, words, message):
        result = run("grid", *words)
        assert result.returncode == 2
        assert message in result.stderr
        assert "Traceback" not in result.stderr
