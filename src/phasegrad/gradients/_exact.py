r"""The exact gradient, and how far rounding may have moved it.

With c = dC/dtheta at the equilibrium and L the reduced Laplacian, the implicit function theorem gives

    L^T lambda = c,      dC/dp = lambda . dF/dp

for every parameter p at once, and for the data; each term knows its dF/dp (`phasegrad.gradients._local`).

Its error is measured: the state is moved by what the force left on it, and the rounding of that force, can move it,
d = L^-1 (F + rounding); there the same equations are solved for the change of lambda, with the rounding of their own
products beside what is left of them; and the gradient that comes out is compared. Where the Laplacian is nearly
singular, or strengths span many decades, both steps are long. Signs of rounding are not known: one probe has all of
them alike, which is the worst where no weight of the Laplacian is negative; where one is, a second probe mixes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from phasegrad._process import on_one_blas_thread
from phasegrad._validation import Array, BoolArray, FloatArray
from phasegrad.gradients._local import local_products, rounded_sizes, transposed_product
from phasegrad.gradients._problem import Problem

_EPS = float(np.finfo(float).eps)
# Roundings of a force or a product, in units of the last place of its largest part.
_ROUNDINGS = 4
# How much longer than the probes the worst combination of signs is taken to be.
_SAFETY = 4.0
# Radians beyond which a moved state says nothing of the one that was given.
_FAR = 0.5
# What the linear systems of the probes may leave: an error is asked for to a digit.
_ROUGHLY = 1e-2


@dataclass(frozen=True)
class Exact:
    """Slopes (B, width) by every parameter asked for, their errors, and where the Laplacian is regular, (B,)."""

    values: Mapping[str, Array]
    errors: Mapping[str, FloatArray]
    regular: BoolArray


@on_one_blas_thread
def exact_slopes(problem: Problem) -> Exact:
    """Return the adjoint gradient of a flat batch with its error, a part of the batch at a time.

    Costs one solve per sample and, for the error, a few more with the same factors; on a sparse network two solves to
    two digits, which together cost less than one more to rounding.
    """
    parts = [_exact_part(part) for _, part in problem.parts]
    return Exact(
        {name: np.concatenate([part.values[name] for part in parts]) for name in problem.wrt},
        {name: np.concatenate([part.errors[name] for part in parts]) for name in problem.wrt},
        np.concatenate([part.regular for part in parts]),
    )


def distances(problem: Problem, values: Mapping[str, Array], exact: Exact) -> dict[str, FloatArray]:
    """Return how far the slopes of another method are from the exact ones, plus what those may be off, (B, width).

    Where there are no exact ones, nothing is known.
    """
    found = {}
    for name in problem.wrt:
        far = np.abs(problem.in_units(name, values[name] - exact.values[name])) + exact.errors[name]
        found[name] = np.where(exact.regular[:, None], far, np.inf)
    return found


def force_rounding(problem: Problem) -> FloatArray:
    """Return how much of the force on every oscillator may be rounding, (B, N), the phases taken as they are."""
    system, phases = problem.system, problem.phases
    # A clamped phase is a product of the data, rounded as large as it is, and counted from where x = 0 sits.
    clamped = np.zeros_like(phases)
    if system.graph.clamped:
        clamped[:, system.graph.held] = np.abs(system.held_phases) + abs(problem.network.input_phase)
    angles = np.abs(system.graph.angles(phases)) + sum(
        np.take(clamped, ends, axis=1) for ends in (system.graph.first, system.graph.second)
    )
    size = np.abs(system.drive) + np.zeros_like(phases)
    if system.graph.pinned:
        # The mean frequency is subtracted from every one of them, and data may drive all.
        size += np.max(np.abs(problem.network.omega), initial=0.0)
        if problem.inputs is not None:
            size += problem.network.input_scale * np.max(np.abs(problem.inputs), axis=1, keepdims=True)
    for term in system.terms:
        forward, backward, diagonal, sums, outer = term.stiffest(system.graph, system.values)
        if forward is not None and backward is not None:
            size += system.graph.at_ends(forward * angles, backward * angles)
            pulls = term.capacity(system.graph, system.values)
            if pulls is not None and np.any(term.force(system.graph, system.values, np.zeros((1, system.graph.size)))):
                # Coupling that does not vanish where all phases are equal is rounded as large as it is.
                size += pulls
        if diagonal is not None:
            size += diagonal * (1.0 + np.abs(phases))
        if sums is not None:
            both = (np.take(np.abs(phases), ends, axis=1) for ends in (system.graph.first, system.graph.second))
            turned = sums * (1.0 + sum(both))
            size += system.graph.at_ends(turned, turned)
        if outer is not None:
            # Every oscillator feels the phases of all others, each as rounded as it is large.
            size += diagonal * np.max(np.abs(phases), axis=1, keepdims=True)
    if system.drifts:
        # Forces are counted from that on the reference.
        size += size[:, [system.graph.reference]]
    return _ROUNDINGS * _EPS * size


def _exact_part(problem: Problem) -> Exact:
    solver, free = problem.linearised, problem.network.graph.free
    moving, regular = solver.solve(problem.slope(problem.phases)[:, free], transposed=True)
    response = problem.system.spread(moving)
    products = _products(problem, problem.phases, response)
    values = problem.collected(products)
    errors = {name: np.zeros((problem.system.batch, 1)) for name in problem.wrt}
    force, rounding = problem.system.force(problem.phases)[:, free], force_rounding(problem)[:, free]
    for signs in _signs(free.size)[: 1 if solver.iterates or _is_attractive(problem) else 2]:
        shift, _ = solver.solve(force + signs * rounding, accuracy=_ROUGHLY)
        far = ~(np.max(np.abs(shift), axis=1, initial=0.0) <= _FAR)
        shift[far] = 0.0
        moved = _moved(problem, response, shift, signs)
        for name in problem.wrt:
            change = np.abs(problem.in_units(name, moved[name] - values[name]))
            largest = np.max(change, axis=1, keepdims=True, initial=0.0)
            largest[far | ~np.isfinite(largest[:, 0])] = np.inf
            errors[name] = np.maximum(errors[name], largest)
    sizes = rounded_sizes(problem, products, response)
    stated = {name: _SAFETY * errors[name] + 2 * _ROUNDINGS * _EPS * sizes[name] for name in problem.wrt}
    return Exact(values, stated, regular)


def _products(problem: Problem, phases: Array, response: Array) -> dict[str, Array]:
    return local_products(problem.network, problem.system, problem.wrt, phases, response)


def _moved(problem: Problem, response: Array, shift: Array, signs: Array) -> dict[str, Array]:
    """Return the gradient at a state moved by ``shift`` (B, n), its linear system rounded as ``signs`` say."""
    free = problem.network.graph.free
    phases = problem.phases.copy()
    phases[:, free] += shift
    slope = problem.slope(phases)
    product, size = transposed_product(problem.system, phases, response)
    left = slope - product
    left[:, free] += signs * _ROUNDINGS * _EPS * (size + np.abs(slope))[:, free]
    change, _ = problem.linearised.solve(left[:, free], transposed=True, accuracy=_ROUGHLY)
    return problem.collected(_products(problem, phases, response + problem.system.spread(change)))


def _is_attractive(problem: Problem) -> bool:
    """Return whether no weight of the Laplacian is negative."""
    graph, system = problem.network.graph, problem.system
    weights = (term.stiffness(graph, system.values, problem.phases) for term in system.terms)
    return all(
        each.outer is None and all(part is None or float(np.min(part, initial=0.0)) >= 0 for part in each[:4])
        for each in weights
    )


def _signs(size: int) -> tuple[FloatArray, FloatArray]:
    return np.ones(size), np.random.default_rng(size).choice([-1.0, 1.0], size)


def natural_size(problem: Problem) -> dict[str, FloatArray]:
    """Return how large the gradient of every name is nearby, (B,), which tells a zero from what is merely small.

    That is with all phases turned by up to a radian, the cost a thousandth of a radian away from its minimum, and a
    hundred thousandth of the largest response everywhere.
    """
    offsets = np.random.default_rng(problem.phases.shape[1]).uniform(-1.0, 1.0, problem.phases.shape[1])
    nearby, free = problem.phases + offsets, problem.network.graph.free
    slope = np.abs(problem.slope(problem.phases)) + 1e-3 * np.abs(problem.slope(nearby))
    solution, _ = problem.linearised.solve(slope[:, free], transposed=True, accuracy=_ROUGHLY)
    response = problem.system.spread(solution)
    response += 1e-5 * np.max(np.abs(response), axis=1, keepdims=True, initial=0.0) * np.sign(offsets)
    slopes = problem.collected(_products(problem, nearby, response))
    return {name: np.max(np.abs(slope), axis=1, initial=0.0) for name, slope in slopes.items()}
