"""The linearised system: every algebra against LAPACK on the Laplacian of the edges, and each factor made once."""

import dataclasses
import pickle

import numpy as np
import pytest
from random_networks import make_network
from scipy.linalg import lapack

import phasegrad as pg
from phasegrad.dynamics import build_system
from phasegrad.linearised import (
    DenseLaplacian,
    PhasorLaplacian,
    SparseLaplacian,
    Verdict,
    _factors,
    linearise,
)

ALGEBRAS = (DenseLaplacian, SparseLaplacian, PhasorLaplacian)
NETWORKS = {
    "plain": make_network(12, 0, kind="plain").replace(interaction=pg.terms.Sine()),
    "field": make_network(9, 1, kind="field").replace(interaction=pg.terms.Sine()),
    "layered": pg.layered(2, 5, 2, seed=0),
    "signed layers": pg.networks.signed_layers(3, 8, 2, seed=0),
}


def near_rest(name, count=4):
    """A system of some samples, and phases where its Laplacian is sometimes definite and sometimes not."""
    network = NETWORKS[name]
    rng = np.random.default_rng(5)
    inputs = rng.uniform(-0.5, 0.5, (count, len(network.inputs))) if network.inputs else None
    rest = np.broadcast_to(pg.find_equilibrium(network, inputs).phases, (count, network.size))
    system, _ = build_system(network, inputs)
    system = system.take(np.arange(count) % system.batch)
    widths = np.linspace(0.1, 2.5, count)[:, None]
    return system, system.place(rest + widths * rng.uniform(-1, 1, rest.shape))


def reduced(state):
    """The Laplacians in the order of the state's own columns, by the edges."""
    place = state.system.graph.position[state.nodes]
    return state.system.laplacian(state.phases)[:, place[:, None], place[None, :]]


@pytest.mark.parametrize("name", list(NETWORKS))
@pytest.mark.parametrize("algebra", ALGEBRAS)
class TestEveryAlgebra:
    def test_force_energy_and_products_are_those_of_the_edges(self, algebra, name):
        system, phases = near_rest(name)
        state = algebra.of(system, phases)
        np.testing.assert_allclose(state.force, system.force(phases)[:, state.nodes], atol=1e-13)
        other = state.at(0.5 * state.moving)
        change = other.energy - state.energy
        np.testing.assert_allclose(change, system.energy(other.phases) - system.energy(phases), atol=1e-12)
        vectors = np.random.default_rng(0).standard_normal(state.moving.shape)
        expected = np.einsum("bij,bj->bi", reduced(state), vectors)
        np.testing.assert_allclose(state.matvec(vectors), expected, atol=1e-12)

    def test_definite_solves_are_those_of_lapack_for_any_right_hand_side(self, algebra, name):
        system, phases = near_rest(name)
        state = algebra.of(system, phases)
        matrices = reduced(state)
        definite = np.linalg.eigvalsh(matrices)[:, 0] > 1e-6
        assert definite.any()
        for seed in range(2):
            right = np.random.default_rng(seed).standard_normal(state.moving.shape)
            solution, regular = state.solve(right)
            assert regular[definite].all()
            exact = np.linalg.solve(matrices, right[:, :, None])[:, :, 0]
            np.testing.assert_allclose(solution[definite], exact[definite], rtol=1e-8, atol=1e-8)

    def test_verdicts_and_smallest_eigenvalues_are_those_of_all_eigenvalues(self, algebra, name):
        system, phases = near_rest(name)
        state = algebra.of(system, phases)
        lowest = np.linalg.eigvalsh(reduced(state))[:, 0]
        assert np.abs(lowest).min() > 1e-6
        expected = np.where(lowest > 0, Verdict.STABLE, Verdict.UNSTABLE)
        np.testing.assert_array_equal(state.definite(explain=True), expected)
        floor = lowest + np.array([-1e-3, 1e-3, -1e-3, 1e-3])
        np.testing.assert_array_equal(state.definite(floor) == Verdict.STABLE, lowest > floor)
        smallest, error = state.smallest()
        np.testing.assert_allclose(smallest, lowest, atol=1e-9)
        assert np.all(error >= 0)

    def test_some_of_the_samples_are_what_they_were(self, algebra, name):
        system, phases = near_rest(name)
        state = algebra.of(system, phases)
        force, rows = state.force, np.array([3, 1])
        part = state.take(rows)
        np.testing.assert_allclose(part.force, force[rows], atol=1e-15)
        np.testing.assert_array_equal(part.definite(), state.definite()[rows])


def test_a_transposed_solve_is_that_of_the_transposed_matrix():
    network = make_network(8, 2, kind="non-reciprocal")
    system, _ = build_system(network, None)
    phases = system.place(np.random.default_rng(0).uniform(-0.2, 0.2, (1, 8)))
    state, right = linearise(system, phases), np.random.default_rng(1).standard_normal((1, 7))
    matrix = system.laplacian(phases)[0]
    for transposed in (False, True, False):
        solution, _ = state.solve(right, transposed=transposed)
        np.testing.assert_allclose((matrix.T if transposed else matrix) @ solution[0], right[0], atol=1e-12)


class Counted:
    """Matrices that LAPACK factored, as they were given."""

    def __init__(self, monkeypatch):
        self.matrices = []
        for name in ("dpotrf", "dgetrf"):
            monkeypatch.setattr(_factors.lapack, name, self.counting(getattr(lapack, name)))

    def counting(self, factor):
        def call(matrix, *args, **options):
            self.matrices.append(np.array(matrix))
            return factor(matrix, *args, **options)

        return call

    def near(self, matrix):
        """Return how many were this one, up to what rounding, or a step far below any tolerance, changes."""
        return sum(np.allclose(each, matrix, rtol=0, atol=1e-7 * np.abs(matrix).max()) for each in self.matrices)


@pytest.mark.parametrize("method", [pg.two_phase, pg.centred, pg.adjoint])
def test_the_laplacian_of_the_free_state_is_factored_twice_for_a_certified_gradient(method, monkeypatch):
    """Once on the way, when Newton is as near as that, and once for the certificate; the gradient adds none."""
    network = NETWORKS["layered"]
    counted = Counted(monkeypatch)
    free = pg.find_equilibrium(network, [0.5, -0.5])
    found = counted.near(pg.dynamics.laplacian(network, free.phases, [0.5, -0.5]))
    assert found <= 2
    gradient = method(network, free, pg.PhaseTargets(), [0.1, -0.2])
    assert gradient.valid
    assert counted.near(pg.dynamics.laplacian(network, free.phases, [0.5, -0.5])) == found


class TestEquilibrium:
    def test_it_carries_what_certified_it(self):
        free = pg.find_equilibrium(NETWORKS["layered"], np.random.default_rng(0).uniform(-1, 1, (3, 2)))
        state = free.linearised
        assert state is free.linearised
        assert isinstance(state, DenseLaplacian)
        solution, regular = state.solve(np.ones((3, 8)))
        assert regular.all()
        exact = np.linalg.solve(state.system.laplacian(free.phases), np.ones((3, 8, 1)))[:, :, 0]
        np.testing.assert_allclose(solution, exact, rtol=1e-12)

    def test_what_would_take_more_than_the_bound_is_not_kept(self, monkeypatch):
        monkeypatch.setattr("phasegrad.linearised._linearised.MOST_NUMBERS", 100)
        free = pg.find_equilibrium(NETWORKS["layered"], np.zeros((3, 2)))
        assert free.linearised is not free.linearised
        np.testing.assert_array_equal(free.linearised.definite(), [Verdict.STABLE] * 3)

    def test_a_copy_through_a_file_answers_alike_and_leaves_the_factors_behind(self):
        free = pg.find_equilibrium(NETWORKS["layered"], [0.5, -0.5])
        before = len(pickle.dumps(free))
        free.linearised.solve(np.ones((1, 8)))
        assert len(pickle.dumps(free)) == before
        again = pickle.loads(pickle.dumps(free))
        right = np.ones((1, 8))
        np.testing.assert_array_equal(again.linearised.solve(right)[0], free.linearised.solve(right)[0])

    @pytest.mark.parametrize(
        ("network", "word", "name"),
        [
            (NETWORKS["layered"], "auto", "newton (dense)"),
            (NETWORKS["layered"], "batch", "aligned newton"),
            (NETWORKS["layered"], "flow", "flow"),
            (pg.networks.random_regular(400, 4), "auto", "newton (sparse)"),
        ],
    )
    def test_it_names_the_solver_that_found_it(self, network, word, name):
        assert pg.find_equilibrium(network, solver=word).solver.item() == name

    def test_it_says_where_no_solver_was_asked_and_where_another_one_helped(self):
        torn = pg.Network([[0, 1]], 1.0, [2.0, -2.0])
        assert pg.find_equilibrium(torn).solver.item() == "none"

    @pytest.mark.parametrize("change", [{"phases": 0.9}, {"inputs": 3.0}])
    def test_a_copy_with_other_phases_or_inputs_is_not_taken_for_it(self, change):
        network = NETWORKS["layered"]
        free = pg.find_equilibrium(network, [0.5, -0.5])
        other = dataclasses.replace(free, **{name: times * getattr(free, name) for name, times in change.items()})
        with pytest.raises(ValueError, match="not an equilibrium of this network"):
            pg.adjoint(network, other, pg.PhaseTargets(), [0.1, -0.1])


class TestAloneAsInABatch:
    """A sample alone takes its plain steps at once, one of a batch step by step: the same ones, bit by bit."""

    @staticmethod
    def assert_alike(network, start, **options):
        alone = pg.find_equilibrium(network, start=start, **options)
        both = pg.find_equilibrium(network, start=[start, start], **options)
        for name in ("phases", "residual", "steps", "status"):
            np.testing.assert_array_equal(getattr(both, name)[0], getattr(alone, name), err_msg=name)
        return alone

    def test_where_the_way_leads_over_indefinite_states(self):
        coupling = [-1.0, 1, 1, 1, 1, -1, 1, 1, 1, 1]
        network = pg.networks.complete(5, signed=True, coupling=coupling, omega=[1.366, 0.122, -2.388, 0.098, 0.064])
        found = self.assert_alike(network, [-0.696, 0.611, -0.549, -0.67, 0.275], solver=pg.solvers.Newton())
        assert found.stable

    @pytest.mark.parametrize("indefinite", ["descend", "follow"])
    def test_at_a_saddle_that_has_converged(self, indefinite):
        network, rng = pg.networks.ring(6, omega=[0.1, -0.2, 0.3, -0.1, 0.05, -0.15]), np.random.default_rng(1)
        roughly = pg.solvers.Newton(indefinite="follow", polish=False)
        found = None
        while found is None or found.status != pg.Status.UNSTABLE or found.residual < 1e-9:
            found = pg.find_equilibrium(network, start=rng.uniform(-3, 3, 6), tolerance=1e-6, solver=roughly)
        solver = pg.solvers.Newton(indefinite=indefinite)
        self.assert_alike(network, found.phases, tolerance=1e-6, solver=solver)

    @pytest.mark.parametrize("indefinite", ["descend", "follow", "stop"])
    @pytest.mark.parametrize("polish", [False, True])
    def test_from_random_starts(self, indefinite, polish):
        rng = np.random.default_rng(0)
        for seed in range(12):
            network = make_network(6, seed, kind="plain", spread=0.6)
            solver = pg.solvers.Newton(indefinite=indefinite, polish=polish, max_steps=40)
            self.assert_alike(network, rng.uniform(-2, 2, 6), solver=solver)


@pytest.mark.parametrize("gap", [1e-7, 1e-10])
def test_near_the_end_of_locking_digits_are_those_of_the_last_laplacian(gap):
    """A chain whose edges carry 1 - gap: sin(angle) and the eigenvalues of its Laplacian are known in closed form."""
    network = pg.Network([[0, 1], [1, 2]], [1.0, 1.0], [-(1 - gap), 0, 1 - gap])
    found = pg.find_equilibrium(network, eigenvalue=True)
    weight = np.sqrt(gap * (2 - gap))
    # A rounding error of 1e-16 in a force is one of 1e-16 / weight in an angle, and so in the weight itself.
    assert found.smallest_eigenvalue == pytest.approx(weight * (3 - np.sqrt(5)) / 2, rel=20e-16 / weight**2)


def test_phases_that_are_no_numbers_are_not_stable():
    system, _ = build_system(pg.networks.ring(50), None)
    phases = np.full((1, 50), np.nan)
    phases[:, 0] = 0.0
    assert DenseLaplacian.of(system, phases).definite() == Verdict.UNPROVED


def test_no_sample_gets_the_laplacian_of_another_one_from_another_thread():
    """Another thread begins its next solve while this one compares two samples."""
    system, _ = build_system(pg.networks.ring(12), None)
    system = system.take(np.zeros(2, dtype=int))
    state = SparseLaplacian.of(system, system.place(np.random.default_rng(0).uniform(-0.7, 0.7, (2, 12))))
    operators, same = state._operators, state._same
    next(operators)
    state._last = (1, state.operator(1))

    def switched(row, other):
        found = same(row, other)
        state._last = (0, state.operator(0))
        return found

    state._same = switched
    vector = np.ones(11)
    np.testing.assert_array_equal(next(operators)[0] @ vector, state.operator(1)[0] @ vector)


class TestBadInput:
    @pytest.mark.parametrize(
        "network", [NETWORKS["layered"], pg.networks.random_regular(400, 4), make_network(6, 1, kind="non-reciprocal")]
    )
    def test_whole_numbers_are_taken_as_numbers(self, network):
        state = pg.find_equilibrium(network).linearised
        right = np.zeros(state.moving.shape, dtype=int)
        right[0, -1] = 1
        np.testing.assert_array_equal(state.solve(right)[0], state.solve(right.astype(float))[0])
        assert np.abs(state.solve(right.tolist())[0]).max() > 0

    @pytest.mark.parametrize("shape", [(8,), (2, 8), (1, 9), (1, 8, 1, 1)])
    def test_another_shape_is_refused(self, shape):
        state = pg.find_equilibrium(NETWORKS["layered"]).linearised
        with pytest.raises(ValueError, match=r"'right' parameter of solve must have shape \(1, 8\)"):
            state.solve(np.ones(shape))

    def test_complex_numbers_are_refused_where_the_laplacian_is_real(self):
        state = pg.find_equilibrium(NETWORKS["layered"]).linearised
        with pytest.raises(ValueError, match="'right' parameter of solve must be real"):
            state.solve(1j * np.ones((1, 8)))
