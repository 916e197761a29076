"""What is measured in ngspice, beside what the phase model says; every function returns plain data."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phasegrad._validation import FloatArray
from phasegrad.circuits import (
    Bridge,
    Circuit,
    CircuitWarning,
    averaging_shift,
    lock,
    ngspice,
    ngspice_version,
    phase_history,
    settling_cycles,
    write_netlist,
)
from phasegrad.dynamics import laplacian
from phasegrad.equilibria import find_equilibrium
from phasegrad.gradients import adjoint, cosine, gradient_from_phases
from phasegrad.networks import Network, layered
from phasegrad.objectives import Cost
from phasegrad.training import Adam

#: What drives the inputs.
INPUTS = (1.0, -1.0)
#: Networks as they are built, and with natural frequencies drawn with this deviation, which pull phases far apart.
NARROW, WIDE = 0.0, 3.0
#: The nudge by one more resistor, and by torques, as multiples of the error.
BRIDGE, TORQUES = 0.2, 2.0
#: A gradient is good from this cosine on.
GOOD = 0.99
_PARAMETERS = ("omega", "coupling")
# What is learned: two samples, and by how much the outputs should differ in phase.
_SAMPLES, _TARGETS = ((1.0, -1.0), (-1.0, 1.0)), ((0.4, 0.0), (-0.4, 0.0))
_LEAST_COUPLING = 0.05
_MOST_HALVINGS = 6


class OutputDifference(Cost):
    """1 - cos of the difference of two outputs less the first entry of the target."""

    def cost(self, phases: NDArray[Any], target: NDArray[Any]) -> NDArray[Any]:
        """Return the cost, shape (...)."""
        return np.asarray(1 - np.cos(phases[..., 0] - phases[..., 1] - target[..., 0]))

    def force(self, phases: NDArray[Any], target: NDArray[Any]) -> NDArray[Any]:
        """Return the pull on both outputs, shape (..., 2)."""
        pull = np.sin(phases[..., 0] - phases[..., 1] - target[..., 0])
        return np.stack([-pull, pull], axis=-1)


def drawn_network(seed: int, spread: float) -> Network:
    """Return a 2+5+2 network as it is built, or with natural frequencies of a deviation ``spread``."""
    network = layered(2, 5, 2, seed=seed)
    if not spread:
        return network
    drawn = np.random.default_rng(seed).normal(0.0, spread, network.size - len(network.inputs))
    return network.replace(omega=np.concatenate([np.zeros(len(network.inputs)), drawn]))


def phases(eps: float, seed: int, spread: float) -> dict[str, Any]:
    """Hold the phases of a circuit against the phase model, as they are and after the first-order correction."""
    network = drawn_network(seed, spread)
    circuit = Circuit(network, eps=eps)
    netlist = circuit.netlist(INPUTS)
    waveforms = ngspice(netlist)
    reading = lock(waveforms, netlist.frequency)
    state = find_equilibrium(network, INPUTS)
    off = _wrapped(reading.phases - reading.phases[network.reference] - state.phases)
    corrected = off - averaging_shift(network, circuit.components, INPUTS)
    return {
        "error": float(np.max(np.abs(off))),
        "corrected": float(np.max(np.abs(corrected))),
        "spread": float(np.ptp(state.phases)),
        "reading_error": float(np.max(reading.errors)),
        "settling_cycles": settling_cycles(waveforms, reading.frequency),
        "time_constant": _time_constant(network, state.phases, eps),
        "locked": reading.locked,
        "ngspice": ngspice_version(),
        "netlist": netlist.text,
    }


def gradients(eps: float, seed: int, spread: float) -> dict[str, Any]:
    """Hold gradients that nudges of a circuit show against the exact ones, by frequencies and by couplings."""
    network, objective, target = drawn_network(seed, spread), OutputDifference(), np.zeros(2)
    circuit, rows = Circuit(network, eps=eps), np.array([INPUTS])
    first, second = network.outputs

    def shown(strength: float, pull: FloatArray | None = None) -> FloatArray:
        with _far_apart():
            if pull is not None:
                circuit.run(rows, strength * pull)
            else:
                circuit.run(rows, nudges=[Bridge(first, second, strength)] if strength else ())
        return circuit.read()[0]

    free = shown(0.0)
    error = objective.force(free[list(network.outputs)], target)
    ways = {
        "bridge": (BRIDGE, shown(BRIDGE), None),
        "torques": (TORQUES, shown(TORQUES, error), shown(-TORQUES, error)),
    }
    exact = adjoint(network, find_equilibrium(network, INPUTS), objective, target, wrt=_PARAMETERS)
    found: dict[str, Any] = {"ngspice": ngspice_version()}
    for name, (beta, ahead, behind) in ways.items():
        slopes = gradient_from_phases(
            network, free, ahead, beta, opposite=behind, inputs=INPUTS, wrt=_PARAMETERS
        )  # fmt: skip
        found[name] = {each: cosine(slopes[each], getattr(exact, each)) for each in _PARAMETERS}
    return found


def settling(eps: float, seed: int, spread: float) -> dict[str, Any]:
    """Follow the gradient while a circuit settles under a nudge that begins at its free state."""
    network, objective, target = drawn_network(seed, spread), OutputDifference(), np.zeros(2)
    circuit = Circuit(network, eps=eps)
    netlist = circuit.netlist(INPUTS)
    free = lock(ngspice(netlist), netlist.frequency)
    first, second = network.outputs

    def history(*nudges: Bridge) -> tuple[FloatArray, FloatArray]:
        started = write_netlist(network, circuit.components, INPUTS, nudges=nudges, start=free.phases)
        return phase_history(ngspice(started), free.frequency)

    # What is left of how the simulation begins is in both runs.
    cycles, resting = history()
    moving = history(Bridge(first, second, BRIDGE))[1]
    slopes = gradient_from_phases(network, resting, moving, BRIDGE, wrt=_PARAMETERS)
    state = find_equilibrium(network, INPUTS)
    exact = adjoint(network, state, objective, target, wrt=_PARAMETERS)
    curves = {
        name: [cosine(row, getattr(exact, name)) for row in slopes[name]] for name in _PARAMETERS
    }  # fmt: skip
    poor = [k for k in range(len(cycles)) if min(curve[k] for curve in curves.values()) < GOOD]
    last = poor[-1] + 1 if poor else 0
    return {
        "cycles": cycles.tolist(),
        "cosines": curves,
        "good_after": float(cycles[last]) if last < len(cycles) else None,
        "time_constant": _time_constant(network, state.phases, eps),
        "ngspice": ngspice_version(),
    }


def learning(seed: int, updates: int, eps: float = 0.02, rate: float = 0.2, cycles: int = 150) -> dict[str, Any]:
    """Train a circuit on what is read of it alone: free phases, and phases under torques of both signs."""
    network, objective = drawn_network(seed, 1.0), OutputDifference()
    inputs, targets = np.array(_SAMPLES), np.array(_TARGETS)
    circuit, optimizer = Circuit(network, eps=eps, cycles=cycles), Adam(0.8, 0.95, 1e-4)
    memory = optimizer.start({name: network.parameters[name][None] for name in _PARAMETERS})
    costs, halved, shortened = [], 0, 0
    first_netlist = circuit.netlist(inputs[0]).text
    circuit.run(inputs)
    free = circuit.read()
    for _ in range(updates):
        outputs = free[:, list(network.outputs)]
        costs.append(float(np.mean(objective.cost(outputs, targets))))
        beta, ahead, behind, times = _nudged(circuit, inputs, objective.force(outputs, targets))
        halved += times
        slopes = gradient_from_phases(
            network, free, ahead, beta, opposite=behind, inputs=inputs, wrt=_PARAMETERS, frequencies="raw"
        )
        slopes["omega"][:, list(network.inputs)] = 0.0
        means = {name: slope.mean(axis=0, keepdims=True) for name, slope in slopes.items()}
        steps, memory = optimizer.step(memory, means, dict.fromkeys(_PARAMETERS, rate))
        free, times = _moved(circuit, inputs, {name: step[0] for name, step in steps.items()})
        network, shortened = circuit.network, shortened + times
    costs.append(float(np.mean(objective.cost(free[:, list(network.outputs)], targets))))
    return {
        "costs": costs, "halved": halved, "shortened": shortened, "eps": eps, "rate": rate, "cycles": cycles,
        "ngspice": ngspice_version(), "netlist": first_netlist, "final_netlist": circuit.netlist(inputs[0]).text,
    }  # fmt: skip


def _moved(circuit: Circuit, inputs: FloatArray, steps: dict[str, FloatArray]) -> tuple[FloatArray, int]:
    """Program a step after which every sample still locks, and return their phases and how often it was halved."""
    before = circuit.network.parameters
    for times in range(_MOST_HALVINGS):
        after = {name: before[name] + 0.5**times * step for name, step in steps.items()}
        circuit.program({**after, "coupling": np.maximum(after["coupling"], _LEAST_COUPLING)})
        circuit.run(inputs)
        free = circuit.read()
        if np.all(np.isfinite(free)):
            return free, times
    raise ValueError("This circuit does not lock after any step that was tried. Choose a smaller rate.")


def _nudged(circuit: Circuit, inputs: FloatArray, pull: FloatArray) -> tuple[float, FloatArray, FloatArray, int]:
    """Return a nudge that every sample holds, the phases under it and its opposite, and how often it was halved."""
    for times in range(_MOST_HALVINGS):
        beta = 0.5**times
        read = []
        for sign in (1, -1):
            circuit.run(inputs, sign * beta * pull)
            read.append(circuit.read())
        if np.all(np.isfinite(read)):
            return beta, read[0], read[1], times
    raise ValueError("This circuit leaves its locked state under every nudge that was tried. Choose a smaller rate.")


def _time_constant(network: Network, state: FloatArray, eps: float) -> float:
    """Return the time in which the slowest mode of the phase model falls by e, in cycles of the circuit."""
    # Of all oscillators, not with the reference held: a free circuit turns as a whole.
    size = network.size
    full = np.zeros((size, size))
    free = network.free
    full[np.ix_(free, free)] = laplacian(network, state, INPUTS)
    held = np.setdiff1d(np.arange(size), free)
    full[np.ix_(held, free)] = -full[np.ix_(free, free)].sum(axis=0)
    full[:, held] = -full[:, free].sum(axis=1, keepdims=True)
    slowest = np.sort(np.linalg.eigvalsh((full + full.T) / 2))[1]
    return float(1 / (2 * np.pi * eps * slowest))


@contextmanager
def _far_apart() -> Iterator[None]:
    """Let circuits be far from the phase model, which is what is measured here, without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The phases of sample .* are predicted to differ", CircuitWarning)
        yield


def _wrapped(angles: FloatArray) -> FloatArray:
    return np.asarray(np.mod(angles + np.pi, 2 * np.pi) - np.pi)
