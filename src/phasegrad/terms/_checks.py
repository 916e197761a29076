"""What is wrong with a term of one's own, said when a network is built with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from phasegrad._validation import SMALLEST, Array
from phasegrad.graphs import Graph
from phasegrad.terms._engine import EngineInterface, States
from phasegrad.terms._parameter import Values
from phasegrad.terms._stiffness import Stiffness
from phasegrad.terms._term import Term

_STEP, _SLACK = 1e-5, 1e-4


@np.errstate(all="ignore")
def check_term(term: Term, graph: Graph, values: Values) -> None:
    """Raise ValueError in words where the formulas of a term contradict each other at two random states.

    Force is compared with energy, and stiffness with force, by central differences along a random direction; values
    that are not finite are skipped. Of ``energy_slopes`` and ``force_slopes`` only names and shapes are checked, and
    that sums over samples follow from them: `check_gradients` tests them. ``values`` are arrays (1, width) by name.
    """
    phases, along = np.random.default_rng(0).uniform(-1, 1, (2, 2, graph.size))
    name = type(term).__name__

    def slope(formula: Any) -> Array:
        ahead, behind = (formula(graph, values, phases + sign * _STEP * along) for sign in (1, -1))
        return (ahead - behind) / (2 * _STEP)

    force = term.force(graph, values, phases)
    _check_shape(f"{name}.force", force, phases.shape)
    bounds, constant = term.capacity(graph, values), term.drive(graph, values)
    most, drive = (np.zeros(1) if each is None else each for each in (bounds, constant))
    if np.any(np.abs(force - drive) > most + 1e-9 * np.abs(force)):
        raise ValueError(
            f"{name}.capacity must be the most that the force can pull each oscillator, what {name}.drive returns left "
            f"aside. It is exceeded at random phases, by {np.max(np.abs(force - drive) - most):.3g}."
        )
    stiffness = _checked_stiffness(term, graph, values, phases)
    if _differ(_applied(stiffness, graph, along), -slope(term.force), force):
        raise ValueError(
            f"{name}.stiffness is not minus the slope of {name}.force: by phases of the two ends of edges, forward and "
            "backward, of the oscillator itself, diagonal, of the sum of two ends, sums, and of all together, outer."
        )
    if not term.fixes_gauge and _differ(term.force(graph, values, phases + 1.0), force, force):
        raise ValueError(
            f"{name}.force changes when all phases turn together, so that it ties oscillators to the frame. Say "
            f"fixes_gauge = True, and let {name}.grounded return which oscillators it ties."
        )
    if term.has_local_field:
        _check_local_field(term, graph, values, phases, force)
    if term.local:
        _check_local(term, graph, values, force, stiffness)
    _check_harmonics(term, values, phases, force)
    if term.symmetric:
        energy = term.energy(graph, values, phases)
        _check_shape(f"{name}.energy", energy, (2,))
        work, rise = -np.sum(force * along, axis=1, keepdims=True), slope(term.energy)[:, None]
        if _differ(work, rise, np.abs(force).sum(axis=1, keepdims=True) * _SLACK + energy[:, None]):
            raise ValueError(
                f"{name}.force is not minus the slope of {name}.energy: along a random direction the energy rises by "
                f"{rise[0, 0]:.6g}, minus the force says {work[0, 0]:.6g}. Without an energy say symmetric = False."
            )
        _check_slopes(f"{name}.energy_slopes", term, term.energy_slopes(graph, values, phases), graph)
        _check_symmetric_outer(f"{name}.stiffness", stiffness.outer)
    _check_slopes(f"{name}.force_slopes", term, term.force_slopes(graph, values, phases, along), graph)
    _check_sums(term, graph, values, phases, along)


def check_strongest(name: str, values: Array) -> None:
    """Refuse couplings of which all are so weak that forces, and their squares, leave the range of floats."""
    strongest = float(np.max(np.abs(values), initial=0.0))
    if 0 < strongest < SMALLEST:
        raise ValueError(
            f"The '{name}' parameter of Network must be 0, or {SMALLEST:g} or more at its largest. Got at most "
            f"{strongest:g}. Choose another unit of time."
        )


def _checked_stiffness(term: Term, graph: Graph, values: Values, phases: Array) -> Stiffness:
    """Return the stiffness of a term; refuse parts of the wrong shape, and parts without a bound."""
    name, widths = type(term).__name__, _widths(graph)
    stiffness, stiffest = term.stiffness(graph, values, phases), term.stiffest(graph, values)
    for word, each in (("stiffness", stiffness), ("stiffest", stiffest)):
        if not isinstance(each, Stiffness):
            raise ValueError(
                f"{name}.{word} must return a Stiffness(forward, backward, diagonal, sums, outer). Got {each!r:.80}."
            )
        for part, width in zip(each[:4], widths, strict=True):
            if part is not None:
                _check_shape(f"{name}.{word}, in each of its parts,", part, (len(part) if np.ndim(part) else 1, width))
        _check_outer(f"{name}.{word}", each.outer, graph.size)
    if any(part is not None and bound is None for part, bound in zip(stiffness, stiffest, strict=True)):
        raise ValueError(f"{name}.stiffest must bound every part that {name}.stiffness has. Got {stiffest}.")
    return stiffness


def _applied(stiffness: Stiffness, graph: Graph, along: Array) -> Array:
    """Return what a stiffness adds to the product of the Laplacian with a direction (2, N)."""
    zero = [
        np.zeros((1, width)) if part is None else part
        for part, width in zip(stiffness[:4], _widths(graph), strict=True)
    ]
    turned = graph.angles(along) + np.zeros((2, 1))
    moved = zero[3] * (np.take(along, graph.first, axis=1) + np.take(along, graph.second, axis=1))
    stiff = graph.at_ends(moved - zero[0] * turned, moved + zero[1] * turned) + zero[2] * along
    if stiffness.outer is not None:
        left, right = stiffness.outer
        stiff = stiff - (left @ (right.swapaxes(1, 2) @ along[:, :, None]))[:, :, 0]
    return stiff


def _widths(graph: Graph) -> tuple[int, ...]:
    """Return how many numbers the parts of a stiffness have, but for that of low rank."""
    return graph.n_edges, graph.n_edges, graph.size, graph.n_edges


def _check_local_field(term: Term, graph: Graph, values: Values, phases: Array, force: Array) -> None:
    """Raise ValueError where what a term says of phasors is not its force."""
    phasors, first, second = np.exp(1j * phases), graph.first, graph.second
    field, neighbours = term.phasor_field(values), term.local_field(values)
    local = np.zeros(phases.shape, dtype=complex)
    if field is not None:
        local += field[0] + 1j * field[1]
    strength, drive = term.mean_strength(graph, values), term.drive(graph, values)
    if strength is not None:
        local += strength * np.sum(phasors, axis=1, keepdims=True)
    if neighbours is not None:
        along, across, mirrored = (0.0 * neighbours.along if part is None else part for part in neighbours)
        for on, other, k in ((first, second, 0), (second, first, 1)):
            theirs = np.take(phasors, other, axis=1)
            for row, each in enumerate((along[k] - 1j * across[k]) * theirs - mirrored[k] * theirs.conj()):
                np.add.at(local[row], on, each)
    pull = np.imag(local * phasors.conj()) + (0.0 if drive is None else drive)
    if _differ(pull, force, force):
        name = type(term).__name__
        raise ValueError(
            f"{name}.force is not what {name}.drive, phasor_field, phasor_edges, local_field and mean_strength say "
            "together. Say phasor = False and has_local_field = False if it is no sine of phases."
        )


def _check_local(term: Term, graph: Graph, values: Values, force: Array, stiffness: Stiffness) -> None:
    """Refuse a term that says it acts on oscillators by their own phases alone, where it does not."""
    name = type(term).__name__
    phases = np.random.default_rng(0).uniform(-1, 1, (2, 2, graph.size))[0]
    part = {parameter.name: values[parameter.name][..., ::2] for parameter in term.parameters}
    elementwise = all(parameter.on == "nodes" for parameter in term.parameters)
    if not elementwise or any(each is not None for each in (*stiffness[:2], *stiffness[3:])):
        raise ValueError(
            f"{name}.local is True, but its parameters or its stiffness are not those of single nodes. "
            "Say local = False."
        )
    alone = term.force(graph, part, phases[:, ::2])
    if alone.shape != force[:, ::2].shape or not np.allclose(alone, force[:, ::2], rtol=1e-9, equal_nan=True):
        raise ValueError(
            f"{name}.local is True, but {name}.force of some of the oscillators is not what it is among all. Say "
            "local = False where an oscillator feels more than its own phase."
        )


def _check_harmonics(term: Term, values: Values, phases: Array, force: Array) -> None:
    """Refuse harmonics that are not the force: those of a class whose formulas a subclass replaces, for example."""
    waves, name = term.harmonics(values), type(term).__name__
    if waves is None:
        return
    pull = np.zeros(phases.shape)
    for k, (x, y) in enumerate(zip(*waves, strict=True), 1):
        pull = pull + y * np.cos(k * phases) - x * np.sin(k * phases)
    if _differ(pull, force, force):
        raise ValueError(
            f"{name}.harmonics are not those of {name}.force. Let {name}.harmonics return None where the force is no "
            "finite series."
        )


def _check_sums(term: Term, graph: Graph, values: Values, phases: Array, along: Array) -> None:
    """Refuse overridden sums over samples that are not the sums of the slopes."""
    share, turn = np.array([[0.4, 0.7]]), along.copy()
    turn[:, graph.held] = 0.0
    states = [States(graph, phases + sign * turn) for sign in (1, -1)]
    sums: dict[str, tuple[Any, ...]] = {"summed_products": (phases, turn, share)}
    if term.symmetric:
        sums["summed_contrast"] = (*states, share)
    for word, given in sums.items():
        if getattr(type(term), word) is getattr(EngineInterface, word):
            continue
        mine = getattr(term, word)(graph, values, *given)
        expected = getattr(EngineInterface, word)(term, graph, values, *given)
        for parameter, slope in expected.items():
            if parameter not in mine or _differ(mine[parameter], slope, slope):
                raise ValueError(
                    f"{type(term).__name__}.{word} of {parameter!r} is not the sum of its slopes over samples. Leave "
                    f"'{word}' out, or take that of Term."
                )


def _differ(mine: Array, measured: Array, scale: Array) -> bool:
    """Return whether slopes differ by more than a small share of them and the rounding of what they are slopes of."""
    size = np.maximum(np.linalg.norm(mine, axis=1), np.linalg.norm(measured, axis=1))
    slack = _SLACK * size + 1e-9 * np.linalg.norm(scale, axis=1)
    return bool(np.any(np.linalg.norm(mine - measured, axis=1) > slack))


def _check_shape(words: str, given: Any, shape: tuple[int, ...]) -> None:
    if np.shape(given) != shape:
        raise ValueError(f"{words} must return shape {shape} for phases of 2 samples. Got {np.shape(given)}.")


def _check_outer(words: str, given: Any, size: int) -> None:
    """Refuse what is not two factors of a matrix of low rank."""
    shapes = [np.shape(part) for part in given] if isinstance(given, tuple) else [None]
    if given is not None and not (len(shapes) == 2 and all(s and len(s) == 3 and s[1] == size for s in shapes)):
        raise ValueError(f"{words}, as 'outer', must return two arrays (samples, {size}, rank). Got shapes {shapes}.")


def _check_symmetric_outer(words: str, outer: tuple[Array, Array] | None) -> None:
    """Refuse two factors A and B whose product A B^T is not symmetric.

    The product lives on the columns of A and B: with an orthonormal basis Q of them it is Q (Q^T A B^T Q) Q^T.
    """
    if outer is None or not all(np.all(np.isfinite(factor)) for factor in outer):
        return
    left, right = outer
    basis = np.linalg.qr(np.concatenate(np.broadcast_arrays(left, right), axis=2))[0].swapaxes(1, 2)
    product = (basis @ left) @ (basis @ right).swapaxes(1, 2)
    slack = _SLACK * np.linalg.norm(product, axis=(1, 2))
    if np.any(np.linalg.norm(product - product.swapaxes(1, 2), axis=(1, 2)) > slack):
        raise ValueError(
            f"{words}, as 'outer', must return factors A and B with a symmetric A B^T where the term has an energy. "
            "Put what else it adds to the Laplacian elsewhere, or say symmetric = False."
        )


def _check_slopes(words: str, term: Term, given: Any, graph: Graph) -> None:
    names = [parameter.name for parameter in term.parameters]
    if not isinstance(given, Mapping) or set(given) != set(names):
        keys = ", ".join(map(repr, given)) if isinstance(given, Mapping) else type(given).__name__
        raise ValueError(f"{words} must return one array by the name of each parameter, {names}. Got {keys}.")
    for parameter in term.parameters:
        width = {"nodes": graph.size, "edges": graph.n_edges}.get(parameter.on, 1)
        _check_shape(f"{words}[{parameter.name!r}]", given[parameter.name], (2, width))
