"""Transforms that the score does not use: translations, rescalings, rotations and crops with continuous parameters.

The score pads by whole pixels toward n x n places *and* resizes; a translation here resizes nothing, and every other
amount is drawn from an interval, for each example by its index alone: all networks get the same images.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from benchmarks.study.training import moved

#: Change it when a name below would stand for other images: kept hits are then measured anew.
VERSION = 1

#: Three numbers in [0, 1) for every example.
Draws = npt.NDArray[np.float64]


def transform(name: str, images: Tensor, start: int = 0) -> Tensor:
    """Change images as the transform `name` does.

    Parameters
    ----------
    name
        One of `UNSEEN`.
    images : Tensor, (B, C, H, H), float, 0 is black
        Examples ``start``, ``start + 1``, ... of the test set.
    start
        Index of the first.

    Returns
    -------
    Tensor, (B, C, H, H)
    """
    draws = np.random.default_rng([zlib.crc32(name.encode()), VERSION]).random((start + len(images), 3))[start:]
    return UNSEEN[name](images, draws)


def _translate(images: Tensor, draws: Draws, least: float, most: float) -> Tensor:
    """Shift by `least` to `most` of the size, in any direction."""
    distance, angle = least + (most - least) * draws[:, 0], 2 * np.pi * draws[:, 1]
    offset = np.stack((distance * np.cos(angle), distance * np.sin(angle)), axis=1)
    return moved(images, offset=_tensor(offset))


def _rescale(images: Tensor, draws: Draws, least: float, most: float) -> Tensor:
    """Enlarge or shrink about the centre."""
    scale = least * (most / least) ** draws[:, 0]
    return moved(images, scale=_tensor(scale), finer=1 if least >= 1 else 2)


def _rotate(images: Tensor, draws: Draws, least: float, most: float) -> Tensor:
    """Turn by `least` to `most` degrees, either way."""
    angle = (least + (most - least) * draws[:, 0]) * np.where(draws[:, 1] < 0.5, -1, 1)
    return moved(images, angle=_tensor(angle))


def _crop(images: Tensor, draws: Draws, side: float) -> Tensor:
    """Cut out a square of this share of the sides, anywhere, and enlarge it to the old size."""
    # The middle of the cut comes to the middle: shifts count in the enlarged image.
    offset = (0.5 - draws[:, :2]) * (1 - side) / side
    return moved(images, scale=1 / side, offset=_tensor(offset))


def _tensor(values: npt.NDArray[np.float64]) -> Tensor:
    return torch.from_numpy(values).float()


def _ranges() -> dict[str, Callable[[Tensor, Draws], Tensor]]:
    found: dict[str, Callable[[Tensor, Draws], Tensor]] = {}
    for most in (0.08, 0.16, 0.24, 0.32):
        found[f"translate-{most:.2f}"] = partial(_translate, least=most - 0.08, most=most)
    for least, most in ((0.5, 0.65), (0.65, 0.85), (1.15, 1.4), (1.4, 1.8)):
        found[f"rescale-{least:.2f}-{most:.2f}"] = partial(_rescale, least=least, most=most)
    for least, most in ((5, 15), (15, 25), (25, 40), (40, 60)):
        found[f"rotate-{least}-{most}"] = partial(_rotate, least=float(least), most=float(most))
    for side in (0.9, 0.8, 0.7, 0.55):
        found[f"crop-{side:.2f}"] = partial(_crop, side=side)
    return found


UNSEEN: Mapping[str, Callable[[Tensor, Draws], Tensor]] = MappingProxyType(_ranges())
