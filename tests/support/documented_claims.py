"""The verdicts as docs/claims.md has them."""

import re
from pathlib import Path

from phasegrad_paper.studies import STUDIES, Verdict

DOCUMENT = (Path(__file__).parents[2] / "docs" / "claims.md").read_text(encoding="utf-8")
CLAIMS = [claim for study in STUDIES for claim in study.claims]


def documented_verdicts():
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", DOCUMENT, flags=re.MULTILINE)
    found = {row[0]: Verdict(row[3]) for row in rows if row[0] not in ("claim", "---")}
    return {claim.key: found[claim.sentence] for claim in CLAIMS}
