"""Every way of proving a quadratic form positive definite, or not, against all eigenvalues of its matrix."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import phasegrad as pg
from phasegrad.dynamics import build_system
from phasegrad.linearised import _proofs, _sparse
from phasegrad.linearised._preconditioning import GaussSeidel
from phasegrad.linearised._proofs import Evidence, Factors, Form
from phasegrad.linearised._smallest import smallest_eigenvalue

pytestmark = pytest.mark.internal

WAYS = ("_by_factors", "_by_compliance", "dense")


class Quadratic(pg.Cost):
    """C = 1/2 theta^T A theta of the outputs, with A as given."""

    def __init__(self, matrix):
        self.matrix = np.array(matrix)

    def force(self, phases, target):
        return -phases @ self.matrix

    def cost(self, phases, target):
        return 0.5 * np.sum(phases * (phases @ self.matrix), axis=-1)

    def hessian(self, phases, target):
        return np.broadcast_to(self.matrix, (*np.shape(phases), len(self.matrix)))


def leave_no_way(monkeypatch):
    """Let every network be too large for a factorisation, for a compliance and for eigenvalues."""
    for name in ("FACTORED", "FACTORED_MESH", "QUICKLY", "DENSELY", "COMPLIANCE_MOST"):
        monkeypatch.setattr(_proofs, name, 0)
    monkeypatch.setattr(_sparse, "DENSE_EXPLANATION", 0)


def precondition(matrix):
    return GaussSeidel.of(matrix)


def random_form(seed: int, *, size: int = 40, tip: float = 1.0) -> Form:
    """A connected graph with six negative weights, one of them on a node, brought to ``tip`` times where it tips."""
    rng = np.random.default_rng(seed)
    pairs = {(int(rng.integers(k)), k) for k in range(1, size)}
    while len(pairs) < 3 * size:
        i, j = sorted(rng.choice(size, 2, replace=False).tolist())
        pairs.add((i, j))
    first, second = np.array(sorted(pairs)).T
    weight = rng.uniform(0.5, 2.0, first.size)
    # None of the tree that keeps the graph together.
    spare = np.flatnonzero(rng.random(first.size) < 0.2)[:5]
    ground = np.where(rng.random(size) < 0.3, rng.uniform(0, 1, size), 0.0)
    ground[0] = 0.5
    bad = np.zeros(first.size)
    bad[spare] = rng.uniform(0.5, 1.0, spare.size)
    low = np.zeros(size)
    low[3] = rng.uniform(0.1, 0.3)
    weight[spare], ground[3] = 0.0, 0.0
    keep = Form(first, second, weight, weight, ground, ground)
    take = Form(first, second, bad, bad, low, low)
    root = np.linalg.cholesky(keep.lower.toarray())
    inner = np.linalg.solve(root, np.linalg.solve(root, take.lower.toarray()).T)
    strength = tip / np.linalg.eigvalsh(inner)[-1]
    weight, ground = weight - strength * bad, ground - strength * low
    return Form(first, second, weight, weight, ground, ground)


def evidence_of(form: Form, way: str, monkeypatch) -> Evidence:
    if way == "dense":
        monkeypatch.setattr(_proofs, "FEW_NEIGHBOURS", 0)
        monkeypatch.setattr(_proofs, "COMPLIANCE_MOST", 0)
        return form.examine(precondition, mesh=False)
    return form._by_factors() if way == "_by_factors" else form._by_compliance(precondition(form.positive))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tip", [0.2, 0.99, 1 - 1e-8, 1 + 1e-8, 1.01, 5.0])
def test_every_way_agrees_with_all_eigenvalues(way, tip, monkeypatch):
    for seed in range(6):
        form = random_form(seed, tip=tip)
        exact = np.linalg.eigvalsh(form.lower.toarray())[0]
        assert (exact > 0) == (tip < 1)
        evidence = evidence_of(form, way, monkeypatch)
        assert evidence.proved == (tip < 1), seed
        if not evidence.proved and way != "dense":
            assert form.quotient(evidence.witness) < 0, seed
            assert form.quotient(evidence.witness) >= exact - 1e-12


@pytest.mark.parametrize("way", ["_by_factors", "_by_compliance"])
def test_nothing_is_proved_of_what_tips_within_rounding(way, monkeypatch):
    for seed in range(6):
        form = random_form(seed, tip=1 + 1e-15)
        assert not evidence_of(form, way, monkeypatch).proved


def test_a_lifted_form_is_that_of_the_matrix_plus_a_multiple_of_one():
    for seed in range(4):
        form = random_form(seed, tip=1.3)
        exact = np.linalg.eigvalsh(form.lower.toarray())[0]
        for by in (-0.2, 0.2):
            np.testing.assert_allclose(
                form.lifted(by).lower.toarray(), form.lower.toarray() + by * np.eye(form.size), atol=1e-14
            )
            assert form.lifted(by).norm == pytest.approx(np.max(np.abs(form.lower.diagonal() + by)))
        for share, proved in ((0.999, False), (1.001, True)):
            lifted = form.lifted(-share * exact)
            for evidence in (lifted._by_factors(), lifted._by_compliance(precondition(lifted.positive))):
                assert evidence.proved == proved
        vector = np.random.default_rng(seed).standard_normal(form.size)
        assert form.lifted(0.7).quotient(vector) == pytest.approx(form.quotient(vector) + 0.7, abs=1e-12)


def test_a_form_lowered_below_its_smallest_eigenvalue_is_not_proved_though_no_weight_is_negative():
    network = pg.networks.lattice(8, 8, omega=np.zeros(64))
    system, _ = build_system(network, None)
    form = Form.of(system, np.zeros((1, 64)))
    exact = np.linalg.eigvalsh(pg.dynamics.laplacian(network, np.zeros(64)))[0]
    assert form.examine(precondition, mesh=False).proved
    assert form.lifted(-0.999 * exact).examine(precondition, mesh=False).proved
    assert not form.lifted(-1.001 * exact).examine(precondition, mesh=False).proved


def test_the_form_of_a_state_is_its_laplacian_at_the_lower_ends():
    """Field, second harmonic, clamped inputs and a nudge that bends both ways; the quotient is x.Lx / x.x."""
    rng = np.random.default_rng(3)
    base = pg.networks.complete(7, coupling=rng.uniform(-1, 1, 21), signed=True, outputs=(4, 5, 6))
    networks = [
        base,
        base.replace(field_strength=rng.uniform(-1, 1, 7), field_phase=rng.uniform(-1, 1, 7)),
        base.replace(second_strength=rng.uniform(0, 1, 7)),
        base.replace(inputs=(1, 2), input_mode="phase"),
    ]
    nudge = pg.Nudge(pg.CosineCrossEntropy(), 1, -0.4)
    for network in networks:
        inputs = [0.1, 0.2] if network.clamps_inputs else None
        system, _ = build_system(network, inputs, nudge)
        phases = system.place(rng.uniform(-2, 2, (1, 7)))
        matrix = system.laplacian(phases)[0]
        form = Form.of(system, phases)
        np.testing.assert_allclose(form.lower.toarray(), matrix, atol=1e-13)
        assert np.all(form.low < form.high)
        vector = rng.standard_normal(form.size)
        quotient = vector @ matrix @ vector / (vector @ vector)
        assert quotient <= form.quotient(vector) <= quotient + 1e-12
        values = np.linalg.eigvalsh(matrix)
        assert form.bottom <= values[0]
        assert 0.5 * np.max(np.abs(values)) <= form.norm * 1.0000001 or form.norm >= np.max(np.abs(np.diag(matrix)))


def test_the_lower_matrix_is_below_the_exact_one_where_sums_on_its_diagonal_cancel():
    """A hub whose weights of both signs nearly cancel: rounded sums alone would be too large every other time."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        weight = rng.uniform(-1, 1, 200)
        ground = np.append(1e-12 - math.fsum(weight), np.zeros(200))
        form = Form(np.zeros(200, dtype=int), np.arange(1, 201), weight, weight, ground, ground)
        exact = math.fsum([*weight, ground[0]])
        assert exact - 1e-11 < form.lower.diagonal()[0] <= exact
        assert form.lifted(0.3).lower.diagonal()[0] <= math.fsum([*weight, ground[0], 0.3])


def test_a_part_that_only_negative_weights_hold_is_the_witness():
    # 0 - 1 - 2, grounded at 0; 3 - 4 hang on by a negative weight alone.
    weight = np.array([1.0, 1.0, -0.1, 2.0])
    form = Form(np.array([0, 1, 2, 3]), np.array([1, 2, 3, 4]), weight, weight, *2 * [np.eye(5)[0]])
    evidence = form.examine(precondition, mesh=False)
    assert not evidence.proved
    np.testing.assert_array_equal(evidence.witness, [0, 0, 0, 1, 1])
    assert form.quotient(evidence.witness) == pytest.approx(-0.05)


def test_an_edge_without_weight_holds_nothing():
    weight = np.array([1.0, 0.0])
    form = Form(np.array([0, 1]), np.array([1, 2]), weight, weight, *2 * [np.eye(3)[0]])
    evidence = form.examine(precondition, mesh=False)
    assert not evidence.proved
    np.testing.assert_array_equal(evidence.witness, [0, 0, 1])


def test_of_several_loose_parts_the_one_pushed_hardest_is_the_witness():
    """By edges, by what pushes it off the ground, and by both per node."""
    first, second, frame = np.array([0, 0, 0, 3]), np.array([1, 2, 3, 4]), np.eye(5)[0]
    weight = np.array([-0.1, -0.01, -0.15, 1.0])
    for push, hardest in ((0.0, [1]), (0.5, [2])):
        ground = frame - push * np.eye(5)[2]
        witness = Form(first, second, weight, weight, ground, ground).examine(precondition, mesh=False).witness
        np.testing.assert_array_equal(np.flatnonzero(witness), hardest)


def test_few_negative_weights_need_no_factorisation(monkeypatch):
    """Neither sparse nor dense: the compliance across them decides, unless even that is too much work."""
    monkeypatch.setattr(_proofs, "FEW_NEIGHBOURS", 0)
    monkeypatch.setattr(_proofs, "DENSELY", 0)
    assert random_form(0, tip=0.9).examine(precondition, mesh=False).proved
    evidence = random_form(0, tip=1.1).examine(precondition, mesh=False)
    assert not evidence.proved
    assert random_form(0, tip=1.1).quotient(evidence.witness) < 0
    monkeypatch.setattr(_proofs, "COMPLIANCE_WORK", (1, 1))
    assert random_form(0, tip=0.9).examine(precondition, mesh=False) == Evidence(False)


def test_the_rounding_of_a_nudge_is_that_of_its_own_output():
    network = pg.networks.ring(6, outputs=(2, 4))
    system, _ = build_system(network, None, pg.Nudge(Quadratic([[1e12, 0.1], [0.1, 1.0]]), [0.0, 0.0], 1.0))
    form = Form.of(system, np.zeros((1, 6)))
    width = form.ground_high - form.ground_low
    assert 0 < width[network.graph.position[4]] < 1e-13
    assert 1e-4 < width[network.graph.position[2]] < 1e-2


@pytest.mark.parametrize("seed", range(3))
def test_a_positive_vector_bounds_the_spectrum_of_an_m_matrix_from_below(seed):
    form = random_form(seed, tip=0.0)
    exact = np.linalg.eigvalsh(form.positive.toarray())[0]
    vector = np.abs(np.linalg.eigh(form.positive.toarray())[1][:, 0])
    assert Form.below(form.positive, vector) == pytest.approx(exact, rel=1e-9)
    assert Form.below(form.positive, np.ones(form.size)) is None
    floor = form._floor(_proofs._Iterations(form.positive, precondition(form.positive), 1e7))
    assert 0.05 * exact < floor <= exact
    assert Form.below(form.positive, -vector) is None


@pytest.mark.parametrize("seed", range(3))
def test_that_bound_is_below_its_exact_value(seed):
    """Fractions have no rounding, and a chain has rows of three entries at most, so that little hides its own."""
    size, rng = 30, np.random.default_rng(seed)
    ends, weight, ground = np.arange(size), rng.uniform(0.5, 2.0, size - 1), np.full(size, 1e-3)
    matrix = Form(ends[:-1], ends[1:], weight, weight, ground, ground).positive
    vector = np.abs(np.linalg.eigh(matrix.toarray())[1][:, 0])
    rows = [[(Fraction(value), k) for k, value in enumerate(row) if value] for row in matrix.toarray().tolist()]
    images = [sum(value * Fraction(vector[k]) for value, k in row) for row in rows]
    exact = min(image / Fraction(each) for image, each in zip(images, vector, strict=True))
    bound = Form.below(matrix, vector)
    assert bound <= exact
    assert bound == pytest.approx(float(exact), rel=1e-9)


def test_the_rounding_of_factors_bounds_what_they_differ_by():
    for seed in range(4):
        matrix = random_form(seed, size=60, tip=0.5).lower
        factors = Factors.of(matrix, 0.01)
        order = np.argsort(factors.found.perm_c)
        lower = factors.found.L.toarray()
        again = lower @ np.diag(factors.pivots) @ lower.T
        shifted = matrix.toarray() - 0.01 * np.eye(60)
        apart = np.linalg.norm(again - shifted[np.ix_(order, order)], 2)
        assert apart <= factors.rounding <= 1e-11
        np.testing.assert_allclose(shifted @ factors.solve(np.ones(60)), 1.0, atol=1e-10)
        negative = Factors.of(matrix, np.sort(np.linalg.eigvalsh(matrix.toarray()))[2] + 1e-6)
        assert np.sum(negative.pivots < 0) == 3
        vector = negative.descent()
        assert vector @ negative.matrix @ vector == pytest.approx(negative.pivots[negative.pivots < 0][0], rel=1e-8)
    assert Factors.of(sparse.csr_array(np.zeros((2, 2))), 0.0) is None


@pytest.mark.parametrize("tip", [0.3, 0.95, 1.05, 3.0])
@pytest.mark.parametrize("few", [True, False])
def test_the_interval_holds_the_smallest_eigenvalue_and_is_narrow(tip, few, monkeypatch):
    if not few:
        monkeypatch.setattr(_proofs, "FEW_NEIGHBOURS", 0)
    for seed in range(3):
        form = random_form(seed, tip=tip)
        exact = np.linalg.eigvalsh(form.lower.toarray())[0]
        evidence = form.examine(precondition, mesh=False)
        value, error = smallest_eigenvalue(form, evidence, precondition, mesh=False)
        assert value - error <= exact + 1e-13
        assert exact <= value + 1e-13
        assert error <= (1e-6 if few else 0.11) * abs(exact)


@pytest.mark.parametrize("tip", [0.3, 3.0])
@pytest.mark.parametrize("few", [True, False])
def test_the_interval_is_as_narrow_as_the_eigenvector_is_good(tip, few, monkeypatch):
    if not few:
        monkeypatch.setattr(_proofs, "FEW_NEIGHBOURS", 0)
    form = random_form(0, tip=tip)
    values, vectors = np.linalg.eigh(form.lower.toarray())
    for apart in (1e-10, 1e-7, 1e-4) if few else (1e-4, 1e-2):
        off = np.sqrt(apart * abs(values[0]) / (values[1] - values[0]))
        rough = vectors[:, 0] + off * vectors[:, 1]
        way = "_nearest" if few else "_iterated"
        monkeypatch.setattr(f"phasegrad.linearised._smallest.{way}", lambda *given, rough=rough: rough)
        value, error = smallest_eigenvalue(form, form.examine(precondition, mesh=False), precondition, mesh=False)
        assert value - error <= values[0] <= value
        assert error <= 11 * apart * abs(values[0])


def test_what_is_neither_proved_nor_refuted_has_a_status_of_its_own(monkeypatch):
    """No factorisation and no compliance: one weakly negative edge of an expander leaves the question open."""
    n = 1100
    network = pg.networks.random_regular(n, 6, seed=1)
    coupling = np.ones(network.n_edges)
    coupling[7] = -0.3
    network = network.replace(coupling=coupling, signed=True)
    assert pg.find_equilibrium(network).stable
    leave_no_way(monkeypatch)
    found = pg.find_equilibrium(network)
    assert found.status.item() is pg.Status.UNPROVED
    assert found.converged
    assert not found.stable
    assert "neither proved stable nor refuted" in str(found)
    coupling[7] = -20.0
    assert pg.find_equilibrium(network.replace(coupling=coupling)).status.item() is pg.Status.UNSTABLE


def test_a_nudge_that_only_stiffens_leaves_a_proof_as_it_is(monkeypatch):
    """Its curvature couples the outputs negatively, and is positive definite nevertheless."""
    network = pg.networks.random_regular(1100, 4, seed=1, outputs=(500, 1000))
    leave_no_way(monkeypatch)
    for coupled, status in ((1.0, pg.Status.STABLE), (2.5, pg.Status.UNPROVED)):
        nudge = pg.Nudge(Quadratic([[2.0, coupled], [coupled, 2.0]]), [0.0, 0.0], 0.1)
        assert pg.find_equilibrium(network, nudge=nudge).status.item() is status
