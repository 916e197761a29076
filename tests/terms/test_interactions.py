import numpy as np
import pytest
from hypothesis import given, strategies as st
from own_interactions import Strong, Wrapped

import phasegrad as pg

COEFFICIENTS = st.lists(st.floats(-2, 2), min_size=1, max_size=5).filter(lambda a: max(map(abs, a)) > 1e-3)


class Cosine(pg.terms.Sine):
    """Even, so it must be refused."""

    def value(self, phi):
        return np.cos(phi)


class WrongSlope(pg.terms.Sine):
    def derivative(self, phi):
        return 2 * np.cos(phi)


class WrongPotential(pg.terms.Sine):
    def potential(self, phi):
        return np.cos(phi)


class Sawtooth(pg.terms.Sine):
    """Odd but not periodic."""

    def value(self, phi):
        return phi

    def derivative(self, phi):
        return np.ones_like(phi)

    def potential(self, phi):
        return phi**2 / 2


class Doubled:
    """Twice the H of whichever interaction stands behind it."""

    def value(self, phi):
        return 2 * super().value(phi)

    def derivative(self, phi):
        return 2 * super().derivative(phi)

    def potential(self, phi):
        return 2 * super().potential(phi)


class DoubledSine(Doubled, pg.terms.Sine):
    pass


class DoubledSeries(Doubled, pg.terms.OddSeries):
    pass


class Bounded(Strong):
    """A subclass may still say what it knows of its own formula."""

    bound = 2.0

    def value(self, phi):
        return 2 * np.sin(phi)


@given(COEFFICIENTS)
def test_a_series_of_one_term_is_a_scaled_sine_and_any_series_passes_its_own_check(coefficients):
    series = pg.terms.OddSeries(coefficients)
    series.check()
    phi = np.linspace(-4, 4, 33)
    expected = sum(a * np.sin((k + 1) * phi) for k, a in enumerate(coefficients))
    np.testing.assert_allclose(series.value(phi), expected, atol=1e-12)


@given(COEFFICIENTS)
def test_bound_is_an_upper_bound_and_tight(coefficients):
    series = pg.terms.OddSeries(coefficients)
    largest = np.abs(series.value(np.linspace(-np.pi, np.pi, 200_001))).max()
    assert largest <= series.bound <= largest * (1 + 1e-3) + 1e-9


def test_sine_is_the_one_term_series():
    phi = np.linspace(-3, 3, 50)
    sine, series = pg.terms.Sine(), pg.terms.OddSeries([1.0])
    for method in ("value", "derivative", "potential"):
        np.testing.assert_array_equal(getattr(sine, method)(phi), getattr(series, method)(phi))
    assert sine.bound == 1.0
    assert sine.steepness == pytest.approx(1.0)


def test_a_users_own_interaction_works_in_a_network():
    pytest.importorskip("torch")
    network = pg.networks.ring(6, omega=[0.2, -0.1, 0.3, -0.2, 0, -0.2], interaction=Wrapped(), outputs=[3])
    equilibrium = pg.find_equilibrium(network)
    assert equilibrium.stable
    table = pg.check_gradients(network, equilibrium, pg.PhaseTargets(), [0.4])
    adjoint = table.methods.index("adjoint")
    assert table.relative_error["omega"][table.methods.index("finite_difference"), adjoint] < 1e-8
    assert table.relative_error["coupling"][table.methods.index("autograd"), adjoint] < 1e-12


OVERRIDDEN = [Strong(), DoubledSine(), DoubledSeries([1.0]), DoubledSeries([0.5, 0.25])]


@pytest.mark.parametrize("interaction", OVERRIDDEN, ids=repr)
def test_another_formula_does_not_inherit_what_followed_from_the_first(interaction):
    """The bound, the series and the force in PyTorch are facts about the formula that was overridden."""
    torch = pytest.importorskip("torch")
    phi = np.linspace(-np.pi, np.pi, 2001)
    assert np.abs(interaction.value(phi)).max() <= interaction.bound
    assert interaction.steepness == pytest.approx(np.abs(interaction.derivative(phi)).max(), rel=1e-5)
    assert interaction.series is None
    np.testing.assert_array_equal(interaction.torch_value(torch.tensor(phi)).numpy(), interaction.value(phi))


@pytest.mark.parametrize("interaction", OVERRIDDEN[:3], ids=repr)
def test_an_equilibrium_that_only_the_overridden_force_can_hold_is_found(interaction):
    """2 sin(phi) = 1.5 has a solution, sin(phi) = 1.5 has none."""
    network = pg.Network([[0, 1]], 1.0, [1.5, -1.5], interaction=interaction, outputs=[1])
    equilibrium = pg.find_equilibrium(network)
    assert equilibrium.stable
    assert np.sin(equilibrium.phases[1]) == pytest.approx(-0.75)
    table = pg.check_gradients(network, equilibrium, pg.PhaseTargets(), [0.1], methods=["adjoint", "autograd"])
    assert table.relative_error["coupling"].max() < 1e-12


def test_a_subclass_says_what_it_knows_of_its_own_formula_and_one_without_a_formula_inherits_it():
    class Named(pg.terms.Sine):
        pass

    assert Bounded().bound == 2.0
    assert Bounded().series is None
    assert (Named().bound, Named().series) == (1.0, (1.0,))


@pytest.mark.parametrize(
    ("interaction", "message"),
    [
        (Cosine(), "Cosine is not odd"),
        (WrongSlope(), "WrongSlope.derivative is not the derivative"),
        (WrongPotential(), "WrongPotential.potential must have"),
        (Sawtooth(), "Sawtooth is not 2 pi-periodic"),
    ],
)
def test_an_interaction_that_breaks_the_theory_is_refused(interaction, message):
    with pytest.raises(ValueError, match=message):
        pg.networks.ring(4, interaction=interaction)


@pytest.mark.parametrize("coefficients", [[], [0.0, 0.0], [np.nan], [[1.0]]])
def test_a_series_without_terms_is_refused(coefficients):
    with pytest.raises(ValueError, match="coefficients"):
        pg.terms.OddSeries(coefficients)


def test_something_else_in_place_of_an_interaction_is_refused():
    with pytest.raises(TypeError, match="must be an Interaction"):
        pg.networks.ring(4, interaction=np.sin)
