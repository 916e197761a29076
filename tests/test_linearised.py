"""The linearised system: every algebra against LAPACK on the Laplacian of the edges, and each factor made once."""

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
    "plain": make_network(12, 0, kind="plain").replace(interaction=pg.Sine()),
    "field": make_network(9, 1, kind="field").replace(interaction=pg.Sine()),
    "layered": pg.layered(2, 5, 2, seed=0),
    "signed layers": pg.signed_layers(3, 8, 2, seed=0),
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
    found = counted.near(pg.laplacian(network, free.phases, [0.5, -0.5]))
    assert found <= 2
    gradient = method(network, free, pg.PhaseTargets(), [0.1, -0.2])
    assert gradient.valid
    assert counted.near(pg.laplacian(network, free.phases, [0.5, -0.5])) == found


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

    def test_a_copy_through_a_file_answers_alike(self):
        free = pg.find_equilibrium(NETWORKS["layered"], [0.5, -0.5])
        again = pickle.loads(pickle.dumps(free))
        right = np.ones((1, 8))
        np.testing.assert_array_equal(again.linearised.solve(right)[0], free.linearised.solve(right)[0])

    @pytest.mark.parametrize(
        ("network", "word", "name"),
        [
            (NETWORKS["layered"], "auto", "newton (dense)"),
            (NETWORKS["layered"], "batch", "aligned newton"),
            (NETWORKS["layered"], "flow", "flow"),
            (pg.random_regular(400, 4), "auto", "newton (sparse)"),
        ],
    )
    def test_it_names_the_solver_that_found_it(self, network, word, name):
        assert pg.find_equilibrium(network, solver=word).solver.item() == name

    def test_it_says_where_no_solver_was_asked_and_where_another_one_helped(self):
        torn = pg.Network([[0, 1]], 1.0, [2.0, -2.0])
        assert pg.find_equilibrium(torn).solver.item() == "none"
