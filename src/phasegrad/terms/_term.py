r"""What a term of the energy is, and what its author writes.

The energy of a network is a sum of terms E = sum_t E_t(theta; p), its force F = sum_t F_t with F_t = -dE_t/dtheta
where the term is symmetric. A term is a formula with its settings; the values of its parameters live in the network and
are handed to it, for one network or for a batch: arrays of shape (1, width) shared by all samples or (B, width), beside
phases of shape (B, N).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from phasegrad._validation import Array, BoolArray, FloatArray
from phasegrad.graphs import Graph
from phasegrad.terms._engine import EngineInterface
from phasegrad.terms._parameter import Values
from phasegrad.terms._stiffness import Stiffness


class Term(EngineInterface):
    """One term of the energy: its parameters, and every formula that knows them.

    `NodeField` has everything for a pull of every oscillator toward a phase of its own, and an example. Any other term
    must have ``every``, its parameters (a plain name stands for ``Parameter(name)``), and four methods: `force`,
    `energy`, `energy_slopes` and `force_slopes`.

    The other methods of this class are needed where the force

    - depends on phases: `stiffness`, `stiffest` and `capacity`; where it does not: `drive`;
    - ties oscillators to the frame: ``fixes_gauge = True`` and `grounded`, which ones;
    - has no energy: ``symmetric = False``; the two formulas of the energy are then never asked for;
    - is differentiated by `autograd`: `torch_force`.

    `check` and `describe` are for people. All other methods are inherited from `phasegrad.terms.EngineInterface`, which
    explains them. Their answers are right for every term; override them for speed, or for a term that takes data or
    couples oscillators.

    NumPy functions that accept complex phases serve the holomorphic gradient too. A `Network` built with the term
    checks the formulas against each other, `check_gradients` the slopes.

    See Also
    --------
    NodeField : A term that pulls every oscillator on its own.
    Parameter : A name, where it lives, its default and bounds.
    Stiffness : What a term adds to the Laplacian.

    Examples
    --------
    >>> import numpy as np
    >>> import phasegrad as pg
    >>> class Tilt(pg.terms.Term):
    ...     every = (pg.terms.Parameter("gain"),)
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

    #: Whether the term ties phases to the frame, so that nothing needs to be pinned.
    fixes_gauge: ClassVar[bool] = False
    #: Whether the force is minus the gradient of the energy.
    symmetric: bool = True

    @abstractmethod
    def force(self, graph: Graph, values: Values, phases: Array) -> Array:
        """Return the force on every oscillator, (B, N)."""

    @abstractmethod
    def energy(self, graph: Graph, values: Values, phases: Array) -> Array:
        """Return the energy of every sample, (B,)."""

    @abstractmethod
    def energy_slopes(self, graph: Graph, values: Values, phases: Array) -> dict[str, Array]:
        """Return dE/dp of every parameter, (B, width): what equilibrium propagation reads."""

    @abstractmethod
    def force_slopes(self, graph: Graph, values: Values, phases: Array, response: Array) -> dict[str, Array]:
        """Return response . dF/dp of every parameter, (B, width): the last step of the adjoint gradient."""

    # What follows is needed in some cases only: see the list above.

    def stiffness(self, graph: Graph, values: Values, phases: Array) -> Stiffness:
        """Return what it adds to the Laplacian; nothing where the force does not depend on phases."""
        return Stiffness()

    def stiffest(self, graph: Graph, values: Values) -> Stiffness:
        """Return bounds on the absolute values that `stiffness` can have at any phases."""
        return Stiffness()

    def capacity(self, graph: Graph, values: Values) -> FloatArray | None:
        """Return the most it can pull each oscillator, (b, N), and so hold against a frequency; None if nothing."""
        return None

    def drive(self, graph: Graph, values: Values) -> Array | None:
        """Return a force that does not depend on phases, (b, N)."""
        return None

    def grounded(self, graph: Graph, values: Values) -> BoolArray | None:
        """Return which oscillators it ties to the frame, (N,), of values (width,) of its parameters."""
        return None

    def torch_force(self, graph: Graph, values: Mapping[str, Any], phases: Any) -> Any:
        """Return the force on every oscillator, (N,), of tensors: a second writing, for the autograd gradient."""
        raise NotImplementedError(
            f"The autograd gradient needs the force of {type(self).__name__} in PyTorch: write its 'torch_force', "
            "or use adjoint, which is exact without."
        )

    def check(self, graph: Graph, values: Values, *, signed: bool) -> None:
        """Raise ValueError where values make no sense; they are finite and of the right width already."""

    def describe(self) -> str:
        """Return what a person should know of it, empty if nothing."""
        return ""

    def __eq__(self, other: object) -> bool:
        """Terms of one kind with the same settings are equal."""
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))
