"""The whole reproduction, as a visitor runs it: every study, the page in a browser, the verdicts of all seeds.

The reproduction with all seeds runs once, and every slow test that looks at its results shares it: under pytest-xdist
the tests of one class run in one process (``--dist loadscope``).
"""

import json
import subprocess
import sys
from dataclasses import replace
from urllib.parse import urlparse

import numpy as np
import pytest
from documented_claims import documented_verdicts

from phasegrad_paper.studies import STUDIES, Verdict, mismatch, modulation
from phasegrad_paper.studies.arms import run_arm

#: Studies that take two thirds of the time at any number of seeds; the normal run leaves them out.
LONG = {"identity", "which-parameter", "peers", "mismatch"}


def reproduce(place, *more):
    words = [sys.executable, "-m", "phasegrad", "reproduce", "--out", str(place), *more]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # A study handles the warnings that it expects, so that a newcomer's screen shows none.
    assert "Warning" not in done.stderr


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a reproduction with all seeds."""
    place = tmp_path_factory.mktemp("whole") / "reproduction"
    reproduce(place)
    return place


@pytest.fixture(scope="module")
def pieces(whole):
    """What every piece of it returned, by identity."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in (whole / "pieces").iterdir()]
    return {record["identity"]: record["result"] for record in records}


@pytest.fixture(scope="module")
def modulated(pieces):
    """The nine arms behind the stored file of the FM task, 7.2 million updates, and the best of them as described."""
    plan = modulation.STUDY.plan(None)
    wanted = [name for name in plan if name.endswith("published") or name == "omega_0.01"]
    return {name: pieces[plan[name].identity] for name in wanted}


def check_page(place, studies, window, *, figures):
    claims = [claim for study in studies for claim in study.claims]
    page = window(place / "index.html")
    assert page.complaints == []
    assert {urlparse(url).scheme for url in page.requests} <= {"file", "data"}
    assert page.locator("article.claim").count() == len(claims)
    widths = page.eval_on_selector_all("img", "images => images.map(image => image.alt ? image.naturalWidth : 0)")
    assert len(widths) >= figures
    assert min(widths) > 0
    assert window(place / "index.html", width=360).evaluate("document.documentElement.scrollWidth") <= 360
    assert (place / "index.html").stat().st_size < 6e6


def check_claims(place, studies, seeds):
    results = json.loads((place / "results.json").read_text(encoding="utf-8"))
    measured = [claim for study in results["studies"].values() for claim in study["claims"]]
    assert [claim["key"] for claim in measured] == [claim.key for study in studies for claim in study.claims]
    documented = documented_verdicts()
    for claim in measured:
        assert claim["measured"]
        assert claim["reason"].endswith(".")
        assert (claim["number"] is None) <= (claim["verdict"] == "not testable here" or seeds is not None)
        few_seeds_may = {"not decided by these data", "not measured"} if seeds else set()
        assert claim["verdict"] in {documented[claim["key"]].value} | few_seeds_may, claim["key"]


def check_going_on(place, *more):
    """Called again it computes nothing and ends with the same results."""
    before = (place / "results.json").read_bytes()
    pieces = {path: path.stat().st_mtime_ns for path in (place / "pieces").iterdir()}
    reproduce(place, *more)
    assert (place / "results.json").read_bytes() == before
    assert {path: path.stat().st_mtime_ns for path in (place / "pieces").iterdir()} == pieces


@pytest.mark.parametrize(("long", "figures"), [(False, 11), pytest.param(True, 3, marks=pytest.mark.slow)])
def test_every_study_runs_with_two_seeds_and_the_page_holds_every_claim(long, figures, tmp_path, window):
    """Together the two cases run every study."""
    place = tmp_path / "reproduction"
    studies = [study for study in STUDIES if (study.name in LONG) == long]
    more = ["--seeds", "2", *(study.name for study in studies)]
    reproduce(place, *more)
    check_claims(place, studies, 2)
    check_page(place, studies, window, figures=figures)
    check_going_on(place, *more)


@pytest.mark.slow
class TestAllSeeds:
    def test_every_study_runs_and_the_page_holds_every_claim(self, whole, window):
        check_claims(whole, STUDIES, None)
        check_page(whole, STUDIES, window, figures=11)
        check_going_on(whole)

    def test_fewer_seeds_never_contradict_the_documented_verdicts(self, pieces):
        found = documented_verdicts()
        for seeds in (None, 2, 5, 10, 20, 35, 50, 80):
            for study in STUDIES:
                results, all_of_it = {}, study.plan(None)
                for name, piece in study.plan(seeds).items():
                    counts = [each.arguments.get("seeds") for each in (all_of_it[name], piece)]
                    result = pieces[all_of_it[name].identity]
                    results[name] = result if counts[0] == counts[1] else beginning(result, *counts)
                for judgement in study.assess(results, seeds).judgements:
                    key, verdict = judgement.claim.key, judgement.verdict
                    may_be = {found[key]} | ({Verdict.UNDECIDED, Verdict.NOT_MEASURED} if seeds else set())
                    assert verdict in may_be, f"{key} with {seeds} seeds: {judgement.reason}"

    def test_fifty_chips_with_all_faults_learn_vowels(self, pieces):
        """Five levels, 1 % of both mismatches, 1 ps at 3 GHz."""
        accuracies = pieces[mismatch.STUDY.plan(None)["together"].identity]["accuracies"][:50]
        assert len(accuracies) == 50
        assert np.mean(accuracies) >= 0.99
        assert min(accuracies) >= 0.95

    def test_every_stored_value_of_the_fm_task_comes_out(self, modulated):
        measure = modulation.ARMS.met("").measure(modulated)
        assert (measure.value, measure.n) == (1.0, 180)

    def test_the_fm_task_as_described_ends_worse_than_chance(self, modulated):
        run = modulated["omega_0.01"]
        assert np.mean(run["test"]) == pytest.approx(0.3925)
        assert np.sum(np.array(run["test"]) > 0.6) == 7

    def test_single_precision_of_the_inputs_is_part_of_the_variant_alone(self, modulated):
        """It moves costs by a little; as described, products are rounded as everywhere else."""
        arm = modulation.ARMS["omega_0.01"]
        assert arm.variant.single
        assert not arm.arm.single
        double = run_arm(**vars(replace(arm.variant, single=False)))
        assert double["train_loss"] != modulated["omega_0.01_published"]["train_loss"]
        np.testing.assert_allclose(double["train_loss"], modulated["omega_0.01_published"]["train_loss"], rtol=1e-3)


def beginning(result, seeds, fewer):
    """What a piece would have returned for fewer seeds: no seed depends on another."""
    if isinstance(result, dict):
        return {key: beginning(value, seeds, fewer) for key, value in result.items()}
    return result[:fewer] if isinstance(result, list) and len(result) == seeds else result
