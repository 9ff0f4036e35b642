"""A data set and a network small enough to train and measure in a moment."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import torch
from torch import nn

from benchmarks.study import data, networks
from benchmarks.study.data import Data
from benchmarks.study.measured import Recipe
from benchmarks.study.training import train

RECIPE = Recipe("digits", "plain", "none", 2, 0, 500)


@cache
def digits(train_images: int = 500, test_images: int = 60) -> Data:
    """Some of the bundled digits."""
    whole = data.load("digits")
    return replace(
        whole,
        images=whole.images[:train_images],
        labels=whole.labels[:train_images],
        validation_images=whole.validation_images[:60],
        validation_labels=whole.validation_labels[:60],
        test_images=whole.test_images[:test_images],
        test_labels=whole.test_labels[:test_images],
    )


@cache
def trained() -> nn.Module:
    """A network that is right on most of `digits`; not to be changed."""
    return train(RECIPE, digits()).model


def untrained(architecture: str, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return networks.build(architecture, 1, 28, 10).eval()
