"""Small architectures that differ as users' do; all take pixels in [0, 1], 28 x 28 grey or 32 x 32 in colour.

A network normalises its input itself, so that an empty pixel is 0 in its input space. Each trains on about 3,000 images
a second on one core in the ``channels_last`` memory format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn import functional

#: Change it when a name below would stand for another network: kept ones are then trained anew.
VERSION = 1


class Normalise(nn.Module):
    """Bring pixels in [0, 1] to about zero mean and unit deviation; no weights."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, C, H, W) to the same shape."""
        return (x - 0.45) * 4.0


class Residual(nn.Module):
    """Two 3 x 3 convolutions around a shortcut (a 1 x 1 convolution where the channels differ).

    Parameters
    ----------
    inside, outside
        Channels before and after.
    """

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.first = nn.Sequential(*_normed(inside, outside), nn.ReLU())
        self.second = nn.Sequential(*_normed(outside, outside))
        same = inside == outside
        self.shortcut = nn.Identity() if same else nn.Conv2d(inside, outside, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, inside, H, W) to (B, outside, H, W)."""
        return functional.relu(self.second(self.first(x)) + self.shortcut(x))


def _normed(inside: int, outside: int, kernel: int = 3, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    """Convolution and batch-norm."""
    return [
        nn.Conv2d(inside, outside, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outside),
    ]


def _plain(channels: int, side: int, classes: int) -> list[nn.Module]:
    """Three convolutions, two of them max-pooled; one linear layer over all positions."""
    return [
        *(nn.Conv2d(channels, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 32, 3, padding=1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(32 * (side // 4) ** 2, classes)),
    ]


def _batchnorm(channels: int, side: int, classes: int) -> list[nn.Module]:
    """Three convolutions with batch-norm, two of them max-pooled; the average over all positions."""
    return [
        *(*_normed(channels, 16), nn.ReLU(), nn.MaxPool2d(2)),
        *(*_normed(16, 32), nn.ReLU(), nn.MaxPool2d(2)),
        *(*_normed(32, 64), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes)),
    ]


def _strided(channels: int, side: int, classes: int) -> list[nn.Module]:
    """Strided convolutions in place of pooling; one linear layer over all positions."""
    return [
        *(nn.Conv2d(channels, 24, 3, 2, 1), nn.ReLU()),
        *(nn.Conv2d(24, 48, 3, 2, 1), nn.ReLU()),
        *(nn.Conv2d(48, 48, 3, 1, 1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(48 * (side // 4) ** 2, classes)),
    ]


def _residual(channels: int, side: int, classes: int) -> list[nn.Module]:
    """A strided stem and two residual blocks; the average over all positions."""
    return [
        *(*_normed(channels, 16, stride=2), nn.ReLU()),
        *(Residual(16, 24), nn.MaxPool2d(2), Residual(24, 48)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, classes)),
    ]


def _separable(channels: int, side: int, classes: int) -> list[nn.Module]:
    """Depthwise and pointwise convolutions in turn; the average over all positions."""
    layers: list[nn.Module] = [*_normed(channels, 24, stride=2), nn.ReLU()]
    for inside, outside in ((24, 48), (48, 64), (64, 64)):
        layers += [*_normed(inside, inside, groups=inside), nn.ReLU(), *_normed(inside, outside, 1), nn.ReLU()]
        if inside == 24:
            layers.append(nn.MaxPool2d(2))
    return [*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes)]


def _wide(channels: int, side: int, classes: int) -> list[nn.Module]:
    """Few layers with large kernels, average pooling; the average over all positions."""
    return [
        *(*_normed(channels, 16, 7, 2), nn.ReLU()),
        *(*_normed(16, 32, 5), nn.ReLU(), nn.AvgPool2d(2)),
        *(*_normed(32, 48), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, classes)),
    ]


def _dense(channels: int, side: int, classes: int) -> list[nn.Module]:
    """Two convolutions, then most of the weights in two linear layers with dropout."""
    return [
        *(nn.Conv2d(channels, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 24, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(24 * (side // 4) ** 2, 96), nn.ReLU(), nn.Dropout(0.3), nn.Linear(96, classes)),
    ]


@dataclass(frozen=True)
class Architecture:
    """A network with the optimiser it is trained with.

    Parameters
    ----------
    layers
        From channels, side and classes to the layers after `Normalise`.
    optimiser
        ``adamw`` or ``sgd`` (momentum 0.9, Nesterov).
    rate
        Peak learning rate.
    """

    layers: Callable[[int, int, int], list[nn.Module]]
    optimiser: str
    rate: float


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "plain": Architecture(_plain, "adamw", 0.003),
        "batchnorm": Architecture(_batchnorm, "adamw", 0.01),
        "strided": Architecture(_strided, "adamw", 0.002),
        "residual": Architecture(_residual, "sgd", 0.1),
        "separable": Architecture(_separable, "adamw", 0.01),
        "wide": Architecture(_wide, "sgd", 0.1),
        "dense": Architecture(_dense, "adamw", 0.002),
    }
)


def find(architecture: str) -> tuple[Architecture, float]:
    """Resolve the name in a recipe: an architecture, or ``NAME@FACTOR`` for one trained at another peak rate.

    Returns
    -------
    architecture : Architecture
    rate : float
        Peak learning rate.

    Raises
    ------
    ValueError
        There is no such architecture.
    """
    name, _, factor = architecture.partition("@")
    if name not in ARCHITECTURES:
        raise ValueError(f"there is no architecture {name!r}: choose one of {', '.join(ARCHITECTURES)}")
    found = ARCHITECTURES[name]
    return found, found.rate * float(factor or 1)


def build(architecture: str, channels: int, side: int, classes: int) -> nn.Module:
    """Return an untrained network, its weights drawn from torch's generator.

    Parameters
    ----------
    architecture
        As in a recipe, see `find`.
    channels, side, classes
        Of the images (square) and the labels.

    Returns
    -------
    nn.Module
        Maps (B, channels, side, side) to (B, classes); its weights are in the ``channels_last`` memory format.
    """
    layers = find(architecture)[0].layers(channels, side, classes)
    model: nn.Module = nn.Sequential(Normalise(), *layers)
    return model.to(memory_format=torch.channels_last)
