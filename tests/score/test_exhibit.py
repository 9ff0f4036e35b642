"""The pictures of a score: of the right images, small enough, and of whatever a model takes for input."""

from __future__ import annotations

import io
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from pytest_dscore.score import exhibit as module
from pytest_dscore.score.api import make_plan
from pytest_dscore.score.engine import Hits, Plan, measure
from pytest_dscore.score.examples import Examples, load_examples
from pytest_dscore.score.exhibit import LARGEST, Exhibit, make_exhibit
from pytest_dscore.score.operators import OPERATORS
from pytest_dscore.score.shifts import padding_toward, shift

#: 12 x 12 pixels, a bright column on the left (class 0) or on the right (class 1), at different strengths.
COUNT = 40


class Left(nn.Module):
    """Says 1 where the right half is brighter; the convolution changes nothing."""

    def __init__(self, channels: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 1, 1, bias=False)
        nn.init.constant_(self.conv.weight, 1 / channels)
        self.batches: list[int] = []

    def forward(self, images: Tensor) -> Tensor:
        self.batches.append(len(images))
        columns = self.conv(images).mean(dim=(1, 2))
        half = columns.shape[1] // 2
        return torch.stack([columns[:, :half].sum(1), columns[:, half:].sum(1)], dim=1)


def columns(side: int = 12, channels: int = 1) -> Examples:
    """Images with one bright column; the shift to the right carries those of class 0 over the middle."""
    images = torch.zeros(COUNT, channels, side, side)
    labels = torch.arange(COUNT) % 2
    for row in range(COUNT):
        column = side // 2 - 1 if labels[row] == 0 else side - 2
        images[row, :, :, column] = 0.25 + row / COUNT
    return load_examples(images, labels)


def exhibited(model: nn.Module, examples: Examples) -> tuple[Exhibit, Hits, Plan]:
    """The exhibit of a model on examples, with what it was made from."""
    plan = make_plan(examples, 2, "delete", None, None, 16, 0, False, OPERATORS)
    hits = measure(model, examples, plan, "cpu")
    return make_exhibit(model, examples, plan, "cpu", hits), hits, plan


def pixels(png: bytes) -> Any:
    """A PNG as an array."""
    return np.asarray(Image.open(io.BytesIO(png)))


def test_the_examples_are_right_as_they_are_and_wrong_when_moved_to_the_worst_region() -> None:
    examples = columns()
    shown, hits, plan = exhibited(Left(), examples)
    worst = int(hits.hits[5:].mean(axis=1).argmin())
    assert shown.region == divmod(worst, 2)
    lost = np.flatnonzero(hits.hits[0] & ~hits.hits[5 + worst])
    assert shown.failing == len(lost) > 8
    assert len(shown.examples) == 8
    moved = shift(examples.images, padding_toward(*shown.region, 2, plan.padding), plan.fill)
    predicted = Left()(moved).argmax(1)
    for one in shown.examples:
        assert one.row in lost
        assert one.label == int(examples.labels[one.row]) != one.prediction == int(predicted[one.row])
        drawn = pixels(one.image).astype(int)
        image = moved[one.row, 0].numpy()
        assert drawn.shape == (12, 12)
        assert np.corrcoef(drawn.ravel(), image.ravel())[0, 1] > 0.99


def test_the_examples_are_spread_over_the_data() -> None:
    shown, _, _ = exhibited(Left(), columns())
    rows = [one.row for one in shown.examples]
    assert rows == sorted(set(rows))
    assert rows[0] < COUNT / 4
    assert rows[-1] > COUNT * 3 / 4


def test_it_costs_one_small_forward_pass_and_leaves_the_model_alone() -> None:
    examples, model = columns(), Left()
    _, hits, plan = exhibited(model, examples)
    model.train()
    model.batches.clear()
    make_exhibit(model, examples, plan, "cpu", hits)
    assert model.batches == [8]
    assert model.training
    assert not model.conv._forward_hooks


def test_a_model_that_nothing_moves_has_a_mean_and_no_examples() -> None:
    examples, model = columns(), Left()
    _, hits, plan = exhibited(model, examples)
    model.batches.clear()
    shown = make_exhibit(model, examples, plan, "cpu", replace(hits, hits=np.ones_like(hits.hits)))
    assert (shown.failing, shown.examples, model.batches) == (0, (), [])
    assert pixels(shown.mean).shape == (12, 12)


def test_the_mean_is_the_mean() -> None:
    examples = columns()
    drawn = pixels(exhibited(Left(), examples)[0].mean).astype(int)
    assert np.corrcoef(drawn.ravel(), examples.images.mean(dim=(0, 1)).numpy().ravel())[0, 1] > 0.99
    assert (drawn.min(), drawn.max()) == (0, 255)


def test_the_mean_of_many_images_is_taken_over_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_AVERAGED", 2)
    drawn = module._mean(torch.stack([torch.full((1, 2, 2), float(i)) for i in range(5)]))
    assert drawn.tolist() == [[[2.0, 2.0], [2.0, 2.0]]]


@pytest.mark.parametrize("channels", [1, 2, 3, 5])
@pytest.mark.parametrize("side", [12, 100])
def test_every_kind_of_image_is_small_in_the_end(channels: int, side: int) -> None:
    torch.manual_seed(0)
    examples = columns(side, channels)
    noisy = Examples(examples.images + 0.2 * torch.rand_like(examples.images), examples.labels)
    shown, _, _ = exhibited(Left(channels), noisy)
    assert len(shown.to_json()) <= LARGEST
    assert len(shown.examples) == 8
    for png, most in [(shown.mean, 96), *((one.image, 64) for one in shown.examples)]:
        width, height = struct.unpack(">II", png[16:24])
        assert max(width, height) <= most
        assert width == height
        assert min(width, height) >= min(side, 36)


def test_a_long_image_keeps_its_shape() -> None:
    assert pixels(module._thumbnail(torch.rand(3, 1, 1000), 64, None)).shape == (1, 64, 3)
    assert pixels(module._thumbnail(torch.rand(1, 300, 100), 96, None)).shape == (96, 32)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_every_floating_point_type_is_drawn(kind: torch.dtype) -> None:
    assert pixels(module._thumbnail(torch.rand(3, 8, 8).to(kind), 64, None)).shape == (8, 8, 3)


def test_display_stretches_whatever_range_and_clips_outliers() -> None:
    image = torch.linspace(-3, 5, 400).reshape(1, 20, 20).clone()
    image[0, 0, 0] = 1e6
    drawn = module._displayed(image)
    assert drawn.dtype == np.uint8
    assert drawn[10, 10] == pytest.approx(255 * 210 / 400, abs=4)
    assert module._displayed(torch.full((1, 4, 4), 7.0)).max() == 0
    sparse = torch.zeros(1, 50, 50)
    sparse[0, 3, 3] = 1.0
    assert module._displayed(sparse)[3, 3] == 255


def test_json_and_back() -> None:
    shown, _, _ = exhibited(Left(), columns())
    assert Exhibit.from_json(shown.to_json()) == shown
    assert shown.to_json().isascii()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"region": [0], "mean": "", "failing": 0, "examples": []}'])
def test_what_is_no_exhibit_is_refused(text: str) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        Exhibit.from_json(text)
