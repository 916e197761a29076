"""How a verdict is shown, on the page and in the terminal."""

from __future__ import annotations

from typing import NamedTuple

from phasegrad_paper.studies import Verdict


class Badge(NamedTuple):
    """A verdict as it is shown."""

    kind: str  # the class that colours it on the page
    mark: str  # a sign beside the words, for the eye
    short: str  # the verdict in two or three words
    colour: str  # in the terminal
    one: str  # how a sentence goes on after one claim
    several: str  # and after several


BADGES = {
    Verdict.REPRODUCED: Badge("reproduced", "✓", "reproduced", "green", "is reproduced", "are reproduced"),
    Verdict.HISTORICAL: Badge(
        "historical", "↺", "historical variant only", "cyan", "holds only under a historical variant",
        "hold only under a historical variant",
    ),
    Verdict.CONTROLLED: Badge(
        "controlled", "≠", "a control changes it", "yellow", "holds, but a control changes its meaning",
        "hold, but a control changes their meaning",
    ),
    Verdict.NOT_REPRODUCED: Badge("missed", "✕", "not reproduced", "red", "is not reproduced", "are not reproduced"),
    Verdict.CONTRADICTED: Badge(
        "contradicted", "⇄", "own data contradict it", "bright_red", "is contradicted by the paper's own data",
        "are contradicted by the paper's own data",
    ),
    Verdict.UNDECIDED: Badge(
        "undecided", "?", "not decided", "magenta", "is not decided by these data", "are not decided by these data"
    ),
    Verdict.NOT_MEASURED: Badge("unmeasured", "○", "not measured", "bright_black", *["could not be measured"] * 2),
    Verdict.UNTESTABLE: Badge("untestable", "–", "not testable here", "bright_black", *["cannot be tested here"] * 2),
}  # fmt: skip
