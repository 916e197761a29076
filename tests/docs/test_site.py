"""The documentation site: every public name has a page, an example and neighbours; what a browser makes of it."""

import doctest
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlparse

import pytest
from site_hooks import ROOT, hook

import phasegrad as pg

SOURCES = Path(pg.__file__).parent


@pytest.fixture(scope="module")
def reference():
    return hook("reference")


@pytest.fixture(scope="module")
def docstrings(reference):
    return {name: inspect.cleandoc(value.__doc__ or "") for name, value in reference.public_names().items()}


def neighbours(text):
    """Return the names in the See Also section of a docstring."""
    section = re.search(r"^See Also\n-{8}\n((?:\S.*\n?)+)", text, flags=re.MULTILINE)
    return [line.partition(" : ")[0] for line in section[1].strip().split("\n")] if section else []


def test_every_public_name_belongs_to_one_group(reference):
    names = [name for group in reference.grouped().values() for name in group]
    assert len(names) == len(set(names)) <= 150
    for name in pg.__all__:
        module = getattr(pg, name)
        assert name in names or inspect.ismodule(module), name
        if inspect.ismodule(module):
            assert {reference.full_name(each) for each in module.__all__} <= {*names}


def test_every_public_name_has_an_example_and_neighbours_that_exist(reference, docstrings):
    full_name = reference.full_name
    for name, text in docstrings.items():
        assert doctest.DocTestParser().get_examples(text), f"{name} has no example"
        found = neighbours(text)
        assert found, f"{name} has no See Also"
        assert all(full_name(each) not in (None, name) for each in found), f"See Also of {name} names {found}"


def test_every_public_name_has_a_page_of_its_own(reference):
    pages = reference.pages()
    paths = [reference.page_of(name) for name in reference.public_names()]
    assert set(paths) <= set(pages)
    # On some systems Task.md and task.md are one file.
    assert len({path.lower() for path in pages}) == len(pages)
    for name, value in reference.public_names().items():
        assert f"::: {reference.source_of(name, value)}\n" in pages[reference.page_of(name)]
        assert f"heading: phasegrad.{name}\n" in pages[reference.page_of(name)]


def test_sources_are_where_names_say(reference):
    for name, value in reference.public_names().items():
        module, _, short = reference.source_of(name, value).rpartition(".")
        found = getattr(importlib.import_module(module), short)
        assert inspect.unwrap(found) is inspect.unwrap(value) if callable(value) else found is value, name


def test_names_in_backquotes_become_links_and_code_stays_code(reference):
    code = "```python\n`train`\n```\n\n    `train`\n"
    page = f"# `train`\n\nUse `train`, `pg.networks.ring(5)` or `nothing`.\n\n{code}\nAnd `train`.\n"
    linked = reference.linked(page)
    assert (
        "[`train`](reference/training/train.md), [`pg.networks.ring(5)`](reference/networks/ring.md) or `nothing`"
        in linked
    )
    assert linked.count("](") == 2
    assert linked.startswith("# `train`\n")


def test_docstrings_link_to_pages_and_never_to_themselves():
    links = hook("docstrings").Links()
    text = "As `train`.\n\na, b\n    As for `Plan`.\n\nSee Also\n--------\nPlan : A plan.\n\n>>> `Plan`\n"
    shown = links.linked(text, "phasegrad.training._train.train")
    assert "As `train`." in shown
    assert shown.count("    As for [`Plan`][phasegrad.training._plan.Plan].") == 2
    assert "- [`Plan`][phasegrad.training._plan.Plan]: A plan." in shown
    assert ">>> `Plan`" in shown


def test_the_page_of_the_command_line_has_every_command_and_option():

    from phasegrad.cli.application import commands as every_command

    page = hook("commands").page()
    sections = dict(re.findall(r"## phasegrad (\S+)\n(.*?)(?=\n## |\Z)", page, flags=re.DOTALL))
    commands = every_command()
    assert set(sections) == set(commands)
    for name, command in commands.items():
        for parameter in command.params:
            if parameter.param_type_name == "option" and parameter.name != "help":
                assert f"`{parameter.opts[-1]}`" in sections[name], (name, parameter.opts)


def test_pictures_have_a_version_for_the_dark():
    pictures = hook("pictures")
    assert pictures.twice("![a b](images/x.svg) ![c](y.png)") == (
        "![a b](images/x.svg#only-light)![a b](images/x-dark.svg#only-dark) ![c](y.png)"
    )


def test_the_navigation_names_every_page():
    """mkdocs says the same, but only when the site is built."""
    named = set(re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert named == {path.name for path in (ROOT / "docs").glob("*.md")}


def build(place, *, root=ROOT):
    pytest.importorskip("mkdocs")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(place)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(SOURCES.parent)}
    return subprocess.run(words, cwd=root, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    place = tmp_path_factory.mktemp("site")
    done = build(place)
    assert done.returncode == 0, done.stderr
    return place


# What is wider than the page, and whether it says that it scrolls; and how wide the page itself is.
WIDE = """() => {
  const wide = (box) => box.scrollWidth > box.clientWidth + 1;
  const says = (box) => getComputedStyle(box, "::before").content.includes("Scroll");
  const marked = (box) => parseFloat(getComputedStyle(box).borderRightWidth) > 1;
  const all = (words) => [...document.querySelectorAll(words)];
  const tables = all(".md-typeset__scrollwrap").filter((box) => wide(box) && !(says(box) && marked(box)));
  const codes = all(".md-typeset pre > code").filter((code) => wide(code) && !marked(code));
  const unwrapped = all(".md-content table").filter((table) => !table.closest(".md-typeset__scrollwrap"));
  return [document.documentElement.scrollWidth, tables.length, codes.length, unwrapped.length];
}"""


@pytest.mark.slow
def test_no_page_is_cut_off_or_fetches_anything(site, browser):
    """Every page of the site, on a desk and on a phone: about two hundred pages, twice."""
    pages = sorted(path for path in site.rglob("*.html") if path.name != "404.html")
    assert len(pages) > 170
    for width in (1280, 390):
        context = browser.new_context(viewport={"width": width, "height": 844})
        page = context.new_page()
        requests, complaints = [], []
        page.on("request", lambda request, requests=requests: requests.append(request.url))
        page.on("console", lambda message, complaints=complaints: complaints.append(message.text))
        page.on("pageerror", lambda error, complaints=complaints: complaints.append(str(error)))
        for path in pages:
            page.goto(path.as_uri())
            if path.parent.name == "lab":
                continue
            page.wait_for_function("document.body.dataset.marked === 'yes'")
            assert page.evaluate(WIDE) == [width, 0, 0, 0], (width, path.relative_to(site))
        assert {urlparse(url).scheme for url in requests} <= {"file", "data", "about", "blob"}
        assert complaints == []
        context.close()


@pytest.mark.slow
def test_search_works_from_a_folder(site, window):
    page = window(site / "index.html")
    page.click(".md-search__input")
    page.keyboard.type("two_phase", delay=50)
    page.wait_for_selector(".md-search-result__link")
    found = page.eval_on_selector_all(".md-search-result__link", "links => links.map(link => link.href)")
    assert any("reference/gradients/two_phase.html" in link for link in found)
    assert {urlparse(url).scheme for url in page.requests} <= {"file", "data", "about"}


@pytest.mark.slow
def test_a_broken_link_stops_the_build(tmp_path):
    for name in ("docs", "src"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    page = tmp_path / "docs" / "units.md"
    page.write_text(page.read_text(encoding="utf-8") + "\n[nowhere](nowhere.md)\n", encoding="utf-8")
    done = build(tmp_path / "site", root=tmp_path)
    assert done.returncode != 0
    assert "nowhere.md" in done.stderr
