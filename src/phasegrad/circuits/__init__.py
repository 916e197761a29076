"""Circuits: networks as netlists, run by ngspice, and their phases."""

from phasegrad.circuits._averaging import averaging_shift
from phasegrad.circuits._circuit import Circuit, CircuitWarning
from phasegrad.circuits._components import Components
from phasegrad.circuits._interaction import MeasuredInteraction, fit_interaction
from phasegrad.circuits._netlist import Bridge, Injection, Netlist, write_netlist
from phasegrad.circuits._ngspice import NgspiceError, Waveforms, has_ngspice, ngspice, ngspice_version
from phasegrad.circuits._phases import Locked, crossing_frequency, lock, phase_history, settling_cycles
from phasegrad.circuits._rings import Rings

__all__ = [
    "Bridge",
    "Circuit",
    "CircuitWarning",
    "Components",
    "Injection",
    "Locked",
    "MeasuredInteraction",
    "Netlist",
    "NgspiceError",
    "Rings",
    "Waveforms",
    "averaging_shift",
    "crossing_frequency",
    "fit_interaction",
    "has_ngspice",
    "lock",
    "ngspice",
    "ngspice_version",
    "phase_history",
    "settling_cycles",
    "write_netlist",
]
