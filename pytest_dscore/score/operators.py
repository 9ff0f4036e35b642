"""Mutation operators: what is done to one region of a convolutional layer's output.

``delete`` is the paper's; the others are this project's own. An operator sees the same seed for every batch, so its
effect on an example depends neither on the batch size nor on the order of the examples.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

import torch
from torch import Tensor


class Operator(Protocol):
    """Signature of a mutation operator."""

    def __call__(self, cell: Tensor, output: Tensor, seed: int) -> None:
        """Mutate in place.

        Parameters
        ----------
        cell : Tensor, (B, C, h, w)
            The region: a view into `output`, to be changed in place.
        output : Tensor, (B, C, H, W)
            The layer's whole output.
        seed
            The same for every batch, different for every layer and region.
        """


def delete(cell: Tensor, output: Tensor, seed: int) -> None:
    """Set the region to zero: the neurons are gone."""
    cell.zero_()


def invert(cell: Tensor, output: Tensor, seed: int) -> None:
    """Change the sign of the region."""
    cell.neg_()


def noise(cell: Tensor, output: Tensor, seed: int) -> None:
    """Add Gaussian noise of the layer's own standard deviation.

    The deviation is each example's own, over all channels and positions of the layer's output; the noise pattern is the
    same for all examples.
    """
    pattern = torch.randn(cell.shape[1:], generator=torch.Generator().manual_seed(seed))
    deviation = output.float().std(dim=(1, 2, 3), keepdim=True, correction=0)
    cell.add_((deviation * pattern.to(cell.device)).to(cell.dtype))


def shuffle(cell: Tensor, output: Tensor, seed: int) -> None:
    """Permute the positions within the region, alike for all channels and examples."""
    height, width = cell.shape[-2:]
    order = torch.randperm(height * width, generator=torch.Generator().manual_seed(seed)).to(cell.device)
    cell.copy_(cell.flatten(2)[..., order].view(cell.shape))


OPERATORS: Mapping[str, Operator] = MappingProxyType(
    {"delete": delete, "invert": invert, "noise": noise, "shuffle": shuffle}
)
