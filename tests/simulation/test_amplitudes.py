"""Oscillators with amplitudes: closed forms, and the phase model where attraction is strong."""

import math

import numpy as np
import pytest
from random_networks import make_network

import phasegrad as pg

KINDS = ("plain", "field", "clamped", "non-reciprocal")


def test_two_locked_oscillators_shrink_as_their_coupling_says():
    """Sin d = (omega_1 - omega_0) / 2K, and a (1 - r^2) = K (1 - cos d)."""
    network = pg.Network([[0, 1]], 1.2, [-0.6, 0.6])
    run = pg.simulation.simulate_amplitudes(network, [0.0, 40.0], attraction=2.0, start=[0.1, 0.4])
    angle = math.asin(1.2 / (2 * 1.2))
    assert run.phases[-1, 1] - run.phases[-1, 0] == pytest.approx(angle, abs=1e-7)
    np.testing.assert_allclose(run.amplitudes[-1], math.sqrt(1 - 1.2 * (1 - math.cos(angle)) / 2.0), atol=1e-7)


@pytest.mark.parametrize(("coupling", "dies"), [(0.8, False), (1.5, True), (6.0, False)])
def test_oscillators_far_apart_die_between_two_couplings(coupling, dies):
    """The origin has the eigenvalues a - K +- sqrt(K^2 - D^2): below a it repels, beyond (a^2 + D^2) / 2a again."""
    network = pg.Network([[0, 1]], coupling, [-3.0, 3.0])
    amplitudes = pg.simulation.simulate_amplitudes(network, [0.0, 60.0], start=[0.0, 1.0]).amplitudes[-1]
    assert (amplitudes.max() < 1e-6) == dies


@pytest.mark.parametrize(
    "kind", ["anisotropic", "lagging", *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS)]
)
def test_strong_attraction_is_the_phase_model(kind):
    """What is left falls as 1 / a, and phases end where the equilibrium is."""
    network = make_network(5, 3, kind=kind, spread=0.4).replace(interaction=pg.terms.Sine())
    inputs = [0.3] if network.inputs else None
    found = pg.find_equilibrium(network, inputs, eigenvalue=True)
    assert found.stable
    times, off = np.array([0.0, 12.0 / float(found.smallest_eigenvalue)]), []
    for attraction in (20.0, 40.0):
        run = pg.simulation.simulate_amplitudes(
            network, times, attraction=attraction, start=found.phases, inputs=inputs, tolerance=1e-8
        )
        end = run.phases[-1]
        end = end - end[0] if network.pinned else end
        start = found.phases - found.phases[0] if network.pinned else found.phases
        off.append(np.abs(np.angle(np.exp(1j * (end - start)))).max())
        assert np.abs(run.amplitudes[-1] - 1).max() < 10 / attraction
    assert 1e-6 < off[1] < 0.6 * off[0] < 0.03


def test_a_sample_does_not_depend_on_the_others_in_its_batch():
    network = make_network(5, 1, kind="field").replace(interaction=pg.terms.Sine())
    # A calm sample beside two that need short steps.
    start = np.array([[0.1], [2.0], [3.0]]) * np.random.default_rng(0).uniform(-1, 1, (3, 5))
    whole = pg.simulation.simulate_amplitudes(network, [0.0, 1.0, 2.0], start=start)
    assert whole.states.shape == (3, 3, 5)
    for k in range(3):
        alone = pg.simulation.simulate_amplitudes(network, [0.0, 1.0, 2.0], start=start[k])
        assert np.array_equal(whole.states[:, k], alone.states)


def test_no_samples_and_a_single_time_are_runs_too():
    assert pg.simulation.simulate_amplitudes(pg.networks.ring(4), [0.0, 1.0], start=np.zeros((0, 4))).states.shape == (
        2,
        0,
        4,
    )
    assert np.array_equal(
        pg.simulation.simulate_amplitudes(pg.networks.ring(4), [0.0], start=np.zeros(4)).states, np.ones((1, 4))
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"attraction": 0.0}, "'attraction' parameter"),
        ({"times": [1.0, 0.0]}, "'times' parameter .* increase"),
        ({"start": np.zeros(4)}, "'start' parameter .* last axis of length 5"),
        ({"start": np.full(5, np.nan)}, "'start' parameter .* finite"),
    ],
)
def test_wrong_values_are_refused(options, words):
    options = {"times": [0.0, 1.0], **options}
    with pytest.raises(ValueError, match=words):
        pg.simulation.simulate_amplitudes(pg.networks.ring(5), options.pop("times"), **options)


def test_what_has_no_amplitudes_is_refused():
    with pytest.raises(ValueError, match="this network has 'second_strength'"):
        pg.simulation.simulate_amplitudes(pg.networks.ring(5, second_strength=0.3), [0.0, 1.0])
    with pytest.raises(ValueError, match="Amplitudes are coupled linearly"):
        pg.simulation.simulate_amplitudes(pg.networks.ring(5, interaction=pg.terms.OddSeries((1.0, 0.2))), [0.0, 1.0])
