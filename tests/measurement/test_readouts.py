"""Meters: what they show, what they leave of a gradient, and what is planned with them."""

import math
import warnings

import numpy as np
import pytest
from scipy import special

import phasegrad as pg
from phasegrad.gradients._schemes import symmetric
from phasegrad.measurement._noise import expected_cosine
from phasegrad_paper.studies import readout as study

TARGET = (-0.2, 0.2)
METER = pg.measurement.Readout.from_time(1e-12, 3e9)
QUIET = pg.measurement.Readout(0.0)


def question(seed=0, **options):
    network = pg.networks.random_network(10, seed=seed, **options)
    return network, pg.find_equilibrium(network), pg.PhaseTargets(), TARGET


def stream(seed=0):
    return np.random.default_rng(seed)


def many(asked, draws):
    return (*asked[:3], np.tile(asked[3], (draws, 1)))


class TestReadout:
    def test_noise_and_averaging_are_what_they_say(self):
        shown = pg.measurement.Readout(0.1, readings=4).read(np.full(40_000, 1.0), stream())
        assert shown.mean() == pytest.approx(1.0, abs=4 * 0.05 / 200)
        assert shown.std() == pytest.approx(0.05, rel=0.02)

    @pytest.mark.parametrize("readings", [1, 7])
    @pytest.mark.parametrize("noise", [0.0, 0.02, 0.08, 0.12, 0.2, 0.4])
    def test_bias_and_deviation_are_those_of_readings_over_all_phases(self, noise, readings):
        """Both series meet at a noise of a sixth of a level, 0.0625 here."""
        meter = pg.measurement.Readout(noise, readings=readings, bits=4)
        phases = stream(1).uniform(-1, 1, 40_000) * math.pi
        off = pg.measurement.Readout(noise, readings=readings, bits=4).read(phases, stream(2)) - phases
        off = (off + math.pi) % (2 * math.pi) - math.pi
        assert np.sqrt(np.mean(off**2)) == pytest.approx(meter.deviation, rel=0.02)
        grid = np.linspace(0, meter.step, 400, endpoint=False) + meter.step / 800
        levels = np.arange(-40, 41)
        upper = (np.floor(grid / meter.step) + levels[:, None] + 1) * meter.step
        share = (upper - grid >= 0).astype(float) if noise == 0 else special.ndtr((upper - grid) / noise)
        weight = np.diff(share, axis=0, prepend=0)
        mean = np.sum(weight * (upper - meter.step / 2), axis=0)
        assert np.sqrt(np.mean((mean - grid) ** 2)) == pytest.approx(meter.bias, rel=1e-3, abs=1e-9)

    def test_without_levels_there_is_no_bias(self):
        assert pg.measurement.Readout(0.3).bias == 0
        assert pg.measurement.Readout(0.3, readings=9).deviation == pytest.approx(0.1)

    def test_levels_are_read_around_the_circle(self):
        """On both sides of the cut at pi, and on any turn; the mean of such readings is near the phase."""
        meter = pg.measurement.Readout(0.15, readings=4000, bits=4)
        for phase in (math.pi, -math.pi, 3 * math.pi - 0.05, 0.3):
            shown = meter.read([phase], stream())
            assert abs((shown[0] - phase + math.pi) % (2 * math.pi) - math.pi) < 0.02

    def test_beyond_a_smaller_span_readings_stay_at_its_ends(self):
        meter = pg.measurement.Readout(bits=2, span=(-1.0, 1.0))
        assert meter.read([-2.0, -0.9, 0.1, 5.0], stream()).tolist() == [-0.75, -0.75, 0.25, 0.75]
        assert pg.measurement.Readout(span=(-1.0, 1.0)).read([2.0], stream()).tolist() == [1.0]

    def test_a_missing_phase_stays_missing(self):
        for meter in (
            pg.measurement.Readout(0.1),
            pg.measurement.Readout(0.1, readings=3, bits=4),
            pg.measurement.Readout(span=(0, 1)),
        ):
            assert np.isnan(meter.read([0.5, np.nan], stream())).tolist() == [False, True]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"noise": -1}, "'noise' parameter of Readout must be a number, 0 or more"),
            ({"noise": math.nan}, "'noise'"),
            ({"readings": 0}, "'readings' parameter of Readout must be a whole number of at least 1. Got 0"),
            ({"readings": 1.5}, "'readings'"),
            ({"bits": 0}, "'bits' parameter of Readout must be a whole number of at least 1"),
            ({"bits": 33}, "at most 32"),
            ({"span": (1.0, -1.0)}, "the lower one first"),
            ({"span": (0.0, 7.0)}, "at most a full turn"),
            ({"span": 3.0}, "two phases"),
        ],
    )
    def test_impossible_meters_are_refused(self, options, message):
        with pytest.raises(ValueError, match=message):
            pg.measurement.Readout(**options)

    def test_a_frequency_must_be_one(self):
        with pytest.raises(ValueError, match=r"'frequency' parameter of Readout\.from_time"):
            pg.measurement.Readout.from_time(1e-12, 0)


class TestGradientFromPhases:
    @pytest.mark.parametrize("frequencies", ["relative", "raw"])
    @pytest.mark.parametrize("mode", ["frequency", "phase"])
    def test_it_is_the_adjoint_gradient_by_every_parameter_and_the_data(self, mode, frequencies):
        network = pg.layered(2, 5, 2, seed=3, input_mode=mode)
        data, wrt = [[0.5, -0.5], [0.1, 0.9], [0.0, 0.2]], (*network.parameters, "inputs")
        free = pg.find_equilibrium(network, data)
        ahead, behind = (
            pg.find_equilibrium(
                network, data, nudge=pg.Nudge(pg.PhaseTargets(), TARGET, sign * 1e-4), start=free.phases
            )
            for sign in (1, -1)
        )
        exact = pg.adjoint(network, free, pg.PhaseTargets(), TARGET, wrt=wrt, frequencies=frequencies)
        asked = {"inputs": data, "wrt": wrt, "frequencies": frequencies}
        found = pg.gradients.gradient_from_phases(
            network, free.phases, ahead.phases, 1e-4, opposite=behind.phases, **asked
        )
        turns = 2 * math.pi * stream().integers(-3, 4, free.phases.shape)
        turned = pg.gradients.gradient_from_phases(
            network, free.phases, ahead.phases + turns, 1e-4, opposite=behind.phases - turns, **asked
        )
        for name in wrt:
            # Rounding of a phase, 1e-15, over the nudge; a turn rounds ten times as much.
            np.testing.assert_allclose(found[name], exact[name], atol=1e-7, rtol=1e-6)
            np.testing.assert_allclose(turned[name], found[name], atol=1e-9)
            alone = pg.gradients.gradient_from_phases(
                network, free.phases[1], ahead.phases[1], 1e-4, opposite=behind.phases[1], **asked | {"inputs": data[1]}
            )
            np.testing.assert_allclose(alone[name], found[name][1], rtol=0, atol=1e-14)

    def test_a_common_phase_does_not_matter_where_nothing_holds_one(self):
        network, free, objective, target = question()
        nudged = pg.find_equilibrium(network, nudge=pg.Nudge(objective, target, 0.1)).phases
        plain = pg.gradients.gradient_from_phases(network, free.phases, nudged, 0.1)["omega"]
        turned = pg.gradients.gradient_from_phases(network, free.phases + 1.0, nudged - 2.0, 0.1)["omega"]
        np.testing.assert_allclose(turned, plain, atol=1e-13)

    def test_the_names_of_oscillators_do_not_matter(self):
        network, free, objective, target = question()
        order = stream(5).permutation(10)
        place = np.argsort(order)
        edges = [(int(place[a]), int(place[b])) for a, b in network.edges]
        other = pg.Network(
            edges, network.coupling, network.omega[order], outputs=[int(place[k]) for k in network.outputs],
            reference=int(place[network.reference]),
        )  # fmt: skip
        nudged = pg.find_equilibrium(network, nudge=pg.Nudge(objective, target, 0.1)).phases
        plain = pg.gradients.gradient_from_phases(network, free.phases, nudged, 0.1, wrt=("omega", "coupling"))
        named = pg.gradients.gradient_from_phases(
            other, free.phases[order], nudged[order], 0.1, wrt=("omega", "coupling")
        )
        np.testing.assert_allclose(named["omega"], plain["omega"][order], atol=1e-13)

    def test_no_sample_has_no_gradient(self):
        network = pg.layered(2, 5, 2, seed=0)
        found = pg.gradients.gradient_from_phases(
            network, np.zeros((0, 9)), np.zeros((0, 9)), 0.1, inputs=np.zeros((0, 2))
        )
        assert found["omega"].shape == (0, 9)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"beta": 0.0}, "'beta' parameter of gradient_from_phases must be a float greater than 0"),
            ({"beta": -1.0}, "'beta'"),
            ({"free": np.zeros(9)}, "'free' parameter of gradient_from_phases must have a last axis of length 10"),
            ({"nudged": np.full(10, np.nan)}, "'nudged' parameter of gradient_from_phases must be finite"),
            ({"opposite": np.zeros((2, 3))}, "'opposite'"),
            ({"nudged": np.zeros((3, 10)), "opposite": np.zeros((2, 10))}, "do not go together"),
            ({"wrt": "phase"}, "'wrt' parameter"),
            ({"wrt": "inputs"}, "this network has none"),
            ({"frequencies": "centred"}, "'frequencies' parameter"),
        ],
    )
    def test_bad_phases_are_refused(self, change, message):
        given = {"network": question()[0], "free": np.zeros(10), "nudged": np.zeros(10), "beta": 0.1} | change
        with pytest.raises(ValueError, match=message):
            pg.gradients.gradient_from_phases(**given)

    def test_without_reciprocity_it_is_refused(self):
        network = question()[0]
        one_way = network.replace(coupling_reverse=0.5 * network.coupling)
        with pytest.raises(ValueError, match="needs reciprocal coupling"):
            pg.gradients.gradient_from_phases(one_way, np.zeros(10), np.zeros(10), 0.1)
        with pytest.raises(TypeError, match="takes a Network first"):
            pg.gradients.gradient_from_phases("ring", np.zeros(10), np.zeros(10), 0.1)


class TestNudges:
    @pytest.mark.parametrize("nudge", ["frozen", "held"])
    @pytest.mark.parametrize("method", [pg.two_phase, pg.centred])
    def test_constant_torques_give_the_gradient_by_every_parameter(self, method, nudge):
        network = pg.layered(2, 5, 2, seed=0)
        free = pg.find_equilibrium(network, [[0.5, -0.5], [0.1, 0.9]])
        asked, wrt = (network, free, pg.PhaseTargets(), TARGET), (*network.parameters, "inputs")
        exact, found = pg.adjoint(*asked, wrt=wrt), method(*asked, nudge=nudge, wrt=wrt)
        for name in wrt:
            assert np.all(found.relative_error(name) < 2e-3)
            np.testing.assert_allclose(found[name], exact[name], atol=2e-3 * np.abs(exact[name]).max())

    def test_a_meter_without_noise_changes_nothing(self):
        for nudge in ("following", "frozen", "held"):
            for method in (pg.two_phase, pg.centred):
                plain = method(*question(), beta=0.01, nudge=nudge, wrt=("omega", "coupling"))
                read = method(*question(), beta=0.01, nudge=nudge, wrt=("omega", "coupling"), readout=QUIET)
                for name in plain.values:
                    # Rounding of a phase over the nudge.
                    np.testing.assert_allclose(read[name], plain[name], atol=1e-12)

    @pytest.mark.parametrize(("points", "pattern", "order"), [
        (2, "fit", 2), (4, "fit", 4), (6, "fit", 6), (3, "lock-in", 2), (8, "lock-in", 2),
    ])  # fmt: skip
    @pytest.mark.parametrize("nudge", ["following", "frozen"])
    def test_orders_of_the_error_are_those_of_the_points(self, points, pattern, order, nudge):
        asked = (*question(seed=1)[:3], (-0.9, 0.7))
        exact, errors = pg.adjoint(*asked).omega, []
        betas = (4.0, 2.0) if nudge == "frozen" else (0.8, 0.4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pg.gradients.GradientWarning)
            for beta in betas:
                found = pg.centred(*asked, beta=beta, points=points, pattern=pattern, nudge=nudge)
                errors.append(np.linalg.norm(found.omega - exact))
        assert math.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.3)

    def test_two_points_are_the_centred_difference_and_weights_take_the_slope_alone(self):
        assert symmetric(2, "fit", "").at(0.3) == [(0.3, 0.5 / 0.3), (-0.3, -0.5 / 0.3)]
        for points in (2, 4, 8):
            s, w = (
                np.array(each)
                for each in (symmetric(points, "fit", "").strengths, symmetric(points, "fit", "").weights)
            )
            assert [float(np.sum(w * s**k)) for k in range(points)] == pytest.approx([0, 1] + [0] * (points - 2))
            assert np.max(np.abs(s)) == 1
        s, w = (
            np.array(each) for each in (symmetric(12, "lock-in", "").strengths, symmetric(12, "lock-in", "").weights)
        )
        assert (s.size, float(np.sum(w * s)), float(np.sum(w))) == (10, pytest.approx(1), pytest.approx(0))

    def test_a_lock_in_reading_averages_the_noise(self):
        """The variance of n instants is sigma^2 2 / (n beta^2) where the reference is not counted: raw frequencies."""
        asked = many(question(), 300)
        for points in (8, 32):
            found = pg.centred(*asked, beta=10.0, points=points, pattern="lock-in", nudge="held", readout=METER,
                               frequencies="raw")  # fmt: skip
            spread = np.std(found.omega, axis=0).mean()
            expected = METER.noise * math.sqrt(2 / points) / 10 * math.sqrt(0.9)
            assert spread == pytest.approx(expected, rel=0.04)

    def test_stated_errors_cover_the_noise_and_the_noise_is_that_of_the_meter(self):
        asked, draws = question(), 1000
        ways = (("omega", "held", pg.centred), ("coupling", "held", pg.centred), ("omega", "frozen", pg.two_phase))
        for wrt, nudge, method in ways:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", pg.gradients.GradientWarning)
                found = method(*many(asked, draws), beta=10.0, nudge=nudge, readout=METER, wrt=wrt)
            stated = np.min(found.error[wrt], axis=0) / 2
            noisy = stated > 1e-12
            assert noisy.sum() >= stated.size - 1
            spread = np.std(found[wrt], axis=0)
            # Six standard errors of a deviation, since squares of noise have long tails; all entries together have two.
            np.testing.assert_allclose(stated[noisy], spread[noisy], rtol=6 / math.sqrt(2 * draws))
            assert np.linalg.norm(stated) == pytest.approx(np.linalg.norm(spread), rel=2 / math.sqrt(2 * draws))
            assert np.all(np.abs(found[wrt] - pg.adjoint(*asked, wrt=wrt)[wrt]) <= found.error[wrt])

    def test_noise_louder_than_the_gradient_is_said(self):
        with pytest.warns(pg.gradients.GradientWarning, match=r"louder than what beta=0\.1 moves"):
            pg.two_phase(*question(), beta=0.1, readout=METER)

    def test_the_same_seed_reads_the_same_and_none_reads_anew(self):
        def read(seed):
            return pg.centred(*question(), nudge="held", beta=20.0, readout=METER, seed=seed).omega

        assert np.array_equal(read(3), read(3))
        assert not np.array_equal(read(3), read(4))
        assert not np.array_equal(read(None), read(None))

    @pytest.mark.parametrize("readout", [None, QUIET])
    @pytest.mark.parametrize("nudge", ["frozen", "held"])
    def test_a_nudge_that_leaves_the_locked_state_is_halved_and_said(self, nudge, readout):
        with pytest.warns(pg.gradients.GradientWarning) as said:
            found = pg.centred(*many(question(), 3), beta=1000.0, nudge=nudge, readout=readout)
        words = [str(each.message) for each in said if "left the locked state" in str(each.message)]
        assert len(words) == 1
        assert "beta=1000 3 of 3 samples" in words[0]
        assert f"halved to beta={found.beta:g}" in words[0]
        assert math.log2(1000 / found.beta) == round(math.log2(1000 / found.beta)) > 0
        assert found.valid.all()
        assert np.isfinite(found.omega).all()

    @pytest.mark.parametrize(
        ("options", "kind", "message"),
        [
            (
                {"nudge": "frozn"},
                ValueError,
                "'nudge' parameter of centred must be one of 'following', 'frozen', 'held'",
            ),
            ({"points": 3}, ValueError, "must be even"),
            ({"points": 0}, ValueError, "'points' parameter of centred must be a whole number of at least 2"),
            ({"points": 2, "pattern": "lock-in"}, ValueError, "at least 3"),
            ({"pattern": "sine"}, ValueError, "'pattern' parameter"),
            ({"readout": 0.1}, TypeError, "must be a Readout"),
            ({"readout": pg.measurement.Readout}, TypeError, "call it"),
            ({"beta": 0.0}, ValueError, "'beta' parameter of centred"),
            ({"seed": "a"}, ValueError, "'seed' parameter of centred"),
        ],
    )
    def test_bad_options_are_refused(self, options, kind, message):
        with pytest.raises(kind, match=message):
            pg.centred(*question(), **options)


class TestExpectedCosine:
    @pytest.mark.parametrize("size", [1, 2, 9, 60])
    @pytest.mark.parametrize("ratio", [1e-3, 0.3, 3.0, 30.0])
    def test_of_isotropic_noise_it_is_kummer_s_function(self, size, ratio):
        mean = stream(size).standard_normal(size)
        aim, spread = mean + 0.3 * stream(1).standard_normal(size), np.linalg.norm(mean) / ratio
        lam = ratio**2
        kummer = math.sqrt(lam / 2) * special.gamma((size + 1) / 2) / special.gamma(size / 2 + 1)
        kummer *= special.hyp1f1(0.5, size / 2 + 1, -lam / 2)
        known = pg.gradients.cosine(mean, aim) * kummer
        assert expected_cosine(mean, aim, spread * np.eye(size)) == pytest.approx(known, rel=1e-7)

    def test_of_other_noise_it_is_the_mean_of_many_draws(self):
        mean, aim, factor = (
            stream(1).standard_normal(5),
            stream(2).standard_normal(5),
            stream(3).standard_normal((5, 3)),
        )
        drawn = mean + 0.7 * stream(4).standard_normal((200_000, 3)) @ factor.T
        cosines = drawn @ aim / np.linalg.norm(drawn, axis=1) / np.linalg.norm(aim)
        # Five standard errors.
        assert expected_cosine(mean, aim, 0.7 * factor) == pytest.approx(cosines.mean(), abs=5 * cosines.std() / 447)

    def test_without_noise_it_is_the_cosine(self):
        mean, aim = stream(1).standard_normal((2, 7))
        assert expected_cosine(mean, aim, np.zeros((7, 3))) == pytest.approx(pg.gradients.cosine(mean, aim), rel=1e-10)
        assert expected_cosine(np.zeros(7), aim, np.zeros((7, 7))) == 0


class TestPlan:
    @pytest.mark.parametrize(
        "options",
        [
            {"nudge": "held"},
            {"nudge": "frozen"},
            {"nudge": "following"},
            {"method": "two_phase", "nudge": "held", "frequencies": "raw"},
            {"nudge": "held", "points": 4},
            {"nudge": "held", "points": 8, "pattern": "lock-in"},
            {"nudge": "held", "wrt": "coupling"},
            {"nudge": "held", "wrt": "coupling", "beta": 20.0},
            {"nudge": "frozen", "wrt": ("coupling", "omega")},
        ],
    )
    def test_the_expected_cosine_is_the_measured_one(self, options):
        asked, meter = question(seed=2), pg.measurement.Readout(0.05)
        plan = pg.measurement.plan_measurement(*asked, meter, **options)
        wrt = {key: options[key] for key in ("wrt", "frequencies") if key in options}
        exact = pg.adjoint(*asked, **wrt)
        rest = {key: value for key, value in options.items() if key not in ("method", "beta")}
        method = getattr(pg.gradients, options.get("method", "centred"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pg.gradients.GradientWarning)
            found = method(*many(asked, 400), beta=plan.beta, readout=meter, **rest)
        flat = np.concatenate([found[name] for name in exact.values], axis=1)
        cosines = [pg.gradients.cosine(each, np.concatenate(list(exact.values.values()))) for each in flat]
        # Four standard errors, and the bending of the response to a noisy error.
        assert np.mean(cosines) == pytest.approx(plan.cosine, abs=4 * np.std(cosines) / 20 + 0.005)
        assert 0.05 < plan.cosine < 0.999

    def test_no_other_nudge_is_expected_to_be_better(self):
        asked = question()
        best = pg.measurement.plan_measurement(*asked, METER, nudge="held")
        for factor in (0.25, 0.5, 0.8):
            assert (
                pg.measurement.plan_measurement(*asked, METER, nudge="held", beta=factor * best.beta).cosine
                < best.cosine
            )
        assert pg.gradients.suggest_beta(*asked, method="centred", nudge="held", readout=METER) == best.beta
        assert pg.centred(*asked, nudge="held", readout=METER).beta == best.beta

    def test_more_noise_asks_for_a_stronger_nudge_and_none_for_a_weak_one(self):
        asked = question()
        betas = [
            pg.measurement.plan_measurement(*asked, pg.measurement.Readout(noise), nudge="held").beta
            for noise in (1e-6, 1e-4, 1e-2)
        ]
        assert betas == sorted(betas)
        assert betas[0] < betas[2] / 5

    def test_a_batch_has_one_nudge_and_the_mean_cosine(self):
        network = pg.layered(2, 5, 2, seed=0)
        data = [[0.5, -0.5], [0.1, 0.9]]
        together = (network, pg.find_equilibrium(network, data), pg.PhaseTargets(), TARGET)
        plan = pg.measurement.plan_measurement(*together, METER, nudge="held")
        each = [
            pg.measurement.plan_measurement(
                network,
                pg.find_equilibrium(network, row),
                pg.PhaseTargets(),
                TARGET,
                METER,
                nudge="held",
                beta=plan.beta,
            ).cosine
            for row in data
        ]
        assert plan.cosine == pytest.approx(np.mean(each), rel=1e-9)

    def test_readings_for_a_cosine_are_the_fewest(self):
        asked, loud = question(), pg.measurement.Readout(0.3)
        plan = pg.measurement.plan_measurement(*asked, loud, cosine=0.95)
        assert plan.readings > 10
        assert plan.cosine >= 0.95
        fewer = pg.measurement.plan_measurement(
            *asked, pg.measurement.Readout(0.3, readings=int(0.9 * plan.readings)), beta=plan.beta
        )
        assert fewer.cosine < 0.95

    def test_where_no_number_suffices_it_says_so_and_how_much_dither_would_help(self):
        coarse = pg.measurement.Readout(0.0, bits=2)
        plan = pg.measurement.plan_measurement(*question(), coarse, cosine=0.99)
        assert (plan.readings, plan.seconds, plan.joules) == (None, None, None)
        assert plan.cosine < 0.99
        words = str(plan)
        assert "No number of readings suffices" in words
        coarse = pg.measurement.Readout(0.01, bits=5)
        plan = pg.measurement.plan_measurement(*question(), coarse, cosine=0.999)
        assert plan.readings is None
        assert "Dither, noise added on purpose, of 0.0982 rad" in str(plan)
        dithered = pg.measurement.plan_measurement(*question(), pg.measurement.Readout(0.0982, bits=5), cosine=0.999)
        assert dithered.readings is not None

    def test_noise_that_reaches_around_the_circle_is_said(self):
        assert "reaches around the circle" in str(
            pg.measurement.plan_measurement(*question(), pg.measurement.Readout(1.0), nudge="held")
        )
        assert "circle" not in str(
            pg.measurement.plan_measurement(*question(), pg.measurement.Readout(1.0, readings=100), nudge="held")
        )

    def test_a_frozen_nudge_that_is_suggested_is_held_in_spite_of_the_noise(self):
        """Near the end of locking an error that was read too large would lose it."""
        for seed in range(4):
            asked = question(seed)
            beta = pg.gradients.suggest_beta(*asked, method="centred", nudge="frozen", readout=METER)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", pg.gradients.GradientWarning)
                assert pg.centred(*many(asked, 50), beta=beta, nudge="frozen", readout=METER).beta == beta

    def test_time_and_energy_follow_from_what_is_assumed(self):
        options = {"frequency": 1e9, "settling_cycles": 20, "reading_cycles": 4, "joules_per_cycle": 1e-13}
        plan = pg.measurement.plan_measurement(
            *question(), pg.measurement.Readout(0.02, readings=5), nudge="frozen", **options
        )
        assert plan.states == 3
        assert plan.seconds == pytest.approx(3 * (20 + 5 * 4) / 1e9)
        assert plan.joules == pytest.approx(3 * (20 + 5 * 4) * 10 * 1e-13)
        assert "120 ns" in str(plan)
        assert "120 pJ" in str(plan)
        assert "20 cycles" in plan.assumptions[0]
        assert "100 fJ per cycle" in plan.assumptions[1]
        assert pg.measurement.plan_measurement(*question(), METER, nudge="following").states == 2
        assert pg.measurement.plan_measurement(*question(), METER).seconds is None

    @pytest.mark.parametrize(
        ("options", "kind", "message"),
        [
            ({"readout": None}, TypeError, "'readout' parameter of plan_measurement must be a Readout"),
            ({"cosine": 2.0}, ValueError, "'cosine' parameter"),
            ({"beta": -1.0}, ValueError, "'beta' parameter"),
            ({"beta": 1e6}, ValueError, "more than the network can hold"),
            ({"method": "holomorphic"}, ValueError, "'method' parameter"),
            ({"nudge": "soft"}, ValueError, "'nudge' parameter"),
            ({"frequency": 0.0}, ValueError, "'frequency' parameter"),
            ({"settling_cycles": -1}, ValueError, "'settling_cycles' parameter"),
        ],
    )
    def test_bad_plans_are_refused(self, options, kind, message):
        with pytest.raises(kind, match=message):
            pg.measurement.plan_measurement(*question(), **{"readout": METER, **options})

    def test_a_gradient_of_nothing_is_refused(self):
        network, free, objective, _ = question()
        with pytest.raises(ValueError, match="nothing to measure"):
            pg.measurement.plan_measurement(network, free, objective, free.phases[list(network.outputs)], METER)
        with pytest.raises(
            ValueError, match="'method' parameter of suggest_beta must be one of 'two_phase', 'centred'"
        ):
            pg.gradients.suggest_beta(*question(), method="holomorphic", readout=METER)


class TestStudy:
    def test_the_published_nudge_fails_and_the_chosen_one_works(self):
        found = study.nudges(2)
        assert np.mean(found["held"]["relative"]["1"]) > 0.99
        assert np.mean(found["paper"]["relative"]["1"]) < 0.3

    def test_planned_readings_of_four_bits_are_those_needed(self):
        (row,) = study.bits(1)
        assert 0.5 <= row["needed"] / row["planned"] <= 2

    @pytest.mark.slow
    def test_predicted_cosines_are_the_measured_ones_in_every_cell(self, monkeypatch):
        """8000 gradients a cell: five standard errors of the mean cosine are 0.02."""
        monkeypatch.setattr(study, "MAP_DRAWS", 1000)
        found = study.cosine_map(8)
        assert np.max(np.abs(np.subtract(found["measured"], found["predicted"]))) < 0.02

    @pytest.mark.slow
    def test_twenty_networks_reach_the_cosine_with_one_reading(self):
        found = study.nudges(20)
        assert np.mean(found["held"]["relative"]["1"]) > 0.997
        assert np.mean(found["held"]["raw"]["1"]) > 0.997
        assert np.mean(found["frozen"]["relative"]["100"]) > 0.99
