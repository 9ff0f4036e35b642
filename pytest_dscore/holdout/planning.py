"""The four questions of planning: how many models, how likely a failure, what tolerance, how many examples.

All take the same keywords. ``mode = "adaptive"`` answers them for models written one after another in the light of
earlier results, where `feedback` says what was shown (see `queries`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from pytest_dscore.holdout import checks, tails
from pytest_dscore.holdout.bounds import Holdout, UnionBound, make_bound
from pytest_dscore.holdout.checks import Feedback, Mode
from pytest_dscore.holdout.queries import Queries, count_queries, describe_mode
from pytest_dscore.holdout.search import doubled, first, largest

RESOLUTION = 10**12  #: tolerances are found to one part in this


class CouplingWarning(UserWarning):
    """The similarity given allows no coupling, and the union bound was used in place of the one asked for."""


@dataclass(frozen=True)
class Evaluation:
    """A bound with everything a report has to say about it.

    Parameters
    ----------
    failure_probability
        Bound on the probability of the overfitting event, in [0, 1].
    log_failure_probability
        Its logarithm (``-inf`` for 0), for values below the smallest double.
    bound
        The bound that was asked for.
    method
        The one that was computed: another than `bound` for ``best`` and where a fallback was needed.
    note
        An assumption or a fallback in words; empty where there is none.
    mode_statement
        One sentence on non-adaptive or adaptive use.
    log_queries
        Logarithm of the number of queries covered.
    """

    failure_probability: float
    log_failure_probability: float
    bound: str
    method: str
    note: str
    mode_statement: str
    log_queries: float


@dataclass(frozen=True)
class _Use:
    """How models are counted."""

    mode: Mode
    feedback: Feedback
    step: float | Fraction

    def queries(self, k: int, n: int) -> Queries:
        return count_queries(k, n, self.mode, self.feedback, self.step)


def evaluate(
    *,
    k: int,
    n: int,
    epsilon: float | Fraction,
    error: float | Fraction | None = None,
    bound: str = "best",
    similarity: float | Fraction | None = None,
    cover_size: int = 1,
    mode: Mode = "non-adaptive",
    feedback: Feedback = "exact",
    ladder_step: float | Fraction | None = None,
) -> Evaluation:
    """Return `failure_probability` together with the method, the assumption and the mode in words.

    Parameters, errors and sources are those of `failure_probability`.
    """
    holdout = _holdout(n, epsilon, error, similarity, cover_size)
    use = _use(mode, feedback, ladder_step, epsilon)
    made = make_bound(bound, holdout)
    queries = use.queries(checks.count(k, "k"), holdout.n)
    log = tails.round_up(made.log_probability(queries))
    return Evaluation(
        failure_probability=tails.probability(log),
        log_failure_probability=log,
        bound=bound,
        method=made.method,
        note=made.note,
        mode_statement=describe_mode(use.mode, use.feedback),
        log_queries=queries.log,
    )


def failure_probability(
    *,
    k: int,
    n: int,
    epsilon: float | Fraction,
    error: float | Fraction | None = None,
    bound: str = "best",
    similarity: float | Fraction | None = None,
    cover_size: int = 1,
    mode: Mode = "non-adaptive",
    feedback: Feedback = "exact",
    ladder_step: float | Fraction | None = None,
) -> float:
    """Return a bound on the probability that any of k models' test error is off by epsilon or more.

    Parameters
    ----------
    k
        Models (rounds, if adaptive), at least 1.
    n
        Test examples, at least 1.
    epsilon
        Tolerance in (0, 1); a deviation of exactly epsilon counts as failure.
    error
        Population error rate of the models, in [0, 1]. Only ``theorem-2`` does without.
    bound
        ``"union"``, ``"similarity"``, ``"naive-bayes"`` (rests on Assumption A1), ``"theorem-2"`` or ``"best"``, the
        smallest of union, similarity and theorem-2.
    similarity
        Least probability in [0, 1] that two models are both right or both wrong.
    cover_size
        Number of models that cover the rest at `similarity`, for ``theorem-2``; 1 if all pairs are that similar and
        all have the same error rate.
    mode, feedback
        How the models came about, see `count_queries`.
    ladder_step
        Step of the Ladder in (0, 1); epsilon if not given.

    Returns
    -------
    float
        In [0, 1]; never below the true probability.

    Raises
    ------
    SettingsError
        An argument is missing, of the wrong kind or out of range.

    Warns
    -----
    CouplingWarning
        `similarity` is below that of independent models, and the union bound is returned.

    References
    ----------
    Mania et al. 2019, "Model Similarity Mitigates Test Set Overuse", equations (2), (3), (4), (10), Assumption A1.
    """
    result = evaluate(
        k=k,
        n=n,
        epsilon=epsilon,
        error=error,
        bound=bound,
        similarity=similarity,
        cover_size=cover_size,
        mode=mode,
        feedback=feedback,
        ladder_step=ladder_step,
    )
    _warn(bound, result.method, result.note)
    return result.failure_probability


def max_models(
    *,
    n: int,
    epsilon: float | Fraction,
    delta: float,
    error: float | Fraction | None = None,
    bound: str = "best",
    similarity: float | Fraction | None = None,
    cover_size: int = 1,
    mode: Mode = "non-adaptive",
    feedback: Feedback = "exact",
    ladder_step: float | Fraction | None = None,
) -> int:
    """Return the largest number of models for which the bound stays at or below delta.

    Parameters
    ----------
    delta
        Failure probability allowed, in (0, 1).
    n, epsilon, error, bound, similarity, cover_size, mode, feedback, ladder_step
        As in `failure_probability`.

    Returns
    -------
    int
        0 where not even one model is allowed; `search.MOST_MODELS` where models are no limit. Up to 10^15 exact;
        above, the last digits mean nothing in double precision and the number is rounded down to 12 of them
        (`format_count`).

    Raises
    ------
    SettingsError
        An argument is missing, of the wrong kind or out of range.
    """
    holdout = _holdout(n, epsilon, error, similarity, cover_size)
    use, log_delta = _use(mode, feedback, ladder_step, epsilon), math.log(float(checks.open_unit(delta, "delta")))
    made = make_bound(bound, holdout)

    def holds(k: int) -> bool:
        return tails.round_up(made.log_probability(use.queries(k, holdout.n))) <= log_delta

    _warn(bound, made.method, made.note)
    return largest(holds)


def tolerance(
    *,
    k: int,
    n: int,
    delta: float,
    error: float | Fraction | None = None,
    bound: str = "best",
    similarity: float | Fraction | None = None,
    cover_size: int = 1,
    mode: Mode = "non-adaptive",
    feedback: Feedback = "exact",
    ladder_step: float | Fraction | None = None,
) -> float:
    """Return the smallest epsilon, rounded up to 12 decimals, at which the bound for k models is at most delta.

    Parameters
    ----------
    k, delta, n, error, bound, similarity, cover_size, mode, feedback
        As in `failure_probability` and `max_models`.
    ladder_step
        Step of the Ladder in (0, 1); must be given if ``feedback = "ladder"``, there being no epsilon to take.

    Returns
    -------
    float
        In (0, 1]; 1.0 says that nothing better than the trivial statement holds.

    Raises
    ------
    SettingsError
        An argument is missing, of the wrong kind or out of range.
    """
    use = _use(mode, feedback, ladder_step, None)
    holdout = _holdout(n, Fraction(1, 2), error, similarity, cover_size)
    log_delta = math.log(float(checks.open_unit(delta, "delta")))
    queries = use.queries(checks.count(k, "k"), holdout.n)
    made = make_bound(bound, holdout)
    _warn(bound, made.method, made.note)
    top = RESOLUTION
    if bound != "theorem-2":  # the union tolerance is cheap, and never smaller
        top = first(_holds_at("union", holdout, queries, log_delta), 1, RESOLUTION)
    names = [bound]
    if bound == "best":
        names = [] if similarity is None else ["similarity", "theorem-2"]
    return min([top] + [first(_holds_at(name, holdout, queries, log_delta), 1, top) for name in names]) / RESOLUTION


def _holds_at(name: str, holdout: Holdout, queries: Queries, log_delta: float) -> Callable[[int], bool]:
    """Return whether a bound is at most delta, as a function of epsilon in units of 1 / RESOLUTION.

    Exact bounds see epsilon only through the boundaries, which are few, so that most steps of a search are free.
    """
    cache: dict[tuple[int, int], bool] = {}

    def holds(step: int) -> bool:
        at = replace(holdout, epsilon=step / RESOLUTION)
        key = (step, 0)
        if name != "theorem-2" and at.error is not None:
            key = tails.boundaries(at.n, at.error, at.epsilon)
        if key not in cache:
            cache[key] = tails.round_up(make_bound(name, at).log_probability(queries)) <= log_delta
        return cache[key]

    return holds


def required_examples(
    *,
    k: int,
    epsilon: float | Fraction,
    delta: float,
    error: float | Fraction | None = None,
    bound: str = "best",
    similarity: float | Fraction | None = None,
    cover_size: int = 1,
    mode: Mode = "non-adaptive",
    feedback: Feedback = "exact",
    ladder_step: float | Fraction | None = None,
) -> int:
    """Return how many examples k models need.

    Because counts are whole numbers the bounds go up and down a little as n grows. Returned is the n after the last
    failure found: the bound holds at n, fails at n - 1, and was checked at the worst-placed of the greater n near by.

    Parameters
    ----------
    k, delta, epsilon, error, bound, similarity, cover_size, mode, feedback, ladder_step
        As in `failure_probability` and `max_models`.

    Raises
    ------
    SettingsError
        An argument is missing, of the wrong kind or out of range.
    DScoreError
        More than `search.MOST_EXAMPLES` would be needed.
    """
    holdout = _holdout(1, epsilon, error, similarity, cover_size)
    use, size = _use(mode, feedback, ladder_step, epsilon), checks.count(k, "k")
    log_delta = math.log(float(checks.open_unit(delta, "delta")))
    _warn(bound, (made := make_bound(bound, holdout)).method, made.note)

    def holds_with(name: str) -> Callable[[int], bool]:
        def holds(n: int) -> bool:
            value = make_bound(name, replace(holdout, n=n)).log_probability(use.queries(size, n))
            return tails.round_up(value) <= log_delta

        return holds

    start = 1
    top = doubled(holds_with("union" if error is not None and bound != "theorem-2" else bound), 1)
    holds = holds_with(bound)
    start = first(holds, 1, top)
    if bound == "theorem-2":
        return start  # smooth in n
    return _after_last_failure(start, holdout, holds)


def _after_last_failure(start: int, holdout: Holdout, holds: Callable[[int], bool]) -> int:
    """Return one more than the last n from `start` on, near by, at which the bound fails.

    Boundaries are whole, so the tails fall in a saw-tooth of height about exp(eps / (p (1 - p))) while the trend falls
    by exp(-eps^2 / (2 p (1 - p))) a step: a failure lies at most about 2 / eps beyond. The n of the largest union
    tails are the ones that may fail.
    """
    while True:
        window = range(start + 1, start + min(20_000, math.ceil(4 / float(holdout.epsilon))) + 1)
        ranked = sorted(window, key=lambda n: -_union_tail(replace(holdout, n=n)))[:48]
        failing = [n for n in ranked if not holds(n)]
        if not failing:
            return start
        start = max(failing) + 1
        while not holds(start):
            start += 1


def _union_tail(holdout: Holdout) -> float:
    return UnionBound(holdout).log_tail


def _holdout(
    n: int,
    epsilon: float | Fraction,
    error: float | Fraction | None,
    similarity: float | Fraction | None,
    cover_size: int,
) -> Holdout:
    """Return the checked arguments."""
    return Holdout(
        n=checks.count(n, "n"),
        epsilon=checks.open_unit(epsilon, "epsilon"),
        error=None if error is None else checks.closed_unit(error, "error"),
        similarity=None if similarity is None else checks.closed_unit(similarity, "similarity"),
        cover_size=checks.count(cover_size, "cover_size"),
    )


def _use(mode: str, feedback: str, step: float | Fraction | None, epsilon: float | Fraction | None) -> _Use:
    """Return the checked counting rule."""
    checks.choice(mode, "mode", checks.MODES)
    checks.choice(feedback, "feedback", checks.FEEDBACKS)
    if step is None:
        step = epsilon if epsilon is not None else math.nan
    if mode == "adaptive" and feedback == "ladder":
        step = checks.open_unit(step, "ladder_step")
    return _Use(mode, feedback, step)  # type: ignore[arg-type]


def _warn(asked: str, method: str, note: str) -> None:
    """Warn where the union bound stands in for the one asked for."""
    if asked not in ("best", "union") and method == "union" and note:
        warnings.warn(note, CouplingWarning, stacklevel=3)
