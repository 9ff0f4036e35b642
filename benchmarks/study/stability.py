"""How far the default D moves with the test examples and with seeds, and how many examples settle a verdict.

Test sets of any size are drawn with replacement from the measured examples: these are taken for the population, so that
the D-Score of all of them is the truth that a smaller set estimates, and no correction for a finite population applies.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.study import page
from benchmarks.study.measured import Measured
from benchmarks.study.scores import ACCURACY_NAME, DEFAULT, Array, Setting, accuracies, common, mean_hit, pixels
from pytest_dscore.figure import Figure
from pytest_dscore.score import bootstrap as resampling
from pytest_dscore.score import formulas
from pytest_dscore.score.change import changes, examples_to_settle
from pytest_dscore.score.result import Recipe, statistics

SEED = 20230402
CONFIDENCE = 0.95
#: Sizes of test sets that are tried, examples.
SIZES = (100, 200, 300, 500, 700, 1000, 1500, 2000, 5000, 10_000)
#: The same for the library's own intervals, which cost more.
TRIED = (100, 200, 300, 500, 700, 1000, 1500, 2000)
#: Figures whose repeatability is compared with D's.
COMPARED = (
    ACCURACY_NAME,
    *(f"{form}; {DEFAULT}" for form in ("bounded", "ratio", "relative", "robust", "fitness", "no fitness relative")),
    *(f"{form}; {DEFAULT}" for form in ("smoothed", "mean a", "mean f", "mean hit", "mean three")),
    *(f"{form}; {Setting(3, 'delete', 0.5)}" for form in ("bounded", "no fitness relative", "mean hit")),
)
#: The plugin's default.
FORM: formulas.Form = "mean"
SETTLED = 0.9
MARGIN = 0.1
GAP = 0.05
WIDTHS = (0.05, 0.02)

Hits = NDArray[np.bool_]


def first(network: Measured, examples: int) -> Measured:
    """Keep the first test examples of a network."""
    return dataclasses.replace(
        network,
        labels=network.labels[:examples],
        clean=network.clean[:examples],
        mutants={key: hits[:, :examples] for key, hits in network.mutants.items()},
        shifts={key: hits[:, :examples] for key, hits in network.shifts.items()},
        unseen={key: hits[:examples] for key, hits in network.unseen.items()},
    )


class Trial(NamedTuple):
    """The library's intervals of D on many test sets of one size from one network."""

    values: Array
    lower: Array
    upper: Array

    def covers(self, truth: float) -> float:
        """Share of the intervals that hold the truth."""
        return float(((self.lower <= truth) & (truth <= self.upper)).mean())

    @property
    def half_width(self) -> float:
        """Mean half of the width."""
        return float((self.upper - self.lower).mean() / 2)

    def decides(self, threshold: float) -> float:
        """Share of the intervals that lie above a threshold."""
        return float((self.lower > threshold).mean())


def score_hits(network: Measured, setting: Setting = DEFAULT) -> Hits:
    """Return the hits of one score as the library keeps them: clean, mutants, shifts."""
    n, operator, pad = setting
    shifts = network.shifts[n, pixels(network, n, pad)]
    return np.concatenate([network.clean[None], network.mutants[n, operator, 0], shifts])


def d_of(accuracies_: Array, n: int, classes: int) -> Array:
    """D from the accuracies (..., 2 n^2 + 1)."""
    return statistics(accuracies_, formulas.g(n, classes), FORM).score


def draws_of_d(networks: Sequence[Measured], size: int, draws: int) -> Array:
    """D of every network on the same random test sets of one size, shape (networks, draws)."""
    return np.stack([_drawn(network, size, draws) for network in networks])


def _drawn(network: Measured, size: int, draws: int) -> Array:
    hits = score_hits(network)
    # The same seed gives the same examples for all networks, a chunk at a time.
    rng = np.random.default_rng([SEED, size])
    patterns = hits.T.astype(np.float32)
    found = []
    for start in range(0, draws, 250):
        picked = rng.integers(hits.shape[1], size=(min(250, draws - start), size))
        counts = np.stack([np.bincount(row, minlength=hits.shape[1]) for row in picked]).astype(np.float32)
        found.append(d_of((counts @ patterns).astype(np.float64) / size, DEFAULT.n, network.classes))
    return np.concatenate(found)


def truth(network: Measured) -> float:
    """D of all examples."""
    return float(mean_hit(accuracies(network).at(DEFAULT)))


def trial(network: Measured, size: int, repeats: int, replicates: int) -> Trial:
    """Let the library make its interval on `repeats` random test sets of one size."""
    hits = score_hits(network)
    rng = np.random.default_rng([SEED, size, 1])

    def score(accuracies_: Array) -> Array:
        return d_of(accuracies_, DEFAULT.n, network.classes)[..., None]

    ends, values = [], []
    for seed in range(repeats):
        some = hits[:, rng.integers(hits.shape[1], size=size)]
        values.append(float(score(some.sum(axis=1) / size)[0]))
        ends.append(np.concatenate(resampling.intervals(some, score, replicates, CONFIDENCE, seed)))
    lower, upper = np.array(ends).T
    return Trial(np.array(values), lower, upper)


def crossing(sizes: Sequence[int], widths: Array, limit: float) -> float:
    """Size at which a width falls to a limit.

    Parameters
    ----------
    sizes, widths
        Widths at increasing sizes.
    limit

    Returns
    -------
    float
        Between two sizes by a straight line in logarithms; beyond the last by the law of the square root; the first
        size where already that suffices.
    """
    if widths[0] <= limit:
        return float(sizes[0])
    for i in range(1, len(sizes)):
        if widths[i] <= limit:
            share = np.log(widths[i - 1] / limit) / np.log(widths[i - 1] / widths[i])
            return float(sizes[i - 1] * (sizes[i] / sizes[i - 1]) ** share)
    return float(sizes[-1] * (widths[-1] / limit) ** 2)


def for_a_change(sd: float, gap: float = GAP, examples: int = 1) -> float:
    """Examples at which a paired difference `gap` is found in 90 % of draws by a 95 % interval.

    Parameters
    ----------
    sd
        Standard deviation of the difference on a test set of `examples`.
    gap
        The true difference.
    examples
    """
    reach = stats.norm.ppf(0.5 + CONFIDENCE / 2) + stats.norm.ppf(SETTLED)
    return float(examples * (reach * sd / gap) ** 2)


@dataclasses.dataclass(frozen=True)
class Stability:
    """All figures of the section, networks first.

    Parameters
    ----------
    d : (m,)
        Truths.
    sd, bias : (m, sizes)
        Standard deviation of D over test sets of each of `SIZES`; their mean minus the truth.
    ranked : (sizes,)
        Share of pairs of networks that a test set of the size puts in the right order.
    tried
        Sizes at which the library made its intervals.
    which
        Networks for which it did.
    trials
        One for each of these networks and sizes.
    pair_sd : (m, m)
        Standard deviation of the paired difference of two networks, on one example (times the root of the size).
    """

    d: Array
    sd: Array
    bias: Array
    ranked: Array
    tried: tuple[int, ...]
    which: list[int]
    trials: list[list[Trial]]
    pair_sd: Array

    def of_trials(self, figure: Callable[[Trial, float], float]) -> Array:
        """One figure of every trial and its network's truth, (networks tried, sizes)."""
        truths = [float(self.d[i]) for i in self.which]
        return np.array([[figure(t, d) for t in row] for d, row in zip(truths, self.trials, strict=True)])

    @property
    def coverage(self) -> Array:
        """Share of intervals that hold the truth."""
        return self.of_trials(lambda t, d: t.covers(d))

    @property
    def half_width(self) -> Array:
        """Mean half-width of the intervals."""
        return self.of_trials(lambda t, d: t.half_width)

    @property
    def decided(self) -> Array:
        """Share of intervals above a threshold that lies `MARGIN` below the truth."""
        return self.of_trials(lambda t, d: t.decides(d - MARGIN))

    def width_needed(self, width: float) -> Array:
        """Examples for a mean half-width, of every network tried."""
        return np.array([crossing(self.tried, row, width) for row in self.half_width])

    def decision_needed(self) -> Array:
        """Smallest size tried from which on a threshold `MARGIN` below is decided in 90 % of draws; inf for none."""
        enough = self.decided >= SETTLED
        # From there on: a smaller size that did once by luck does not count.
        lasting = np.logical_and.accumulate(enough[:, ::-1], axis=1)[:, ::-1]
        return np.array([self.tried[int(row.argmax())] if row.any() else np.inf for row in lasting])

    def change_needed(self) -> Array:
        """Examples to find a difference of `GAP`, of every pair whose true difference is within a factor of two."""
        gap = np.abs(self.d[:, None] - self.d)
        near = np.triu((gap >= GAP / 2) & (gap <= 2 * GAP), 1)
        return np.array([for_a_change(sd) for sd in self.pair_sd[near]])


def examine(
    networks: Sequence[Measured],
    tried: Sequence[int] = TRIED,
    most: int = 12,
    repeats: int = 100,
    replicates: int = 300,
) -> Stability:
    """Run all simulations.

    Parameters
    ----------
    networks
        With the same test examples.
    tried
        Sizes for the library's own intervals, the expensive part.
    most
        Networks for these, evenly over the range of D.
    repeats, replicates
        Test sets for each; resamples for each interval.
    """
    d = np.array([truth(network) for network in networks])
    which = spread_evenly(d, most)
    trials = [[trial(networks[i], size, repeats, replicates) for size in tried] for i in which]
    drawn = [draws_of_d(networks, size, 500) for size in SIZES]
    sd, bias = (np.stack(columns, axis=1) for columns in zip(*(_sd_and_bias(x, d) for x in drawn), strict=True))
    reference = SIZES.index(1000)
    pair_sd = np.array([(drawn[reference] - row).std(axis=1, ddof=1) for row in drawn[reference]]) * np.sqrt(1000)
    ranked = np.array([rightly_ranked(x, d) for x in drawn])
    return Stability(d, sd, bias, ranked, tuple(tried), which, trials, pair_sd)


def _sd_and_bias(drawn: Array, d: Array) -> tuple[Array, Array]:
    return drawn.std(axis=1, ddof=1), drawn.mean(axis=1) - d


def rightly_ranked(drawn: Array, d: Array) -> float:
    """Share of pairs (and draws) in the order of the truth; ties of the truth left out, ties of a draw count half."""
    right = [
        (np.sign(drawn[i] - drawn[j]) * np.sign(d[i] - d[j]) + 1) / 2
        for i, j in itertools.combinations(range(len(d)), 2)
        if d[i] != d[j]
    ]
    return float(np.mean(right)) if right else float("nan")


def spread_evenly(d: Array, most: int) -> list[int]:
    """Indices of at most so many networks, evenly over the order of D."""
    order = np.argsort(d, kind="stable")
    places = np.linspace(0, len(d) - 1, min(most, len(d))).round().astype(int)
    return [int(order[place]) for place in places]


class SeedSpread(NamedTuple):
    """Spread of D over the seeds of an operator."""

    operator: str
    seeds: int
    sd: Array
    between: float


def over_seeds(networks: Sequence[Measured]) -> list[SeedSpread]:
    """Standard deviation of D over seeds, network by network, for the operators measured with several."""
    found = []
    for operator in ("noise", "shuffle"):
        rows = []
        for network in networks:
            seeds = sorted(key[2] for key in network.mutants if key[:2] == (DEFAULT.n, operator))
            if len(seeds) > 1:
                figures, setting = accuracies(network), Setting(DEFAULT.n, operator, 1.0)
                rows.append([float(mean_hit(figures.at(setting, seed))) for seed in seeds])
        if rows:
            sd = np.array([np.std(row, ddof=1) for row in rows])
            between = float(np.std([np.mean(row) for row in rows], ddof=1)) if len(rows) > 1 else float("nan")
            found.append(SeedSpread(operator, min(len(row) for row in rows), sd, between))
    return found


class Compared(NamedTuple):
    """A figure's spread between networks, over test sets of 1,000 (median), and pairs that these rank right."""

    name: str
    between: float
    within: float
    ranked: float


def compare(networks: Sequence[Measured], names: Sequence[str], draws: int = 200) -> list[Compared]:
    """Compare figures by how well a test set of 1,000 tells networks apart; what was not measured is left out."""
    variants = [variant for variant in common(networks) if variant.name in names]
    examples = len(networks[0].clean)
    counts = np.random.default_rng([SEED, 3]).multinomial(1000, np.full(examples, 1 / examples), size=draws)
    values = np.array([[v(accuracies(network)) for v in variants] for network in networks])
    figures = [accuracies(network, counts) for network in networks]
    found = []
    for i, variant in enumerate(variants):
        drawn = np.stack([variant(each) for each in figures])
        within = float(np.median(drawn.std(axis=1, ddof=1)))
        found.append(
            Compared(variant.name, float(values[:, i].std(ddof=1)), within, rightly_ranked(drawn, values[:, i]))
        )
    return sorted(found, key=lambda each: -each.ranked)


class PairTrial(NamedTuple):
    """How often the library finds a difference of two networks at the size that theory asks for."""

    gap: float
    examples: int
    found: float


def pair_trials(networks: Sequence[Measured], found: Stability, pairs: int, repeats: int) -> list[PairTrial]:
    """Let the library compare pairs whose difference is about `GAP`, on as many examples as `for_a_change` says."""
    gaps = {(i, j): abs(float(found.d[i] - found.d[j])) for i, j in itertools.combinations(range(len(networks)), 2)}
    near = [pair for pair, gap in gaps.items() if GAP / 2 <= gap <= 2 * GAP]
    nearest = sorted(near, key=lambda pair: abs(gaps[pair] - GAP))
    return [_pair_trial(networks[i], networks[j], found, (i, j), repeats) for i, j in nearest[:pairs]]


def _pair_trial(
    one: Measured, other: Measured, found: Stability, pair: tuple[int, int], repeats: int, replicates: int = 400
) -> PairTrial:
    gap = float(found.d[pair[0]] - found.d[pair[1]])
    size = int(np.ceil(for_a_change(float(found.pair_sd[pair]), abs(gap) or GAP)))
    now, before = score_hits(one), score_hits(other)
    rng = np.random.default_rng([SEED, *pair])
    right = 0
    for seed in range(repeats):
        picked = rng.integers(now.shape[1], size=size)
        recipe = Recipe(DEFAULT.n, DEFAULT.operator, FORM, (0, 0), (), False, replicates, CONFIDENCE, seed)
        change = changes(now[:, picked], before[:, picked], recipe, one.classes, other.classes)["score"]
        right += change.lower > 0 if gap > 0 else change.upper < 0
    return PairTrial(gap, size, right / repeats)


class Forecasts(NamedTuple):
    """What `examples_to_settle` promised, and what so many examples did."""

    asked: int
    settled: int
    median: float


def forecasts(networks: Sequence[Measured], which: Sequence[int], examples: int, repeats: int) -> Forecasts:
    """Take the library's own forecast from a test set that does not settle a threshold, and draw as many examples."""
    asked, settled, sizes = 0, 0, []
    for i in which:
        hits, d = score_hits(networks[i]), truth(networks[i])
        rng = np.random.default_rng([SEED, i, 2])
        for seed in range(repeats):
            first = _interval(hits, rng.integers(hits.shape[1], size=examples), networks[i].classes, seed)
            threshold = d - MARGIN / 3
            if not first.lower <= threshold <= first.upper:
                continue
            more = examples_to_settle(first, threshold, examples)
            # A value by chance on the threshold asks for any number.
            if more is None or more > 20_000:
                continue
            again = _interval(hits, rng.integers(hits.shape[1], size=examples + more), networks[i].classes, seed)
            asked, settled = asked + 1, settled + int(again.lower > threshold or again.upper < threshold)
            sizes.append(examples + more)
    return Forecasts(asked, settled, float(np.median(sizes)) if sizes else float("nan"))


def _interval(hits: Hits, picked: NDArray[np.int64], classes: int, seed: int) -> Figure:
    some = hits[:, picked]

    def score(accuracies_: Array) -> Array:
        return d_of(accuracies_, DEFAULT.n, classes)[..., None]

    lower, upper = resampling.intervals(some, score, 400, CONFIDENCE, seed)
    return Figure(float(score(some.sum(axis=1) / some.shape[1])[0]), float(lower[0]), float(upper[0]))


class Reason(NamedTuple):
    """One condition on the size of a test set, and the smallest size tried that meets it."""

    words: str
    examples: float


def reasons(found: Stability) -> list[Reason]:
    """The conditions that a test set should meet before a gate is trusted."""
    share = f"{SETTLED:.0%} of the networks"
    wide, decided = found.width_needed(WIDTHS[0]), found.decision_needed()
    covered = found.coverage.mean(axis=0) >= 0.9
    lasting = np.logical_and.accumulate(covered[::-1])[::-1]
    return [
        Reason(f"interval of D at most ± {WIDTHS[0]:g} for {share}", _first(found, _upper_tail(wide))),
        Reason(f"a threshold {MARGIN:g} below D decided in {SETTLED:.0%} of draws for {share}", _upper_tail(decided)),
        Reason(
            "95 % intervals that hold the truth at least 90 % of the time, mean over networks",
            float(found.tried[int(lasting.argmax())]) if lasting.any() else np.inf,
        ),
    ]


def _upper_tail(needed: Array) -> float:
    """What suffices for 90 % of the networks: an observed value, not one between two."""
    return float(np.quantile(needed, SETTLED, method="higher"))


def _first(found: Stability, size: float) -> float:
    """The first size tried that is not below."""
    return float(next((tried for tried in found.tried if tried >= size), np.inf))


def minimum(found: Stability) -> float:
    """Smallest size tried that meets every reason; inf where none does."""
    return max(reason.examples for reason in reasons(found))


def report(
    networks: Sequence[Measured],
    plots: Path,
    repeats: int = 100,
    tried: Sequence[int] = TRIED,
    replicates: int = 300,
) -> str:
    """Write the section on stability.

    Parameters
    ----------
    networks
        With the same test examples, or more of them: only those that all have are used, except for seeds. Those with
        several seeds of noise and shuffle among them.
    plots
        Folder of the pictures; the page is taken to lie beside it.
    repeats, tried, replicates
        Test sets for every network and size; sizes for the library's own intervals; resamples for each.

    Returns
    -------
    str
        Markdown.
    """
    everyone = networks
    networks = [first(network, min(len(each.clean) for each in everyone)) for network in everyone]
    found = examine(networks, tried, repeats=repeats, replicates=replicates)
    parts = [
        page.section("Stability: how many examples", _words(found)),
        page.section("The spread of D", _SPREAD, _between(found, len(networks[0].clean)), _sizes(found)),
        _picture(found, plots),
        page.section("Examples needed", _NEEDED, _needed(found), _checks(networks, found, repeats)),
        page.section("D beside other figures", _OTHERS, _others(compare(networks, COMPARED))),
        page.section("Seeds of noise and shuffle", _seeds(over_seeds(everyone), found)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


_SPREAD = page.wrapped(
    "Test sets of each size are drawn with replacement from the measured examples, whose own D is taken for the truth "
    "(so no correction for a finite population is needed, but nothing is said of images from elsewhere). *Bias*: mean "
    "of D minus the truth, median over networks; a small set makes shares look less even than they are. *Half-width*, "
    "*holds the truth* and *decided*: the library's own 95 % interval on such sets; decided means above a threshold "
    f"{MARGIN:g} below the true D. *Ranked right*: pairs of networks in the order of the truth."
)
_NEEDED = page.wrapped(
    "Median over networks, what suffices for 90 % of them, and the worst. Widths between sizes tried are interpolated, "
    "beyond them the law of the square root is used."
)


_OTHERS = page.wrapped(
    "Test sets of 1,000, drawn as above: how far a figure moves with them, how far it differs between the networks, "
    "and how many pairs of networks are put in the order of all examples. This says how repeatable a figure is, not "
    "whether it means anything."
)


def _others(compared: Sequence[Compared]) -> str:
    rows = []
    for name, between, within, ranked in compared:
        ratio = f"{between / within:.1f}" if within > 0 else ""
        rows.append((name, f"{between:.3f}", f"{within:.4f}", ratio, f"{ranked:.1%}"))
    return page.table(("figure", "sd between networks", "sd over test sets, median", "ratio", "ranked right"), rows)


def _words(found: Stability) -> str:
    size = minimum(found)
    lines = [f"{reason.words}: {_number(found, reason.examples)} examples" for reason in reasons(found)]
    advice = (
        f"**Recommended minimum for a gate: {size:g} test examples**, the smallest size tried that meets all three."
        if np.isfinite(size)
        else "**No size tried meets all three conditions.**"
    )
    finer = f"± {WIDTHS[1]:g} takes {_upper_tail(found.width_needed(WIDTHS[1])):,.0f} for {SETTLED:.0%} of the networks"
    changed = found.change_needed()
    pairs = f" To see a change of {GAP:g} example by example takes {_upper_tail(changed):,.0f}." if len(changed) else ""
    return "\n\n".join([page.wrapped(f"{advice} An interval of {finer}.{pairs}"), page.bullets(lines)])


def _between(found: Stability, examples: int) -> str:
    gaps = np.diff(np.sort(found.d))
    ends = f"{found.d.min():.2f} to {found.d.max():.2f}"
    return page.wrapped(
        f"{examples:,} examples were measured. Between the {len(found.d)} networks D goes from {ends}, standard "
        f"deviation {found.d.std(ddof=1):.3f}; the median gap between neighbours in D is {np.median(gaps):.4f}."
    )


def _number(found: Stability, examples: float) -> str:
    return f"{examples:,.0f}" if np.isfinite(examples) else f"more than {found.tried[-1]:,}"


def _sizes(found: Stability) -> str:
    rows = []
    for s, size in enumerate(SIZES):
        spread = [f"{np.median(found.sd[:, s]):.3f}", f"{np.quantile(found.sd[:, s], 0.9):.3f}"]
        bias = f"{np.median(found.bias[:, s]):+.4f}"
        library = ["", "", "", ""]
        if size in found.tried:
            t = found.tried.index(size)
            covers = found.coverage[:, t]
            library = [f"{np.median(found.half_width[:, t]):.3f}", f"{covers.mean():.0%}", f"{covers.min():.0%}"]
            library.append(f"{found.decided[:, t].mean():.0%}")
        rows.append((f"{size:,}", *spread, bias, *library, f"{found.ranked[s]:.1%}"))
    columns = ("examples", "sd of D, median", "90th percentile", "bias", "half-width", "holds the truth")
    return page.table((*columns, "worst network", "decided", "ranked right"), rows)


def _needed(found: Stability) -> str:
    figures = {f"95 % interval of D at most ± {width:g}": found.width_needed(width) for width in WIDTHS}
    figures[f"threshold {MARGIN:g} below D decided in {SETTLED:.0%} of draws (sizes tried)"] = found.decision_needed()
    change = found.change_needed()
    if len(change):
        figures[f"paired difference of {GAP:g} found in {SETTLED:.0%} of draws ({len(change)} pairs)"] = change
    rows = [
        (what, *(_number(found, x) for x in (float(np.median(n)), _upper_tail(n), float(n.max()))))
        for what, n in figures.items()
    ]
    return page.table(("what", "median", f"{SETTLED:.0%}", "worst"), rows)


def _checks(networks: Sequence[Measured], found: Stability, repeats: int) -> str:
    pairs = pair_trials(networks, found, 6, repeats)
    text = ""
    if pairs:
        rate = np.mean([pair.found for pair in pairs])
        gaps = f"{min(abs(p.gap) for p in pairs):.3f} to {max(abs(p.gap) for p in pairs):.3f}"
        sizes = f"{min(p.examples for p in pairs):,} to {max(p.examples for p in pairs):,}"
        text = (
            f"Check of the last line: {len(pairs)} pairs with true differences of {gaps}, on the {sizes} examples that "
            f"their own difference asks for: the library's paired interval finds it in {rate:.0%} of {repeats} draws "
            "each. "
        )
    asked = forecasts(networks, found.which, 200, max(1, repeats // 5))
    if asked.asked:
        text += (
            f"Check of `examples_to_settle`, from 200 examples that leave a threshold {MARGIN / 3:.3f} below the true "
            f"D open: with as many as it asks for (median {asked.median:,.0f}), {asked.settled / asked.asked:.0%} of "
            f"{asked.asked} new test sets settle it. It is an estimate from a value that is itself uncertain."
        )
    return page.wrapped(text)


def _seeds(spreads: Sequence[SeedSpread], found: Stability) -> str:
    full = found.sd[:, SIZES.index(2000)]
    rows = [
        (s.operator, len(s.sd), s.seeds, f"{np.median(s.sd):.4f}", f"{s.sd.max():.4f}", f"{s.between:.3f}")
        for s in spreads
    ]
    if not rows:
        return ""
    note = page.wrapped(
        f"Standard deviation of D over seeds, n {DEFAULT.n}, all examples. Beside it: over test sets of 2,000 the "
        f"default D has a median standard deviation of {np.median(full):.4f}."
    )
    columns = ("operator", "networks", "seeds", "sd over seeds, median", "largest", "sd between networks")
    return f"{note}\n\n{page.table(columns, rows)}"


def _picture(found: Stability, plots: Path) -> str:
    picture = page.canvas(6, 3.6)
    axes = picture.subplots()
    for row in found.sd:
        axes.plot(SIZES, row, color="grey", linewidth=0.6, alpha=0.6)
    axes.plot(SIZES, np.median(found.sd, axis=0), marker=".", label="median network")
    axes.axhline(found.d.std(ddof=1), color="C1", linestyle="--", label="between networks")
    axes.set(xscale="log", yscale="log", xlabel="test examples", ylabel="standard deviation of D")
    axes.legend()
    return page.save(picture, plots / "stability.svg")
