"""What a study is: claims with their published figures and rules, the pieces of work, and what they show.

A study declares; `phasegrad_paper.reproduction` runs its pieces and keeps their results; `phasegrad_paper.report`
draws and writes. Verdicts and all sentences about a claim are made here, from its rules and the measured values alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from phasegrad_paper.studies.measures import Measure, Quantity, Results
from phasegrad_paper.studies.piece import Piece
from phasegrad_paper.studies.rules import Rule, State, Tested, bounds_of, evaluate, state_of


class Verdict(Enum):
    """What became of a claim."""

    REPRODUCED = "reproduced"
    HISTORICAL = "reproduced only under a historical variant"
    CONTROLLED = "reproduced, but a control changes its meaning"
    NOT_REPRODUCED = "not reproduced"
    CONTRADICTED = "contradicted by the paper's own data"
    UNDECIDED = "not decided by these data"
    NOT_MEASURED = "not measured"
    UNTESTABLE = "not testable here"


@dataclass(frozen=True)
class Claim:
    """One claim of the paper, or a check of ours."""

    key: str  # a short name, unique among all claims
    where: str  # where it stands in the paper; empty for a check of ours
    published: str  # the published figures
    sentence: str  # the claim, in one sentence of our own
    rule: Rule | None = None  # what must hold as the paper describes its experiment; None if it cannot be tested here
    control: Rule | None = None  # what gives the claim another meaning if it holds as well
    variant: Rule | None = None  # what must hold under a historical variant, if the rule does not
    own: Rule | None = None  # what the paper's own tables and stored results must show, whatever comes out here
    beside: tuple[Quantity, ...] = ()  # what else to measure
    controls: tuple[Quantity, ...] = ()  # what else the controls show
    note: str = ""  # what a reader should know that is not measured

    @property
    def asks(self) -> str:
        """How the verdict is found, in one sentence."""
        if self.rule is None:
            return "Not testable here."
        words = f"{'Reproduced' if self.where else 'Kept'} if {_asked(self.rule)}"
        if self.control is not None:
            words += f"; a control changes its meaning if {_asked(self.control)}"
        if self.variant is not None:
            words += f"; otherwise only under a historical variant if {_asked(self.variant)}"
        if self.own is not None:
            words += f"; contradicted by the paper's own data unless {_asked(self.own)}"
        return f"{words}."

    def judge(self, results: Results, partial: Collection[str] = ()) -> Judgement:
        """Measure all it asks for, in the results of the pieces of its study, some of them perhaps of fewer seeds."""
        asked = (self.rule, self.control, self.variant, self.own)
        rule, control, variant, own = (evaluate(each, results, partial) for each in asked)
        seen = {quantity: quantity.measure(results, partial) for quantity in (*self.beside, *self.controls)}
        return Judgement(self, rule, control, variant, own, seen)


def check(key: str, sentence: str, rule: Rule) -> Claim:
    """Return a check of ours."""
    return Claim(key, "", "", sentence, rule)


def _asked(rule: Rule) -> str:
    """Return a rule in words; quantities with the same bound share it."""
    together: dict[str, list[str]] = {}
    for bound in bounds_of(rule):
        together.setdefault(bound.asked, []).append(f"the {bound.quantity.words}")
    parts = [f"{' and '.join(words)} {'is' if len(words) == 1 else 'are'} {asked}" for asked, words in together.items()]
    return ", and ".join(parts)


@dataclass(frozen=True)
class Judgement:
    """A claim with what was measured; everything said about it follows from that."""

    claim: Claim
    rule: tuple[Tested, ...]  # the bounds of its rule, control, variant and own data with their measures
    control: tuple[Tested, ...] = ()
    variant: tuple[Tested, ...] = ()
    own: tuple[Tested, ...] = ()
    seen: dict[Quantity, Measure] = field(default_factory=dict)  # what else was measured

    @property
    def verdict(self) -> Verdict:
        """The verdict: the paper's own data first; then the rule, and a control, if it holds, or else the variant."""
        if not self.rule:
            return Verdict.UNTESTABLE
        if state_of(self.own) is State.FAILS:
            return Verdict.CONTRADICTED
        decided = state_of(self.rule)
        if decided is State.FAILS and self.variant:
            return _AFTER_FAILURE.get(state_of(self.variant), Verdict.UNDECIDED)
        if decided is State.HOLDS and self.control:
            return _AFTER_SUCCESS.get(state_of(self.control), Verdict.UNDECIDED)
        return _ALONE[decided]

    @property
    def kept(self) -> bool | None:
        """Whether the measured values, be they of few seeds, keep the rule; None if there are none."""
        measured = [each.kept for each in self.rule if each.state is not State.UNMEASURED]
        return all(measured) if measured else None

    @property
    def number(self) -> float | None:
        """The figure that the verdict rests on; None where nothing could be measured."""
        values = [each.measure.value for each in self.rule if each.state is state_of(self.rule)]
        return values[0] if values and math.isfinite(values[0]) else None

    @property
    def decisive(self) -> str:
        """The figures that the verdict rests on: those of its rule, or of the paper's own data."""
        return _figures(self.own if self.verdict is Verdict.CONTRADICTED else self.rule, (), {}) or "nothing"

    @property
    def measured(self) -> str:
        """What came out, figure by figure."""
        return _figures((*self.rule, *self.variant, *self.own), self.claim.beside, self.seen) or "nothing"

    @property
    def controlled(self) -> str:
        """What the controls show; empty where there is none."""
        return _figures(self.control, self.claim.controls, self.seen)

    @property
    def reason(self) -> str:
        """Why the verdict is what it is: the bounds that decided, with their measures."""
        if not self.rule:
            return self.claim.note
        decided = state_of(self.rule)
        sentences = [_sentence(each, _RULE) for each in self.rule if each.state is decided]
        if decided is State.HOLDS:
            sentences += [_sentence(each, _CONTROL) for each in self.control]
        elif decided is State.FAILS:
            sentences += [_sentence(each, _VARIANT) for each in self.variant]
        sentences += [_sentence(each, _OWN) for each in self.own if each.state is state_of(self.own)]
        return " ".join(sentences)

    def as_dict(self) -> dict[str, Any]:
        """Return the judgement as plain data."""
        parts = (*self.rule, *self.control, *self.variant, *self.own)
        tested = {each.bound.quantity: each.measure for each in parts}
        claim, measures = self.claim, tested | self.seen
        return {
            "key": claim.key, "claim": claim.sentence, "where": claim.where, "published": claim.published,
            "rule": claim.asks, "measured": self.measured, "control": self.controlled, "verdict": self.verdict.value,
            "reason": self.reason, "note": claim.note, "number": self.number,
            "measures": [{"quantity": quantity.words, **asdict(measure)} for quantity, measure in measures.items()],
        }  # fmt: skip


# Verdicts by the state of the rule alone; of the control, if the rule holds; of the variant, if it fails.
_ALONE = {
    State.HOLDS: Verdict.REPRODUCED,
    State.FAILS: Verdict.NOT_REPRODUCED,
    State.UNDECIDED: Verdict.UNDECIDED,
    State.UNMEASURED: Verdict.NOT_MEASURED,
}
_AFTER_SUCCESS = {State.HOLDS: Verdict.CONTROLLED, State.FAILS: Verdict.REPRODUCED}
_AFTER_FAILURE = {State.HOLDS: Verdict.HISTORICAL, State.FAILS: Verdict.NOT_REPRODUCED}
# How a sentence about a bound ends, by the part that it plays.
_RULE = {
    State.HOLDS: "as asked",
    State.FAILS: "not as asked",
    State.UNDECIDED: "too little data to say whether as asked",
}
_CONTROL = {
    State.HOLDS: "which changes the meaning",
    State.FAILS: "which leaves the meaning as it is",
    State.UNDECIDED: "too little data to say whether that changes the meaning",
}
_VARIANT = {
    State.HOLDS: "as asked of the historical variant",
    State.FAILS: "not as asked of the historical variant either",
    State.UNDECIDED: "too little data to say whether the historical variant is as asked",
}
_OWN = {
    State.HOLDS: "as asked of the paper's own data",
    State.FAILS: "not as asked of the paper's own data",
    State.UNDECIDED: "too little data to say whether the paper's own are as asked",
}


def _sentence(tested: Tested, endings: dict[State, str]) -> str:
    """Return a finding, such as "The largest residual is 8.4e-14, not as asked (at most 2.2e-16)."."""
    quantity = tested.bound.quantity
    if tested.state is State.UNMEASURED:
        return f"There is no value of the {quantity.words}."
    return f"The {quantity.words} is {quantity.text(tested.measure)}, {endings[tested.state]} ({tested.bound.asked})."


def _figures(tested: Iterable[Tested], more: Iterable[Quantity], seen: dict[Quantity, Measure]) -> str:
    figures = [(each.bound.quantity, each.measure) for each in tested] + [(each, seen[each]) for each in more]
    return "; ".join(f"{quantity.words}: {quantity.text(measure)}" for quantity, measure in figures)


@dataclass(frozen=True)
class Table:
    """A table of results; ``name`` is its file name without ending.

    Numbers in its rows stay numbers; text is for names and for figures that belong together, such as "47 of 100". Where
    there is no room for all columns, those named in ``key`` come first.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: list[list[Any]]
    note: str = ""
    key: tuple[str, ...] = ()


@dataclass(frozen=True)
class Figure:
    """A figure to draw: the name of a drawing in `phasegrad_paper.report`, the words around it, and its data.

    ``alternative`` says what the picture shows, for those who do not see it.
    """

    name: str
    caption: str
    alternative: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What a study found: a judgement per claim and per check of ours, what is shown, and every figure per seed."""

    judgements: list[Judgement]
    tables: list[Table]
    figures: list[Figure] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    checks: list[Judgement] = field(default_factory=list)


def _nothing(_results: Results) -> list[Any]:
    return []


@dataclass(frozen=True, kw_only=True)
class Study:
    """One family of claims."""

    name: str  # the word for the command line
    title: str
    question: str  # what it asks, in one sentence
    protocol: str  # data, network, training options and seeds, in a few sentences
    claims: tuple[Claim, ...]
    checks: tuple[Claim, ...] = ()  # checks of ours on the same results
    plan: Callable[[int | None], dict[str, Piece]]  # pieces by name, for so many seeds (None: as published)
    tables: Callable[[Results], list[Table]] = _nothing  # from their results by the same names
    figures: Callable[[Results], list[Figure]] = _nothing
    remarks: tuple[str, ...] = ()  # what else a reader should know, one or two sentences each

    def assess(self, results: Results, seeds: int | None = None, plan: Mapping[str, Piece] | None = None) -> Outcome:
        """Judge every claim by the results of the pieces of so many seeds, and lay out tables and figures.

        ``plan`` is the plan of so many seeds, where the caller already made it.
        """
        partial = set() if seeds is None else self._partial(self.plan(seeds) if plan is None else plan)
        judgements = [claim.judge(results, partial) for claim in self.claims]
        checks = [claim.judge(results, partial) for claim in self.checks]
        tables = self.tables(results)
        if checks:
            rows = [[each.claim.sentence, each.measured, each.claim.asks, each.kept] for each in checks]
            columns = ("check", "measured", "rule", "kept")
            tables = [*tables, Table(f"{self.name}-checks", "Checks of ours", columns, rows)]
        return Outcome(judgements, tables, self.figures(results), dict(results), self.remarks, checks)

    def _partial(self, plan: Mapping[str, Piece]) -> set[str]:
        """Return the names of pieces that a plan of fewer seeds changes or leaves out."""
        now = {name: piece.identity for name, piece in plan.items()}
        return {name for name, piece in self.plan(None).items() if now.get(name) != piece.identity}
