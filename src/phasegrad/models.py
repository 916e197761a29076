"""Models: a trained network with all that prediction needs, and its file.

A model file is one ``.npz``: arrays, and a JSON header with everything else. It is read without pickle, so a file from
a stranger cannot run code.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phasegrad.datasets import Dataset, Scaling
from phasegrad.equilibrium import Equilibrium, find_equilibrium
from phasegrad.files import write_whole
from phasegrad.interactions import Interaction, OddSeries, Sine
from phasegrad.network import Network
from phasegrad.objectives import CLASS_OBJECTIVES, ClassObjective
from phasegrad.training import TrainingResult
from phasegrad.validation import finite_array

FORMAT = "phasegrad model"
VERSION = 1

_ARRAYS = ("edges", "coupling", "omega", "coupling_reverse", "field_strength", "field_phase")
_PLAIN = ("inputs", "outputs", "reference", "input_mode", "input_scale", "signed")


@dataclass(frozen=True, eq=False)
class Prediction:
    """Classes of a batch of samples and the equilibria they were read from.

    Attributes
    ----------
    labels : ndarray of int, shape (n,)
        Class numbers; a sample without equilibrium has the class of the last state reached.
    names : list of str
        The same as class names.
    equilibrium : Equilibrium
        With the status of every sample.
    """

    labels: NDArray[np.int64]
    names: list[str]
    equilibrium: Equilibrium


@dataclass(frozen=True, eq=False)
class Model:
    """A network, its objective, and how raw features become inputs and outputs become class names.

    Parameters
    ----------
    network : Network
    objective : ClassObjective
    classes : sequence of str
    features : sequence of str
    scaling : Scaling or None
        Applied to raw features first; None if they need none.
    """

    network: Network
    objective: ClassObjective
    classes: tuple[str, ...]
    features: tuple[str, ...]
    scaling: Scaling | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.objective, ClassObjective):
            raise TypeError(
                f"A Model's objective must be one for classes, such as NearestTarget(). Got {self.objective!r}."
            )
        for name, nodes in (("classes", self.network.outputs), ("features", self.network.inputs)):
            given = tuple(str(value) for value in getattr(self, name))
            if len(given) != len(nodes):
                kind = "outputs" if name == "classes" else "inputs"
                raise ValueError(
                    f"A Model needs one of '{name}' per oscillator of its {len(nodes)} {kind}. Got {given}."
                )
            object.__setattr__(self, name, given)

    @classmethod
    def from_training(cls, result: TrainingResult, data: Dataset, which: int = 0) -> Model:
        """Return the model of one trained network, with the names and the scaling of its data."""
        return cls(result.networks[which], result.protocol.objective, data.classes, data.features, data.scaling)

    def predict(self, x: ArrayLike) -> Prediction:
        """Return the classes of raw samples, shape (n, n_features)."""
        raw = finite_array("x", x, "Model.predict")
        if raw.ndim != 2 or raw.shape[1] != len(self.features):
            raise ValueError(
                f"Model.predict takes samples of shape (n, {len(self.features)}), one column for each of "
                f"{', '.join(self.features)}. Got shape {raw.shape}."
            )
        equilibrium = find_equilibrium(self.network, raw if self.scaling is None else self.scaling.apply(raw))
        labels = self.objective.decide(equilibrium.phases[:, list(self.network.outputs)])
        return Prediction(labels, [self.classes[label] for label in labels], equilibrium)


def save_model(path: str | os.PathLike[str], model: Model) -> None:
    """Write a model to one file, whole or not at all.

    Raises ValueError for an interaction or labels of your own that a file cannot hold, OSError if it cannot be written.
    """
    place = Path(path)
    network = model.network
    header = {
        "format": FORMAT,
        "version": VERSION,
        "network": {name: getattr(network, name) for name in _PLAIN},
        "interaction": _interaction_header(network.interaction),
        "objective": {"kind": type(model.objective).__name__, **vars(model.objective)},
        "classes": list(model.classes),
        "features": list(model.features),
        "labels": _plain_labels(network),
    }
    arrays = {name: getattr(network, name) for name in _ARRAYS if getattr(network, name) is not None}
    if model.scaling is not None:
        arrays |= {"scaling_low": model.scaling.low, "scaling_high": model.scaling.high}
    write_whole(place, lambda file: np.savez(file, header=np.array(json.dumps(header)), **arrays))


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a model that `save_model` wrote; the round trip is exact.

    Examples
    --------
    >>> import phasegrad as pg, tempfile, os
    >>> model = pg.Model(pg.layered(2, 5, 2), pg.PaperPair(), ("a", "i"), ("f1_hz", "f2_hz"))
    >>> place = os.path.join(tempfile.mkdtemp(), "model.npz")
    >>> pg.save_model(place, model)
    >>> pg.load_model(place).network == model.network
    True
    """
    place = Path(path)
    try:
        with place.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            content = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {place}.") from None
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, AttributeError, KeyError):
        raise ValueError(
            f"{place} is not a model file, is damaged, or holds Python objects, which are never loaded."
        ) from None
    header = _header(place, content)
    try:
        return _model(header, content)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{place} is a damaged model file: {error}.") from None


def _header(place: Path, content: dict[str, Any]) -> dict[str, Any]:
    try:
        header: dict[str, Any] = json.loads(str(content["header"]))
        if header["format"] != FORMAT:
            raise KeyError
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{place} is an .npz file, but not a phasegrad model.") from None
    if header.get("version") != VERSION:
        raise ValueError(
            f"{place} has model format {header.get('version')}; this version of phasegrad reads format {VERSION}. "
            "Read it with the version that wrote it, or train it again."
        )
    return header


def _model(header: dict[str, Any], content: dict[str, Any]) -> Model:
    arrays = {name: content[name] for name in _ARRAYS if name in content}
    settings = {name: header["network"][name] for name in _PLAIN}
    kind = header["interaction"]["kind"]
    interaction = Sine() if kind == "Sine" else OddSeries(tuple(header["interaction"]["coefficients"]))
    network = Network(
        arrays.pop("edges"),
        arrays.pop("coupling"),
        arrays.pop("omega"),
        **arrays,
        **settings,
        interaction=interaction,
        labels=header["labels"],
    )
    scaling = Scaling(content["scaling_low"], content["scaling_high"]) if "scaling_low" in content else None
    settings = dict(header["objective"])
    objective = CLASS_OBJECTIVES[settings.pop("kind")](**settings)
    return Model(network, objective, tuple(header["classes"]), tuple(header["features"]), scaling)


def _interaction_header(interaction: Interaction) -> dict[str, Any]:
    if type(interaction) is Sine:
        return {"kind": "Sine"}
    if type(interaction) is OddSeries:
        return {"kind": "OddSeries", "coefficients": list(interaction.coefficients)}
    raise ValueError(f"A model file holds Sine and OddSeries interactions only, not {type(interaction).__name__}.")


def _plain_labels(network: Network) -> Sequence[str | int] | None:
    if network.labels is None:
        return None
    if not all(isinstance(label, (str, int)) for label in network.labels):
        raise ValueError("A model file holds node labels that are strings or whole numbers only.")
    return [label for label in network.labels if isinstance(label, (str, int))]
