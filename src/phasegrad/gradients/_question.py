"""What every gradient method takes and returns."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray, choice, counted, frozen_array, joint_shape
from phasegrad.dynamics import Shape, System, build_system
from phasegrad.equilibria import Equilibrium, Status, settled, tolerance_of
from phasegrad.gradients._drawing import plot_gradient
from phasegrad.networks import Network
from phasegrad.objectives import Cost, check_cost
from phasegrad.solvers import residual
from phasegrad.terms import Term

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FREQUENCIES = ("relative", "raw")
#: What a nudged network may be given so that its shift is the adjoint response; see `System.corrected`.
CORRECTIONS = ("none", "asymmetric")
#: What the gradient by the data is asked for as, beside the names of parameters; no parameter may be called so.
INPUTS = "inputs"
# From good to bad; from here on there is no equilibrium.
_STATUSES = list(Status)
_LOST = _STATUSES.index(Status.UNCONVERGED)
_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)


class GradientWarning(UserWarning):
    """A gradient that is missing for some samples, or whose stated error is large.

    See Also
    --------
    Gradient : A gradient per sample, with its stated error.
    suggest_beta : The nudge for a given error.
    two_phase : One nudged equilibrium; error of order beta.

    Examples
    --------
    >>> import warnings
    >>> import phasegrad as pg
    >>> network = pg.layered(2, 5, 2, seed=0)
    >>> question = (network, pg.find_equilibrium(network, [0.8, -0.6]), pg.PhaseTargets(), [-0.2, 0.2])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     gradient = pg.two_phase(*question, beta=5.0)
    >>> caught[0].category.__name__
    'GradientWarning'
    """


@dataclass(frozen=True, eq=False)
class Gradient:
    """The derivative of the cost with respect to parameters, and to the data, per sample.

    A sample whose equilibria did not converge has NaN.

    Attributes
    ----------
    method : str
    frequencies : {"relative", "raw"}
        What ``omega`` is the derivative by: frequencies relative to their mean, each taken as independent (the paper's
        identity), or the raw ones. Where a field or clamped phases fix the frame the two agree. ``inputs`` is always
        the derivative by the data itself, which is what one turns.
    values : mapping of str to ndarray, shape (..., width)
        The gradient by every parameter that was asked for; each is an attribute too: ``gradient.omega``. By the data
        it is ``gradient.inputs``, shape (..., n_in).
    error : mapping of str to ndarray, shape (..., width)
        How far each entry may be off, in the entry's own units. Of `adjoint` it is what rounding can do to the state
        and to its linear system; of nudged methods and `autograd` the measured distance from the adjoint gradient, plus
        the error of that; of `finite_difference` what half the step changes, plus rounding. With a readout it is that
        distance, or two standard deviations of the noise to be expected where these are more. A `GradientWarning` says
        when it exceeds a hundredth of the largest entry of a sample, a tenth where the nudge was given by hand, and the
        whole of it with a readout.
    cost : ndarray, shape (...)
        Of the free equilibrium.
    status : ndarray of Status, shape (...)
        The worst of the equilibria it was made from.
    beta : float or None
        The nudge that was used, where there was one.

    See Also
    --------
    two_phase : One nudged equilibrium; error of order beta.
    adjoint : One transposed linear solve; exact.
    cosine : How well two gradients agree.
    GradientTable : Cosines and errors between methods.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.ring(4, omega=[0.3, 0.0, -0.3, 0.0], outputs=[2])
    >>> free = pg.find_equilibrium(network)
    >>> gradient = pg.adjoint(network, free, pg.PhaseTargets(), [0.0], wrt=["omega", "coupling"])
    >>> gradient.omega.round(4)
    array([ 0.    , -0.1523, -0.3046, -0.1523])
    >>> gradient.coupling.shape, bool(gradient.error["omega"].max() < 1e-12)
    ((4,), True)
    """

    method: str
    frequencies: str
    values: Mapping[str, FloatArray]
    error: Mapping[str, FloatArray]
    cost: FloatArray
    status: NDArray[np.object_]
    beta: float | None

    def relative_error(self, parameter: str) -> FloatArray:
        """Return the largest stated error by one parameter over the largest entry, of every sample, shape (...).

        Zero where both vanish, NaN where there is no gradient.
        """
        size, error = (np.max(np.abs(each), axis=-1, initial=0.0) for each in (self[parameter], self.error[parameter]))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((error == 0) & (size == 0), 0.0, error / size)

    def plot(self, ax: Axes | None = None, *, parameter: str | None = None, against: Gradient | None = None) -> Axes:
        """Draw the gradient as bars, one per entry, with the stated error of each. Needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new ones if left out.
        parameter : str, optional
            Which one; the first that was asked for if left out. Of a batch the mean over all samples that have a
            gradient is drawn.
        against : Gradient, optional
            Another one to compare with, drawn as diamonds.

        Returns
        -------
        matplotlib Axes
        """
        return plot_gradient(self, ax, parameter, against)

    @property
    def valid(self) -> BoolArray:
        """Where there is a gradient, shape (...)."""
        return settled(self.status)

    def __getitem__(self, parameter: str) -> FloatArray:
        """Return the gradient by one parameter."""
        if parameter not in self.values:
            raise KeyError(f"This gradient was not taken by {parameter!r}. Ask for it with wrt={parameter!r}.")
        return self.values[parameter]

    def __getattr__(self, name: str) -> FloatArray:
        values = self.__dict__.get("values", {})
        if name in values:
            return values[name]
        raise AttributeError(f"This gradient was not taken by {name!r}. Ask for it with wrt={name!r}.")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "values": dict(self.values), "error": dict(self.error)}

    def __str__(self) -> str:
        lines = [f"gradient by {self.method} of {counted(self.cost.size, 'sample')}"]
        for name, slope in self.values.items():
            largest, error = (np.nanmax(np.abs(each), initial=0.0) for each in (slope, self.error[name]))
            lines.append(f"  {name:<16} shape {slope.shape}, largest {largest:.3g}, error at most {error:.1g}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Question:
    """A checked request for a gradient: the flat system, its free phases and targets, and what to derive by.

    ``inputs`` (B, n_in) are the data, None where the equilibrium was found without. ``turned`` says that the method
    turns raw frequencies itself, ``correction`` what the network is given while it is nudged.
    """

    owner: str
    network: Network
    objective: Cost
    shape: Shape
    system: System
    phases: Array
    nodes: IntArray
    target: Array
    inputs: FloatArray | None
    status: NDArray[np.object_]
    wrt: tuple[str, ...]
    frequencies: str
    turned: bool = False
    correction: str = "none"

    @property
    def responding(self) -> System:
        """The system as a nudge meets it: with its correction, where one was asked for."""
        return self.system if self.correction == "none" else self.system.corrected(self.phases)

    @property
    def solvable(self) -> IntArray:
        """Rows of the samples that have a free equilibrium."""
        return np.flatnonzero(_severity(self.status) < _LOST)

    @property
    def places(self) -> IntArray:
        """Where the outputs stand among the oscillators that move, (M,)."""
        return self.network.graph.position[self.nodes]

    @property
    def outputs(self) -> Array:
        """Free phases of the outputs, (B, M)."""
        return np.take(self.phases, self.nodes, axis=1)

    def take(self, rows: IntArray) -> Question:
        """Return the question for some of the samples, flat."""
        return dataclasses.replace(
            self, shape=(rows.size,), system=self.system.take(rows), phases=self.phases[rows], target=self.target[rows],
            inputs=None if self.inputs is None else self.inputs[rows], status=self.status[rows],
        )  # fmt: skip

    def slope(self, phases: Array) -> Array:
        """Return the derivative of the cost by the phases of all oscillators, (B, N), at any phases (B, N)."""
        slope = np.zeros_like(phases)
        slope[:, self.nodes] = -self.objective.force(np.take(phases, self.nodes, axis=1), self.target)
        return slope

    def in_units(self, name: str, slope: Array) -> Array:
        """Return slopes (B, width) by what the force is given, turned into those that were asked for."""
        return slope if self.turned else in_units(self.network, name, slope, self.frequencies)

    def collected(self, slopes: Mapping[str, Array]) -> dict[str, Array]:
        """Return slopes by every node or edge as those by the parameters asked for; see `collected`."""
        return collected(self.network, self.wrt, slopes)

    def answer(
        self, values: Mapping[str, Array], errors: Mapping[str, Array], *, others: Iterable[Equilibrium] = (),
        ok: BoolArray | None = None, beta: float | None = None, reason: str = "",
    ) -> Gradient:  # fmt: skip
        """Return the gradient made of flat per-sample ``values``, NaN where an equilibrium is missing.

        ``errors`` are in the units that were asked for, ``reason`` says why a sample that is not ``ok`` may be missing.
        """
        severity = np.max([_severity(each) for each in (self.status, *(other.status for other in others))], axis=0)
        if ok is not None:
            severity[~ok] = np.maximum(severity[~ok], _LOST)
        missing = severity >= _LOST
        lost, shaky = int(np.sum(missing)), int(np.sum((severity > 0) & ~missing))
        if lost or shaky:
            warn(
                f"{self.owner}: of {severity.size} samples {lost} have no gradient because an equilibrium was not "
                f"found, and {shaky} have one at an equilibrium that is not stable. Rows without a gradient are NaN: "
                "leave them out of sums, gradient.omega[gradient.valid]; gradient.status says what became of each."
                + (f" {reason}" if lost and reason else "")
            )

        def shaped(flat: Array) -> Array:
            filled = np.where(missing[:, None], np.nan, flat)
            return frozen_array(filled.reshape((*self.shape, flat.shape[1])))

        parts = MappingProxyType({name: shaped(self.in_units(name, values[name])) for name in self.wrt})
        stated = MappingProxyType({name: shaped(errors[name]) for name in self.wrt})
        cost = np.where(missing, np.nan, self.objective.cost(self.outputs, self.target))
        status = np.array([_STATUSES[rank] for rank in severity], dtype=object)
        cost, status = (frozen_array(each.reshape(self.shape)) for each in (cost, status))
        return Gradient(self.owner, self.frequencies, parts, stated, cost, status, beta)

    def width(self, name: str) -> int:
        """Return how many entries a gradient by this name has."""
        return len(self.network.inputs) if name == INPUTS else int(self.network.parameters[name].size)


def refuse_one_way(owner: str, network: Network, why: str, instead: str) -> None:
    """Refuse a method that needs an energy where coupling is not reciprocal."""
    if not network.reciprocal:
        raise ValueError(f"{owner} needs reciprocal coupling: {why}. Use {instead}.")


def asked_terms(network: Network, wrt: Sequence[str]) -> list[Term]:
    """Return the terms whose parameters are asked for, or through which data enters where that is asked for."""
    driven = INPUTS in wrt and not network.clamps_inputs
    return [
        term for term in network.terms if (driven and term.drives) or any(each.name in wrt for each in term.parameters)
    ]


def collected(network: Network, wrt: Sequence[str], slopes: Mapping[str, Array]) -> dict[str, Array]:
    """Return slopes by every node or edge as those by the parameters asked for, which some of them may share.

    Those by the data, of which nothing is shared, stay as they are.
    """
    sharing, term_of = network.graph.sharing, network.term_of
    return {
        name: slopes[name] if name == INPUTS else sharing.collect(term_of(name)[1].on, slopes[name]) for name in wrt
    }


def in_units(network: Network, name: str, slope: Array, frequencies: str) -> Array:
    """Return slopes (B, width) by what the force is given, turned into those by raw frequencies where these are meant.

    Those by the data are by what one turns as they are.
    """
    if frequencies == "raw" and name != INPUTS:
        return network.term_of(name)[0].raw_slope(network.graph, name, slope)
    return slope


@contextmanager
def unwarned() -> Iterator[None]:
    """Keep quiet the warnings of gradients asked for inside, on this thread alone."""
    before = _QUIET.set(True)
    try:
        yield
    finally:
        _QUIET.reset(before)


def warn(message: str) -> None:
    """Warn where the package was called, so that every caller hears it."""
    if _QUIET.get():
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("phasegrad."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, GradientWarning, stacklevel=level)


def ask(
    owner: str, network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike,
    wrt: str | Iterable[str], frequencies: str, *, turned: bool = False, correction: str = "none",
) -> Question:  # fmt: skip
    """Check the arguments that every method shares and lay the batch flat."""
    given = network, equilibrium, objective
    if not all(isinstance(each, kind) for each, kind in zip(given, (Network, Equilibrium, Cost), strict=True)):
        kinds = ", ".join(each.__name__ if isinstance(each, type) else type(each).__name__ for each in given)
        raise TypeError(
            f"{owner} takes a Network, then an Equilibrium, then an objective such as PhaseTargets() or a subclass of "
            f"Cost of your own. Got {kinds}{' (a class: call it)' if isinstance(objective, type) else ''}."
        )
    if equilibrium.phases.shape[-1] != network.size:
        raise ValueError(
            f"The equilibrium has {equilibrium.phases.shape[-1]} oscillators, the network {network.size}. "
            f"Give {owner} the network the equilibrium was found for."
        )
    names = asked_names(owner, network, wrt, frequencies, data=equilibrium.inputs is not None)
    choice("correction", correction, CORRECTIONS, owner)
    goal = objective.check_target(target, network)
    words = ("An equilibrium", "targets")
    shape = joint_shape(equilibrium.shape, goal.shape[:-1], words, "Give one target per sample, or one for all.")
    system, own = build_system(network, equilibrium.inputs, workspace=equilibrium.workspace_of(network))
    system = system.take(np.broadcast_to(np.arange(system.batch).reshape(own), shape).ravel())
    phases, nodes = _flat(equilibrium.phases, shape), np.asarray(objective.nodes(network), dtype=np.int64)
    _refuse_stale(owner, system, phases, equilibrium, shape)
    target, status = _flat(goal, shape), np.broadcast_to(equilibrium.status, shape).ravel()
    check_cost(objective, np.take(phases.real, nodes, axis=1), target, owner)
    data = None if equilibrium.inputs is None else _flat(equilibrium.inputs, shape)
    return Question(
        owner, network, objective, shape, system, phases, nodes, target, data, status, names, frequencies, turned,
        correction,
    )  # fmt: skip


def asked_names(
    owner: str, network: Network, wrt: str | Iterable[str], frequencies: str, *, data: bool
) -> tuple[str, ...]:
    """Return the checked names to derive by; ``data`` says whether the phases were found for data."""
    names = (wrt,) if isinstance(wrt, str) or not isinstance(wrt, Iterable) else tuple(wrt)
    for name in names:
        if isinstance(name, str) and name == INPUTS:
            _check_inputs(owner, network, data)
        else:
            allowed = [*network.parameters, *[INPUTS] * bool(network.inputs)]
            choice("wrt", name, allowed, f"{owner} for this network")
    choice("frequencies", frequencies, FREQUENCIES, owner)
    return names


def _check_inputs(owner: str, network: Network, data: bool) -> None:
    """Refuse a gradient by data that the network does not take, or that the equilibrium was not given."""
    if not network.inputs:
        raise ValueError(
            f"{owner} was asked for the gradient by 'inputs', but this network has none. Name them in the Network: "
            "Network(..., inputs=[...])."
        )
    if not data:
        raise ValueError(
            f"{owner} was asked for the gradient by 'inputs', but the equilibrium was found without any, at the "
            "network's own frequencies. Give them: find_equilibrium(network, inputs); or ask for wrt='omega'."
        )


def _refuse_stale(owner: str, system: System, phases: Array, equilibrium: Equilibrium, shape: Shape) -> None:
    """Refuse phases that converged in some other network: their force does not vanish in this one."""
    claimed = np.broadcast_to(equilibrium.converged, shape).ravel()
    left = residual(system, system.force(phases))
    stale = claimed & (left > tolerance_of(system, 1e-7, phases))
    if np.any(stale):
        raise ValueError(
            f"{owner} was given phases that are not an equilibrium of this network: the largest force is "
            f"{np.max(left[stale]):.2g}. Call find_equilibrium again after changing a network."
        )


def _severity(status: NDArray[np.object_]) -> IntArray:
    return np.array([_STATUSES.index(each) for each in status.ravel()], dtype=np.int64)


def _flat(values: Array, shape: Shape) -> Array:
    width = values.shape[-1]
    return np.broadcast_to(values, (*shape, width)).reshape(int(np.prod(shape, dtype=np.int64)), width)
