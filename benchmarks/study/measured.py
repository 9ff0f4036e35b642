"""What is kept of one trained network: for every example and every changed pass, whether the answer was right."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

Hits = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, order=True)
class Recipe:
    """How one network is trained: enough to train it again, bit by bit on the same machine.

    ``dataset`` is ``digits``, ``mnist`` or ``cifar10``; ``augmentation`` one of none, rhf, rvf, rr, rhv, ours, and for
    the populations also others; ``examples`` is how many training images are used.
    """

    dataset: str
    architecture: str
    augmentation: str
    epochs: int
    seed: int
    examples: int


@dataclasses.dataclass(frozen=True)
class Measured:
    """Hits of one network on N test examples.

    Attributes
    ----------
    recipe : Recipe
    labels : int64 array, shape (N,)
    classes : int
    clean : bool array, shape (N,)
    mutants : mapping of (n, operator, seed) to bool array, shape (n * n, N), row by row from the upper left
        ``delete`` and ``invert`` have seed 0 only; ``noise`` and ``shuffle`` further ones where stability is measured.
    shifts : mapping of (n, pad in pixels) to bool array, shape (n * n, N)
        The default pad of a grid, ``round(size / n)``, is always among them.
    unseen : mapping of a transform's name to bool array, shape (N,)
        Hits under translations, rescalings, rotations and crops that are not the score's own shifts, drawn per example
        with a fixed seed, the same for every network. The name begins with its family: ``translate-``, ``rescale-``,
        ``rotate-``, ``crop-``.
    size : int
        Height and width of an image, pixels.
    """

    recipe: Recipe
    labels: npt.NDArray[np.int64]
    classes: int
    clean: Hits
    mutants: Mapping[tuple[int, str, int], Hits]
    shifts: Mapping[tuple[int, int], Hits]
    unseen: Mapping[str, Hits]
    size: int
