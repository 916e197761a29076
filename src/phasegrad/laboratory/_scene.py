"""A network or a model as plain data that the page's physics understands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phasegrad._validation import counted
from phasegrad.models import Model
from phasegrad.networks import Network, layered
from phasegrad.objectives import CLASS_OBJECTIVES, Cost, PhaseTargets
from phasegrad.terms import Coupling, Field, Frequencies, Interaction, OddSeries, SecondHarmonic, Sine

FORMAT, VERSION = "phasegrad lab", 1
#: What a browser still solves between two frames: Newton's method on a dense matrix, and lines on a canvas.
MOST_OSCILLATORS, MOST_EDGES = 400, 10_000
# The terms that physics.js has the forces of.
_KNOWN = (Frequencies, Coupling, Field, SecondHarmonic)
_ROLES = ("inputs", "outputs", "reference", "input_mode", "input_scale", "input_phase", "signed")
_OBJECTIVES: tuple[type[Cost], ...] = (*CLASS_OBJECTIVES.values(), PhaseTargets)


def scene(shown: Any = None) -> dict[str, Any]:
    """Return what the page shows as plain data, ready for JSON; raise in words what it cannot show.

    Parameters
    ----------
    shown : Network, Model, fitted estimator or None
        None is the paper's network of 2 inputs, 5 hidden oscillators and 2 outputs.

    Examples
    --------
    >>> import phasegrad as pg
    >>> from phasegrad.laboratory import scene
    >>> plain = scene(pg.layered(2, 5, 2))
    >>> plain["network"]["size"], plain["objective"]["kind"], plain["inputs"]
    (9, 'PhaseTargets', [0.0, 0.0])
    """
    model = _model_of(shown)
    network = model if isinstance(model, Network) else model.network
    _check(network)
    objective = PhaseTargets() if isinstance(model, Network) else model.objective
    plain = {
        "format": FORMAT,
        "version": VERSION,
        "title": _title(shown, network),
        "network": _network(network),
        "objective": _objective(objective, network),
        "inputs": _inputs(network),
        "labels": None if network.labels is None else [str(label) for label in network.labels],
    }
    if isinstance(model, Model):
        scaling = model.scaling
        plain |= {
            "classes": list(model.classes),
            "features": list(model.features),
            "scaling": None if scaling is None else [scaling.low.tolist(), scaling.high.tolist()],
        }
    return plain


def _model_of(shown: Any) -> Network | Model:
    if shown is None:
        return layered(2, 5, 2)
    made = shown.to_model() if callable(getattr(shown, "to_model", None)) else shown
    if not isinstance(made, (Network, Model)):
        raise TypeError(
            "The lab shows a Network, a Model, a fitted OscillatorClassifier or OscillatorRegressor, or, with nothing "
            f"given, the paper's network. Got {type(shown).__name__}."
        )
    return made


def _check(network: Network) -> None:
    """Raise ValueError for what the page's physics does not know."""
    unknown = [type(term).__name__ for term in network.terms if type(term) not in _KNOWN]
    if unknown:
        raise ValueError(
            f"The lab knows frequencies, coupling, bias fields and second harmonics, but not {unknown[0]}. Use "
            "simulate and Trajectory.plot to watch this network."
        )
    if network.size > MOST_OSCILLATORS or network.n_edges > MOST_EDGES:
        raise ValueError(
            f"The lab shows at most {MOST_OSCILLATORS} oscillators and {MOST_EDGES} edges. This network has "
            f"{network.size} and {network.n_edges}."
        )
    if not network.reciprocal:
        raise ValueError(
            "The lab shows reciprocal coupling, where a nudge reads the gradient. Leave 'coupling_reverse' out."
        )
    if not network.outputs:
        raise ValueError(
            "The lab nudges outputs, and this network has none. Name some: network.replace(outputs=[...])."
        )
    if type(network.interaction) not in (Sine, OddSeries):
        raise ValueError(f"The lab knows Sine and OddSeries interactions, not {type(network.interaction).__name__}.")


def _network(network: Network) -> dict[str, Any]:
    """Return the network with values of its own for every oscillator and every edge."""
    loose = network.untied()
    roles = {name: getattr(loose, name) for name in _ROLES}
    return {
        "size": loose.size,
        "edges": loose.edges.tolist(),
        **{name: list(each) if isinstance(each, tuple) else each for name, each in roles.items()},
        "interaction": _coefficients(loose.interaction),
        "parameters": {name: each.tolist() for name, each in loose.parameters.items()},
    }


def _coefficients(interaction: Interaction) -> Sequence[float]:
    return list(interaction.coefficients) if isinstance(interaction, OddSeries) else [1.0]


def _objective(objective: Cost, network: Network) -> dict[str, Any]:
    if type(objective) not in _OBJECTIVES:
        names = ", ".join(kind.__name__ for kind in _OBJECTIVES)
        raise ValueError(f"The lab knows the objectives {names}. Got {type(objective).__name__}.")
    settings = {name: value for name, value in vars(objective).items() if name in ("margin", "sharpness")}
    return {"kind": type(objective).__name__, **settings, "nodes": list(objective.nodes(network))}


def _inputs(network: Network) -> list[float]:
    """Return data that leaves the network as it is: its own frequencies at the inputs, or phases of data 0."""
    if network.clamps_inputs:
        return [0.0] * len(network.inputs)
    own = network.untied().omega[list(network.inputs)] / network.input_scale
    return np.asarray(own).tolist()


def _title(shown: Any, network: Network) -> str:
    roles = [
        counted(len(nodes), word) for word, nodes in (("input", network.inputs), ("output", network.outputs)) if nodes
    ]
    name = "The paper’s network" if shown is None else type(shown).__name__
    return f"{name} of {counted(network.size, 'oscillator')}: {', '.join(roles)}"
