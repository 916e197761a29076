"""Circuits: networks as netlists, run by ngspice, and their phases."""

from phasegrad.circuits._averaging import averaging_shift
from phasegrad.circuits._circuit import Circuit, CircuitWarning
from phasegrad.circuits._components import Components
from phasegrad.circuits._interaction import MeasuredInteraction, fit_interaction
from phasegrad.circuits._netlist import Bridge, Injection, Netlist as Netlist, write_netlist
from phasegrad.circuits._ngspice import (
    NgspiceError,
    Waveforms as Waveforms,
    has_ngspice,
    ngspice,
    ngspice_version as ngspice_version,
)
from phasegrad.circuits._phases import (
    Locked as Locked,
    crossing_frequency as crossing_frequency,
    lock,
    phase_history,
    settling_cycles as settling_cycles,
)
from phasegrad.circuits._rings import Rings

__all__ = [
    "Bridge",
    "Circuit",
    "CircuitWarning",
    "Components",
    "Injection",
    "MeasuredInteraction",
    "NgspiceError",
    "Rings",
    "averaging_shift",
    "fit_interaction",
    "has_ngspice",
    "lock",
    "ngspice",
    "phase_history",
    "write_netlist",
]
