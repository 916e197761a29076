"""The page and the files beside it: complete, escaped, whole, and what a browser makes of it."""

import csv
import itertools
import re
import subprocess
import sys
from urllib.parse import unquote, urlparse

import pytest
from synthetic_report import reproduction

from phasegrad.report.cells import columns
from phasegrad.report.document import claims_document
from phasegrad.report.drawings import DRAWINGS
from phasegrad.report.page import summary, write_report
from phasegrad.reproduction import Reproduction
from phasegrad.studies import Figure, Outcome, Table, Verdict


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A report as large as the real one: 15 studies, every drawing, a hundred seeds."""
    place = tmp_path_factory.mktemp("report")
    write_report(place, reproduction(15, everything=True))
    return place


def shown(*values):
    return columns(Table("t", "", ("x",), [[value] for value in values]))[0]


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        ((47, 48), ["47", "48"]),
        ((0.943512, 0.83, 1.0), ["0.9435", "0.8300", "1.0000"]),
        ((0.999766, 0.99999726), ["0.99976600", "0.99999726"]),
        ((0.996419, 2.000223), ["0.9964", "2.0002"]),
        ((1.53e-10, 1.0), ["1.5e-10", "1"]),
        ((-0.25, 15.4567), ["−0.25", "15.46"]),
        ((None, float("nan"), 0.0), ["–", "–", "0"]),
        ((True, False), ["yes", "no"]),
        ((float("inf"), 2.5e7), ["∞", "2.5e+07"]),
    ],
)
def test_numbers_have_the_digits_they_need(values, cells):
    assert shown(*values).cells == cells


def test_columns_of_numbers_stand_to_the_right():
    assert shown(1, None, 2.5).numeric
    assert shown("47 of 100", "8 of 100", "–").numeric
    assert not shown("ω only", 3).numeric
    assert not shown(True, False).numeric


def test_the_report_is_complete_and_its_tables_keep_every_digit(folder):
    made = reproduction(15, everything=True)
    tables = {table.name: table for outcome in made.outcomes.values() for table in outcome.tables}
    figures = {figure.name for outcome in made.outcomes.values() for figure in outcome.figures}
    assert {path.name for path in (folder / "tables").iterdir()} == {f"{name}.csv" for name in tables}
    assert {path.name for path in (folder / "figures").iterdir()} == {
        f"{name}.{ending}" for name in figures for ending in ("svg", "png")
    }
    rows = list(csv.reader((folder / "tables" / "table-0.csv").read_text(encoding="utf-8").splitlines()))
    assert rows[0] == list(tables["table-0"].columns)
    assert rows[1] == ["ω only", "47", "47 of 100", "0.943512", "1.53e-10", "True"]


def test_the_page_says_everything_about_every_claim(folder):
    page = (folder / "index.html").read_text(encoding="utf-8")
    made = reproduction(15, everything=True)
    for study in made.studies:
        assert f'id="study-{study.name}"' in page
        assert f"phasegrad reproduce {study.name}<" in page
        assert study.protocol in page
    for judgement in made.judgements:
        assert page.count(f'id="claim-{judgement.claim.key}"') == 1
        assert page.count(f'href="#claim-{judgement.claim.key}"') == 1
    for words in (
        "94.3\N{NO-BREAK SPACE}%",
        "p = 1.5e-10",
        "92 of 100",
        "not at chance",
        "within 6 points of 0",
        "variant in which",
    ):
        assert words in page
    assert "&lt;both&gt; &amp; more" in page
    assert "<both>" not in page
    assert "we correct figures, not people" in page
    assert "numpy" in page
    assert "Provisional" not in page
    assert not re.search(r"(src|href)=.https?:", page)


def test_the_report_lists_the_claims_in_the_words_of_their_rules(folder):
    made = reproduction(15, everything=True)
    text = (folder / "claims.md").read_text(encoding="utf-8")
    assert text == claims_document(made.studies, {j.claim.key: j.verdict for j in made.judgements})
    assert text.count(made.studies[0].claims[0].asks) >= 1
    assert text.count("\n| ") == len(made.judgements) + len(made.studies)


def test_the_page_is_light(folder):
    assert (folder / "index.html").stat().st_size < 3e6


def test_few_seeds_make_a_provisional_page(tmp_path):
    page = write_report(tmp_path, reproduction(seeds=3)).read_text(encoding="utf-8")
    assert "Only 3 seeds were" in page
    assert "Only 1 seed was" in write_report(tmp_path, reproduction(seeds=1)).read_text(encoding="utf-8")


def test_the_summary_counts_in_two_sentences():
    made = reproduction(1)
    assert summary(made) == (
        "3 claims of the paper were tested in 1 study, each beside the published figure and the control that decides "
        "it. Of these, 1 is reproduced; 1 holds only under a historical variant; 1 holds, but a control changes its "
        "meaning."
    )
    assert sum(reproduction(4).counts[verdict] for verdict in Verdict) == 12


def test_a_second_report_is_identical_and_takes_away_what_no_longer_belongs(tmp_path):
    write_report(tmp_path, reproduction(3))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for stale in ("tables/old.csv", "figures/old.svg", "figures/old.png", "figures/.repair.svg.abcd1234.part"):
        (tmp_path / stale).write_text("stale")
    (tmp_path / "figures" / "notes.txt").write_text("mine")
    write_report(tmp_path, reproduction(3))
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after.pop(tmp_path / "figures" / "notes.txt") == b"mine"
    assert after == before


@pytest.mark.parametrize("kind", ["table", "figure"])
def test_two_of_the_same_name_are_refused(tmp_path, kind):
    made = reproduction(1)
    outcome = made.outcomes["study-0"]
    tables = outcome.tables * (1 + (kind == "table"))
    figures = outcome.figures * (1 + (kind == "figure"))
    doubled = Reproduction(made.studies, {"study-0": Outcome(outcome.judgements, tables, figures)})
    with pytest.raises(ValueError, match=f"Every {kind} needs a name of its own"):
        write_report(tmp_path, doubled)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_figure_is_named(tmp_path):
    made = reproduction(1)
    outcome = Outcome([], [], [Figure("pie", "", "", {})])
    with pytest.raises(ValueError, match="no drawing 'pie'"):
        write_report(tmp_path, Reproduction(made.studies, {"study-0": outcome}))


def test_without_jinja2_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install phasegrad\[report\]"):
        write_report(tmp_path, reproduction(1))


def test_the_report_can_be_imported_without_loading_what_it_needs_to_draw():
    code = "import sys, phasegrad.report.page; print({'matplotlib', 'jinja2'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "set()"


# What a browser makes of it.


@pytest.fixture
def visit(window, folder):
    return lambda **look: window(folder / "index.html", **look)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_renders_without_complaint_or_outside_request(visit, scheme):
    page = visit(scheme=scheme)
    assert page.title() == "The Phase Is the Gradient, reproduced with phasegrad"
    assert page.locator("h1").is_visible()
    assert page.complaints == []
    assert {urlparse(url).scheme for url in page.requests} <= {"file", "data"}
    assert [url for url in page.requests if url.startswith("file:")] == [page.url]


def test_light_and_dark_differ_and_both_have_contrast(visit):
    """Text reaches the ratio of 4.5 to its background that WCAG asks for at level AA."""
    script = """() => {
      const light = colour => {
        const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map(c => c / 255)
          .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const back = element => {
        for (let e = element; e; e = e.parentElement) {
          const colour = getComputedStyle(e).backgroundColor;
          if (!/, 0\\)$/.test(colour)) return colour;
        }
        return 'rgb(255, 255, 255)';
      };
      const worst = {ratio: 21, text: ''};
      for (const element of document.querySelectorAll('h1,h2,h3,p,a,li,dt,dd,th,td,code,figcaption,.badge')) {
        const pair = [light(getComputedStyle(element).color), light(back(element))].sort();
        const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
        if (ratio < worst.ratio) Object.assign(worst, {ratio, text: element.className + ' ' + element.textContent});
      }
      return {worst, back: back(document.body)};
    }"""
    seen = {scheme: visit(scheme=scheme).evaluate(script) for scheme in ("light", "dark")}
    assert seen["light"]["back"] != seen["dark"]["back"]
    for found in seen.values():
        assert found["worst"]["ratio"] >= 4.5, found["worst"]["text"]


def test_every_link_leads_somewhere(visit, folder):
    page = visit()
    links = page.eval_on_selector_all("a[href]", "links => links.map(link => link.getAttribute('href'))")
    ids = page.eval_on_selector_all("[id]", "elements => elements.map(element => element.id)")
    assert len(ids) == len(set(ids))
    assert len(links) > 50
    for link in links:
        if link.startswith("#"):
            assert unquote(link[1:]) in ids
        else:
            assert (folder / unquote(link)).is_file()
    page.locator(".claims a").last.click()
    assert page.locator("article.claim").last.evaluate("claim => claim.matches(':target')")


def test_every_figure_is_drawn_and_has_words_for_those_who_do_not_see_it(visit):
    images = visit().eval_on_selector_all(
        "img", "images => images.map(image => [image.alt, image.complete, image.naturalWidth])"
    )
    assert len(images) == len(DRAWINGS)
    for words, complete, width in images:
        assert words.strip()
        assert complete
        assert width > 0


def test_the_page_has_landmarks_headings_in_order_and_headed_tables(visit):
    page = visit()
    for landmark in ("main", "nav", "header", "footer"):
        assert page.locator(landmark).count() >= 1
    levels = page.eval_on_selector_all("h1,h2,h3,h4", "all => all.map(heading => Number(heading.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert page.locator("th:not([scope])").count() == 0
    assert page.locator("table").count() == page.locator("[role=region][tabindex='0'] table").count()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#main"
    for badge in page.locator(".badge").all_inner_texts():
        assert re.search("[a-z]{5}", badge)


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_nothing_runs_out_of_the_window(visit, width):
    page = visit(width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_page_can_be_printed_and_shows_whole_tables(visit, tmp_path):
    page = visit(scheme="dark")
    content = page.pdf(path=tmp_path / "page.pdf", format="A4")
    assert content.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) >= 10
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    tall = page.locator(".tall").first
    assert tall.evaluate("box => box.scrollHeight <= box.clientHeight + 1")
