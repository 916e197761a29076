"""The whole reproduction, as a visitor runs it: every study, few seeds, the page in a browser."""

import json
import subprocess
import sys
from urllib.parse import urlparse

import pytest
from test_claims import documented_verdicts

from phasegrad.studies import STUDIES


def reproduce(place, *more):
    words = [sys.executable, "-m", "phasegrad", "reproduce", "--out", str(place), *more]
    return subprocess.run(words, capture_output=True, text=True, check=False)


#: Studies that take two thirds of the time at any number of seeds; the normal run leaves them out.
LONG = {"identity", "which-parameter", "peers", "mismatch"}


@pytest.mark.parametrize(
    ("seeds", "long"),
    [(2, False), pytest.param(2, True, marks=pytest.mark.slow), pytest.param(None, True, marks=pytest.mark.slow)],
)
def test_every_study_runs_and_the_page_holds_every_claim(seeds, long, tmp_path, window):
    place = tmp_path / "reproduction"
    studies = [study for study in STUDIES if long or study.name not in LONG]
    more = [] if seeds is None else ["--seeds", str(seeds)]
    more += [] if long else [study.name for study in studies]
    first = reproduce(place, *more)
    assert first.returncode == 0, first.stderr
    text = (place / "results.json").read_text(encoding="utf-8")
    results = json.loads(text)
    claims = [claim for study in studies for claim in study.claims]
    assert [claim["key"] for study in results["studies"].values() for claim in study["claims"]] == [
        claim.key for claim in claims
    ]
    measured = [claim for study in results["studies"].values() for claim in study["claims"]]
    documented = documented_verdicts()
    for claim in measured:
        assert claim["measured"]
        assert claim["reason"].endswith(".")
        assert (claim["number"] is None) <= (claim["verdict"] == "not testable here" or seeds is not None)
        few_seeds_may = {"not decided by these data", "not measured"} if seeds else set()
        assert claim["verdict"] in {documented[claim["key"]].value} | few_seeds_may, claim["key"]

    page = window(place / "index.html")
    assert page.complaints == []
    assert {urlparse(url).scheme for url in page.requests} <= {"file", "data"}
    assert page.locator("article.claim").count() == len(claims)
    widths = page.eval_on_selector_all("img", "images => images.map(image => image.alt ? image.naturalWidth : 0)")
    assert len(widths) >= 11
    assert min(widths) > 0
    assert window(place / "index.html", width=360).evaluate("document.documentElement.scrollWidth") <= 360
    assert (place / "index.html").stat().st_size < 6e6

    pieces = {path: path.stat().st_mtime_ns for path in (place / "pieces").iterdir()}
    second = reproduce(place, *more)
    assert second.returncode == 0, second.stderr
    assert (place / "results.json").read_text(encoding="utf-8") == text
    assert {path: path.stat().st_mtime_ns for path in (place / "pieces").iterdir()} == pieces
