"""Images and labels as two checked tensors, each example decoded once."""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
import warnings
from collections.abc import Iterator, Sized
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pytest_dscore.errors import DScoreError, first_line

#: A Dataset that decodes to more bytes than this is kept in a temporary file, mapped into memory page by page.
IN_MEMORY_BYTES = 256 * 2**20

#: Bytes that a pass over the images (check, fingerprint) looks at in one step.
_STEP_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Examples:
    """Checked test data.

    Parameters
    ----------
    images : Tensor, (N, C, H, W), floating point, on the CPU unless the user's tensor lay elsewhere
    labels : Tensor, (N,), int64, >= 0, at least two different ones
    """

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def fingerprint(self) -> str:
        """SHA-256 over shapes, types and every byte of images and labels, in their order."""
        digest = hashlib.sha256()
        for tensor in (self.images, self.labels):
            digest.update(f"{tuple(tensor.shape)} {tensor.dtype}".encode())
            for _, block in _steps(tensor):
                # A clone, as contiguous() leaves odd strides on sides of length 1.
                own = block.detach().cpu().clone(memory_format=torch.contiguous_format)
                digest.update(own.view(torch.uint8).numpy().data)
        return digest.hexdigest()


def load_examples(images: Any, labels: Any = None) -> Examples:
    """Check test data and bring it into two tensors.

    Parameters
    ----------
    images
        Tensor or array (N, C, H, W) in the model's input space; or a map-style Dataset of (image, label) pairs, which
        is read once, in order.
    labels
        Whole numbers (N,), from 0. None where the Dataset gives them.

    Raises
    ------
    DScoreError
        Empty data, images of differing sizes, of an integer type or holding NaN or infinity, labels of the wrong type,
        number or range, fewer than two classes; each with the row.
    """
    if isinstance(images, (np.ndarray, Tensor)):
        if labels is None:
            raise DScoreError("the data has images but no labels: give (images, labels)")
        pixels = _checked_images(_as_tensor(images, "images"))
        _refuse_not_finite(pixels)
    elif hasattr(images, "__getitem__") and hasattr(images, "__len__"):
        pixels, own_labels = _read_dataset(images)
        labels = own_labels if labels is None else labels
    else:
        raise DScoreError(
            f"the data is a {type(images).__name__}: give a tensor (N, C, H, W) with labels, or a map-style torch "
            "Dataset "
            "(with __len__ and __getitem__) of (image, label) pairs"
        )
    return Examples(pixels, _checked_labels(labels, len(pixels)))


def _checked_images(images: Tensor) -> Tensor:
    if images.ndim != 4:
        raise DScoreError(f"images have the shape {tuple(images.shape)}: give (N, C, H, W), C = 1 for grey images")
    if images.layout is not torch.strided or images.is_meta:
        raise DScoreError("images are sparse or on the meta device: give an ordinary tensor, such as images.to_dense()")
    if len(images) == 0:
        raise DScoreError("the data is empty (0 images): a score needs a test set")
    if 0 in images.shape:
        raise DScoreError(f"images have the shape {tuple(images.shape)}: no side may be 0")
    if not images.is_floating_point():
        raise DScoreError(
            f"images are {_name(images.dtype)}: convert and scale them to the floating point input that the model was "
            "trained on"
        )
    return images.detach()


def _refuse_not_finite(images: Tensor, first_row: int = 0) -> None:
    for start, block in _steps(images):
        if not torch.isfinite(block).all():
            row = first_row + start + int((~torch.isfinite(block).flatten(1).all(1)).nonzero()[0])
            raise DScoreError(f"image {row} holds NaN or infinity: repair or remove it (rows count from 0)")


def _steps(tensor: Tensor) -> Iterator[tuple[int, Tensor]]:
    rows = max(1, _STEP_BYTES // max(1, tensor[0].numel() * tensor.element_size()))
    for start in range(0, len(tensor), rows):
        yield start, tensor[start : start + rows]


def _read_dataset(dataset: Any) -> tuple[Tensor, list[Any]]:
    count = len(cast(Sized, dataset))
    if count == 0:
        raise DScoreError("the data is empty (a Dataset of length 0): a score needs a test set")
    store: Tensor | None = None
    labels = []
    for row, (image, label) in enumerate(_items(dataset, count)):
        if store is None:
            store = _allocate(count, _checked_images(image[None]))
        if image.shape != store.shape[1:]:
            raise DScoreError(
                f"image {row} has the shape {tuple(image.shape)}, image 0 has {tuple(store.shape[1:])}: "
                "resize or crop all images to one size in the Dataset's transform"
            )
        _checked_images(image[None])
        _refuse_not_finite(image[None], row)
        store[row] = image
        labels.append(label)
    assert store is not None
    return store, labels


def _items(dataset: Any, count: int) -> Iterator[tuple[Tensor, Any]]:
    for row in range(count):
        try:
            item = dataset[row]
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            raise DScoreError(f"the Dataset raised {type(error).__name__} on row {row}: {first_line(error)}") from error
        if not isinstance(item, (tuple, list)) or len(item) < 2:
            raise DScoreError(
                f"row {row} of the Dataset is a {type(item).__name__}: each row must be an (image, label) pair"
            )
        image = item[0]
        if not isinstance(image, (Tensor, np.ndarray)):
            raise DScoreError(
                f"the image of row {row} is a {type(image).__name__}: let the Dataset's transform give a float tensor "
                "(C, H, W)"
            )
        yield _as_tensor(image, f"the image of row {row}"), item[1]


def _allocate(count: int, like: Tensor) -> Tensor:
    """An empty (count, C, H, W) tensor: in memory if small, else in an unnamed temporary file that dies with it."""
    shape = (count, *like.shape[1:])
    size = math.prod(shape) * like.element_size()
    if size <= IN_MEMORY_BYTES:
        return torch.empty(shape, dtype=like.dtype)
    with tempfile.TemporaryFile(prefix="dscore-") as file:
        try:
            file.truncate(size)
            if hasattr(os, "posix_fallocate"):
                # Reserved in full now: a disk that fills up later would kill the process at a write through the map.
                os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            raise DScoreError(
                f"the decoded images need {size / 2**30:.1f} GiB in {tempfile.gettempdir()} ({error.strerror}): "
                "make room there or point TMPDIR at a larger disk"
            ) from error
        pages = np.memmap(file, dtype=np.uint8, mode="r+", shape=(size,))
    return torch.from_numpy(pages).view(like.dtype).view(shape)


def _checked_labels(labels: Any, count: int) -> Tensor:
    tensor = _label_tensor(labels)
    if tensor.layout is not torch.strided or tensor.is_meta:
        raise DScoreError("labels are sparse or on the meta device: give an ordinary tensor, such as labels.to_dense()")
    if tensor.ndim != 1 or len(tensor) != count:
        raise DScoreError(
            f"labels have the shape {tuple(tensor.shape)} for {count} images: give one whole number per image"
        )
    if tensor.is_floating_point() or tensor.is_complex():
        raise DScoreError(f"labels are {_name(tensor.dtype)}: give whole numbers from 0, such as labels.long()")
    tensor = tensor.to(torch.int64)
    if int(tensor.min()) < 0:
        row = int((tensor < 0).nonzero()[0])
        raise DScoreError(f"label {int(tensor[row])} of row {row} is negative: classes count from 0")
    if int(tensor.min()) == int(tensor.max()):
        raise DScoreError(
            f"all {count} labels are class {int(tensor[0])}: accuracy says nothing with one class, add the others"
        )
    return tensor


def _label_tensor(labels: Any) -> Tensor:
    try:
        return _as_tensor(labels if isinstance(labels, Tensor) else np.asarray(labels), "labels")
    except (DScoreError, TypeError, ValueError) as error:
        kind = type(labels[0]).__name__ if isinstance(labels, list) and labels else type(labels).__name__
        raise DScoreError(f"labels ({kind}) are not numbers: give whole numbers from 0, one per image") from error


def _as_tensor(values: Tensor | NDArray[Any], what: str) -> Tensor:
    if isinstance(values, Tensor):
        return values.detach()
    if values.dtype.kind not in "biufc":
        raise DScoreError(
            f"{what} are an array of type {values.dtype}, which holds no numbers: give an array of numbers"
        )
    # torch takes neither reversed nor foreign-endian arrays as they are.
    native = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="), copy=False))
    with warnings.catch_warnings():
        # Of a read-only array, such as a memory map: nothing here writes to it, and a copy could be large.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(native)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
