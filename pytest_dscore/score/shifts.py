"""Moving the object: an image is padded on four sides so that it comes to lie toward a region, then resized back.

Source: Zhang et al. 2023, section IV-A as retold in the D-Score spec, item 2. That the image is padded with empty
values and resized back is the paper's; how far it moves (one region's width) is this project's reconstruction, and a
setting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from pytest_dscore.errors import SettingsError
from pytest_dscore.score.regions import regions

#: How a padded image is brought back to its size; part of every fingerprint, as no two libraries resize alike.
INTERPOLATION = "bilinear, antialiased (torch.nn.functional.interpolate)"


class Padding(NamedTuple):
    """Empty pixels put on each side of an image."""

    left: int
    right: int
    up: int
    down: int


def total_padding(height: int, width: int, n: int, pad: int | Sequence[int] | None) -> tuple[int, int]:
    """Pixels added in all, (vertically, horizontally).

    Parameters
    ----------
    height, width
        Size of the images in pixels.
    n
        The grid.
    pad
        None for one region's size, ``round(height / n)`` and ``round(width / n)``; a whole number of pixels for both
        directions; or a pair (vertical, horizontal).

    Raises
    ------
    SettingsError
        If `pad` is negative or not one or two whole numbers.
    """
    if pad is None:
        return round(height / n), round(width / n)
    pair = list(pad) if isinstance(pad, Sequence) else [pad, pad]
    if len(pair) != 2 or not all(isinstance(p, Integral) and not isinstance(p, bool) and p >= 0 for p in pair):
        raise SettingsError(f"pad = {pad!r} must be a number of pixels >= 0, or a pair [vertical, horizontal] of them")
    if pair[0] > 10 * height or pair[1] > 10 * width:
        raise SettingsError(
            f"pad = {pad!r} is more than ten times the images' {height} x {width} pixels: set it smaller"
        )
    return int(pair[0]), int(pair[1])


def padding_toward(row: int, col: int, n: int, total: tuple[int, int]) -> Padding:
    """The four sides' padding that moves an image toward region (row, col).

    ``left = round(P * col / (n - 1))`` and the rest right; up and down likewise by the row (D-Score spec, public
    names).
    """
    vertical, horizontal = total
    left, up = round(horizontal * col / (n - 1)), round(vertical * row / (n - 1))
    return Padding(left, horizontal - left, up, vertical - up)


def shift(images: Tensor, padding: Padding, fill: Tensor) -> Tensor:
    """Pad images with the empty value and resize them back.

    Parameters
    ----------
    images : Tensor, (B, C, H, W), floating point
    padding
        Pixels on each side.
    fill : Tensor, (C,)
        The empty value (black before normalisation) of every channel, in the images' own value space.

    Returns
    -------
    Tensor, (B, C, H, W)
    """
    sideways = _squeeze(images, padding.left, padding.right, fill, axis=3)
    return _squeeze(sideways, padding.up, padding.down, fill, axis=2)


def shifts(images: Tensor, n: int, total: tuple[int, int], fill: Tensor) -> Iterator[Tensor]:
    """`shift` toward every region in reading order; the n horizontal steps are done once, not once per row."""
    paddings = [padding_toward(row, col, n, total) for row, col in regions(n)]
    columns = [_squeeze(images, p.left, p.right, fill, axis=3) for p in paddings[:n]]
    for index, p in enumerate(paddings):
        yield _squeeze(columns[index % n], p.up, p.down, fill, axis=2)


def _squeeze(images: Tensor, before: int, after: int, fill: Tensor, axis: int) -> Tensor:
    """Pad along one axis and resize back; an antialiased bilinear resize is one such step per axis."""
    shape = list(images.shape)
    shape[axis] += before + after
    canvas = images.new_empty(shape)
    canvas[:] = fill.view(1, -1, 1, 1)
    canvas.narrow(axis, before, images.shape[axis]).copy_(images)
    size = images.shape[2:]
    return functional.interpolate(canvas, size=size, mode="bilinear", align_corners=False, antialias=True)


def black_level(mean: float | Sequence[float], std: float | Sequence[float]) -> tuple[float, ...]:
    """What a black pixel becomes under ``(x - mean) / std``, the right `fill` for images normalised that way.

    `mean` and `std` are one number each, or one per channel.

    Examples
    --------
    >>> [round(value, 3) for value in black_level((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
    [-2.118, -2.036, -1.804]
    """
    means, deviations = np.atleast_1d(np.asarray(mean, float)), np.atleast_1d(np.asarray(std, float))
    if means.shape != deviations.shape or means.ndim > 1 or not (deviations > 0).all():
        raise SettingsError(f"mean = {mean} and std = {std} must have as many entries, one per channel, every std > 0")
    return tuple(float(level) for level in (0.0 - means) / deviations)


def fill_remarks(fill: object, images: Tensor) -> tuple[str, ...]:
    """Say so where images look normalised and nobody said what black is (then 0 is a grey, not an empty pixel)."""
    darkest = float(images.min())
    if fill is not None or darkest >= 0:
        return ()
    sentence = f"pixels go down to {darkest:.2f} but fill is not set: is 0 really black?"
    return (f"{sentence} See fill in the README of pytest-dscore",)


def fill_values(fill: float | Sequence[float] | None, channels: int) -> Tensor:
    """The empty value of every channel as a float32 tensor (C,); 0 where None.

    Raises
    ------
    SettingsError
        If there are neither one value nor as many as channels, or one is not finite.
    """
    values = np.atleast_1d(np.asarray(0.0 if fill is None else fill))
    if values.dtype.kind not in "iuf" or values.ndim > 1:
        raise SettingsError(f"fill = {fill!r} must be the value of a black pixel, one number or one per channel")
    if len(values) not in (1, channels):
        count = "1" if channels == 1 else f"1 or {channels}"
        raise SettingsError(f"fill has {len(values)} values, but the images have {channels} channel(s): give {count}")
    tensor = torch.tensor(values.tolist(), dtype=torch.float32)
    if not torch.isfinite(tensor).all():
        raise SettingsError(
            f"fill = {fill!r} must be finite numbers, the value of a black pixel in the model's input space"
        )
    return tensor.expand(channels).clone()
