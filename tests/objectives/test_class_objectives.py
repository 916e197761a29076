"""Objectives: costs against their own derivatives, decisions against their costs."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from random_networks import make_network
from scipy.optimize import approx_fprime, minimize

import phasegrad as pg
from phasegrad.objectives import CLASS_OBJECTIVES

OBJECTIVES = [kind() for kind in CLASS_OBJECTIVES.values()] + [
    pg.objectives.NearestTarget(0.7),
    pg.objectives.OutputDifferences(1.0),
    pg.objectives.PeriodicDistance(0.3),
    pg.CosineCrossEntropy(1.5),
]
ids = repr

TRANSFORMATIONS = {
    "common rotation": lambda phases, rng: phases + rng.uniform(-2, 2, (len(phases), 1)),
    "full turns": lambda phases, rng: phases + 2 * np.pi * rng.integers(-2, 3, phases.shape),
    "theta -> -theta": lambda phases, rng: phases * rng.choice([-1, 1], phases.shape),
    "theta -> pi - theta": lambda phases, rng: np.where(rng.random(phases.shape) < 0.5, np.pi - phases, phases),
}


def rows_of(objective, width, labels):
    return objective.table(width)[labels]


@pytest.mark.parametrize("objective", [pg.PhaseTargets(), *OBJECTIVES], ids=ids)
@given(width=st.integers(1, 5), seed=st.integers(0, 2**31))
def test_force_and_hessian_are_derivatives_of_the_cost(objective, width, seed):
    rng = np.random.default_rng(seed)
    phases = rng.uniform(-3, 3, width)
    target = rng.uniform(-3, 3, width) if isinstance(objective, pg.PhaseTargets) else objective.table(width)[0]
    slope = approx_fprime(phases, lambda theta: float(objective.cost(theta, target)), 1e-7)
    np.testing.assert_allclose(objective.force(phases, target), -slope, atol=1e-5)
    columns = [
        -(objective.force(phases + 1e-4 * unit, target) - objective.force(phases - 1e-4 * unit, target)) / 2e-4
        for unit in np.eye(width)
    ]
    # Central differences keep step^2 = 1e-8 times a fourth derivative, which sharpness^4 = 256 bounds.
    np.testing.assert_allclose(objective.hessian(phases, target), np.array(columns).T, atol=3e-6)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=ids)
@pytest.mark.parametrize("width", [2, 3, 5])
def test_the_lowest_cost_implies_the_right_decision_except_in_the_papers_pair(objective, width):
    """Descend the cost from random phases: a consistent objective decides right wherever nothing is left to gain."""
    rng = np.random.default_rng(width)
    right = []
    for label in range(width):
        target = rows_of(objective, width, label)
        ends = [
            minimize(objective.cost, rng.uniform(-2, 2, width), args=(target,), jac=lambda p, t: -objective.force(p, t))
            for _ in range(4)
        ]
        best = min(ends, key=lambda end: end.fun)
        right.append(objective.decide(best.x) == label)
    if objective.consistent:
        assert all(right)
    else:
        np.testing.assert_array_equal(objective.decide(objective.table(width)), 0)  # at zero cost all classes tie


def test_the_papers_pair_is_the_only_inconsistent_one():
    assert [name for name, kind in CLASS_OBJECTIVES.items() if not kind.consistent] == ["PaperPair"]


@pytest.mark.parametrize("objective", OBJECTIVES, ids=ids)
@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_cost_and_decision_are_invariant_under_what_is_stated_and_nothing_else(objective, name):
    rng = np.random.default_rng(7)
    phases = rng.uniform(-np.pi, np.pi, (50, 3))
    labels = rng.integers(3, size=50)
    target = rows_of(objective, 3, labels)
    moved = TRANSFORMATIONS[name](phases, rng)
    change = np.abs(objective.cost(moved, target) - objective.cost(phases, target))
    if name in objective.invariances:
        assert np.max(change) < 1e-12
        np.testing.assert_array_equal(objective.decide(moved), objective.decide(phases))
    else:
        assert np.max(change) > 0.1 * np.ptp(objective.cost(phases, target))


@pytest.mark.parametrize("objective", OBJECTIVES, ids=ids)
def test_probabilities_sum_to_one_and_agree_with_the_decision(objective):
    phases = np.random.default_rng(3).uniform(-4, 4, (40, 4))
    if not objective.consistent:
        with pytest.raises(ValueError, match="PaperPair has no class probabilities"):
            objective.probabilities(phases)
        return
    share = objective.probabilities(phases)
    np.testing.assert_allclose(share.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_array_equal(np.argmax(share, axis=1), objective.decide(phases))


@pytest.mark.parametrize(
    "kind",
    [
        pg.objectives.NearestTarget,
        pg.objectives.OutputDifferences,
        pg.objectives.PeriodicDistance,
        pg.objectives.OneHotPhases,
    ],
)
def test_a_perfect_fit_is_55_times_as_likely_as_any_other_class(kind):
    objective = kind()
    share = objective.probabilities(objective.table(3)[1])
    np.testing.assert_allclose(share[1] / share[[0, 2]], np.exp(4))


def test_cross_entropy_is_minus_the_log_probability_and_never_below_its_floor():
    objective = pg.CosineCrossEntropy(3.0)
    phases = np.random.default_rng(0).uniform(-4, 4, (30, 4))
    labels = np.arange(30) % 4
    share = objective.probabilities(phases)[np.arange(30), labels]
    np.testing.assert_allclose(objective.cost(phases, np.eye(4)[labels]), -np.log(share), rtol=1e-12)
    perfect = np.where(np.eye(4, dtype=bool), 0.0, np.pi)
    np.testing.assert_allclose(objective.cost(perfect, np.eye(4)), np.log(1 + 3 * np.exp(-6.0)), rtol=1e-12)


def test_the_sine_decides_between_one_hot_phases():
    phases = np.random.default_rng(1).uniform(-9, 9, (60, 5))
    np.testing.assert_array_equal(pg.objectives.OneHotPhases().decide(phases), np.argmax(np.sin(phases), axis=1))


@settings(max_examples=3)
@pytest.mark.parametrize("objective", OBJECTIVES, ids=ids)
@given(kind=st.sampled_from(["plain", "field", "clamped"]), seed=st.integers(0, 1000))
def test_every_gradient_method_works_with_every_objective(objective, kind, seed):
    """Nudges need not be quadratic. Tolerances by theory: rounding, step^2, beta^2 and beta."""
    network = make_network(6, seed, kind=kind)
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(-1, 1, (2, 1)) if network.inputs else None
    equilibrium = pg.find_equilibrium(network, inputs)
    if np.max(equilibrium.largest_angle) > 1.2:
        return  # near the loss of synchrony derivatives blow up and no fixed tolerance is fair
    wrt = ["omega", "coupling"] + (["field_strength", "field_phase"] if network.field_strength is not None else [])
    question = (network, equilibrium, objective, 1)
    exact = pg.adjoint(*question, wrt=wrt)
    scale = max(np.max(np.abs(exact[name])) for name in wrt)
    # Derivatives by beta grow with the Hessian, sharpness^2 at most: nudges are weakened by as much.
    weak = 16.0
    others = {
        "autograd": (pg.gradients.autograd(*question, wrt=wrt), 1e-10),
        "holomorphic": (pg.gradients.holomorphic(*question, wrt=wrt), 1e-10),
        "finite_difference": (pg.gradients.finite_difference(*question, wrt=wrt), 1e-5),
        "centred": (pg.centred(*question, wrt=wrt, beta=1e-4 / weak), 1e-5),
        "two_phase": (pg.two_phase(*question, wrt=wrt, beta=1e-5 / weak), 1e-3),
    }
    for name, (gradient, tolerance) in others.items():
        for parameter in wrt:
            error = np.max(np.abs(gradient[parameter] - exact[parameter]))
            assert error <= tolerance * scale, f"{name}, {parameter}"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pg.CosineCrossEntropy(0), "'sharpness' parameter of CosineCrossEntropy must be a float greater than"),
        (
            lambda: pg.objectives.PeriodicDistance(2.0),
            "'margin' parameter of PeriodicDistance must be a float from 0 to 1.57",
        ),
        (lambda: pg.objectives.OneHotPhases(1.0), "'margin' parameter of OneHotPhases is pi/2"),
        (lambda: pg.objectives.OutputDifferences(-1), "'margin' parameter of OutputDifferences"),
    ],
)
def test_wrong_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("objective", OBJECTIVES, ids=ids)
def test_objectives_survive_a_model_file(objective, tmp_path):
    model = pg.Model(pg.layered(2, 3, 2), objective, ("a", "b"), ("x", "y"))
    model.save(tmp_path / "model.npz")
    assert pg.Model.load(tmp_path / "model.npz").objective == objective
    assert dataclasses.is_dataclass(objective)
