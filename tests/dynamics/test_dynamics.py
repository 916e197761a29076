"""The equations against independent routes: a loop in plain Python, finite differences, SciPy."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from random_networks import RECIPROCAL, inputs_for, make_network, networks
from scipy.optimize import approx_fprime

import phasegrad as pg


def plain_force(network, phases, inputs):
    """The equation of motion, written out."""
    omega = network.omega.copy()
    if network.inputs and not network.clamps_inputs:
        omega[list(network.inputs)] = network.input_scale * inputs
    if network.pinned:
        omega = omega - omega.mean()
    total = list(omega)
    none = np.zeros(network.n_edges)
    reverse = network.coupling if network.coupling_reverse is None else network.coupling_reverse
    lags, shares = (none if each is None else each for each in (network.lag, network.anisotropy))
    pull = network.interaction.value
    for (i, j), forward, backward, lag, share in zip(
        network.edges, network.coupling, reverse, lags, shares, strict=True
    ):
        along = share * float(pull(np.array(phases[i] + phases[j])))
        total[i] += forward * (float(pull(np.array(phases[j] - phases[i] - lag))) + along)
        total[j] += backward * (float(pull(np.array(phases[i] - phases[j] - lag))) + along)
    if network.field_strength is not None:
        for i in range(network.size):
            angle = np.array(network.field_phase[i] - phases[i])
            total[i] += network.field_strength[i] * float(network.interaction.value(angle))
    if network.second_strength is not None:
        for i in range(network.size):
            total[i] += network.second_strength[i] * math.sin(2 * (network.second_phase[i] - phases[i]))
    # Without reciprocity the frame turns with the reference, whose own speed then is the common frequency.
    drifts = network.pinned and not network.reciprocal and not network.grounded
    return np.array(total) - (total[network.reference] if drifts else 0.0)


@given(networks(), st.integers(0, 2**31))
def test_force_is_the_equation_of_motion(network, seed):
    phases = np.random.default_rng(seed).uniform(-3, 3, network.size)
    inputs = inputs_for(network, (), seed)
    expected = plain_force(network, phases, inputs)
    np.testing.assert_allclose(pg.dynamics.force(network, phases, inputs), expected, atol=1e-12)


@pytest.mark.parametrize(("options", "subtracted"), [
    ({}, "mean"),
    ({"inputs": [2]}, "mean"),
    ({"field_strength": 0.5}, "nothing"),
    ({"inputs": [2], "input_mode": "phase"}, "nothing"),
    ({"coupling_reverse": 2.0}, "mean and reference"),
    ({"coupling_reverse": 2.0, "grounded": True}, "mean"),
])  # fmt: skip
def test_force_subtracts_the_mean_frequency_where_nothing_fixes_the_frame(options, subtracted):
    omega = np.array([4.0, 5.0, 7.0])
    network = pg.Network([[0, 1], [1, 2]], 1.0, omega, **options)
    inputs = [2.0] if network.inputs else None
    if network.inputs and not network.clamps_inputs:
        omega[2] = network.input_scale * 2.0  # which is part of the mean
    # Phases alike but for the fields: nothing else acts.
    force = pg.dynamics.force(network, np.zeros(3), inputs)
    frequencies = {"nothing": omega, "mean": omega - omega.mean(), "mean and reference": omega - omega[0]}[subtracted]
    assert force == pytest.approx(frequencies, abs=1e-14)


@given(networks(kinds=RECIPROCAL), st.integers(0, 2**31))
def test_force_is_minus_the_slope_of_the_energy(network, seed):
    phases = np.random.default_rng(seed).uniform(-3, 3, network.size)
    inputs = inputs_for(network, (), seed)
    slope = approx_fprime(phases, lambda theta: float(pg.dynamics.energy(network, theta, inputs)), 1e-6)
    np.testing.assert_allclose(pg.dynamics.force(network, phases, inputs), -slope, atol=1e-4)


@given(networks(), st.integers(0, 2**31))
def test_laplacian_is_minus_the_jacobian_of_the_force(network, seed):
    phases = np.random.default_rng(seed).uniform(-3, 3, network.size)
    inputs = inputs_for(network, (), seed)
    step, free = 1e-6, network.free
    jacobian = np.array(
        [
            (
                pg.dynamics.force(network, phases + step * unit, inputs)
                - pg.dynamics.force(network, phases - step * unit, inputs)
            )[free]
            for unit in np.eye(network.size)[free]
        ]
    ).T / (2 * step)
    np.testing.assert_allclose(pg.dynamics.laplacian(network, phases, inputs), -jacobian, atol=1e-7)


@given(networks(kinds=("plain",)), st.integers(0, 2**31))
def test_free_reciprocal_forces_sum_to_zero(network, seed):
    phases = np.random.default_rng(seed).uniform(-3, 3, (4, network.size))
    np.testing.assert_allclose(pg.dynamics.force(network, phases).sum(axis=1), 0, atol=1e-12)


def test_a_field_is_a_clamped_neighbour():
    """h H(psi - theta) is what an oscillator clamped at psi, coupled with strength h, would exert."""
    field = pg.Network([[0, 1], [1, 2]], [1.0, 2.0], [0.1, -0.2, 0.3], field_strength=[0, 0, 0.7], field_phase=0.4)
    clamp = pg.Network(
        [[0, 1], [1, 2], [2, 3]],
        [1.0, 2.0, 0.7],
        [0.1, -0.2, 0.3, 0.0],
        inputs=[3],
        input_mode="phase",
        input_scale=1.0,
    )
    settled = pg.find_equilibrium(field).phases
    np.testing.assert_allclose(settled, pg.find_equilibrium(clamp, [0.4]).phases[:3], atol=1e-13)


def test_energy_of_two_oscillators_in_closed_form():
    network = pg.Network([[0, 1]], 2.0, [0.5, -0.5])
    assert float(pg.dynamics.energy(network, [0.0, 0.3])) == pytest.approx(-2.0 * math.cos(0.3) + 0.5 * 0.3, abs=1e-15)


def test_energy_does_not_exist_without_reciprocity():
    network = make_network(5, 0, kind="non-reciprocal")
    with pytest.raises(ValueError, match="has no energy: its coupling is not reciprocal"):
        pg.dynamics.energy(network, np.zeros(5))


def test_batches_of_phases_and_inputs_broadcast():
    network = make_network(5, 0, kind="driven")
    inputs = np.linspace(-1, 1, 3)[:, None]
    assert pg.dynamics.force(network, np.zeros(5), inputs).shape == (3, 5)
    assert pg.dynamics.energy(network, np.zeros((2, 1, 5)), inputs).shape == (2, 3)
    assert pg.dynamics.laplacian(network, np.zeros((3, 5)), inputs).shape == (3, 4, 4)


def test_wrong_phases_are_refused():
    with pytest.raises(ValueError, match=r"'phases' parameter of force must have a last axis of length 4"):
        pg.dynamics.force(pg.networks.ring(4), np.zeros(3))


@pytest.mark.parametrize("nudge", ["strong", (pg.PhaseTargets(), [0.0], 0.1), pg.Nudge(None, [0.0], 0.1)])
def test_what_is_no_nudge_towards_a_cost_is_refused(nudge):
    with pytest.raises(TypeError, match=r"'nudge' parameter must be a Nudge\(objective, target, beta\)"):
        pg.dynamics.force(pg.networks.ring(4, outputs=[1]), np.zeros(4), nudge=nudge)
