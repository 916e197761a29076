"""Rules and measures: nothing is proved by nothing, few seeds decide little, and words say what the numbers say."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from phasegrad_paper.studies import STUDIES, Claim, Verdict, choose, statistics
from phasegrad_paper.studies.conditions import converged, failed, succeeded
from phasegrad_paper.studies.measures import Measure, Quantity, Unit
from phasegrad_paper.studies.rules import State, above, all_of, at_least, at_most, below, bounds_of, every, none, within

POSITIVE = {Verdict.REPRODUCED, Verdict.HISTORICAL, Verdict.CONTROLLED}
MANY = settings(max_examples=300)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def constant(measure, unit=Unit.NUMBER, interval=False):
    return Quantity("figure", lambda _: measure, unit, interval)


def verdict(rule, control=None, variant=None, own=None):
    return Claim("key", "where", "published", "It is so.", rule, control, variant, own).judge({}).verdict


def lead(differences):
    interval = statistics.t_interval(differences)
    return constant(Measure.of(interval, len(differences)), Unit.POINTS, interval=True)


EMPTY = {
    "share": Measure.share([]),
    "mean": Measure.mean([]),
    "largest": Measure.largest([]),
    "smallest": Measure.smallest([]),
    "identical": Measure.identical([([], [1.0])]),
    "t interval": Measure.of(statistics.t_interval([]), 0),
    "Welch": Measure.of(statistics.welch_interval([], [0.5] * 20), 20),
    "rates": Measure.of(statistics.paired_rate_interval([], []), 0),
}


@pytest.mark.parametrize("measure", EMPTY.values(), ids=EMPTY)
@pytest.mark.parametrize("interval", [False, True])
def test_an_empty_group_is_not_measured(measure, interval):
    quantity = constant(measure, Unit.SHARE, interval)
    for rule in (
        every(quantity),
        none(quantity),
        within(quantity, 10.0),
        at_most(quantity, 1e9),
        above(quantity, -1e9),
    ):
        found = Claim("key", "where", "published", "It is so.", rule).judge({})
        assert found.verdict is Verdict.NOT_MEASURED
        assert found.reason == "There is no value of the figure."
        assert found.kept is None
        assert found.number is None


def test_the_groups_of_an_arm_may_be_empty():
    """All seeds succeed: there is no failed seed to measure, and no seed converges in both arms."""
    from phasegrad_paper.studies.ablation import ARMS

    good = {"test": [0.9] * 20, "train": [0.9] * 20, "untrained": [0.5] * 20, "separation": [1.0] * 20}
    bad = {name: [0.1] * 20 for name in good}
    results = {"omega": good, "coupling": bad}
    for quantity in (ARMS.mean("omega", failed), ARMS.mean("omega", failed, interval=True)):
        assert math.isnan(quantity.measure(results).value)
        assert verdict(within(Quantity("q", lambda _, q=quantity: q.of(results)), 1.0)) is Verdict.NOT_MEASURED
    assert math.isnan(ARMS.lead("omega", "coupling", converged).measure(results).value)
    assert ARMS.lead("omega", "coupling").measure(results).value == pytest.approx(0.8)
    assert succeeded(good).all()


numbers = st.one_of(st.just(math.nan), st.just(math.inf), st.floats(-2, 2))
measures = st.builds(
    Measure, numbers, st.integers(0, 200), numbers, numbers, st.sampled_from(["", "largest", "smallest"]), st.booleans()
)
bounds = st.sampled_from(
    [
        lambda quantity: at_least(quantity, 0.5),
        lambda quantity: at_most(quantity, 0.5),
        lambda quantity: above(quantity, 0.0),
        lambda quantity: below(quantity, 0.0),
        lambda quantity: within(quantity, 0.1, of=0.2),
        every,
        none,
    ]
)


@MANY
@given(measures, bounds, st.sampled_from(Unit), st.booleans())
def test_nan_is_never_an_answer(measure, bound, unit, interval):
    rule = bound(constant(measure, unit, interval))
    if not math.isfinite(measure.value):
        assert verdict(rule) is Verdict.NOT_MEASURED
        sure = at_least(constant(Measure(1.0)), 0.0)
        assert verdict(sure, control=rule) is Verdict.UNDECIDED
        assert verdict(at_most(constant(Measure(1.0)), 0.0), variant=rule) is Verdict.UNDECIDED
        assert verdict(all_of(sure, rule)) is Verdict.NOT_MEASURED
    elif interval and not (math.isfinite(measure.low) and math.isfinite(measure.high)):
        assert verdict(rule) is Verdict.UNDECIDED


@MANY
@given(measures, bounds, st.sampled_from(Unit))
def test_few_seeds_decide_only_what_more_of_them_cannot_change(measure, bound, unit):
    """Whatever a partial figure decides, adding seeds, which can only push it further, decides too."""
    rule = bound(constant(measure, unit))
    partial = rule.state(Measure(measure.value, measure.n, extreme=measure.extreme, complete=False))
    if partial in (State.HOLDS, State.FAILS):
        for change in (0.0, 0.3, 5.0):
            if unit is Unit.SHARE:  # an exception stays one
                value = min(max(measure.value, 0.01), 0.99)
            else:
                value = measure.value + change * {"largest": 1, "smallest": -1}[measure.extreme]
            assert rule.state(Measure(value, extreme=measure.extreme)) is partial


@MANY
@given(st.lists(st.floats(-0.3, 0.3), min_size=2, max_size=30), st.integers(1, 4), st.integers(1, 4))
def test_equivalence_needs_data_of_the_same_kind_more_of_it_never_hurts(differences, few, more):
    """The same differences once more: what few of them prove, more prove too."""
    bound = lambda copies: within(lead(differences * copies), 0.06)  # noqa: E731
    if verdict(bound(few)) is Verdict.REPRODUCED:
        assert verdict(bound(few + more)) is Verdict.REPRODUCED
    if len(differences) * few < statistics.FEWEST:
        assert verdict(bound(few)) is Verdict.UNDECIDED


def test_a_handful_of_seeds_that_agree_prove_nothing():
    assert verdict(within(lead([0.0] * 5), 0.06)) is Verdict.UNDECIDED
    assert verdict(above(lead([0.2] * 9), 0.0)) is Verdict.UNDECIDED
    assert verdict(within(lead([0.0] * 10), 0.06)) is Verdict.REPRODUCED


@pytest.mark.parametrize("n", [10, 20, 50, 100])
def test_arms_that_differ_by_the_bound_seldom_pass_for_equal_however_few_the_seeds(n):
    """Two one-sided tests: the error is at most 2.5 %, where "p > 0.05, so equal" has 95 % for a tiny sample."""
    rng = np.random.default_rng(n)
    samples = rng.normal(0.06, 0.1, (2000, n))
    wrong = [verdict(within(lead(sample), 0.06)) is Verdict.REPRODUCED for sample in samples]
    assert np.mean(wrong) < 0.04
    far = [verdict(within(lead(sample + 0.3), 0.06)) for sample in samples[:100]]
    assert far.count(Verdict.NOT_REPRODUCED) > 95


def test_rates_are_equal_only_if_enough_pairs_say_so():
    same = lambda n: constant(  # noqa: E731
        Measure.of(statistics.paired_rate_interval([True, False] * n, [True, False] * n), 2 * n), Unit.POINTS, True
    )
    assert verdict(within(same(1), 0.12)) is Verdict.UNDECIDED
    assert verdict(within(same(5), 0.12)) is Verdict.UNDECIDED
    assert verdict(within(same(50), 0.12)) is Verdict.REPRODUCED


def test_a_control_or_a_variant_comes_second():
    yes, no = at_least(constant(Measure(1.0)), 0.5), at_least(constant(Measure(0.0)), 0.5)
    assert verdict(yes) is Verdict.REPRODUCED
    assert verdict(no) is Verdict.NOT_REPRODUCED
    assert verdict(yes, control=yes) is Verdict.CONTROLLED
    assert verdict(yes, control=no) is Verdict.REPRODUCED
    assert verdict(no, control=yes) is Verdict.NOT_REPRODUCED
    assert verdict(no, variant=yes) is Verdict.HISTORICAL
    assert verdict(no, variant=no) is Verdict.NOT_REPRODUCED
    assert verdict(yes, control=yes, variant=no) is Verdict.CONTROLLED
    assert verdict(None) is Verdict.UNTESTABLE


def test_where_the_papers_own_data_say_otherwise_that_is_the_verdict():
    yes, no = at_least(constant(Measure(1.0)), 0.5), at_least(constant(Measure(0.0)), 0.5)
    for rule in (yes, no):
        assert verdict(rule, own=no) is Verdict.CONTRADICTED
        assert verdict(rule, own=yes) is verdict(rule)
    assert verdict(None, own=no) is Verdict.UNTESTABLE
    judgement = Claim("k", "Table 1", "p", "A claim.", yes, own=no).judge({})
    assert "not as asked of the paper's own data" in judgement.reason
    assert "contradicted by the paper's own data unless" in judgement.claim.asks


def test_a_quantity_knows_whether_fewer_seeds_were_at_work():
    quantity = Quantity("sum", lambda results: Measure(results["a"] + results.get("c", 0)))
    assert quantity.measure({"a": 1, "b": 2}, partial={"b"}).complete
    assert not quantity.measure({"a": 1, "b": 2}, partial={"a"}).complete
    assert not quantity.measure({"a": 1, "b": 2}, partial={"c"}).complete  # looked for, and left out
    with pytest.raises(TypeError, match="must name its results"):
        Quantity("all", lambda results: Measure(sum(results.values()))).measure({"a": 1})


def allowed_numbers(judgement):
    """Every number a sentence may hold, as it is shown: of measures, of their counts, and of bounds."""
    tested = (*judgement.rule, *judgement.control, *judgement.variant, *judgement.own)
    figures = [(each.bound.quantity, each.measure) for each in tested] + list(judgement.seen.items())
    for quantity, measure in figures:
        form, factor = quantity.unit.value
        values = [measure.value, measure.low, measure.high]
        yield from (form.format(factor * value).split()[0] for value in values if math.isfinite(value))
        yield str(measure.n)
        if quantity.unit is Unit.SHARE and math.isfinite(measure.value):
            yield str(round(measure.value * measure.n))
        yield "95"


def unexplained(judgement):
    tested = (*judgement.rule, *judgement.control, *judgement.variant, *judgement.own)
    known = {*map(str, allowed_numbers(judgement))}
    words = [each.bound.quantity.words for each in tested] + [quantity.words for quantity in judgement.seen]
    words += [each.bound.asked for each in tested]
    for sentence in (judgement.measured, judgement.controlled, judgement.reason):
        for fixed in sorted(words, key=len, reverse=True):
            sentence = sentence.replace(fixed, "")
        yield from (number for number in NUMBER.findall(sentence) if number not in known)


@MANY
@given(measures, measures, bounds, bounds, st.sampled_from(Unit), st.booleans())
def test_every_number_in_a_sentence_is_a_measured_one(first, second, bound, other, unit, interval):
    rule = bound(Quantity("first figure", lambda _: first, unit, interval))
    control = other(Quantity("second figure", lambda _: second, Unit.PERCENT))
    claim = Claim("key", "where", "published", "It is so.", rule, control, control)
    judgement = claim.judge({})
    assert list(unexplained(judgement)) == []
    for each in judgement.rule:
        assert each.bound.asked in claim.asks


def test_sentences_of_real_studies_hold_measured_numbers_only():
    for study in choose(["asymmetry", "finite-beta"]):
        outcome = study.assess({name: piece.run() for name, piece in study.plan(2).items()}, 2)
        for judgement in (*outcome.judgements, *outcome.checks):
            assert list(unexplained(judgement)) == [], judgement.claim.key


@pytest.mark.parametrize("claim", [c for s in STUDIES for c in (*s.claims, *s.checks) if c.rule], ids=lambda c: c.key)
def test_the_words_of_a_rule_name_every_quantity_and_its_bound(claim):
    for rule in (claim.rule, claim.control, claim.variant):
        for bound in bounds_of(rule):
            assert f"the {bound.quantity.words}" in claim.asks
            assert bound.asked in claim.asks
            assert bound.least < bound.most
            finite = [end for end in (bound.least, bound.most) if math.isfinite(end)]
            assert finite, "a rule has a stated bound"


def test_bounds_read_as_they_are_meant():
    quantity = constant(Measure(0.5, 100), Unit.SHARE)
    assert every(quantity).asked == "all of them"
    assert none(quantity).asked == "none of them"
    assert above(quantity, 0.5).asked == "above 50 % of them"
    percent, points = constant(Measure(0.9), Unit.PERCENT), lead([0.0] * 20)
    assert within(percent, 0.0005, of=0.734, why="as printed").asked == "within 0.05 points of 73.4 %, as printed"
    assert within(points, 0.06).asked == "within 6 points of 0 with the whole 95 % interval"
    assert at_least(points, 0.01).asked == "at least 1.0 points with the whole 95 % interval"
    assert at_most(constant(Measure(1e-9), Unit.SMALL), 1e-8).asked == "at most 1.0e-08"
