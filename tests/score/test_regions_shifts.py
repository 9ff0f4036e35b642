"""How maps are cut and images moved, against numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from pytest_dscore.errors import SettingsError
from pytest_dscore.score import black_level
from pytest_dscore.score.regions import cell, edges, region_name, regions
from pytest_dscore.score.shifts import Padding, fill_values, padding_toward, shift, total_padding
from tests.score import naive


@pytest.mark.parametrize(
    ("length", "n", "expected"),
    [
        (28, 3, (0, 9, 18, 28)),  # 28/3 = 9.33, 56/3 = 18.67
        (28, 2, (0, 14, 28)),
        (28, 4, (0, 7, 14, 21, 28)),
        (10, 4, (0, 2, 5, 7, 10)),  # 2.5, 5, 7.5
        (7, 3, (0, 2, 4, 7)),  # 2.33, 4.67
        (3, 3, (0, 1, 2, 3)),
        (5, 4, (0, 1, 2, 3, 5)),  # 1.25, 2.5, 3.75
        (29, 7, (0, 4, 8, 12, 16, 20, 24, 29)),  # 4.14, 8.29, 12.43, 16.57, 20.71, 24.86
    ],
)
def test_edges_lie_at_the_floor(length: int, n: int, expected: tuple[int, ...]) -> None:
    assert edges(length, n) == expected


def test_a_cell_is_rows_then_columns() -> None:
    assert cell(3, 2, 0, 28, 10) == (slice(18, 28), slice(0, 3))
    assert cell(3, 0, 1, 28, 10) == (slice(0, 9), slice(3, 6))
    assert cell(2, 1, 0, 7, 9) == (slice(3, 7), slice(0, 4))


def test_regions_are_in_reading_order() -> None:
    assert regions(2) == ((0, 0), (0, 1), (1, 0), (1, 1))
    assert regions(3)[5] == (1, 2)


@pytest.mark.parametrize(
    ("n", "row", "col", "name"),
    [
        (2, 0, 1, "upper right"),
        (2, 1, 0, "lower left"),
        (3, 2, 2, "lower right"),
        (3, 0, 1, "upper middle"),
        (3, 1, 0, "middle left"),
        (3, 1, 1, "centre"),
        (4, 3, 0, "row 4, column 1"),
    ],
)
def test_names_of_regions(n: int, row: int, col: int, name: str) -> None:
    assert region_name(row, col, n) == name


@pytest.mark.parametrize(
    ("height", "width", "n", "pad", "expected"),
    [
        (28, 28, 3, None, (9, 9)),  # round(9.33)
        (32, 20, 3, None, (11, 7)),  # round(10.67), round(6.67)
        (224, 224, 4, None, (56, 56)),
        (28, 28, 3, 5, (5, 5)),
        (28, 28, 3, 0, (0, 0)),
        (28, 20, 2, (3, 8), (3, 8)),
        (28, 20, 2, [3, 8], (3, 8)),
    ],
)
def test_padding_in_all(height: int, width: int, n: int, pad: Any, expected: tuple[int, int]) -> None:
    assert total_padding(height, width, n, pad) == expected


@pytest.mark.parametrize(
    ("row", "col", "n", "total", "expected"),
    [
        # n = 3, 28 px: P = 9; the middle's share is 4.5, rounded to the even 4.
        (0, 0, 3, (9, 9), Padding(left=0, right=9, up=0, down=9)),
        (0, 1, 3, (9, 9), Padding(left=4, right=5, up=0, down=9)),
        (2, 0, 3, (9, 9), Padding(left=0, right=9, up=9, down=0)),
        (1, 2, 3, (9, 9), Padding(left=9, right=0, up=4, down=5)),
        # n = 4, 28 px: P = 7; 7/3 = 2.33, 14/3 = 4.67.
        (1, 2, 4, (7, 7), Padding(left=5, right=2, up=2, down=5)),
        (0, 1, 2, (6, 10), Padding(left=10, right=0, up=0, down=6)),
        (1, 0, 2, (6, 10), Padding(left=0, right=10, up=6, down=0)),
    ],
)
def test_padding_on_each_side(row: int, col: int, n: int, total: tuple[int, int], expected: Padding) -> None:
    assert padding_toward(row, col, n, total) == expected


@pytest.mark.parametrize("pads", [(9, 9), (4, 11), (0, 0), (30, 1)])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_shift_equals_the_slow_way_for_each_image(n: int, pads: tuple[int, int]) -> None:
    torch.manual_seed(0)
    images, fill = torch.randn(5, 3, 19, 28), [-2.0, 0.0, 1.5]
    for row, col in regions(n):
        moved = shift(images, padding_toward(row, col, n, pads), torch.tensor(fill))
        expected = torch.stack([naive.shifted(image, n, row, col, pads, fill) for image in images])
        assert moved.shape == images.shape
        assert torch.allclose(moved, expected, atol=1e-6)


def test_the_object_moves_toward_the_region() -> None:
    image = torch.zeros(1, 1, 28, 28)
    image[..., 12:16, 12:16] = 1.0
    axis = torch.arange(28.0)
    for row, col in regions(3):
        moved = shift(image, padding_toward(row, col, 3, (9, 9)), torch.zeros(1))[0, 0]
        centre = (moved.sum(1) @ axis / moved.sum(), moved.sum(0) @ axis / moved.sum())
        # Centre 13.5 + 0.5, moved by 0, 4 or 9 pixels on a canvas of 37, then shrunk by 28/37.
        for index, value in zip((row, col), centre, strict=True):
            assert float(value) == pytest.approx((14.0 + (0, 4, 9)[index]) * 28 / 37 - 0.5, abs=0.05)


def test_no_padding_changes_nothing_at_all() -> None:
    images = torch.randn(3, 2, 17, 23)
    assert torch.equal(shift(images, Padding(0, 0, 0, 0), torch.zeros(2)), images)


def test_the_resize_is_antialiased() -> None:
    image = (torch.arange(40) % 2).float().expand(1, 1, 40, 40)
    padded = functional.pad(image, (40, 0, 40, 0))
    expected = functional.interpolate(padded, (40, 40), mode="bilinear", antialias=True, align_corners=False)
    plain = functional.interpolate(padded, (40, 40), mode="bilinear", antialias=False, align_corners=False)
    moved = shift(image, Padding(40, 0, 40, 0), torch.zeros(1))
    assert torch.allclose(moved, expected)
    # Stripes one pixel wide, halved in size: only the antialiased resize with its wider kernel mixes across the edge.
    assert not torch.allclose(moved, plain)


def test_images_are_left_as_they_were() -> None:
    images = torch.randn(3, 1, 8, 8)
    before = images.clone()
    shift(images, Padding(1, 2, 3, 0), torch.ones(1)).zero_()
    assert torch.equal(images, before)


def test_black_level_is_minus_mean_over_std() -> None:
    # -0.5 / 0.25 = -2; -0.1 / 0.2 = -0.5; 0.
    assert black_level((0.5, 0.1, 0.0), (0.25, 0.2, 3.0)) == pytest.approx((-2.0, -0.5, 0.0))


@pytest.mark.parametrize(("mean", "std"), [((0.5,), (0.5, 0.5)), ((0.5,), (0.0,)), ((0.5,), (-1.0,))])
def test_black_level_refuses(mean: tuple[float, ...], std: tuple[float, ...]) -> None:
    with pytest.raises(SettingsError, match="one per channel, every std > 0"):
        black_level(mean, std)


def test_fill_is_one_value_or_one_per_channel() -> None:
    assert fill_values(None, 3).tolist() == [0.0, 0.0, 0.0]
    assert fill_values(2.5, 2).tolist() == [2.5, 2.5]
    assert fill_values([1.0, 2.0], 2).tolist() == [1.0, 2.0]
