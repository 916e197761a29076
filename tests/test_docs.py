"""The pages under docs/: their code runs and prints what they show, and their pictures are those the code draws."""

from pathlib import Path

import pytest
from test_readme import run_examples

import phasegrad as pg
from phasegrad.report.objectives import draw_objectives

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize(
    ("page", "least"),
    [
        ("objectives.md", 4),
        ("your-data.md", 5),
        ("power-grid.md", 2),
        ("scaling.md", 2),
        ("pytorch.md", 6),
        ("images.md", 3),
        ("circuits.md", 1),
        ("hardware.md", 4),
        ("propagation.md", 6),
    ],
)
def test_every_example_runs_and_prints_what_is_shown(page, least, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_examples((DOCS / page).read_text(encoding="utf-8"), page) >= least


def test_the_picture_of_the_objectives_shows_which_one_is_a_tie(tmp_path):
    objectives = [pg.PaperPair(), pg.NearestTarget(), pg.OneHotPhases(), pg.CosineCrossEntropy()]
    draw_objectives(objectives, tmp_path / "objectives.svg")
    drawn = (tmp_path / "objectives.svg").read_text()
    kept = (DOCS / "images" / "objectives.svg").read_text()
    for objective in objectives:
        assert type(objective).__name__ in drawn
        assert type(objective).__name__ in kept
    assert drawn.count("a tie") == kept.count("a tie") == 1


def test_a_picture_of_another_kind_is_refused(tmp_path):
    with pytest.raises(ValueError, match="must end in one of svg, png, pdf"):
        draw_objectives([pg.PaperPair()], tmp_path / "objectives.gif")
