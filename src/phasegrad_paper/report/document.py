"""The list of all claims with their rules and verdicts, as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from phasegrad_paper.studies import Study, Verdict

_HEAD = """\
# Claims of the paper and what became of them

Every claim of *The Phase Is the Gradient* that we found, by study, with the rule that judges it and the verdict of
`phasegrad reproduce` on all seeds. The page it writes has for each of them also what was measured, what the controls
show, and the reason. A claim must hold as the paper describes its experiment; where it does not, it may hold under a
historical variant ([edge leak, scaling by all rows, best evaluation](reproducing.md)), and where it does, a control
may change its meaning. Where the paper's own tables or stored results say otherwise, that is the verdict. Claims that
two things are equal are tested for equivalence: the whole 95 % interval of the difference must lie within the stated
bound. What too few seeds cannot decide stays undecided. We correct figures, not people.
"""


def claims_document(studies: Sequence[Study], verdicts: Mapping[str, Verdict]) -> str:
    """Return the list of all claims.

    Parameters
    ----------
    studies : sequence of Study
    verdicts : mapping
        By the key of the claim.
    """
    found = Counter(verdicts[claim.key] for study in studies for claim in study.claims)
    lines = [_HEAD, ", ".join(f"{found[verdict]} {verdict.value}" for verdict in Verdict if found[verdict]) + "."]
    for study in (each for each in studies if each.claims):
        lines += [f"\n## {study.title} (`{study.name}`)\n", "| claim | where | published | verdict | rule |"]
        lines.append("|---|---|---|---|---|")
        for claim in study.claims:
            cells = (claim.sentence, claim.where, claim.published, verdicts[claim.key].value, claim.asks)
            lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines) + "\n"
