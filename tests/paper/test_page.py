"""The page and the files beside it: complete, escaped, whole, and what a browser makes of it."""

import csv
import dataclasses
import itertools
import re
import subprocess
import sys
from urllib.parse import unquote, urlparse

import numpy as np
import pytest
from synthetic_report import FOUND, reproduction

from phasegrad_paper.report.cells import columns, folded
from phasegrad_paper.report.document import claims_document
from phasegrad_paper.report.drawings import DRAWINGS
from phasegrad_paper.report.findings import decisive_figure, findings
from phasegrad_paper.report.page import summary, write_report
from phasegrad_paper.reproduction import Reproduction
from phasegrad_paper.studies import Figure, Outcome, Table, Verdict
from phasegrad_paper.studies.conditions import COLUMNS, KEY


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A report as large as the real one: 15 studies, every drawing, a hundred seeds."""
    place = tmp_path_factory.mktemp("report")
    write_report(place, reproduction(15, everything=True))
    return place


def shown(*values):
    return columns(("x",), [[value] for value in values])[0]


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
        "3 of 3 claims of the paper were tested in 1 study, each beside the published figure and the control that "
        "decides it. Of all, 1 is reproduced; 1 holds only under a historical variant; 1 holds, but a control changes "
        "its meaning."
    )
    all_verdicts = reproduction(4)
    assert sum(all_verdicts.counts[verdict] for verdict in Verdict) == 12
    untested = all_verdicts.counts[Verdict.UNTESTABLE] + all_verdicts.counts[Verdict.NOT_MEASURED]
    assert untested
    assert summary(all_verdicts).startswith(f"{12 - untested} of 12 claims of the paper were tested in 4 studies")
    assert "contradicted by the paper's own data" in summary(all_verdicts)


class TestFindings:
    def test_they_are_made_of_what_was_measured(self):
        made = reproduction(15, everything=True)
        random = np.array(made.outcomes["spectral"].data["random"]["test"])
        won = int(np.sum(random > 0.6))
        words = " ".join(f"{finding.words} {finding.figures}" for finding in findings(made))
        assert len(findings(made)) == 5
        assert f"{won} of 100 seeds end above 60 %" in words
        assert f"the others score {100 * random[random <= 0.6].mean():.1f} %" in words
        assert "The spectral seed succeeds in 100 of 100, and with its sign reversed in 0 of 100" in words
        assert "at most 1.4e-10" in words
        assert "10.8 points behind" in words
        assert decisive_figure(made).name == "starts"

    @pytest.mark.parametrize("study", FOUND)
    def test_none_rests_on_a_study_that_was_not_run(self, study):
        made = reproduction(15, everything=True)
        rest = tuple(each for each in made.studies if each.name != study)
        fewer = Reproduction(rest, {each.name: made.outcomes[each.name] for each in rest})
        assert len(findings(fewer)) == 5 - {"spectral": 2}.get(study, 1)
        assert study not in {finding.study for finding in findings(fewer)}
        assert (decisive_figure(fewer) is None) == (study == "spectral")

    @pytest.mark.parametrize(
        ("study", "run", "accuracy"),
        [("spectral", "random", 0.9), ("spectral", "anti-spectral", 0.9), ("baselines", "repaired_ai", 0.6)],
    )
    def test_what_the_figures_do_not_bear_out_is_not_said(self, study, run, accuracy):
        made = reproduction(15, everything=True)
        outcome = made.outcomes[study]
        data = {**outcome.data, run: {"test": [accuracy] * 100}}
        changed = {**made.outcomes, study: dataclasses.replace(outcome, data=data)}
        assert len(findings(dataclasses.replace(made, outcomes=changed))) == 4

    def test_a_page_without_them_says_nothing_of_them(self, tmp_path):
        page = write_report(tmp_path, reproduction(2)).read_text(encoding="utf-8")
        assert "What was found" not in page
        assert "Figure 1" in page


class TestFolding:
    def test_key_columns_come_first_and_none_is_lost(self):
        row = ["multi-start, absolute separation", 100, 48.55, "39.2 to 57.6", 46, "37 to 56", *[94.35] * 6]
        table = Table("t", "", COLUMNS, [row], "", KEY)
        parts = folded(table)
        assert len(parts) == 2
        assert {*KEY} <= {column.heading for column in parts[0].columns}
        shown = [column.heading for part in parts for column in part.columns[1:]]
        assert sorted(shown) == sorted(COLUMNS[1:])
        assert [part.columns[0].heading for part in parts] == ["condition", "condition"]
        order = [COLUMNS.index(column.heading) for column in parts[0].columns]
        assert order == sorted(order)

    def test_a_table_that_fits_is_whole_and_a_single_wide_column_stays(self):
        small = folded(Table("t", "", ("seed", "test"), [[1, 0.5]]))
        assert [part.width for part in small] == ["small"]
        wide = folded(Table("t", "", ("check", "rule"), [["words " * 60, "x" * 200]]))
        assert [len(part.columns) for part in wide] == [2]
        assert wide[0].width == "large"
        assert len(folded(Table("t", "", ("only",), [["a"]]))) == 1


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
    with pytest.raises(ImportError, match=r"pip install '\.\[report\]'"):
        write_report(tmp_path, reproduction(1))


def test_the_report_can_be_imported_without_loading_what_it_needs_to_draw():
    code = "import sys, phasegrad_paper.report.page; print({'matplotlib', 'jinja2'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "set()"


# What a browser makes of it.


@pytest.fixture
def visit(window, folder):
    return lambda **look: window(folder / "index.html", **look)


@pytest.fixture(scope="module")
def opened(browser, folder):
    """One window for all tests that need no fresh one: the page is large, and loading it is most of the work."""
    context = browser.new_context()
    page = context.new_page()
    page.goto((folder / "index.html").as_uri())
    yield page
    context.close()


@pytest.fixture
def page(opened):
    """The page as it is when it has just been opened, in a light window of 1280 x 900."""
    opened.set_viewport_size({"width": 1280, "height": 900})
    opened.emulate_media(color_scheme="light", media="screen")
    opened.evaluate("location.hash = 'verdict=all'")
    opened.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = false; }); scrollTo(0, 0)")
    return opened


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_renders_without_complaint_or_outside_request(visit, scheme):
    page = visit(scheme=scheme)
    assert page.title() == "The Phase Is the Gradient, reproduced with phasegrad"
    assert page.locator("h1").is_visible()
    assert page.complaints == []
    assert {urlparse(url).scheme for url in page.requests} <= {"file", "data"}
    assert [url for url in page.requests if url.startswith("file:")] == [page.url]


def test_light_and_dark_differ_and_both_have_contrast(page):
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
      const words = 'h1,h2,h3,p,a,li,dt,dd,th,td,code,summary,button,figcaption,.badge';
      for (const element of document.querySelectorAll(words)) {
        const pair = [light(getComputedStyle(element).color), light(back(element))].sort();
        const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
        if (ratio < worst.ratio) Object.assign(worst, {ratio, text: element.className + ' ' + element.textContent});
      }
      return {worst, back: back(document.body)};
    }"""
    seen = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        seen[scheme] = page.evaluate(script)
    assert seen["light"]["back"] != seen["dark"]["back"]
    for found in seen.values():
        assert found["worst"]["ratio"] >= 4.5, found["worst"]["text"]


def test_every_link_leads_somewhere(page, folder):
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
    assert page.locator("article.claim").last.is_visible()


def test_every_figure_is_drawn_and_has_words_for_those_who_do_not_see_it(page):
    images = page.eval_on_selector_all(
        "img", "images => images.map(image => [image.alt, image.complete, image.naturalWidth])"
    )
    assert len(images) == len(DRAWINGS)
    for words, complete, width in images:
        assert words.strip()
        assert complete
        assert width > 0


def test_the_page_has_landmarks_headings_in_order_and_headed_tables(page):
    for landmark in ("main", "nav", "header", "footer"):
        assert page.locator(landmark).count() >= 1
    levels = page.eval_on_selector_all("h1,h2,h3,h4", "all => all.map(heading => Number(heading.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert page.locator("th:not([scope])").count() == 0
    assert page.locator("table").count() == page.locator("[role=region][tabindex='0'] table").count()
    page.locator("body").click(position={"x": 2, "y": 2})
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#main"
    for badge in page.locator(".badge").all_text_contents():
        assert re.search("[a-z]{5}", badge)


@pytest.mark.parametrize("width", [360, 390, 768, 1280, 1440])
def test_no_table_is_cut_off_and_nothing_runs_out_of_the_window(page, width):
    page.set_viewport_size({"width": width, "height": 844})
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    cut = page.eval_on_selector_all(
        ".scroll", "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth + 1).map(box => box.ariaLabel)"
    )
    assert cut == []
    lost = "cells => cells.filter(cell => cell.getClientRects().length === 0).length"
    assert page.eval_on_selector_all("td, th", lost) == 0
    assert page.locator("nav a").last.is_visible()
    hints = """boxes => boxes.map(box => [box.scrollWidth > box.clientWidth + 1,
      getComputedStyle(box.nextElementSibling, '::before').content.includes('sideways')])"""
    assert all(cut == said for cut, said in page.eval_on_selector_all(".card.wide", hints))


def test_the_first_screen_shows_the_findings_and_the_figure(page):
    boxes = [page.locator(name).bounding_box() for name in ("#findings ol", "#figure-starts img", ".tally")]
    for box in boxes:
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= 900
        assert box["x"] + box["width"] <= 1280
    assert page.locator("#findings li").count() == 5
    assert page.locator("#figure-starts figcaption strong").inner_text() == "Figure 1."
    numbers = page.eval_on_selector_all("figcaption strong", "all => all.map(each => each.textContent)")
    assert numbers == [f"Figure {k}." for k in range(1, len(DRAWINGS) + 1)]


class TestFilters:
    @staticmethod
    def shown(page):
        kinds = "rows => rows.filter(row => row.checkVisibility()).map(row => row.dataset.verdict)"
        return page.eval_on_selector_all("tr[data-verdict]", kinds)

    def test_a_verdict_is_a_button_that_filters_and_the_address_knows(self, page):
        everything = self.shown(page)
        button = page.locator(".tally li[data-kind='contradicted'] button")
        button.focus()
        page.keyboard.press("Enter")
        assert button.get_attribute("aria-pressed") == "true"
        assert set(self.shown(page)) == {"contradicted"}
        assert page.url.endswith("#verdict=contradicted")
        count = everything.count("contradicted")
        assert f"{count} of {len(everything)} claims are shown" in page.locator("[role=status]").inner_text()
        page.locator(".tally li[data-kind='missed'] button").click()
        assert set(self.shown(page)) == {"contradicted", "missed"}
        groups = page.locator(".claims tbody").evaluate_all("all => all.filter(each => each.checkVisibility()).length")
        assert 0 < groups < page.locator(".claims tbody").count()
        page.get_by_role("button", name="Show all").click()
        assert self.shown(page) == everything
        page.go_back()
        assert set(self.shown(page)) == {"contradicted", "missed"}

    def test_an_address_with_verdicts_opens_filtered_and_one_with_nonsense_opens_whole(self, visit):
        page = visit(fragment="#verdict=missed+nonsense")
        assert set(self.shown(page)) == {"missed"}
        pressed = page.locator(".tally button[aria-pressed='true']")
        assert pressed.count() == 1
        assert "verdict=" in page.url
        page.evaluate("location.hash = 'verdict=nonsense'")
        page.wait_for_function("() => document.querySelectorAll('tr[data-verdict][hidden]').length === 0")
        assert len(set(self.shown(page))) == len(Verdict)

    def test_a_link_to_a_claim_that_is_filtered_away_shows_it(self, page):
        page.locator(".tally li[data-kind='missed'] button").click()
        assert set(self.shown(page)) == {"missed"}
        hidden = page.locator("article.claim[data-verdict='reproduced']").first
        page.evaluate("id => { location.hash = id; }", hidden.get_attribute("id"))
        page.wait_for_function("id => document.getElementById(id).checkVisibility()", arg=hidden.get_attribute("id"))
        assert len(set(self.shown(page))) == len(Verdict)

    def test_without_javascript_everything_is_shown_and_nothing_pretends_to_be_a_button(self, visit):
        page = visit(scripts=False)
        assert page.locator("button").count() == 0
        assert page.locator("article.claim").last.is_visible()
        assert page.locator("td").last.is_visible()
        assert page.locator("details:not([open])").count() == 0


class TestFolds:
    def test_studies_are_lines_that_open(self, page):
        studies = page.locator("details.study")
        assert studies.count() == 15
        summary = studies.nth(2).locator("> summary")
        assert "✓" in studies.nth(0).locator("> summary").inner_text()
        summary.focus()
        page.keyboard.press("Enter")
        assert studies.nth(2).locator("article.claim").first.is_visible()

    def test_an_address_opens_what_it_leads_to_and_nothing_else(self, visit):
        page = visit(fragment="#claim-study-7-1")
        for place in ("#claim-study-7-1", "#study-study-7", "#table-arms-7"):
            page.evaluate("place => { location.hash = place; }", place)
            page.wait_for_function("place => document.querySelector(place).checkVisibility()", arg=place)
            assert page.locator("details.study[open]").count() == 1
            assert page.locator("#study-study-7 article.claim").first.is_visible()
            page.wait_for_function("p => Math.abs(document.querySelector(p).getBoundingClientRect().y) < 60", arg=place)

    def test_a_link_followed_twice_opens_twice(self, page):
        link, fold = page.locator("nav a[href='#study-study-6']"), page.locator("#study-study-6 > details")
        for _ in range(2):
            link.click()
            page.locator("#study-study-6 > details[open]").wait_for()
            fold.evaluate("fold => { fold.open = false; }")


def test_figures_are_drawn_for_the_dark_and_printed_for_the_light(page):
    sources = "images => images.map(image => [image.currentSrc, image.src])"
    for scheme, media, light in (("light", "screen", True), ("dark", "screen", False), ("dark", "print", True)):
        page.emulate_media(color_scheme=scheme, media=media)
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        shown = page.eval_on_selector_all("figure img", sources)
        assert {source == given for source, given in shown} == {light}


def test_the_page_can_be_printed_and_shows_everything(visit, tmp_path):
    page = visit(scheme="dark")
    content = page.pdf(path=tmp_path / "page.pdf", format="A4")
    assert content.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) >= 10
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    unseen = "all => all.filter(each => !each.checkVisibility({contentVisibilityAuto: true})).length"
    assert page.eval_on_selector_all("article.claim, td, figure", unseen) == 0
