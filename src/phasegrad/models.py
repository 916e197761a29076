"""Models: a trained network with all that prediction needs, and its file.

A model file is one ``.npz``: arrays, a JSON header with everything else, and a digest that shows any change. It is read
without pickle, so a file from a stranger cannot run code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phasegrad._files import check_archive, made_from, parse_json, printable, read_archive, write_archive
from phasegrad._validation import FloatArray, IntArray, choice, counted, finite_array
from phasegrad.datasets import Dataset, Scaling
from phasegrad.equilibria import Equilibrium, Settling
from phasegrad.graphs import Layout
from phasegrad.networks import Network
from phasegrad.objectives import CLASS_OBJECTIVES, ClassObjective, Cost, PhaseTargets
from phasegrad.pictures import CYCLE, GUIDE, Ring, canvas, draw_confusion, draw_rings
from phasegrad.terms import TERMS, Interaction, OddSeries, Sine
from phasegrad.training import Training

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PLAIN = ("inputs", "outputs", "reference", "grounded", "input_mode", "input_scale", "input_phase", "signed")
# What files of earlier versions do not say.
_LATER = {"grounded": False, "input_phase": 0.0}
_PARAMETER = "parameter."
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

    See Also
    --------
    Model : A trained network with all that prediction needs.

    Examples
    --------
    >>> import phasegrad as pg
    >>> data = pg.datasets.vowels("a,i")
    >>> network = pg.initial.spectral_frequencies(pg.layered(2, 5, 2, seed=0))
    >>> model = pg.Model.from_training(pg.train(network, data, pg.Plan.paper(epochs=50)), data)
    >>> prediction = model.predict([[900.0, 1300.0], [350.0, 2800.0]])
    >>> prediction.names, prediction.equilibrium.stable
    (['a', 'i'], array([ True,  True]))
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

    See Also
    --------
    Training : Trained networks, history and state.

    Examples
    --------
    >>> import phasegrad as pg
    >>> data = pg.datasets.vowels("a,i")
    >>> result = pg.train(pg.layered(2, 5, 2, seed=0), data, pg.Plan.paper(epochs=2))
    >>> model = pg.Model.from_training(result, data)
    >>> model.classes, model.features
    (('a', 'i'), ('f1_hz', 'f2_hz'))
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
        for name, nodes in (("scaling", self.network.inputs), ("targets", self.network.outputs)):
            part = getattr(self, name)
            if part is not None and part.low.size != len(nodes):
                raise ValueError(f"The '{name}' of this Model must be of {len(nodes)} values. Got {part.low.size}.")

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
        raw = finite_array("x", self._by_name(x), "Model.predict", largest=np.inf)
        if raw.ndim != 2 or raw.shape[1] != len(self.features):
            raise ValueError(
                f"Model.predict takes samples of shape (n, {len(self.features)}), one column for each of "
                f"{printable(', '.join(self.features))}. Got shape {raw.shape}."
            )
        inputs = raw if self.scaling is None else self.scaling.apply(raw)
        equilibrium = self.settling.equilibrium(self.network, inputs)
        outputs = equilibrium.phases[:, list(self.network.outputs)]
        if not isinstance(self.objective, ClassObjective):
            values = outputs if self.targets is None else self.targets.invert(outputs)
            return Prediction(None, [], values, equilibrium)
        labels = self.objective.decide(outputs)
        return Prediction(labels, [self.classes[label] for label in labels], None, equilibrium)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, whole or not at all.

        Raises ValueError for terms, an interaction, an objective, labels or node attributes of your own that a file
        cannot hold, OSError if it cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> import phasegrad as pg
        >>> model = pg.Model(pg.layered(2, 5, 2, seed=0), pg.objectives.NearestTarget(), ["a", "i"], ["F1", "F2"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model.npz")
        ...     again = pg.Model.load(f"{folder}/model.npz")
        >>> again.network == model.network
        True
        """
        network, layout = self.network, self.network.graph.layout
        own = [type(term).__name__ for term in network.terms if type(term) not in TERMS]
        if own:
            raise ValueError(f"A model file holds the package's own terms only, not {own[0]}.")
        kind = type(self.objective).__name__
        if kind not in _OBJECTIVES:
            raise ValueError(f"A model file holds the package's own objectives only, not {kind}.")
        header = {
            "network": {name: getattr(network, name) for name in _PLAIN},
            **({} if layout is None else {"layout": layout.as_dict()}),
            "interaction": _interaction_header(network.interaction),
            "objective": {"kind": kind, **vars(self.objective)},
            "classes": list(self.classes),
            "features": list(self.features),
            "labels": _plain_labels(network),
            "node_attributes": _plain_attributes(network),
            "settling": self.settling.as_dict(),
            "scalings": {name: each.beyond for name, each in _scalings(self).items()},
        }
        arrays: dict[str, Any] = {f"parameter.{name}": each for name, each in network.parameters.items()}
        if layout is None:
            arrays["edges"] = network.edges
        for name, each in _scalings(self).items():
            arrays |= {f"{name}.low": each.low, f"{name}.high": each.high}
        write_archive(Path(path), "model", header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Read a model that `Model.save` wrote; the round trip is exact.

        Raises ValueError if anything in the file was changed or lost since. Files of phasegrad 0.2 to 0.7, which have
        no digest, load if they are complete.

        Examples
        --------
        >>> import phasegrad as pg, tempfile, os
        >>> model = pg.Model(pg.layered(2, 5, 2), pg.objectives.PaperPair(), ("a", "i"), ("f1_hz", "f2_hz"))
        >>> place = os.path.join(tempfile.mkdtemp(), "model.npz")
        >>> model.save(place)
        >>> pg.Model.load(place).network == model.network
        True
        """
        place = Path(path)
        header, arrays = read_archive(place, "model", _is_of_a_model)
        with made_from(place, "model"):
            return _model(header, arrays)

    def plot(self, x: ArrayLike, y: ArrayLike, ax: Axes | None = None, *, kind: str = "answers") -> Axes:
        """Draw what the model says of samples whose answers are known. Needs matplotlib.

        Parameters
        ----------
        x : array_like, shape (n, n_features)
            Raw samples, as for `predict`.
        y : array_like, shape (n,)
            Their classes, by number or by name; numbers of shape (n,) or (n, M) where the model has no classes.
        ax : matplotlib Axes, optional
            Where to draw; new ones if left out.
        kind : {"answers", "circle"}
            "answers": the confusion matrix or, without classes, answers against the true values. "circle": the phases
            of the outputs, one circle per output, filled where the class is the true one.

        Returns
        -------
        matplotlib Axes
        """
        choice("kind", kind, ("answers", "circle"), "Model.plot")
        answer = self.predict(x)
        if isinstance(self.objective, ClassObjective):
            return self._plot_classes(answer, self._numbers(y, len(answer.names)), ax, kind)
        true = finite_array("y", y, "Model.plot", largest=np.inf).reshape(np.shape(y)[0] if np.ndim(y) else 1, -1)
        return self._plot_values(answer, true, ax, kind)

    def _plot_classes(self, answer: Prediction, true: IntArray, ax: Axes | None, kind: str) -> Axes:
        assert answer.labels is not None
        right = (answer.labels == true) & answer.equilibrium.stable
        with canvas(ax, "Model.plot", 3.8, 3.6) as axes:
            if kind == "circle":
                phases = answer.equilibrium.phases[:, list(self.network.outputs)]
                rings = [
                    Ring(name, phases[:, k], CYCLE[k % len(CYCLE)], true == k) for k, name in enumerate(self.classes)
                ]
                draw_rings(axes, rings)
                axes.set_title("output phases (filled: true class)")
            else:
                draw_confusion(axes, confusion_counts(true, answer.labels, len(self.classes)), self.classes)
                axes.set_title(f"{counted(true.size, 'sample')}, accuracy {right.mean():.1%}")
        return axes

    def _plot_values(self, answer: Prediction, true: FloatArray, ax: Axes | None, kind: str) -> Axes:
        values = answer.values
        assert values is not None
        if true.shape != values.shape:
            raise ValueError(f"Model.plot needs true values of shape {values.shape}. Got {true.shape}.")
        with canvas(ax, "Model.plot", 3.8, 3.6) as axes:
            if kind == "circle":
                phases = answer.equilibrium.phases[:, list(self.network.outputs)]
                filled = np.ones(len(phases), bool)
                names = enumerate(self.classes)
                draw_rings(axes, [Ring(name, phases[:, k], CYCLE[k % len(CYCLE)], filled) for k, name in names])
                axes.set_title("output phases")
                return axes
            for k, name in enumerate(self.classes):
                axes.scatter(true[:, k], values[:, k], s=14, color=CYCLE[k % len(CYCLE)], linewidth=0, label=name)
            ends = [min(true.min(), values.min()), max(true.max(), values.max())]
            axes.plot(ends, ends, color=GUIDE, linewidth=0.8, linestyle="--", zorder=1)
            axes.set(xlabel="true", ylabel="answer", title=counted(len(values), "sample"))
        return axes

    def _numbers(self, y: Any, count: int) -> IntArray:
        """Return classes, given by number or by name, as numbers."""
        given = np.asarray(y)
        known = {name: k for k, name in enumerate(self.classes)}
        by_name = given.dtype.kind not in "iu"
        labels = [known.get(str(each), -1) if by_name else int(each) for each in given.ravel()]
        wrong = [each for each, label in zip(given.ravel(), labels, strict=True) if not 0 <= label < len(known)]
        if wrong or given.shape != (count,):
            instead = f"{wrong[0]!r:.40}" if wrong else f"shape {given.shape}"
            raise ValueError(
                f"The 'y' parameter of Model.plot must be {counted(count, 'answer')}, each of "
                f"{printable(', '.join(self.classes))} or its number from 0. Got {instead}."
            )
        return np.array(labels, dtype=np.int64)

    def _by_name(self, x: Any) -> Any:
        names = list(getattr(x, "columns", ()))
        if names and set(self.features) <= set(names):
            return x[list(self.features)]
        numbered = self.features == tuple(f"x{k}" for k in range(len(self.features)))
        if not numbered and any(isinstance(name, str) for name in names):
            raise ValueError(
                f"Model.predict takes the columns {printable(', '.join(self.features))} of a table. Got one with the "
                f"columns {printable(', '.join(map(str, names)))}."
            )
        return x


def confusion_counts(true: IntArray, decided: IntArray, classes: int) -> IntArray:
    """Return how many samples of each class (rows) were given each class (columns)."""
    counts = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(counts, (true, decided), 1)
    return counts


def check_model_file(path: Path) -> None:
    """Raise ValueError if a file does not say of itself that it is a model of this version; its arrays are not read."""
    check_archive(path, "model")


def _is_of_a_model(name: str) -> bool:
    scalings = [f"{part}.{end}" for part in ("scaling", "targets") for end in ("low", "high")]
    return name.startswith(_PARAMETER) or name in ("edges", *scalings)


def _model(header: dict[str, Any], arrays: dict[str, Any]) -> Model:
    parameters = {name.removeprefix(_PARAMETER): each for name, each in arrays.items() if name.startswith(_PARAMETER)}
    known = {parameter.name for term in TERMS for parameter in term.every}
    if unknown := [name for name in parameters if name not in known]:
        raise ValueError(f"it has a parameter {unknown[0]!r:.40}, which no network has")
    settings = {name: {**_LATER, **header["network"]}[name] for name in _PLAIN}
    network = Network(
        _layout(header["layout"], parameters) if "layout" in header else arrays["edges"],
        parameters["coupling"],
        parameters["omega"],
        interaction=_interaction(**header["interaction"]),
        labels=_words("labels", header["labels"], str | int),
        node_attributes=_attributes(header.get("node_attributes")),
        **{name: each for name, each in parameters.items() if name not in ("coupling", "omega")},
        **settings,
    )
    if lost := [name for name in network.parameters if name not in parameters]:
        raise KeyError(f"{_PARAMETER}{lost[0]}")
    objective = dict(header["objective"])
    scalings = {
        name: Scaling(arrays[f"{name}.low"], arrays[f"{name}.high"], beyond)
        for name, beyond in header["scalings"].items()
    }
    return Model(
        network,
        _OBJECTIVES[objective.pop("kind")](**objective),
        _words("classes", header["classes"], str) or (),
        _words("features", header["features"], str) or (),
        settling=Settling(**header["settling"]),
        **scalings,
    )


def _layout(given: Any, parameters: dict[str, Any]) -> Layout:
    layout = Layout.from_dict(given)
    # One number would stand for as many as the layout promises.
    if any(each.ndim != 1 for each in parameters.values()):
        raise ValueError("its parameters are not lists of numbers")
    return layout


def _words(name: str, given: Any, kind: Any) -> tuple[Any, ...] | None:
    """Return names as the header of a file holds them."""
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(each, kind) for each in given):
        raise ValueError(f"its {name} are not a list of names")
    return tuple(given)


def _attributes(given: Any) -> list[dict[str, Any]] | None:
    """Return the attributes of nodes as the header of a file holds them; earlier versions wrote none."""
    if given is not None and not (isinstance(given, list) and all(isinstance(each, dict) for each in given)):
        raise ValueError("its node attributes are not a list of dictionaries")
    return given


def _interaction(kind: str, coefficients: Sequence[float] = ()) -> Interaction:
    if kind not in ("Sine", "OddSeries"):
        raise ValueError("its interaction is not known")
    return Sine() if kind == "Sine" else OddSeries(tuple(coefficients))


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


def _plain_attributes(network: Network) -> list[dict[str, Any]] | None:
    """Return the attributes of nodes as JSON gives them back."""
    if network.node_attributes is None:
        return None
    plain = []
    for node, given in enumerate(network.node_attributes):
        mine, again = dict(given), None
        with suppress(TypeError, ValueError, RecursionError):
            again = parse_json(json.dumps(mine, default=_plain_number), finite=True)
        if again != mine:
            raise ValueError(
                "A model file holds node attributes of text, finite numbers, True, False and None, and of lists and "
                f"dictionaries of these by text. Got {mine!r:.80} at node {node}. Leave out what is none of them: "
                "network.replace(node_attributes=None)."
            )
        plain.append(again)
    return plain


def _plain_number(value: Any) -> Any:
    """Return a number of NumPy's as one of Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError
