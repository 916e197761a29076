r"""Networks of layers, dense and convolutional, that learn from data such as images.

Inputs are clamped, couplings have both signs, and fields keep every other oscillator near one phase. By default that is
the phase of an input without data, pi / 2: at rest the force of an input on its neighbours is K sin(pi x / 2) for data
x from -1 to 1, none for 0, and of either sign. What data moves are the cosines of the inputs, and all others rest
perpendicular to that axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from phasegrad._validation import float_between, random_stream, shaped_array, whole_number
from phasegrad.graphs import Layout, Link, checked_shape
from phasegrad.networks._builders import refuse_drawn
from phasegrad.networks._network import Network


@dataclass(frozen=True)
class Dense:
    """A layer of oscillators, on each of which the whole layer before acts; for `layers`.

    Parameters
    ----------
    size : int
        Number of oscillators.
    skip : sequence of int
        Numbers of earlier layers, 0 for the inputs, that act on it as well, all on all.

    See Also
    --------
    layers : Dense and convolutional layers with shared parameters.
    Convolution : A layer whose couplings are shared over an image.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.layers(4, pg.Dense(20), pg.Dense(3, skip=[0])).n_edges
    152
    """

    size: int
    _: KW_ONLY
    skip: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        whole_number("size", self.size, 1, "Dense")
        object.__setattr__(self, "skip", _checked_skip(self.skip, "Dense"))

    def link(self, first: int, second: int) -> Link:
        """Return how an earlier layer acts on it."""
        return Link(first, second)


@dataclass(frozen=True)
class Convolution:
    """A layer of channels x height x width oscillators, which a convolution of the layer before acts on; for `layers`.

    Its oscillators share couplings, one kernel for every pair of channels, and fields, one for every channel. They act
    back on the layer before through the same couplings.

    Parameters
    ----------
    channels : int
    kernel : int
        Height and width of the kernels.
    stride, padding : int
        As in ``torch.nn.functional.conv2d``; height and width follow from them.
    skip : sequence of int
        Numbers of earlier layers, 0 for the inputs, that act on it as well, each by a convolution of its own with this
        kernel, stride and padding.

    See Also
    --------
    layers : Dense and convolutional layers with shared parameters.
    Dense : A layer coupled to all of the one before.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.layers((1, 8, 8), pg.Convolution(4, 3, stride=2, padding=1), pg.Dense(10)).graph.layout.shapes
    ((1, 8, 8), (4, 4, 4), (10,))
    """

    channels: int
    kernel: int
    _: KW_ONLY
    stride: int = 1
    padding: int = 0
    skip: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        whole_number("channels", self.channels, 1, "Convolution")
        whole_number("kernel", self.kernel, 1, "Convolution")
        whole_number("stride", self.stride, 1, "Convolution")
        whole_number("padding", self.padding, 0, "Convolution")
        object.__setattr__(self, "skip", _checked_skip(self.skip, "Convolution"))

    def link(self, first: int, second: int) -> Link:
        """Return how an earlier layer acts on it."""
        return Link(first, second, self.kernel, self.stride, self.padding)


def layers(
    shape: int | tuple[int, ...], *layers: Dense | Convolution, rest: float = np.pi / 2, gain: float = 0.3,
    output_gain: float = 0.1, field: float = 1.0, seed: int | None = 0, **options: Any,
) -> Network:  # fmt: skip
    """Build a network of layers for learning: clamped input phases, couplings of both signs, bias fields.

    Couplings are drawn from N(0, gain^2 / m) where m oscillators of the earlier layer act on one of the later (at a
    border of an image fewer than that), link by link in the order of the network's layout. They are few in a
    convolution, whose oscillators share them, and so are fields: one for every channel.

    Parameters
    ----------
    shape : int or tuple of int
        Of the inputs: their number, or (channels, height, width) of images. Samples are given flat, in this order.
    *layers : Dense or Convolution
        One after another; the last are the outputs.
    rest : float
        The phase that fields pull all oscillators but the inputs to.
    gain, output_gain : float
        Scale of the couplings between layers, and of those that act on the last one.
    field : float
        Strength of the fields; 0 leaves them out.
    seed : int or None
        Seed of the random stream.
    **options
        Passed on to `Network`. Left out, ``input_phase`` and ``input_scale`` are pi / 2, for data from -1 to 1.

    See Also
    --------
    Dense : A layer coupled to all of the one before.
    Convolution : A layer whose couplings are shared over an image.
    signed_layers : Layers with couplings of both signs, fields and clamped inputs.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.layers((1, 28, 28), pg.Convolution(32, 5, stride=2), pg.Dense(10))
    >>> network.graph.layout.shapes, network.n_edges, network.coupling.size
    (((1, 28, 28), (32, 12, 12), (10,)), 161280, 46880)
    """
    if not layers or not all(isinstance(layer, (Dense, Convolution)) for layer in layers):
        raise TypeError(
            "layers takes the shape of the inputs and at least one layer after them, such as Dense(10) or "
            f"Convolution(32, 5). Got {layers!r:.80}."
        )
    gain = float_between("gain", gain, 0, math.inf, "layers")
    output_gain = float_between("output_gain", output_gain, 0, math.inf, "layers")
    field = float_between("field", field, 0, math.inf, "layers")
    rest = float(shaped_array("rest", rest, (), "layers"))
    refuse_drawn(options, "layers")
    rng, layout = random_stream(seed, "layers"), _layout(checked_shape(shape, "layers"), layers)
    coupling = np.empty(layout.n_couplings)
    for link, part in zip(layout.links, layout.couplings, strict=True):
        scale = output_gain if link.second == len(layers) else gain
        coupling[part] = scale / math.sqrt(layout.fan_in(link)) * rng.standard_normal(part.stop - part.start)
    settings: dict[str, Any] = {"input_mode": "phase", "signed": True, **options}
    if settings["input_mode"] == "phase":
        settings = {"input_phase": np.pi / 2, "input_scale": np.pi / 2, **settings}
    if field:
        inner = np.arange(layout.n_node_values) >= layout.node_values[0].stop
        settings = {"field_strength": field * inner, "field_phase": rest * inner, **settings}
    return Network(layout, coupling, 0.0, **settings)


def _layout(shape: tuple[int, ...], layers: tuple[Dense | Convolution, ...]) -> Layout:
    """Return the layout of layers that follow each other."""
    shapes, links = [shape], []
    for number, layer in enumerate(layers, start=1):
        last = number - 1
        outside = [each for each in layer.skip if each >= last]
        if outside:
            raise ValueError(
                f"Layer {number} skips from layer {outside[0]}, but only layers before the one that acts on it anyway, "
                f"{last}, can be skipped from: {f'0 to {last - 1}' if last > 1 else '0' if last else 'there are none'}."
            )
        mine = [layer.link(first, number) for first in (last, *layer.skip)]
        made = [
            (layer.size,) if isinstance(layer, Dense) else link.shape(shapes[link.first], layer.channels)
            for link in mine
        ]
        for link, other in zip(mine, made, strict=True):
            if other != made[0]:
                raise ValueError(
                    f"Layer {number} is {'x'.join(map(str, made[0]))}, but the same convolution of layer {link.first} "
                    f"would make it {'x'.join(map(str, other))}. Skip only from layers of the size of layer {last}."
                )
        shapes.append(made[0])
        links += mine
    return Layout(tuple(shapes), tuple(links))


def _checked_skip(given: Any, owner: str) -> tuple[int, ...]:
    numbers = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    skip = tuple(whole_number("skip", number, 0, owner) for number in numbers)
    if len(set(skip)) < len(skip):
        raise ValueError(f"The 'skip' of {owner} names a layer twice. Got {skip}.")
    return skip
