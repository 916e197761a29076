"""Layouts: layers of nodes and the links between them, dense or convolutional, whose parameters are shared.

A link says which nodes of two layers are joined by an edge and which edges have one coupling together; a layer with
channels has one value of every node parameter per channel. Everything that a network is made of follows from shapes
alone; the list of all edges is made when somebody asks for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from phasegrad._validation import IntArray, frozen_array, whole_number
from phasegrad.graphs._lazy import lazy_property

Shape = tuple[int, ...]

#: Edges beyond which they are not listed one by one, and nodes beyond which there is no layout.
MOST_EDGES, MOST_NODES = 50_000_000, 2**22


@dataclass(frozen=True)
class Link:
    """Edges from one layer to a later one.

    Parameters
    ----------
    first, second : int
        Numbers of the two layers, ``first < second``; 0 are the inputs.
    kernel : int or None
        None joins every node of one layer to every node of the other, each pair with a coupling of its own. A number k
        is a convolution by kernels of k x k, one for every pair of channels.
    stride, padding : int
        Of the convolution, as in ``torch.nn.functional.conv2d``.

    See Also
    --------
    Layout : Layers and the links between them, in place of edges.
    layers : Dense and convolutional layers with shared parameters.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.networks.Link(0, 1, kernel=3, padding=1)
    Link(first=0, second=1, kernel=3, stride=1, padding=1)
    """

    first: int
    second: int
    kernel: int | None = None
    stride: int = 1
    padding: int = 0

    def __post_init__(self) -> None:
        first = whole_number("first", self.first, 0, "Link")
        if whole_number("second", self.second, 1, "Link") <= first:
            raise ValueError(
                f"A Link goes from a layer to a later one. Got first={self.first} and second={self.second}."
            )
        if self.kernel is None:
            if (self.stride, self.padding) != (1, 0):
                raise ValueError(
                    "A Link without a kernel is dense and has no stride or padding. "
                    f"Got stride={self.stride!r} and padding={self.padding!r}: give a kernel, or leave them out."
                )
            return
        kernel = whole_number("kernel", self.kernel, 1, "Link")
        whole_number("stride", self.stride, 1, "Link")
        if whole_number("padding", self.padding, 0, "Link") >= kernel:
            raise ValueError(
                f"The 'padding' of a Link must be less than its kernel, {kernel}: every oscillator must be reached. "
                f"Got {self.padding}."
            )

    def shape(self, source: Shape, channels: int) -> Shape:
        """Return the shape of the layer that a convolution of a layer ``source`` makes; ValueError where it cannot."""
        assert self.kernel is not None
        if len(source) != 3:
            raise ValueError(
                f"A convolution needs a layer of channels x height x width. Got layer {self.first} of {words(source)}."
            )
        sides = [side + 2 * self.padding - self.kernel for side in source[1:]]
        if min(sides) < 0:
            raise ValueError(
                f"A kernel of {self.kernel} x {self.kernel} does not fit into layer {self.first} of {words(source)} "
                f"with padding {self.padding}. Give a smaller kernel or more padding."
            )
        return channels, *(side // self.stride + 1 for side in sides)


@dataclass(frozen=True)
class Layout:
    """Layers of oscillators and the links between them.

    Nodes are numbered layer by layer, in row-major order of channels, height and width. Couplings are one flat vector,
    link after link, each link's weights (`weight_shape`) in row-major order. A layer of n nodes has n values of every
    node parameter; a layer with channels has one per channel.

    Parameters
    ----------
    shapes : sequence of tuple of int
        Of every layer: ``(n,)`` or ``(channels, height, width)``. The first are the inputs, the last the outputs.
    links : sequence of Link
        At most one between two layers; every layer but the first is the second end of one.

    See Also
    --------
    Link : The couplings between two layers of a layout.
    layers : Dense and convolutional layers with shared parameters.
    Network : A graph, the terms of its energy, and how data enters.

    Examples
    --------
    >>> import phasegrad as pg
    >>> links = [pg.networks.Link(0, 1, kernel=3, stride=2, padding=1), pg.networks.Link(1, 2)]
    >>> layout = pg.networks.Layout([(1, 8, 8), (4, 4, 4), (10,)], links)
    >>> layout.size, layout.n_edges, layout.n_couplings, layout.n_node_values
    (138, 1124, 676, 15)
    >>> layout.weight_shape(layout.links[0])
    (4, 1, 3, 3)
    """

    shapes: tuple[Shape, ...]
    links: tuple[Link, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "shapes", _checked_shapes(self.shapes))
        links = tuple(self.links) if isinstance(self.links, Iterable) else (None,)
        if not all(isinstance(link, Link) for link in links):
            raise TypeError(f"The 'links' of a Layout must be a list of Links. Got {self.links!r:.80}.")
        object.__setattr__(self, "links", links)
        pairs = [(link.first, link.second) for link in self.links]
        if len(set(pairs)) < len(pairs):
            twice = next(pair for pair in pairs if pairs.count(pair) > 1)
            raise ValueError(f"Two links join the layers {twice[0]} and {twice[1]}. Give one link for two layers.")
        for link in self.links:
            self._check(link)
        fed = {link.second for link in self.links}
        lonely = [layer for layer in range(1, len(self.shapes)) if layer not in fed]
        if lonely:
            raise ValueError(f"No link leads to layer {lonely[0]}. Every layer but the inputs needs one.")

    def _check(self, link: Link) -> None:
        last = len(self.shapes) - 1
        if link.second > last:
            raise ValueError(f"A link names layer {link.second}, but the layout has layers 0 to {last}.")
        if link.kernel is None:
            return
        given = self.shapes[link.second]
        if len(given) != 3:
            raise ValueError(
                f"A convolution needs a layer of channels x height x width. Got layer {link.second} of {words(given)}."
            )
        needed = link.shape(self.shapes[link.first], given[0])
        if given != needed:
            raise ValueError(
                f"The convolution from layer {link.first} to {link.second} makes a layer of {words(needed)}. "
                f"Got {words(given)}."
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the list of edges behind where a layout is copied or written: it can be made again."""
        return Layout, (self.shapes, self.links)

    def __str__(self) -> str:
        return " - ".join("x".join(map(str, shape)) for shape in self.shapes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of nodes of every layer."""
        return tuple(math.prod(shape) for shape in self.shapes)

    @property
    def size(self) -> int:
        """Number of nodes."""
        return sum(self.sizes)

    @lazy_property
    def nodes(self) -> tuple[slice, ...]:
        """The nodes of every layer."""
        return _slices(self.sizes)

    @property
    def starts(self) -> tuple[int, ...]:
        """The first node of every layer."""
        return tuple(part.start for part in self.nodes)

    def weight_shape(self, link: Link) -> Shape:
        """Return the shape of a link's couplings.

        ``(nodes of first, nodes of second)`` where it is dense; of a convolution ``(channels of second, channels of
        first, k, k)``, as ``torch.nn.functional.conv2d`` takes its weights.
        """
        if link.kernel is None:
            return self.sizes[link.first], self.sizes[link.second]
        return self.shapes[link.second][0], self.shapes[link.first][0], link.kernel, link.kernel

    def fan_in(self, link: Link) -> int:
        """Return how many edges of a link end at one node of its second layer, borders left aside."""
        shape = self.weight_shape(link)
        return shape[0] if link.kernel is None else math.prod(shape[1:])

    @lazy_property
    def couplings(self) -> tuple[slice, ...]:
        """Where the couplings of every link lie in the flat vector."""
        return _slices([math.prod(self.weight_shape(link)) for link in self.links])

    @property
    def n_couplings(self) -> int:
        """Length of the flat vector of couplings."""
        return self.couplings[-1].stop

    def weights(self, couplings: Any) -> tuple[Any, ...]:
        """Return flat couplings (..., n_couplings), an array or a tensor, as one array per link in its shape."""
        return tuple(
            couplings[..., part].reshape(*couplings.shape[:-1], *self.weight_shape(link))
            for part, link in zip(self.couplings, self.links, strict=True)
        )

    def balanced(self, couplings: Any, *, clamped: bool) -> Any:
        """Return, link by link, couplings (..., n) that sum to zero into every oscillator, from either side.

        Those of a convolution do so into every channel, and back from it for every entry of the kernels. Clamped inputs
        do not answer, so that links from them are balanced in one direction alone. Arrays and tensors alike.
        """
        parts = []
        for link, part in zip(self.links, self.couplings, strict=True):
            mine, shape = couplings[..., part], self.weight_shape(link)
            first, second = shape if link.kernel is None else (math.prod(shape[1:]), shape[0])
            # A matrix with one axis for each side; that of a convolution has the second one in front.
            into, back = (-2, -1) if link.kernel is None else (-1, -2)
            matrix = mine.reshape((*mine.shape[:-1], *((first, second) if link.kernel is None else (second, first))))
            matrix = matrix - matrix.mean(into, keepdims=True)
            if link.first or not clamped:
                matrix = matrix - matrix.mean(back, keepdims=True)
            parts.append(matrix.reshape(mine.shape))
        return parts

    @lazy_property
    def node_values(self) -> tuple[slice, ...]:
        """Where the values of every layer lie in a vector of node parameters."""
        return _slices([shape[0] for shape in self.shapes])

    @property
    def n_node_values(self) -> int:
        """Length of a vector of node parameters."""
        return self.node_values[-1].stop

    @lazy_property
    def value_of(self) -> IntArray:
        """Which node value every node has, (N,)."""
        times = [np.full(shape[0], math.prod(shape[1:])) for shape in self.shapes]
        return frozen_array(np.repeat(np.arange(self.n_node_values), np.concatenate(times)))

    @lazy_property
    def n_edges(self) -> int:
        """Number of edges, counted without listing them."""
        return sum(self._count(link) for link in self.links)

    @property
    def edges(self) -> IntArray:
        """Coupled pairs (E, 2), i < j, in row-major order; made when first asked for."""
        return self._explicit[0]

    @property
    def coupling_of(self) -> IntArray:
        """Which entry of the flat vector of couplings every edge has, (E,)."""
        return self._explicit[1]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"shapes": [list(shape) for shape in self.shapes], "links": [asdict(link) for link in self.links]}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Layout:
        """Return the layout that `as_dict` wrote."""
        return cls(given["shapes"], tuple(Link(**link) for link in given["links"]))

    def _count(self, link: Link) -> int:
        shape = self.weight_shape(link)
        if link.kernel is None:
            return math.prod(shape)
        ends = zip(self.shapes[link.first][1:], self.shapes[link.second][1:], strict=True)
        return shape[0] * shape[1] * math.prod(_reached(link, *sides) for sides in ends)

    @lazy_property
    def _explicit(self) -> tuple[IntArray, IntArray]:
        if self.n_edges > MOST_EDGES:
            raise ValueError(
                f"This layout of {self} has {self.n_edges} edges, and only up to {MOST_EDGES} are listed one by one. "
                "Use the torch engine, which needs no list: train(..., engine='torch')."
            )
        edges, numbers = np.empty((self.n_edges, 2), dtype=np.int64, order="F"), np.empty(self.n_edges, dtype=np.int64)
        begin = 0
        for layer in range(len(self.shapes) - 1):
            parts = [self.listed(k) for k, link in enumerate(self.links) if link.first == layer]
            if not parts:
                continue
            first, second, number = (np.concatenate(column) for column in zip(*parts, strict=True))
            # Edges are ordered by their first ends, so that those from an earlier layer all come first.
            key = first * self.size + second
            if np.any(key[1:] < key[:-1]):
                order = np.argsort(key)
                first, second, number = first[order], second[order], number[order]
            there = slice(begin, begin + first.size)
            edges[there, 0], edges[there, 1], numbers[there] = first, second, number
            begin = there.stop
        return frozen_array(edges), frozen_array(numbers)

    def listed(self, k: int) -> tuple[IntArray, IntArray, IntArray]:
        """Return both ends of every edge of a link, and the number of its coupling."""
        link, start = self.links[k], self.couplings[k].start
        shape, from_, to = self.weight_shape(link), self.nodes[link.first], self.nodes[link.second]
        if link.kernel is None:
            first, second = np.arange(from_.start, from_.stop), np.arange(to.start, to.stop)
            return np.repeat(first, second.size), np.tile(second, first.size), start + np.arange(math.prod(shape))
        (_, height, width), (_, rows, columns) = self.shapes[link.first], self.shapes[link.second]
        (y, out_y, a), (x, out_x, b) = _taps(link, height, rows), _taps(link, width, columns)
        pixel, result = np.add.outer(y * width, x).ravel(), np.add.outer(out_y * columns, out_x).ravel()
        entry = np.add.outer(a * link.kernel, b).ravel()
        source, sink = np.arange(shape[1])[:, None, None], np.arange(shape[0])[None, :, None]
        first = from_.start + source * (height * width) + pixel
        second = to.start + sink * (rows * columns) + result
        number = start + (sink * shape[1] + source) * link.kernel**2 + entry
        return tuple(each.ravel() for each in np.broadcast_arrays(first, second, number))  # type: ignore[return-value]


def words(shape: Shape) -> str:
    """Return a shape as one says it."""
    return f"{shape[0]} nodes" if len(shape) == 1 else " x ".join(map(str, shape))


def _checked_shapes(given: Any) -> tuple[Shape, ...]:
    layers = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else ()
    if len(layers) < 2:
        raise ValueError(
            f"The 'shapes' of a Layout must be those of the inputs and of at least one more layer. Got {given!r:.80}."
        )
    shapes = tuple(checked_shape(shape, "Layout") for shape in layers)
    total = sum(math.prod(shape) for shape in shapes)
    if total > MOST_NODES:
        raise ValueError(f"A layout has at most {MOST_NODES} oscillators. Got {total}.")
    return shapes


def checked_shape(given: Any, owner: str) -> Shape:
    """Return the shape of a layer as a tuple: of a number, or of channels, height and width."""
    sides = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    if len(sides) not in (1, 3):
        raise ValueError(
            f"The shape of a layer in {owner} must be a number of oscillators, or (channels, height, width). "
            f"Got {given!r:.80}."
        )
    return tuple(whole_number("shape", side, 1, owner) for side in sides)


def _slices(lengths: Iterable[int]) -> tuple[slice, ...]:
    return tuple(slice(a, b) for a, b in pairwise(accumulate(lengths, initial=0)))


def _reached(link: Link, side: int, result: int) -> int:
    """Return how many pairs of a row and a row that the kernel makes of it there are."""
    assert link.kernel is not None
    begin = np.arange(result) * link.stride - link.padding
    return int(np.sum(np.minimum(side, begin + link.kernel) - np.maximum(0, begin)))


def _taps(link: Link, side: int, result: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return the same pairs, (row, resulting row), with the row of the kernel that joins them."""
    assert link.kernel is not None
    row = np.arange(result)[:, None] * link.stride - link.padding + np.arange(link.kernel)
    resulting, entry = np.nonzero((row >= 0) & (row < side))
    return row[resulting, entry], resulting, entry
