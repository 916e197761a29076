r"""What a term of the energy is.

The energy of a network is a sum of terms E = sum_t E_t(theta; p), its force F = sum_t F_t with F_t = -dE_t/dtheta
where the term is symmetric. A term is a formula with its settings; the values of its parameters live in the network and
are handed to it, for one network or for a batch: arrays of shape (1, width) shared by all samples or (B, width), beside
phases of shape (B, N).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from phasegrad._validation import SMALLEST, Array, BoolArray, FloatArray, shaped_array
from phasegrad.graphs import Graph, lazy_property
from phasegrad.terms._interactions import cosines, multiplied

Values = Mapping[str, Array]


@dataclass(frozen=True)
class Parameter:
    """One array of parameters.

    Parameters
    ----------
    name : str
        What people write: ``network.omega``, ``wrt="omega"``.
    on : {"nodes", "edges", "network"}
        Whether there is one per node, one per edge, or a single one.
    default : float or None
        The value if it is left out while its term is there; None if it must be given.
    least : float
        Where training keeps it in a network that is not signed.
    decays : bool
        Whether weight decay acts on it.

    See Also
    --------
    Term : The base of every term of the energy.
    NodeField : A term that pulls every oscillator on its own.
    Plan : How networks are trained.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.Parameter("depth", default=0.0, least=0.0)
    Parameter(name='depth', on='nodes', default=0.0, least=0.0, decays=False)
    """

    name: str
    on: str = "nodes"
    default: float | None = None
    least: float = -np.inf
    decays: bool = False

    def width(self, graph: Graph) -> int:
        """Return how many there are: one for each node or edge, or for each group of them that shares one, or one."""
        return graph.sharing.width(self.on)

    def learnable(self, graph: Graph) -> BoolArray:
        """Return which of them may learn: all but those of the inputs, which belong to the data."""
        mask = np.ones(self.width(graph), dtype=bool)
        if self.on == "nodes":
            mask[list(graph.inputs) if graph.layout is None else graph.layout.node_values[0]] = False
        return mask


class Stiffness(NamedTuple):
    """What a term adds to the Laplacian L = -dF/dtheta.

    ``forward`` and ``backward`` (b, E) are weights of the edges on their first and second end, of what depends on
    theta_j - theta_i; ``diagonal`` (b, N) is what a node feels on its own; ``sums`` (b, E) are weights of the edges, on
    both ends, of what depends on theta_i + theta_j; ``outer`` are two factors A and B (b, N, k) of a matrix of low
    rank, A B^T, that is taken away: what many oscillators feel of each other through few numbers. None where the term
    has none. Where both ends of an edge feel the same

        x.L x = sum over edges [forward (x_i - x_j)^2 + sums (x_i + x_j)^2] + sum over nodes diagonal x_i^2 - x.A B^T x

    See Also
    --------
    Term : The base of every term of the energy.
    laplacian : Minus the derivative of the force.

    Examples
    --------
    >>> import numpy as np
    >>> import phasegrad as pg
    >>> pg.Stiffness(diagonal=np.ones((1, 3)))
    Stiffness(forward=None, backward=None, diagonal=array([[1., 1., 1.]]), sums=None, outer=None)
    """

    forward: Array | None = None
    backward: Array | None = None
    diagonal: Array | None = None
    sums: Array | None = None
    outer: tuple[Array, Array] | None = None

    def lifted(self, most: Stiffness, floor: float) -> Stiffness:
        """Return absolute values, at least ``floor`` times the most that each can be; with a low rank, the most."""
        if self.outer is not None:
            return most
        return Stiffness(*(None if a is None else np.maximum(np.abs(a), floor * b) for a, b in self.beside(most)))

    def beside(self, most: Stiffness) -> Iterator[tuple[Any, Any]]:
        """Yield each part beside its bound, that of low rank left aside."""
        return iter(zip(self[:4], most[:4], strict=True))


class LocalField(NamedTuple):
    """The local field h of neighbours, linear in their phasors z = exp(i theta): F_i = Im(h_i conj(z_i)).

        h_i = sum_j (along - i across) z_j - mirrored conj(z_j)

    Coefficients (2, b, E) of the edges, as they act on first ends and on second ones; None where all are zero.
    """

    along: Array
    across: Array | None = None
    mirrored: Array | None = None


class States:
    """Phases (B, N) of a batch, with the cosines and sines that sums over it need, computed where they are asked for.

    ``held`` may hand over those of the held oscillators, (B, held) each.
    """

    def __init__(self, graph: Graph, phases: Array, held: tuple[Array, Array] | None = None) -> None:
        self.graph, self.phases, self._held = graph, phases, held

    @lazy_property
    def moving(self) -> tuple[Array, Array]:
        """Cosines and sines of the oscillators that move, in the order of the graph's blocks."""
        return cosines(np.take(self.phases, self.graph.blocks.order, axis=1))

    def multiple(self, k: int) -> tuple[Array, Array]:
        """Return the same of k times the phases."""
        return self.moving if k == 1 else multiplied(*self.moving, k)

    @lazy_property
    def held(self) -> tuple[Array, Array]:
        """Cosines and sines of those that are held."""
        return cosines(np.take(self.phases, self.graph.held, axis=1)) if self._held is None else self._held


class Term(ABC):
    """One term of the energy: its parameters, and every formula that knows them.

    `NodeField` has everything for a pull of every oscillator toward a phase of its own, and an example. Any other term
    must have ``every``, its parameters (a plain name stands for ``Parameter(name)``), and `force`, `energy`,
    `energy_slopes` and `force_slopes`. Beside these, where its force

    - depends on phases: `stiffness`, `stiffest` and `capacity`; where it does not: `drive`;
    - ties oscillators to the frame: ``fixes_gauge = True`` and `grounded`, which ones;
    - has no energy: ``symmetric = False``; the two formulas of the energy are then never asked for;
    - is sin(theta_j - theta_i) or sin(psi_i - theta_i): ``phasor = True`` and `phasor_edges` or `phasor_field`, for the
      fastest solvers; False is always right;
    - is linear in the phasors of others: ``has_local_field = True`` and `local_field` or `mean_strength`, for compiled
      steps in time;
    - on an oscillator follows from its own phase and its own values alone: ``local = True``, and the same solvers ask
      for force, energy and stiffness of some of the oscillators; `harmonics`, where it has them, is for compiled code;
    - takes data, so that its values differ from sample to sample: ``drives = True`` and `in_frame`; for the gradient by
      the data `input_slope` too.

    `torch_force` and, of a term that takes data, `torch_in_frame` are for the autograd gradient alone. NumPy functions
    that accept complex phases serve the holomorphic gradient too. A `Network` built with the term checks the formulas
    against each other, `check_gradients` the slopes.

    See Also
    --------
    NodeField : A term that pulls every oscillator on its own.
    Parameter : A name, where it lives, its default and bounds.
    Stiffness : What a term adds to the Laplacian.

    Examples
    --------
    >>> import numpy as np
    >>> import phasegrad as pg
    >>> class Tilt(pg.Term):
    ...     every = (pg.Parameter("gain"),)
    ...     load = np.array([1.0, 0.0, -1.0])
    ...
    ...     def force(self, graph, values, phases):
    ...         return np.broadcast_to(values["gain"] * self.load, phases.shape)
    ...
    ...     def drive(self, graph, values):
    ...         return values["gain"] * self.load
    ...
    ...     def energy(self, graph, values, phases):
    ...         return -np.sum(values["gain"] * self.load * phases, axis=1)
    ...
    ...     def energy_slopes(self, graph, values, phases):
    ...         return {"gain": -self.load * phases}
    ...
    ...     def force_slopes(self, graph, values, phases, response):
    ...         return {"gain": self.load * response}
    >>> network = pg.Network([[0, 1], [1, 2]], 1.0, np.zeros(3), outputs=[2], terms=[Tilt()], gain=np.full(3, 0.3))
    >>> question = (network, pg.find_equilibrium(network), pg.PhaseTargets(), [0.0])
    >>> table = pg.check_gradients(*question, wrt="gain", methods=["adjoint", "two_phase", "finite_difference"])
    >>> bool(table.cosine["gain"].min() > 0.999)
    True
    """

    #: Every parameter that a term of this kind may have.
    every: ClassVar[tuple[Parameter, ...]] = ()
    #: Whether the term ties phases to the frame, so that nothing needs to be pinned.
    fixes_gauge: ClassVar[bool] = False
    #: Whether data may drive it, so that its values differ from sample to sample.
    drives: ClassVar[bool] = False
    #: Whether the force is minus the gradient of the energy.
    symmetric: bool = True
    #: Whether matrix products and the lanes can stand for it: see `drive`, `phasor_edges` and `phasor_field`.
    phasor: bool = False
    #: Whether an oscillator feels nothing but its own phase: force and stiffness are elementwise, also of a part of all
    #: phases and values, and the stiffness is a diagonal. Matrix products take such terms beside phasors.
    local: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        given: Any = (cls.every,) if isinstance(cls.every, (str, Parameter)) else cls.every
        cls.every = tuple(Parameter(each) if isinstance(each, str) else each for each in given)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters it has."""
        return self.every

    @property
    def has_local_field(self) -> bool:
        """Whether all of its force is `drive`, `phasor_field`, `local_field` and `mean_strength`."""
        return self.phasor

    def __eq__(self, other: object) -> bool:
        """Terms of one kind with the same settings are equal."""
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))

    @classmethod
    def of(cls, names: Sequence[str], interaction: Any) -> Self | None:
        """Return the term of a network that was given parameters of these names, None if it has no such term."""
        return cls() if any(parameter.name in names for parameter in cls.every) else None

    @abstractmethod
    def force(self, graph: Graph, values: Values, phases: Array) -> Array:
        """Return the force on every oscillator, (B, N)."""

    @abstractmethod
    def energy(self, graph: Graph, values: Values, phases: Array) -> Array:
        """Return the energy of every sample, (B,)."""

    def stiffness(self, graph: Graph, values: Values, phases: Array) -> Stiffness:
        """Return what it adds to the Laplacian; nothing where the force does not depend on phases."""
        return Stiffness()

    def stiffest(self, graph: Graph, values: Values) -> Stiffness:
        """Return bounds on the absolute values that `stiffness` can have at any phases."""
        return Stiffness()

    def capacity(self, graph: Graph, values: Values) -> FloatArray | None:
        """Return the most it can pull each oscillator, (b, N), and so hold against a frequency; None if nothing."""
        return None

    @abstractmethod
    def energy_slopes(self, graph: Graph, values: Values, phases: Array) -> dict[str, Array]:
        """Return dE/dp of every parameter, (B, width): what equilibrium propagation reads."""

    @abstractmethod
    def force_slopes(self, graph: Graph, values: Values, phases: Array, response: Array) -> dict[str, Array]:
        """Return response . dF/dp of every parameter, (B, width): the last step of the adjoint gradient."""

    def torch_force(self, graph: Graph, values: Mapping[str, Any], phases: Any) -> Any:
        """Return the force on every oscillator, (N,), of tensors: a second writing, for the autograd gradient."""
        raise NotImplementedError(
            f"The autograd gradient needs the force of {type(self).__name__} in PyTorch: write its 'torch_force', "
            "or use adjoint, which is exact without."
        )

    def check(self, graph: Graph, values: Values, *, signed: bool) -> None:
        """Raise ValueError where values make no sense; they are finite and of the right width already."""

    def turn_edges(self, values: dict[str, Array], turned: BoolArray) -> None:
        """Exchange what belongs to the two ends of the edges that were given the other way around."""

    def in_frame(self, graph: Graph, values: Values, frequencies: Array | None) -> dict[str, Array]:
        """Return values that change with the frame, or where data drives the inputs at ``frequencies`` (B, n_in)."""
        return {}

    def frame_frequency(self, graph: Graph, values: Values, frequencies: Array | None) -> Array | None:
        """Return the frequency (b,) from which `in_frame` counts; None where it counts from zero."""
        return None

    def input_slope(self, graph: Graph, name: str, slope: Array) -> Array:
        """Return a gradient by one parameter as `in_frame` returns it turned into one by ``frequencies``, (B, n_in).

        The one has an entry for every node or edge, whether they share values or not, the other one for every input.
        Asked for where the term takes data, and summed over its parameters.
        """
        raise NotImplementedError(
            f"The gradient by 'inputs' needs to know how data enters {type(self).__name__}: write its 'input_slope'."
        )

    def torch_in_frame(self, graph: Graph, values: Mapping[str, Any], frequencies: Any) -> dict[str, Any]:
        """Return what `in_frame` does of the tensors of one sample: a second writing, for the autograd gradient."""
        raise NotImplementedError(
            f"The autograd gradient by 'inputs' needs to know how data enters {type(self).__name__}: write its "
            "'torch_in_frame', or use adjoint, which is exact without."
        )

    def drive(self, graph: Graph, values: Values) -> Array | None:
        """Return a force that does not depend on phases, (b, N)."""
        return None

    def phasor_edges(self, values: Values) -> Array | None:
        """Return strengths K (b, E) of a force K sin(theta_j - theta_i)."""
        return None

    def phasor_field(self, values: Values) -> tuple[Array, Array] | None:
        """Return x, y (b, N) of a force y cos(theta) - x sin(theta)."""
        return None

    def local_field(self, values: Values) -> LocalField | None:
        """Return how neighbours act through their phasors; the same in both directions where `phasor_edges` says so."""
        strength = self.phasor_edges(values) if self.phasor else None
        return None if strength is None else LocalField(np.stack([strength, strength]))

    def mean_strength(self, graph: Graph, values: Values) -> Array | None:
        """Return K (b, 1) of a force Im(h conj(z)) by the field h = K sum of all z."""
        return None

    def harmonics(self, values: Values) -> tuple[Array, Array] | None:
        """Return x, y (m, b, N) of a force sum_k y_k cos(k theta) - x_k sin(k theta), k = 1 ... m, where it is one."""
        return None

    def grounded(self, graph: Graph, values: Values) -> BoolArray | None:
        """Return which oscillators it ties to the frame, (N,), of values (width,) of its parameters."""
        return None

    def links(self, values: Values) -> tuple[BoolArray, BoolArray] | None:
        """Return which edges act on their first and on their second end, (E,) each."""
        return None

    def joins_all(self, values: Values) -> bool:
        """Return whether it couples every oscillator to every other, without edges."""
        return False

    def raw_slope(self, graph: Graph, name: str, slope: Array) -> Array:
        """Return a gradient by what the force is given turned into one by what the network was given, (..., width)."""
        return slope

    def turned(self, graph: Graph, name: str, values: Array, which: Array, by: Array, *, raw: bool) -> Array:
        """Return values of nodes or edges with one parameter of every sample turned by ``by`` (B,).

        With ``raw`` it is turned as the network was given it.
        """
        on = next(parameter.on for parameter in self.parameters if parameter.name == name)
        return graph.sharing.turned(on, values, which, by)

    def summed_contrast(
        self, graph: Graph, values: Values, plus: States, minus: States, share: Array
    ) -> dict[str, FloatArray]:
        """Return sums of dE/dp at ``plus`` minus dE/dp at ``minus``, (R, width), each sample weighed by its share.

        ``share`` has shape (R, b); rows of the phases (R b, N) belong to R networks of b samples each. Held oscillators
        are where they are in both states.
        """
        first, second = (self.energy_slopes(graph, values, state.phases) for state in (plus, minus))
        return {name: _summed(share, first[name] - second[name]) for name in first}

    def summed_products(
        self, graph: Graph, values: Values, phases: Array, response: Array, share: Array
    ) -> dict[str, FloatArray]:
        """Return sums of response . dF/dp, (R, width), weighed as `summed_contrast` does."""
        slopes = self.force_slopes(graph, values, phases, response)
        return {name: _summed(share, slope) for name, slope in slopes.items()}

    def describe(self) -> str:
        """Return what a person should know of it, empty if nothing."""
        return ""

    def _of(self, values: Mapping[str, Any]) -> list[Any]:
        """Return the values of its parameters, in their order."""
        return [values[parameter.name] for parameter in self.parameters]

    def _named(self, *arrays: Array) -> dict[str, Array]:
        """Return arrays by the names of its parameters."""
        return {parameter.name: array for parameter, array in zip(self.parameters, arrays, strict=True)}

    def checked(self, graph: Graph, given: Mapping[str, Any]) -> dict[str, FloatArray]:
        """Return finite arrays of the right width for its parameters; a scalar is spread over all of them."""
        values = {}
        for parameter in self.parameters:
            value = given.get(parameter.name)
            if value is None:
                value = parameter.default
            if value is None:
                many = "one number" if parameter.on == "network" else f"one per {parameter.on[:-1]} or one for all"
                there = [f"The '{p.name}' parameter" for p in self.parameters if given.get(p.name) is not None]
                raise ValueError(
                    f"{there[0] if there else f'The term {type(self).__name__}'} of Network needs '{parameter.name}' "
                    f"beside it, {many}."
                )
            values[parameter.name] = shaped_array(parameter.name, value, (parameter.width(graph),), "Network")
        return values


def _summed(share: Array, slopes: Array) -> FloatArray:
    """Return the weighted sums over the samples of each network."""
    networks, samples = share.shape
    if networks == 1:
        return share @ slopes
    return np.einsum("rb,rbp->rp", share, slopes.reshape(networks, samples, slopes.shape[1]))


def check_strongest(name: str, values: Array) -> None:
    """Refuse couplings of which all are so weak that forces, and their squares, leave the range of floats."""
    strongest = float(np.max(np.abs(values), initial=0.0))
    if 0 < strongest < SMALLEST:
        raise ValueError(
            f"The '{name}' parameter of Network must be 0, or {SMALLEST:g} or more at its largest. Got at most "
            f"{strongest:g}. Choose another unit of time."
        )
