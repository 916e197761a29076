"""Optional packages: asked for before any work is done, with the extra that brings them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec


def require(packages: Iterable[str], extra: str, purpose: str) -> None:
    """Raise ImportError if one of the packages is not installed; ``purpose`` is the beginning of its sentence."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise ImportError(
            f"{purpose} needs {', '.join(missing)}, which {verb} not installed. "
            f"Install with 'pip install phasegrad[{extra}]'."
        )
