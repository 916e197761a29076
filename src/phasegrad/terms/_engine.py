r"""What solvers, training engines and gradients may ask of a term beyond its formulas.

Every question has an answer that is right for any term, so that an author need not know about it: either the answer
follows from the formulas, or it says that there is nothing. A term overrides it for speed, where data enters the term,
or where the term couples oscillators. `check_term` compares what is said of the force with the force.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray, shaped_array
from phasegrad.graphs import Graph, lazy_property
from phasegrad.terms._interactions import cosines, multiplied
from phasegrad.terms._parameter import Parameter, Values


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


class EngineInterface(ABC):
    """What engines may ask of a `Term`; nobody has to write any of it.

    - Phasors: a force that is sin(theta_j - theta_i) or sin(psi_i - theta_i) says ``phasor = True`` and has
      `phasor_edges` or `phasor_field`, for the fastest solvers.
    - Local fields: a force that is linear in the phasors of others says ``has_local_field = True`` and has
      `local_field` or `mean_strength`, for compiled steps in time.
    - Local forces: a force that follows from an oscillator's own phase and values alone says ``local = True``, and the
      fastest solvers ask for force, energy and stiffness of some of the oscillators; `harmonics` is for compiled code.
    - Data: a term whose values differ from sample to sample says ``drives = True`` and has `in_frame`; for the gradient
      with respect to the data also `input_slope`, and for autograd `torch_in_frame`.
    - Connections: a term that couples oscillators has `links` along edges, or `joins_all` without edges; a term whose
      parameters differ in the two directions of an edge has `turn_edges`.
    - Gradients: `raw_slope` and `turned` where the frame changes a parameter; `summed_contrast` and `summed_products`
      where sums over samples have a faster form.
    """

    #: Every parameter that a term of this kind may have.
    every: ClassVar[tuple[Parameter, ...]] = ()
    #: Whether data may drive it, so that its values differ from sample to sample.
    drives: ClassVar[bool] = False
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

    @classmethod
    def of(cls, names: Sequence[str], interaction: Any) -> Self | None:
        """Return the term of a network that was given parameters of these names, None if it has no such term."""
        return cls() if any(parameter.name in names for parameter in cls.every) else None

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

    @abstractmethod
    def energy_slopes(self, graph: Graph, values: Values, phases: Array) -> dict[str, Array]:
        """Return dE/dp of every parameter: see `Term.energy_slopes`."""

    @abstractmethod
    def force_slopes(self, graph: Graph, values: Values, phases: Array, response: Array) -> dict[str, Array]:
        """Return response . dF/dp of every parameter: see `Term.force_slopes`."""

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

    def links(self, values: Values) -> tuple[BoolArray, BoolArray] | None:
        """Return which edges act on their first and on their second end, (E,) each."""
        return None

    def joins_all(self, values: Values) -> bool:
        """Return whether it couples every oscillator to every other, without edges."""
        return False

    def turn_edges(self, values: dict[str, Array], turned: BoolArray) -> None:
        """Exchange what belongs to the two ends of the edges that were given the other way around."""

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

    def _of(self, values: Mapping[str, Any]) -> list[Any]:
        """Return the values of its parameters, in their order."""
        return [values[parameter.name] for parameter in self.parameters]

    def _named(self, *arrays: Array) -> dict[str, Array]:
        """Return arrays by the names of its parameters."""
        return {parameter.name: array for parameter, array in zip(self.parameters, arrays, strict=True)}


def _summed(share: Array, slopes: Array) -> FloatArray:
    """Return the weighted sums over the samples of each network."""
    networks, samples = share.shape
    if networks == 1:
        return share @ slopes
    return np.einsum("rb,rbp->rp", share, slopes.reshape(networks, samples, slopes.shape[1]))
