"""Regions whose deletion raises the accuracy: the paper prunes by them; how many are more than chance?

Deleting a region changes some answers from right to wrong and others from wrong to right. Whether it helps is a matter
of these examples alone (McNemar's test); the others say nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.study import page
from benchmarks.study.measured import Measured, Recipe
from benchmarks.study.prediction import example_halves
from benchmarks.study.scores import GRIDS, Array
from pytest_dscore.figure import Figure

LEVEL = 0.05
CONFIDENCE = 0.95
OPERATOR = "delete"


@dataclasses.dataclass(frozen=True)
class Region:
    """What deleting one region of one network does.

    Parameters
    ----------
    recipe
        Of the network.
    n, row, column
        Row 0 is the top, column 0 the left.
    mended, broken
        Examples that only the mutant, and only the network, gets right.
    examples
        Test examples in all.
    halves
        Gain in accuracy on two disjoint halves of the examples.
    """

    recipe: Recipe
    n: int
    row: int
    column: int
    mended: int
    broken: int
    examples: int
    halves: tuple[float, float]

    @property
    def gain(self) -> float:
        """Accuracy of the mutant minus that of the network."""
        return (self.mended - self.broken) / self.examples

    @property
    def p_value(self) -> float:
        """One-sided exact McNemar test that deletion does not help."""
        return float(stats.binom.sf(self.mended - 1, self.mended + self.broken, 0.5))

    def interval(self, confidence: float = CONFIDENCE) -> Figure:
        """Gain with an exact interval, given how many examples change.

        Clopper and Pearson's for the share of mended among changed examples, times the share of changed ones, which is
        taken as it is.
        """
        changed = self.mended + self.broken
        if changed == 0:
            return Figure(0.0, 0.0, 0.0, True, confidence)
        ends = stats.binomtest(self.mended, changed).proportion_ci(confidence)
        low, high = (float(2 * end - 1) * changed / self.examples for end in (ends.low, ends.high))
        return Figure(self.gain, low, high, True, confidence)


def regions(networks: Sequence[Measured]) -> list[Region]:
    """Every region of every network and grid."""
    return [
        _region(network, n, index, mutant)
        for network in networks
        for n in GRIDS
        if (n, OPERATOR, 0) in network.mutants
        for index, mutant in enumerate(network.mutants[n, OPERATOR, 0])
    ]


def _region(network: Measured, n: int, index: int, mutant: NDArray[np.bool_]) -> Region:
    change = mutant.astype(np.int64) - network.clean
    halves = example_halves(len(change))
    one, other = (float(half @ change / half.sum()) for half in halves)
    mended, broken = int((change == 1).sum()), int((change == -1).sum())
    return Region(network.recipe, n, index // n, index % n, mended, broken, len(change), (one, other))


def holm(p_values: Array) -> Array:
    """Adjusted p-values; below a level they keep the chance of any false one below it, whatever the dependence."""
    order = np.argsort(p_values, kind="stable")
    scaled = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(scaled))
    return adjusted


def benjamini_hochberg(p_values: Array) -> Array:
    """Adjusted p-values; below a level they keep the expected share of false ones below it (positive dependence)."""
    return np.asarray(stats.false_discovery_control(p_values, method="bh"))


def by_chance(found: Sequence[Region], level: float = LEVEL) -> tuple[float, float]:
    """What chance would give if no deletion had any net effect, each changed example mended with probability 1/2.

    Returns
    -------
    helpful : float
        Expected number of regions that gain.
    below : float
        Expected number with an unadjusted p-value of at most `level`; fewer than `level` of all, for counts are whole.
    """
    changed = np.array([region.mended + region.broken for region in found])
    gains = np.asarray(stats.binom.sf(np.floor(changed / 2), changed, 0.5))
    # The smallest number of mended ones whose p-value is at most the level.
    edge = stats.binom.isf(level, changed, 0.5) + 1
    return float(gains.sum()), float(np.sum(stats.binom.sf(edge - 1, changed, 0.5)))


def report(networks: Sequence[Measured], most: int = 30) -> str:
    """Write the section on pruning.

    Parameters
    ----------
    networks
    most
        Lines of the table.

    Returns
    -------
    str
        Markdown.
    """
    found = regions(networks)
    if not found:
        return ""
    p_values = np.array([region.p_value for region in found])
    adjusted = benjamini_hochberg(p_values)
    strict = holm(p_values)
    words = _words(found, p_values, adjusted, strict, len(networks))
    section = page.section("Regions whose deletion helps", words, _table(found, p_values, adjusted, strict, most))
    return section + "\n"


def _words(found: Sequence[Region], p_values: Array, adjusted: Array, strict: Array, networks: int) -> str:
    helpful = [region for region in found if region.gain > 0]
    chance, below = by_chance(found)
    false, family = int((adjusted <= LEVEL).sum()), int((strict <= LEVEL).sum())
    grids = page.joined(str(n) for n in sorted({region.n for region in found}))
    first = (
        f"{networks} networks have {len(found):,} regions (n = {grids}, operator "
        f"`{OPERATOR}`). Deleting {len(helpful)} of them ({len(helpful) / len(found):.0%}) raises the accuracy; if no "
        f"deletion had any effect on balance, chance alone would make it {chance:,.0f}. Taken one by one "
        f"{int((p_values <= LEVEL).sum())} gain with p of at most {LEVEL:g}, where chance would give {below:,.0f}. Most"
        " deletions hurt, so these numbers of chance are upper bounds."
    )
    if false:
        kept = (
            f"Corrected for having looked at all regions, {false} {'is' if false == 1 else 'are'} left with a rate of "
            f"false discoveries of {LEVEL:.0%} (Benjamini and Hochberg), {family} by Holm's stricter count."
        )
    else:
        kept = "**Corrected for having looked at all regions, none is left**: what is seen is what chance would show."
    return "\n\n".join(page.wrapped(text) for text in (first, f"{kept} {_other_half(found)}"))


def _other_half(found: Sequence[Region]) -> str:
    """What is left of a gain on examples that had no say in finding it."""
    seen, other = [], []
    for region in found:
        for here, there in (region.halves, region.halves[::-1]):
            if here > 0:
                seen.append(here)
                other.append(there)
    if not seen:
        return ""
    again, left = float(np.mean(np.array(other) > 0)), float(np.mean(other))
    change = f"gain {100 * left:.2f}" if left > 0 else f"lose {-100 * left:.2f}"
    return (
        f"Picked by a gain on one half of the test examples ({100 * np.mean(seen):.2f} points on average), regions "
        f"{change} points on the other half, where {again:.0%} of them still gain: a region to prune must be found on "
        "other examples than those it is judged by."
    )


def _table(found: Sequence[Region], p_values: Array, adjusted: Array, strict: Array, most: int) -> str:
    order = [int(i) for i in np.lexsort((-np.array([region.gain for region in found]), p_values))]
    helpful = [i for i in order if found[i].gain > 0]
    rows = [
        (
            *(_named(found[i].recipe), found[i].n, f"({found[i].row}, {found[i].column})"),
            *(found[i].mended, found[i].broken, _points(found[i].interval())),
            *(f"{p:.2g}" for p in (p_values[i], adjusted[i], strict[i])),
        )
        for i in helpful[:most]
    ]
    columns = ("network", "n", "region", "mended", "broken", "gain, points", "p", "Benjamini-Hochberg", "Holm")
    note = page.wrapped(
        f"The {len(rows)} of {len(helpful)} with the smallest p-values (one-sided exact McNemar test). The gain in "
        "accuracy with its exact 95 % interval, *not* corrected for the choice of these regions; the two adjusted "
        "p-values are. Mended: examples that only the mutant gets right; broken: only the network."
    )
    return f"{note}\n\n{page.table(columns, rows)}" if rows else ""


def _points(figure: Figure) -> str:
    return page.interval(100 * figure.value, 100 * figure.lower, 100 * figure.upper, "+.2f")


def _named(recipe: Recipe) -> str:
    return f"{recipe.dataset} {recipe.architecture}, {recipe.augmentation}, {recipe.epochs} epochs, seed {recipe.seed}"
