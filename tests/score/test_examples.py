"""Test data: what is taken, what is refused and how it is said, and that each example is read once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from pytest_dscore.errors import DScoreError
from pytest_dscore.score import d_score, examples
from pytest_dscore.score.examples import load_examples
from tests.score.nets import quick

IMAGES = torch.randn(6, 1, 4, 5, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 1, 2, 0, 1, 2])


class Pairs(Dataset[Any]):
    """A Dataset of given rows that notes each reading."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows
        self.read: list[int] = []

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> Any:
        self.read.append(row)
        if isinstance(self.rows[row], Exception):
            raise self.rows[row]
        return self.rows[row]


def pairs(*changes: tuple[int, Any]) -> Pairs:
    rows: list[Any] = [(image, int(label)) for image, label in zip(IMAGES, LABELS, strict=True)]
    for row, value in changes:
        rows[row] = value
    return Pairs(rows)


def with_value(value: float, row: int = 3) -> Tensor:
    images = IMAGES.clone()
    images[row, 0, 2, 1] = value
    return images


@pytest.mark.parametrize("images", [IMAGES.to_sparse(), IMAGES.to("meta")])
def test_images_without_ordinary_storage_are_refused(images: Tensor) -> None:
    with pytest.raises(DScoreError, match="images are sparse or on the meta device"):
        load_examples(images, LABELS)


def test_a_dataset_that_draws_at_random_leaves_the_generators_alone() -> None:
    class Noisy:
        def __len__(self) -> int:
            return len(IMAGES)

        def __getitem__(self, row: int) -> tuple[Tensor, int]:
            return IMAGES[row] + torch.rand(()), int(LABELS[row])

    model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    torch.manual_seed(3)
    expected = torch.rand(2).tolist()
    torch.manual_seed(3)
    d_score(model, Noisy(), n=2, bootstrap=0)
    assert torch.rand(2).tolist() == expected


@pytest.mark.parametrize(
    ("images", "sentence"),
    [
        (torch.zeros(0, 1, 4, 4), r"the data is empty \(0 images\)"),
        (torch.zeros(6, 4, 5), r"images have the shape \(6, 4, 5\): give \(N, C, H, W\)"),
        (torch.zeros(4, 5), r"\(4, 5\): give \(N, C, H, W\)"),
        (torch.zeros(6, 1, 0, 5), r"\(6, 1, 0, 5\): no side may be 0"),
        (torch.zeros(6, 1, 4, 5, dtype=torch.uint8), "images are uint8: convert and scale"),
        (torch.zeros(6, 1, 4, 5, dtype=torch.int64), "images are int64"),
        (np.zeros((6, 1, 4, 5), dtype=np.uint8), "images are uint8"),
        (torch.zeros(6, 1, 4, 5, dtype=torch.bool), "images are bool"),
        (torch.zeros(6, 1, 4, 5, dtype=torch.complex64), "images are complex64"),
        (with_value(float("nan")), "image 3 holds NaN or infinity"),
        (with_value(float("inf"), 5), "image 5 holds NaN or infinity"),
        (with_value(float("-inf"), 0), "image 0 holds NaN or infinity"),
    ],
)
def test_images_that_are_refused(images: Any, sentence: str) -> None:
    with pytest.raises(DScoreError, match=sentence):
        load_examples(images, LABELS)


def test_the_row_of_a_nan_is_named_beyond_the_first_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "_STEP_BYTES", 1)
    with pytest.raises(DScoreError, match="image 5 holds"):
        load_examples(with_value(float("nan"), 5), LABELS)


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (None, "images but no labels"),
        (LABELS[:5], r"labels have the shape \(5,\) for 6 images"),
        (torch.cat([LABELS, LABELS]), r"labels have the shape \(12,\) for 6 images"),
        (torch.nn.functional.one_hot(LABELS), r"labels have the shape \(6, 3\) for 6 images"),
        (torch.tensor(1), r"labels have the shape \(\) for 6 images"),
        (LABELS.float(), "labels are float32: give whole numbers"),
        (LABELS.double().numpy(), "labels are float64: give whole numbers"),
        (LABELS - 1, r"label -1 of row 0 is negative"),
        (torch.tensor([0, 1, 2, -7, 1, -8]), r"label -7 of row 3 is negative"),
        (torch.full((6,), 2), "all 6 labels are class 2"),
        (["cat"] * 3 + ["dog"] * 3, r"labels \(str\) are not numbers"),
        ([None] * 6, r"labels \(NoneType\) are not numbers"),
        ([[0], [1, 2], [0], [1], [0], [1]], r"labels \(list\) are not numbers"),
    ],
)
def test_labels_that_are_refused(labels: Any, sentence: str) -> None:
    with pytest.raises(DScoreError, match=sentence):
        load_examples(IMAGES, labels)


@pytest.mark.parametrize(
    "labels", [LABELS.tolist(), LABELS.numpy(), LABELS.to(torch.uint8), tuple(LABELS), LABELS.int()]
)
def test_labels_that_are_taken(labels: Any) -> None:
    taken = load_examples(IMAGES, labels).labels
    assert taken.dtype == torch.int64
    assert torch.equal(taken, LABELS)


def test_a_label_that_the_model_does_not_know_is_named_with_its_row() -> None:
    model, images, labels = quick()
    labels = labels.clone()
    labels[7] = 3
    with pytest.raises(
        DScoreError, match=r"label 3 of row 7 is out of range: the model tells 3 classes apart \(0 to 2\)"
    ):
        d_score(model, images, labels, n=2, batch_size=4)


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter([(IMAGES[0], 0)])


SMALLER = torch.zeros(1, 4, 4)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (Pairs([]), r"the data is empty \(a Dataset of length 0\)"),
        (Stream(), "the data is a Stream: give a tensor .* or a map-style torch Dataset"),
        (None, "the data is a NoneType"),
        (3.5, "the data is a float"),
        (iter([]), "the data is a list_iterator"),
        (pairs((4, (SMALLER, 1))), r"image 4 has the shape \(1, 4, 4\), image 0 has \(1, 4, 5\): resize or crop"),
        (pairs((2, ValueError("no such file"))), "the Dataset raised ValueError on row 2: no such file"),
        (pairs((1, IMAGES[1])), r"row 1 of the Dataset is a Tensor: each row must be an \(image, label\) pair"),
        (pairs((1, (IMAGES[1],))), r"row 1 of the Dataset is a tuple: each row must be an \(image, label\) pair"),
        (pairs((5, {"image": IMAGES[5], "label": 2})), "row 5 of the Dataset is a dict"),
        (pairs((3, ("3.png", 1))), "the image of row 3 is a str"),
        (pairs((3, (IMAGES[3].mul(100).to(torch.uint8), 1))), "images are uint8"),
        (pairs((3, (with_value(float("nan"))[3], 1))), "image 3 holds NaN or infinity"),
        (pairs((0, (torch.zeros(4, 5), 1))), r"give \(N, C, H, W\)"),
        (pairs((3, (IMAGES[3], 0.5))), "labels are float64"),
        (pairs((3, (IMAGES[3], -1))), "label -1 of row 3 is negative"),
        (TensorDataset(IMAGES), "row 0 of the Dataset is a tuple"),
        ((IMAGES, LABELS), "row 0 of the Dataset is a Tensor"),
    ],
)
def test_datasets_that_are_refused(data: Any, sentence: str) -> None:
    with pytest.raises(DScoreError, match=sentence):
        load_examples(data)


@pytest.mark.parametrize(
    "data",
    [
        pairs(),
        pairs(*((row, [IMAGES[row].numpy(), LABELS[row], "a note"]) for row in range(6))),
        TensorDataset(IMAGES, LABELS),
        [(image, label) for image, label in zip(IMAGES, LABELS, strict=True)],
    ],
)
def test_datasets_that_are_taken(data: Any) -> None:
    loaded = load_examples(data)
    assert torch.equal(loaded.images, IMAGES)
    assert torch.equal(loaded.labels, LABELS)


def test_a_dataset_gives_the_hits_of_the_tensors_and_each_row_is_read_once() -> None:
    model, images, labels = quick()
    data = Pairs(list(zip(images, labels, strict=True)))
    result = d_score(model, data, n=2, batch_size=5, bootstrap=0)
    assert np.array_equal(result.hits, d_score(model, images, labels, n=2, batch_size=5, bootstrap=0).hits)
    assert data.read == list(range(12))


def test_arrays_give_the_hits_of_tensors() -> None:
    model, images, labels = quick()
    expected = d_score(model, images, labels, n=2, bootstrap=0).hits
    assert np.array_equal(d_score(model, images.numpy(), labels.numpy(), n=2, bootstrap=0).hits, expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_a_dataset_beyond_the_memory_limit_goes_through_a_file(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = TensorDataset(IMAGES.to(dtype), LABELS)
    in_memory = load_examples(data)
    opened: list[Any] = []
    original = tempfile.TemporaryFile

    def counted(**given: Any) -> Any:
        opened.append(original(**given))
        return opened[-1]

    monkeypatch.setattr(tempfile, "TemporaryFile", counted)
    load_examples(data)
    assert not opened
    monkeypatch.setattr(examples, "IN_MEMORY_BYTES", 100)
    mapped = load_examples(data)
    assert len(opened) == 1
    assert mapped.images.dtype == dtype
    assert torch.equal(mapped.images, in_memory.images)
    assert mapped.fingerprint() == in_memory.fingerprint()
    model, images, labels = quick()
    big = TensorDataset(images, labels)
    expected = d_score(model, images, labels, n=2, bootstrap=0).hits
    assert np.array_equal(d_score(model, big, n=2, bootstrap=0).hits, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_images_in_half_precision_are_scored(dtype: torch.dtype) -> None:
    model, images, labels = quick()
    result = d_score(model, images.to(dtype), labels, n=2, bootstrap=0)
    # Rounding the images in advance is the same as giving rounded images.
    assert np.array_equal(result.hits[0], d_score(model, images.to(dtype).float(), labels, n=2, bootstrap=0).hits[0])


@pytest.mark.parametrize(
    "images",
    [
        IMAGES.numpy()[::-1],
        IMAGES.numpy().astype(">f4"),
        np.lib.stride_tricks.as_strided(IMAGES.numpy(), IMAGES.shape, IMAGES.numpy().strides, writeable=False),
    ],
    ids=["reversed", "big-endian", "read-only"],
)
def test_every_kind_of_float_array_is_taken(images: Any) -> None:
    assert np.array_equal(load_examples(images, LABELS).images.numpy(), images)


@pytest.mark.parametrize("images", [IMAGES.numpy().astype(object), IMAGES.numpy().astype(str)], ids=["object", "str"])
def test_arrays_that_hold_no_numbers_are_refused(images: Any) -> None:
    with pytest.raises(DScoreError, match="image"):
        load_examples(images, LABELS)


def test_reversed_label_arrays_are_taken() -> None:
    assert load_examples(IMAGES, LABELS.numpy()[::-1]).labels.tolist() == [2, 1, 0, 2, 1, 0]


def fingerprint(images: Tensor = IMAGES, labels: Any = LABELS) -> str:
    return load_examples(images, labels).fingerprint()


@pytest.mark.parametrize(
    "other",
    [
        fingerprint(with_value(0.125)),
        fingerprint(labels=torch.tensor([0, 1, 2, 0, 1, 1])),
        fingerprint(IMAGES.flip(0), LABELS.flip(0)),
        fingerprint(labels=LABELS.flip(0)),
        fingerprint(IMAGES.double()),
        fingerprint(IMAGES.view(6, 1, 5, 4)),
        fingerprint(IMAGES[:5], LABELS[:5]),
    ],
    ids=["pixel", "label", "order", "labels' order", "type", "shape", "number"],
)
def test_the_fingerprint_sees_every_change(other: str) -> None:
    assert other != fingerprint()


def test_the_fingerprint_does_not_depend_on_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fingerprint()
    monkeypatch.setattr(examples, "_STEP_BYTES", 1)
    assert fingerprint() == whole
    assert fingerprint(with_value(0.125, 5)) != whole


def test_the_fingerprint_tells_the_same_bytes_of_two_types_apart() -> None:
    half = IMAGES.half()
    assert fingerprint(half) != fingerprint(half.view(torch.bfloat16))


def test_the_fingerprint_does_not_see_how_data_are_stored() -> None:
    strided = torch.stack([IMAGES, IMAGES], dim=-1)[..., 0]
    assert not strided.is_contiguous()
    assert fingerprint(strided) == fingerprint()
    assert fingerprint(IMAGES.clone(memory_format=torch.channels_last)) == fingerprint()
    assert fingerprint(labels=LABELS.int()) == fingerprint()
    assert load_examples(TensorDataset(IMAGES, LABELS)).fingerprint() == fingerprint()


@pytest.mark.parametrize("count", [6, 5, 4])
def test_labels_may_be_a_column_of_a_table(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # 5 = 2 + 2 + 1: the last block is one label.
    monkeypatch.setattr(examples, "_STEP_BYTES", 1)
    column = torch.stack([LABELS, LABELS], dim=1)[:count, 0]
    assert fingerprint(IMAGES[:count], column) == fingerprint(IMAGES[:count], LABELS[:count])
