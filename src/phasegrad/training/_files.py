"""The state of a training as one file, read without pickle."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from phasegrad._files import write_whole
from phasegrad.training._engine import Progress
from phasegrad.training._history import TrainingState
from phasegrad.training._optimizers import Arrays, Memory

FORMAT = "phasegrad training state"
VERSION = 2


def save_state(path: str | os.PathLike[str], state: TrainingState) -> None:
    """Write a state to one file, whole or not at all; `train` goes on from it bit by bit as if it had not stopped."""
    if not isinstance(state, TrainingState):
        raise TypeError(f"save_state takes the state of a training: give result.state. Got {type(state).__name__}.")
    header = {
        "format": FORMAT,
        "version": VERSION,
        "epoch": state.epoch,
        "streams": list(state.streams),
        "origin": state.origin,
        "has_best": state.best is not None,
    }
    memory = state.progress.memory
    groups = {"parameters": state.parameters, "first": memory.first, "second": memory.second}
    arrays: dict[str, Any] = {
        "steps": memory.steps,
        "phases": state.progress.phases,
        "held_back": state.held_back,
        "waited": state.waited,
    }
    if state.best is not None:
        arrays["best_loss"], groups["best"] = state.best
    arrays |= {f"{group}.{name}": values for group, each in groups.items() for name, values in each.items()}
    text = np.array(json.dumps(header))
    write_whole(Path(path), lambda file: np.savez(file, header=text, **arrays))


def load_state(path: str | os.PathLike[str]) -> TrainingState:
    """Read a state that `save_state` wrote.

    Examples
    --------
    >>> import os, tempfile, phasegrad as pg
    >>> data, network = pg.datasets.xor(), pg.signed_layers(2, 3, 2)
    >>> half = pg.train(network, data, epochs=4, until=2)
    >>> place = os.path.join(tempfile.mkdtemp(), "half.npz")
    >>> pg.save_state(place, half.state)
    >>> rest = pg.train(network, data, epochs=4, state=pg.load_state(place))
    >>> rest.network == pg.train(network, data, epochs=4).network
    True
    """
    place = Path(path)
    try:
        with place.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            content: dict[str, Any] = {name: file[name] for name in file.files}
        header = json.loads(str(content["header"]))
        if header["format"] != FORMAT or header["version"] != VERSION:
            raise ValueError
        memory = Memory(content["steps"], _group(content, "first"), _group(content, "second"))
        best = (content["best_loss"], _group(content, "best")) if header["has_best"] else None
        return TrainingState(
            epoch=header["epoch"],
            progress=Progress(_group(content, "parameters"), memory, content["phases"]),
            streams=tuple(header["streams"]),
            held_back=content["held_back"],
            best=best,
            waited=content["waited"],
            origin=header["origin"],
        )
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {place}.") from None
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, AttributeError, KeyError, TypeError):
        raise ValueError(f"{place} is not a training state of this version of phasegrad, or it is damaged.") from None


def _group(content: dict[str, Any], group: str) -> Arrays:
    start = f"{group}."
    return {name.removeprefix(start): values for name, values in content.items() if name.startswith(start)}
