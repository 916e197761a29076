"""Associative memory: rules against closed forms, recall and its properties, learning, states, capacity, bad input."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import hypergeom

import phasegrad as pg
from phasegrad import memory
from phasegrad_paper.studies import ON_REQUEST, Verdict
from phasegrad_paper.studies.memory import STUDY, MemoryResults
from phasegrad_paper.studies.memory.claims import capacities, nearest, patterns_of, recall

DOCS = Path(__file__).parents[2] / "docs"
SMALL = np.random.default_rng(3).choice([-1.0, 1.0], (2, 20))


@pytest.fixture(scope="module")
def kept():
    return memory.hebbian(SMALL)


@pytest.fixture(scope="module")
def letters():
    return memory.pseudo_inverse(memory.letters("JCA"))


class TestRules:
    def test_hebbs_rule_is_a_sum_over_patterns(self, kept):
        for (i, j), strength in zip(kept.network.edges, kept.network.coupling, strict=True):
            assert strength == pytest.approx(np.mean([SMALL[k, i] * SMALL[k, j] for k in range(2)]) * 2 / 20)
        assert len(kept.network.edges) == 20 * 19 // 2

    def test_the_pseudo_inverse_gives_every_pattern_its_own_field(self, letters):
        first, second = letters.network.graph.first, letters.network.graph.second
        matrix = np.zeros((64, 64))
        matrix[first, second] = matrix[second, first] = letters.network.coupling
        rows = letters.patterns
        own = np.diag(rows.T @ np.linalg.inv(rows @ rows.T) @ rows)
        assert np.allclose(matrix @ rows.T, (rows * (1 - own)).T, atol=1e-12)

    def test_patterns_are_stable_states(self, kept, letters):
        for each in (kept, letters):
            phases = np.pi / 2 * each.patterns
            still = np.zeros(each.network.size)
            assert np.max(np.abs(pg.dynamics.force(each.network, phases, still))) < 1e-14
            for one in phases:
                assert np.linalg.eigvalsh(pg.dynamics.laplacian(each.network, one, still))[0] > 0.05

    def test_without_a_second_harmonic_two_patterns_lie_in_one_valley(self):
        network = memory.hebbian(SMALL).network
        apart = SMALL[0] != SMALL[1]
        turns = np.linspace(0, np.pi, 7)
        along = np.where(apart, turns[:, None], 0.0) + np.pi / 2 * SMALL[0]
        assert np.allclose(np.sin(along[-1]), SMALL[1], atol=1e-12)
        climbed = pg.dynamics.energy(network, along, np.zeros(20)) - pg.dynamics.energy(network, along[0], np.zeros(20))
        second = network.parameters["second_strength"][0] * np.sum(apart) * np.sin(turns) ** 2
        assert np.allclose(climbed, second, atol=1e-12)


class TestRecall:
    def test_cues_lead_to_their_patterns(self, letters):
        cues = memory.corrupt(memory.letters("JCA"), 0.2, copies=3)
        found = letters.recall(cues)
        assert found.phases.shape == (3, 3, 64)
        assert found.overlap.shape == (3, 3, 3)
        assert np.array_equal(found.pattern, np.tile([0, 1, 2], (3, 1)))
        assert found.exact.all()
        assert found.stable.all()
        assert found.settled.all()
        assert np.array_equal(found.pixels, np.broadcast_to(memory.letters("JCA"), (3, 3, 8, 8)))
        assert np.allclose(np.max(found.overlap, axis=-1), 1.0, atol=1e-8)
        assert "9 of 9 cues exactly" in str(found)

    def test_a_batch_is_its_cues_as_pictures_or_rows_or_booleans(self, letters):
        cues = memory.corrupt(letters.patterns, 0.2)[0]
        whole = letters.recall(cues).phases
        assert np.allclose(letters.recall(cues[1]).phases, whole[1], atol=1e-7)
        assert np.allclose(letters.recall(cues.reshape(3, 8, 8)).phases, whole, atol=1e-7)
        assert np.allclose(letters.recall(cues > 0).phases, whole, atol=1e-7)

    def test_other_names_of_the_pixels_change_nothing(self, kept):
        order = np.random.default_rng(0).permutation(20)
        cues = memory.corrupt(SMALL, 0.15, copies=2)
        found = memory.hebbian(SMALL[:, order]).recall(cues[..., order])
        assert np.allclose(found.phases, kept.recall(cues).phases[..., order], atol=1e-7)

    def test_an_inverted_cue_leads_to_the_inverse(self, kept):
        found = kept.recall(-SMALL)
        assert np.allclose(np.diag(found.overlap), -1.0, atol=1e-8)
        assert not found.exact.any()

    def test_a_score_counts_a_cues_own_pattern_alone(self, kept):
        assert kept.score(0.0, copies=1) == 1.0
        assert kept.score(1.0, copies=1) == 0.0

    def test_cues_have_as_many_flips_as_asked(self):
        cues = memory.corrupt(SMALL, 0.25, copies=4, seed=1)
        assert np.array_equal(np.sum(cues != SMALL, axis=-1), np.full((4, 2), 5))
        assert not np.array_equal(cues[0], cues[1])
        assert np.array_equal(memory.corrupt(SMALL, 0.25, copies=4, seed=1), cues)


class TestLearning:
    def test_one_update_is_the_difference_of_the_cosines(self):
        pattern, pull, cue = np.array([[1.0, -1.0, 1.0, 1.0]]), 0.2, 0.1
        found = memory.learn(pattern, pull=pull, cue=cue, flips=0.25, copies=1, epochs=1, seed=5)
        sides = [_states_of_one(sign, pull, cue) for sign in (1.0, -1.0)]
        candidates = []
        for wrong in range(4):
            chosen = np.array([sides[int(k == wrong)] for k in range(4)])
            free, nudged = (chosen[:, side] * pattern[0] for side in (0, 1))
            cosines = [
                np.cos(each[found.network.graph.first] - each[found.network.graph.second]) for each in (nudged, free)
            ]
            candidates.append(cosines[0] - cosines[1])
        learned = found.network.coupling / np.linalg.norm(found.network.coupling)
        apart = [np.linalg.norm(learned - each / np.linalg.norm(each)) for each in candidates]
        assert min(apart) < 1e-6

    def test_patterns_are_learned_and_scaled_to_a_field_of_one(self):
        patterns = SMALL[:, :12].reshape(2, 3, 4)
        found = memory.learn(patterns, flips=0.1, epochs=4)
        assert found.shape == (3, 4)
        assert found.score(0.1, copies=5) == 1.0
        ends = found.patterns[:, found.network.edges]
        assert 2 * np.mean(np.prod(ends, axis=-1) @ found.network.coupling) / 12 == pytest.approx(1.0)

    def test_a_plan_of_ones_own_flips_pixels_too(self):
        plan = pg.Plan(
            objective=pg.PhaseTargets(),
            epochs=1,
            optimizer="sgd",
            gradient="two_phase",
            beta=1.0,
            lock_floor=None,
            settling=pg.training.Settling("flow", 1e-9),
            learning_rate=0.64 / 20,
            batch_size=20,
            evaluate_every=1_000_000,
        )
        mine, own = (memory.learn(SMALL, each, copies=4, epochs=1).network.coupling for each in (plan, None))
        assert np.array_equal(mine, own)
        assert not np.array_equal(mine, memory.learn(SMALL, plan, copies=4, flips=0.1).network.coupling)

    def test_what_was_not_learned_is_blank(self):
        assert not memory.learn(SMALL, epochs=0, copies=1).network.coupling.any()

    def test_flips_are_drawn_anew(self):
        flips, stream = memory.Flips(20, 0.3), np.random.default_rng(0)
        first, second = flips.draw(stream, 5), flips.draw(stream, 5)
        assert np.array_equal(first.sum(axis=1), np.full(5, 6))
        assert not np.array_equal(first, second)
        assert np.array_equal(flips.apply(np.ones((5, 20)), first) < 0, first)


def _states_of_one(sign, pull, cue):
    """Return the free and the nudged phase of an oscillator whose pixel is +1 under a cue of some sign."""

    def force(phase, nudge):
        return cue * sign + pull * np.sin(2 * (np.pi / 2 - phase)) + nudge * (np.pi / 2 - phase)

    free = brentq(force, sign * np.pi / 4, sign * 0.75 * np.pi, args=(0.0,), xtol=1e-14)
    low, high = (free, np.pi / 2) if sign < 0 else (np.pi / 2 - 1e-9, free + 1e-9)
    return free, brentq(force, low, high, args=(1.0,), xtol=1e-14)


class TestStates:
    def test_states_are_patterns_inverses_or_spurious(self):
        rows = np.random.default_rng(1).choice([-1.0, 1.0], (3, 24))
        states = memory.hebbian(rows).states(15)
        signs = np.sign(np.sin(states.equilibria.phases))
        for sign, pattern, kind in zip(signs, states.pattern, states.sign, strict=True):
            same = [k for k in range(3) if np.array_equal(sign, rows[k]) or np.array_equal(sign, -rows[k])]
            assert [pattern] == (same or [-1])
            assert kind == (np.sign(sign @ rows[pattern]) if same else 0)
        assert states.spurious == np.sum(states.sign == 0) > 0
        assert 0 < states.spurious_share == pytest.approx(np.sum(states.equilibria.share[states.pattern < 0]))
        assert f"{states.spurious} spurious" in str(states)


class TestCapacity:
    def test_more_patterns_are_recalled_less(self):
        seen = []
        found = memory.capacity(24, [1, 8], sets=2, copies=1, progress=lambda *each: seen.append(each))
        assert found.recalled[0] == 1.0
        assert found.recalled[1] < 0.5 < found.pixels[1] < 1
        assert seen == [(1, 1.0), (8, found.recalled[1])]
        assert found.rule == "hebbian"
        assert str(found).count("\n") == 3

    def test_the_error_is_that_of_a_mean_over_sets(self):
        shares = [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
        answers = iter(shares)

        def rule(patterns):
            made = memory.hebbian(patterns)
            wrong = np.array(next(answers)) == 0
            kept = made.patterns.copy()
            kept[wrong] = -kept[wrong]
            return memory.Memory(made.network, kept)

        found = memory.capacity(20, [2], rule=rule, flips=0.0, sets=3, copies=1)
        means = np.mean(shares, axis=1)
        assert found.recalled[0] == pytest.approx(means.mean())
        assert found.error[0] == pytest.approx(means.std(ddof=1) / np.sqrt(3))
        # One set shows no spread: its error is unknown, not zero.
        assert np.isnan(memory.capacity(20, [2], sets=1, copies=1).error).all()


class TestBadInput:
    @pytest.mark.parametrize(
        ("patterns", "said"),
        [
            ([[1, -1, 0], [1, 1, 1]], r"must hold \+1 and -1.*Got 0"),
            (np.array([[0, 1, 1], [1, 0, 1]]), "make booleans of 0 and 1"),
            (np.where(np.arange(32).reshape(4, 8) % 3 == 0, 1, -1)[[0, 1, 0]], "holds one pattern twice: 0 and 2"),
            (np.where(np.arange(4)[:, None] >> np.arange(2) & 1, 1, -1), "holds 4 patterns of 2 pixels"),
            ([[1, -1, 1], [1, -1]], "of one length"),
            ([1, -1, 1], r"must have shape \(P, N\)"),
            (np.ones((0, 4)), r"must have shape \(P, N\)"),
            ([["a", "b"]], "array of real numbers"),
            ([[1.0, np.nan]], "finite|NaN"),
        ],
    )
    def test_patterns_that_cannot_be_kept_are_refused(self, patterns, said):
        for rule in (memory.hebbian, memory.pseudo_inverse, memory.learn):
            with pytest.raises(ValueError, match=said):
                rule(patterns)

    def test_wrong_cues_are_refused(self, kept, letters):
        with pytest.raises(ValueError, match=r"cues of 20 pixels, shape \(..., 20\)"):
            kept.recall(np.ones(19))
        with pytest.raises(ValueError, match=r"\(..., 8, 8\). Got shape \(8, 7\)"):
            letters.recall(np.ones((8, 7)))
        with pytest.raises(ValueError, match=r"must hold \+1 and -1"):
            kept.recall(np.zeros(20))

    def test_networks_that_are_no_memory_are_refused(self, kept):
        with pytest.raises(ValueError, match="19 oscillators and the patterns 20 pixels"):
            memory.Memory(memory.hebbian(SMALL[:, :19]).network, SMALL)
        with pytest.raises(ValueError, match="second_strength"):
            memory.Memory(pg.networks.complete(20), SMALL)
        with pytest.raises(TypeError, match="must be a Network"):
            memory.Memory(kept, SMALL)

    def test_wrong_numbers_are_refused(self):
        with pytest.raises(ValueError, match="below the 'pull'"):
            memory.hebbian(SMALL, pull=0.1, cue=0.1)
        with pytest.raises(ValueError, match=r"'flips' parameter of learn must be a float from 0 to 0\.5"):
            memory.learn(SMALL, flips=0.7)
        with pytest.raises(TypeError, match="'plan' parameter of learn must be a Plan"):
            memory.learn(SMALL, 5)
        with pytest.raises(ValueError, match="from 1 to 10"):
            memory.capacity(10, [11])
        with pytest.raises(TypeError, match="'rule' of capacity"):
            memory.capacity(10, [1], rule="hebbian")
        with pytest.raises(TypeError, match=r"must return a Memory\. Got array"):
            memory.capacity(10, [1], rule=np.asarray)
        with pytest.raises(ValueError, match="letters draws the letters A, C"):
            memory.letters("Q")


def test_pictures_show_patterns_states_and_capacity(letters):
    with mpl.rc_context({"backend": "agg"}):
        import matplotlib.pyplot as plt

        axes = letters.plot()
        assert [words.get_text() for words in axes.texts] == ["0", "1", "2"]
        shown = axes.collections[1].get_array()
        assert np.array_equal(np.ravel(shown), letters.patterns[1])
        many = memory.hebbian(np.where(np.arange(27)[:, None] % np.arange(1, 28) < 1, 1.0, -1.0)[:20])
        shown = many.plot()
        extents = [each.get_datalim(each.axes.transData).extents for each in shown.collections]
        assert max(bottom for *_, bottom in extents) <= shown.get_ylim()[0]
        for k, (left, top, right, bottom) in enumerate(extents):
            # Two pictures lie apart if one is beside or below the other.
            others = extents[:k]
            assert all(a >= right or b >= bottom or c <= left or d <= top for a, b, c, d in others)
        again = letters.recall(letters.patterns).plot(plt.subplots()[1])
        assert [words.get_text() for words in again.texts] == ["0: 1.00", "1: 1.00", "2: 1.00"]
        numbers = np.array([0.5, 0.25])
        found = memory.Capacity(np.array([1, 2]), numbers, numbers / 10, numbers, 20, 0.1, "hebbian")
        assert found.plot().get_xlabel() == "patterns"
        plt.close("all")


class TestStudy:
    def test_the_page_shows_what_the_file_holds_and_every_check_is_kept(self):
        results = MemoryResults.read(DOCS / "results" / "memory.json")
        assert STUDY in ON_REQUEST
        assert set(results.pieces) == set(STUDY.plan(None))
        page = (DOCS / "memory.md").read_text(encoding="utf-8")
        assert results.with_tables(page) == page
        assert [each.verdict for each in results.judged()] == [Verdict.REPRODUCED] * len(STUDY.checks)

    def test_pieces_are_what_they_say(self):
        found = recall("CTX", "hebbian", [0.1], 1, 2)
        assert found["score"] == [1.0]
        assert found["largest_overlap"] == pytest.approx(0.125)
        assert patterns_of("random 1").shape == (3, 8, 8)
        assert capacities("pseudo-inverse", 20, [1], 1)["recalled"] == [1.0]

    def test_some_cues_are_no_nearer_to_their_own_pattern(self):
        # C and E differ in six pixels: three of them or more among the 13 flipped, and the cue is another letter's.
        lost = hypergeom.sf(2, 64, 6, 13)
        assert nearest("ACE", [0.2], 2000)["score"] == [pytest.approx(1 - 2 / 3 * lost, abs=0.01)]
        assert nearest("CTX", [0.0, 0.2], 20)["score"] == [1.0, 1.0]

    @pytest.mark.slow
    def test_letters_that_hebbs_rule_mixes_up_are_learned(self):
        patterns = memory.letters("JCA")
        assert memory.hebbian(patterns).score(0.2) < 0.9
        assert memory.learn(patterns).score(0.2) >= 0.99
        rows = np.random.default_rng(0).choice([-1.0, 1.0], (3, 64))
        assert memory.hebbian(rows).score(0.2) >= 0.9
        assert memory.learn(rows).score(0.2) >= 0.99
