"""The pages under docs/: their code runs and prints what they show, and their pictures are those the code draws."""

import re
from pathlib import Path

import matplotlib
import pytest
from page_examples import run_examples

import phasegrad as pg
from phasegrad_paper.report.objectives import draw_objectives

DOCS = Path(__file__).parents[2] / "docs"


#: Blocks of this page are signatures.
SIGNATURES = "architecture.md"
PAGES = sorted(
    path.name
    for path in DOCS.glob("*.md")
    if path.name != SIGNATURES and "```python" in path.read_text(encoding="utf-8")
)


def test_pages_that_teach_have_examples():
    assert {"index.md", "first-network.md", "gradients.md", "own-cost.md", "training.md", "your-data.md"} <= set(PAGES)
    assert len(PAGES) >= 17


@pytest.mark.parametrize("page", PAGES)
def test_every_example_runs_and_prints_what_is_shown(page, tmp_path, monkeypatch):
    """And draws what the page shows: pictures beside it that are stored nowhere are written by its code."""
    monkeypatch.chdir(tmp_path)
    text = (DOCS / page).read_text(encoding="utf-8")
    with matplotlib.rc_context({"backend": "agg"}):
        assert run_examples(text, page) >= 1
    shown = re.findall(r"!\[[^\]]+\]\(([\w/.-]+)\)", text)
    assert all((DOCS / name).exists() or (tmp_path / name).exists() for name in shown)


def test_the_picture_of_the_objectives_shows_which_one_is_a_tie(tmp_path):
    objectives = [
        pg.objectives.PaperPair(),
        pg.objectives.NearestTarget(),
        pg.objectives.OneHotPhases(),
        pg.CosineCrossEntropy(),
    ]
    draw_objectives(objectives, tmp_path / "objectives.svg")
    drawn = (tmp_path / "objectives.svg").read_text()
    kept = (DOCS / "images" / "objectives.svg").read_text()
    for objective in objectives:
        assert type(objective).__name__ in drawn
        assert type(objective).__name__ in kept
    assert drawn.count("a tie") == kept.count("a tie") == 1


def test_a_picture_of_another_kind_is_refused(tmp_path):
    with pytest.raises(ValueError, match="must end in one of svg, png, pdf"):
        draw_objectives([pg.objectives.PaperPair()], tmp_path / "objectives.gif")
