"""The paper's Table VI here: kinds of data augmentation, one beside another, with several seeds each.

Source: Zhang et al. 2023, Table VI (CIFAR-10, n = 3; of its cells we have only the few that the text repeats). The
paper trains one network for each row; its spread is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.study import page
from benchmarks.study.measured import Measured, Recipe
from benchmarks.study.scores import accuracies, target
from benchmarks.study.work import Result, Task
from pytest_dscore.score import formulas
from pytest_dscore.score.result import Scalars, statistics

Array = NDArray[np.float64]

N = 3
SEEDS = (0, 1, 2)
EXAMPLES = 6000
SMALLEST_EXAMPLES = 60
PASSES = ("table", "unseen")

#: Rows of the table: the paper's name and ours.
ROWS: Mapping[str, str] = MappingProxyType(
    {"none": "none", "RHF": "rhf", "RVF": "rvf", "RR": "rr", "RHV": "rhv", "ours (D-Score)": "ours"}
)

#: The figures of which the paper says what its own augmentation did to them.
_CLAIMS = ("score", "v_robust", "v_fitness", "accuracy")
_NAMES = {"score": "D", "v_robust": "v_robust", "v_fitness": "v_fitness", "accuracy": "accuracy", "unseen": "unseen"}


class Schedule(NamedTuple):
    """Architecture, epochs and training images of one data set."""

    architecture: str
    epochs: int
    examples: int


SCHEDULES: Mapping[str, Schedule] = MappingProxyType(
    {
        "digits": Schedule("plain", 30, 1000),
        "mnist": Schedule("plain", 3, 10_000),
        "cifar10": Schedule("plain", 4, 16_000),
    }
)
SMALLEST: Mapping[str, Schedule] = MappingProxyType({"digits": Schedule("plain", 2, 640)})


@dataclass(frozen=True)
class Row:
    """The figures of the networks of one row, one entry for each seed.

    Parameters
    ----------
    figures : mapping of name to array (seeds,)
        ``accuracy``, ``v_robust``, ``v_fitness``, ``score`` and ``unseen``, the mean accuracy under transforms that
        the score does not use (nan where it was not measured).
    a, f_tilde : array, (seeds, 9)
    bound
        g, the worst case of v_robust.
    p
        Of the score-guided augmentation, empty where there was none.
    """

    figures: Mapping[str, Array]
    a: Array
    f_tilde: Array
    bound: float
    p: tuple[float, ...] = ()


def tasks(
    schedules: Mapping[str, Schedule] = SCHEDULES, seeds: Sequence[int] = SEEDS, examples: int = EXAMPLES
) -> dict[str, list[list[Task]]]:
    """What is to be trained: by data set a list for each row, in it a task for each seed."""
    return {
        dataset: [
            [Task(Recipe(dataset, *_of(plan, name, seed)), PASSES, examples) for seed in seeds]
            for name in ROWS.values()
        ]
        for dataset, plan in schedules.items()
    }


def _of(plan: Schedule, augmentation: str, seed: int) -> tuple[str, str, int, int, int]:
    return plan.architecture, augmentation, plan.epochs, seed, plan.examples


def scalars(measured: Measured) -> Scalars:
    """The figures of one network at n = 3 with ``delete`` and the default pad."""
    return statistics(_accuracies(measured), formulas.g(N, measured.classes), "bounded")


def _accuracies(measured: Measured) -> Array:
    """Accuracies of the 2 n^2 + 1 passes in the order of `DScore.hits`."""
    moved = measured.shifts[N, round(measured.size / N)]
    hits = np.vstack([measured.clean[None], measured.mutants[N, "delete", 0], moved])
    return np.asarray(hits.sum(axis=1) / hits.shape[1])


def row(results: Sequence[Result]) -> Row:
    """Put the networks of one row together."""
    found = [scalars(result.measured) for result in results]
    passes = np.array([_accuracies(result.measured) for result in results])
    figures = {name: np.array([float(getattr(one, name)) for one in found]) for name in _CLAIMS}
    figures["unseen"] = np.array([_unseen(result.measured) for result in results])
    f_tilde = formulas.feature_distribution(passes[:, 1 : N * N + 1], passes[:, 0])
    p = tuple(result.p for result in results if result.p is not None)
    return Row(figures, passes[:, N * N + 1 :], f_tilde, formulas.g(N, results[0].measured.classes), p)


def _unseen(measured: Measured) -> float:
    return float(target(accuracies(measured))) if measured.unseen else float("nan")


def report(results: Mapping[str, Sequence[Sequence[Result]]]) -> str:
    """Write the section.

    Parameters
    ----------
    results
        By data set, for each row (in the order of `ROWS`) the networks of all seeds.

    Returns
    -------
    str
        Markdown.
    """
    parts = [page.wrapped(_INTRODUCTION)]
    for dataset, rows_of_set in results.items():
        rows = dict(zip(ROWS, (row(networks) for networks in rows_of_set), strict=True))
        parts += [f"### {dataset}", _made(rows_of_set), table(rows), page.wrapped(verdict(rows))]
    return page.section("Data augmentation by score: the paper's Table VI", *parts)


_INTRODUCTION = """Cells are mean ± standard deviation over seeds, in per cent but for v_robust; grids are means over
seeds, rows from top to bottom, with the largest standard deviation below. *unseen* is not in the paper: the mean
accuracy under translations, rescalings, rotations and crops that the score does not use, each family counting alike. It
is there because *ours* trains on the very kind of change that D tests, so that a better D alone would say little. p
comes from validation images, so that no test image has a say in training. The paper's table has one network a row. D is
of form `bounded` here, as the paper has D from v_fitness and v_robust; the paper's D, v_fitness and a~ may be computed
otherwise (README), so compare orders, not values."""


def _made(rows: Sequence[Sequence[Result]]) -> str:
    first = rows[0][0].measured
    recipe = first.recipe
    return page.wrapped(
        f"Network `{recipe.architecture}`, {recipe.epochs} epochs of {recipe.examples:,} images, {len(rows[0])} seeds, "
        f"{len(first.labels):,} test images, n = {N}, delete."
    )


def table(rows: Mapping[str, Row]) -> str:
    """The table of one data set in the paper's layout, and *unseen*."""
    columns = ("augmentation", "accuracy", "`a_i`", "`f~_i`", "v_fitness", "v_robust", "D", "unseen")
    return page.table(columns, (_cells(name, one) for name, one in rows.items()))


def _cells(name: str, one: Row) -> list[str]:
    shown = f"{name}, p = {_spread(np.array(one.p), 1, 2)}" if one.p else name
    figures = one.figures
    grids = [_grid(one.a), _grid(one.f_tilde)]
    percent = {key: _spread(figures[key], 100, 2) for key in ("accuracy", "v_fitness", "score", "unseen")}
    robust = _spread(figures["v_robust"], 1, 3)
    return [shown, percent["accuracy"], *grids, percent["v_fitness"], robust, percent["score"], percent["unseen"]]


def _spread(values: Array, scale: float, digits: int) -> str:
    if np.isnan(values).any():
        return "-"
    return f"{scale * values.mean():.{digits}f} ± {scale * deviation(values):.{digits}f}"


def deviation(values: Array) -> float:
    """Standard deviation over seeds; 0 where there is one seed."""
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _grid(values: Array) -> str:
    means = 100 * values.mean(axis=0).reshape(N, N)
    lines = [" ".join(f"{cell:.1f}" for cell in line) for line in means]
    spread = 100 * max(deviation(column) for column in values.T)
    return "<br>".join([*lines, f"(± {spread:.1f})"])


def verdict(rows: Mapping[str, Row]) -> str:
    """Say which row is best in what, and by how much score-guided augmentation differs from none, seed by seed."""
    ours, none = rows["ours (D-Score)"], rows["none"]
    sentences = []
    for name in (*_CLAIMS, "unseen"):
        means = {key: float(one.figures[name].mean()) for key, one in rows.items()}
        if any(map(np.isnan, means.values())):
            continue
        ranked = sorted(means, key=lambda key, of=means: of[key], reverse=name != "v_robust")  # type: ignore[misc]
        place = ranked.index("ours (D-Score)") + 1
        gain = ours.figures[name] - none.figures[name]
        order = f"best is {ranked[0]}, ours is {_ordinal(place)} of {len(ranked)}"
        sentences.append(f"{_NAMES[name]}: {order}, {_gain(gain)}")
    corner = (ours.a - none.a)[:, -1]
    sentences.append(f"lower right a_i: ours {_gain(corner)}; the paper reports +0.117 on CIFAR-10")
    claim = "The paper has *ours* first in D and v_robust and second in v_fitness. Here: "
    return claim + "; ".join(sentences) + "."


def _ordinal(place: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(place, f"{place}th")


def _gain(values: Array) -> str:
    return f"{values.mean():+.3f} ± {deviation(values):.3f} against none"
