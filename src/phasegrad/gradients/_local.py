r"""What a response, or a state, says of every parameter and of the data: quantities at one node or edge.

Each term knows its own dF/dp and dE/dp. Data x enters in one of two ways: as frequencies of the inputs, where terms
take it (`Term.input_slope`), or as the phases at which the inputs are clamped. By a clamped phase the derivative of the
energy is minus the force on the oscillator that is held, at a fixed nudge, which never acts on it; and that of the
forces on all others is its column of the Laplacian, with the other sign,

    dE/dx_k = -scale F_k,      lambda . dF/dx_k = -scale (L^T lambda)_k

with lambda zero at what is held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from phasegrad._validation import Array
from phasegrad.dynamics import System
from phasegrad.gradients._problem import INPUTS, Problem, asked_terms
from phasegrad.networks import Network


def local_products(
    network: Network, system: System, wrt: Sequence[str], phases: Array, response: Array
) -> dict[str, Array]:
    """Return lambda . dF/dp for all nodes or edges, by every parameter asked for, and for the data.

    Some of them may share a parameter; see `Problem.collected`.
    """
    graph = network.graph
    slopes: dict[str, Array] = {}
    for term in asked_terms(network, wrt):
        slopes |= term.force_slopes(graph, system.values, phases, response)
    if INPUTS in wrt:
        slopes[INPUTS] = (
            -network.input_scale * transposed_product(system, phases, response)[0][:, graph.held]
            if graph.clamped
            else _by_frequencies(network, slopes)
        )
    return {name: slopes[name] for name in wrt}


def energy_slopes(network: Network, system: System, wrt: Sequence[str], phases: Array) -> dict[str, Array]:
    """Return dE/dp at any phases for all nodes or edges, by every parameter asked for, and for the data."""
    graph = network.graph
    slopes: dict[str, Array] = {}
    for term in asked_terms(network, wrt):
        slopes |= term.energy_slopes(graph, system.values, phases)
    if INPUTS in wrt:
        slopes[INPUTS] = (
            -network.input_scale * system.force(phases)[:, graph.held]
            if graph.clamped
            else _by_frequencies(network, slopes)
        )
    return {name: slopes[name] for name in wrt}


def rounded_sizes(problem: Problem, products: Mapping[str, Array], response: Array) -> dict[str, Array]:
    """Return what the rounding of the gradient that `local_products` at the equilibrium make is a share of, (B, width).

    Slopes that share a parameter may cancel, their rounding does not.
    """
    graph, values = problem.network.graph, problem.collected(products)
    alone = problem.collected({name: np.abs(slope) for name, slope in products.items()})
    sizes = {name: np.maximum(alone[name], np.abs(problem.in_units(name, each))) for name, each in values.items()}
    if INPUTS in problem.wrt and graph.clamped:
        both = transposed_product(problem.system, problem.phases, response)[1]
        sizes[INPUTS] = problem.network.input_scale * both[:, graph.held]
    elif INPUTS in problem.wrt:
        # Where the frame turns with the mean frequency a mean is taken away, of which little may be left.
        largest = np.max(np.abs(response), axis=1, keepdims=True, initial=0.0)
        sizes[INPUTS] = np.abs(values[INPUTS]) + problem.network.input_scale * largest
    return sizes


def transposed_product(system: System, phases: Array, vector: Array) -> tuple[Array, Array]:
    """Return L^T x over all oscillators, (B, N), at any phases, and |L|^T |x|, which its rounding is a share of."""
    graph = system.graph
    product, size = np.zeros((2, *vector.shape))
    for term in system.terms:
        forward, backward, diagonal, sums, outer = term.stiffness(graph, system.values, phases)
        if forward is not None and backward is not None:
            on_first, on_second = (w * np.take(vector, end, axis=1) for w, end in
                                   ((forward, graph.first), (backward, graph.second)))  # fmt: skip
            across, both = on_first - on_second, np.abs(on_first) + np.abs(on_second)
            product += graph.at_ends(across, -across)
            size += graph.at_ends(both, both)
        if diagonal is not None:
            product += diagonal * vector
            size += np.abs(diagonal * vector)
        if sums is not None:
            ends = [np.take(vector, end, axis=1) for end in (graph.first, graph.second)]
            along, both = sums * (ends[0] + ends[1]), np.abs(sums) * (np.abs(ends[0]) + np.abs(ends[1]))
            product += graph.at_ends(along, along)
            size += graph.at_ends(both, both)
        if outer is not None:
            left, right = (factor.swapaxes(1, 2) for factor in outer)
            product -= ((left @ vector[:, :, None]).swapaxes(1, 2) @ right)[:, 0]
            size += ((np.abs(left) @ np.abs(vector)[:, :, None]).swapaxes(1, 2) @ np.abs(right))[:, 0]
    return product, size


def _by_frequencies(network: Network, slopes: Mapping[str, Array]) -> Array:
    """Return the slopes (B, n_in) by data that sets the frequencies of the inputs, from slopes of what it drives."""
    driven = [(term, each.name) for term in network.terms if term.drives for each in term.parameters]
    parts = (term.input_slope(network.graph, name, slopes[name]) for term, name in driven)
    return np.asarray(network.input_scale * sum(parts))
