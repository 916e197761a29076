r"""The network: a graph, the terms of its energy, and how data enters.

The dynamics of oscillator i, in the frame that rotates with the network, are

    d theta_i / dt = omega_i + sum_j K_ij H(theta_j - theta_i) + h_i H(psi_i - theta_i) + ...

with natural frequencies omega, coupling K, an odd interaction H and, optionally, a bias field of strength h and phase
psi, and other terms. A `Network` is a frozen value over read-only arrays; `Network.replace` makes the next one and
shares the graph with it.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import FrozenInstanceError
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phasegrad._validation import (
    FloatArray,
    IntArray,
    choice,
    counted,
    finite_array,
    frozen_array,
    node_tuple,
    positive_float,
    whole_number,
)
from phasegrad.graphs import Graph, Layout, ordered_edges
from phasegrad.networks._checks import (
    checked_input_phase,
    checked_interaction,
    checked_parameters,
    checked_terms,
    layer_nodes,
    number_of,
    per_node,
    terms_of,
)
from phasegrad.networks._drawing import plot_network
from phasegrad.networks._gauge import check_grounded
from phasegrad.terms import TERMS, Interaction, Parameter, Term, check_term

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INPUT_MODES = ("frequency", "phase")
#: What a network is beside its edges and parameters, by the names that its maker takes.
ROLES = (
    "inputs", "outputs", "reference", "grounded", "input_mode", "input_scale", "input_phase", "interaction", "signed",
)  # fmt: skip


def _of_graph(name: str, doc: str) -> Any:
    return property(lambda network: getattr(network.graph, name), doc=doc)


class Network:
    """A network of coupled phase oscillators.

    Parameters
    ----------
    edges : array_like of int, shape (E, 2), or Layout
        Coupled pairs. They are stored with i < j and in row-major order, and every per-edge array with them. Or layers
        and the links between them, whose parameters are shared: E and N below are then the layout's ``n_couplings`` and
        ``n_node_values``. `layers` builds such a network.
    coupling : array_like of float, shape (E,) or scalar
        Strength K_ij with which j acts on i, for each edge (i, j).
    omega : array_like of float, shape (N,)
        Natural frequencies; their number is the number of oscillators. With a layout a scalar will do.
    inputs, outputs : sequence of int
        Nodes that data drives, and nodes that are read out. With a layout they are its first and its last layer.
    reference : int, default 0
        The node held at phase zero where no field and no clamped input fixes the gauge.
    grounded : bool, default False
        Only matters where coupling is not reciprocal and nothing else fixes the gauge. Such a network locks at a common
        frequency of its own, which is solved for, and its equilibria do not depend on the reference. True holds the
        reference by force at the mean frequency instead and drops its own equation, as the paper's Table 2 does.
    input_mode : {"frequency", "phase"}
        Data x sets the frequency ``input_scale * x`` of the inputs, or clamps their phase at
        ``input_phase + input_scale * x``. Clamped oscillators do not move and, like a field, fix the gauge.
    input_scale : float, default 1.5
        The scale (of frequencies) or span (of phases) of the inputs.
    input_phase : float, default 0
        The phase at which data 0 clamps an input.
    interaction : Interaction
        The odd coupling function H.
    signed : bool, default False
        Whether negative couplings and field strengths are allowed.
    labels : sequence of hashable, optional
        Names of the nodes, for people and for NetworkX. The physics never reads them.
    node_attributes : sequence of mapping, optional
        Anything else known about each node, carried along unread.
    terms : sequence of Term, optional
        Terms of your own; their parameters are given by name like all others.
    **parameters : array_like
        By name, those of the other terms: ``coupling_reverse`` (E,), the strength K_ji with which i acts on j (left
        out, coupling is reciprocal); ``field_strength`` and ``field_phase`` (N,), a bias field h and its phase psi
        (zero if left out); ``lag`` (E,), the angle by which coupling lags; ``anisotropy`` (E,), the share in it of the
        sum of the two phases; and so on for every term in `phasegrad.terms.TERMS`.

    Attributes
    ----------
    graph : Graph
        Edges and roles, and all that follows from them; shared by networks that differ in parameters only.
    terms : tuple of Term
        What the energy is made of.
    parameters : mapping of str to ndarray
        All parameters by name; each is an attribute too: ``network.omega``.

    See Also
    --------
    layered : The paper's sparse layers, positive couplings, data as frequencies.
    layers : Dense and convolutional layers with shared parameters.
    from_matrix : A network from a matrix of couplings.
    find_equilibrium : One certified equilibrium per sample.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.Network([[0, 1], [1, 2]], coupling=[1.0, 2.0], omega=[0.1, 0.0, -0.1], outputs=[2])
    >>> network
    Network(3 oscillators, 2 edges, 1 output, Sine(), node 0 held at phase 0)
    >>> network.replace(coupling=[3.0, 2.0]).coupling
    array([3., 2.])
    >>> pg.find_equilibrium(network).phases.round(3)
    array([ 0.  , -0.1 , -0.15])
    """

    graph: Graph
    terms: tuple[Term, ...]
    omega: FloatArray
    coupling: FloatArray
    input_mode: str
    input_scale: float
    input_phase: float
    interaction: Interaction
    signed: bool
    labels: tuple[Hashable, ...] | None
    node_attributes: tuple[Mapping[str, Any], ...] | None

    def __init__(
        self, edges: ArrayLike | Layout, coupling: ArrayLike, omega: ArrayLike, *,
        inputs: Sequence[int] | NDArray[Any] = (), outputs: Sequence[int] | NDArray[Any] = (), reference: int = 0,
        grounded: bool = False, input_mode: str = "frequency", input_scale: float = 1.5, input_phase: float = 0.0,
        interaction: Interaction | None = None, signed: bool = False, labels: Sequence[Hashable] | None = None,
        node_attributes: Sequence[Mapping[str, Any]] | None = None, terms: Sequence[Term] = (),
        **parameters: ArrayLike | None,
    ) -> None:  # fmt: skip
        frequencies = finite_array("omega", omega, "Network")
        for name, value in (("signed", signed), ("grounded", grounded)):
            if not isinstance(value, (bool, np.bool_)):
                raise TypeError(f"The '{name}' parameter of Network must be True or False. Got {value!r}.")
        self._set("input_mode", choice("input_mode", input_mode, INPUT_MODES, "Network"))
        self._set("input_scale", positive_float("input_scale", input_scale, "Network"))
        self._set("input_phase", checked_input_phase(input_phase, self.input_mode))
        self._set("interaction", checked_interaction(interaction))
        self._set("signed", bool(signed))
        size = edges.size if isinstance(edges, Layout) else number_of(frequencies)
        parameters.update(coupling=coupling, omega=frequencies)
        self._set("_own_terms", checked_terms(terms, Network))
        self._set("terms", terms_of(parameters, self.interaction, self._own_terms))
        pairs, order, turned = (edges, None, None) if isinstance(edges, Layout) else ordered_edges(edges, size)
        self._set("graph", self._make_graph(pairs, size, inputs, outputs, reference, bool(grounded)))
        checked = checked_parameters(self.graph, self.terms, parameters, signed=self.signed, order=order, turned=turned)
        self._set("_parameters", checked)
        self._set("labels", per_node("labels", labels, size))
        self._set("node_attributes", per_node("node_attributes", node_attributes, size))
        check_grounded(self.graph, self.terms, self.parameters)
        for term in self._own_terms:
            check_term(term, self.graph, {name: each[None] for name, each in self._spread().items()})

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields or parameters changed, checked as a new network is.

        Where only values of parameters change the copy shares this network's graph.
        """
        settings = self._settings()
        kinds: tuple[Any, ...] = (*TERMS, *checked_terms(changes.get("terms", self._own_terms), Network))
        names = dict.fromkeys(parameter.name for kind in kinds for parameter in kind.every)
        unknown = [name for name in changes if name not in {**names, **settings, **self.parameters}]
        if unknown:
            raise TypeError(
                f"Network has no field {unknown[0]!r}. Its fields are {', '.join(settings)}, and parameters of its "
                f"terms {', '.join(names)}; for a term of your own, name it in 'terms'."
            )
        if not all(name in self.parameters and value is not None for name, value in changes.items()):
            kept = {name: values for name, values in self.parameters.items() if name in names}
            return type(self)(**{**settings, **kept, **changes})
        other = copy.copy(self)
        given = {**self.parameters, **changes}
        other._set("_parameters", checked_parameters(self.graph, self.terms, given, signed=self.signed))
        check_grounded(self.graph, self.terms, other.parameters)
        return other

    def alike(self, other: Network) -> bool:
        """Whether both have the same edges, roles and terms, and take data alike: they differ in parameters alone."""
        same = (self.terms, self.signed, self.input_scale, self.input_phase) == (
            other.terms, other.signed, other.input_scale, other.input_phase
        )  # fmt: skip
        return same and self.graph.alike(other.graph)

    def _settings(self) -> dict[str, Any]:
        """Return everything but the parameters, by the names that `__init__` knows."""
        names = (*ROLES, "labels", "node_attributes")
        return {"edges": self.graph.pairs} | {name: getattr(self, name) for name in names} | {"terms": self._own_terms}

    def untied(self) -> Network:
        """Return the same network with parameters of its own for every oscillator and every edge.

        A network without a layout is returned as it is.

        Examples
        --------
        >>> import phasegrad as pg
        >>> layout = pg.networks.Layout([(1, 3, 3), (2, 2, 2)], [pg.networks.Link(0, 1, kernel=2)])
        >>> network = pg.Network(layout, 1.0, 0.0)
        >>> network.coupling.shape, network.untied().coupling.shape
        ((8,), (32,))
        """
        if self.graph.layout is None:
            return self
        return Network(**{**self._settings(), "edges": self.edges, **self._spread()})

    def _spread(self) -> dict[str, FloatArray]:
        """Return all parameters, one for every node or edge."""
        every = [parameter for term in self.terms for parameter in term.parameters]
        return {each.name: self.graph.sharing.spread(each.on, self.parameters[each.name]) for each in every}

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"A Network is frozen: use network.replace({name}=...) to make another.")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"A Network is frozen: {name!r} cannot be deleted.")

    def __getattr__(self, name: str) -> Any:
        """Return a parameter by its name; None for one that this network does not have but could have."""
        parameters = self.__dict__.get("_parameters", {})
        if name in parameters:
            return parameters[name]
        if any(name == parameter.name for kind in TERMS for parameter in kind.every):
            return None
        raise AttributeError(f"Network has no attribute {name!r}.")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.parameters})

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_parameters", {name: frozen_array(each) for name, each in self._parameters.items()})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        mine, theirs = ({**network._settings(), **network.parameters} for network in (self, other))
        return mine.keys() == theirs.keys() and all(_equal(value, theirs[name]) for name, value in mine.items())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = [counted(self.size, "oscillator"), counted(self.n_edges, "edge")]
        if self.graph.layout is not None:
            parts.append(f"layers {self.graph.layout}")
        if self.inputs:
            kind = "frequencies" if self.input_mode == "frequency" else "clamped phases"
            parts.append(f"{counted(len(self.inputs), 'input')} as {kind}")
        if self.outputs:
            parts.append(counted(len(self.outputs), "output"))
        parts += [word for term in self.terms if (word := term.describe())]
        gauge = f"node {self.reference} held at phase 0" if self.pinned else "gauge fixed from outside"
        return f"Network({', '.join(parts)}, {self.interaction!r}, {gauge})"

    @property
    def parameters(self) -> Mapping[str, FloatArray]:
        """All parameters by name."""
        return MappingProxyType(self.__dict__.get("_parameters", {}))

    edges: IntArray = _of_graph("edges", "Coupled pairs (E, 2), i < j, in row-major order.")
    size: int = _of_graph("size", "Number of oscillators N.")
    n_edges: int = _of_graph("n_edges", "Number of edges E.")
    inputs: tuple[int, ...] = _of_graph("inputs", "Nodes that data drives.")
    outputs: tuple[int, ...] = _of_graph("outputs", "Nodes that are read out.")
    reference: int = _of_graph("reference", "The node held at phase zero where nothing else fixes the gauge.")
    pinned: bool = _of_graph("pinned", "Whether the reference is held because nothing else fixes the gauge.")
    grounded: bool = _of_graph("grounded", "Whether holding it may take a torque, where coupling is not reciprocal.")
    clamps_inputs: bool = _of_graph("clamped", "Whether the inputs are clamped phases.")
    held: IntArray = _of_graph("held", "The nodes that do not move: the clamped inputs, or the reference, or none.")
    free: IntArray = _of_graph("free", "The nodes that move, in order.")
    learnable: IntArray = _of_graph("learnable", "The nodes whose own parameters may be learned: all but the inputs.")

    def plot(
        self, ax: Axes | None = None, *, phases: ArrayLike | None = None, nodes: str = "auto",
        colour: str | None = None, places: ArrayLike | None = None,
    ) -> Axes:  # fmt: skip
        """Draw the network: layers in columns, rings on a circle, any other graph where springs hold it.

        Needs matplotlib (``pip install '.[plot]'`` in a clone of the repository).

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new ones if left out.
        phases : array_like, shape (N,), optional
            Of one state. Edges are then as wide and dark as their stress, the share of their largest pull that they
            exert; else as wide as their coupling. Edges of negative coupling are dashed.
        nodes : {"auto", "hands", "dots"}
            Oscillators as clocks whose hands point at their phases, up to 40 of them, or as discs. "auto" takes hands
            where it can.
        colour : str, optional
            Of the discs: "role" (input, hidden, output), "phase", or a parameter of the nodes such as "omega". Roles
            if left out, or phases where these are not shown by hands.
        places : array_like, shape (N, 2), optional
            Where the oscillators lie; needed beyond 500 of them that are not in layers.

        Returns
        -------
        matplotlib Axes

        Examples
        --------
        >>> import phasegrad as pg
        >>> network = pg.layered(2, 5, 2, seed=0)
        >>> state = pg.find_equilibrium(network, [0.8, -0.6])
        >>> axes = network.plot(phases=state.phases)  # doctest: +SKIP
        """
        return plot_network(self, ax, phases, nodes, colour, places)

    @property
    def reciprocal(self) -> bool:
        """Whether the two ends of every edge act on each other equally, so that an energy exists."""
        return all(term.symmetric for term in self.terms)

    def term_of(self, parameter: str) -> tuple[Term, Parameter]:
        """Return the term that has a parameter, and the parameter; ValueError if the network has none of this name."""
        for term in self.terms:
            for each in term.parameters:
                if each.name == parameter:
                    return term, each
        raise ValueError(
            f"This network has no parameter {parameter!r}. Its parameters are {', '.join(self.parameters)}."
        )

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _make_graph(
        self, pairs: IntArray | Layout, size: int, inputs: Any, outputs: Any, reference: Any, grounded: bool
    ) -> Graph:
        if isinstance(pairs, Layout):
            driven, read = (
                layer_nodes("inputs", inputs, pairs.nodes[0]),
                layer_nodes("outputs", outputs, pairs.nodes[-1]),
            )
        else:
            driven, read = (node_tuple(*given, size, "Network") for given in (("inputs", inputs), ("outputs", outputs)))
        number = whole_number("reference", reference, 0, "Network")
        held = node_tuple("reference", [number], size, "Network")[0]
        clamped = self.input_mode == "phase" and bool(driven)
        pinned = not clamped and not any(term.fixes_gauge for term in self.terms)
        if clamped and set(driven) & set(read):
            node = min(set(driven) & set(read))
            raise ValueError(f"Node {node} is an output and a clamped input. A clamped oscillator cannot answer.")
        if pinned and held in read:
            raise ValueError(
                f"Node {held} is an output and the reference. The reference is held at phase zero and cannot answer: "
                "choose another reference."
            )
        return Graph(pairs, size, driven, read, held, clamped, pinned, grounded)


def _equal(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, np.ndarray) or isinstance(theirs, np.ndarray):
        return np.array_equal(mine, theirs)
    return bool(mine == theirs)
