"""Table 8: spectral seeding on a second task, with couplings learning, and in a larger network."""

from __future__ import annotations

from typing import Any

from phasegrad_paper.studies.arms import Arm
from phasegrad_paper.studies.conditions import SUCCESS_NOTE, Condition, Conditions, succeeded
from phasegrad_paper.studies.rules import below, every
from phasegrad_paper.studies.study import Claim, Study

SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "ou": ("/o u/, frequencies, 2+5+2", {"task": "ou", "seeds": 50}),
    "coupling": ("/a i/, couplings, 2+5+2", {"learn": "coupling", "seeds": 50}),
    "hidden_8": ("/a i/, frequencies, 2+8+2", {"hidden": 8, "seeds": 50}),
}
STARTS = ("random", "spectral", "anti-spectral")


def _condition(setting: str, start: str) -> Condition:
    name, options = SETTINGS[setting]
    arm = Arm(**options, start=start, evaluate_every=200)
    if start == "anti-spectral":
        return Condition(f"{name}, sign reversed", arm)
    return Condition(f"{name}, {start}", arm, ("generalisation", f"{setting}_{start}"), arm.historical("train"))


ARMS = Conditions({f"{setting}_{start}": _condition(setting, start) for setting in SETTINGS for start in STARTS})


def _claim(key: str, setting: str, published: str, sentence: str) -> Claim:
    random, spectral, reversed_ = (f"{setting}_{start}" for start in STARTS)
    return Claim(
        key, "Abstract, Table 8", published, sentence, every(ARMS.count(spectral)),
        control=below(ARMS.more_often(reversed_, random), 0),
        variant=every(ARMS.met("under the edge leak", (random, spectral))),
        beside=(ARMS.mean(spectral), ARMS.count(random), ARMS.mean(random, succeeded)),
        controls=(ARMS.count(reversed_), ARMS.mean(reversed_), ARMS.count(spectral, "untrained")),
    )  # fmt: skip


STUDY = Study(
    name="generalisation",
    title="Spectral seeding elsewhere",
    question="Does spectral seeding also work on another task, for couplings, and in a larger network?",
    protocol="Seeds 0 to 49, 200 epochs at 0.001: /o/ against /u/ with frequencies learning; /a/ against /i/ with "
    "couplings learning; /a/ against /i/ in a 2+8+2 network. Control: the spectral seed with its sign reversed.",
    claims=(
        _claim(
            "generalisation-ou", "ou", "19 of 50 (76.5 %) to 50 of 50 (77.9 %)",
            "Spectral seeding succeeds in every seed on /o/ against /u/ as well.",
        ),
        _claim(
            "generalisation-coupling", "coupling", "22 of 50 (81.4 %) to 50 of 50 (84.6 %)",
            "Spectral seeding succeeds in every seed when couplings learn and frequencies stay at the seed.",
        ),
        _claim(
            "generalisation-larger", "hidden_8", "21 of 50 (91.4 %) to 50 of 50 (92.7 %)",
            "Spectral seeding succeeds in every seed of a larger network, 2+8+2.",
        ),
    ),
    plan=ARMS.plan,
    tables=ARMS.tabled("generalisation", "Three settings, 200 epochs", SUCCESS_NOTE),
)  # fmt: skip
