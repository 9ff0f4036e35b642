"""Every figure that the study compares, from the accuracies of all passes of a network.

A *form* makes one number of the clean accuracy and the accuracies under mutants and shifts; a *setting* says which
grid, operator and pad they come from; a *variant* is a form at one setting, or its mean over several. `registered`
lists the variants that are compared, a finite number. It was written down before any network was measured, but for the
pads of four forms in `PADDED`: these were added when 12 of 64 had been, and before any rank correlation was seen.

All functions broadcast over leading axes, so that the point estimate and a thousand resamples go the same way.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.study.measured import Measured
from pytest_dscore.score import formulas

Array = NDArray[np.float64]
Counts = NDArray[np.integer]

GRIDS = (2, 3, 4)
OPERATORS = ("delete", "invert", "noise", "shuffle")
#: Pads as multiples of the spec's default, one region's width.
PADS = (0.5, 1.0, 1.5)


class Setting(NamedTuple):
    """Grid, operator of the mutants, and pad as a multiple of the spec's default."""

    n: int
    operator: str
    pad: float

    def __str__(self) -> str:
        return f"n {self.n}, {self.operator}, pad {self.pad:g}"


DEFAULT = Setting(3, "delete", 1.0)


class Passes(NamedTuple):
    """What a form is given: accuracies of shape (...,) and, region by region, (..., n * n)."""

    clean: Array
    f: Array
    a: Array
    n: int
    classes: int

    @property
    def f_tilde(self) -> Array:
        """Shares of the features."""
        return formulas.feature_distribution(self.f, self.clean)

    @property
    def a_tilde(self) -> Array:
        """Shares of the attention."""
        return formulas.attention_distribution(self.a)

    @property
    def kept(self) -> Array:
        """Share of the clean accuracy that each shift keeps; 1 where there is no accuracy to keep."""
        clean = self.clean[..., None]
        return np.divide(self.a, clean, out=np.ones_like(self.a), where=clean > 0)

    @property
    def fitness(self) -> Array:
        """The spec's v_fitness."""
        return formulas.v_fitness(self.f_tilde, self.a_tilde, self.clean)

    def robust(self, *, relative: bool = False) -> Array:
        """The spec's v_robust, or with a / accuracy in its third term."""
        return formulas.v_robust(self.f_tilde, self.a_tilde, self.a, self.clean, relative=relative)

    @property
    def bound(self) -> float:
        """The spec's g."""
        return formulas.g(self.n, self.classes)


class Terms(NamedTuple):
    """The three terms of v_robust (or their worst cases): features, attention, drop."""

    features: Array
    attention: Array
    drop: Array


def terms(p: Passes, *, relative: bool = False) -> Terms:
    """Return the terms one by one, each of shape (...,)."""
    even = 1.0 / p.n**2
    drop = p.kept - 1.0 if relative else p.a - p.clean[..., None]
    return Terms(*(np.linalg.norm(x, axis=-1) for x in (p.f_tilde - even, p.a_tilde - even, drop)))


def worst(p: Passes) -> tuple[float, float, float]:
    """Return what g is made of: the worst case of each term."""
    uneven = float(np.sqrt(1.0 - 1.0 / p.n**2))
    return uneven, uneven, p.n * (1.0 - 1.0 / p.classes)


Form = Callable[[Passes], Array]


def accuracy(p: Passes) -> Array:
    """Clean accuracy alone: what has to be beaten."""
    return p.clean


def bounded(p: Passes) -> Array:
    """The spec's default D: fitness (1 - v_robust / g)."""
    return formulas.score(p.fitness, p.robust(), p.bound)


def ratio(p: Passes) -> Array:
    """The spec's other form: fitness / v_robust."""
    return formulas.score(p.fitness, p.robust(), p.bound, "ratio")


def relative(p: Passes) -> Array:
    """D with a / accuracy in the third term: of two models that keep the same share, neither is less robust."""
    return formulas.score(p.fitness, p.robust(relative=True), p.bound)


def ratio_relative(p: Passes) -> Array:
    """The ratio with a / accuracy in the third term."""
    return formulas.score(p.fitness, p.robust(relative=True), p.bound, "ratio")


def robust(p: Passes) -> Array:
    """v_robust alone, its sign turned so that larger is better."""
    return -p.robust()


def robust_relative(p: Passes) -> Array:
    """v_robust with a / accuracy, its sign turned."""
    return -p.robust(relative=True)


def fitness(p: Passes) -> Array:
    """v_fitness alone."""
    return p.fitness


def no_fitness(p: Passes) -> Array:
    """Accuracy (1 - v_robust / g): is fitness of any use?"""
    return formulas.score(p.clean, p.robust(), p.bound)


def no_fitness_relative(p: Passes) -> Array:
    """Accuracy (1 - relative v_robust / g): without fitness, and with shares in the third term."""
    return formulas.score(p.clean, p.robust(relative=True), p.bound)


def _some_terms(p: Passes, kept: tuple[bool, ...]) -> Array:
    """D with some of the three terms, over the worst case of those that are left."""
    value = sum((term for term, on in zip(terms(p), kept, strict=True) if on), np.zeros_like(p.clean))
    return formulas.score(p.fitness, value, sum(itertools.compress(worst(p), kept)))


def features_only(p: Passes) -> Array:
    """D with the term of the features alone."""
    return _some_terms(p, (True, False, False))


def attention_only(p: Passes) -> Array:
    """D with the term of the attention alone."""
    return _some_terms(p, (False, True, False))


def drop_only(p: Passes) -> Array:
    """D with the term of the drop alone."""
    return _some_terms(p, (False, False, True))


def without_drop(p: Passes) -> Array:
    """D without the term of the drop."""
    return _some_terms(p, (True, True, False))


def without_attention(p: Passes) -> Array:
    """D without the term of the attention, which is nearly the drop's again."""
    return _some_terms(p, (True, False, True))


def without_features(p: Passes) -> Array:
    """D without the term of the features, the noisiest of the three."""
    return _some_terms(p, (False, True, True))


def weighted(features: float, attention: float, drop: float) -> Form:
    """Return accuracy (1 - weighted mean of the three terms, relative, each over its own worst case)."""

    def form(p: Passes) -> Array:
        shares = [term / most for term, most in zip(terms(p, relative=True), worst(p), strict=True)]
        loss = features * shares[0] + attention * shares[1] + drop * np.minimum(1.0, shares[2])
        return np.asarray(p.clean * (1.0 - loss))

    form.__doc__ = (
        f"Accuracy (1 - {features:g} features - {attention:g} attention - {drop:g} relative drop), each over its worst."
    )
    return form


def geometric(p: Passes) -> Array:
    """Geometric mean of accuracy and the three terms' distances from their worst cases: no term can buy another off."""
    left = [np.clip(1.0 - term / most, 0.0, 1.0) for term, most in zip(terms(p), worst(p), strict=True)]
    return np.asarray((p.clean * left[0] * left[1] * left[2]) ** 0.25)


def entropy(p: Passes) -> Array:
    """D with entropy in place of the two norms of shares: evenness in its usual measure."""

    def uneven(shares: Array) -> Array:
        logs = np.log(np.where(shares > 0, shares, 1.0))
        return np.asarray(1.0 + (shares * logs).sum(axis=-1) / (2 * np.log(p.n)))

    drop = np.minimum(1.0, terms(p, relative=True).drop / worst(p)[2])
    return np.asarray(p.fitness * (1.0 - (uneven(p.f_tilde) + uneven(p.a_tilde) + drop) / 3))


def smoothed(p: Passes) -> Array:
    """D with 0.02 added to every drop of a mutant: where no deletion does much, its shares are chance."""
    drops = np.maximum(0.0, p.clean[..., None] - p.f) + 0.02
    shares = drops / drops.sum(axis=-1, keepdims=True)
    v_robust = formulas.v_robust(shares, p.a_tilde, p.a, p.clean)
    return formulas.score(formulas.v_fitness(shares, p.a_tilde, p.clean), v_robust, p.bound)


def strength(p: Passes) -> Array:
    """D with a fourth term, the norm of f's drops: shares are even as well where every deletion is fatal."""
    harm = np.linalg.norm(np.minimum(0.0, p.f - p.clean[..., None]), axis=-1)
    return formulas.score(p.fitness, p.robust() + harm, p.bound + worst(p)[2])


def shifted_fitness(p: Passes) -> Array:
    """D with the mean of a in place of the accuracy and without the drop: the drop is counted once."""
    match = 1.0 - 0.5 * np.square(p.f_tilde - p.a_tilde).sum(axis=-1)
    uneven = sum(terms(p)[:2], np.zeros_like(p.clean)) / (2 * worst(p)[0])
    return np.asarray(p.a.mean(axis=-1) * match * (1.0 - uneven))


def mean_a(p: Passes) -> Array:
    """Mean accuracy over the shifts: what the target measures, on other shifts."""
    return np.asarray(p.a.mean(axis=-1))


def worst_a(p: Passes) -> Array:
    """Least accuracy over the shifts."""
    return np.asarray(p.a.min(axis=-1))


def rms_a(p: Passes) -> Array:
    """Accuracy minus root mean square drop over the shifts: between mean and worst."""
    return np.asarray(p.clean - terms(p).drop / p.n)


def mean_f(p: Passes) -> Array:
    """Mean accuracy over the mutants."""
    return np.asarray(p.f.mean(axis=-1))


def worst_f(p: Passes) -> Array:
    """Least accuracy over the mutants."""
    return np.asarray(p.f.min(axis=-1))


def mean_hit(p: Passes) -> Array:
    """Mean of mean f and mean a: the hit rate over all changed passes."""
    return (mean_a(p) + mean_f(p)) / 2


def mean_three(p: Passes) -> Array:
    """Mean of accuracy, mean f and mean a."""
    return (p.clean + mean_a(p) + mean_f(p)) / 3


def geometric_hit(p: Passes) -> Array:
    """Geometric mean of mean f and mean a: weak in one is weak."""
    return np.asarray(np.sqrt(mean_a(p) * mean_f(p)))


def worst_hit(p: Passes) -> Array:
    """Mean of worst f and worst a."""
    return (worst_a(p) + worst_f(p)) / 2


def accuracy_and_a(p: Passes) -> Array:
    """Mean of accuracy and mean a."""
    return (p.clean + mean_a(p)) / 2


#: Forms that are compared at the default setting, besides weights; the first three at every grid and operator as well.
FORMS: tuple[Form, ...] = (
    *(bounded, ratio, relative, ratio_relative, robust, robust_relative, fitness, no_fitness, no_fitness_relative),
    *(features_only, attention_only, drop_only, without_drop, without_attention, without_features),
    *(geometric, entropy, smoothed, strength, shifted_fitness),
    *(mean_a, worst_a, rms_a, mean_f, worst_f, mean_hit, mean_three, geometric_hit, worst_hit, accuracy_and_a),
)


#: Forms that are compared at every pad and grid.
PADDED: tuple[Form, ...] = (bounded, relative, no_fitness_relative, mean_hit, mean_three, mean_a)
#: Of no use as a default, which is to lie in [0, 1] and to rest on both experiments, mutants and shifts.
PROBES: tuple[Form, ...] = (
    *(accuracy, ratio, ratio_relative, robust, robust_relative),
    *(mean_a, worst_a, rms_a, accuracy_and_a, mean_f, worst_f),
)


@dataclasses.dataclass(frozen=True)
class Accuracies:
    """Accuracies of every pass of one network, for one or many weightings of its examples (the leading axes).

    Parameters
    ----------
    classes, size
        As in `Measured`.
    clean, mutants, shifts, unseen
        As in `Measured`, with accuracies in place of hits: shape (...,) and (..., n * n).
    """

    classes: int
    size: int
    clean: Array
    mutants: Mapping[tuple[int, str, int], Array]
    shifts: Mapping[tuple[int, int], Array]
    unseen: Mapping[str, Array]

    def at(self, setting: Setting, seed: int | None = None) -> Passes:
        """What a form needs of one setting; `seed` of the operator, the smallest where None.

        Raises
        ------
        KeyError
            The setting was not measured.
        """
        n, operator, pad = setting
        seeds = [key[2] for key in self.mutants if key[:2] == (n, operator)]
        if not seeds:
            raise KeyError(f"{setting}: no such mutants")
        f = self.mutants[n, operator, min(seeds) if seed is None else seed]
        return Passes(self.clean, f, self.shifts[n, pixels(self, n, pad)], n, self.classes)


def pixels(measured: Measured | Accuracies, n: int, pad: float) -> int:
    """Pixels of a pad that was measured.

    Raises
    ------
    KeyError
        It was not.
    """
    wanted = pad * round(measured.size / n)
    # Half a pixel may have been rounded up or down.
    near = [found for grid, found in measured.shifts if grid == n and abs(found - wanted) <= 0.5]
    if not near:
        raise KeyError(f"n {n}, pad {pad:g}: no such shifts")
    return near[0]


def accuracies(network: Measured, counts: Counts | None = None) -> Accuracies:
    """Return the accuracies of every pass.

    Parameters
    ----------
    network
    counts : (..., N), optional
        How often each example counts; every one once where left out.
    """
    rows = [network.clean[None], *network.mutants.values(), *network.shifts.values()]
    rows += [hits[None] for hits in network.unseen.values()]
    hits = np.concatenate(rows)
    if counts is None:
        found = hits.sum(axis=1) / hits.shape[1]
    else:
        # Whole numbers below 2^24 are exact in single precision, at twice the speed.
        single = np.asarray(counts, dtype=np.float32)
        found = (single @ hits.T.astype(np.float32)).astype(np.float64) / counts.sum(axis=-1, keepdims=True)
    ends = np.cumsum([len(row) for row in rows])[:-1]
    parts = iter(np.split(found, ends, axis=-1))
    clean = next(parts)[..., 0]
    mutants = {key: next(parts) for key in network.mutants}
    shifts = {key: next(parts) for key in network.shifts}
    unseen = {key: next(parts)[..., 0] for key in network.unseen}
    return Accuracies(network.classes, network.size, clean, mutants, shifts, unseen)


@dataclasses.dataclass(frozen=True)
class Variant:
    """A form at one setting, or its mean over several.

    Parameters
    ----------
    name
        Unique.
    group
        Heading in the tables: ``baseline``, ``grid``, ``pad``, ``form``, ``weights`` or ``mean``.
    form, settings
    candidate
        Whether it could be the default: it lies in [0, 1] and rests on both experiments, mutants and shifts.
    """

    name: str
    group: str
    form: Form
    settings: tuple[Setting, ...] = (DEFAULT,)
    candidate: bool = True

    @property
    def principle(self) -> str:
        """Why it might predict well: the first paragraph of the form's docstring."""
        return " ".join((self.form.__doc__ or "").split("\n\n")[0].split())

    def __call__(self, figures: Accuracies) -> Array:
        """Value(s), shape (...,)."""
        values = [self.form(figures.at(setting)) for setting in self.settings]
        return np.asarray(sum(values[1:], values[0]) / len(values))

    def measured(self, network: Measured) -> bool:
        """Whether the network has all it needs."""
        try:
            for n, operator, pad in self.settings:
                pixels(network, n, pad)
                if not any(key[:2] == (n, operator) for key in network.mutants):
                    return False
        except KeyError:
            return False
        return True


DEFAULT_NAME = f"bounded; {DEFAULT}"
ACCURACY_NAME = "accuracy"


@functools.cache
def registered() -> tuple[Variant, ...]:
    """Return all variants of the study, in the order of the tables."""
    found = [Variant(ACCURACY_NAME, "baseline", accuracy, candidate=False)]
    for form, n, operator in itertools.product((bounded, ratio, relative), GRIDS, OPERATORS):
        found.append(_at(form, "grid", (Setting(n, operator, 1.0),)))
    for padded, n, pad in itertools.product(PADDED, GRIDS, PADS):
        found.append(_at(padded, "pad", (Setting(n, "delete", pad),)))
    found += [_at(form, "form", (DEFAULT,)) for form in FORMS]
    for quarters in itertools.product(range(5), repeat=3):
        if sum(quarters) == 4:
            weights = tuple(quarter / 4 for quarter in quarters)
            name = "weights " + " ".join(f"{weight:g}" for weight in weights)
            both = weights[0] > 0 and weights[0] < 1
            found.append(Variant(f"{name}; {DEFAULT}", "weights", weighted(*weights), candidate=both))
    over = {
        "all operators": tuple(Setting(3, operator, 1.0) for operator in OPERATORS),
        "all n": tuple(Setting(n, "delete", 1.0) for n in GRIDS),
        "all n and operators": tuple(Setting(*both, 1.0) for both in itertools.product(GRIDS, OPERATORS)),
        "all pads": tuple(Setting(3, "delete", pad) for pad in PADS),
    }
    for form, (name, settings) in itertools.product((bounded, relative, mean_hit), over.items()):
        found.append(Variant(f"{form_name(form)}; mean over {name}", "mean", form, settings))
    for name in ("all n", "all pads"):
        found.append(Variant(f"{form_name(mean_a)}; mean over {name}", "mean", mean_a, over[name], candidate=False))
    # The default setting comes up in several groups; each variant counts once.
    unique: dict[str, Variant] = {}
    for variant in found:
        unique.setdefault(variant.name, variant)
    return tuple(unique.values())


def form_name(form: Form) -> str:
    """Name of a form in the names of variants."""
    return getattr(form, "__name__", "form").replace("_", " ")


def _at(form: Form, group: str, settings: tuple[Setting, ...]) -> Variant:
    return Variant(f"{form_name(form)}; {settings[0]}", group, form, settings, form not in PROBES)


def common(networks: Iterable[Measured], variants: Sequence[Variant] | None = None) -> tuple[Variant, ...]:
    """Return the variants that every one of the networks was measured for; the registered ones where none are given."""
    chosen = registered() if variants is None else tuple(variants)
    networks = list(networks)
    return tuple(variant for variant in chosen if all(variant.measured(network) for network in networks))


def family(name: str) -> str:
    """Family of an unseen transform."""
    return name.partition("-")[0]


def families(figures: Accuracies) -> dict[str, Array]:
    """Mean accuracy under the unseen transforms of each family, by name in alphabetical order."""
    grouped: dict[str, list[Array]] = {}
    for name in sorted(figures.unseen):
        grouped.setdefault(family(name), []).append(figures.unseen[name])
    return {name: np.mean(values, axis=0) for name, values in grouped.items()}


def target(figures: Accuracies) -> Array:
    """What the score shall predict: mean accuracy under unseen transforms, every family counting alike."""
    return np.asarray(np.mean(list(families(figures).values()), axis=0))
