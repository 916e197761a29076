"""From a network, inputs and a nudge to the system they make; force, energy and Laplacian of given phases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import LARGEST, SMALLEST, Array, FloatArray, joint_shape, last_axis_array
from phasegrad.dynamics._nudges import Nudge, Pull
from phasegrad.dynamics._system import System, Workspace
from phasegrad.graphs import refuse_dense
from phasegrad.networks import Network
from phasegrad.objectives import Cost

Shape = tuple[int, ...]


def assemble(
    network: Network,
    rows: FloatArray | None,
    batch: int,
    parameters: Mapping[str, Array] | None = None,
    workspace: Workspace | None = None,
) -> System:
    """Return the system of a batch of inputs (B, n_in), under the network's own or other parameters (b, width)."""
    return with_inputs(network, without_inputs(network, batch, parameters, workspace), rows)


def without_inputs(
    network: Network,
    batch: int,
    parameters: Mapping[str, Array] | None = None,
    workspace: Workspace | None = None,
) -> System:
    """Return the system of parameters as they were given: in no frame, and before any data drives it.

    Values that are shared are spread here over edges and nodes: no term and no solver knows that they are.
    """
    graph, given = network.graph, parameters or {}
    values = {
        each.name: graph.sharing.spread(each.on, given.get(each.name, network.parameters[each.name][None]))
        for term in network.terms
        for each in term.parameters
    }
    held_phases = np.zeros((batch, graph.held.size))
    return System(graph, network.terms, values, held_phases, workspace=workspace or Workspace())


def with_inputs(network: Network, system: System, rows: FloatArray | None) -> System:
    """Return what `without_inputs` returned in its frame, and driven by inputs (B, n_in), or (1, n_in) for all."""
    graph, values, held_phases = system.graph, dict(system.values), system.held_phases
    frequencies = input_frequencies(network, rows)
    if rows is not None and graph.clamped:
        held_phases = held_phases + (network.input_phase + network.input_scale * rows)
    for term in system.terms:
        values.update(term.in_frame(graph, values, frequencies))
    return system.replace(values=values, held_phases=held_phases)


def input_frequencies(network: Network, rows: FloatArray | None) -> FloatArray | None:
    """Return the frequencies at which data (B, n_in) drives the inputs; None where it does not."""
    return None if rows is None or network.clamps_inputs else network.input_scale * rows


def build_system(
    network: Network, inputs: ArrayLike | None, nudge: Nudge | None = None, workspace: Workspace | None = None, *,
    parameters: Mapping[str, Array] | None = None, owner: str = "find_equilibrium",
) -> tuple[System, Shape]:  # fmt: skip
    """Return the flat system of a batch of inputs, targets and parameters, and the batch shape they broadcast to.

    Parameters (..., width) by name stand in for the network's own; ``owner`` is who is asked, for errors.
    """
    if not isinstance(network, Network):
        raise TypeError(f"Expected a Network. Got {type(network).__name__}.")
    target = checked_target(network, nudge)
    data, given = checked_inputs(network, inputs, owner), parameters or {}
    shape: Shape = () if data is None else data.shape[:-1]
    for values in given.values():
        shape = joint_shape(shape, values.shape[:-1], ("Inputs", "networks"))
    if target is not None:
        shape = joint_shape(
            shape, target.shape[:-1], ("Inputs", "targets"), "Give one target per input row, or one for all."
        )
    batch = int(np.prod(shape, dtype=np.int64))
    rows = None if data is None else laid_flat(data, shape)
    system = assemble(network, rows, batch, {name: laid_flat(v, shape) for name, v in given.items()}, workspace)
    if nudge is not None and target is not None:
        system = system.replace(pull=pull_of(network, nudge, laid_flat(target, shape)))
    return system, shape


def checked_target(network: Network, nudge: Nudge | None) -> Array | None:
    """Return the target (..., M) of a nudge that makes sense; None where there is no nudge."""
    if nudge is None:
        return None
    if not (isinstance(nudge, Nudge) and isinstance(nudge.objective, Cost)):
        raise TypeError(f"The 'nudge' parameter must be a Nudge(objective, target, beta). Got {nudge!r}.")
    beta = np.asarray(nudge.beta)
    if beta.ndim or beta.dtype.kind not in "iufc" or not SMALLEST <= abs(beta) <= LARGEST:
        raise ValueError(
            "The 'beta' parameter of Nudge must be a finite number other than 0, from "
            f"{SMALLEST:g} to {LARGEST:g} in magnitude. Got {nudge.beta!r}."
        )
    return nudge.objective.check_target(nudge.target, network)


def pull_of(network: Network, nudge: Nudge, goals: Array) -> Pull:
    """Return a nudge toward these targets (B, M)."""
    nodes = np.asarray(nudge.objective.nodes(network), dtype=np.int64)
    return Pull(nudge.objective, nodes, goals, np.broadcast_to(np.asarray(nudge.beta), (goals.shape[0], 1)))


def laid_flat(values: Array, shape: Shape) -> Array:
    """Return values (..., width) of a batch of this shape as rows (B, width)."""
    rows = np.broadcast_to(values, (*shape, values.shape[-1]))
    return rows.reshape(int(np.prod(shape, dtype=np.int64)), values.shape[-1])


def force(
    network: Network, phases: ArrayLike, inputs: ArrayLike | None = None, *, nudge: Nudge | None = None
) -> FloatArray:
    """Return the force on every oscillator, shape (..., N), of phases (..., N), in the frame where equilibria rest.

    Which frame that is depends on what fixes it:

    - a field or a clamped input: natural frequencies act as they are given, and nothing is subtracted;
    - nothing (``network.pinned``): the mean of all natural frequencies, those of the inputs included, is subtracted
      from each of them;
    - nothing, and coupling is not reciprocal: the force on the reference is subtracted as well, so that it is zero
      there, unless the network is grounded.

    Parameters
    ----------
    network : Network
    phases : array_like, shape (..., N)
        Of all oscillators, held ones included.
    inputs : array_like, shape (..., n_in), optional
    nudge : Nudge, optional
        A real pull on the outputs.

    See Also
    --------
    energy : The energy of phases.
    laplacian : Minus the derivative of the force.
    simulate : The dynamics in time.
    find_equilibrium : One certified equilibrium per sample.

    Notes
    -----
    What stands at a held oscillator, a clamped input or the reference, is what its holder must balance; in time
    (`simulate`) clamped inputs alone stand still. In time the frame turns with the mean frequency also where coupling
    is not reciprocal: for damping 1 and without inertia ``simulate(...).velocities`` are these forces but for what is
    subtracted in the last case, and with ``frame="laboratory"`` the mean frequency is added to all of them.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.dynamics.force(pg.networks.ring(3, omega=[4.0, 5.0, 6.0]), [0.0, 0.0, 0.0]).tolist()
    [-1.0, 0.0, 1.0]
    """
    system, rows, shape = _at_phases(network, phases, inputs, "force", nudge)
    return system.force(rows).reshape((*shape, network.size))


def energy(network: Network, phases: ArrayLike, inputs: ArrayLike | None = None) -> FloatArray:
    """Return the energy, shape (...), of phases (..., N); reciprocal coupling only.

    See Also
    --------
    force : The force on every oscillator.
    laplacian : Minus the derivative of the force.

    Examples
    --------
    >>> import phasegrad as pg
    >>> float(pg.dynamics.energy(pg.networks.ring(4), [0, 0, 0, 0]))
    -4.0
    """
    if not network.reciprocal:
        raise ValueError(
            "This network has no energy: its coupling is not reciprocal. Use the residual of the force instead."
        )
    system, rows, shape = _at_phases(network, phases, inputs, "energy")
    return system.energy(rows).reshape(shape)


def laplacian(network: Network, phases: ArrayLike, inputs: ArrayLike | None = None, *, compressed: bool = False) -> Any:
    """Return the reduced Laplacian over the oscillators ``network.free`` that move.

    Parameters
    ----------
    network : Network
    phases : array_like, shape (..., N)
    inputs : array_like, shape (..., n_in), optional
    compressed : bool
        False gives dense matrices, shape (..., n, n), up to 12,000 oscillators. True gives a `scipy.sparse.csr_array`
        of shape (n, n), for a single sample and reciprocal coupling.

    See Also
    --------
    energy : The energy of phases.
    force : The force on every oscillator.
    Equilibrium : Phases with the certificate of every sample.

    Examples
    --------
    >>> import numpy as np, phasegrad as pg
    >>> pg.dynamics.laplacian(pg.networks.ring(4), np.zeros(4)).tolist()
    [[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]]
    >>> pg.dynamics.laplacian(pg.networks.lattice(100, 100), np.zeros(10_000), compressed=True).nnz
    49595
    """
    if not compressed:
        refuse_dense(network.size, "laplacian", "Ask for laplacian(..., compressed=True) instead.")
    system, rows, shape = _at_phases(network, phases, inputs, "laplacian")
    if compressed:
        if shape or not network.reciprocal:
            raise ValueError("laplacian(compressed=True) is for a single sample and reciprocal coupling.")
        if system.outer(rows) is not None:
            raise ValueError(
                "The Laplacian of a mean field has no zeros to leave out. Ask for compressed=False instead."
            )
        return system.sparse_laplacian(rows)
    size = network.free.size
    return system.laplacian(rows).reshape((*shape, size, size))


def wrapped(angle: Array) -> Array:
    """Return angles in [-pi, pi)."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


def checked_inputs(network: Network, inputs: ArrayLike | None, owner: str) -> FloatArray | None:
    """Return inputs (..., n_in) that a network can take; None where there are none."""
    if inputs is None:
        if network.clamps_inputs:
            raise ValueError(
                f"This network clamps the phases of its {len(network.inputs)} inputs: give 'inputs' with a last axis "
                "of that length."
            )
        return None
    if not network.inputs:
        raise ValueError("Inputs were given, but this network has no input oscillators.")
    return last_axis_array("inputs", inputs, len(network.inputs), "the network's inputs", owner)


def _at_phases(
    network: Network, phases: ArrayLike, inputs: ArrayLike | None, owner: str, nudge: Nudge | None = None
) -> tuple[System, FloatArray, Shape]:
    array = last_axis_array("phases", phases, network.size, "one phase per oscillator", owner)
    system, own = build_system(network, inputs, nudge, owner=owner)
    if system.is_complex:
        raise ValueError(f"The 'nudge' parameter of {owner} must have a real strength. Got {nudge!r:.80}.")
    shape = joint_shape(own, array.shape[:-1], ("Inputs", "phases"))
    rows = np.broadcast_to(array, (*shape, network.size)).reshape(-1, network.size)
    samples = np.broadcast_to(np.arange(system.batch).reshape(own), shape).ravel()
    return system.take(samples), rows, shape
