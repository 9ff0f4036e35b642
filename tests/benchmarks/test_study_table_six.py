"""The study's table and figure against figures worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.study import figure_seven, table_six
from benchmarks.study.measured import Hits, Measured, Recipe
from benchmarks.study.work import Result

EXAMPLES = 10
DEFAULT_PAD = 9


def hits(*right: int) -> Hits:
    """One row for each number of examples that are right, of ten."""
    return np.arange(EXAMPLES) < np.array(right)[:, None]


def result(clean: int, f: list[int], a: list[int], p: float | None = None, unseen: int | None = None) -> Result:
    changed = {} if unseen is None else {f"{kind}-1": hits(unseen)[0] for kind in ("crop", "rotate")}
    measured = Measured(
        recipe=Recipe("digits", "plain", "none", 2, 0, 1000),
        labels=np.arange(EXAMPLES),
        classes=10,
        clean=hits(clean)[0],
        mutants={(3, "delete", 0): hits(*f)},
        shifts={(3, DEFAULT_PAD): hits(*a), (3, 5): hits(*[9] * 9)},
        unseen=changed,
        size=28,
    )
    return Result(measured, p)


#: Accuracy 0.8; two deletions hurt, by 0.4 and 0.1; shifted accuracies 0.5 but for 0.2 and 0.8.
UNEVEN = result(8, [4, 7, 8, 8, 8, 9, 8, 8, 8], [5, 5, 2, 5, 5, 5, 8, 5, 5], unseen=6)
EVEN = result(8, [8] * 9, [8] * 9, unseen=7)


def test_the_figures_of_a_network() -> None:
    f_tilde = [0.8, 0.2, 0, 0, 0, 0, 0, 0, 0]
    a = [0.5, 0.5, 0.2, 0.5, 0.5, 0.5, 0.8, 0.5, 0.5]
    a_tilde = [value / 4.5 for value in a]
    terms = [
        math.sqrt(sum((share - 1 / 9) ** 2 for share in f_tilde)),
        math.sqrt(sum((share - 1 / 9) ** 2 for share in a_tilde)),
        math.sqrt(7 * 0.3**2 + 0.6**2),
    ]
    fitness = 0.8 * (1 - sum((f - share) ** 2 for f, share in zip(f_tilde, a_tilde, strict=True)) / 2)
    bound = 2 * math.sqrt(8 / 9) + 3 * 0.9
    found = table_six.scalars(UNEVEN.measured)
    assert found.accuracy == pytest.approx(0.8)
    assert found.v_robust == pytest.approx(sum(terms))
    assert found.v_fitness == pytest.approx(fitness)
    assert found.score == pytest.approx(fitness * (1 - sum(terms) / bound))
    assert table_six.scalars(EVEN.measured).score == pytest.approx(0.8)


def test_a_row_of_two_seeds() -> None:
    row = table_six.row([UNEVEN, EVEN])
    assert row.f_tilde[0].tolist() == pytest.approx([0.8, 0.2, 0, 0, 0, 0, 0, 0, 0])
    assert row.f_tilde[1].tolist() == pytest.approx([1 / 9] * 9)
    assert row.a[:, 2].tolist() == [0.2, 0.8]
    assert row.figures["unseen"].tolist() == pytest.approx([0.6, 0.7])
    assert row.p == ()


def test_the_cells_of_a_row() -> None:
    table = table_six.table({"none": table_six.row([EVEN, result(6, [6] * 9, [4] * 8 + [6], unseen=5)])})
    cells = [cell.strip() for cell in table.splitlines()[-1].strip("|").split("|")]
    assert cells[0] == "none"
    # Deviations with one degree of freedom: a difference over the root of 2.
    assert cells[1] == "70.00 ± 14.14"
    assert cells[2] == "60.0 60.0 60.0<br>60.0 60.0 60.0<br>60.0 60.0 70.0<br>(± 28.3)"
    assert cells[3] == "11.1 11.1 11.1<br>11.1 11.1 11.1<br>11.1 11.1 11.1<br>(± 0.0)"
    assert cells[-1] == "60.00 ± 14.14"


def rows(ours: Result) -> list[list[Result]]:
    return [[UNEVEN, UNEVEN] for _ in range(5)] + [[ours, ours]]


def test_the_section_says_where_ours_stands() -> None:
    better = Result(EVEN.measured, 0.25)
    text = " ".join(table_six.report({"digits": rows(better)}).split())
    assert "ours (D-Score), p = 0.25 ± 0.00" in text
    assert "D: best is ours (D-Score), ours is first of 6, +0.4" in text
    assert "v_robust: best is ours (D-Score), ours is first of 6, -1.8" in text
    assert "unseen: best is ours (D-Score), ours is first of 6, +0.100 ± 0.000 against none" in text
    assert "lower right a_i: ours +0.300 ± 0.000 against none" in text
    assert "10 test images" in text


def test_ours_may_come_last() -> None:
    worse = result(5, [5] * 8 + [1], [1] * 9, p=0.5, unseen=1)
    text = " ".join(table_six.report({"digits": rows(worse)}).split())
    assert "accuracy: best is none, ours is 6th of 6, -0.300 ± 0.000 against none" in text


def test_the_plan_has_every_row_and_seed() -> None:
    plan = table_six.tasks()
    assert list(plan) == ["digits", "mnist", "cifar10"]
    for of_set in plan.values():
        assert [row[0].recipe.augmentation for row in of_set] == ["none", "rhf", "rvf", "rr", "rhv", "ours"]
        assert all(len({task.recipe.seed for task in row}) == 3 for row in of_set)


def curve(chosen: Result) -> dict[float | None, list[Result]]:
    return {0.0: [UNEVEN, UNEVEN], 0.5: [EVEN, UNEVEN], 1.0: [UNEVEN, UNEVEN], None: [chosen, chosen]}


def test_the_figure_says_whether_the_chosen_p_is_best(tmp_path: Path) -> None:
    text = " ".join(figure_seven.report({"digits": curve(Result(EVEN.measured, 0.3))}, tmp_path).split())
    assert "| digits | 0.30 | 0.800 ± 0.000 | 0.5 | 0.57" in text
    assert "Here it does on digits" in text
    text = " ".join(figure_seven.report({"digits": curve(Result(UNEVEN.measured, 0.3))}, tmp_path).split())
    assert "Here it does on none of 1 data sets" in text


def test_the_picture_is_the_same_each_time(tmp_path: Path) -> None:
    pictures = []
    for folder in ("one", "two"):
        figure_seven.report({"digits": curve(Result(EVEN.measured, 0.3))}, tmp_path / folder)
        pictures.append((tmp_path / folder / "figure-seven.svg").read_bytes())
    assert pictures[0] == pictures[1]
    assert b"<dc:date>" not in pictures[0]


def test_at_p_0_the_figure_takes_the_tables_networks() -> None:
    of_table = {task.recipe for row in table_six.tasks()["cifar10"] for task in row}
    plan = figure_seven.tasks()["cifar10"]
    shared = [task.recipe for p in (0.0, None) for task in plan[p]]
    assert set(shared) <= of_table
    assert {task.recipe.augmentation for task in plan[0.3]} == {"dscore-0.3"}
