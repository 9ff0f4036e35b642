"""The section on validity: what the rank correlations of `prediction` say, in tables, pictures and words."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.study import page, prediction
from benchmarks.study.measured import Measured
from benchmarks.study.prediction import (
    GAIN,
    LEAD,
    PARTIAL,
    RHO,
    Choice,
    Estimates,
    Population,
    Splits,
)
from benchmarks.study.scores import (
    ACCURACY_NAME,
    DEFAULT,
    DEFAULT_NAME,
    GRIDS,
    OPERATORS,
    PADDED,
    PADS,
    Array,
    Setting,
    form_name,
)

GOAL = 0.9
HALF = Setting(3, "delete", 0.5)
#: Short names of what stands in the first tables.
HEADLINE = (
    *("accuracy", "bounded", "ratio", "relative", "robust", "robust relative", "fitness", "no fitness relative"),
    *("mean a", "mean f", "mean hit", f"mean hit; {HALF}", f"no fitness relative; {HALF}", f"bounded; {HALF}"),
)

Results = Sequence[tuple[Population, Estimates]]


def report(populations: Mapping[str, Sequence[Measured]], plots: Path, draws: int = 1000, splits: int = 200) -> str:
    """Write the section on validity.

    Parameters
    ----------
    populations
        Networks by the name of their population; every one was measured on the same passes.
    plots
        Folder of the pictures; the page is taken to lie beside it.
    draws, splits
        Resamples of every interval; random halves.

    Returns
    -------
    str
        Markdown.
    """
    found = prediction.prepare(populations)
    results = [(population, prediction.estimate(population, draws)) for population in found]
    choices = [
        Chosen(
            "could be the default" if candidates else "any",
            prediction.chosen_on_halves(found, draws, candidates=candidates),
            prediction.chosen_elsewhere(found, draws, candidates=candidates),
            prediction.many_splits(found, splits, candidates=candidates),
        )
        for candidates in (True, False)
    ]
    pictures = [_picture(population, f"mean hit; {DEFAULT}", plots) for population in found]
    parts = [
        page.section("Validity: verdict", verdict(results, choices[0])),
        page.section("The networks", _NETWORKS, _networks(results)),
        page.section("The score beside accuracy", _BESIDE.format(draws=draws), _beside(results), *pictures),
        page.section("Family by family", _FAMILY, *(_by_family(population) for population in found)),
        page.section("Grid and operator", _GRID, *(_grid(*result) for result in results)),
        page.section("Pad", _PAD, *(_pads(*result) for result in results)),
        page.section("Other forms", _OTHER, _others(results)),
        page.section("Chosen on one half, judged on the other", _CHOSEN, _judged(choices), _splits(found, choices)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


class Chosen(NamedTuple):
    """What was chosen among some variants, in three ways; see `prediction`."""

    among: str
    halves: Choice
    elsewhere: list[Choice]
    splits: Splits


_NETWORKS = page.wrapped(
    "The target is a network's mean accuracy under the unseen transforms, every family counting alike. *Ceiling* is "
    "the rank correlation of the target with itself, from two disjoint halves of the examples: about what a perfect "
    "score, made of as many examples, would reach."
)
_BESIDE = page.wrapped(
    "Spearman's rank correlation with the target; score and target from disjoint halves of the examples, mean of both "
    "ways. First interval (95 %, percentiles of {draws:,} draws): networks drawn anew, those that differ by their seed "
    "together. *And examples*: both drawn anew, which adds the examples' noise a second time, so that this interval "
    "lies a little low. *Same examples*: score and target from all examples at once, for comparison only. "
    "*Repeatable*: the score's own rank correlation between the halves; *without noise*: what endless examples might "
    "show, by Spearman's correction for attenuation (approximate). *Lead*: over accuracy on the same draws. *Given "
    "accuracy*: the partial rank correlation, what the score knows that accuracy does not; 0 for none. v_robust is "
    "taken with its sign turned, so that all are larger-is-better. The rows at half the pad were put into this table "
    "when 36 of 64 networks had been seen: judge them by the choice on halves below."
)
_FAMILY = page.wrapped("Rank correlation with the mean accuracy under each family alone.")
_GRID = page.wrapped("Rank correlation with the target at the default pad, with its interval over networks.")
_PAD = page.wrapped(
    "Pads as multiples of the default, one region's width; operator `delete`. Rank correlation with its interval over "
    "networks."
)
_OTHER = page.wrapped(
    f"All registered variants that are in no table above; settings are the default's ({DEFAULT}) unless named. *Gain* "
    "is the difference to the spec's D. The intervals are of one variant each: of so many, some exclude 0 by chance, "
    "and the best of them flatters itself. What is left of it on other networks stands below. Weights are of features, "
    "attention and relative drop, in that order."
)
_CHOSEN = page.wrapped(
    "One variant is chosen for all populations together, by its mean rank correlation on one half of the networks of "
    "each (cut within architectures, networks that differ by their seed kept together), and judged on the other "
    "halves. *Elsewhere*: chosen on all networks of the other populations and judged on all of this one. First among "
    "the variants that *could be the default*: they lie in [0, 1] and rest on both experiments, mutants and shifts; "
    "then among *any*."
)


def verdict(results: Results, chosen: Chosen) -> str:
    """Say in words what the figures say; every sentence is decided by them."""
    sentences = [sentence for result in results for sentence in _on_population(*result)]
    sentences += [_on_default(chosen.halves, chosen.elsewhere), _on_settings(results)]
    return page.bullets(sentence for sentence in sentences if sentence)


def _on_population(population: Population, estimates: Estimates) -> list[str]:
    default, accuracy = population.index(DEFAULT_NAME), population.index(ACCURACY_NAME)
    rho, lead = estimates.figure(RHO, default), estimates.figure(LEAD, default)
    beside = f"plain accuracy {estimates.figure(RHO, accuracy):.2f}, lead {lead:+.2f}"
    if lead.lower > 0:
        says = "more than accuracy, clearly"
    elif lead.upper < 0:
        says = "less than accuracy, clearly"
    else:
        says = "not clearly more or less than accuracy"
    if rho.value >= GOAL:
        goal = f"The goal of {GOAL:g} is met" + ("" if rho.lower >= GOAL else ", though not by the whole interval")
    else:
        goal = f"The goal of {GOAL:g} is missed" + ("" if rho.upper < GOAL else ", though the interval contains it")
    partial = estimates.figure(PARTIAL, default)
    knows = "knows something that accuracy does not" if partial.lower > 0 else "does not clearly add to it"
    first = f"**{population.name}**: the spec's D (`bounded`) predicts the target with a rank correlation of {rho:.2f}"
    return [
        _on_mean(population, estimates),
        f"{first} ({beside}): it says {says}. {goal}. Given accuracy it {knows} (partial {partial:.2f}).",
        _on_robustness(population, estimates),
        _on_shifts(population, estimates),
    ]


def _on_mean(population: Population, estimates: Estimates) -> str:
    """Form ``mean``, which the plugin took for its default after this study."""
    name = f"mean hit; {DEFAULT}"
    if name not in [variant.name for variant in population.variants]:
        return ""
    rho, lead, gain = (estimates.figure(which, population.index(name)) for which in (RHO, LEAD, GAIN))
    over = "clearly above" if lead.lower > 0 else "clearly below" if lead.upper < 0 else "not clearly above or below"
    against = "clearly above" if gain.lower > 0 else "clearly below" if gain.upper < 0 else "not clearly apart from"
    return (
        f"**{population.name}**: D of form `mean` (*mean hit*, the plugin's default since this study) predicts the "
        f"target with a rank correlation of {rho:.2f}: {over} plain accuracy ({lead:+.2f}), {against} the spec's D "
        f"({gain:+.2f})."
    )


def _on_robustness(population: Population, estimates: Estimates) -> str:
    """Whether a smaller v_robust goes with more accuracy under changes."""
    alone = [(short, estimates.figure(RHO, v)) for short, v in _shown(population, ("robust", "robust relative"))]
    if not alone:
        return ""
    rho = alone[0][1]
    if rho.upper < 0:
        says = "**punishes** what it should reward"
    elif rho.lower > 0:
        says = "points the right way"
    else:
        says = "says nothing clear"
    figures = page.joined(f"{rho:.2f}{' with shares in its third term' * (i > 0)}" for i, (_, rho) in enumerate(alone))
    return f"**{population.name}**: v_robust alone, its sign turned, {says} ({figures})."


def _on_shifts(population: Population, estimates: Estimates) -> str:
    """D beside its own shifts without mutants: what do mutants add to this target?"""
    name = f"mean a; {DEFAULT}"
    if name not in [variant.name for variant in population.variants]:
        return ""
    gain = estimates.figure(GAIN, population.index(name))
    way = "better than" if gain.lower > 0 else "worse than" if gain.upper < 0 else "about as well as"
    return (
        f"**{population.name}**: the mean accuracy under the score's own shifts, without any mutant, predicts "
        f"the target {way} the spec's D ({gain:+.2f})."
    )


def beaten(choice: Choice) -> bool:
    """Whether the default is beaten clearly: the held-out interval of the gain is above 0 in every population."""
    return choice.name != DEFAULT_NAME and all(judged.gain.lower > 0 for judged in choice.held_out.values())


def _on_default(choice: Choice, elsewhere: Sequence[Choice]) -> str:
    if choice.name == DEFAULT_NAME:
        return "On one half of the networks the default itself was chosen: it is not beaten."
    gains = page.joined(f"{judged.gain:+.2f} on {name}" for name, judged in choice.held_out.items())
    chosen = (
        f"On one half of the networks *{choice.name}* was chosen; on the other halves it gains {gains} over the default"
    )
    if len(choice.held_out) > 1:
        chosen += f", on average {choice.together:+.2f}"
    others = [
        f"*{other.name}*, chosen without {name}, gains {judged.gain:+.2f} there"
        for other in elsewhere
        for name, judged in other.held_out.items()
    ]
    alone = f" On whole populations: {'; '.join(others)}." if others else ""
    return f"{chosen}. {_judgement(choice, elsewhere)}{alone}"


def _judgement(choice: Choice, elsewhere: Sequence[Choice]) -> str:
    if beaten(choice):
        return "**The spec's default is beaten clearly**: every interval is above 0."
    if elsewhere and all(beaten(other) for other in elsewhere):
        return "An interval of the halves contains 0; **on whole populations the spec's default is beaten clearly**."
    if choice.together.lower > 0:
        return "**The spec's default is beaten on average, not clearly on every population** (an interval contains 0)."
    return "**The spec's default is not beaten clearly** (an interval contains 0)."


def _on_settings(results: Results) -> str:
    """The best grid, operator, pad and form, everything else at its default."""
    rivals = {
        "grid": [f"bounded; {Setting(n, 'delete', 1.0)}" for n in GRIDS],
        "operator": [f"bounded; {Setting(3, operator, 1.0)}" for operator in OPERATORS],
        "pad": [f"bounded; {Setting(3, 'delete', pad)}" for pad in PADS],
        "form": [f"{form}; {DEFAULT}" for form in ("bounded", "ratio", "relative")],
    }
    best = []
    for what, names in rivals.items():
        means = {name: _mean_rho(results, name) for name in names if name in _names(results)}
        if means:
            name = max(means, key=lambda name: means[name])
            best.append(f"{what}: *{name}* ({means[name]:.2f}; {_gains(results, name)})")
    default = f"mean rank correlation over the populations; the default's is {_mean_rho(results, DEFAULT_NAME):.2f}"
    return f"Best with all else at its default ({default}): {'; '.join(best)}."


def _gains(results: Results, name: str) -> str:
    if name == DEFAULT_NAME:
        return "the default"
    gains = [(estimates.figure(GAIN, population.index(name)), population.name) for population, estimates in results]
    return "gain " + page.joined(f"{gain:+.2f} on {where}" for gain, where in gains)


def _names(results: Results) -> list[str]:
    return [variant.name for variant in results[0][0].variants]


def _mean_rho(results: Results, name: str) -> float:
    return float(np.mean([estimates.value[RHO, population.index(name)] for population, estimates in results]))


def _networks(results: Results) -> str:
    rows = []
    for population, estimates in results:
        clean = population.shared.scores[0, population.shared.baseline, 0]
        aim = population.shared.target[0, 0]
        kinds = Counter(recipe.architecture for recipe in population.recipes)
        rows.append(
            (
                *(population.name, len(population.networks), len(set(population.groups)), len(kinds)),
                len(population.networks[0].clean),
                *(f"{values.min():.2f} to {values.max():.2f}" for values in (clean, aim)),
                f"{estimates.ceiling:.3f}",
            )
        )
    columns = ("population", "networks", "recipes", "architectures", "examples", "accuracy", "target", "ceiling")
    return page.table(columns, rows)


def _long(short: str) -> str:
    return short if short == ACCURACY_NAME or ";" in short else f"{short}; {DEFAULT}"


def _shown(population: Population, shorts: Iterable[str] = HEADLINE) -> list[tuple[str, int]]:
    """Short name and position of the variants that there are."""
    names = [variant.name for variant in population.variants]
    return [(short, names.index(_long(short))) for short in shorts if _long(short) in names]


def _beside(results: Results) -> str:
    rows = []
    for population, e in results:
        for short, v in _shown(population):
            same = f"{e.shared[RHO, v]:.2f}"
            nested = f"[{e.nested_lower[RHO, v]:.2f}, {e.nested_upper[RHO, v]:.2f}]"
            lead, partial = f"{e.figure(LEAD, v):+.2f}", f"{e.figure(PARTIAL, v):.2f}"
            if short == ACCURACY_NAME:
                lead, partial = "", ""
            noise = f"{e.repeatable[v]:.2f}", f"{e.without_noise(v):.2f}"
            rows.append((population.name, _bold(short), f"{e.figure(RHO, v):.2f}", nested, same, *noise, lead, partial))
    columns = ("population", "figure", "rank correlation", "and examples", "same examples", "repeatable")
    return page.table((*columns, "without noise", "lead", "given accuracy"), rows)


def _bold(short: str) -> str:
    if short == "mean hit":
        return f"**{short}** (form `mean`)"
    return f"**{short}** (the spec's D)" if short == "bounded" else short


def _by_family(population: Population) -> str:
    shown = _shown(population)
    rho = prediction.by_family(population, [population.variants[v] for _, v in shown])
    rows = [(_bold(short), *(f"{rho[name][i]:.2f}" for name in rho)) for i, (short, _) in enumerate(shown)]
    return page.table((population.name, *rho), rows)


def _grid(population: Population, estimates: Estimates) -> str:
    rows = []
    for form, n in itertools.product(("bounded", "ratio", "relative"), GRIDS):
        names = [f"{form}; {Setting(n, operator, 1.0)}" for operator in OPERATORS]
        rows.append((form, n, *_cells(population, estimates, names)))
    return page.table((population.name, "n", *OPERATORS), rows)


def _pads(population: Population, estimates: Estimates) -> str:
    rows = []
    for form, n in itertools.product([form_name(form) for form in PADDED], GRIDS):
        names = [f"{form}; {Setting(n, 'delete', pad)}" for pad in PADS]
        rows.append((form, n, *_cells(population, estimates, names)))
    return page.table((population.name, "n", *(f"pad {pad:g}" for pad in PADS)), rows)


def _cells(population: Population, estimates: Estimates, names: Sequence[str]) -> list[str]:
    known = {variant.name: v for v, variant in enumerate(population.variants)}
    return [f"{estimates.figure(RHO, known[name]):.2f}" if name in known else "" for name in names]


def _others(results: Results) -> str:
    rows = []
    for v, variant in enumerate(results[0][0].variants):
        if variant.group in ("form", "weights", "mean"):
            figures = [f"{e.figure(row, v):{spec}}" for _, e in results for row, spec in ((RHO, ".2f"), (GAIN, "+.2f"))]
            rows.append((variant.name.removesuffix(f"; {DEFAULT}"), *figures, variant.principle))
    columns = [f"{population.name}: {what}" for population, _ in results for what in ("rank correlation", "gain")]
    return page.table(("variant", *columns, "principle"), rows)


def _judged(choices: Sequence[Chosen]) -> str:
    rows = []
    for among, halves, elsewhere, _ in choices:
        for where, found in (("other halves", halves), *(("elsewhere", other) for other in elsewhere)):
            for name, judged in found.held_out.items():
                figures = [f"{figure:.2f}" for figure in (judged.rho, judged.default, judged.accuracy)]
                gains = [f"{figure:+.2f}" for figure in (judged.gain, judged.lead, judged.default_lead)]
                rows.append((among, where, name, found.name, f"{found.inside:.2f}", *figures, *gains))
    columns = ("among", "chosen", "judged on", "variant", "where it was chosen", "held out", "default", "accuracy")
    return page.table((*columns, "gain over default", "lead over accuracy", "default's lead over accuracy"), rows)


def _splits(populations: Sequence[Population], choices: Sequence[Chosen]) -> str:
    rows, often = [], []
    for among, _, _, splits in choices:
        for population, (chosen, default, accuracy) in zip(populations, splits.held_out, strict=True):
            figures = [_spread(values) for values in (splits.inside, chosen, default, accuracy)]
            better = f"{(chosen > default).mean():.0%}"
            rows.append((among, population.name, *figures, _spread(chosen - default, "+.2f"), better))
        counts = Counter(splits.names).most_common(4)
        names = "; ".join(f"*{name}* {count / len(splits.names):.0%}" for name, count in counts)
        often.append(f"Chosen most often ({among}): {names}.")
    columns = ("among", "judged on", "where it was chosen", "chosen", "default", "accuracy", "chosen - default")
    note = (
        f"The same with {len(choices[0].splits.names)} random halves: median rank correlation on the half that had no "
        "say, in brackets the 5th and 95th percentile over the splits (they share their networks, so this is no "
        f"interval of confidence). {' '.join(often)}"
    )
    return f"{page.wrapped(note)}\n\n{page.table((*columns, 'chosen is better'), rows)}"


def _spread(values: Array, spec: str = ".2f") -> str:
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
    return page.interval(middle, low, high, spec)


def _picture(population: Population, chosen: str, plots: Path) -> str:
    """Accuracy, the default and the chosen variant beside the target, a dot for each network."""
    names = list(dict.fromkeys([ACCURACY_NAME, DEFAULT_NAME, chosen]))
    picture = page.canvas(4 * len(names), 3.6)
    kinds = np.array([recipe.architecture.partition("@")[0] for recipe in population.recipes])
    aim = population.apart.target[0, 0]
    for axes, name in zip(np.atleast_1d(picture.subplots(1, len(names), sharey=True)), names, strict=True):
        scores = population.apart.scores[0, population.index(name), 0]
        for kind in dict.fromkeys(kinds):
            axes.plot(scores[kinds == kind], aim[kinds == kind], "o", markersize=4, label=kind)
        axes.set(title=name, xlabel=name.partition(";")[0])
    picture.axes[0].set(ylabel="accuracy under unseen transforms")
    picture.axes[-1].legend(fontsize=7)
    return page.save(picture, plots / f"validity-{population.name}.svg")
