"""Quick pieces and studies made of them, in a module that worker processes can import."""

import os
import time
import warnings
from pathlib import Path

import numpy as np

from phasegrad_paper.studies import Claim, Piece, Study, Table
from phasegrad_paper.studies.measures import Measure, Quantity, Unit
from phasegrad_paper.studies.rules import every


def draw(seed: int, log: str = "", pause: float = 0.0) -> dict:
    """Return a few numbers that JSON must hold exactly, and note in a folder that they were computed."""
    if log:
        Path(log, f"{seed}-{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(pause)
    stream = np.random.default_rng(seed)
    return {"seed": seed, "values": stream.normal(size=5).tolist(), "pair": (1, 2.5), "none": float("nan")}


def fail(seed: int) -> dict:
    raise ZeroDivisionError(f"seed {seed} divides by nothing")


def warn(seed: int) -> int:
    warnings.warn("this is uncertain", stacklevel=1)
    return seed


def not_plain(seed: int) -> set:
    return {seed}


def end_process(seed: int) -> None:
    os._exit(seed)


def swallow_interrupts(seed: int, started: str) -> str:
    """Answer Ctrl-C by returning early, as training does."""
    Path(started).touch()
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        return "half a result"
    return f"whole result {seed}"


def study(name: str, pieces: dict[str, Piece]) -> Study:
    finished = Quantity(
        "number of pieces", lambda results: Measure.share([key in results for key in pieces]), Unit.SHARE
    )
    return Study(
        name=name,
        title=name.title(),
        question="Are there numbers?",
        protocol="None.",
        claims=(Claim(f"{name}-claim", "nowhere", "some", "Numbers are drawn.", every(finished)),),
        plan=lambda _seeds: pieces,
        tables=lambda results: [
            Table("numbers", "Numbers", ("name", "result"), [[key, value] for key, value in results.items()])
        ],
    )


def drawing_study(count: int, log: str = "", pause: float = 0.0, name: str = "numbers") -> Study:
    def piece(seed: int) -> Piece:
        return Piece(f"{name} {seed}", draw, {"seed": seed, "log": log, "pause": pause}, 1.0 + seed % 3)

    return study(name, {f"draw {seed}": piece(seed) for seed in range(count)})
