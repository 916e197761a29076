"""The registry of claims, its page of documentation, and the statistics behind a verdict."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from documented_claims import CLAIMS, DOCUMENT, documented_verdicts
from scipy import stats

import phasegrad
from phasegrad.equilibria import find_equilibrium
from phasegrad_paper.report.document import claims_document
from phasegrad_paper.studies import STUDIES, choose, conditions, statistics
from phasegrad_paper.studies.arms import Arm, load, run_arm, trained_networks


class TestRegistry:
    def test_there_are_more_than_thirty_claims_with_names_of_their_own(self):
        assert len(CLAIMS) >= 30
        keys = [claim.key for study in STUDIES for claim in (*study.claims, *study.checks)]
        assert len(set(keys)) == len(keys)
        assert len({study.name for study in STUDIES}) == len(STUDIES)

    @pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.key)
    def test_every_claim_says_where_it_stands_what_was_published_and_how_it_is_judged(self, claim):
        assert claim.sentence.endswith(".")
        assert claim.where
        assert claim.published
        assert claim.asks.endswith(".")
        assert claim.note.endswith(".") or (claim.rule is not None and not claim.note)

    def test_the_document_is_what_the_claims_say(self):
        """All of it, rules included; that its verdicts are those of all seeds is a slow test."""
        assert claims_document(STUDIES, documented_verdicts()) == DOCUMENT

    def test_studies_are_chosen_by_name_in_the_order_of_the_paper(self):
        assert [study.name for study in choose(["sweep", "identity"])] == ["identity", "sweep"]
        assert choose() == STUDIES

    def test_an_unknown_study_gets_a_suggestion(self):
        with pytest.raises(ValueError, match="Did you mean 'spectral'"):
            choose(["spectrall"])

    @pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
    def test_pieces_hold_to_the_number_of_seeds(self, study):
        for piece in study.plan(3).values():
            assert piece.arguments.get("seeds", 0) <= 3
            json.dumps(piece.arguments)
            assert piece.weight > 0
        assert set(study.plan(3)) <= set(study.plan(None))

    def test_the_same_work_is_one_piece_in_every_study_that_needs_it(self):
        pieces = [piece for study in STUDIES for piece in study.plan(None).values()]
        assert len({piece.identity for piece in pieces}) < len(pieces) - 20

    def test_the_threshold_of_success_is_written_once(self):
        source = Path(phasegrad.__file__).parent
        threshold = re.compile(r"(?:[<>]=?|THRESHOLD =|SUCCESS =) *0\.6\b")
        found = [path.name for path in source.rglob("*.py") if threshold.search(path.read_text(encoding="utf-8"))]
        assert found == ["_runs.py"]


class TestStatistics:
    def test_against_formulas(self):
        rng = np.random.default_rng(0)
        a, b = rng.normal(0.5, 0.1, 30), rng.normal(0.6, 0.3, 20)
        spread = a.var(ddof=1) / 30 + b.var(ddof=1) / 20
        assert statistics.welch(a, b).statistic == pytest.approx((a.mean() - b.mean()) / np.sqrt(spread))
        difference = a[:20] - b
        t = difference.mean() / (difference.std(ddof=1) / np.sqrt(20))
        assert statistics.paired_t(a[:20], b).statistic == pytest.approx(t)
        assert statistics.paired_t(a[:20], b).p == pytest.approx(2 * stats.t.sf(abs(t), 19))

    def test_wilson_s_interval_is_wilson_s_formula(self):
        n, won, z = 40, 13, stats.norm.ppf(0.975)
        p = won / n
        centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        interval = statistics.rate(np.arange(n) < won)
        assert (interval.low, interval.high) == pytest.approx((centre - half, centre + half))

    def test_cochran_s_q_is_its_formula_and_says_when_there_is_nothing_to_test(self):
        table = np.random.default_rng(1).random((12, 4)) < 0.6
        columns, rows, k = table.sum(axis=0), table.sum(axis=1), 4
        q = (k - 1) * (k * np.sum(columns**2) - rows.sum() ** 2) / (k * rows.sum() - np.sum(rows**2))
        assert statistics.cochran_q(table).statistic == pytest.approx(q)
        same = np.repeat(table[:, :1], 4, axis=1)
        assert np.isnan(statistics.cochran_q(same).statistic)
        assert "degenerate" in statistics.cochran_q(same).remark

    def test_fisher_against_the_hypergeometric_distribution(self):
        won, n = (46, 99), (100, 100)
        total = sum(won)
        likelihood = stats.hypergeom(200, total, 100).pmf(np.arange(201))
        p = likelihood[likelihood <= likelihood[46] * (1 + 1e-7)].sum()
        assert statistics.fisher(won, n).p == pytest.approx(p)

    def test_t_and_welch_intervals_are_those_of_scipy(self):
        rng = np.random.default_rng(3)
        a, b = rng.normal(0.5, 0.1, 30), rng.normal(0.6, 0.3, 20)
        known = stats.ttest_1samp(a, 0).confidence_interval()
        found = statistics.t_interval(a)
        assert (found.estimate, found.low, found.high) == pytest.approx((a.mean(), known.low, known.high))
        known = stats.ttest_ind(a, b, equal_var=False).confidence_interval()
        found = statistics.welch_interval(a, b)
        assert (found.low, found.high) == pytest.approx((known.low, known.high))
        assert np.isnan(statistics.t_interval(a[:9]).low)
        assert np.isnan(statistics.welch_interval(a, b[:9]).low)

    def test_the_interval_of_paired_rates_is_that_of_bonett_and_price(self):
        """Airway hyper-responsiveness before and after transplantation: the worked example of Fagerland et al. 2014."""
        pairs = [(True, True)] * 1 + [(True, False)] * 1 + [(False, True)] * 7 + [(False, False)] * 12
        before, after = np.array(pairs).T
        found = statistics.paired_rate_interval(before, after)
        assert found.estimate == pytest.approx(-6 / 21)
        assert (found.low, found.high) == pytest.approx((-0.508, -0.0133), abs=5e-4)

    def test_bootstrap_intervals_cover_and_repeat(self):
        sample = np.random.default_rng(2).normal(0.0, 1.0, 200)
        interval = statistics.mean(sample)
        assert interval == statistics.mean(sample)
        half = 1.96 * sample.std() / np.sqrt(200)
        assert interval.high - interval.estimate == pytest.approx(half, rel=0.15)

    @pytest.mark.parametrize("values", [[], [0.5], [0.5, 0.5]])
    def test_too_little_data_is_said_not_guessed(self, values):
        assert "too few" in statistics.welch(values, values).remark
        assert "too few" in statistics.paired_t(values, values).remark
        assert "too few" in statistics.wilcoxon(values, values).remark
        json.dumps(statistics.mean(values).as_dict(), allow_nan=False)

    def test_orientation_and_agreement(self):
        np.testing.assert_allclose(statistics.oriented([0.1, 0.9, 0.5]), [0.9, 0.9, 0.5])
        assert statistics.identical([0.1, 0.2, 0.3], [0.1, 0.25]) == (1, 2)


@pytest.fixture(scope="module")
def run():
    return run_arm(**vars(Arm(seeds=3, epochs=5, detail=True, evaluate_every=5)))


class TestArms:
    def test_controls_stand_beside_every_score(self, run):
        for name in ("test", "best", "untrained", "train", "nearest", "majority", "separation", "skipped", "unstable"):
            assert len(run[name]) == 3, name
        assert np.all(np.array(run["best"]) >= run["test"])

    def test_exchanging_the_outputs_of_an_untrained_network_inverts_its_answers(self, run):
        """Up to ties, every answer turns round: untrained accuracies add up to one."""
        other = run_arm(**vars(Arm(seeds=3, epochs=1, exchanged=True)))
        np.testing.assert_allclose(np.add(run["untrained"], other["untrained"]), 1.0, atol=1e-12)
        np.testing.assert_allclose(np.add(run["untrained_separation"], other["untrained_separation"]), 0, atol=1e-12)

    def test_the_nearest_target_asks_only_for_the_order_of_the_outputs(self, run):
        """Two outputs: class 0 is nearer exactly where the first phase is the smaller one."""
        _, trained = trained_networks(Arm(seeds=3, epochs=5, evaluate_every=5))
        for seed, network in enumerate(trained):
            data = load("ai", "train", seed)
            outputs = find_equilibrium(network, data.x_test).phases[:, list(network.outputs)]
            assert np.mean((outputs[:, 0] > outputs[:, 1]) == data.y_test) == pytest.approx(run["nearest"][seed])

    def test_a_row_of_a_table_is_the_statistics_of_its_run(self, run):
        row = dict(zip(conditions.COLUMNS, conditions.row("x", run, logistic=[1.0, 0.5, 0.9]), strict=True))
        assert row["mean of all, %"] == pytest.approx(100 * np.mean(run["test"]), abs=0.005)
        assert row["successes"] == int(np.sum(np.array(run["test"]) > 0.6))
        assert row["logistic regression, %"] == 80.0

    def test_longer_training_goes_on_where_the_first_stage_ended(self):
        run = run_arm(**vars(Arm(seeds=2, epochs=3, stages=((2, 0.01),))))
        assert run["stages"]["epochs"] == [0, 3, 5]
        assert [row[1] for row in run["stages"]["accuracy"]] == run["test"]

    def test_the_floor_and_recentring_of_the_five_configurations_do_what_they_say(self):
        """Half the mean is taken away every tenth epoch; the floor leaves no coupling below 1.5."""
        plain = run_arm(**vars(Arm(seeds=2, epochs=10, learn="both")))
        lifted = run_arm(**vars(Arm(seeds=2, epochs=10, learn="both", intervention="floor")))
        assert np.all(np.array(lifted["moved"]) > np.array(plain["moved"]))
