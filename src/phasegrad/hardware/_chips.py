"""Chips: simulated devices, each with faults of its own, alone or many at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._process import one_blas_thread
from phasegrad._validation import Array, FloatArray, IntArray, finite_array, whole_number
from phasegrad.dynamics import System, assemble
from phasegrad.equilibria import tolerance_of
from phasegrad.hardware._specification import Range, Specification
from phasegrad.linearised import PhasorLaplacian, Verdict, stability
from phasegrad.networks import Network
from phasegrad.simulation import runge_kutta_step
from phasegrad.solvers import STOPPING, AlignedNewton, Fallback, flow_steps, reference_runs_free, velocity
from phasegrad.terms import Coupling, NodeField

#: Moving oscillators from which chips settle one after another, by products of matrices.
_LARGE = 16
_TOLERANCE = 1e-9
#: What does not lock is given up soon: among many chips there is always some of it.
_SOLVER, _LARGE_SOLVER = Fallback((STOPPING, AlignedNewton())), Fallback((AlignedNewton(), STOPPING))
# Phases that would turn further than this in another run are not locked.
_STILL_TURNING = np.pi


class Ensemble:
    """Chips of one kind and one topology, run at once: the three calls of a `Device` with one more axis in front.

    Parameters
    ----------
    hardware : Hardware
    network : Network
        The topology, and what is programmed at first.
    seeds : sequence of int
        One per chip. What a chip does depends on its seed alone, not on its company.

    See Also
    --------
    hardware.Chip : A simulated chip with faults of its own.
    hardware.Hardware : A kind of chip with its faults.
    hardware.OnDevice : The engine that trains on devices.

    Examples
    --------
    >>> import numpy as np, phasegrad as pg
    >>> kind = pg.hardware.preset("ideal").replace(frequency_mismatch=0.01)
    >>> chips = kind.ensemble(pg.layered(2, 5, 2), 3)
    >>> chips.run(np.broadcast_to([[0.5, -0.5]], (3, 1, 2)))
    >>> chips.read().shape
    (3, 1, 9)
    """

    def __init__(self, hardware: Specification, network: Network, seeds: Sequence[int]) -> None:
        if not isinstance(network, Network):
            raise TypeError(f"A chip is made for a Network. Got {type(network).__name__}.")
        self.hardware, self.network = hardware.fitted(network), network
        self.seeds = tuple(whole_number("seed", seed, 0, "Hardware.sample") for seed in seeds)
        if not self.seeds:
            raise ValueError("An ensemble needs at least one chip. Got none.")
        self._streams = [np.random.default_rng([seed, 1]) for seed in self.seeds]
        graph, makers = network.graph, [np.random.default_rng([seed, 0]) for seed in self.seeds]
        self._shift = self.hardware.detuning * _drawn(makers, graph.size)
        self._factors: dict[str, FloatArray] = {}
        for name, width in _strengths(network):
            self._factors[name] = 1 + self.hardware.coupling_mismatch * _drawn(makers, width)
        self._programmed: dict[str, FloatArray] = {}
        self._free: tuple[FloatArray, FloatArray] | None = None
        self._phases: FloatArray | None = None
        self.program({name: np.stack([each] * len(self)) for name, each in network.parameters.items()})

    def __len__(self) -> int:
        """Return how many chips there are."""
        return len(self.seeds)

    @property
    def limits(self) -> dict[str, Range]:
        """Between which values each parameter can be programmed, where it has levels."""
        return self.hardware.ranges(self.network)

    def program(self, parameters: Mapping[str, ArrayLike]) -> None:
        """Set parameters by name, (R, width) each; what has levels goes to the nearest."""
        checked = {}
        for name, given in parameters.items():
            _, parameter = self.network.term_of(name)
            values = finite_array(name, given, "program")
            shape = (len(self), parameter.width(self.network.graph))
            if values.shape != shape:
                raise ValueError(f"To program {name!r} give an array of shape {shape}. Got {values.shape}.")
            checked[name] = values
        self._programmed.update(self.hardware.programmed(self.network, checked))
        self._free = None

    def run(self, inputs: ArrayLike, torques: ArrayLike | None = None) -> None:
        """Let all chips settle for inputs (R, B, n_in), under torques (R, B, M) on the outputs.

        A run of finite length begins at phase zero. One until rest begins there too, or, with torques, where the same
        inputs have just come to rest without them.
        """
        data = self._checked("inputs", inputs, len(self.network.inputs))
        self._shift = self._shift + self.hardware.wander * _drawn(self._streams, self.network.size)
        shift = np.broadcast_to(self._shift[:, None, :], (*data.shape[:2], self.network.size))
        begin = np.zeros(shift.shape)
        if torques is not None:
            pulls = self._checked("torques", torques, len(self.network.outputs))
            if pulls.shape[1] != data.shape[1]:
                raise ValueError(f"Torques for {pulls.shape[1]} samples do not go with inputs for {data.shape[1]}.")
            shift = shift + self._spread(pulls)
            if self._free is not None and np.array_equal(self._free[0], data):
                begin = np.nan_to_num(self._free[1])
        self._phases = np.empty(shift.shape)
        rows = [np.arange(len(self))]
        if self.network.graph.free.size >= _LARGE:
            rows = [np.array([r]) for r in range(len(self))]
        with one_blas_thread():
            for some in rows:
                self._phases[some] = self._settled(some, data[some], shift[some], begin[some])
        if torques is None:
            self._free = data, self._phases

    def read(self) -> FloatArray:
        """Return what the meters show of the last run, (R, B, N), NaN where a sample did not settle."""
        if self._phases is None:
            raise RuntimeError("There is nothing to read yet: run the chip first.")
        readings = zip(self._phases, self._streams, strict=True)
        return np.stack([self.hardware.readout.read(each, stream) for each, stream in readings])

    def _checked(self, name: str, given: ArrayLike, width: int) -> FloatArray:
        values = finite_array(name, given, "run")
        if values.ndim != 3 or values.shape[0] != len(self) or values.shape[2] != width:
            raise ValueError(
                f"The '{name}' of run must be of shape ({len(self)}, B, {width}): chips, samples, values. "
                f"Got {values.shape}."
            )
        return values

    def _spread(self, torques: FloatArray) -> FloatArray:
        """Return torques on the outputs as shifts of frequencies; the reference, if there is one, has the reaction."""
        graph = self.network.graph
        shift = np.zeros((*torques.shape[:2], graph.size))
        shift[:, :, list(self.network.outputs)] = torques
        if graph.pinned:
            shift[:, :, graph.reference] -= torques.sum(axis=2)
        return shift

    def _settled(self, rows: IntArray, inputs: FloatArray, shift: FloatArray, begin: FloatArray) -> FloatArray:
        """Return phases (r, B, N) of some chips after a run."""
        shape, hardware = shift.shape, self.hardware
        system = self._system(rows, inputs, shift)
        start = system.place(begin.reshape(-1, shape[2]))
        if hardware.settling_time is None:
            return _at_rest(system, start).reshape(shape)
        phases = np.empty(start.shape)
        # Steps are those of a chip alone, so that none depends on its company.
        steps = np.repeat(flow_steps(system, hardware.settling_time)[:: shape[1]], shape[1])
        for count in np.unique(steps):
            chosen = np.flatnonzero(steps == count)
            streams = [self._streams[int(r)] for r in rows[chosen[:: shape[1]] // shape[1]]]
            phases[chosen] = self._run_for(system.take(chosen), start[chosen], int(count), streams)
        return phases.reshape(shape)

    def _run_for(self, system: System, start: FloatArray, steps: int, streams: list[np.random.Generator]) -> FloatArray:
        """Return phases (b, N) of some chips after their settling time, NaN where they still turn."""
        hardware, samples = self.hardware, start.shape[0] // len(streams)
        assert hardware.settling_time is not None

        def rates(_time: float, phases: FloatArray) -> FloatArray:
            return velocity(system, phases)

        phases, step = start, hardware.settling_time / steps
        for _ in range(steps):
            phases = runge_kutta_step(rates, phases, 0.0, step)
            if hardware.jitter:
                noise = hardware.diffusion * _drawn(streams, samples, start.shape[1]).reshape(start.shape)
                phases = phases + _diffused(system, math.sqrt(step) * noise)
        turning = np.max(np.abs(velocity(system, phases)), axis=1) * hardware.settling_time > _STILL_TURNING
        return np.where(turning[:, None], np.nan, phases)

    def _system(self, rows: IntArray, inputs: FloatArray, shift: FloatArray) -> System:
        """Return the system of some chips with their faults, samples of all of them flat."""
        chips, samples, width = inputs.shape
        values = {name: each[rows] for name, each in self._programmed.items()}
        factors = {name: each[rows] for name, each in self._factors.items()}
        if chips > 1:
            values, factors = (
                {name: np.repeat(each, samples, axis=0) for name, each in group.items()} for group in (values, factors)
            )
        system = assemble(self.network, inputs.reshape(chips * samples, width), chips * samples, values)
        moved = shift.reshape(-1, shift.shape[2])
        if self.network.graph.pinned:
            moved = moved - moved.mean(axis=1, keepdims=True)
        faulty: dict[str, Array] = {name: system.values[name] * factor for name, factor in factors.items()}
        return system.with_values({**faulty, "omega": system.values["omega"] + moved})


class Chip:
    """One simulated chip, a `Device`; `Hardware.sample` makes it.

    See Also
    --------
    hardware.Hardware : A kind of chip with its faults.
    hardware.Device : The three calls of a chip.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.layered(2, 5, 2)
    >>> chip = pg.hardware.preset("cmos-ring-65nm").sample(network, seed=3)
    >>> chip.program({"omega": network.omega})
    >>> chip.run([[0.5, -0.5], [0.1, 0.3]], torques=[[1.0, -1.0], [0.0, 0.0]])
    >>> chip.read().shape
    (2, 9)
    """

    def __init__(self, hardware: Specification, network: Network, seed: int) -> None:
        self._alone = Ensemble(hardware, network, [seed])

    @property
    def hardware(self) -> Specification:
        """What kind it is."""
        return self._alone.hardware

    @property
    def network(self) -> Network:
        """What it was made for."""
        return self._alone.network

    @property
    def limits(self) -> dict[str, Range]:
        """Between which values each parameter can be programmed, where it has levels."""
        return self._alone.limits

    def program(self, parameters: Mapping[str, ArrayLike]) -> None:
        """Set parameters by name, such as "omega" (N,); what has levels goes to the nearest."""
        self._alone.program({name: np.asarray(values)[None] for name, values in parameters.items()})

    def run(self, inputs: ArrayLike, torques: ArrayLike | None = None) -> None:
        """Let the oscillators settle for every row of inputs (B, n_in), under torques (B, M); see `Ensemble.run`."""
        self._alone.run(np.asarray(inputs)[None], None if torques is None else np.asarray(torques)[None])

    def read(self) -> FloatArray:
        """Return what the meter shows of the last run, (B, N), NaN where a sample did not settle."""
        return np.asarray(self._alone.read()[0])


def _strengths(network: Network) -> list[tuple[str, int]]:
    """Return what is made of devices that differ, couplings and field strengths, with the number of devices of each."""
    graph, found = network.graph, []
    for term in network.terms:
        if isinstance(term, Coupling):
            found += [(each.name, graph.n_edges) for each in term.strengths]
        elif isinstance(term, NodeField):
            found.append((term.parameters[0].name, graph.size))
    return found


def _drawn(streams: Sequence[np.random.Generator], *shape: int) -> FloatArray:
    return np.stack([stream.standard_normal(shape) for stream in streams])


def _diffused(system: System, noise: FloatArray) -> FloatArray:
    """Return by how much noise (B, N) moves the oscillators, counted as `velocity` counts."""
    if reference_runs_free(system):
        return noise - noise[:, [system.graph.reference]]
    noise[:, system.graph.held] = 0
    return noise


def _at_rest(system: System, start: FloatArray) -> FloatArray:
    """Return the stable phases that samples reach, (B, N), NaN where there are none."""
    limits = tolerance_of(system, _TOLERANCE, start)
    phases, stable = np.full(start.shape, np.nan), np.zeros(system.batch, dtype=bool)
    rows = np.flatnonzero(~system.locked_out())
    part = system if rows.size == system.batch else system.take(rows)
    solver = _SOLVER if system.graph.free.size < _LARGE else _LARGE_SOLVER
    solution = solver.solve(part, start[rows], limits[rows])
    done = solution.residual <= limits[rows]
    rows, found = rows[done], solution.phases[done]
    part = system if rows.size == system.batch else system.take(rows)
    if rows.size and PhasorLaplacian.fits(part):
        stable[rows] = PhasorLaplacian.of(part, found).definite() == Verdict.STABLE
    elif rows.size:
        stable[rows] = stability(part, found).stable
    phases[rows] = found
    phases[~stable] = np.nan
    return phases
