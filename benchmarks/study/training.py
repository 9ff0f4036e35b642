"""Training one network of the study: seeded, one thread, the same bits each time on one machine.

An augmentation gets a whole batch but draws anew *for every image*. A transform of torchvision draws once for each
call, so that called on a batch it would flip or turn all its images alike; here the draws are made for the batch at
once and applied with v2's functions where these take them (flips), else with the sampling that v2's own kernels use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn import functional
from torchvision.transforms.v2 import functional as v2  # type: ignore[import-untyped]

from benchmarks.study import networks
from benchmarks.study.data import Data
from benchmarks.study.measured import Recipe
from fixtures.train import reproducible
from pytest_dscore.score import DScoreAugment, d_score

#: Change it when the same recipe would give other weights: kept networks are then trained anew.
VERSION = 1

BATCH = 128

#: The grid of the score that guides the augmentation, as in the paper's Table VI.
GUIDING_GRID = 3

Augmentation = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Trained:
    """A trained network.

    Parameters
    ----------
    model
        In evaluation mode.
    p
        Probability (and amount) of the score-guided augmentation; None where another one was used.
    """

    model: nn.Module
    p: float | None = None


def train(recipe: Recipe, data: Data, unaugmented: nn.Module | None = None) -> Trained:
    """Train one network.

    Parameters
    ----------
    recipe
        What to train. Beside the names that `Recipe` lists, ``dscore-P`` is `DScoreAugment` with p = P, and names
        joined by ``+`` follow one another.
    data
        The first `recipe.examples` training images are used.
    unaugmented
        For ``ours``: the network of the same recipe without augmentation; trained first where None.

    Returns
    -------
    Trained
    """
    p = None
    if recipe.augmentation == "ours":
        if unaugmented is None:
            unaugmented = train(replace(recipe, augmentation="none"), data).model
        p = guided_probability(unaugmented, data)
    augment = augmentation(recipe.augmentation, p)
    with reproducible(recipe.seed), torch.enable_grad():
        return Trained(_fit(recipe, data, augment), p)


def guided_probability(model: nn.Module, data: Data) -> float:
    """The p of score-guided augmentation for a model, ``v_robust / g``, scored on the validation images."""
    images, labels = data.validation_images, data.validation_labels
    result = d_score(model, images, labels, n=GUIDING_GRID, batch_size=BATCH, bootstrap=0, device="cpu")
    return DScoreAugment.from_score(result).p


def _fit(recipe: Recipe, data: Data, augment: Augmentation) -> nn.Module:
    images, labels = data.images[: recipe.examples], data.labels[: recipe.examples]
    model = networks.build(recipe.architecture, data.channels, data.size, data.classes)
    batch = min(BATCH, len(images))
    steps = len(images) // batch
    optimiser, schedule = _optimiser(recipe, model, recipe.epochs * steps)
    model.train()
    for _ in range(recipe.epochs):
        order = torch.randperm(len(images))
        for chosen in torch.split(order[: steps * batch], batch):
            inputs = augment(images[chosen]).contiguous(memory_format=torch.channels_last)
            loss = functional.cross_entropy(model(inputs), labels[chosen])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
    return model.eval()


def _optimiser(
    recipe: Recipe, model: nn.Module, steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    architecture, rate = networks.find(recipe.architecture)
    optimiser: torch.optim.Optimizer
    if architecture.optimiser == "sgd":
        optimiser = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, nesterov=True, weight_decay=5e-4)
    else:
        optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    return optimiser, torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=rate, total_steps=steps)


def augmentation(name: str, p: float | None = None) -> Augmentation:
    """Find an augmentation of batches (B, C, H, W) by its name.

    Parameters
    ----------
    name
        As in a recipe, see `train`.
    p
        For ``ours``.

    Raises
    ------
    ValueError
        There is no such augmentation.
    """
    steps = [_step(part, p) for part in name.split("+")]

    def augment(images: Tensor) -> Tensor:
        for step in steps:
            images = step(images)
        return images

    return augment


def _step(name: str, p: float | None) -> Augmentation:
    if name == "ours" and p is not None:
        return DScoreAugment(p)
    if name.startswith("dscore-"):
        return DScoreAugment(float(name.removeprefix("dscore-")))
    if name not in AUGMENTATIONS:
        raise ValueError(f"there is no augmentation {name!r}: choose among {', '.join(AUGMENTATIONS)}, ours, dscore-P")
    return AUGMENTATIONS[name]


def _none(images: Tensor) -> Tensor:
    return images


def _flip_across(images: Tensor) -> Tensor:
    return torch.where(_coins(images), v2.horizontal_flip(images), images)


def _flip_down(images: Tensor) -> Tensor:
    return torch.where(_coins(images), v2.vertical_flip(images), images)


def _flip_both(images: Tensor) -> Tensor:
    return _flip_down(_flip_across(images))


def _coins(images: Tensor) -> Tensor:
    return (torch.rand(len(images)) < 0.5).view(-1, 1, 1, 1)


def _rotate(images: Tensor, degrees: float = 15.0) -> Tensor:
    return moved(images, angle=degrees * _signed(images))


def _shift(images: Tensor, amount: float = 0.15) -> Tensor:
    return moved(images, offset=amount * 2 * torch.rand(len(images), 2) - amount)


def _affine(images: Tensor) -> Tensor:
    offset = 0.1 * (2 * torch.rand(len(images), 2) - 1)
    return moved(images, angle=15.0 * _signed(images), scale=1 + 0.25 * _signed(images), offset=offset)


def _signed(images: Tensor) -> Tensor:
    return 2 * torch.rand(len(images)) - 1


def _crop(images: Tensor, share: int = 8) -> Tensor:
    """Pad by an eighth of the size on each side and cut out a square of the old size."""
    size = images.shape[-1]
    pad = size // share
    padded = functional.pad(images, (pad, pad, pad, pad))
    corners = torch.randint(0, 2 * pad + 1, (2, len(images)))
    rows, columns = (corner[:, None] + torch.arange(size) for corner in corners)
    which = torch.arange(len(images))[:, None, None]
    return padded[which, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def _erase(images: Tensor) -> Tensor:
    """Blacken a rectangle of 20 to 60 % of each side in half of the images."""
    size = images.shape[-1]
    sides = size * (0.2 + 0.4 * torch.rand(2, len(images), 1))
    starts = torch.rand(2, len(images), 1) * (size - sides)
    down, across = (torch.arange(size) >= starts) & (torch.arange(size) < starts + sides)
    hidden = (down[:, :, None] & across[:, None, :])[:, None] & _coins(images)
    return images.masked_fill(hidden, 0.0)


def _light(images: Tensor) -> Tensor:
    """Make images brighter or darker by up to 40 %."""
    return (images * (1 + 0.4 * _signed(images)).view(-1, 1, 1, 1)).clamp(0, 1)


def moved(
    images: Tensor,
    angle: Tensor | float = 0.0,
    scale: Tensor | float = 1.0,
    offset: Tensor | float = 0.0,
    finer: int = 1,
) -> Tensor:
    """Turn, rescale and shift each image by values of its own; what was outside is black.

    Bilinear, as `torchvision.transforms.v2.functional.affine` does it for a single image.

    Parameters
    ----------
    images : Tensor, (B, C, H, H)
    angle : Tensor, (B,)
        Degrees, counter-clockwise.
    scale : Tensor, (B,)
        Above 1 the object becomes larger.
    offset : Tensor, (B, 2)
        Shift right and down as a share of the size.
    finer
        Sample on a grid this many times as fine and average, against aliasing where objects become smaller.
    """
    count, side = len(images), images.shape[-1]
    turn, size = (torch.as_tensor(value).expand(count) for value in (angle, scale))
    turn = turn * (math.pi / 180)
    right, down = (-2 * torch.as_tensor(offset).expand(count, 2)).T
    cos, sin = torch.cos(turn) / size, torch.sin(turn) / size
    # From a place in the new image to the place in the old one: shift back, turn back, rescale back.
    rows = torch.stack((cos, -sin, cos * right - sin * down, sin, cos, sin * right + cos * down), 1).view(-1, 2, 3)
    shape = [count, images.shape[1], side * finer, side * finer]
    grid = functional.affine_grid(rows.to(images.dtype), shape, align_corners=False)
    fine = functional.grid_sample(images, grid, align_corners=False)
    return fine if finer == 1 else functional.avg_pool2d(fine, finer)


AUGMENTATIONS: Mapping[str, Augmentation] = MappingProxyType(
    {
        "none": _none,
        "rhf": _flip_across,
        "rvf": _flip_down,
        "rhv": _flip_both,
        "rr": _rotate,
        "crop": _crop,
        "shift": _shift,
        "affine": _affine,
        "erase": _erase,
        "light": _light,
    }
)
