"""Everything `phasegrad bench` measures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from phasegrad_bench._batch import batch
from phasegrad_bench._foundation import foundation
from phasegrad_bench._learning import learning
from phasegrad_bench._motion import motion
from phasegrad_bench._small import small
from phasegrad_bench._sparse import SIZES, sparse
from phasegrad_bench._tensors import tensors
from phasegrad_paper.reproduction import cpu_seconds_of


def measure(
    rounds: int = 3,
    sizes: Sequence[int] = SIZES,
    folder: Path | None = None,
    progress: Callable[[str], object] | None = None,
) -> dict[str, Any]:
    """Return all figures as plain data: medians of so many rounds, sparse networks of these sizes.

    ``folder`` holds a reproduction whose processor time is given in plain updates, if it is finished; ``progress`` is
    told what is measured next.
    """
    figures: dict[str, Any] = {}
    works: dict[str, tuple[str, Callable[[], Any]]] = {
        "small": ("100 small networks: the plain way, in lanes, by the engine for any network", lambda: small(rounds)),
        "foundation": ("equilibria, gradients and runs in time", foundation),
        "batch": ("a batch of samples on one network", lambda: batch(rounds)),
        "learning": ("mini-batches and the classifier", lambda: learning(rounds)),
        "tensors": ("the layer for PyTorch and the torch engine", lambda: tensors(rounds)),
        "motion": ("one large network in time", motion),
        "sparse": ("large sparse networks", lambda: sparse(tuple(sizes))),
    }
    for name, (words, work) in works.items():
        if progress is not None:
            progress(words)
        figures[name] = work()
    figures["generic"] = figures["small"].pop("generic")
    spent = None if folder is None else cpu_seconds_of(folder)
    plain_updates = None if spent is None else spent / (figures["small"]["plain_us"] * 1e-6)
    figures["reproduce"] = {"cpu_s": spent, "plain_updates": plain_updates}
    return figures
