"""Writing results so that a reader never sees half a file."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any


def write_json(path: Path, data: Any) -> None:
    """Write ``data`` as JSON beside its place and move it there when it is complete.

    Raises OSError with a sentence that names the path; what was there before is then still there.
    """
    text = json.dumps(data, indent=1, allow_nan=True) + "\n"
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=path.name, delete=False, encoding="utf-8"
        ) as file:
            temporary = file.name
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise OSError(f"Could not write {path}: {error.strerror}. Choose another place or make room there.") from error
