"""The study's data sets as tensors: each decoded once, split into training, validation and test images.

The validation images choose the probability of score-guided augmentation, so that no test image has a say in training.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"

#: Of the training images of each data set, those kept back for validation.
VALIDATION = 2000
_VALIDATION_DIGITS = 195

#: What a reader of files returns: training images and labels, test images and labels.
_Parts = tuple[Tensor, Tensor, Tensor, Tensor]


class MissingData(Exception):
    """A data set is not there; the message says where it was looked for."""


@dataclass(frozen=True)
class Data:
    """One data set.

    Parameters
    ----------
    name
        ``digits``, ``mnist`` or ``cifar10``.
    images, validation_images, test_images : Tensor, (N, C, H, W), float32 in [0, 1]
        Square; 0 is black.
    labels, validation_labels, test_labels : Tensor, (N,), int64
    digest
        SHA-256 of all of it.
    classes
        Number of classes.
    """

    name: str
    images: Tensor
    labels: Tensor
    validation_images: Tensor
    validation_labels: Tensor
    test_images: Tensor
    test_labels: Tensor
    digest: str
    classes: int = 10

    @property
    def size(self) -> int:
        """Height and width of an image, pixels."""
        return int(self.images.shape[-1])

    @property
    def channels(self) -> int:
        """1 for grey images, 3 for colour."""
        return int(self.images.shape[1])


@functools.lru_cache(maxsize=3)
def load(name: str, folder: Path | None = None) -> Data:
    """Read a data set.

    Training and test images are each put into one fixed random order, so that the first few stand for all (the first
    half of MNIST's test set is the easier one).

    Parameters
    ----------
    name
        ``digits`` (scikit-learn's, enlarged to 28 x 28), ``mnist`` or ``cifar10``.
    folder
        Where torchvision's `MNIST` and `CIFAR10` keep their files: the full sets are read from there. CIFAR-10 is then
        *unpickled*, which can run code that the files hold; torchvision compares their MD5 sums with the original's
        first. None for the copies in ``../shared/data``, of which CIFAR-10 has 20,000 training images.

    Raises
    ------
    MissingData
        It is not there.
    """
    if name not in DATASETS:
        raise MissingData(f"there is no data set {name!r}: choose among {', '.join(DATASETS)}")
    images, labels, test_images, test_labels = DATASETS[name](folder)
    digest = hashlib.sha256()
    for part in (images, labels, test_images, test_labels):
        digest.update(f"{tuple(part.shape)} {part.dtype}".encode())
        digest.update(np.ascontiguousarray(part.numpy()).data)
    order, test_order = (torch.from_numpy(_order(len(part))) for part in (labels, test_labels))
    kept = len(labels) - (_VALIDATION_DIGITS if name == "digits" else VALIDATION)
    return Data(
        name,
        *(_pixels(images, order[:kept]), labels[order[:kept]]),
        *(_pixels(images, order[kept:]), labels[order[kept:]]),
        *(_pixels(test_images, test_order), test_labels[test_order]),
        digest.hexdigest(),
    )


def _order(count: int) -> npt.NDArray[np.int64]:
    return np.random.default_rng(0).permutation(count)


def _pixels(images: Tensor, order: Tensor) -> Tensor:
    chosen = images[order]
    return chosen if chosen.is_floating_point() else chosen.float().div_(255)


def _digits(folder: Path | None) -> _Parts:
    from fixtures.digits import holdout, training_set

    return *training_set(), *holdout()


def _mnist(folder: Path | None) -> _Parts:
    if folder is not None:
        from torchvision.datasets import MNIST  # type: ignore[import-untyped]

        train, test = (_official(MNIST, folder, part) for part in (True, False))
        return train.data[:, None], train.targets.long(), test.data[:, None], test.targets.long()
    arrays = _arrays("mnist.npz")
    train_images, test_images = (torch.from_numpy(arrays[f"x_{part}"])[:, None] for part in ("train", "test"))
    train_labels, test_labels = (torch.from_numpy(arrays[f"y_{part}"]).long() for part in ("train", "test"))
    return train_images, train_labels, test_images, test_labels


def _cifar10(folder: Path | None) -> _Parts:
    if folder is not None:
        from torchvision.datasets import CIFAR10

        train, test = (_official(CIFAR10, folder, part) for part in (True, False))
        return *_colour(train.data, train.targets), *_colour(test.data, test.targets)
    files = [_arrays(f"cifar10_{part}.npz") for part in ("train_1", "train_2", "test")]
    (images, labels), (more_images, more_labels), test = (_colour(file["images"], file["labels"]) for file in files)
    return torch.cat((images, more_images)), torch.cat((labels, more_labels)), *test


def _colour(images: Any, labels: Any) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(images).permute(0, 3, 1, 2).contiguous(), torch.as_tensor(np.asarray(labels)).long()


def _arrays(name: str) -> Mapping[str, Any]:
    if not (SHARED / name).is_file():
        raise MissingData(f"{SHARED / name} is not there: give the folder of torchvision's own files with --data DIR")
    with np.load(SHARED / name, allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def _official(kind: Any, folder: Path, train: bool) -> Any:
    try:
        return kind(str(folder), train=train, download=False)
    except RuntimeError as error:
        raise MissingData(f"torchvision finds no {kind.__name__} in {folder}, or files that are not whole") from error


DATASETS: Mapping[str, Callable[[Path | None], _Parts]] = MappingProxyType(
    {"digits": _digits, "mnist": _mnist, "cifar10": _cifar10}
)
