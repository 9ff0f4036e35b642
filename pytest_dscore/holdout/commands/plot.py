"""``dscore holdout plot``: testable models against similarity and epsilon, as figures 1b and 2 of the paper."""

from __future__ import annotations

import argparse
import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_dscore.errors import SettingsError
from pytest_dscore.holdout.commands.plan import number
from pytest_dscore.holdout.planning import CouplingWarning, max_models
from pytest_dscore.report.holdout_plots import plot_curves
from pytest_dscore.report.text import wrapped

#: The bounds that the paper draws.
BOUNDS = ("union", "similarity", "naive-bayes")
_HIGHEST_SIMILARITY = 0.95


@dataclass(frozen=True)
class Curves:
    """What is drawn.

    Parameters
    ----------
    n, error, epsilon, delta, similarity
        The setting.
    similarities
        Of the first two panels, from that of independent models upwards.
    by_similarity
        Bound -> testable models at each of them.
    epsilons
        Of the third panel.
    by_epsilon
        Bound -> testable models at each of them, at `similarity`.
    """

    n: int
    error: float
    epsilon: float
    delta: float
    similarity: float
    similarities: tuple[float, ...]
    by_similarity: dict[str, tuple[int, ...]]
    epsilons: tuple[float, ...]
    by_epsilon: dict[str, tuple[int, ...]]


def add_to(commands: Any) -> None:
    """Add the sub-command."""
    parser = commands.add_parser("plot", help="draw testable models against similarity (the paper's figures 1b, 2)")
    parser.add_argument("file", metavar="FILE", help="where to draw (.png, .svg or .pdf)")
    parser.add_argument("--n", type=number, default=50_000, metavar="N", help="test examples; default: 50,000")
    parser.add_argument("--error", type=float, default=0.244, metavar="P", help="error rate; default: 0.244")
    parser.add_argument("--epsilon", type=float, default=0.01, metavar="E", help="tolerance; default: 0.01")
    parser.add_argument("--delta", type=float, default=0.05, metavar="D", help="failure probability; default: 0.05")
    parser.add_argument(
        "--similarity", type=float, default=0.85, metavar="S", help="where epsilon varies; default: 0.85"
    )
    parser.add_argument("--points", type=number, default=25, metavar="N", help="points on a curve; default: 25")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Draw the figure."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CouplingWarning)  # the curve then lies on the union's, as the legend says
        curves = compute(options.n, options.error, options.epsilon, options.delta, options.similarity, options.points)
    plot_curves(curves, Path(options.file))
    print("\n".join(wrapped(f"drawn: {options.file}")))
    return 0


def compute(n: int, error: float, epsilon: float, delta: float, similarity: float, points: int) -> Curves:
    """Return the number of testable models by each bound.

    Raises
    ------
    SettingsError
        A value out of range, or fewer than two points.
    """
    if points < 2:
        raise SettingsError("--points must be at least 2")
    given: dict[str, Any] = {"n": n, "error": error, "delta": delta}
    max_models(**given, epsilon=epsilon, similarity=similarity)  # says what is out of range
    lowest = error**2 + (1 - error) ** 2
    # Upwards in steps of whole thousandths: a rate written in decimals keeps its exact boundaries.
    low, high = math.ceil(lowest * 1000) / 1000, max(_HIGHEST_SIMILARITY, similarity)
    similarities = tuple(round(low + (high - low) * i / (points - 1), 4) for i in range(points))
    epsilons = tuple(round(epsilon * (0.5 + i / (points - 1)), 6) for i in range(points))
    return Curves(
        n,
        error,
        epsilon,
        delta,
        similarity,
        similarities,
        {b: tuple(max_models(**given, epsilon=epsilon, bound=b, similarity=s) for s in similarities) for b in BOUNDS},
        epsilons,
        {b: tuple(max_models(**given, epsilon=e, bound=b, similarity=similarity) for e in epsilons) for b in BOUNDS},
    )
