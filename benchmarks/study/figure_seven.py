"""The paper's Figure 7 here: D against the probability p of score-guided augmentation.

Source: Zhang et al. 2023, Figure 7. The paper says that the p of its formula gives the highest D in all cases, and lies
where D turns from rising to falling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
from matplotlib.figure import Figure as Picture
from numpy.typing import NDArray

from benchmarks.study import page
from benchmarks.study.measured import Recipe
from benchmarks.study.table_six import PASSES, SCHEDULES, Row, Schedule, deviation, row
from benchmarks.study.work import Result, Task

Array = NDArray[np.float64]

PROBABILITIES = tuple(tenth / 10 for tenth in range(11))
SMALLEST_PROBABILITIES = (0.0, 0.3, 1.0)
SEEDS = (0, 1)
EXAMPLES = 2000

_CURVES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "score": ("D", "C0"),
        "accuracy": ("accuracy", "C1"),
        "unseen": ("accuracy under unseen transforms", "C2"),
        "share": ("v_robust / g", "C3"),
    }
)


def tasks(
    schedules: Mapping[str, Schedule] = SCHEDULES,
    probabilities: Sequence[float] = PROBABILITIES,
    seeds: Sequence[int] = SEEDS,
    examples: int = EXAMPLES,
) -> dict[str, dict[float | None, list[Task]]]:
    """What is to be trained: by data set and p the tasks of all seeds; under None those with the p of the formula."""
    return {
        dataset: {
            p: [Task(_recipe(dataset, plan, p, seed), PASSES, examples) for seed in seeds]
            for p in (*probabilities, None)
        }
        for dataset, plan in schedules.items()
    }


def _recipe(dataset: str, plan: Schedule, p: float | None, seed: int) -> Recipe:
    name = "ours" if p is None else f"dscore-{p:g}" if p else "none"
    return Recipe(dataset, plan.architecture, name, plan.epochs, seed, plan.examples)


def report(results: Mapping[str, Mapping[float | None, Sequence[Result]]], plots: Path) -> str:
    """Write the section and its picture.

    Parameters
    ----------
    results
        As `tasks`, each task done.
    plots
        Folder of the picture; the page is taken to lie beside it.

    Returns
    -------
    str
        Markdown.
    """
    found = {name: {p: row(networks) for p, networks in of_set.items()} for name, of_set in results.items()}
    curves = {name: {p: one for p, one in of_set.items() if p is not None} for name, of_set in found.items()}
    chosen = {name: of_set[None] for name, of_set in found.items()}
    image = page.save(_picture(curves, chosen), plots / "figure-seven.svg")
    lines = [_line(name, curves[name], chosen[name]) for name in found]
    columns = ("data", "chosen p", "D there", "p of highest D", "D there", "p of highest unseen", "chosen is best")
    return page.section(
        "D against p: the paper's Figure 7",
        page.wrapped(_introduction(results)),
        image,
        page.table(columns, lines),
        page.wrapped(_verdict(curves, chosen)),
    )


def _introduction(results: Mapping[str, Mapping[float | None, Sequence[Result]]]) -> str:
    seeds = max(len(networks) for of_set in results.values() for networks in of_set.values())
    return (
        "Networks and D (`bounded`) as in the table above, trained with `DScoreAugment(p)` at each p; lines are means "
        f"over {seeds} seed(s), dots single networks. The dashed line is p = v_robust / g of the network without "
        "augmentation, from validation images; diamonds are networks trained with it. Training is short: a p near 1 "
        "pads every image to twice its size, which a longer training might bear better."
    )


def _line(name: str, curve: Mapping[float, Row], chosen: Row) -> list[str]:
    best, unseen = _highest(curve, "score"), _highest(curve, "unseen")
    return [
        name,
        f"{np.mean(chosen.p):.2f}",
        _cell(chosen.figures["score"]),
        f"{best:g}",
        _cell(curve[best].figures["score"]),
        f"{unseen:g}",
        "yes" if _is_highest(curve, chosen) else "no",
    ]


def _highest(curve: Mapping[float, Row], name: str) -> float:
    return max(curve, key=lambda p: float(curve[p].figures[name].mean()))


def _is_highest(curve: Mapping[float, Row], chosen: Row) -> bool:
    """Whether no p of the grid has a higher mean D than the p of the formula."""
    best = curve[_highest(curve, "score")].figures["score"].mean()
    return bool(chosen.figures["score"].mean() >= best)


def _cell(values: Array) -> str:
    return f"{values.mean():.3f} ± {deviation(values):.3f}"


def _verdict(curves: Mapping[str, Mapping[float, Row]], chosen: Mapping[str, Row]) -> str:
    highest = [name for name in curves if _is_highest(curves[name], chosen[name])]
    gaps = {
        name: float(curve[_highest(curve, "score")].figures["score"].mean() - chosen[name].figures["score"].mean())
        for name, curve in curves.items()
    }
    short = "; ".join(f"{name} {gap:+.3f}" for name, gap in gaps.items())
    return (
        "The paper says that its p gives the highest D in all cases. Here it does on "
        f"{page.joined(highest) if highest else 'none'} of {len(curves)} data sets. Highest mean D over the grid of p "
        f"less mean D at the chosen p: {short}. The highest of many means is itself partly luck of the seeds."
    )


def _picture(curves: Mapping[str, Mapping[float, Row]], chosen: Mapping[str, Row]) -> Picture:
    picture = page.canvas(max(3.6 * len(curves), 4.8), 3.8)
    for panel, (name, curve) in enumerate(curves.items(), 1):
        axes = picture.add_subplot(1, len(curves), panel)
        for key, (label, colour) in _CURVES.items():
            values = {p: _plotted(one, key) for p, one in curve.items()}
            axes.plot(list(curve), [seeds.mean() for seeds in values.values()], color=colour, label=label)
            for p, seeds in values.items():
                axes.plot([p] * len(seeds), seeds, ".", color=colour, alpha=0.5)
            axes.plot(chosen[name].p, _plotted(chosen[name], key), "D", color=colour, markersize=4)
        axes.axvline(float(np.mean(chosen[name].p)), color="0.5", linestyle="--", linewidth=1)
        axes.set(title=name, xlabel="p", ylim=(0, 1))
        axes.grid(alpha=0.3)
        if panel == 1:
            picture.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize="small")
    return picture


def _plotted(one: Row, key: str) -> Array:
    """A figure that fits between 0 and 1: v_robust as the share of its worst case that p is made of."""
    return one.figures["v_robust"] / one.bound if key == "share" else one.figures[key]
