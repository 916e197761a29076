"""Large sparse networks: the same answers as the dense way on every kind of graph, and bad input refused as clearly."""

import importlib.util

import numpy as np
import pytest
from random_networks import make_network
from scipy.sparse import coo_array, csgraph

import phasegrad as pg
from phasegrad.dynamics import System, build_system
from phasegrad.linearised import DenseLaplacian, SparseLaplacian, linearise, stability
from phasegrad.linearised._krylov import conjugate_gradients, solve_accurately
from phasegrad.linearised._preconditioning import DEEP, GaussSeidel, Jacobi, Multigrid, is_deep, probe
from phasegrad_bench._plain import settle_sparse

TARGET = [0.3, -0.3]
N = 600


def frequencies(n, spread, seed=0):
    return np.random.default_rng(seed).normal(0, spread, n)


def family(name, n=N):
    outputs = (n // 3, n - 1)
    if name == "grid":
        return pg.networks.lattice(20, n // 20, omega=frequencies(n, 0.05), outputs=outputs)
    if name == "ring":
        return pg.networks.ring(n, omega=frequencies(n, 1e-3), outputs=outputs)
    if name == "regular":
        return pg.networks.random_regular(n, 6, omega=frequencies(n, 0.3), outputs=outputs)
    if name == "small world":
        return pg.networks.small_world(n, 6, 0.1, omega=frequencies(n, 0.3), outputs=outputs)
    return pg.networks.erdos_renyi(n, 10, omega=frequencies(n, 0.3), outputs=outputs)


FAMILIES = ("grid", "ring", "regular", "small world", "erdos renyi")


@pytest.mark.parametrize("name", FAMILIES)
def test_sparse_and_dense_find_the_same_state_and_the_same_gradients(name):
    network = family(name)
    assert SparseLaplacian.fits(build_system(network, None, None)[0])
    sparse = pg.find_equilibrium(network)
    dense = pg.find_equilibrium(network, solver="newton")
    assert sparse.stable
    assert sparse.residual <= 1e-12
    # A residual of 1e-12 moves the phases by at most its size over the smallest eigenvalue, here above 1e-5.
    np.testing.assert_allclose(sparse.phases, dense.phases, atol=1e-8)
    gradient = pg.adjoint(network, sparse, pg.PhaseTargets(), TARGET, wrt=("omega", "coupling"))
    matrix = pg.dynamics.laplacian(network, dense.phases)
    slope = np.zeros(N)
    slope[list(network.outputs)] = dense.phases[list(network.outputs)] - TARGET
    response = np.zeros(N)
    response[network.free] = np.linalg.solve(matrix, slope[network.free])
    np.testing.assert_allclose(gradient.omega, response, rtol=1e-6, atol=1e-9 * np.abs(response).max())
    i, j = network.edges.T
    pull = np.sin(dense.phases[j] - dense.phases[i])
    np.testing.assert_allclose(
        gradient.coupling, (response[i] - response[j]) * pull, atol=1e-8 * np.abs(gradient.coupling).max()
    )


@pytest.mark.parametrize("kind", ["plain", "field", "clamped", "driven"])
@pytest.mark.parametrize("seed", [0, 1])
def test_every_kind_of_network_is_solved_as_the_dense_solver_does(kind, seed):
    """Odd series, fields and inputs, forced through the sparse solver at a size that would be dense."""
    network = make_network(60, seed, kind=kind, density=0.05, spread=0.02)
    inputs = None if not network.inputs else np.array([[0.3], [-0.2]])
    sparse = pg.find_equilibrium(network, inputs, solver="sparse")
    dense = pg.find_equilibrium(network, inputs, solver="newton")
    assert np.all(sparse.stable)
    np.testing.assert_allclose(sparse.phases, dense.phases, atol=1e-10)


def test_the_compressed_laplacian_is_the_dense_one():
    network = make_network(40, 3, kind="field", density=0.2)
    phases = frequencies(40, 1.0)
    dense = pg.dynamics.laplacian(network, phases)
    np.testing.assert_allclose(pg.dynamics.laplacian(network, phases, compressed=True).toarray(), dense, atol=1e-15)
    pinned = make_network(40, 3, density=0.2)
    compressed = pg.dynamics.laplacian(pinned, phases, compressed=True)
    assert compressed.has_sorted_indices
    np.testing.assert_allclose(compressed.toarray(), pg.dynamics.laplacian(pinned, phases), atol=1e-15)


def test_nudged_solves_and_every_method_agree_with_the_adjoint_gradient():
    network = family("small world", 2000).replace(field_strength=0.05, field_phase=0.1)
    equilibrium = pg.find_equilibrium(network)
    wrt = ("omega", "coupling", "field_strength", "field_phase")
    exact = pg.adjoint(network, equilibrium, pg.PhaseTargets(), TARGET, wrt=wrt)
    for method, error in ((pg.two_phase, 1e-3), (pg.centred, 1e-5)):
        nudged = method(network, equilibrium, pg.PhaseTargets(), TARGET, wrt=wrt)
        for name in wrt:
            difference = np.linalg.norm(nudged[name] - exact[name])
            assert difference <= error * np.linalg.norm(exact[name]), (method.__name__, name)


def test_the_default_nudge_is_right_on_a_mesh_where_the_papers_points_the_wrong_way():
    network = pg.networks.lattice(50, 60, omega=frequencies(3000, 0.05), outputs=(1500, 2999))
    equilibrium = pg.find_equilibrium(network)
    question = (network, equilibrium, pg.PhaseTargets(), TARGET)
    exact = pg.adjoint(*question).omega
    assert np.linalg.norm(pg.two_phase(*question).omega - exact) <= 1e-3 * np.linalg.norm(exact)
    assert np.linalg.norm(pg.centred(*question).omega - exact) <= 1e-5 * np.linalg.norm(exact)
    with pytest.warns(pg.gradients.GradientWarning, match="Try beta"):
        strong = pg.two_phase(*question, beta=0.1).omega
    assert np.linalg.norm(strong - exact) > 0.1 * np.linalg.norm(exact)


def test_many_targets_share_one_laplacian(monkeypatch):
    network = family("regular", 1500)
    equilibrium = pg.find_equilibrium(network)
    targets = frequencies((5, 2), 0.3)
    filled = []
    fill = System.edge_weights
    monkeypatch.setattr(System, "edge_weights", lambda *args, **how: filled.append(1) or fill(*args, **how))
    together = pg.adjoint(network, equilibrium, pg.PhaseTargets(), targets).omega
    assert len(filled) == 1
    for row, target in zip(together, targets, strict=True):
        np.testing.assert_array_equal(row, pg.adjoint(network, equilibrium, pg.PhaseTargets(), target).omega)


def test_many_outputs_get_a_nudge_too():
    network = family("regular", 1500).replace(outputs=tuple(range(700, 740)))
    equilibrium = pg.find_equilibrium(network)
    question = (network, equilibrium, pg.PhaseTargets(), frequencies(40, 0.2))
    exact = pg.adjoint(*question).omega
    assert np.linalg.norm(pg.two_phase(*question).omega - exact) <= 1e-3 * np.linalg.norm(exact)


def test_spectral_seed_is_the_dense_solve():
    network = family("small world")
    matrix = pg.dynamics.laplacian(network, np.zeros(N))
    contrast = np.zeros(N)
    contrast[list(network.outputs)] = [1.0, -1.0]
    pattern = np.zeros(N)
    pattern[network.free] = np.linalg.solve(matrix, contrast[network.free])
    seeded = pg.initial.spectral_frequencies(network)
    np.testing.assert_allclose(seeded.omega, 0.3 * pattern / np.abs(pattern).max(), atol=1e-10)


@pytest.mark.parametrize("name", FAMILIES)
def test_scipys_conjugate_gradients_find_the_same_state(name):
    """The other side of the benchmark, which shares nothing with the package but the network's numbers."""
    network = family(name)
    np.testing.assert_allclose(settle_sparse(network), pg.find_equilibrium(network).phases, atol=1e-8)


def test_every_word_means_its_algebra_bit_by_bit():
    network = family("regular", 400)
    for word, algebra in (("newton", DenseLaplacian), ("sparse", SparseLaplacian), ("auto", SparseLaplacian)):
        found, meant = (pg.find_equilibrium(network, solver=s) for s in (word, pg.solvers.Newton(algebra=algebra)))
        np.testing.assert_array_equal(found.phases, meant.phases)


def test_a_state_well_below_the_tolerance_needs_no_further_step():
    network = family("regular", 1500)
    found = pg.find_equilibrium(network)
    again = pg.find_equilibrium(network, start=found.phases)
    assert found.residual <= 0.1 * 1e-12
    assert again.steps == 0
    np.testing.assert_array_equal(again.phases, found.phases)
    near = pg.find_equilibrium(network, start=found.phases, tolerance=2 * float(found.residual))
    assert near.steps == 1


def test_an_unstable_branch_is_followed_as_the_dense_solver_does():
    """Two oscillators opposite all others: conjugate gradients stop at the negative curvature, MINRES does not."""
    network = pg.networks.random_regular(30, 4, seed=1, omega=frequencies(30, 0.1))
    start = np.pi * np.isin(np.arange(30), [5, 11])
    dense, found = (
        pg.find_equilibrium(network, start=start, solver=pg.solvers.Newton(indefinite="follow", algebra=algebra))
        for algebra in (DenseLaplacian, SparseLaplacian)
    )
    assert found.status == dense.status == pg.Status.UNSTABLE
    np.testing.assert_allclose(found.phases, dense.phases, atol=1e-12)


class TestEdges:
    """Laplacians as lists of edges: the same matrix, and the same solutions, as compressed rows."""

    @staticmethod
    def networks():
        omega = frequencies(N, 0.3)
        pairs = family("regular").edges
        inner = pg.networks.random_regular(N, 6, omega=omega, reference=N // 2)
        clamped = pg.Network(pairs, 1.0, omega, inputs=(3, 400), input_mode="phase")
        field = pg.Network(pairs, 1.0, omega, field_strength=0.2, field_phase=0.3)
        injected = pg.Network(pairs, 1.0, omega, second_strength=0.1)
        return {"reference": inner, "clamped": clamped, "field": field, "second harmonic": injected}

    @pytest.mark.parametrize("name", ["reference", "clamped", "field", "second harmonic"])
    def test_one_pass_gives_the_force_and_a_solve_is_that_of_the_reduced_laplacian(self, name):
        network = self.networks()[name]
        inputs = [0.1, -0.2] if network.clamps_inputs else None
        system, _ = build_system(network, inputs)
        phases = system.place(frequencies((1, N), 0.3))
        state = SparseLaplacian.of(system, phases, "gauss-seidel")
        np.testing.assert_allclose(state.force, system.force(phases)[:, network.free], atol=1e-13)
        dense = system.laplacian(phases)[0]
        matrix, inverse, _ = state.operator(0)
        assert matrix.floats == (name == "reference")
        right = frequencies(network.free.size, 1.0, seed=1)
        np.testing.assert_allclose(matrix @ right, dense @ right, atol=1e-12)
        found = solve_accurately(matrix, right, inverse)
        exact = np.linalg.solve(dense, right)
        np.testing.assert_allclose(found.solution, exact, rtol=1e-9, atol=1e-9 * np.abs(exact).max())
        assert found.left <= 3e-12

    def test_a_reference_that_is_let_go_spares_iterations(self):
        system, _ = build_system(family("regular", 4000), None)
        phases = np.zeros((1, 4000))
        floating, inverse, _ = SparseLaplacian.of(system, phases, "gauss-seidel").operator(0)
        held = system.sparse_laplacian(phases)
        right = frequencies(3999, 1.0)
        free, grounded = (
            conjugate_gradients(matrix, right, swept, tolerance=1e-10)
            for matrix, swept in ((floating, inverse), (held, GaussSeidel.of(held)))
        )
        assert free.iterations < 0.75 * grounded.iterations
        np.testing.assert_allclose(free.solution, grounded.solution, atol=1e-6)

    def test_weights_over_eight_decades_are_solved_to_rounding_in_spite_of_single_precision(self):
        rng = np.random.default_rng(3)
        network = pg.networks.random_regular(500, 4, seed=1)
        network = network.replace(coupling=10.0 ** rng.uniform(-4, 4, network.n_edges))
        system, _ = build_system(network, None)
        matrix, inverse, _ = SparseLaplacian.of(system, np.zeros((1, 500)), "gauss-seidel").operator(0)
        right = rng.standard_normal(499)
        found = solve_accurately(matrix, right, inverse)
        exact = np.linalg.solve(pg.dynamics.laplacian(network, np.zeros(500)), right)
        # The condition of 1e8 or so times the rounding of the right-hand side.
        np.testing.assert_allclose(found.solution, exact, rtol=1e-6, atol=1e-6 * np.abs(exact).max())
        single = conjugate_gradients(matrix, right, inverse, tolerance=0.1, enough=0.1)
        assert single.positive

    def test_the_largest_turn_is_that_across_an_edge(self):
        system, _ = build_system(family("small world"), None)
        step = frequencies((2, N - 1), 1.0)
        whole = np.zeros((2, N))
        whole[:, system.graph.free] = step
        state = SparseLaplacian.of(system.take(np.zeros(2, int)), whole)
        np.testing.assert_array_equal(state.turn(step), system.turns(whole))
        step[1, 7] = np.nan
        assert np.isnan(state.turn(step)[1])


class TestPreconditioners:
    def test_the_probe_knows_meshes_from_expanders(self):
        shallow = pg.networks.random_regular(4000, 6)
        deep = pg.networks.lattice(40, 100)
        graphs = [network.graph for network in (shallow, deep)]
        assert [probe(graph) for graph in graphs] == ["gauss-seidel", "multigrid"]

    @pytest.mark.parametrize("length", [2 * DEEP, 2 * DEEP + 1, 2 * DEEP + 2])
    def test_the_probe_counts_steps_whatever_the_order_of_the_nodes(self, length):
        """A ring of so many nodes, and 20 more on each of them, is half as deep as the ring is long, plus one."""
        size = 21 * length
        ring, leaves = np.arange(length), np.arange(length, size)
        edges = np.concatenate([np.stack([ring, (ring + 1) % length], 1), np.stack([leaves % length, leaves], 1)])
        shuffled = np.random.default_rng(0).permutation(size)
        for order in (np.arange(size), shuffled):
            graph = pg.Network(order[edges], 1.0, np.zeros(size)).graph
            links = np.ones(graph.n_edges), tuple(graph.edges.T)
            matrix = coo_array(links, shape=(size, size)).tocsr()
            steps = csgraph.shortest_path(matrix, directed=False, unweighted=True, indices=size // 2)
            assert is_deep(graph) == (np.max(steps) > DEEP)

    @pytest.mark.parametrize("build", [Jacobi.of, GaussSeidel.of, Multigrid.of])
    def test_conjugate_gradients_solves_what_a_factorisation_solves(self, build):
        matrix = pg.dynamics.laplacian(pg.networks.lattice(30, 40), frequencies(1200, 0.1), compressed=True)
        right = frequencies(1199, 1.0)
        found = solve_accurately(matrix, right, build(matrix))
        np.testing.assert_allclose(found.solution, np.linalg.solve(matrix.toarray(), right), rtol=1e-8, atol=1e-9)
        assert found.left <= 3e-12

    def test_multigrid_needs_fewer_iterations_on_a_mesh(self):
        matrix = pg.dynamics.laplacian(pg.networks.lattice(60, 60), np.zeros(3600), compressed=True)
        right = frequencies(3599, 1.0)
        count = [conjugate_gradients(matrix, right, build(matrix), tolerance=1e-10).iterations
                 for build in (Jacobi.of, GaussSeidel.of, Multigrid.of)]  # fmt: skip
        assert count[2] < count[1] / 2 < count[0] / 3

    def test_the_transformed_system_is_plain_preconditioning_by_the_sweep(self):
        """Eisenstat's trick changes the arithmetic, not the iterates: after equally many the solution is the same."""
        matrix = pg.dynamics.laplacian(family("small world"), frequencies(N, 0.3), compressed=True)
        right = frequencies(N - 1, 1.0)
        swept = GaussSeidel.of(matrix)

        class Applied:
            name = "applied"
            apply = staticmethod(swept.apply)

        quick = conjugate_gradients(matrix, right, swept, tolerance=1e-30, max_iterations=12)
        plain = conjugate_gradients(matrix, right, Applied(), tolerance=1e-30, max_iterations=12)
        np.testing.assert_allclose(quick.solution, plain.solution, rtol=1e-7, atol=1e-9)

    def test_an_indefinite_matrix_is_recognised_and_still_solved(self):
        network = pg.networks.ring(400, signed=True, coupling=np.where(np.arange(400) == 7, -5.0, 1.0))
        matrix = pg.dynamics.laplacian(network, np.zeros(400), compressed=True)
        right = frequencies(399, 1.0)
        found = solve_accurately(matrix, right, Jacobi.of(matrix))
        assert not found.positive
        np.testing.assert_allclose(found.solution, np.linalg.solve(matrix.toarray(), right), rtol=1e-6, atol=1e-6)

    def test_a_matrix_with_many_negative_eigenvalues_is_solved_to_rounding(self):
        rng = np.random.default_rng(0)
        matrix = pg.dynamics.laplacian(
            pg.networks.random_regular(400, 4, seed=1), rng.uniform(-2, 2, 400), compressed=True
        )
        right = rng.standard_normal(399)
        found = solve_accurately(matrix, right, GaussSeidel.of(matrix))
        assert not found.positive
        assert np.linalg.norm(right - matrix @ found.solution) <= 1e-11 * np.linalg.norm(right)

    def test_a_hierarchy_serves_all_solves_of_its_network(self, monkeypatch):
        built = []
        original = Multigrid.of
        monkeypatch.setattr(Multigrid, "of", lambda matrix: built.append(1) or original(matrix))
        network = pg.networks.lattice(40, 100, omega=frequencies(4000, 0.05), outputs=(2000, 3999))
        equilibrium = pg.find_equilibrium(network)
        pg.adjoint(network, equilibrium, pg.PhaseTargets(), TARGET)
        pg.two_phase(network, equilibrium, pg.PhaseTargets(), TARGET)
        assert len(built) == 1

    def test_no_answer_depends_on_batch_mates_or_on_what_was_asked_before(self):
        """Bit by bit: alone, in a batch in any order, and after other questions about the same network."""
        network = pg.networks.lattice(
            40, 60, omega=frequencies(2400, 0.05), inputs=(0, 2399), outputs=(1200,), reference=100
        )
        inputs = np.random.default_rng(1).uniform(-0.1, 0.1, (3, 2))
        start = np.random.default_rng(2).uniform(-0.5, 0.5, (3, 2400))
        together = pg.find_equilibrium(network, inputs, start=start)
        targets = np.array([[0.1], [0.2], [-0.3]])
        gradients = pg.two_phase(network, together, pg.PhaseTargets(), targets).omega
        for k in (2, 0, 1):
            alone = pg.find_equilibrium(network, inputs[k], start=start[k])
            np.testing.assert_array_equal(alone.phases, together.phases[k])
            beta = pg.two_phase(network, together, pg.PhaseTargets(), targets).beta
            one = pg.two_phase(network, alone, pg.PhaseTargets(), targets[k], beta=beta)
            np.testing.assert_array_equal(one.omega, gradients[k])

    def test_without_pyamg_meshes_are_solved_by_gauss_seidel_and_a_warning_says_so(self, monkeypatch):
        network = pg.networks.lattice(40, 100, omega=frequencies(4000, 0.05))
        expected = pg.find_equilibrium(network).phases
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
        with pytest.warns(UserWarning, match=r"pip install '\.\[sparse\]'"):
            found = pg.find_equilibrium(network.replace())
        np.testing.assert_allclose(found.phases, expected, atol=1e-8)
        monkeypatch.setitem(__import__("sys").modules, "pyamg", None)
        with pytest.raises(ImportError, match=r"pip install '\.\[sparse\]'"):
            pg.find_equilibrium(
                network.replace(), solver=pg.solvers.Newton(algebra=SparseLaplacian, preconditioner="multigrid")
            )

    def test_the_choice_can_be_overridden(self):
        network = pg.networks.lattice(30, 30, omega=frequencies(900, 0.05))
        seen = []
        solver = pg.solvers.Newton(
            algebra=SparseLaplacian, preconditioner="multigrid", progress=lambda step: seen.append(step)
        )
        assert pg.find_equilibrium(network, solver=solver).stable
        assert {step.preconditioner for step in seen} == {"multigrid"}
        assert [step.step for step in seen] == list(range(1, len(seen) + 1))
        assert seen[-1].residual <= 1e-12 < seen[0].residual


class TestCertificates:
    @pytest.mark.parametrize("name", ["grid", "regular"])
    def test_the_smallest_eigenvalue_lies_within_its_stated_error(self, name):
        network = family(name, 1100)
        found = pg.find_equilibrium(network, eigenvalue=True)
        exact = np.linalg.eigvalsh(pg.dynamics.laplacian(network, found.phases))[0]
        assert abs(found.smallest_eigenvalue - exact) <= found.eigenvalue_error
        assert found.eigenvalue_error <= 1e-3 * exact

    def test_a_state_beyond_the_angle_condition_is_judged_by_its_eigenvalue(self):
        n = 1100
        # Twisted rings: angles of zero, just below a right angle, just above it.
        network = pg.networks.ring(n)
        for turns in (0, n // 4 - 30, n // 4 + 30):
            phases = 2 * np.pi * turns / n * np.arange(n)
            system, _ = build_system(network, None, None)
            verdict = stability(system, phases[None], eigenvalue=True)
            exact = np.linalg.eigvalsh(pg.dynamics.laplacian(network, phases))[0]
            assert bool(verdict.stable[0]) == (exact > 0)
            assert abs(verdict.smallest[0] - exact) <= max(verdict.error[0], 1e-3 * abs(exact))

    def test_angles_beyond_a_right_angle_may_still_be_stable(self):
        """One stretched edge of a well connected graph: the sufficient condition fails, the eigenvalue decides."""
        n = 1100
        network = pg.networks.erdos_renyi(n, 10, seed=2)
        system, _ = build_system(network, None, None)
        verdicts = []
        for turn in (0.55, 0.95):
            phases = np.zeros(n)
            # Its neighbours turn half as far, so that only edges of the second ring around it are relaxed.
            phases[0] = turn * np.pi
            near = np.unique(network.edges[np.any(network.edges == 0, axis=1)])
            phases[near[near > 0][1:]] = turn * np.pi / 2
            verdict = stability(system, phases[None])
            exact = np.linalg.eigvalsh(pg.dynamics.laplacian(network, phases))[0]
            assert bool(verdict.stable[0]) == (exact > 0)
            verdicts.append(bool(verdict.stable[0]))
        assert verdicts == [True, False]

    @pytest.mark.parametrize("strength", [0.02, 5.0])
    def test_a_push_that_tears_an_output_away_is_seen(self, strength):
        """At the free state L - beta E E^T loses an eigenvalue exactly when beta exceeds the inverse compliance."""
        network = family("regular", 1100)
        equilibrium = pg.find_equilibrium(network)
        nudge = pg.Nudge(pg.PhaseTargets(), TARGET, -strength)
        system, _ = build_system(network, None, nudge)
        matrix = pg.dynamics.laplacian(network, equilibrium.phases)
        where = network.graph.position[list(network.outputs)]
        matrix[where, where] -= strength
        verdict = stability(system, equilibrium.phases[None])
        assert bool(verdict.stable[0]) == (np.linalg.eigvalsh(matrix)[0] > 0)

    def test_eigenvalues_of_indefinite_matrices_are_negative(self):
        network = pg.networks.ring(1100, signed=True, coupling=np.where(np.arange(1100) == 7, -0.5, 1.0))
        found = pg.find_equilibrium(network, eigenvalue=True)
        exact = np.linalg.eigvalsh(pg.dynamics.laplacian(network, found.phases))[0]
        assert exact < 0
        assert found.status.item() is pg.Status.UNSTABLE
        assert -found.eigenvalue_error <= exact - found.smallest_eigenvalue <= 1e-12
        assert found.eigenvalue_error <= 1e-6


class TestNoLockedState:
    def test_the_node_condition_is_found_before_solving(self):
        network = family("regular", 3000)
        omega = network.omega.copy()
        omega[17] = 7.0
        found = pg.find_equilibrium(network.replace(omega=omega))
        assert found.status.item() is pg.Status.CANNOT_LOCK
        assert found.blocking == 17
        assert found.steps == 0

    @pytest.mark.parametrize("name", ["regular", "grid"])
    def test_a_group_that_tears_loose_ends_in_a_status_after_few_iterations(self, name):
        """No single oscillator is too fast, but one half of the graph is: the cut between them cannot hold."""
        network = family(name, 3000)
        half = np.where(np.arange(3000) < 1500, 1.0, -1.0)
        strongest = pg.networks.to_matrix(network, compressed=True).sum(axis=1).min()
        steps = []
        torn = network.replace(omega=0.9 * strongest * half if name == "regular" else 0.3 * half)
        found = pg.find_equilibrium(torn, progress=steps.append)
        usual = []
        pg.find_equilibrium(network, progress=usual.append)
        assert found.status.item() is pg.Status.UNCONVERGED
        assert steps[-1].iterations <= 20 * usual[-1].iterations

    def test_random_starts_descend_to_stable_states(self):
        network = family("erdos renyi", 400)
        assert pg.find_equilibrium(network, start="random").converged


class TestBadInput:
    def test_dense_requests_for_large_networks_are_refused_with_the_alternative(self):
        n = 13_000
        network = pg.networks.ring(n, outputs=(n - 1,))
        with pytest.raises(ValueError, match=r"1.26 GiB, 12999 rows.*solver='auto'"):
            pg.find_equilibrium(network, solver="newton")
        with pytest.raises(ValueError, match=r"compressed=True"):
            pg.dynamics.laplacian(network, np.zeros(n))
        equilibrium = pg.find_equilibrium(network)
        with pytest.raises(ValueError, match="the gradients adjoint, two_phase and centred"):
            pg.gradients.holomorphic(network, equilibrium, pg.PhaseTargets(), [0.1])
        with pytest.raises(ValueError, match="the gradients adjoint, two_phase and centred"):
            pg.gradients.autograd(network, equilibrium, pg.PhaseTargets(), [0.1])
        everywhere = pg.PhaseTargets(outputs=tuple(range(1, n)))
        assert pg.adjoint(network, equilibrium, everywhere, np.full(n - 1, 0.1)).valid
        with pytest.raises(ValueError, match="Nudge fewer outputs, or use the adjoint gradient"):
            pg.two_phase(network, equilibrium, everywhere, np.full(n - 1, 0.1))
        one_way = network.replace(coupling_reverse=np.full(n, 2.0))
        with pytest.raises(ValueError, match="reciprocal coupling only"):
            pg.find_equilibrium(one_way)
        system, _ = build_system(one_way, None)
        with pytest.raises(ValueError, match="reciprocal coupling only"):
            linearise(system, np.zeros((1, n)))

    def test_what_the_sparse_solver_cannot_do_is_said(self):
        one_way = make_network(20, 0, kind="non-reciprocal")
        with pytest.raises(ValueError, match="The sparse algebra needs reciprocal coupling"):
            pg.find_equilibrium(one_way, solver="sparse")
        with pytest.raises(ValueError, match="single sample and reciprocal"):
            pg.dynamics.laplacian(one_way, np.zeros(20), compressed=True)
        with pytest.raises(ValueError, match="'preconditioner' parameter of Newton must be one of"):
            pg.solvers.Newton(preconditioner="magic")
        for word in ("dense", object, SparseLaplacian(build_system(make_network(5, 0), None)[0], np.zeros((1, 4)))):
            with pytest.raises(TypeError, match="'algebra' parameter of Newton must be a class"):
                pg.solvers.Newton(algebra=word)
        with pytest.raises(ValueError, match="'max_steps' parameter of Newton"):
            pg.solvers.Newton(max_steps=0)
