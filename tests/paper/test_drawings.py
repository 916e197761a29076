"""Every drawing, from a hundred seeds down to one: legible, within its frame, the same on every run."""

import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.text import Text
from synthetic_report import drawings

from phasegrad.pictures import COLOURS, picture, side_by_side
from phasegrad_paper.report.drawings import DRAWINGS, draw
from phasegrad_paper.studies import choose

CASES = {"many": (100, None), "some": (7, None), "one": (1, None), "failures": (3, False), "successes": (2, True)}


# Between many and one, and the other way of being all alike, little else is drawn.
SLOW = {"some", "successes"}


@pytest.fixture(
    scope="module", params=[pytest.param(case, marks=pytest.mark.slow if case in SLOW else ()) for case in CASES]
)
def data(request):
    seeds, everyone = CASES[request.param]
    return drawings(seeds, everyone=everyone)


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_is_legible_and_nothing_is_cut_off(name, data):
    figure = draw(name, data[name])
    picture(figure, "svg")
    width, height = figure.get_size_inches()
    assert 3.4 <= width <= 7.2
    assert min(text.get_fontsize() for text in figure.findobj(Text) if text.get_text().strip()) >= 7
    frame = figure.get_tightbbox()
    assert frame.x0 > -0.02
    assert frame.y0 > -0.02
    assert frame.x1 < width + 0.02
    assert frame.y1 < height + 0.02


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if k % 2 else ()) for k, name in enumerate(DRAWINGS)]
)
def test_a_picture_is_the_same_on_every_run_and_under_any_settings(name):
    data = drawings(5)[name]
    figure = draw(name, data)
    first = picture(figure, "svg")
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.hashsalt": None}):
        second = picture(draw(name, data), "svg")
        assert mpl.rcParams["font.size"] == 30
    assert first == second
    assert b"<text" not in first, "words are outlines, so that they look the same everywhere"
    assert b"<dc:date>" not in first
    assert picture(figure, "png").startswith(b"\x89PNG")


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_small_multiples_have_one_panel_each(count):
    data = drawings(4)["mechanism"]
    figure = draw("mechanism", {"panels": data["panels"][:count]})
    assert sum(axes.axison for axes in figure.axes) == count


def test_an_unknown_drawing_is_named():
    with pytest.raises(ValueError, match=r"no drawing 'ablatoin'\. Drawings are schematic"):
        draw("ablatoin", {})


def test_no_two_conditions_share_a_colour():
    assert len(set(COLOURS.values())) == len(COLOURS)


def test_points_of_the_same_height_stand_side_by_side():
    percent = np.array([10.0, 98.0, 98.0, 98.0])
    offsets = side_by_side(percent)
    assert offsets[0] == 0
    np.testing.assert_allclose(np.diff(offsets[1:]), 0.055)
    assert offsets[1:].sum() == pytest.approx(0)
    assert np.abs(side_by_side(np.full(500, 50.0))).max() <= 0.38 + 1e-12


def test_the_figures_of_a_real_study_can_be_drawn():
    (study,) = choose(["finite-beta"])
    outcome = study.assess({name: piece.run() for name, piece in study.plan(2).items()})
    assert outcome.figures
    for figure in outcome.figures:
        assert picture(draw(figure.name, figure.data), "svg")


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[plot\]'"):
        draw("repair", drawings(2)["repair"])
