"""`PhaseNetwork`, the layer: a network's parameters, what goes in, what comes out."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from phasegrad._validation import choice, positive_float, whole_number
from phasegrad.networks import Convolution, Dense, Network, layers
from phasegrad.torch._operators import certify as certified, settle
from phasegrad.torch._registry import registered
from phasegrad.torch._states import SIGNS

OUTPUTS = ("phases", "cosines", "both")
DTYPES = (torch.float32, torch.float64)
_NAMES = ("coupling", "omega", "field_strength", "field_phase")
UNSETTLED = ("last", "zero", "nan")
_OPTIONS = ("gradient", "beta", "output", "learn", "tolerance", "most_sweeps", "unsettled", "dtype", "device")
# The strength of the fields in the last layer, and how much stronger those of a layer are than those of the next.
_LAST, _GRADE = 2.0, 5.0
# The strength of nudges at which error and rounding are both small: of one nudge alone, and of a pair.
_ONE_SIDED_BETA, _CENTRED_BETA = 0.001, 0.01


class Info(NamedTuple):
    """What is known of every sample of a batch.

    Attributes
    ----------
    settled : tensor of bool, shape (B,)
        Where an equilibrium was found; the outputs of all others are those that ``unsettled`` of the layer asks for.
    residual : tensor, shape (B,)
        The largest force left.
    sweeps : tensor of int, shape (B,)
        How often all oscillators were turned to where their local fields point.
    stable : tensor of bool, shape (B,), or None
        Where the equilibrium is proved stable; None unless asked for by ``certify=True``.

    The shapes are those of the inputs without the last axes, (B, T) of inputs (B, T, n_in).

    See Also
    --------
    torch.PhaseNetwork : A PyTorch layer that settles.
    torch.SettlingWarning : Samples without an equilibrium.

    Examples
    --------
    >>> import torch
    >>> import phasegrad as pg
    >>> layer = pg.torch.PhaseNetwork.layers(4, 8, 3, dtype=torch.float64)
    >>> phases, info = layer(torch.zeros(2, 4, dtype=torch.float64), return_info=True, certify=True)
    >>> info.settled.tolist(), info.stable.tolist()
    ([True, True], [True, True])
    """

    settled: Tensor
    residual: Tensor
    sweeps: Tensor
    stable: Tensor | None


class PhaseNetwork(nn.Module):
    """A layer that settles: inputs in, phases of the output oscillators at equilibrium out.

    Every sample settles from phase zero. The derivative by parameters and inputs is exact, by one linear solve, or is
    read off nudged equilibria: equilibrium propagation as the backward pass of an ordinary layer. There the outputs
    feel a torque of ``beta`` times minus the slope of the loss by their phases, over its largest entry in the sample,
    so that the strength of the nudge does not depend on the scale of the loss; what is read off is scaled back.

    Parameters
    ----------
    network : Network
        Of sine coupling, with inputs and outputs; `layers` builds one.
    gradient : {"implicit", "two_phase", "centred"}
        Exact, or by one nudge (error of order beta), or by two of opposite sign (of order beta squared).
        `gradient_error` measures the error.
    beta : float, optional
        Strength of the nudge; left out, 0.001 of "two_phase" and 0.01 of "centred".
    output : {"phases", "cosines", "both"}
        What is read out; "both" are cosines, then sines.
    learn : sequence of str, optional
        Parameters that require gradients; the others are kept as they are. Left out, those are all, but for omega where
        it is zero everywhere and the inputs are clamped.
    tolerance : float, optional
        Largest force of a settled sample: 1e-12 if left out, and never below what rounding may leave, which is about
        1e-5 in single precision.
    most_sweeps : int
        Sweeps after which a sample is given up.
    unsettled : {"last", "zero", "nan"}
        Outputs of a sample for which no equilibrium was found: those of the last state reached (of phase zero if the
        sample holds a NaN), zeros, or NaN. In all three cases its gradient is zero.
    dtype, device : optional
        Of the parameters, as in any module; float32 or float64.

    Attributes
    ----------
    info : Info or None
        Of the samples of the last call, also inside `torch.nn.Sequential`; None before the first.
    unsettled_count : tensor of int, shape ()
        Samples without an equilibrium in all calls so far; set it to zero with ``unsettled_count.zero_()``.

    See Also
    --------
    layers : Dense and convolutional layers with shared parameters.
    autograd : PyTorch's automatic differentiation.

    Examples
    --------
    >>> import torch, phasegrad as pg
    >>> layer = pg.torch.PhaseNetwork.layers(4, 20, 3, output="cosines")
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Tanh(), layer, torch.nn.Linear(3, 2))
    >>> model(torch.zeros(5, 8)).shape
    torch.Size([5, 2])
    """

    coupling: nn.Parameter
    omega: nn.Parameter
    field_strength: nn.Parameter | None
    field_phase: nn.Parameter | None
    unsettled_count: Tensor

    def __init__(
        self, network: Network, *, gradient: str = "implicit", beta: float | None = None, output: str = "phases",
        learn: Iterable[str] | None = None, tolerance: float | None = None, most_sweeps: int = 4000,
        unsettled: str = "last", dtype: torch.dtype | None = None, device: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._network = _checked_network(network)
        self.gradient = choice("gradient", gradient, SIGNS, "PhaseNetwork")
        self.output = choice("output", output, OUTPUTS, "PhaseNetwork")
        usual = _ONE_SIDED_BETA if len(SIGNS[self.gradient]) == 1 else _CENTRED_BETA
        self.beta = positive_float("beta", usual if beta is None else beta, "PhaseNetwork")
        self.tolerance = None if tolerance is None else positive_float("tolerance", tolerance, "PhaseNetwork")
        self.most_sweeps = whole_number("most_sweeps", most_sweeps, 1, "PhaseNetwork")
        self.unsettled = choice("unsettled", unsettled, UNSETTLED, "PhaseNetwork")
        self.info: Info | None = None
        kind = torch.get_default_dtype() if dtype is None else dtype
        _check_dtype(kind, "The parameters of this PhaseNetwork")
        learned = _checked_learn(learn, network)
        for name in _NAMES:
            values = network.parameters.get(name)
            if values is None:
                self.register_parameter(name, None)
                continue
            tensor = torch.tensor(np.array(values), dtype=kind, device=device)
            self.register_parameter(name, nn.Parameter(tensor, requires_grad=name in learned))
        count = torch.zeros((), dtype=torch.long, device=device)
        self.register_buffer("unsettled_count", count, persistent=False)
        self._register()

    @classmethod
    def layers(
        cls, shape: int | tuple[int, ...], *sizes: int | Dense | Convolution, gain: float = 1.0,
        output_gain: float = 0.2, field: float | None = None, **options: Any,
    ) -> Self:  # fmt: skip
        """Return a layer made of a network of layers; a number stands for `Dense`.

        Options are those of `phasegrad.layers` and of `PhaseNetwork`. The defaults are others than there, chosen for a
        layer among others that learn at one rate: fields are five times as strong in each layer as in the next, 2 in
        the last, and couplings are drawn in proportion to the field of the layer that they act on. Data then moves
        every layer by angles of order one, and later layers hardly act back on earlier ones.

        Parameters
        ----------
        shape : int or tuple of int
            Of the inputs.
        *sizes : int, Dense or Convolution
        gain, output_gain : float
            Scale of the couplings between layers, and of those that act on the last one, in units of the field there.
        field : float, optional
            Strength of all fields, if they are to be equal; gains are then those of `phasegrad.layers`.
        **options

        Examples
        --------
        >>> import phasegrad as pg
        >>> pg.torch.PhaseNetwork.layers((1, 8, 8), pg.Convolution(4, 3), 10, gradient="centred", seed=1)
        PhaseNetwork(1x8x8 - 4x6x6 - 10, gradient='centred', output='phases', beta=0.01)
        """
        own = {name: options.pop(name) for name in _OPTIONS if name in options}
        made = [size if isinstance(size, (Dense, Convolution)) else Dense(size) for size in sizes]
        strength = 1.0 if field is None else field
        network = layers(shape, *made, gain=gain, output_gain=output_gain, field=strength, **options)
        return cls(_graded(network) if field is None else network, **own)

    def forward(self, x: Tensor, return_info: bool = False, certify: bool = False) -> Tensor | tuple[Tensor, Info]:
        """Return what is read out of the outputs, (..., n_out), in the shape of the last layer where it has channels.

        Parameters
        ----------
        x : tensor, shape (..., n_in) or (..., *shape of the inputs)
            Any number of leading axes, none included, as in `torch.nn.Linear`. Inside `torch.autocast` it is cast to
            the type of the parameters.
        return_info : bool
            Whether to return an `Info` as well.
        certify : bool
            Whether it says which equilibria are proved stable.
        """
        flat, leading = self._checked(x)
        if certify and not return_info:
            raise ValueError("certify=True fills Info.stable: ask for it with return_info=True as well.")
        parameters = self.coupling, self.omega, self.field_strength, self.field_phase
        phases, states, fields, settled, residual, sweeps = settle(
            flat, *parameters, self._topology, self.gradient, self.beta, self.tolerance or 0.0, self.most_sweeps
        )
        self.unsettled_count += (~settled).sum()
        stable = certified(flat, *parameters, states, fields, settled, self._topology) if certify else None
        known = (settled, residual, sweeps, stable)
        self.info = Info(*(each if each is None else each.reshape(leading) for each in known))  # type: ignore[arg-type]
        answer = self._read(phases, settled).unflatten(0, leading) if leading else self._read(phases, settled)[0]
        return (answer, self.info) if return_info else answer

    def gradient_error(self, x: Tensor, loss: Callable[[Tensor], Tensor]) -> dict[str, float]:
        """Return the relative error of the gradients that this layer gives, by name, against the exact ones.

        Parameters
        ----------
        x : tensor
            Inputs, as the layer takes them.
        loss : callable
            From the outputs of the layer to a number.

        Returns
        -------
        dict
            The norm of the difference over that of the exact gradient, with respect to "inputs" and every parameter
            that learns.

        Examples
        --------
        >>> import torch, phasegrad as pg
        >>> layer = pg.torch.PhaseNetwork.layers(4, 20, 3, gradient="two_phase")
        >>> max(layer.gradient_error(torch.rand(5, 4), lambda y: y.square().sum()).values()) < 0.01
        True
        """
        exact = copy.copy(self)
        exact.gradient = "implicit"
        given = x.detach().clone().requires_grad_()
        learned = {name: each for name, each in self.named_parameters() if each.requires_grad}
        found = []
        for layer in (self, exact):
            with torch.enable_grad():
                found.append(torch.autograd.grad(loss(layer(given)), (given, *learned.values())))
        names = ("inputs", *learned)
        return {
            name: float((mine - theirs).norm() / theirs.norm())
            for name, mine, theirs in zip(names, *found, strict=True)
        }

    def to_network(self) -> Network:
        """Return the network with the present values of the parameters.

        Examples
        --------
        >>> import phasegrad as pg
        >>> network = pg.layers(4, pg.Dense(3))
        >>> pg.torch.PhaseNetwork(network, dtype=torch.float64).to_network() == network
        True
        """
        values = {name: getattr(self, name) for name in _NAMES}
        arrays = {k: each.detach().double().cpu().numpy() for k, each in values.items() if each is not None}
        return self._network.replace(**arrays)

    def extra_repr(self) -> str:
        """Return the layers and the options in words."""
        layout = self._network.graph.layout
        sizes = f"{len(self._network.inputs)} inputs, {self._network.size} oscillators, {self._width} outputs"
        what = sizes if layout is None else str(layout)
        nudge = "" if self.gradient == "implicit" else f", beta={self.beta:g}"
        return f"{what}, gradient={self.gradient!r}, output={self.output!r}{nudge}"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_structure", "_topology")} | {
            "info": None
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._register()

    def _register(self) -> None:
        """Take the name under which the operators find the topology, and hold what it stands for."""
        self._topology, self._structure = registered(self._network)
        layout = self._network.graph.layout
        self._width = len(self._network.outputs)
        self._inputs = (len(self._network.inputs),) if layout is None else tuple(layout.shapes[0])
        self._shape = (self._width,) if layout is None else tuple(layout.shapes[-1])

    def _checked(self, x: Tensor) -> tuple[Tensor, torch.Size]:
        """Return the inputs as (B, n_in), and their leading axes."""
        if not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active():
            raise NotImplementedError(
                "A PhaseNetwork cannot be transformed by torch.func: it takes a whole batch, and autograd "
                "differentiates it. torch.func.functional_call with torch.autograd.grad works."
            )
        if not isinstance(x, Tensor):
            raise TypeError(f"A PhaseNetwork takes a tensor. Got {type(x).__name__}: use torch.as_tensor.")
        width, mine = math.prod(self._inputs), self.coupling
        shaped = tuple(x.shape[-len(self._inputs) :]) == self._inputs
        if not shaped and tuple(x.shape[-1:]) != (width,):
            allowed = f"(..., {width})" + (
                f" or {('...', *self._inputs)}".replace("'", "") if len(self._inputs) > 1 else ""
            )
            raise ValueError(f"This PhaseNetwork takes inputs of shape {allowed}. Got {tuple(x.shape)}.")
        _check_dtype(mine.dtype, "The parameters of this PhaseNetwork")
        if x.dtype != mine.dtype and x.is_floating_point() and torch.is_autocast_enabled(x.device.type):
            x = x.to(mine.dtype)
        if x.dtype != mine.dtype:
            raise TypeError(
                f"This PhaseNetwork has parameters of {_name(mine.dtype)} and takes inputs of the same. Got "
                f"{_name(x.dtype)}: use x.to({mine.dtype}), or move the module with .to({x.dtype})."
                if x.dtype in DTYPES
                else f"A PhaseNetwork takes inputs of float32 or float64. Got {_name(x.dtype)}: use x.to({mine.dtype})."
            )
        if x.device != mine.device:
            raise ValueError(
                f"The inputs lie on {x.device} and the parameters of this PhaseNetwork on {mine.device}. Move one of "
                "them with .to(device)."
            )
        leading = x.shape[: x.dim() - (len(self._inputs) if shaped else 1)]
        return x.reshape(math.prod(leading), width), leading

    def _read(self, phases: Tensor, settled: Tensor) -> Tensor:
        """Return what is read out of the phases (B, n_out) of the outputs."""
        read = phases.reshape(phases.shape[0], *self._shape)
        if self.output != "phases":
            read = read.cos() if self.output == "cosines" else torch.cat((read.cos(), read.sin()), dim=1)
        if self.unsettled == "last":
            return read
        there = settled.reshape(-1, *(1,) * len(self._shape))
        return torch.where(there, read, 0.0 if self.unsettled == "zero" else torch.nan)


def _graded(network: Network) -> Network:
    """Return a network of layers with fields that fall from layer to layer, and couplings in proportion to them."""
    layout = network.graph.layout
    assert layout is not None
    last = len(layout.shapes) - 1
    coupling, strength = np.array(network.coupling), np.array(network.parameters["field_strength"])
    for link, part in zip(layout.links, layout.couplings, strict=True):
        coupling[part] *= _LAST * _GRADE ** (last - link.second)
    for number, values in enumerate(layout.node_values):
        strength[values] *= _LAST * _GRADE ** (last - number)
    return network.replace(coupling=coupling, field_strength=strength)


def _checked_network(given: Any) -> Network:
    if not isinstance(given, Network):
        raise TypeError(
            f"PhaseNetwork takes a Network, such as phasegrad.layers(...). Got {type(given).__name__}; sizes alone go "
            "to PhaseNetwork.layers(784, 100, 10)."
        )
    for kind in ("inputs", "outputs"):
        if not getattr(given, kind):
            raise ValueError(f"PhaseNetwork takes networks with inputs and outputs, and this one has no {kind}.")
    return given


def _checked_learn(given: Any, network: Network) -> tuple[str, ...]:
    if given is None:
        still = network.clamps_inputs and not np.any(network.omega)
        return tuple(name for name in network.parameters if not (still and name == "omega"))
    names = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    for name in names:
        if name not in network.parameters:
            raise ValueError(
                f"The 'learn' parameter of PhaseNetwork must name parameters of the network, which are "
                f"{', '.join(network.parameters)}. Got {name!r}."
            )
    return names


def _check_dtype(kind: torch.dtype, what: str) -> None:
    if kind not in DTYPES:
        raise TypeError(
            f"{what} must be of float32 or float64: an equilibrium has forces that cancel, for which {_name(kind)} has "
            "too few digits. Use .to(torch.float32)."
        )


def _name(kind: torch.dtype) -> str:
    return str(kind).removeprefix("torch.")
