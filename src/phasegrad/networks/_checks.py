"""What a network is given, checked: terms, parameters, roles and what is known about its nodes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from phasegrad._validation import BoolArray, FloatArray, IntArray, frozen_array, node_numbers, shaped_array
from phasegrad.graphs import Graph
from phasegrad.terms import TERMS, Interaction, Parameter, Sine, Term


def number_of(frequencies: FloatArray) -> int:
    """Return the number of oscillators that natural frequencies are given for."""
    if frequencies.ndim > 1 or frequencies.size == 0:
        raise ValueError(f"The 'omega' parameter of Network must have shape (N,). Got shape {frequencies.shape}.")
    return int(frequencies.size)


def checked_input_phase(given: Any, input_mode: str) -> float:
    """Return the phase at which data 0 clamps an input."""
    phase = float(shaped_array("input_phase", given, (), "Network"))
    if phase and input_mode != "phase":
        raise ValueError(
            "The 'input_phase' parameter of Network is where clamped inputs sit, and needs input_mode='phase'. "
            f"Got {phase:g} with input_mode={input_mode!r}."
        )
    return phase


def layer_nodes(name: str, given: Any, nodes: slice) -> tuple[int, ...]:
    """Return the nodes of a layer, where no others are given."""
    if np.size(node_numbers(given)) and not np.array_equal(node_numbers(given), np.arange(nodes.start, nodes.stop)):
        raise ValueError(
            f"The '{name}' of a Network with a layout are its {'first' if name == 'inputs' else 'last'} layer, nodes "
            f"{nodes.start} to {nodes.stop - 1}. Leave '{name}' out. Got {given!r:.80}."
        )
    return tuple(range(nodes.start, nodes.stop))


def checked_interaction(given: Any) -> Interaction:
    """Return an interaction that passes its own check, the sine if none is given."""
    interaction = Sine() if given is None else given
    if not isinstance(interaction, Interaction):
        raise TypeError(
            "The 'interaction' parameter of Network must be an Interaction, such as Sine() or a subclass of "
            f"your own. Got {interaction!r}."
        )
    interaction.check()
    return interaction


def checked_terms(given: Any, network: type) -> tuple[Term, ...]:
    """Return the user's own terms, whose parameters must have names that nothing else in a network has."""
    own = tuple(given) if isinstance(given, Iterable) else (None,)
    if not all(isinstance(term, Term) for term in own):
        raise TypeError(f"The 'terms' parameter of Network must be a list of Terms, such as [MyTerm()]. Got {given!r}.")
    taken = {parameter.name: each.__name__ for each in TERMS for parameter in each.every}
    for term in own:
        mine = type(term).__name__
        if not all(isinstance(parameter, Parameter) for parameter in term.every):
            raise TypeError(f"{mine} must name its parameters: every = (Parameter(...), ...). Got {term.every!r}.")
        for parameter in term.parameters:
            name = parameter.name
            if name in taken:
                raise ValueError(
                    f"Two terms, {taken[name]} and {mine}, have a parameter called {name!r}. Rename one of them."
                )
            if hasattr(network, name) or name in network.__annotations__:
                raise ValueError(f"{mine} has a parameter called {name!r}, which is a field of Network. Rename it.")
            taken[name] = mine
    return own


def terms_of(given: Mapping[str, Any], interaction: Interaction, own: tuple[Term, ...]) -> tuple[Term, ...]:
    """Return the terms that the names of the given parameters call for, and those of the user's own."""
    names = [name for name, value in given.items() if value is not None]
    found = (*_extended([term for kind in TERMS if (term := kind.of(names, interaction)) is not None]), *own)
    known = dict.fromkeys(parameter.name for terms in (TERMS, own) for term in terms for parameter in term.every)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise TypeError(
            f"Network has no parameter {unknown[0]!r}. Parameters of its terms are {', '.join(known)}; for a term of "
            "your own, name it in 'terms'."
        )
    return found


def checked_parameters(
    graph: Graph,
    terms: Sequence[Term],
    given: Mapping[str, Any],
    *,
    signed: bool,
    order: IntArray | None = None,
    turned: BoolArray | None = None,
) -> dict[str, FloatArray]:
    """Return the parameters of terms as read-only arrays, in the order of the graph's edges.

    ``order`` and ``turned`` say where each edge was given, and which were given the other way around.
    """
    values: dict[str, FloatArray] = {}
    for term in terms:
        own = term.checked(graph, given)
        if turned is not None and np.any(turned):
            term.turn_edges(own, turned)
        for parameter in term.parameters:
            if parameter.on == "edges" and order is not None:
                own[parameter.name] = own[parameter.name][order]
        term.check(graph, own, signed=signed)
        values.update(own)
    return {name: frozen_array(array) for name, array in values.items()}


def per_node(name: str, given: Any, size: int) -> Any:
    """Return one entry per oscillator; labels must tell them apart."""
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"The '{name}' parameter of Network must be a list. Got {given!r}.")
    values = tuple(given)
    if len(values) != size:
        raise ValueError(
            f"The '{name}' parameter of Network must have one entry per oscillator, {size}. Got {len(values)}."
        )
    if name == "node_attributes" and (isinstance(given, Mapping) or not all(isinstance(v, Mapping) for v in values)):
        raise TypeError(
            "The 'node_attributes' parameter of Network must be a list with a dictionary for every oscillator. Got "
            f"{given!r:.80}."
        )
    if name == "labels" and not all(isinstance(value, Hashable) for value in values):
        raise TypeError("The 'labels' parameter of Network must hold hashable names, such as strings or numbers.")
    if name == "labels" and len(set(values)) != size:
        raise ValueError("The 'labels' parameter of Network names two oscillators alike.")
    return values


def _extended(terms: list[Term]) -> list[Term]:
    """Return terms without those that another one extends, which has all their parameters and more."""
    names = [{parameter.name for parameter in term.parameters} for term in terms]
    left = [k for k, mine in enumerate(names) if not any(mine < others for others in names)]
    for a, b in combinations(left, 2):
        both = names[a] & names[b]
        if both:
            mine, theirs = (min(names[k] - both) for k in (a, b))
            raise ValueError(
                f"A network has '{mine}' or '{theirs}', not both: each of them changes how '{min(both)}' acts. Leave "
                "one of them out."
            )
    return [terms[k] for k in left]
