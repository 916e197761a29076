"""What a reproduction found: the outcomes of its studies, and what it was made with."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from phasegrad_paper.reproduction.identity import FORMAT, fingerprint, versions
from phasegrad_paper.studies import Judgement, Outcome, Study, Verdict


@dataclass(frozen=True)
class Reproduction:
    """Studies with their outcomes."""

    studies: tuple[Study, ...]
    outcomes: dict[str, Outcome]  # by name of the study
    seeds: int | None = None  # that every study was held to; None if all were used, as published

    @property
    def judgements(self) -> list[Judgement]:
        """All judgements, in order of the studies."""
        return [judgement for study in self.studies for judgement in self.outcomes[study.name].judgements]

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many claims got each verdict."""
        found = Counter(judgement.verdict for judgement in self.judgements)
        return {verdict: found[verdict] for verdict in Verdict}

    @property
    def tested(self) -> int:
        """How many claims could be tested: all but those that cannot be, or whose quantities were not measured."""
        return len(self.judgements) - self.counts[Verdict.UNTESTABLE] - self.counts[Verdict.NOT_MEASURED]

    def as_dict(self) -> dict[str, Any]:
        """Return every figure as plain data; the same for the same code, packages and seeds.

        Strict JSON can hold it: what is not a finite number is None.
        """
        return {
            "format": FORMAT,
            "versions": versions(),
            "sources": fingerprint(),
            "seeds": self.seeds,
            "verdicts": {verdict.value: count for verdict, count in self.counts.items()},
            "studies": {study.name: _study(study, self.outcomes[study.name]) for study in self.studies},
        }


def _study(study: Study, outcome: Outcome) -> Any:
    data = {name: getattr(study, name) for name in ("title", "question", "protocol")} | {
        "claims": [judgement.as_dict() for judgement in outcome.judgements],
        "checks": [check.as_dict() for check in outcome.checks],
        "tables": [asdict(table) for table in outcome.tables],
        "figures": [{"name": figure.name, "caption": figure.caption} for figure in outcome.figures],
        "remarks": outcome.remarks,
        "data": outcome.data,
    }
    return _finite(data)


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
