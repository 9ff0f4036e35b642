"""The method the slow way, from the spec's text alone: a deep copy per mutant, one image at a time per shift.

Nothing here imports the package, so that the two can only agree by both being right.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional


@cache
def part_of(pixel: int, length: int, n: int) -> int:
    """The part in which a pixel lies when ``length`` pixels are cut at floor(i * length / n)."""
    return max(i for i in range(n) if Fraction(i * length, n).__floor__() <= pixel)


@cache
def mask(height: int, width: int, n: int, row: int, col: int) -> Tensor:
    """True on the pixels of region (row, col)."""
    inside = [
        [(part_of(y, height, n), part_of(x, width, n)) == (row, col) for x in range(width)] for y in range(height)
    ]
    return torch.tensor(inside)


class Masked(nn.Module):
    """A layer whose output is mutated in one region."""

    def __init__(self, layer: nn.Module, n: int, row: int, col: int, operator: str) -> None:
        super().__init__()
        self.layer, self.n, self.row, self.col, self.operator = layer, n, row, col, operator

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.layer(x)
        height, width = output.shape[-2:]
        if height < self.n or width < self.n:
            return output
        inside = mask(height, width, self.n, self.row, self.col)
        changed = torch.zeros_like(output) if self.operator == "delete" else -1.0 * output
        return torch.where(inside, changed, output)


def mutant(model: nn.Module, n: int, row: int, col: int, operator: str) -> nn.Module:
    """A deep copy in which every convolution is wrapped."""
    twin = copy.deepcopy(model).eval()
    wrapped: dict[int, Masked] = {}
    for parent in list(twin.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Conv2d):
                setattr(parent, name, wrapped.setdefault(id(child), Masked(child, n, row, col, operator)))
        # named_children gives a module that has two names only once.
        for name, module in parent._modules.items():
            if module is not None and id(module) in wrapped and not isinstance(parent, Masked):
                parent._modules[name] = wrapped[id(module)]
    return twin


def shifted(image: Tensor, n: int, row: int, col: int, pads: tuple[int, int], fill: Sequence[float]) -> Tensor:
    """One image (C, H, W) padded by (vertical, horizontal) pixels in all toward a region and resized back."""
    vertical, horizontal = pads
    left, up = round(Fraction(horizontal * col, n - 1)), round(Fraction(vertical * row, n - 1))
    sides = (left, horizontal - left, up, vertical - up)
    channels = [
        functional.pad(channel, sides, mode="constant", value=value) for channel, value in zip(image, fill, strict=True)
    ]
    return functional.interpolate(
        torch.stack(channels)[None], size=image.shape[-2:], mode="bilinear", align_corners=False, antialias=True
    )[0]


def hits(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    n: int,
    operator: str = "delete",
    pads: tuple[int, int] | None = None,
    fill: Sequence[float] | None = None,
) -> NDArray[Any]:
    """Right or wrong, (2 n^2 + 1, N): unchanged, mutants, shifts."""
    height, width = images.shape[-2:]
    pads = (round(Fraction(height, n)), round(Fraction(width, n))) if pads is None else pads
    fill = [0.0] * images.shape[1] if fill is None else fill
    cells = [(row, col) for row in range(n) for col in range(n)]
    with torch.no_grad():
        rows = [_right(copy.deepcopy(model).eval(), images, labels)]
        rows += [_right(mutant(model, n, row, col, operator), images, labels) for row, col in cells]
        for row, col in cells:
            moved = torch.stack([shifted(image, n, row, col, pads, fill) for image in images])
            rows.append(_right(copy.deepcopy(model).eval(), moved, labels))
    return np.stack(rows)


def _right(model: nn.Module, images: Tensor, labels: Tensor) -> NDArray[Any]:
    predicted = [int(model(image[None].clone()).argmax()) for image in images]
    return np.asarray(np.array(predicted) == labels.numpy())
