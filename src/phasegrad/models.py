"""Models: a trained network with all that prediction needs, and its file.

A model file is one ``.npz``: arrays, and a JSON header with everything else. It is read without pickle, so a file from
a stranger cannot run code.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phasegrad._files import write_whole
from phasegrad._validation import FloatArray, counted, finite_array
from phasegrad.datasets import Dataset, Scaling
from phasegrad.equilibria import Equilibrium, Settling
from phasegrad.networks import Network
from phasegrad.objectives import CLASS_OBJECTIVES, ClassObjective, Cost, PhaseTargets
from phasegrad.terms import TERMS, Interaction, OddSeries, Sine
from phasegrad.training import Training

FORMAT = "phasegrad model"
VERSION = 2

_PLAIN = ("inputs", "outputs", "reference", "grounded", "input_mode", "input_scale", "signed")
_OBJECTIVES: dict[str, type[Cost]] = {**CLASS_OBJECTIVES, "PhaseTargets": PhaseTargets}


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a model says of a batch of samples, and the equilibria it was read from.

    Attributes
    ----------
    labels : ndarray of int, shape (n,), or None
        Class numbers; a sample without equilibrium has the class of the last state reached. None where the model has no
        classes.
    names : list of str
        The same as class names; empty where there are none.
    values : ndarray, shape (n, M), or None
        What the outputs stand for, where the model has no classes.
    equilibrium : Equilibrium
        With the status of every sample.
    """

    labels: NDArray[np.int64] | None
    names: list[str]
    values: FloatArray | None
    equilibrium: Equilibrium


@dataclass(frozen=True, eq=False)
class Model:
    """A network, its objective, and how raw features become inputs and outputs become answers.

    Parameters
    ----------
    network : Network
    objective : Cost
        A `ClassObjective` where the outputs stand for classes.
    classes : sequence of str
        Names of the classes, one per output; for other objectives names of the outputs.
    features : sequence of str
    scaling : Scaling or None
        Applied to raw features first; None if they need none.
    settling : Settling
        How every sample is let settle: that of the training.
    targets : Scaling or None
        Where the outputs stand for numbers: the values that phases of -1 and 1 radian stand for.
    """

    network: Network
    objective: Cost
    classes: tuple[str, ...]
    features: tuple[str, ...]
    scaling: Scaling | None = None
    settling: Settling = field(default_factory=Settling)
    targets: Scaling | None = None

    def __post_init__(self) -> None:
        kinds = {"network": Network, "objective": Cost, "settling": Settling, "scaling": Scaling, "targets": Scaling}
        for name, needed in kinds.items():
            part = getattr(self, name)
            if not (isinstance(part, needed) or (needed is Scaling and part is None)):
                raise TypeError(f"The '{name}' of a Model must be a {needed.__name__}. Got {part!r:.80}.")
        for name, nodes, kind in (
            ("classes", self.network.outputs, "outputs"),
            ("features", self.network.inputs, "inputs"),
        ):
            given = tuple(str(each) for each in getattr(self, name))
            if len(given) != len(nodes):
                raise ValueError(
                    f"A Model needs one of '{name}' per oscillator of its {len(nodes)} {kind}. Got {given}."
                )
            object.__setattr__(self, name, given)

    @classmethod
    def from_training(cls, result: Training, data: Dataset, which: int = 0) -> Model:
        """Return the model of one trained network, with the names and the scaling of its data."""
        if not isinstance(data, Dataset):
            raise TypeError(
                "Model.from_training takes a Dataset, such as datasets.from_arrays gives; for plain arrays make the "
                f"model by Model(network, objective, classes, features). Got {type(data).__name__}."
            )
        plan, count = result.plan, len(result.networks)
        if not -count <= which < count:
            raise ValueError(f"This training holds {counted(count, 'network')}, numbered from 0. Got number {which}.")
        return cls(result.networks[which], plan.objective, data.classes, data.features, data.scaling, plan.settling)

    def predict(self, x: ArrayLike) -> Prediction:
        """Return what the model says of raw samples, shape (n, n_features).

        Columns of a table are taken by name, in any order, and others ignored; columns without names, and those for a
        model whose features are only numbered (x0, x1, ...), by position.
        """
        raw = finite_array("x", self._by_name(x), "Model.predict")
        if raw.ndim != 2 or raw.shape[1] != len(self.features):
            raise ValueError(
                f"Model.predict takes samples of shape (n, {len(self.features)}), one column for each of "
                f"{', '.join(self.features)}. Got shape {raw.shape}."
            )
        inputs = raw if self.scaling is None else self.scaling.apply(raw)
        equilibrium = self.settling.equilibrium(self.network, inputs)
        outputs = equilibrium.phases[:, list(self.network.outputs)]
        if not isinstance(self.objective, ClassObjective):
            values = outputs if self.targets is None else self.targets.invert(outputs)
            return Prediction(None, [], values, equilibrium)
        labels = self.objective.decide(outputs)
        return Prediction(labels, [self.classes[label] for label in labels], None, equilibrium)

    def _by_name(self, x: Any) -> Any:
        names = list(getattr(x, "columns", ()))
        if names and set(self.features) <= set(names):
            return x[list(self.features)]
        numbered = self.features == tuple(f"x{k}" for k in range(len(self.features)))
        if not numbered and any(isinstance(name, str) for name in names):
            raise ValueError(
                f"Model.predict takes the columns {', '.join(self.features)} of a table. Got one with the columns "
                f"{', '.join(map(str, names))}."
            )
        return x


def save_model(path: str | os.PathLike[str], model: Model) -> None:
    """Write a model to one file, whole or not at all.

    Raises ValueError for terms, an interaction, an objective or labels of your own that a file cannot hold, OSError if
    it cannot be written.
    """
    if not isinstance(model, Model):
        raise TypeError(
            "save_model takes a Model: Model.from_training(result, data) of a training, classifier.to_model() of an "
            f"estimator, or Model(...) of a network. Got {type(model).__name__}."
        )
    network = model.network
    own = [type(term).__name__ for term in network.terms if type(term) not in TERMS]
    if own:
        raise ValueError(f"A model file holds the package's own terms only, not {own[0]}.")
    if type(model.objective).__name__ not in _OBJECTIVES:
        raise ValueError(f"A model file holds the package's own objectives only, not {type(model.objective).__name__}.")
    header = {
        "format": FORMAT,
        "version": VERSION,
        "network": {name: getattr(network, name) for name in _PLAIN},
        "interaction": _interaction_header(network.interaction),
        "objective": {"kind": type(model.objective).__name__, **vars(model.objective)},
        "classes": list(model.classes),
        "features": list(model.features),
        "labels": _plain_labels(network),
        "settling": model.settling.as_dict(),
        "scalings": {name: each.beyond for name, each in _scalings(model).items()},
    }
    arrays: dict[str, Any] = {
        "edges": network.edges,
        **{f"parameter.{name}": each for name, each in network.parameters.items()},
    }
    for name, each in _scalings(model).items():
        arrays |= {f"{name}.low": each.low, f"{name}.high": each.high}
    text = np.array(json.dumps(header, default=lambda each: np.asarray(each).tolist()))
    write_whole(Path(path), lambda file: np.savez(file, header=text, **arrays))


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
    except (KeyError, TypeError, ValueError, AttributeError) as error:
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
    start = "parameter."
    parameters = {name.removeprefix(start): each for name, each in content.items() if name.startswith(start)}
    kind = header["interaction"]["kind"]
    interaction = Sine() if kind == "Sine" else OddSeries(tuple(header["interaction"]["coefficients"]))
    # Files of version 0.2 know no grounded networks.
    settings = {name: {"grounded": False, **header["network"]}[name] for name in _PLAIN}
    network = Network(content["edges"], interaction=interaction, labels=header["labels"], **parameters, **settings)
    objective = dict(header["objective"])
    scalings = {
        name: Scaling(content[f"{name}.low"], content[f"{name}.high"], beyond)
        for name, beyond in header["scalings"].items()
    }
    return Model(
        network,
        _OBJECTIVES[objective.pop("kind")](**objective),
        tuple(header["classes"]),
        tuple(header["features"]),
        settling=Settling(**header["settling"]),
        **scalings,
    )


def _scalings(model: Model) -> dict[str, Scaling]:
    given = {"scaling": model.scaling, "targets": model.targets}
    return {name: each for name, each in given.items() if each is not None}


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
