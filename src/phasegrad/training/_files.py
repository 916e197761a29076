"""The state of a training as one file, read without pickle."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from phasegrad._files import made_from, read_archive, write_archive
from phasegrad._validation import whole_number
from phasegrad.training._engine import Progress
from phasegrad.training._history import TrainingState
from phasegrad.training._optimizers import Arrays, Memory

_SINGLE = ("steps", "phases", "held_back", "waited", "best_loss")
_GROUPS = ("parameters", "first", "second", "best")


def write_state(path: str | os.PathLike[str], state: TrainingState) -> None:
    """Write a state to one file, whole or not at all."""
    header = {
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
    write_archive(Path(path), "training state", header, arrays)


def read_state(path: str | os.PathLike[str]) -> TrainingState:
    """Return the state in a file that `write_state` wrote."""
    place = Path(path)
    header, arrays = read_archive(
        place, "training state", lambda name: name in _SINGLE or name.partition(".")[0] in _GROUPS
    )
    with made_from(place, "training state"):
        memory = Memory(arrays["steps"], _group(arrays, "first"), _group(arrays, "second"))
        if not isinstance(header["origin"], str) or not isinstance(header["has_best"], bool):
            raise ValueError("its header does not say what it belongs to")
        state = TrainingState(
            epoch=whole_number("epoch", header["epoch"], 0, "a state"),
            progress=Progress(_group(arrays, "parameters"), memory, arrays["phases"]),
            streams=tuple(_stream_state(each) for each in header["streams"]),
            held_back=arrays["held_back"],
            best=(arrays["best_loss"], _group(arrays, "best")) if header["has_best"] else None,
            waited=arrays["waited"],
            origin=header["origin"],
        )
        _check(state)
        return state


def _stream_state(given: Any) -> dict[str, Any]:
    """Return the state of a shuffling stream if a stream can have it."""
    stream = np.random.default_rng()
    try:
        stream.bit_generator.state = given
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        raise ValueError("a shuffling stream in it is in no state that there is") from None
    return dict(stream.bit_generator.state)


def _check(state: TrainingState) -> None:
    """Refuse arrays that cannot be those of one training, whichever it is."""
    count, memory = len(state.streams), state.progress.memory
    groups = [state.parameters, memory.first, memory.second, *([state.best[1]] if state.best else [])]
    floats = [*(values for group in groups for values in group.values()), state.progress.phases]
    wholes = [memory.steps, state.held_back, state.waited]
    ranks = [each.ndim for each in (*floats, *wholes)] == [2] * len(floats) + [1, 2, 1]
    if not count or not ranks or any(len(each) != count for each in (*floats, *wholes)):
        raise ValueError("its arrays are not of one number of networks")
    if not all(each.dtype == float and np.all(np.isfinite(each)) for each in floats):
        raise ValueError("it holds numbers that are not finite")
    if not all(each.dtype == np.int64 and np.all(each >= 0) for each in wholes):
        raise ValueError("it holds counts that are not whole numbers of at least 0")
    if not all(group.get(name, values).shape == values.shape for group in groups for name, values in groups[0].items()):
        raise ValueError("its arrays are not of one shape by every parameter")
    if any(np.any(values < 0) for values in memory.second.values()):
        raise ValueError("it holds a mean square that is negative")
    if state.best is not None and (state.best[0].shape != (count,) or np.any(np.isnan(state.best[0]))):
        raise ValueError("its lowest cost is no number for every network")


def _group(arrays: Arrays, group: str) -> Arrays:
    start = f"{group}."
    return {name.removeprefix(start): values for name, values in arrays.items() if name.startswith(start)}
