"""What the speed of the D-Score is measured on: three networks with their images.

Real weights and images where they are to be had, random ones otherwise; `Case.source` says which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from fixtures.digits import build_model, holdout
from pytest_dscore.score import black_level

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Case:
    """A model in evaluation mode and the tensors it is scored on.

    Parameters
    ----------
    name
        What ``--cases`` calls it.
    source
        Where weights and images come from.
    model
        The network.
    images : Tensor, (N, C, H, W)
    labels : Tensor, (N,)
    fill
        The empty value of every channel.
    batch_size
        Images per forward pass.
    """

    name: str
    source: str
    model: nn.Module
    images: Tensor
    labels: Tensor
    fill: tuple[float, ...]
    batch_size: int


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions around a shortcut without weights (He et al. 2015, option A).

    Parameters
    ----------
    inside, outside
        Channels before and after; the block halves the map where they differ.
    """

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.stride = 1 if inside == outside else 2
        self.added = (outside - inside) // 2
        self.conv1 = nn.Conv2d(inside, outside, 3, self.stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, inside, H, W) to (B, outside, H / stride, W / stride)."""
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        if self.stride == 2:
            x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.added, self.added))
        return functional.relu(y + x)


class ResNet20(nn.Module):
    """ResNet-20 for CIFAR-10: three stages of three blocks, 16, 32 and 64 channels (He et al. 2015, section 4.2)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(BasicBlock(16, 16), BasicBlock(16, 16), BasicBlock(16, 16))
        self.layer2 = nn.Sequential(BasicBlock(16, 32), BasicBlock(32, 32), BasicBlock(32, 32))
        self.layer3 = nn.Sequential(BasicBlock(32, 64), BasicBlock(64, 64), BasicBlock(64, 64))
        self.linear = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Map images (B, 3, 32, 32) to logits (B, 10)."""
        x = functional.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return torch.as_tensor(self.linear(x.mean(dim=(2, 3))))


def digits(count: int) -> Case:
    """Four convolutions on handwritten digits, 28 x 28 grey (the bundled project's robust model and hold-out)."""
    model = build_model()
    model.load_state_dict(load_file(ROOT / "fixtures" / "digits.safetensors"))
    images, labels = (tensor[:count].clone() for tensor in holdout())
    return Case("digits", "scikit-learn's digits, trained weights", model.eval(), images, labels, (0.0,), 256)


def resnet20(count: int) -> Case:
    """ResNet-20 on CIFAR-10, 32 x 32."""
    model = ResNet20()
    weights, data = SHARED / "cifar10_resnet20.safetensors", SHARED / "cifar10_test.npz"
    found = weights.exists() and data.exists()
    if found:
        model.load_state_dict(load_file(weights))
        arrays = np.load(data)
        pixels = torch.from_numpy(arrays["images"][:count]).permute(0, 3, 1, 2) / 255
        images = ((pixels - torch.tensor(_MEAN).view(3, 1, 1)) / torch.tensor(_STD).view(3, 1, 1)).contiguous()
        labels = torch.from_numpy(arrays["labels"][:count]).long()
    else:
        images, labels = _random_images(count, 32, 10)
    source = "CIFAR-10 test images, trained weights" if found else "random images, random weights"
    return Case("resnet20", source, model.eval(), images, labels, black_level(_MEAN, _STD), 256)


def resnet18(count: int) -> Case:
    """ResNet-18 of torchvision at 224 x 224, random weights and images."""
    from torchvision.models import resnet18 as build  # type: ignore[import-untyped]

    torch.manual_seed(0)
    images, labels = _random_images(count, 224, 1000)
    return Case(
        "resnet18", "random images, random weights", build().eval(), images, labels, black_level(_MEAN, _STD), 8
    )


def _random_images(count: int, side: int, classes: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    images = torch.randn((count, 3, side, side), generator=generator)
    return images, torch.arange(count) % classes


#: By name: the case's maker, its number of images, and that number for ``--quick``.
CASES: Mapping[str, tuple[Callable[[int], Case], int, int]] = MappingProxyType(
    {"digits": (digits, 602, 256), "resnet20": (resnet20, 512, 64), "resnet18": (resnet18, 32, 2)}
)
