"""Certificates of networks made to be hard: never wrong, and never much more work than all eigenvalues or one LU."""

from collections import Counter

import numpy as np
import pytest
from hostile_networks import Hostile, _few_cycles, _graph, _signed, _tipping, dense, judged_wrongly, large
from scipy import sparse

import phasegrad as pg
from phasegrad.dynamics import build_system
from phasegrad.kernels import fill
from phasegrad.linearised import Verdict, _factors, _krylov, _low_rank, _proofs, _smallest, _sparse, stability
from phasegrad.linearised._proofs import Form


def verdict_of(case: Hostile) -> Verdict:
    return Verdict(int(stability(case.system, case.phases, explain=True).verdict[0]))


def eigenvalues_of(case: Hostile) -> np.ndarray | None:
    if case.network.size > 2_000:
        return None
    matrix = case.system.laplacian(case.phases)[0]
    return np.linalg.eigvalsh(matrix) if case.system.reciprocal else np.linalg.eigvals(matrix)


def check(cases: list[Hostile]) -> Counter:
    """Return how often each verdict was given; none may be wrong."""
    counts: Counter = Counter()
    for case in cases:
        verdict = verdict_of(case)
        assert judged_wrongly(case, verdict, eigenvalues_of(case)) == "", case.name
        counts[verdict] += 1
    return counts


def test_no_verdict_on_a_small_hostile_network_is_wrong():
    counts = check([dense(index, (50, 90)) for index in range(90)])
    assert counts[Verdict.UNPROVED] <= 4
    assert min(counts[Verdict.STABLE], counts[Verdict.UNSTABLE]) >= 20


def test_no_verdict_on_a_large_hostile_network_is_wrong():
    counts = check([large(index, (2_100,)) for index in range(1, 40) if index % 10 != 7])
    assert counts[Verdict.UNPROVED] <= 2
    assert min(counts[Verdict.STABLE], counts[Verdict.UNSTABLE]) >= 8
    assert counts[Verdict.MARGINAL] >= 2


class Work(Counter):
    """How often each kind of linear algebra was asked for, and all iterations of conjugate gradients."""


@pytest.fixture
def work(monkeypatch) -> Work:
    work = Work()

    def counted(owner, name, kind, count=lambda found: 1):
        real = getattr(owner, name)

        def call(*args, **options):
            found = real(*args, **options)
            work[kind] += count(found)
            return found

        monkeypatch.setattr(owner, name, call)

    counted(_proofs, "splu", "sparse factorisations")
    for owner in (_proofs, _smallest, _krylov):
        counted(owner, "conjugate_gradients", "iterations", lambda found: found.iterations)
    counted(_smallest, "lobpcg", "eigensolvers")
    for owner in (_smallest, _low_rank):
        counted(owner, "eigsh", "eigensolvers")
    for name in ("eigvalsh", "eig"):
        counted(np.linalg, name, name)
    counted(_factors.lapack, "dpotrf", "cholesky")
    return work


def hostile_ring(n: int) -> Hostile:
    """Weights over twelve decades, and three negative ones."""
    rng = np.random.default_rng(2)
    weight = rng.uniform(0.5, 2, n) * 10.0 ** rng.uniform(-6, 6, n)
    weight[rng.choice(n, 3, replace=False)] *= -1e-3
    return Hostile("ring", pg.networks.ring(n, coupling=weight, signed=True, omega=np.zeros(n)), np.zeros((1, n)))


def test_a_ring_over_twelve_decades_costs_its_eigenvalues_once(work):
    """It took 160 solves by conjugate gradients of up to 20,000 iterations each, 45 s where eigenvalues take 0.1 s."""
    case = hostile_ring(1_200)
    assert verdict_of(case) is Verdict.MARGINAL
    assert work["iterations"] == work["eigensolvers"] == 0
    assert work["eigvalsh"] <= 1
    assert work["cholesky"] <= 1
    assert work["sparse factorisations"] <= 1


def test_its_smallest_eigenvalue_costs_a_few_factorisations(work, monkeypatch):
    """As one that is too large for all eigenvalues gets it."""
    monkeypatch.setattr(_sparse, "DENSE_EXPLANATION", 0)
    case = hostile_ring(1_200)
    found = stability(case.system, case.phases, eigenvalue=True, explain=True)
    assert work["iterations"] == work["eigvalsh"] == 0
    assert work["sparse factorisations"] <= 20
    exact = np.linalg.eigvalsh(case.system.laplacian(case.phases)[0])
    # Eigenvalues of the dense matrix are only known to a rounding of its norm.
    slack = 1e-14 * exact[-1]
    assert found.smallest[0] - found.error[0] - slack <= exact[0] <= found.smallest[0] + slack
    assert found.error[0] <= 0.01 * abs(exact[0])


def with_chord(edges: np.ndarray) -> np.ndarray:
    """Return the edges and one more, between two nodes that are far from the first."""
    n = int(edges.max()) + 1
    return np.concatenate([edges, [[n // 3, n - 2]]])


@pytest.mark.parametrize("kind", ["tree", "wheel", "hubs", "ring", "deep tree", "small world"])
def test_graphs_that_factor_quickly_are_factored_and_never_iterated(kind, work):
    """Also where they are neither small nor meshes: three times, and as often for what is nearly zero."""
    rng = np.random.default_rng(5)
    n = _proofs.QUICKLY + 1_000
    edges = with_chord(_graph(rng, n, kind))
    weight = np.append(10.0 ** rng.uniform(-6, 6, len(edges) - 1), -1e-9)
    case = Hostile(kind, _signed(edges, weight, n), np.zeros((1, n)))
    verdict = verdict_of(case)
    assert judged_wrongly(case, verdict, None) == ""
    assert work["iterations"] == work["eigensolvers"] == 0
    assert work["sparse factorisations"] <= 6
    assert work["eigvalsh"] == work["cholesky"] == 0


def test_a_state_that_nearly_tips_costs_a_few_factorisations(work):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        case = Hostile("tipping", _tipping(rng, 2_500, 10.0 ** rng.uniform(-6, 6)), np.zeros((1, 2_500)))
        work.clear()
        verdict_of(case)
        assert work["iterations"] == work["eigensolvers"] == 0
        assert work["sparse factorisations"] <= 7


def test_a_mean_field_on_weights_over_decades_is_factored(work):
    """It took 2,400 times as long as one sparse LU, by conjugate gradients."""
    rng = np.random.default_rng(4)
    n = 2_500
    network = _signed(pg.networks.ring(n).edges, 10.0 ** rng.uniform(-6, 6, n), n, global_coupling=0.1)
    case = Hostile("mean field", network, np.zeros((1, n)))
    assert verdict_of(case) is Verdict.STABLE
    assert judged_wrongly(case, Verdict.STABLE, None) == ""
    assert work["iterations"] == work["eigensolvers"] == 0
    assert work["sparse factorisations"] <= 3


def test_many_neighbours_and_many_negative_weights_cost_a_share_of_a_dense_factorisation(work):
    rng = np.random.default_rng(3)
    n = 1_200
    edges = pg.networks.erdos_renyi(n, 44, seed=1).edges
    weight = 10.0 ** rng.uniform(-3, 3, len(edges))
    weight[rng.choice(len(edges), 600, replace=False)] *= -1e-4
    case = Hostile("crowd", _signed(edges, weight, n), np.zeros((1, n)))
    assert judged_wrongly(case, verdict_of(case), eigenvalues_of(case)) == ""
    entries = 2 * len(edges) + n
    assert work["iterations"] * entries <= 1.1 * _proofs.COMPLIANCE_SHARE * n**3
    assert work["cholesky"] <= 2


def test_without_reciprocity_a_positive_symmetric_part_is_proof_enough(work):
    rng = np.random.default_rng(0)
    edges = with_chord(_few_cycles(rng, 60, deep=False))
    weight = np.append(rng.uniform(1, 2, len(edges) - 1), -1e-3)
    network = _signed(edges, weight, 60, coupling_reverse=1.01 * weight)
    for grounded in (False, True):
        case = Hostile("one way", network.replace(grounded=grounded), np.zeros((1, 60)))
        assert verdict_of(case) is Verdict.STABLE
        assert np.min(eigenvalues_of(case).real) > 0
        assert work["eig"] == 0
    reverse = network.replace(coupling=-weight, coupling_reverse=-1.01 * weight)
    assert verdict_of(Hostile("other way", reverse, np.zeros((1, 60)))) is Verdict.UNSTABLE
    assert work["eig"] == 1


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_the_condition_of_eigenvectors_is_bounded_from_above_and_not_by_far(n):
    """By all singular values: the Frobenius norm of a matrix is at most the root of its size times its norm."""
    for seed in range(5):
        values, vectors = np.linalg.eig(np.random.default_rng(seed).standard_normal((n, n)))
        bound, exact = _factors.condition_bound(values, vectors), np.linalg.cond(vectors)
        assert exact * (1 - 1e-12) <= bound <= n * exact * (1 + 1e-12)
        product = np.linalg.norm(vectors) * np.linalg.norm(np.linalg.inv(vectors))
        assert bound == pytest.approx(product, rel=1e-9)
    values, vectors = np.linalg.eig(np.eye(n) + np.eye(n, k=1))
    assert _factors.condition_bound(values, vectors) > 1e12 or n == 1


class TestCore:
    def core_of(self, edges: np.ndarray) -> int:
        n = int(edges.max()) + 1
        ends = np.concatenate([edges, edges[:, ::-1]]).T
        pattern = sparse.csr_array((np.ones(ends.shape[1]), ends), shape=(n, n)) + sparse.eye_array(n, format="csr")
        return fill.core(pattern.indptr, pattern.indices, fill.FEW, fill.TRACKED)

    @pytest.mark.parametrize("kind", ["ring", "tree", "deep tree"])
    def test_rings_and_trees_with_few_cycles_vanish(self, kind):
        assert self.core_of(_graph(np.random.default_rng(1), 500, kind)) == 0

    def test_only_hubs_are_left_of_a_graph_around_them(self):
        assert self.core_of(_graph(np.random.default_rng(1), 500, "hubs")) <= 3
        assert self.core_of(_graph(np.random.default_rng(1), 500, "wheel")) <= 1

    def test_a_narrow_mesh_vanishes_and_a_wide_one_shrinks(self):
        assert self.core_of(pg.networks.lattice(6, 200).edges) == 0
        assert 0 < self.core_of(pg.networks.lattice(60, 60).edges) < 60 * 60 / 2

    @pytest.mark.parametrize("n", [17, 18, 30, 60])
    def test_a_complete_graph_is_its_own_core_unless_every_node_has_few_neighbours(self, n):
        assert self.core_of(_graph(np.random.default_rng(0), n, "complete")) == (0 if n - 1 <= fill.FEW else n)

    def test_an_expander_fills_up(self):
        assert self.core_of(pg.networks.random_regular(1_000, 4, seed=0).edges) > 300


def test_an_inverse_bounds_what_its_answers_are_off_by():
    """Weights over decades: the norm of the residual of any answer is never above its bound."""
    rng = np.random.default_rng(6)
    n = 60
    weight = 10.0 ** rng.uniform(-2, 2, n)
    network = pg.networks.ring(n, coupling=weight, omega=np.zeros(n))
    form = Form.of(build_system(network, None)[0], np.zeros((1, n)))
    inverse = form._by_factors().inverse
    assert inverse is not None
    scaled = inverse.scale[:, None] * form.lower.toarray() * inverse.scale
    assert 0 < inverse.floor <= np.linalg.eigvalsh(scaled)[0]
    exact = np.linalg.inv(scaled)
    for off in (0.0, 1e-8, 1e-2):
        right = rng.standard_normal(n - 1)
        answer = inverse.solve(right) * (1 + off * rng.standard_normal(n - 1))
        left = inverse.scale * (right - form.lower @ answer)
        assert np.sqrt(max(left @ exact @ left, 0.0)) <= inverse.energy_norm(right, answer)
    right = rng.standard_normal(n - 1)
    left = right - form.lower @ inverse.solve(right)
    assert np.linalg.norm(inverse.scale * left) <= 1e-10 * np.linalg.norm(inverse.scale * right)
