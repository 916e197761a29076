"""The experiments on images, all of them in one table: what is trained on which images, by which settings, how often.

Everything that can be set stands in `EXPERIMENTS`. What is not said there is what `phasegrad.layers` and
`phasegrad.Plan.images` do. A run belongs to an experiment as long as its settings are those of the table.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

from phasegrad._validation import choice
from phasegrad.datasets import IMAGES, Shifts
from phasegrad.networks import Convolution, Dense, Network, layers
from phasegrad.objectives import CosineCrossEntropy
from phasegrad.training import Plan

#: Data sets by the word for them: those of images, and the small digits, which need no files, to try things out.
TASKS = (*IMAGES, "digits")
_KINDS: dict[str, Any] = {"Dense": Dense, "Convolution": Convolution}


@dataclass(frozen=True)
class Experiment:
    """One row of the table.

    Parameters
    ----------
    name, title : str
        The word for the command line, and what tables call it.
    task : str
        The data set.
    layers : tuple of Dense or Convolution
        After the inputs; images have their shape where the first is a convolution, and are flat otherwise.
    network : mapping
        Options of `phasegrad.layers`.
    plan : mapping
        Fields of `phasegrad.Plan.images` that are otherwise, plain data all of them.
    sharpness : float
        Of the objective.
    shifts : Shifts or None
        How training images are moved.
    matched : bool
        Whether only as many parameters learn as there are oscillators that move, drawn by the seed from those named.
    gradients : bool
        Whether the nudged gradient is held against the exact one, before and after training.
    dtype : str
        The numbers of the engine.
    seeds : int
        How many runs there are.
    """

    name: str
    title: str
    task: str
    layers: tuple[Dense | Convolution, ...]
    network: Mapping[str, Any] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)
    sharpness: float = 8.0
    shifts: Shifts | None = None
    matched: bool = False
    gradients: bool = False
    dtype: str = "float32"
    seeds: int = 5
    weight: float = field(default=1.0, compare=False)  # how long a run takes, relative to the others

    @property
    def settings(self) -> dict[str, Any]:
        """All that a run depends on beside its seed, as plain data."""
        return {
            "task": self.task,
            "layers": [[type(layer).__name__, asdict(layer) | {"skip": list(layer.skip)}] for layer in self.layers],
            "network": dict(self.network),
            "plan": {name: list(value) if isinstance(value, tuple) else value for name, value in self.plan.items()},
            "sharpness": self.sharpness,
            "shifts": None if self.shifts is None else _plain(asdict(self.shifts)),
            "matched": self.matched,
            "gradients": self.gradients,
            "dtype": self.dtype,
        }

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Experiment:
        """Return the experiment that has these settings, without a name."""
        given = dict(settings)
        choice("task", given["task"], TASKS, "an experiment on images")
        moves = given.pop("shifts")
        chosen = tuple(_KINDS[kind](**options) for kind, options in given.pop("layers"))
        return cls("", "", layers=chosen, shifts=None if moves is None else Shifts(**moves), **given)

    @property
    def flat(self) -> bool:
        """Whether an image is a row of pixels for it."""
        return isinstance(self.layers[0], Dense)

    def build(self, shape: Sequence[int], seed: int) -> Network:
        """Return the untrained network of a seed for images of a shape."""
        pixels = 1
        for length in shape:
            pixels *= length
        return layers(pixels if self.flat else tuple(shape), *self.layers, seed=seed, **self.network)

    def made_plan(self) -> Plan:
        """Return its plan."""
        return Plan.images(objective=CosineCrossEntropy(self.sharpness), augmentation=self.shifts, **self.plan)


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


# The settings. ----------------------------------------------------------------------------------------------------

_DENSE = MappingProxyType({"gain": 0.4, "field": 2.0})
_CONVOLUTIONAL = MappingProxyType({"gain": 0.8, "output_gain": 0.2, "field": 4.0})
# Feedback between layers that move is kept balanced, and well below the fields.
_DEEP = MappingProxyType(
    {"learning_rate": 0.01, "balance": True, "coupling_norm": 2.0, "beta": 0.0025, "epochs": 30, "evaluate_every": 10}
)
_MLP = (Dense(1000), Dense(10))
_SHALLOW = (Convolution(128, 5, stride=2, padding=2), Dense(10))
_TWO = (Convolution(32, 5, stride=2, padding=2), Convolution(64, 5, stride=2, padding=2), Dense(10))
_LONG = MappingProxyType({"epochs": 25, "evaluate_every": 5})
_NOISY = MappingProxyType({"input_noise": 0.5, "epochs": 40, "evaluate_every": 10})
_SHORT = MappingProxyType({"epochs": 12, "evaluate_every": 4})
_COUPLINGS = MappingProxyType({"learn": ("coupling",), **_SHORT})
#: The run that the cited claim is judged by: all couplings of 784-1000-10 learn, and nothing else does.
ALL_COUPLINGS = "which-all-couplings"
#: Those with one value for each oscillator that moves, and as many couplings.
WHICH = ("which-couplings", "which-frequencies", "which-field-phases", "which-field-strengths")
GRADIENTS = "gradient-quality"

_TABLE = (
    Experiment("mnist-mlp", "MNIST, 784-1000-10", "mnist", _MLP, _DENSE, _NOISY),
    Experiment("mnist-mlp-quiet", "MNIST, 784-1000-10, without noise", "mnist", _MLP, _DENSE, _LONG),
    Experiment(
        "mnist-mlp-shifts", "MNIST, 784-2000-10, moved images", "mnist", (Dense(2000), Dense(10)), _DENSE,
        {"input_noise": 0.1, "epochs": 100, "evaluate_every": 20}, shifts=Shifts(1), weight=5.0,
    ),
    Experiment(
        "fashion-mlp", "Fashion-MNIST, 784-1000-10", "fashion_mnist", _MLP, _DENSE, {**_NOISY, "input_noise": 0.3},
    ),
    Experiment("fashion-mlp-quiet", "Fashion-MNIST, 784-1000-10, without noise", "fashion_mnist", _MLP, _DENSE, _LONG),
    Experiment(
        "mnist-conv", "MNIST, 128C5-10, moved images", "mnist", _SHALLOW, _DENSE,
        {"learning_rate": 0.01, "epochs": 40, "evaluate_every": 10}, shifts=Shifts(1), weight=4.0,
    ),
    Experiment(
        "mnist-conv-two", "MNIST, 32C5-64C5-10, moved images", "mnist", _TWO, _CONVOLUTIONAL,
        {**_DEEP, "input_noise": 0.1}, 16.0,
        shifts=Shifts(1), dtype="tf32", weight=8.0,
    ),
    Experiment(
        "fashion-conv", "Fashion-MNIST, 128C5-10", "fashion_mnist", _SHALLOW, _DENSE,
        {"learning_rate": 0.01, "input_noise": 0.2, "epochs": 40, "evaluate_every": 10}, weight=4.0,
    ),
    Experiment(
        "cifar-conv", "CIFAR-10, 128C5-10, moved and turned images", "cifar10", _SHALLOW, _DENSE,
        {"learning_rate": 0.01, "epochs": 40, "evaluate_every": 10},
        shifts=Shifts(2, shape=(3, 32, 32), flip=True, fill="reflect"), weight=5.0,
    ),
    Experiment(
        "cifar-conv-two", "CIFAR-10, 32C5-64C5-10, moved and turned images", "cifar10", _TWO, _CONVOLUTIONAL,
        _DEEP, 16.0,
        shifts=Shifts(2, shape=(3, 32, 32), flip=True, fill="reflect"), dtype="tf32", weight=10.0,
    ),
    Experiment(ALL_COUPLINGS, "all couplings", "mnist", _MLP, _DENSE, _COUPLINGS),
    Experiment("which-couplings", "as many couplings, drawn", "mnist", _MLP, _DENSE, _COUPLINGS, matched=True),
    Experiment(
        "which-frequencies", "frequencies, up to 1.5", "mnist", _MLP, _DENSE,
        {"learn": ("omega",), "bounds": {"omega": [-1.5, 1.5]}, **_SHORT}, matched=True,
    ),
    Experiment(
        "which-field-phases", "phases of fields", "mnist", _MLP, _DENSE, {"learn": ("field_phase",), **_SHORT},
        matched=True,
    ),
    Experiment(
        "which-field-strengths", "strengths of fields", "mnist", _MLP, _DENSE, {"learn": ("field_strength",), **_SHORT},
        matched=True,
    ),
    Experiment(
        GRADIENTS, "MNIST, 784-500-500-10", "mnist", (Dense(500), Dense(500), Dense(10)), _DENSE,
        {"epochs": 3, "evaluate_every": 3, "balance": True, "coupling_norm": 1.0}, gradients=True, weight=3.0,
    ),
)  # fmt: skip

# -------------------------------------------------------------------------------------------------------------------

#: All experiments by name.
EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType({each.name: each for each in _TABLE})


def chosen(names: Sequence[str] = ()) -> tuple[Experiment, ...]:
    """Return the experiments of these names, in the order of the table; all of them if none is named."""
    for name in names:
        if name not in EXPERIMENTS:
            near = difflib.get_close_matches(name, EXPERIMENTS, n=1, cutoff=0.3)
            advice = f"Did you mean {near[0]!r}? " if near else ""
            raise ValueError(f"There is no experiment {name!r:.80}. {advice}Experiments are {', '.join(EXPERIMENTS)}.")
    return tuple(each for each in EXPERIMENTS.values() if not names or each.name in names)
