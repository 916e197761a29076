"""The command line in a process of its own."""

import os
import subprocess
import sys

ENVIRONMENT = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}


def run(*words: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "phasegrad", *words]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=120)
