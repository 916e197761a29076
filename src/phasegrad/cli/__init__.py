"""The command line: `phasegrad`, whose commands are imported when they run."""

from __future__ import annotations

import sys
from contextlib import suppress

from phasegrad.cli.signals import STOPPED, heeding_signals, leave_in_peace


def main() -> None:
    """Run the command line; errors that a user can mend are one sentence, not a traceback."""
    status: int | str | None = STOPPED
    with heeding_signals() as stops, suppress(KeyboardInterrupt):
        from phasegrad.cli.application import run  # signals are heeded before anything that takes time is imported

        status = run(stops)
    leave_in_peace()
    sys.exit(stops.status if status == STOPPED else status)
