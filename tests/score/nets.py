"""Small networks of every kind, with data on which their mutants disagree."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

CLASSES = 5


def head(channels: int, side: int = 4, classes: int = CLASSES) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(side), nn.Flatten(), nn.Linear(channels * side * side, classes)]


def plain(channels: int = 1) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 6, 3), nn.ReLU(), *head(6)
    )


def grouped(channels: int = 1) -> nn.Module:
    return nn.Sequential(nn.Conv2d(channels, 6, 5), nn.ReLU(), nn.Conv2d(6, 6, 3, groups=3), nn.ReLU(), *head(6))


def dilated(channels: int = 1) -> nn.Module:
    return nn.Sequential(nn.Conv2d(channels, 4, 3, dilation=3), nn.ReLU(), nn.Conv2d(4, 4, 3, dilation=2), *head(4))


def depthwise(channels: int = 1) -> nn.Module:
    deep = nn.Conv2d(6, 6, 3, padding=1, groups=6)
    return nn.Sequential(nn.Conv2d(channels, 6, 1), deep, nn.ReLU(inplace=True), nn.Conv2d(6, 8, 1), *head(8))


def strided(channels: int = 1) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels, 6, 3, stride=2, padding=1, padding_mode="circular"),
        nn.SiLU(),
        nn.Conv2d(6, 6, (5, 3), stride=(1, 2)),
        *head(6),
    )


def normed(channels: int = 1) -> nn.Module:
    norms = [nn.BatchNorm2d(6), nn.BatchNorm2d(6)]
    for norm in norms:
        nn.init.uniform_(norm.weight, 0.5, 2.0)
        nn.init.normal_(norm.bias)
        assert norm.running_mean is not None
        assert norm.running_var is not None
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2.0)
    first = nn.Conv2d(channels, 6, 3, bias=False)
    return nn.Sequential(first, norms[0], nn.ReLU(), nn.Conv2d(6, 6, 3), norms[1], nn.ReLU(), *head(6))


class Residual(nn.Module):
    """Two residual blocks; the second reuses the first's layer."""

    def __init__(self, channels: int = 1) -> None:
        super().__init__()
        self.stem = nn.Conv2d(channels, 4, 3)
        self.block = nn.Conv2d(4, 4, 3, padding=1)
        self.down = nn.Conv2d(4, 6, 1, stride=2)
        self.head = nn.Sequential(*head(6))

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        x = x + torch.relu(self.block(x))
        x = x + torch.relu(self.block(-x))
        return torch.as_tensor(self.head(self.down(x)))


NETS: dict[str, Callable[[int], nn.Module]] = {
    "plain": plain,
    "grouped": grouped,
    "dilated": dilated,
    "depthwise": depthwise,
    "strided": strided,
    "normed": normed,
    "residual": Residual,
}


def problem(
    build: Callable[[], nn.Module],
    shape: tuple[int, int, int] = (1, 28, 28),
    count: int = 24,
    dtype: torch.dtype = torch.float64,
) -> tuple[nn.Module, Tensor, Tensor]:
    """A network in double precision (nothing hangs on rounding), images, and labels of which it gets four in five."""
    torch.manual_seed(3)
    model = build().to(dtype).eval()
    smooth = torch.rand(count, shape[0], 4, 4, dtype=dtype)
    images = nn.functional.interpolate(smooth, size=shape[1:]) + 0.3 * torch.randn(count, *shape, dtype=dtype)
    last = [module for module in model.modules() if isinstance(module, nn.Linear)][-1]
    with torch.no_grad():
        # Centred logits, so that the predictions differ among images.
        assert last.bias is not None
        last.bias.sub_(model(images.clone()).mean(dim=0))
        labels = model(images.clone()).argmax(dim=1)
    labels[::5] = (labels[::5] + 1) % last.out_features
    return model, images, labels


def quick(classes: int = 3) -> tuple[nn.Module, Tensor, Tensor]:
    """The smallest problem: one convolution, 8 x 8 pixels."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(192, classes))
    images = torch.randn(12, 1, 8, 8)
    return model, images, torch.arange(12) % classes
