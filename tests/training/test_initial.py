import numpy as np
import pytest
from hypothesis import given, strategies as st

import phasegrad as pg
from phasegrad.initial import STARTS


def eigen_sum(network: pg.Network) -> np.ndarray:
    """The paper's formula, by an eigendecomposition of the reduced Laplacian."""
    i, j = network.edges.T
    matrix = np.zeros((network.size, network.size))
    matrix[i, j] = matrix[j, i] = network.coupling
    reduced = (np.diag(matrix.sum(axis=1)) - matrix)[1:, 1:]
    values, vectors = np.linalg.eigh(reduced)
    first, second = (node - 1 for node in network.outputs)
    weights = (vectors[first] - vectors[second]) / values
    omega = np.concatenate([[0.0], vectors @ weights])
    omega[list(network.inputs)] = 0.0
    return 0.3 * omega / np.abs(omega).max()


@given(st.integers(0, 1000), st.integers(2, 9))
def test_one_solve_is_the_papers_sum_over_eigenvectors(seed, hidden):
    network = pg.layered(2, hidden, 2, seed=seed)
    np.testing.assert_allclose(pg.initial.spectral_frequencies(network).omega, eigen_sum(network), atol=1e-13)
    opposite = pg.initial.spectral_frequencies(network, sign=-1)
    np.testing.assert_array_equal(opposite.omega, -pg.initial.spectral_frequencies(network).omega)


def test_the_spectral_seed_separates_many_outputs_in_order():
    network = pg.layered(3, 8, 5, seed=2)
    seeded = pg.initial.spectral_frequencies(network, scale=0.1)
    assert np.abs(seeded.omega).max() == pytest.approx(0.1)
    assert np.all(seeded.omega[:3] == 0)
    outputs = pg.find_equilibrium(seeded, np.zeros(3)).phases[list(network.outputs)]
    assert np.all(np.diff(outputs) < 0)


def test_output_seeds_have_both_signs_and_small_hidden_noise():
    network = pg.layered(2, 5, 2, seed=0)
    plus, minus = (pg.initial.output_frequencies(network, sign=sign, seed=10_000).omega for sign in (1, -1))
    assert plus[[7, 8]].tolist() == [0.3, -0.3]
    assert minus[[7, 8]].tolist() == [-0.3, 0.3]
    np.testing.assert_array_equal(plus[2:7], np.random.default_rng(10_000).uniform(-0.05, 0.05, 5))
    np.testing.assert_array_equal(plus[:7], minus[:7])


@pytest.mark.parametrize("by", ["absolute", "signed"])
def test_multi_start_takes_the_draw_that_separates_most(by):
    network = pg.layered(2, 5, 2, seed=0)
    inputs = pg.datasets.vowels(seed=42).x_train[:10]
    stream = np.random.default_rng(7)
    draws, scores = [], []
    for _ in range(6):
        omega = np.concatenate([[0.0, 0.0], stream.uniform(-0.3, 0.3, 7)])
        phases = pg.find_equilibrium(network.replace(omega=omega), inputs).phases
        separation = phases[:, 7] - phases[:, 8]
        draws.append(omega)
        scores.append(np.mean(np.abs(separation)) if by == "absolute" else np.mean(separation))
    chosen = pg.initial.multi_start_frequencies(network, inputs, by=by, starts=6, seed=7)
    np.testing.assert_array_equal(chosen.omega, draws[int(np.argmax(scores))])


def test_screening_works_for_clamped_inputs_too():
    network = pg.layered(2, 5, 2, seed=0, input_mode="phase")
    inputs = np.random.default_rng(0).uniform(-1, 1, (4, 2))
    draws = [pg.initial.random_frequencies(network, seed=seed) for seed in (1, 2)]
    separations = [np.ptp(pg.find_equilibrium(each, inputs).phases[:, [7, 8]], axis=1).mean() for each in draws]
    assert min(separations) > 0
    chosen = pg.initial.multi_start_frequencies(network, inputs, starts=3, seed=1)
    assert np.ptp(pg.find_equilibrium(chosen, inputs).phases[:, [7, 8]], axis=1).mean() >= separations[0]
    with pytest.raises(ValueError, match="last axis of length 2"):
        pg.initial.multi_start_frequencies(network, [[1.0, 2.0, 3.0]])


def test_the_names_of_starts_say_the_sign_of_the_first_output():
    """The paper's spectral seed is positive there, its output-only start negative; one table serves all."""
    network, samples = pg.layered(2, 5, 2, seed=3), np.zeros((2, 2))
    omega = {name: start(network, samples, 3).omega for name, start in STARTS.items()}
    for name, sign in (("spectral", 1), ("anti-spectral", -1), ("outputs-positive", 1), ("outputs-negative", -1)):
        assert np.sign(omega[name][list(network.outputs)]).tolist() == [sign, -sign], name
    assert np.array_equal(omega["random"], network.omega)
    assert not omega["zero"].any()
    for name in ("outputs-positive", "outputs-negative"):
        hidden = np.random.default_rng(3 + 10_000).uniform(-0.05, 0.05, 5)
        np.testing.assert_array_equal(omega[name][2:7], hidden)


def test_random_seeds_leave_the_inputs_alone():
    omega = pg.initial.random_frequencies(pg.layered(2, 5, 2), seed=3, scale=0.1).omega
    assert omega[:2].tolist() == [0.0, 0.0]
    np.testing.assert_array_equal(omega[2:], np.random.default_rng(3).uniform(-0.1, 0.1, 7))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda n: pg.initial.spectral_frequencies(n, sign=2),
            "'sign' parameter of spectral_frequencies must be 1 or -1",
        ),
        (lambda n: pg.initial.spectral_frequencies(n, scale=0), "'scale' parameter of spectral_frequencies"),
        (lambda n: pg.initial.spectral_frequencies(n.replace(outputs=(7,))), "needs at least two. This network has 1"),
        (lambda n: pg.initial.output_frequencies(n.replace(outputs=())), "needs at least two"),
        (
            lambda n: pg.initial.multi_start_frequencies(n, [[0, 0]], by="luck"),
            "'by' parameter of multi_start_frequencies",
        ),
        (lambda n: pg.initial.multi_start_frequencies(n, [[0, 0]], starts=0), "'starts' parameter"),
        (lambda n: pg.initial.random_frequencies(n, seed="x"), "'seed' parameter of random_frequencies"),
    ],
)
def test_wrong_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(pg.layered(2, 5, 2))
