"""Netlists: a network, its data and its nudges as text that SPICE reads.

A positive coupling is a resistor between two tanks. A negative one is a crossed pair of resistors, each from a tank to
the inverted voltage of the other, as wires are crossed where tanks are differential; the inverter is ideal. A clamped
input is a source, a field a resistor to a source. Torques shift natural frequencies: they change capacitors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import FloatArray, finite_array, node_tuple, positive_float, shaped_array, whole_number
from phasegrad.circuits._components import Components
from phasegrad.dynamics import build_system
from phasegrad.networks import Network
from phasegrad.terms import Sine

_PARAMETERS = ("coupling", "omega", "field_strength", "field_phase")
# Cycles that a circuit is given to settle, times eps; steps of the simulation in a cycle, without and with sources.
_SETTLING = 6.0
_STEPS, _STEPS_BESIDE_SOURCES = 60, 200


@dataclass(frozen=True)
class Bridge:
    """A nudge by one more resistor, between two oscillators: ``strength`` times the cost 1 - cos(theta_a - theta_b).

    A negative strength crosses the wires.

    See Also
    --------
    circuits.Injection : A nudge by a resistor to a source.
    circuits.write_netlist : A network as a netlist.

    Examples
    --------
    >>> import phasegrad as pg
    >>> from phasegrad.circuits import Bridge, Components, write_netlist
    >>> network = pg.networks.ring(4, omega=[0.1, 0.0, -0.1, 0.0])
    >>> nudged = write_netlist(network, Components(), nudges=[Bridge(0, 2, 0.1)])
    >>> sum(line.startswith("R") for line in nudged.text.splitlines()) - network.n_edges
    1
    """

    first: int
    second: int
    strength: float


@dataclass(frozen=True)
class Injection:
    """A nudge by a resistor to a source at a phase: ``strength`` times the cost 1 - cos(theta - phase).

    It needs a circuit that has sources anyway, those of clamped inputs or of fields.

    See Also
    --------
    circuits.Bridge : A nudge by one more resistor.
    circuits.write_netlist : A network as a netlist.

    Examples
    --------
    >>> import phasegrad as pg
    >>> from phasegrad.circuits import Components, Injection, write_netlist
    >>> network = pg.networks.ring(4, omega=[0.1, 0.0, -0.1, 0.0], field_strength=[1.0, 0.0, 0.0, 0.0])
    >>> nudged = write_netlist(network, Components(), nudges=[Injection(2, phase=0.2, strength=0.1)])
    >>> sum(line.startswith("R") for line in nudged.text.splitlines()) - network.n_edges  # of the field, of the nudge
    2
    """

    node: int
    phase: float
    strength: float


@dataclass(frozen=True)
class Netlist:
    """Text for SPICE, and what it says.

    Parameters
    ----------
    text : str
        The netlist, without the tolerances of the simulation.
    nodes : tuple of str
        Names of the nodes of all oscillators, in their order.
    frequency : float
        About which they oscillate, in hertz; exactly where ``driven``.
    cycles : int
        How many are simulated.
    driven : bool
        Whether sources set frequency and phase.
    scales : (float, float)
        Volts and amperes that are typical of it, and farads: by these the tolerances go.

    See Also
    --------
    circuits.write_netlist : A network as a netlist.
    circuits.ngspice : Run a netlist.

    Examples
    --------
    >>> import phasegrad as pg
    >>> netlist = pg.circuits.write_netlist(pg.networks.ring(3, omega=[0.1, 0.0, -0.1]), pg.circuits.Components())
    >>> netlist.nodes, netlist.driven
    (('n0', 'n1', 'n2'), False)
    """

    text: str
    nodes: tuple[str, ...]
    frequency: float
    cycles: int
    driven: bool = False
    scales: tuple[float, float, float] = (1.0, 1e-3, 1e-12)


def write_netlist(
    network: Network, components: Components, inputs: ArrayLike | None = None, *, torques: ArrayLike | None = None,
    nudges: Iterable[Bridge | Injection] = (), cycles: int | None = None, steps: int | None = None,
    start: ArrayLike | None = None,
) -> Netlist:  # fmt: skip
    """Return a network as a netlist, for one sample.

    Parameters
    ----------
    network : Network
        With reciprocal sine coupling and, if any, fields.
    components : Components
    inputs : array_like, shape (n_in,), optional
    torques : array_like, shape (M,), optional
        On the outputs, as shifts of their natural frequencies; minus their sum shifts the reference where phases are
        counted from that.
    nudges : iterable of Bridge or Injection
    cycles : int, optional
        To simulate; 6 / eps if left out.
    steps : int, optional
        In a cycle; 60 if left out, 200 where there are sources.
    start : array_like, shape (N,), optional
        Phases at the beginning; zero if left out.

    See Also
    --------
    circuits.Components : Frequency, impedance and coupling of the tanks.
    circuits.ngspice : Run a netlist.

    Examples
    --------
    >>> import phasegrad as pg
    >>> from phasegrad.circuits import Components, write_netlist
    >>> netlist = write_netlist(pg.networks.complete(2, omega=[0.5, -0.5], outputs=[1]), Components())
    >>> [line for line in netlist.text.splitlines() if line.startswith("R")]
    ['R0 n0 n1 5.000000000000e+04']
    """
    check_network(network)
    system, shape = build_system(network, inputs)
    if shape:
        raise ValueError(f"A netlist is of one sample, shape (n_in,). Got inputs of a batch of shape {shape}.")
    values = {name: system.values[name][0] for name in system.values}
    driven = network.clamps_inputs or "field_strength" in values
    steps = (_STEPS_BESIDE_SOURCES if driven else _STEPS) if steps is None else steps
    begin = np.zeros(network.size) if start is None else start
    writing = _Writing(
        network, components, shaped_array("start", begin, (network.size,), "write_netlist"),
        whole_number("steps", steps, 20, "write_netlist"), driven,
    )  # fmt: skip
    writing.tanks(values["omega"] + shifts(network, torques), system.held_phases[0])
    writing.couplings(network.edges, values["coupling"])
    if "field_strength" in values:
        writing.fields(values["field_strength"], values["field_phase"])
    for number, nudge in enumerate(nudges):
        writing.nudge(number, nudge)
    cycles = math.ceil(_SETTLING / components.eps) if cycles is None else cycles
    return writing.finished(whole_number("cycles", cycles, 1, "write_netlist"))


def check_network(network: Network) -> None:
    """Raise in words where a network is not one that tanks and resistors can be."""
    if not isinstance(network, Network):
        raise TypeError(f"A circuit is made of a Network. Got {type(network).__name__}.")
    if not network.reciprocal:
        raise ValueError("A resistor acts on both its ends alike: a circuit needs reciprocal coupling.")
    if type(network.interaction) is not Sine:
        raise ValueError(f"Tanks and resistors have the interaction Sine(). Got {network.interaction!r}.")
    others = [name for name in network.parameters if name not in _PARAMETERS]
    if others:
        raise ValueError(f"There is no component for the parameter {others[0]!r}. There are some for {_PARAMETERS}.")


def shifts(network: Network, torques: ArrayLike | None) -> FloatArray:
    """Return the torques on all oscillators, (N,)."""
    total = np.zeros(network.size)
    if torques is not None:
        given = shaped_array("torques", torques, (len(network.outputs),), "a circuit")
        total[list(network.outputs)] = given
        if network.pinned:
            total[network.reference] -= given.sum()
    return total


class _Writing:
    """Lines of a netlist while it is written."""

    def __init__(
        self, network: Network, components: Components, start: FloatArray, steps: int, driven: bool
    ) -> None:  # fmt: skip
        self.network, self.parts, self.start, self.steps, self.driven = network, components, start, steps, driven
        self.lines = [f"* {network.size} oscillators, {network.n_edges} couplings"]
        self.inverted: set[int] = set()
        # The trapezoidal rule slows a tank by this share, and no source: sources are tuned to what is simulated.
        self.frequency = components.own_frequency * (1 - (2 * math.pi / steps) ** 2 / 12)

    def tanks(self, omega: FloatArray, held: FloatArray) -> None:
        parts = self.parts
        clamped = (
            dict(zip(self.network.held.tolist(), held.tolist(), strict=True)) if self.network.clamps_inputs else {}
        )
        farads = parts.capacitors(np.where(np.isin(np.arange(self.network.size), list(clamped)), 0.0, omega))
        for node, (farad, phase) in enumerate(zip(farads.tolist(), self.start.tolist(), strict=True)):
            if node in clamped:
                self._source(f"V{node}", f"n{node}", clamped[node])
                continue
            volt, ampere = (parts.amplitude * each for each in (math.cos(phase), math.sin(phase) / parts.impedance))
            self.lines += [
                f"L{node} n{node} 0 {_number(parts.inductance)} ic={_number(ampere)}",
                f"C{node} n{node} 0 {_number(farad)} ic={_number(volt)}",
                f"B{node} n{node} 0 i={_number(parts.cubic)}*v(n{node})*v(n{node})*v(n{node})"
                f"-{_number(parts.conductance)}*v(n{node})",
            ]

    def couplings(self, edges: Iterable[Sequence[int]], strengths: FloatArray) -> None:
        for number, ((first, second), strength) in enumerate(zip(edges, strengths.tolist(), strict=True)):
            self._couple(f"{number}", int(first), int(second), strength)

    def fields(self, strengths: FloatArray, phases: FloatArray) -> None:
        for node, (strength, phase) in enumerate(zip(strengths.tolist(), phases.tolist(), strict=True)):
            self._toward(f"F{node}", node, phase, strength)

    def nudge(self, number: int, nudge: Bridge | Injection) -> None:
        if isinstance(nudge, Bridge):
            first, second = node_tuple("nudges", (nudge.first, nudge.second), self.network.size, "a circuit")
            self._couple(f"N{number}", first, second, _strength(nudge.strength))
        elif isinstance(nudge, Injection):
            if not self.driven:
                raise ValueError(
                    "An Injection needs a circuit whose sources set the frequency: clamped inputs or fields. Without "
                    "them use a Bridge or torques."
                )
            (node,) = node_tuple("nudges", (nudge.node,), self.network.size, "a circuit")
            self._toward(f"N{number}", node, float(nudge.phase), _strength(nudge.strength))
        else:
            raise TypeError(f"A nudge of a circuit is a Bridge or an Injection. Got {nudge!r:.80}.")

    def finished(self, cycles: int) -> Netlist:
        parts, period = self.parts, 1 / self.frequency
        nodes = tuple(f"n{node}" for node in range(self.network.size))
        self.lines += [f"E{node} m{node} 0 n{node} 0 -1" for node in sorted(self.inverted)]
        self.lines.append(".save " + " ".join(f"v({node})" for node in nodes))
        step, end = _number(period / self.steps), _number(cycles * period)
        self.lines += [f".tran {step} {end} 0 {step} uic", ".end", ""]
        scales = parts.amplitude, parts.amplitude / parts.impedance, parts.capacitance
        return Netlist("\n".join(self.lines), nodes, self.frequency, cycles, self.driven, scales)

    def _couple(self, name: str, first: int, second: int, strength: float) -> None:
        if strength > 0:
            self.lines.append(f"R{name} n{first} n{second} {self._ohms(strength)}")
        elif strength < 0:
            self.inverted |= {first, second}
            self.lines += [
                f"R{name}a n{first} m{second} {self._ohms(-strength)}",
                f"R{name}b m{first} n{second} {self._ohms(-strength)}",
            ]

    def _toward(self, name: str, node: int, phase: float, strength: float) -> None:
        if strength:
            turned = phase if strength > 0 else phase + math.pi
            self._source(f"V{name}", f"s{name}", turned)
            self.lines.append(f"R{name} n{node} s{name} {self._ohms(abs(strength))}")

    def _source(self, name: str, node: str, phase: float) -> None:
        # SPICE counts a source from a sine, in degrees; phases here are of a cosine.
        degrees = math.degrees(math.fmod(phase, 2 * math.pi)) + 90
        volt, hertz = _number(self.parts.amplitude), _number(self.frequency)
        self.lines.append(f"{name} {node} 0 sin(0 {volt} {hertz} 0 0 {_number(degrees)})")

    def _ohms(self, strength: float) -> str:
        return _number(float(self.parts.resistors(strength)))


def _strength(given: float) -> float:
    strength = float(finite_array("strength", given, "a nudge"))
    positive_float("strength", abs(strength), "a nudge")
    return strength


def _number(value: float) -> str:
    """Return a number that SPICE reads as it is: no prefix such as m or meg."""
    return f"{value:.12e}"
