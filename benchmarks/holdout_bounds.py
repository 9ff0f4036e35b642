"""Speed and memory of the hold-out bounds, each beside a straightforward NumPy/SciPy version in the same run.

Run as ``python -m benchmarks.holdout_bounds`` (about a minute); ``--full`` adds the 10,000 x 10,000 similarities on
50,000 examples in a child process of its own, whose peak memory is printed.
"""

from __future__ import annotations

import argparse
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from pytest_dscore.holdout import (
    PackedOutcomes,
    analyse,
    bounds,
    failure_probability,
    max_models,
    pack,
    similarity_matrix,
    similarity_row,
)

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "imagenet_val_outcomes.npz"
N, P, EPS, S, DELTA = 50_000, 0.244, 0.01, 0.85, 0.05
UPPER, LOWER = 12_700, 11_700
CHILD = "--child"


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the least time of a few runs."""
    best = math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def plain_pair(p1: float, p2: float, s: float, anchor: int, boundary: int, upper: bool) -> float:
    """Equation (10) as it stands: all j from 0 to n, SciPy's binomial functions."""
    both = (p1 + p2 - (1 - s)) / 2
    j = np.arange(N + 1)
    weights = stats.binom.pmf(j, N, p1 * p2 / both)
    if upper:
        terms = stats.binom.cdf(anchor - 1, j, both / p2) * stats.binom.sf(boundary - 1, j, both / p1)
    else:
        terms = stats.binom.sf(anchor, j, both / p2) * stats.binom.cdf(boundary, j, both / p1)
    return float((weights * terms).sum())


def plain_similarity(k: int) -> float:
    """Equation (3) at one k: a ternary search over t in each tail."""
    total = 0.0
    for upper in (True, False):

        def value(t: int, upper: bool = upper) -> float:
            if upper:
                tail = stats.binom.sf(UPPER - t - 1, N, P)
                return float(tail + (k - 1) * plain_pair(P, P, S, UPPER - t, UPPER, True))
            tail = stats.binom.cdf(LOWER + t, N, P)
            return float(tail + (k - 1) * plain_pair(P, P, S, LOWER + t, LOWER, False))

        low, high = 0, 500
        while high - low > 2:
            first, second = low + (high - low) // 3, high - (high - low) // 3
            low, high = (low, second) if value(first) <= value(second) else (first, high)
        total += min(value(t) for t in range(low, high + 1))
    return total


def plain_naive_bayes() -> int:
    """Assumption A1's budget: the whole sum over j for every k of a bisection."""
    both = P - (1 - S) / 2
    j = np.arange(N + 1)

    def value(k: int) -> float:
        tail = stats.binom.sf(UPPER - 1, j, both / P) + stats.binom.cdf(LOWER, j, both / P)
        return float(
            (stats.binom.pmf(j, N, P * P / both) * -np.expm1(k * np.log1p(-np.minimum(tail, 1 - 1e-16)))).sum()
        )

    low, high = 1, 10**9
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if value(middle) <= DELTA else (low, middle)
    return low


def plain_tree(wrong: NDArray[np.bool_]) -> float:
    """A Hunter-Worsley bound over the spanning tree of largest similarity, by whole sums."""
    rates = wrong.mean(axis=1)
    alike = np.stack([(wrong == row).mean(axis=1) for row in wrong])
    reached, total = [0], 0.0
    m = round(EPS * N)
    for upper in (True, False):
        for i, count in enumerate(wrong.sum(axis=1)):
            total += stats.binom.sf(count + m - 1, N, rates[i]) if upper else stats.binom.cdf(count - m, N, rates[i])
    while len(reached) < len(wrong):
        open_rows = [i for i in range(len(wrong)) if i not in reached]
        grid = alike[np.ix_(open_rows, reached)]
        row, column = np.unravel_index(int(np.argmax(grid)), grid.shape)
        i, j = open_rows[int(row)], reached[int(column)]
        for upper in (True, False):
            sign = 1 if upper else -1
            anchor, boundary = (round(rates[r] * N) + sign * m for r in (j, i))
            alone = stats.binom.sf(boundary - 1, N, rates[i]) if upper else stats.binom.cdf(boundary, N, rates[i])
            total -= alone - plain_pair(rates[j], rates[i], alike[i, j], anchor, boundary, upper)
        reached.append(i)
    return float(total)


def outcomes() -> tuple[str, NDArray[np.bool_]]:
    """66 ImageNet models where the data is at hand, as many simulated ones otherwise; says which."""
    if DATA.exists():
        with np.load(DATA) as archive:
            wrong = np.unpackbits(archive["wrong"], axis=1)[:, :N].astype(np.bool_)
            return "real", wrong[[i for i, name in enumerate(archive["models"]) if str(name) != "fv_16k"]]
    rng = np.random.default_rng(0)
    hard = rng.random(N) < 0.35
    return "simulated", hard & (rng.random((66, N)) < rng.uniform(0.6, 0.8, size=(66, 1)))


def line(what: str, ours: float, plain: float, target: str = "") -> None:
    """Print one measurement."""
    print(f"{what:<58} {ours:9.4f} s {plain:9.3f} s {plain / ours:8.1f} x  {target}", flush=True)


def measure() -> None:
    """Print all but the full similarity matrix."""
    print(f"{'':<58} {'ours':>11} {'plain':>11} {'ratio':>10}  target")
    common = {"n": N, "error": P, "epsilon": EPS}
    similar = seconds(lambda: failure_probability(k=10**6, bound="similarity", similarity=S, **common))  # type: ignore[arg-type]
    line("similarity, one k, n = 50,000", similar, seconds(lambda: plain_similarity(10**6), 1))
    budget = seconds(lambda: max_models(delta=DELTA, bound="similarity", similarity=S, **common))  # type: ignore[arg-type]
    print(f"{'similarity, budget':<58} {budget:9.4f} s {'':>11} {'':>10}  < 0.5 s")

    def cold() -> None:
        bounds._naive_bayes_terms.cache_clear()
        max_models(delta=DELTA, bound="naive-bayes", similarity=S, **common)  # type: ignore[arg-type]

    bayes = seconds(cold)
    line("naive-bayes, budget", bayes, seconds(plain_naive_bayes, 1), "< 0.05 s")
    source, wrong = outcomes()
    ours = seconds(lambda: analyse(wrong, epsilon=EPS, delta=DELTA, bound="empirical"))
    line(f"empirical, 66 {source} models x 50,000 examples", ours, seconds(lambda: plain_tree(wrong), 1), "< 2 s")
    many = np.random.default_rng(0).random((1_000, N)) < 0.3
    packed = pack(many)

    def plain() -> object:
        return [(many == row).mean(axis=1) for row in many[:50]]

    def product() -> object:
        dense = many.astype(np.float32)
        both, wrong = dense @ dense.T, dense.sum(axis=1)
        return 1 - (wrong[:, None] + wrong - 2 * both) / N

    ours = seconds(lambda: similarity_matrix(packed))
    line("similarity of 1,000 x 1,000 models, plain: row by row", ours, 20 * seconds(plain, 1))
    line("the same, plain: one dense product (32 times the memory)", ours, seconds(product, 1))
    row = many[7]
    line("similarity of one new model to 1,000", seconds(lambda: similarity_row(packed, row)), seconds(plain, 1) / 50)


def full() -> None:
    """Time the largest case and print the process's peak memory."""
    bits = np.random.default_rng(0).integers(0, 256, size=(10_000, N // 8), dtype=np.uint8)
    took = seconds(lambda: similarity_matrix(PackedOutcomes(bits, N)), 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    rows = np.unpackbits(bits[:500], axis=1).astype(np.bool_)
    plain = seconds(lambda: [(rows == row).mean(axis=1) for row in rows[:20]], 1) * 10_000 / 20 * 20
    line("similarity of 10,000 x 10,000 models (plain: scaled up)", took, plain, f"< 60 s, {peak:.2f} GB of < 2 GB")


def main(arguments: list[str]) -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="add the 10,000 x 10,000 similarities")
    parser.add_argument(CHILD, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        full()
        return
    measure()
    if options.full:
        subprocess.run([sys.executable, "-m", "benchmarks.holdout_bounds", CHILD], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
