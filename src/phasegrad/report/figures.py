"""Figures as files."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from phasegrad.dynamics import Cost
from phasegrad.equilibrium import Equilibrium
from phasegrad.files import write_whole
from phasegrad.network import Network
from phasegrad.report.drawings.style import FORMATS, picture
from phasegrad.report.drawings.two_phase import two_phase_figure


def draw_two_phase(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: Any, *, beta: float, path: Path
) -> None:
    """Draw the two-phase protocol on one sample of a layered network: settle, nudge, read the gradient.

    Parameters
    ----------
    network, equilibrium, objective, target
        As for `two_phase`; a single sample.
    beta : float
        The nudge.
    path : Path
        Where to write; the ending chooses the format. An SVG keeps its words as text that can be searched.
    """
    ending = format_of(path)
    figure = two_phase_figure(network, equilibrium, objective, target, beta=beta)
    save(path, picture(figure, ending, words_as_text=True))


def format_of(path: Path) -> str:
    """Return the format that the ending of a path asks for, or raise ValueError."""
    ending = path.suffix.lstrip(".").lower()
    if ending not in FORMATS:
        raise ValueError(f"A figure must end in one of {', '.join(FORMATS)}. Got {path.name!r}.")
    return ending


def save(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all."""

    def write(file: IO[bytes]) -> None:
        file.write(content)

    write_whole(path, write)
