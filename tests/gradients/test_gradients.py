"""Six methods, one signature: each is judged by the others, and all of them by closed forms and finite differences."""

import builtins
import math
import pickle
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from random_networks import ONE_WAY, RECIPROCAL, inputs_for, make_network, networks

import phasegrad as pg
from phasegrad.gradients import cosine, relative_error

TARGETS = pg.PhaseTargets()
ALL = {
    "adjoint": pg.adjoint,
    "two_phase": pg.two_phase,
    "centred": pg.centred,
    "holomorphic": pg.gradients.holomorphic,
    "finite_difference": pg.gradients.finite_difference,
    "autograd": pg.gradients.autograd,
}


def settled(network: pg.Network, seed: int = 0, batch: tuple[int, ...] = ()):
    equilibrium = pg.find_equilibrium(network, inputs_for(network, batch, seed))
    target = np.random.default_rng(seed + 1).uniform(-0.5, 0.5, len(network.outputs))
    return network, equilibrium, TARGETS, target


def test_two_oscillators_in_closed_form():
    """theta_1 = -asin((w_0 - w_1) / 2K): differentiate by hand."""
    network = pg.Network([[0, 1]], 2.0, [0.6, -0.2], outputs=[1])
    equilibrium = pg.find_equilibrium(network)
    theta = -math.asin(0.4 / 2.0)
    error = theta - 0.3
    slope = 1 / (2.0 * math.cos(theta))
    centred = pg.adjoint(network, equilibrium, TARGETS, [0.3], wrt=["omega", "coupling"])
    np.testing.assert_allclose(centred.omega, [0.0, error * slope], atol=1e-14)
    np.testing.assert_allclose(centred.coupling, [error * slope * math.sin(-theta)], atol=1e-14)
    raw = pg.adjoint(network, equilibrium, TARGETS, [0.3], frequencies="raw")
    np.testing.assert_allclose(raw.omega, [-error * slope / 2, error * slope / 2], atol=1e-14)
    assert raw.frequencies == "raw"
    assert centred.cost == pytest.approx(0.5 * error**2, abs=1e-15)


@pytest.mark.parametrize("method", ALL.values(), ids=ALL.keys())
def test_at_the_minimum_of_the_cost_the_gradient_is_zero_and_so_is_its_relative_error(method):
    """Without frequencies and at its targets nothing pulls, and no digit is lost."""
    network = pg.Network([[0, 1], [1, 2]], 1.0, np.zeros(3), outputs=[2])
    gradient = method(network, pg.find_equilibrium(network), TARGETS, [0.0])
    assert np.all(gradient.omega == 0)
    assert gradient.relative_error("omega") == 0


@pytest.mark.parametrize("method", ALL.values(), ids=ALL.keys())
def test_one_oscillator_in_a_field_needs_no_edges(method):
    """sin(theta) = w / h: differentiate by hand."""
    network = pg.Network(np.zeros((0, 2), dtype=int), [], [0.3], field_strength=[1.5], outputs=[0])
    theta = math.asin(0.2)
    gradient = method(network, pg.find_equilibrium(network), TARGETS, [0.1], wrt=("omega", "coupling"))
    assert gradient.omega[0] == pytest.approx((theta - 0.1) / (1.5 * math.cos(theta)), rel=2e-3)
    assert gradient.coupling.shape == (0,)


def test_an_oscillator_that_stands_still_does_not_stop_the_second_implementation():
    """The one that hangs alone on the reference is where Newton begins; the others are two decimals away."""
    network = pg.Network([[0, 1], [1, 2], [1, 3]], 1.0, [-0.4, 0.0, 0.4, 0.0], outputs=[2], reference=1)
    question = (network, pg.find_equilibrium(network), TARGETS, [0.1])
    gradient = pg.gradients.autograd(*question)
    np.testing.assert_allclose(gradient.omega, pg.adjoint(*question).omega, atol=1e-13)


@settings(max_examples=15)
@given(
    networks(kinds=RECIPROCAL, max_size=8),
    st.sampled_from(["relative", "raw"]),
    st.integers(0, 2**31),
)
def test_all_methods_agree_on_every_parameter_of_reciprocal_networks(network, frequencies, seed):
    """Tolerances by theory: exact methods to rounding; differences eps / step; nudges beta (beta^2 if centred)."""
    question = settled(network, seed)
    if float(question[1].largest_angle) > 1.2:
        return  # near the loss of synchrony derivatives blow up and no fixed tolerance is fair
    wrt = tuple(network.parameters)
    exact = pg.adjoint(*question, wrt=wrt, frequencies=frequencies)
    compare = {
        "autograd": (pg.gradients.autograd(*question, wrt=wrt, frequencies=frequencies), 1e-10),
        "holomorphic": (pg.gradients.holomorphic(*question, wrt=wrt, frequencies=frequencies), 1e-10),
        "circle": (pg.gradients.holomorphic(*question, wrt=wrt, frequencies=frequencies, beta=1e-3, points=4), 1e-8),
        "finite_difference": (pg.gradients.finite_difference(*question, wrt=wrt, frequencies=frequencies), 1e-5),
        "centred": (pg.centred(*question, wrt=wrt, frequencies=frequencies, beta=1e-4), 1e-4),
        "two_phase": (pg.two_phase(*question, wrt=wrt, frequencies=frequencies, beta=1e-5), 1e-2),
    }
    for name, (gradient, tolerance) in compare.items():
        assert gradient.frequencies == frequencies
        for parameter in wrt:
            expected = exact[parameter]
            scale = np.abs(expected).max() + 1e-3 * np.abs(exact["omega"]).max()
            np.testing.assert_allclose(
                gradient[parameter], expected, atol=tolerance * scale, err_msg=f"{name}, {parameter}"
            )


@settings(max_examples=15)
@given(networks(kinds=ONE_WAY, max_size=8), st.integers(0, 2**31))
def test_without_reciprocity_the_exact_methods_agree_direction_by_direction(network, seed):
    question = settled(network, seed)
    names = tuple(network.parameters)
    exact = pg.adjoint(*question, wrt=names)
    for method, tolerance in ((pg.gradients.finite_difference, 1e-5), (pg.gradients.autograd, 1e-10)):
        other = method(*question, wrt=names)
        for name in names:
            np.testing.assert_allclose(other[name], exact[name], atol=tolerance * np.abs(exact.omega).max())


def test_without_reciprocity_two_phase_is_biased_by_what_theory_says():
    """It measures L^-1 c where the gradient is L^-T c."""
    question = settled(make_network(9, 4, kind="non-reciprocal").replace(grounded=True))
    network, equilibrium, _, target = question
    matrix = pg.dynamics.laplacian(network, equilibrium.phases)
    slope = np.zeros(network.size)
    slope[list(network.outputs)] = equilibrium.phases[list(network.outputs)] - target
    slope = slope[network.free]
    with pytest.warns(pg.gradients.GradientWarning, match="The coupling is not reciprocal"):
        measured = pg.gradients.holomorphic(*question).omega[network.free]
    np.testing.assert_allclose(measured, np.linalg.solve(matrix, slope), rtol=1e-10)
    np.testing.assert_allclose(pg.adjoint(*question).omega[network.free], np.linalg.solve(matrix.T, slope), rtol=1e-10)
    assert relative_error(measured, np.linalg.solve(matrix.T, slope)) > 1e-3


@given(networks(kinds=("plain", "driven")), st.integers(0, 2**31))
def test_raw_is_centred_minus_its_mean_and_sums_to_zero(network, seed):
    question = settled(network, seed)
    centred = pg.gradients.finite_difference(*question).omega
    raw = pg.gradients.finite_difference(*question, frequencies="raw").omega
    np.testing.assert_allclose(raw, centred - centred.mean(), atol=1e-7)


@given(networks(kinds=("field", "clamped", "second harmonic", "all terms", "anisotropic")), st.integers(0, 2**31))
def test_where_the_frame_is_fixed_raw_and_centred_are_the_same(network, seed):
    question = settled(network, seed)
    np.testing.assert_array_equal(pg.adjoint(*question).omega, pg.adjoint(*question, frequencies="raw").omega)
    differences = pg.gradients.finite_difference(*question, frequencies="raw").omega
    np.testing.assert_allclose(pg.adjoint(*question).omega, differences, atol=1e-7)


def test_the_pinned_reference_has_no_centred_gradient():
    question = settled(make_network(8, 1))
    for name, method in ALL.items():
        assert method(*question).omega[0] == 0.0, name


class TestBatches:
    @pytest.mark.parametrize("name", list(ALL))
    def test_each_sample_of_a_batch_has_its_own_gradient(self, name):
        network = pg.layered(2, 4, 2, seed=3)
        inputs = np.random.default_rng(0).uniform(-1, 1, (2, 3, 2))
        targets = np.random.default_rng(1).uniform(-0.4, 0.4, (2, 3, 2))
        options = {"beta": 0.05} if name in ("two_phase", "centred") else {}
        equilibrium = pg.find_equilibrium(network, inputs)
        whole = ALL[name](network, equilibrium, TARGETS, targets, wrt=("omega", "coupling"), **options)
        assert whole.omega.shape == (2, 3, 8)
        assert whole.coupling.shape == (2, 3, network.n_edges)
        assert whole.cost.shape == whole.status.shape == (2, 3)
        alone = ALL[name](
            network,
            pg.find_equilibrium(network, inputs[1, 2]),
            TARGETS,
            targets[1, 2],
            wrt=("omega", "coupling"),
            **options,
        )
        np.testing.assert_array_equal(whole.omega[1, 2], alone.omega)
        np.testing.assert_array_equal(whole.coupling[1, 2], alone.coupling)

    def test_many_targets_for_one_equilibrium(self):
        network = make_network(7, 2)
        equilibrium = pg.find_equilibrium(network)
        targets = np.random.default_rng(0).uniform(-1, 1, (5, 2))
        whole = pg.adjoint(network, equilibrium, TARGETS, targets)
        for row, target in zip(whole.omega, targets, strict=True):
            np.testing.assert_array_equal(row, pg.adjoint(network, equilibrium, TARGETS, target).omega)

    @pytest.mark.parametrize("name", list(ALL))
    def test_a_sample_without_equilibrium_has_no_gradient_and_the_others_keep_theirs(self, name):
        if name == "autograd":
            pytest.importorskip("torch")
        network = pg.layered(2, 4, 2, seed=3)
        inputs = np.array([[0.5, -0.5], [400.0, -400.0], [0.1, 0.9]])
        options = {"beta": 0.05} if name in ("two_phase", "centred") else {}
        equilibrium = pg.find_equilibrium(network, inputs)
        with pytest.warns(pg.gradients.GradientWarning, match="of 3 samples 1 have no gradient"):
            whole = ALL[name](network, equilibrium, TARGETS, [-0.2, 0.2], **options)
        assert whole.valid.tolist() == [True, False, True]
        assert np.all(np.isnan(whole.omega[1]))
        assert np.isnan(whole.cost[1])
        assert whole.status[1] is pg.Status.CANNOT_LOCK
        good = pg.find_equilibrium(network, inputs[[0, 2]])
        np.testing.assert_array_equal(
            whole.omega[[0, 2]], ALL[name](network, good, TARGETS, [-0.2, 0.2], **options).omega
        )

    @pytest.mark.parametrize("name", list(ALL))
    def test_every_call_with_rows_of_nan_says_so_where_it_was_made(self, name):
        """In a loop, too: Python shows a warning once per line of code, so it must name the caller's."""
        network = pg.layered(2, 4, 2, seed=3)
        equilibrium = pg.find_equilibrium(network, [[0.5, -0.5], [400.0, -400.0]])
        options = {"beta": 0.05} if name in ("two_phase", "centred") else {}
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("default")
            ALL[name](network, equilibrium, TARGETS, [-0.2, 0.2], **options)
            gradient = ALL[name](network, equilibrium, TARGETS, [-0.2, 0.2], **options)
        assert [warning.filename for warning in said] == [__file__] * 2
        assert "are NaN: leave them out of sums, gradient.omega[gradient.valid]" in str(said[0].message)
        assert np.all(np.isfinite(gradient.omega[gradient.valid].mean(axis=0)))

    @pytest.mark.parametrize("name", list(ALL))
    def test_a_gradient_at_an_unstable_equilibrium_is_that_of_its_branch_and_said(self, name):
        """Two oscillators in opposition: theta_1 = pi + w_1 / K, so the gradient is minus the error."""
        if name == "autograd":
            pytest.importorskip("torch")
        network = pg.Network([[0, 1]], 1.0, [0.0, 0.0], outputs=[1])
        equilibrium = pg.find_equilibrium(network, start=[0.0, np.pi])
        options = {"beta": 1e-4} if name in ("two_phase", "centred") else {}
        with pytest.warns(pg.gradients.GradientWarning, match="1 have one at an equilibrium that is not stable"):
            gradient = ALL[name](network, equilibrium, TARGETS, [3.0], **options)
        assert gradient.status == pg.Status.UNSTABLE
        assert gradient.omega[1] == pytest.approx(-(np.pi - 3.0), rel=1e-3)

    def test_a_singular_state_has_no_gradient(self):
        """Four oscillators a quarter turn apart: every weight of the Laplacian is cos(pi / 2), rounding aside."""
        network = pg.networks.ring(4, outputs=[2])
        equilibrium = pg.find_equilibrium(network, start=np.arange(4) * np.pi / 2)
        with pytest.warns(pg.gradients.GradientWarning, match="1 have no gradient"):
            gradient = pg.adjoint(network, equilibrium, TARGETS, [1.0])
        assert np.all(np.isnan(gradient.omega))

    @pytest.mark.parametrize("distance", [1e-4, 1e-8, 1e-11])
    def test_holomorphic_keeps_its_digits_close_to_the_target(self, distance):
        network = pg.networks.random_network(15, seed=3)
        equilibrium = pg.find_equilibrium(network)
        target = equilibrium.phases[list(network.outputs)] + distance
        question = (network, equilibrium, TARGETS, target)
        exact = pg.adjoint(*question).omega
        # The distance itself is known to the rounding of the phases, which are below 0.1.
        tolerance = 1e-13 + 0.1 * np.finfo(float).eps / distance
        assert relative_error(pg.gradients.holomorphic(*question).omega, exact) < tolerance
        assert relative_error(pg.gradients.holomorphic(*question, beta=1e-8).omega, exact) < tolerance


class TestBeta:
    @pytest.mark.parametrize("error", [1e-1, 1e-2, 1e-3])
    @pytest.mark.parametrize(("method", "name"), [(pg.two_phase, "two_phase"), (pg.centred, "centred")])
    def test_the_suggested_nudge_keeps_its_promise(self, error, method, name):
        """On networks soft and stiff; on the path, whose reference is far off, beta = 0.1 is far too strong."""
        cases = [make_network(n, n, kind=kind) for n in (4, 8, 12) for kind in ("plain", "field")]
        cases += [pg.layered(2, 5, 2, seed=1).replace(inputs=()), _path(30)]
        for network in cases:
            question = settled(network)
            beta = pg.gradients.suggest_beta(*question, error=error, method=name)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", pg.gradients.GradientWarning)
                nudged = method(*question, beta=beta).omega
            assert relative_error(nudged, pg.adjoint(*question).omega) <= 1.5 * error

    @pytest.mark.parametrize("method", [pg.two_phase, pg.centred])
    def test_a_nudge_for_a_hundredth_of_the_error_is_no_weaker_than_that_takes(self, method):
        question = settled(_path(8))
        exact, errors = pg.adjoint(*question).omega, []
        for error in (1e-3, 1e-5):
            beta = pg.gradients.suggest_beta(*question, error=error, method=method.__name__)
            errors.append(relative_error(method(*question, beta=beta).omega, exact))
        assert errors[0] / errors[1] == pytest.approx(100, rel=0.1)

    def test_a_thousandth_is_the_error_that_is_allowed_if_none_is_given(self):
        question = settled(_path(30))
        assert pg.gradients.suggest_beta(*question) == pg.gradients.suggest_beta(
            *question, error=1e-3, method="two_phase"
        )

    def test_a_gradient_says_which_nudge_it_was_made_with(self):
        question = settled(_path(5))
        assert pg.centred(*question, beta=0.002).beta == 0.002
        assert pg.two_phase(*question).beta == pytest.approx(pg.gradients.suggest_beta(*question, error=5e-4))
        assert pg.adjoint(*question).beta is None

    def test_left_out_the_nudge_is_chosen_well(self):
        for network in (_path(40), make_network(10, 0), pg.layered(2, 5, 2).replace(inputs=())):
            question = settled(network)
            exact = pg.adjoint(*question).omega
            assert relative_error(pg.two_phase(*question).omega, exact) <= 1e-3
            assert relative_error(pg.centred(*question).omega, exact) <= 1e-5
            assert relative_error(pg.gradients.holomorphic(*question).omega, exact) <= 1e-13
            assert relative_error(pg.gradients.holomorphic(*question, points=4).omega, exact) <= 1e-8

    def test_a_nudge_far_too_strong_is_called_so(self):
        question = settled(_path(30))
        with pytest.warns(
            pg.gradients.GradientWarning, match=r"beta=0.1 is too strong. Try beta=0\.00\d, or leave beta out"
        ):
            wrong = pg.two_phase(*question, beta=0.1)
        assert relative_error(wrong.omega, pg.adjoint(*question).omega) > 0.5

    def test_a_nudge_lost_in_rounding_is_called_so(self):
        with pytest.warns(pg.gradients.GradientWarning, match="moved no oscillator"):
            pg.two_phase(*settled(make_network(6, 0)), beta=1e-17)

    def test_the_papers_nudge_on_its_network_is_fine(self):
        network = pg.layered(2, 5, 2, seed=0)
        equilibrium = pg.find_equilibrium(network, np.random.default_rng(0).uniform(-1, 1, (50, 2)))
        pg.two_phase(network, equilibrium, TARGETS, [-0.2, 0.2], beta=0.1)

    def test_a_network_already_on_target_has_gradient_zero(self):
        network = make_network(6, 0)
        equilibrium = pg.find_equilibrium(network)
        target = equilibrium.phases[list(network.outputs)]
        for name, method in ALL.items():
            # Central differences keep step^2 = 1e-10 times a third derivative.
            np.testing.assert_allclose(method(network, equilibrium, TARGETS, target).omega, 0, atol=1e-9, err_msg=name)


class TestTable:
    def test_it_compares_every_method_with_every_other_and_prints(self):
        pytest.importorskip("torch")
        table = pg.check_gradients(*settled(make_network(6, 1, kind="field")))
        assert table.methods == ("adjoint", "two_phase", "centred", "holomorphic", "finite_difference", "autograd")
        assert set(table.cosine) == {"omega", "coupling", "field_strength", "field_phase"}
        for parameter in table.cosine:
            assert table.cosine[parameter].shape == (6, 6)
            assert np.min(table.cosine[parameter]) > 1 - 1e-6
            assert np.all(np.diag(table.relative_error[parameter]) == 0)
        text = str(table)
        assert text.count("gradient by") == 4
        assert all(method in text for method in table.methods)

    def test_without_torch_autograd_is_named_as_missing(self, monkeypatch):
        monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
        table = pg.check_gradients(*settled(make_network(5, 1)))
        assert table.missing == ("autograd",)
        assert "not compared: autograd" in str(table)

    def test_cosine_and_relative_error(self):
        a, b = np.array([1.0, 0.0, np.nan]), np.array([1.0, 1.0, 2.0])
        assert cosine(a, b) == pytest.approx(math.sqrt(0.5))
        assert relative_error(a, b) == pytest.approx(math.sqrt(0.5))
        assert math.isnan(cosine(np.zeros(2), b[:2]))
        tiny = 1e-9
        assert 1 - cosine(np.array([1.0, 0.0]), np.array([1.0, tiny])) == pytest.approx(tiny**2 / 2, abs=1e-16)
        single = np.array([[3.0, 4.0], [3.0, 4.001]], dtype=np.float32)
        assert cosine(*single) == cosine(*single.astype(float))


class TestBadInput:
    @pytest.mark.parametrize("method", [pg.two_phase, pg.centred, pg.gradients.holomorphic])
    @pytest.mark.parametrize("beta", [0, -0.1, math.nan, math.inf, "strong"])
    def test_a_nudge_that_is_not_positive_is_refused(self, method, beta):
        with pytest.raises(ValueError, match=f"'beta' parameter of {method.__name__} must be a float greater than 0"):
            method(*settled(make_network(5, 0)), beta=beta)

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (
                lambda q: pg.adjoint(*q, wrt=5),
                "'wrt' parameter of adjoint for this network must be one of 'omega', 'coupling'",
            ),
            (lambda q: pg.check_gradients(*q, methods=[]), "at least one method"),
            (
                lambda q: pg.adjoint(*q, wrt="mass"),
                "'wrt' parameter of adjoint for this network must be one of 'omega', 'coupling'",
            ),
            (lambda q: pg.adjoint(*q, wrt="field_phase"), "'wrt' parameter of adjoint for this network"),
            (lambda q: pg.adjoint(*q, frequencies="mean"), "'frequencies' parameter of adjoint"),
            (lambda q: pg.gradients.finite_difference(*q, step=0), "'step' parameter of finite_difference"),
            (lambda q: pg.gradients.holomorphic(*q, points=0), "'points' parameter of holomorphic"),
            (lambda q: pg.gradients.suggest_beta(*q, error=0), "'error' parameter of suggest_beta"),
            (lambda q: pg.gradients.suggest_beta(*q, method="adjoint"), "'method' parameter of suggest_beta"),
            (lambda q: pg.check_gradients(*q, methods=["backprop"]), "'methods' parameter of check_gradients"),
            (lambda q: pg.adjoint(make_network(9, 0), *q[1:]), "The equilibrium has 5 oscillators, the network 9"),
            (lambda q: pg.adjoint(*q[:3], [[0, 0, 0]]), "one per output"),
        ],
    )
    def test_wrong_arguments_are_refused(self, call, message):
        with pytest.raises(ValueError, match=message):
            call(settled(make_network(5, 0)))

    @pytest.mark.parametrize("name", list(ALL))
    def test_phases_of_another_network_are_refused(self, name):
        """After a change of parameters the old equilibrium is no equilibrium, and no method may pretend it is."""
        network = pg.layered(2, 4, 2, seed=0)
        equilibrium = pg.find_equilibrium(network, [[0.1, 0.2], [0.3, -0.2]])
        changed = network.replace(omega=network.omega + 1e-4 * np.arange(8))
        with pytest.raises(ValueError, match=f"{name} was given phases that are not an equilibrium of this network"):
            ALL[name](changed, equilibrium, TARGETS, [-0.2, 0.2])

    def test_targets_that_do_not_fit_the_batch_are_refused(self):
        network = pg.layered(2, 3, 2)
        equilibrium = pg.find_equilibrium(network, np.zeros((3, 2)))
        with pytest.raises(ValueError, match=r"batch shape \(3,\) and targets of batch shape \(2,\)"):
            pg.adjoint(network, equilibrium, TARGETS, np.zeros((2, 2)))

    def test_autograd_without_torch_says_what_to_install(self, monkeypatch):
        real = builtins.__import__

        def without_torch(name, *args, **options):
            if name == "torch":
                raise ImportError(name)
            return real(name, *args, **options)

        monkeypatch.delitem(sys.modules, "torch", raising=False)
        monkeypatch.setattr(builtins, "__import__", without_torch)
        with pytest.raises(ImportError, match=r"pip install '\.\[torch\]'"):
            pg.gradients.autograd(*settled(make_network(5, 0)))


def _path(n: int) -> pg.Network:
    """A chain whose outputs hang far from the reference: soft, so that a nudge of 0.1 is far too strong."""
    edges = [[k, k + 1] for k in range(n - 1)]
    return pg.Network(edges, 1.0, 0.02 * np.cos(np.arange(n)), outputs=[n - 1])


def test_what_solvers_kept_about_one_network_says_nothing_about_another():
    """All phases zero is an equilibrium of both, stable with attraction and unstable with repulsion."""
    network = pg.networks.signed_layers(4, 60, 3, seed=0)
    calm = network.replace(field_phase=np.zeros(network.size), coupling=np.abs(network.coupling))
    equilibrium = pg.find_equilibrium(calm, np.zeros((1500, 4)), solver="batch")
    assert equilibrium.stable.all()
    other = calm.replace(coupling=-5 * calm.coupling)
    with pytest.warns(pg.gradients.GradientWarning):
        status = pg.centred(other, equilibrium, pg.PhaseTargets(), [1e-3, -1e-3, 0.0], beta=1e-3).status
    assert not np.any(status == pg.Status.STABLE)


def test_equilibria_and_gradients_can_be_pickled():
    network = pg.networks.signed_layers(2, 5, 2)
    equilibrium = pg.find_equilibrium(network, [[0.1, 0.2]], solver="batch")
    gradient = pg.adjoint(network, equilibrium, pg.PhaseTargets(), [0.1, 0.0], wrt=["coupling"])
    again, slope = pickle.loads(pickle.dumps((equilibrium, gradient)))
    np.testing.assert_array_equal(again.phases, equilibrium.phases)
    np.testing.assert_array_equal(slope.coupling, gradient.coupling)
