"""The study's data sets: splits, torchvision's own layout, and what is said where nothing is there."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from benchmarks.study import data


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Nothing of one test's folder may be remembered in another."""
    data.load.cache_clear()
    yield
    data.load.cache_clear()


def write_idx(path: Path, array: NDArray[np.int64]) -> None:
    """MNIST's file format: zero, zero, 8 for unsigned bytes, number of axes, their lengths, the bytes."""
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    path.write_bytes(head + array.astype(np.uint8).tobytes())


def write_mnist(folder: Path, train: int, test: int) -> None:
    """Images that are grey all over, the grey ten times the label."""
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name, count in (("train", train), ("t10k", test)):
        labels = np.arange(count) % 10
        write_idx(raw / f"{name}-labels-idx1-ubyte", labels)
        write_idx(raw / f"{name}-images-idx3-ubyte", np.broadcast_to(10 * labels[:, None, None], (count, 28, 28)))


def test_digits_are_split_into_three_parts_without_overlap() -> None:
    digits = data.load("digits")
    assert (len(digits.labels), len(digits.validation_labels), len(digits.test_labels)) == (1000, 195, 602)
    assert digits.images.shape[1:] == (1, 28, 28)
    assert (digits.size, digits.channels, digits.classes) == (28, 1, 10)
    assert digits.images.dtype == torch.float32
    assert float(digits.images.min()) == 0.0
    assert float(digits.images.max()) <= 1.0
    train, validation = (
        {image.numpy().tobytes() for image in part} for part in (digits.images, digits.validation_images)
    )
    assert not train & validation
    assert set(digits.validation_labels.tolist()) == set(range(10))


def test_the_same_data_have_the_same_digest_and_order() -> None:
    first = data.load("digits")
    data.load.cache_clear()
    second = data.load("digits")
    assert first.digest == second.digest
    assert torch.equal(first.images, second.images)
    assert torch.equal(first.test_labels, second.test_labels)


def test_full_mnist_is_read_from_torchvisions_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "VALIDATION", 20)
    write_mnist(tmp_path, 70, 30)
    mnist = data.load("mnist", tmp_path)
    assert (len(mnist.labels), len(mnist.validation_labels), len(mnist.test_labels)) == (50, 20, 30)
    for images, labels in ((mnist.images, mnist.labels), (mnist.test_images, mnist.test_labels)):
        assert images.shape[1:] == (1, 28, 28)
        # Images and labels were put into the same order.
        assert torch.allclose(images.amax((1, 2, 3)), 10 * labels / 255)


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_a_folder_without_the_set_is_one_sentence(name: str, tmp_path: Path) -> None:
    with pytest.raises(data.MissingData) as raised:
        data.load(name, tmp_path)
    assert str(tmp_path) in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("name", "file"), [("mnist", "mnist.npz"), ("cifar10", "cifar10_train_1.npz")])
def test_without_shared_data_the_way_out_is_named(
    name: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "SHARED", tmp_path)
    with pytest.raises(data.MissingData, match="--data DIR") as raised:
        data.load(name)
    assert file in str(raised.value)


def test_an_unknown_set_is_refused() -> None:
    with pytest.raises(data.MissingData, match="choose among digits, mnist, cifar10"):
        data.load("imagenet")


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


def test_cifar10_that_is_not_the_original_is_not_unpickled(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    names = [f"data_batch_{number}" for number in range(1, 6)]
    for name in (*names, "test_batch", "batches.meta"):
        (folder / name).write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    with pytest.raises(data.MissingData, match="not whole"):
        data.load("cifar10", tmp_path)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(("name", "train", "shape"), [("mnist", 58_000, (1, 28, 28)), ("cifar10", 18_000, (3, 32, 32))])
def test_shared_copies(name: str, train: int, shape: tuple[int, ...]) -> None:
    if not data.SHARED.is_dir():
        pytest.skip(f"{data.SHARED} is absent: the copy of {name} was not read")
    found = data.load(name)
    assert found.images.shape == (train, *shape)
    assert len(found.validation_labels) == 2000
    assert len(found.test_labels) == 10_000
    assert float(found.images.max()) == 1.0
    # The first 2,000, which the study takes, hold every class about alike.
    assert int(found.test_labels[:2000].bincount().min()) > 150
