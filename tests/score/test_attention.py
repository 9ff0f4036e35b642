"""A model whose attention is in one corner by construction is found to have it there."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pytest_dscore.score import d_score

SIZE, N = 28, 3
CORNERS = [(0, 0), (0, 2), (2, 0), (2, 2)]


class Corner(nn.Module):
    """Copies the image by an identity kernel and reads the sign of 2 x 2 pixels in one corner of the map."""

    def __init__(self, row: int, col: int) -> None:
        super().__init__()
        self.copy = nn.Conv2d(1, 1, 3, padding=1, bias=False)
        self.read = nn.Linear(SIZE * SIZE, 2, bias=False)
        with torch.no_grad():
            self.copy.weight.zero_()
            self.copy.weight[0, 0, 1, 1] = 1.0
            weights = torch.zeros(2, SIZE, SIZE)
            rows = slice(0, 2) if row == 0 else slice(SIZE - 2, SIZE)
            columns = slice(0, 2) if col == 0 else slice(SIZE - 2, SIZE)
            weights[1, rows, columns] = 1.0
            self.read.weight.copy_(weights.flatten(1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.as_tensor(self.read(self.copy(x).flatten(1)))


def data(row: int, col: int) -> tuple[Tensor, Tensor]:
    """The corner's ninth of the image is +1 for class 1 and -1 for class 0; the rest is noise that says nothing."""
    torch.manual_seed(0)
    labels = torch.arange(20) % 2
    images = torch.randn(20, 1, SIZE, SIZE)
    cuts = (0, 9, 18, 28)
    rows, columns = slice(cuts[row], cuts[row + 1]), slice(cuts[col], cuts[col + 1])
    images[:, 0, rows, columns] = (2.0 * labels - 1.0)[:, None, None]
    return images, labels


@pytest.mark.parametrize(("row", "col"), CORNERS)
def test_features_and_attention_are_in_the_corner(row: int, col: int) -> None:
    images, labels = data(row, col)
    result = d_score(Corner(row, col), images, labels, n=N, bootstrap=0)
    assert result.accuracy.value == 1.0
    corner = np.zeros((N, N))
    corner[row, col] = 1.0
    assert np.array_equal(result.f_tilde, corner)
    # Without the corner, and with the object moved away from it, the model sees zeros and says class 0: half right.
    assert np.array_equal(result.f, 1.0 - corner / 2)
    assert np.array_equal(result.a, 0.5 + corner / 2)
    assert result.a_tilde == pytest.approx(0.1 + 0.1 * corner)


@pytest.mark.parametrize(("row", "col"), CORNERS)
def test_its_figures_by_hand(row: int, col: int) -> None:
    # |f~ - 1/9| = sqrt(8/9); |a~ - 1/9|^2 = (4/45)^2 + 8 / 90^2 = 72/8100; |a - 1| = sqrt(8/4).
    # |f~ - a~|^2 = 0.64 + 8 * 0.01 = 0.72, so v_fitness = 0.64; g = 2 sqrt(8/9) + 3/2 = 3.385618.
    images, labels = data(row, col)
    result = d_score(Corner(row, col), images, labels, n=N, bootstrap=0)
    assert result.v_robust.value == pytest.approx(0.9428090416 + 0.0942809042 + 1.4142135624)
    assert result.v_fitness.value == pytest.approx(0.64)
    # The mean of f is 1 - 0.5 / 9, that of a 0.5 + 0.5 / 9.
    assert result.score.value == pytest.approx((17 / 18 + 5 / 9) / 2)
    bounded = d_score(Corner(row, col), images, labels, n=N, bootstrap=0, form="bounded")
    assert bounded.score.value == pytest.approx(0.64 * (1 - 2.4513035082 / 3.3856180832))


def test_turning_the_sign_of_the_corner_turns_every_prediction() -> None:
    images, labels = data(2, 0)
    result = d_score(Corner(2, 0), images, labels, n=N, operator="invert", bootstrap=0)
    assert result.f.tolist() == [[1, 1, 1], [1, 1, 1], [0, 1, 1]]


def test_the_empty_value_is_what_the_model_sees_when_the_object_has_moved() -> None:
    images, labels = data(0, 0)
    # A bright empty value reads as class 1, a dark one as class 0: half right in both cases, but the other half.
    bright = d_score(Corner(0, 0), images, labels, n=N, fill=1.0, bootstrap=0).hits[-1]
    dark = d_score(Corner(0, 0), images, labels, n=N, fill=-1.0, bootstrap=0).hits[-1]
    assert np.array_equal(bright, labels.numpy() == 1)
    assert np.array_equal(dark, labels.numpy() == 0)
