"""Checkpoints: the state of a training in mini-batches as one file, read without pickle."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from phasegrad.files import write_whole
from phasegrad.learning.optimizers import Arrays, Memory
from phasegrad.learning.record import EpochRecord, LearningState

FORMAT = "phasegrad checkpoint"
VERSION = 1


def save_checkpoint(path: str | os.PathLike[str], state: LearningState) -> None:
    """Write a state to one file, whole or not at all; `learn` goes on from it bit by bit as if it had not stopped."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        "epoch": state.epoch,
        "steps": state.memory.steps,
        "waited": state.waited,
        "best": None if state.best is None else state.best[0],
        "stream": state.stream,
        "records": [list(record) for record in state.records],
    }
    groups = {"parameters": state.parameters, "first": state.memory.first, "second": state.memory.second}
    if state.best is not None:
        groups["best"] = state.best[1]
    arrays: dict[str, Any] = {f"{group}.{name}": each[name] for group, each in groups.items() for name in each}
    arrays["held_back"] = state.held_back
    text = np.array(json.dumps(header))
    write_whole(Path(path), lambda file: np.savez(file, header=text, **arrays))


def load_checkpoint(path: str | os.PathLike[str]) -> LearningState:
    """Read a state that `save_checkpoint` wrote.

    Examples
    --------
    >>> import os, tempfile, phasegrad as pg
    >>> from phasegrad.learning import load_checkpoint, save_checkpoint
    >>> data, network = pg.datasets.xor(), pg.signed_layers(2, 3, 2)
    >>> half = pg.learn(network, data.x_train, data.y_train, epochs=4, until=2)
    >>> place = os.path.join(tempfile.mkdtemp(), "half.npz")
    >>> save_checkpoint(place, half.state)
    >>> rest = pg.learn(network, data.x_train, data.y_train, epochs=4, state=load_checkpoint(place))
    >>> rest.network == pg.learn(network, data.x_train, data.y_train, epochs=4).network
    True
    """
    place = Path(path)
    try:
        with place.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            content: dict[str, Any] = {name: file[name] for name in file.files}
        header = json.loads(str(content["header"]))
        if header["format"] != FORMAT or header["version"] != VERSION:
            raise ValueError
        best = header["best"]
        return LearningState(
            epoch=header["epoch"],
            parameters=_group(content, "parameters"),
            memory=Memory(header["steps"], _group(content, "first"), _group(content, "second")),
            stream=header["stream"],
            held_back=content["held_back"],
            best=None if best is None else (best, _group(content, "best")),
            waited=header["waited"],
            records=tuple(EpochRecord(*record) for record in header["records"]),
        )
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {place}.") from None
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, AttributeError, KeyError, TypeError):
        raise ValueError(f"{place} is not a checkpoint of this version of phasegrad, or it is damaged.") from None


def _group(content: dict[str, Any], group: str) -> Arrays:
    start = f"{group}."
    return {name.removeprefix(start): values for name, values in content.items() if name.startswith(start)}
