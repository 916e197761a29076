"""Changes of images that leave their class alone: drawn from a random stream, applied to arrays and to tensors."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from phasegrad._validation import IntArray, whole_number


@dataclass(frozen=True)
class Shifts:
    """Images moved by up to some pixels each way and, if told, turned left to right half of the time.

    Parameters
    ----------
    pixels : int
        The farthest move, along rows and along columns; all moves are equally likely.
    shape : (channels, height, width), optional
        Of an image whose pixels are a row of features; one channel, as high as it is wide, if left out.
    flip : bool
        Whether left and right change places in half of the images, before they are moved.
    fill : float or "reflect"
        What comes in at the border: a value, -1 being black, or the image itself in a mirror.

    See Also
    --------
    datasets.mnist : MNIST from your files.
    Plan : How networks are trained.

    Examples
    --------
    >>> import numpy as np
    >>> from phasegrad.datasets import Shifts
    >>> image = np.array([[1.0, 2.0, 3.0, 4.0]])
    >>> down_and_right = [[1, 1, 0]]
    >>> Shifts(1).apply(image, down_and_right).tolist()
    [[-1.0, -1.0, -1.0, 1.0]]
    """

    pixels: int = 1
    _: KW_ONLY
    shape: tuple[int, int, int] | None = None
    flip: bool = False
    fill: float | str = -1.0

    def __post_init__(self) -> None:
        whole_number("pixels", self.pixels, 0, "Shifts")
        if not isinstance(self.flip, bool):
            raise ValueError(f"The 'flip' parameter of Shifts must be True or False. Got {self.flip!r} instead.")
        number = isinstance(self.fill, int | float) and math.isfinite(self.fill)
        if not number and self.fill != "reflect":
            raise ValueError(
                f"The 'fill' parameter of Shifts must be a finite number or 'reflect'. Got {self.fill!r} instead."
            )
        if self.shape is not None:
            object.__setattr__(self, "shape", _image_shape(self.shape))
            self._check_mirror(self.shape)

    def draw(self, stream: np.random.Generator, count: int) -> IntArray:
        """Return a move for each image, (count, 3): rows down, columns to the right, and 1 where it is turned."""
        draws = np.zeros((count, 3), dtype=np.int64)
        draws[:, :2] = stream.integers(-self.pixels, self.pixels, size=(count, 2), endpoint=True)
        if self.flip:
            draws[:, 2] = stream.integers(0, 2, size=count)
        return draws

    def apply(self, images: Any, draws: Any) -> Any:
        """Return the images after their moves.

        Arrays and tensors go the same way, by indices alone, so that both give the same numbers and nothing waits for a
        device.

        Parameters
        ----------
        images : array or tensor of shape (n, features) or (n, channels, height, width)
        draws : array or tensor of int, shape (n, 3)
            As `draw` returns them.
        """
        channels, height, width = self._shape_of(images)
        if tuple(np.shape(draws)) != (images.shape[0], 3):
            raise ValueError(f"Shifts.apply needs draws of shape ({images.shape[0]}, 3). Got {tuple(np.shape(draws))}.")
        make = _Maker(images)
        moves = make.whole(draws)
        rows = make.count(height) - moves[:, :1]
        columns = make.count(width) - moves[:, 1:2]
        columns = columns + moves[:, 2:] * (width - 1 - 2 * columns)
        if self.fill == "reflect":
            rows, columns = _mirrored(rows, height), _mirrored(columns, width)
        inside = _within(rows, height)[:, :, None] & _within(columns, width)[:, None, :]
        source = rows.clip(0, height - 1)[:, :, None] * width + columns.clip(0, width - 1)[:, None, :]
        planes = images.reshape(-1, channels, height * width)
        moved = make.taken(planes, source.reshape(-1, 1, height * width))
        if self.fill != "reflect":
            moved = make.filled(moved, inside.reshape(-1, 1, height * width), float(self.fill))
        return moved.reshape(images.shape)

    def _shape_of(self, images: Any) -> tuple[int, int, int]:
        features = math.prod(images.shape[1:])
        shape = self.shape
        if shape is None:
            side = math.isqrt(features)
            shape = (1, side, side)
        if math.prod(shape) != features:
            words = f"of shape {self.shape}" if self.shape else "of one channel, as high as wide"
            raise ValueError(
                f"{features} features are no image {words}. Give Shifts the shape of one, (channels, height, width)."
            )
        self._check_mirror(shape)
        return shape

    def _check_mirror(self, shape: tuple[int, int, int]) -> None:
        if self.fill == "reflect" and self.pixels >= min(shape[1:]):
            raise ValueError(
                f"An image of {shape[1]} x {shape[2]} pixels has no mirror for moves by {self.pixels}. Take fewer "
                "'pixels', or a number for 'fill'."
            )


class _Maker:
    """What arrays and tensors do under different names."""

    def __init__(self, like: Any) -> None:
        self.torch: Any = None
        if type(like).__module__.partition(".")[0] == "torch":
            import torch

            self.torch, self.device = torch, like.device

    def whole(self, numbers: Any) -> Any:
        return np.asarray(numbers) if self.torch is None else self.torch.as_tensor(numbers, device=self.device)

    def count(self, size: int) -> Any:
        return np.arange(size) if self.torch is None else self.torch.arange(size, device=self.device)

    def taken(self, planes: Any, source: Any) -> Any:
        if self.torch is None:
            return np.take_along_axis(planes, source, axis=2)
        return self.torch.gather(planes, 2, source.expand(planes.shape))

    def filled(self, moved: Any, inside: Any, fill: float) -> Any:
        return np.where(inside, moved, fill) if self.torch is None else moved.masked_fill(~inside, fill)


def _mirrored(places: Any, size: int) -> Any:
    """Return places below 0 and from ``size`` on as those that a mirror at the edge shows."""
    return (size - 1) - abs((size - 1) - abs(places))


def _within(places: Any, size: int) -> Any:
    return (places >= 0) & (places < size)


def _image_shape(given: Any) -> tuple[int, int, int]:
    try:
        channels, height, width = given
    except (TypeError, ValueError):
        raise ValueError(
            f"The 'shape' parameter of Shifts must be (channels, height, width). Got {given!r:.80} instead."
        ) from None
    shape = tuple(whole_number("shape", length, 1, "Shifts") for length in (channels, height, width))
    return shape[0], shape[1], shape[2]
