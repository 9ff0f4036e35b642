"""Which test examples a network gets right: unchanged, mutated, shifted as the score does, and otherwise changed.

`d_score` would run the shifts once for every operator and the clean pass once for every grid. So its engine is used one
level lower: the same `Session`, `Mutator` and `shifts`, each pass once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.study import unseen
from benchmarks.study.data import Data
from benchmarks.study.measured import Hits, Measured, Recipe
from pytest_dscore.score.engine import Plan, Session
from pytest_dscore.score.guard import borrowed
from pytest_dscore.score.mutants import Mutator
from pytest_dscore.score.operators import OPERATORS
from pytest_dscore.score.regions import region_name, regions
from pytest_dscore.score.shifts import shifts, total_padding

#: Change it when the same network would get other hits: kept ones are then measured anew.
VERSION = 1

GRIDS = (2, 3, 4)
SEEDED = ("noise", "shuffle")
FURTHER_SEEDS = (1, 2, 3, 4)

#: Images per forward pass; the maps of so many stay in the processor's cache.
_BATCH = 125


@dataclass(frozen=True)
class Wanted:
    """Passes to be run beside the clean one; see `Measured` for the keys."""

    mutants: tuple[tuple[int, str, int], ...] = ()
    shifts: tuple[tuple[int, int], ...] = ()
    unseen: tuple[str, ...] = ()


def everything(size: int) -> Wanted:
    """All grids, operators, pads and unseen transforms; operators with seed 0."""
    mutants = tuple((n, operator, 0) for n in GRIDS for operator in OPERATORS)
    pads = tuple((n, pad) for n in GRIDS for pad in paddings(size, n))
    return Wanted(mutants, pads, tuple(unseen.UNSEEN))


def table_only(size: int) -> Wanted:
    """What one D-Score at n = 3 with ``delete`` is made of."""
    return Wanted(((3, "delete", 0),), ((3, paddings(size, 3)[1]),))


def further_seeds(size: int) -> Wanted:
    """Four more seeds of the operators that draw, at n = 3."""
    return Wanted(tuple((3, operator, seed) for operator in SEEDED for seed in FURTHER_SEEDS))


def unseen_only(size: int) -> Wanted:
    """The unseen transforms."""
    return Wanted(unseen=tuple(unseen.UNSEEN))


def paddings(size: int, n: int) -> tuple[int, int, int]:
    """Half the score's default pad, the default, and half as much again, pixels."""
    default = total_padding(size, size, n, None)[0]
    return round(default / 2), default, round(1.5 * default)


def measure(
    model: nn.Module, recipe: Recipe, data: Data, wanted: Wanted, start: int = 0, stop: int | None = None
) -> Measured:
    """Run the passes over test examples ``start`` to ``stop``.

    Parameters
    ----------
    model
        A trained network.
    recipe
        What it was trained by; kept beside the hits.
    data
        Its data set.
    wanted
        The passes.
    start, stop
        Test examples; None for all that are left.

    Returns
    -------
    Measured

    Raises
    ------
    pytest_dscore.errors.DScoreError
        The model gives NaN.
    """
    images, labels = data.test_images[start:stop], data.test_labels[start:stop]
    clean: list[Hits] = []
    mutants: dict[tuple[int, str, int], list[Hits]] = {key: [] for key in wanted.mutants}
    moved: dict[tuple[int, int], list[Hits]] = {key: [] for key in wanted.shifts}
    changed: dict[str, list[Hits]] = {name: [] for name in wanted.unseen}
    with borrowed(model, "cpu"), torch.no_grad():
        for first in range(0, len(images), _BATCH):
            passes = _Passes(model, images[first : first + _BATCH], labels[first : first + _BATCH])
            clean.append(passes.clean())
            for key, rows in mutants.items():
                rows.append(passes.mutants(*key))
            for pad, rows in moved.items():
                rows.append(passes.shifts(*pad))
            for name, rows in changed.items():
                rows.append(passes.unseen(name, start + first))
    return Measured(
        recipe,
        labels.numpy().copy(),
        data.classes,
        _joined(clean)[0],
        {key: _joined(rows) for key, rows in mutants.items()},
        {pad: _joined(rows) for pad, rows in moved.items()},
        {name: _joined(rows)[0] for name, rows in changed.items()},
        data.size,
    )


def _joined(parts: Sequence[Hits]) -> Hits:
    return np.concatenate(parts, axis=1)


@dataclass(frozen=True)
class _Passes:
    """The passes over one batch; every method returns hits (passes, B)."""

    model: nn.Module
    images: Tensor
    labels: Tensor

    def clean(self) -> Hits:
        with self._session(2) as session:
            return self._hits(session, [self.images], "on the unchanged data")

    def mutants(self, n: int, operator: str, seed: int) -> Hits:
        with self._session(n, operator, seed) as session:
            inputs = self.images.contiguous(memory_format=torch.channels_last)
            rows = [
                session.hits(inputs, self.labels, f"when the {region_name(*region, n)} region is mutated", region)
                for region in regions(n)
            ]
        return torch.stack(rows).numpy()

    def shifts(self, n: int, pad: int) -> Hits:
        with self._session(n) as session:
            fill = torch.zeros(self.images.shape[1])
            return self._hits(session, shifts(self.images, n, (pad, pad), fill), f"on images padded by {pad}")

    def unseen(self, name: str, start: int) -> Hits:
        with self._session(2) as session:
            return self._hits(session, [unseen.transform(name, self.images, start)], f"under {name}")

    def _hits(self, session: Session, batches: Iterable[Tensor], situation: str) -> Hits:
        ready = (batch.contiguous(memory_format=torch.channels_last) for batch in batches)
        return torch.stack([session.hits(batch, self.labels, situation) for batch in ready]).numpy()

    @contextmanager
    def _session(self, n: int, operator: str = "delete", seed: int = 0) -> Iterator[Session]:
        # Padding, fill and batch size of a plan are for the engine's own loop, which is not used.
        function = _noise if operator == "noise" else OPERATORS[operator]
        plan = Plan(n, function, (0, 0), torch.zeros(1), _BATCH, seed, False)
        with Mutator(self.model, n, plan.operator, seed) as mutator:
            yield Session(self.model, mutator, plan, torch.device("cpu"))


def _noise(cell: Tensor, output: Tensor, seed: int) -> None:
    """`operators.noise` up to rounding: torch's `std` takes longer than the whole network."""
    flat = output.permute(0, 2, 3, 1).flatten(1)
    variance = flat.square().mean(dim=1) - flat.mean(dim=1).square()
    deviation = variance.clamp_min(0).sqrt().view(-1, 1, 1, 1)
    pattern = torch.randn(cell.shape[1:], generator=torch.Generator().manual_seed(seed))
    cell.add_(deviation * pattern)


def joined(parts: Sequence[Measured]) -> Measured:
    """Put the same passes over consecutive examples together."""
    first = parts[0]
    return replace(
        first,
        labels=np.concatenate([part.labels for part in parts]),
        clean=np.concatenate([part.clean for part in parts]),
        mutants={key: _joined([part.mutants[key] for part in parts]) for key in first.mutants},
        shifts={key: _joined([part.shifts[key] for part in parts]) for key in first.shifts},
        unseen={key: np.concatenate([part.unseen[key] for part in parts]) for key in first.unseen},
    )


def merged(one: Measured, other: Measured) -> Measured:
    """Put different passes over the same examples together."""
    return replace(
        one,
        mutants={**one.mutants, **other.mutants},
        shifts={**one.shifts, **other.shifts},
        unseen={**one.unseen, **other.unseen},
    )
