"""What the bounds are held against: exact fractions, plain loops and simulation. Shares no code with the package."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "imagenet_val_outcomes.npz"


def binomial(n: int, p: Fraction) -> list[Fraction]:
    """All probabilities of Bin(n, p), exactly."""
    return [math.comb(n, x) * p**x * (1 - p) ** (n - x) for x in range(n + 1)]


def overfits(count: int, n: int, p: Fraction, eps: Fraction) -> bool:
    """The closed overfitting event of one model."""
    return abs(Fraction(count, n) - p) >= eps


def single(n: int, p: Fraction, eps: Fraction) -> Fraction:
    """Exact probability that one model overfits."""
    return sum((w for x, w in enumerate(binomial(n, p)) if overfits(x, n, p, eps)), Fraction(0))


def pair_counts(n: int, p1: Fraction, p2: Fraction, s: Fraction) -> dict[tuple[int, int], Fraction]:
    """Exact joint distribution of two models' error counts: n trials of a 2 x 2 table, convolved one by one."""
    p11 = (p1 + p2 - (1 - s)) / 2
    table = {(1, 1): p11, (1, 0): p1 - p11, (0, 1): p2 - p11, (0, 0): 1 - p1 - p2 + p11}
    now = {(0, 0): Fraction(1)}
    for _ in range(n):
        after: dict[tuple[int, int], Fraction] = {}
        for (x, y), w in now.items():
            for (dx, dy), v in table.items():
                if v:
                    after[x + dx, y + dy] = after.get((x + dx, y + dy), Fraction(0)) + w * v
        now = after
    return now


def naive_bayes(n: int, p: Fraction, s: Fraction, k: int, eps: Fraction) -> Fraction:
    """Exact probability under Assumption A1, in fractions."""
    p11 = p - (1 - s) / 2
    shared, own = p * p / p11, p11 / p
    total = Fraction(0)
    for j, w in enumerate(binomial(n, shared)):
        tail = sum((v for x, v in enumerate(binomial(j, own)) if overfits(x, n, p, eps)), Fraction(0))
        total += w * (1 - (1 - tail) ** k)
    return total


def event_rate(counts: NDArray[np.int64], n: int, rates: NDArray[np.float64], eps: float) -> tuple[float, float]:
    """Share of simulated test sets (rows) in which some model overfits, and three standard errors of it."""
    hits = (np.abs(counts / n - rates) >= eps - 1e-12).any(axis=1)
    share = float(hits.mean())
    return share, 3 * math.sqrt(max(share * (1 - share), 1e-12) / hits.size)


def simulate_a1(rng: np.random.Generator, n: int, p: float, s: float, k: int, runs: int) -> NDArray[np.int64]:
    """Error counts of k models with naive Bayes structure."""
    p11 = p - (1 - s) / 2
    hard = rng.binomial(n, p * p / p11, size=runs)
    return np.asarray(rng.binomial(hard[:, None], p11 / p, size=(runs, k)))


def simulate_star(rng: np.random.Generator, n: int, p: float, s: float, k: int, runs: int) -> NDArray[np.int64]:
    """Error counts of k models, each alike to the first one with similarity s and otherwise independent."""
    p11 = p - (1 - s) / 2
    first = rng.binomial(n, p, size=runs)[:, None]
    others = rng.binomial(first, p11 / p, size=(runs, k - 1))
    others += rng.binomial(n - first, (p - p11) / (1 - p), size=(runs, k - 1))
    return np.concatenate([first, others], axis=1)


def matrices(rng: np.random.Generator) -> Iterator[NDArray[np.bool_]]:
    """A few outcome matrices with likenesses of all sorts, copies, perfect and hopeless models among them."""
    for k, n in ((1, 1), (2, 9), (5, 64), (12, 200)):
        base = rng.random(n) < 0.3
        flips = rng.random((k, n)) < rng.uniform(0.0, 0.4, size=(k, 1))
        matrix = base ^ flips
        matrix[0] = base
        if k > 4:
            matrix[1], matrix[2], matrix[3] = base, True, False
        yield matrix


def imagenet(without: str | None = "fv_16k") -> NDArray[np.bool_]:
    """The real outcome matrix of ../shared/data, less one model."""
    if not SHARED.exists():
        pytest.skip(f"real outcome matrix {SHARED} is absent: the comparison with ImageNet models did not run")
    with np.load(SHARED) as archive:
        wrong = np.unpackbits(archive["wrong"], axis=1)[:, :50_000].astype(np.bool_)
        return wrong[[i for i, name in enumerate(archive["models"]) if str(name) != without]]
