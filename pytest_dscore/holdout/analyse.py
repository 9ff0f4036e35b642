"""Analysis of real outcome vectors: similarities, the bound, the tolerance and the effective number of models."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import numpy as np

from pytest_dscore.errors import SettingsError
from pytest_dscore.holdout import checks, planning, tails
from pytest_dscore.holdout.bounds import NEEDS_OUTCOMES, PLANNING_BOUNDS
from pytest_dscore.holdout.checks import Feedback, Mode
from pytest_dscore.holdout.empirical import (
    Estimate,
    Population,
    Structure,
    choose_structure,
    empirical_bound,
    union_bound,
)
from pytest_dscore.holdout.multiplier_bootstrap import ASYMPTOTIC, BootstrapResult, bootstrap
from pytest_dscore.holdout.queries import Queries, describe_mode
from pytest_dscore.holdout.search import first, first_down
from pytest_dscore.holdout.similarity import PackedOutcomes, pack, similarity_cover, similarity_matrix
from pytest_dscore.holdout.tails import Floats
from pytest_dscore.holdout.theorem2 import log_theorem2

ESTIMATES = ("plug-in", "lower-confidence")
_EXACT = {"union": (), "similarity": ("anchor",), "empirical": ("anchor", "cover", "spanning-tree")}
_EXACT["best"] = _EXACT["empirical"]
_DRAWS, _MOST_DRAWS = 10_000, 200_000
_UNSEEN = "models that could have been asked are taken to have errors and similarities within those of the models seen"


@dataclass(frozen=True)
class Analysis:
    """What k models' outcomes on n examples say about overfitting to them; made by `analyse`.

    ``tolerance``, ``union_tolerance`` and ``effective_models`` are computed when first asked for.

    Parameters
    ----------
    errors
        Empirical error rates, shape (k,).
    similarity
        Shape (k, k).
    epsilon, delta
        As asked.
    bound, method
        The bound asked for and the one that was smallest (``"union"``, ``"anchor"``, ``"cover"``,
        ``"spanning-tree"``, or the bound's own name).
    failure_probability
        Bound on ``P(max_i |deviation| >= epsilon)``, in [0, 1]; with ``lower-confidence`` it includes what the
        confidence limits may miss.
    note
        Assumption or fallback in words, empty where there is none.
    mode_statement
        One sentence on non-adaptive or adaptive use.
    estimate
        ``"plug-in"`` or ``"lower-confidence"``.
    spent
        Part of delta that the confidence limits use, 0 for plug-in.
    """

    errors: Floats
    similarity: Floats
    epsilon: float
    delta: float
    bound: str
    method: str
    failure_probability: float
    note: str
    mode_statement: str
    estimate: str
    spent: float
    _work: _Work = field(repr=False, compare=False)

    @property
    def n(self) -> int:
        """Number of examples."""
        return self._work.population.n

    @property
    def k(self) -> int:
        """Number of models."""
        return self._work.population.k

    @property
    def holds(self) -> bool:
        """Whether every error rate is within epsilon with probability at least 1 - delta, by this bound."""
        return self.failure_probability <= self.delta

    @cached_property
    def tolerance(self) -> float:
        """Smallest epsilon at which this bound is at most delta, rounded up to 12 decimals; 1.0 if there is none."""
        return self._work.tolerance()

    @cached_property
    def union_tolerance(self) -> float:
        """The same by the union bound over these models."""
        return self._work.union_tolerance()

    @cached_property
    def effective_models(self) -> float:
        """Number of models, in [1, k], at which a union bound gives the bootstrap's tolerance; asymptotic."""
        work = self._work
        return work.bootstrap.effective_models(max(self.delta, 20 / work.bootstrap.maxima.size))


@dataclass(frozen=True)
class _Work:
    """Everything an analysis is computed from; kept so that later questions need no second pass over the data."""

    packed: PackedOutcomes
    population: Population
    bound: str
    delta: float
    spent: float
    mode: Mode
    feedback: Feedback
    step: float | Fraction | None
    draws: int
    seed: int

    @cached_property
    def bootstrap(self) -> BootstrapResult:
        return bootstrap(self.packed, self.population.similarity, self.draws, self.seed)

    @cached_property
    def structure(self) -> Structure:
        """Tree and covers chosen near the union tolerance, where they matter."""
        return choose_structure(self.population, self._deviation_where_union_holds())

    def _deviation_where_union_holds(self) -> int:
        target = math.log(self.delta - self.spent)
        return first(lambda m: tails.round_up(union_bound(self.population, m)) <= target, 1, self.population.n + 1)

    def evaluate(self, epsilon: float | Fraction) -> tuple[float, str, str]:
        """Return the log of the bound at epsilon, its method and a note."""
        if self.mode == "adaptive" or self.bound == "naive-bayes":
            result = planning.evaluate(k=self.population.k, epsilon=epsilon, bound=self.bound, **self._planned())
            note = "; ".join(part for part in (result.note, _UNSEEN if self.mode == "adaptive" else "") if part)
            return result.log_failure_probability, result.method, note
        if self.bound == "bootstrap":
            return math.log(self.bootstrap.probability(float(epsilon))), "bootstrap", ASYMPTOTIC
        if self.bound == "theorem-2":
            return tails.round_up(min(0.0, self._theorem2(epsilon))), "theorem-2", ""
        return self._exact(self.population.deviation(epsilon), _EXACT[self.bound])

    def _exact(self, deviation: int, methods: tuple[str, ...]) -> tuple[float, str, str]:
        """Return the log of the smallest of the named bounds, enlarged by what the limits may miss."""
        if not methods:
            log, method = union_bound(self.population, deviation), "union"
        else:
            found = empirical_bound(self.population, self.structure, deviation, methods)
            log, method = found.log_probability, found.method
        log = tails.round_up(log)
        if self.spent:
            log = min(0.0, tails.log_add(log, math.log(self.spent)))
        return log, method, ""

    def _theorem2(self, epsilon: float | Fraction) -> float:
        """Return the log of (4), smallest over similarities eta with a greedy cover for each."""
        queries = Queries.of(self.population.k)
        return min(log_theorem2(queries, self.population.n, epsilon, eta, size) for eta, size in self._cover_sizes)

    @cached_property
    def _cover_sizes(self) -> list[tuple[float, int]]:
        similarity, rates = self.population.similarity, self.population.wrong / self.population.n
        levels = np.unique(np.quantile(similarity, np.linspace(0, 1, 17), method="lower"))
        return [(float(eta), len(similarity_cover(similarity, rates, float(eta)))) for eta in levels]

    def _planned(self) -> dict[str, Any]:
        """Return the arguments of the planning functions that stand for these models."""
        rates = [Fraction(int(c), self.population.n) for c in self.population.wrong]
        similar = self.population.similarity[np.triu_indices(self.population.k, 1)]
        if self.mode == "adaptive":
            error: Fraction | float = min(rates, key=lambda p: abs(p - Fraction(1, 2)))
            least = float(similar.min(initial=1.0))
        else:  # assumption A1 has one error rate and one similarity: the means, as in the paper
            error, least = float(np.mean([float(p) for p in rates])), float(similar.mean()) if similar.size else 1.0
        return {
            "n": self.population.n,
            "error": error,
            "similarity": least,
            "mode": self.mode,
            "feedback": self.feedback,
            "ladder_step": self.step,
        }

    def tolerance(self) -> float:
        """Return the smallest epsilon of `Analysis.tolerance`."""
        target = math.log(self.delta)
        if self.mode == "adaptive" or self.bound == "naive-bayes":
            return planning.tolerance(k=self.population.k, delta=self.delta, bound=self.bound, **self._planned())
        if self.bound == "bootstrap":
            return self.bootstrap.tolerance(self.delta)
        if self.bound == "theorem-2":
            steps = planning.RESOLUTION
            return first(lambda m: self.evaluate(Fraction(m, steps))[0] <= target, 1, steps) / steps
        return self._counted_tolerance(_EXACT[self.bound], target)

    def union_tolerance(self) -> float:
        """Return the smallest epsilon of `Analysis.union_tolerance`."""
        if self.mode == "adaptive":
            return planning.tolerance(k=self.population.k, delta=self.delta, bound="union", **self._planned())
        return self._as_epsilon(self._deviation_where_union_holds())

    def _counted_tolerance(self, methods: tuple[str, ...], target: float) -> float:
        """Return the tolerance of a bound over counts: the union's, walked down.

        The method that is smallest is followed alone; where it ends the others are asked whether they go on.
        """
        top = self._deviation_where_union_holds()
        if not methods or top > self.population.n:
            return self._as_epsilon(top)
        followed = self._exact(top, methods)[1]
        while True:
            top = first_down(lambda m, one=followed: self._exact(m, (one,))[0] <= target, top)  # type: ignore[misc]
            if top == 1:
                return self._as_epsilon(top)
            log, followed, _ = self._exact(top - 1, methods)
            if log > target:
                return self._as_epsilon(top)
            top -= 1

    def _as_epsilon(self, deviation: int) -> float:
        """Return the least epsilon, to 12 decimals, whose overfitting event is a deviation of so many examples."""
        n, steps = self.population.n, planning.RESOLUTION
        if self.population.exact or deviation > n:
            return least_epsilon(deviation, n)
        return min(1.0, math.ceil(Fraction(deviation * steps, n)) / steps)


def analyse(
    outcomes: Any,
    *,
    epsilon: float | Fraction,
    delta: float,
    bound: str = "best",
    similarity_estimate: str = "plug-in",
    confidence_share: float = 0.1,
    mode: Mode = "non-adaptive",
    feedback: Feedback = "exact",
    ladder_step: float | Fraction | None = None,
    draws: int | None = None,
    seed: int = 0,
) -> Analysis:
    """Analyse the outcome vectors of models that were scored on the same examples.

    Parameters
    ----------
    outcomes
        Shape (k, n), True or 1 where the model is wrong; or `PackedOutcomes`.
    epsilon, delta
        Tolerance and failure probability, in (0, 1).
    bound
        ``"union"``; ``"similarity"`` (equation 3 with the best anchor); ``"empirical"`` (anchor, similarity cover or
        spanning tree, whichever is smallest); ``"best"``, the same, being the smallest of all that assume nothing
        about the models; ``"theorem-2"``; ``"naive-bayes"`` (Assumption A1 at the mean error and similarity);
        ``"bootstrap"`` (asymptotic).
    similarity_estimate
        ``"plug-in"``: population rates are taken to be those observed, as in the paper. ``"lower-confidence"``: they
        are only known within simultaneous Clopper-Pearson limits (for union, similarity, empirical and best).
    confidence_share
        Part of delta spent on those limits, in (0, 1).
    mode, feedback, ladder_step
        As in `failure_probability`. Adaptive use is answered for the planning bounds only, with the error rate seen
        that is nearest to 1/2 and the least similarity seen standing for models that were never asked.
    draws, seed
        Of the bootstrap; by default at least 10,000 draws, and 20 / delta if that is more (up to 200,000).

    Raises
    ------
    DScoreError
        The outcomes are not a (k, n) matrix of 0 and 1.
    SettingsError
        An argument is out of range, or the bound and the mode or estimate do not go together.

    References
    ----------
    Mania et al. 2019 (equations 3, 4, 10; A1); Hunter 1976; Worsley 1982; Chernozhukov et al. 2013.
    """
    packed = pack(outcomes)
    eps, level = checks.open_unit(epsilon, "epsilon"), float(checks.open_unit(delta, "delta"))
    _check_choices(bound, similarity_estimate, mode, feedback)
    spent = level * float(checks.open_unit(confidence_share, "confidence_share"))
    spent = spent if similarity_estimate == "lower-confidence" else 0.0
    population = Population(
        packed.errors(), packed.n, similarity_matrix(packed), cast("Estimate", similarity_estimate), spent or level
    )
    size = min(max(_DRAWS, math.ceil(20 / level)), _MOST_DRAWS) if draws is None else checks.count(draws, "draws")
    work = _Work(packed, population, bound, level, spent, mode, feedback, ladder_step, size, seed)
    log, method, note = work.evaluate(eps)
    return Analysis(
        errors=population.wrong / packed.n,
        similarity=population.similarity,
        epsilon=float(eps),
        delta=level,
        bound=bound,
        method=method,
        failure_probability=tails.probability(log),
        note=note,
        mode_statement=describe_mode(mode, feedback),
        estimate=similarity_estimate,
        spent=spent,
        _work=work,
    )


def least_epsilon(deviation: int, n: int) -> float:
    """Return the least epsilon, to 12 decimals, at which counts deviate from whole n p by so many examples or more."""
    if deviation > n:
        return 1.0
    # Events count from ceil(n eps), so any epsilon just above (m - 1) / n has it.
    return min(1.0, (math.floor(Fraction((deviation - 1) * planning.RESOLUTION, n)) + 1) / planning.RESOLUTION)


def _check_choices(bound: str, estimate: str, mode: str, feedback: str) -> None:
    """Raise for names that do not exist or do not go together."""
    checks.choice(bound, "bound", PLANNING_BOUNDS + NEEDS_OUTCOMES)
    checks.choice(estimate, "similarity_estimate", ESTIMATES)
    checks.choice(mode, "mode", checks.MODES)
    checks.choice(feedback, "feedback", checks.FEEDBACKS)
    if mode == "adaptive" and bound in NEEDS_OUTCOMES:
        raise SettingsError(
            f"bound {bound!r} knows only the models that were scored, not those that could have been; with "
            f"mode = 'adaptive' use one of {', '.join(PLANNING_BOUNDS)}."
        )
    if estimate == "lower-confidence" and (bound not in _EXACT or mode == "adaptive"):
        raise SettingsError(
            f"similarity_estimate = 'lower-confidence' goes with mode = 'non-adaptive' and bound "
            f"{', '.join(_EXACT)}, not with {mode!r} and {bound!r}."
        )
