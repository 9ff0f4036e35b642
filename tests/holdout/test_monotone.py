"""What must not fall does not fall: the bounds as each argument grows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_dscore.holdout import failure_probability, max_models, tolerance

BOUNDS = st.sampled_from(["union", "similarity", "naive-bayes", "theorem-2", "best"])
ROUND = 1 + 1e-9
quick = settings(max_examples=60, deadline=None)


def alike(p: Fraction, share: int) -> Fraction:
    """A similarity between that of independent models (0) and 1 (100)."""
    independent = p * p + (1 - p) * (1 - p)
    return independent + (1 - independent) * Fraction(share, 100)


def value(bound: str, **arguments: Any) -> float:
    return failure_probability(bound=bound, **arguments)


@quick
@given(
    bound=BOUNDS,
    n=st.integers(1, 300),
    p=st.integers(1, 99),
    share=st.integers(0, 100),
    eps=st.integers(1, 60),
    k=st.integers(1, 10**6),
    more=st.integers(1, 10**6),
)
def test_more_models(bound: str, n: int, p: int, share: int, eps: int, k: int, more: int) -> None:
    rate = Fraction(p, 100)
    common = {"n": n, "error": rate, "epsilon": Fraction(eps, 100), "similarity": alike(rate, share)}
    assert value(bound, k=k, **common) <= value(bound, k=k + more, **common) * ROUND


@quick
@given(
    bound=BOUNDS,
    n=st.integers(1, 300),
    p=st.integers(1, 99),
    share=st.integers(0, 100),
    eps=st.integers(1, 60),
    more=st.integers(1, 30),
    k=st.integers(1, 10**6),
)
def test_a_wider_tolerance(bound: str, n: int, p: int, share: int, eps: int, more: int, k: int) -> None:
    rate = Fraction(p, 100)
    common = {"k": k, "n": n, "error": rate, "similarity": alike(rate, share)}
    wide, narrow = Fraction(eps + more, 100), Fraction(eps, 100)
    assert value(bound, epsilon=wide, **common) <= value(bound, epsilon=narrow, **common) * ROUND


@quick
@given(
    bound=BOUNDS,
    n=st.integers(1, 300),
    p=st.integers(1, 99),
    low=st.integers(0, 99),
    more=st.integers(1, 100),
    eps=st.integers(1, 60),
    k=st.integers(1, 10**6),
)
def test_more_alike(bound: str, n: int, p: int, low: int, more: int, eps: int, k: int) -> None:
    rate = Fraction(p, 100)
    common = {"k": k, "n": n, "error": rate, "epsilon": Fraction(eps, 100)}
    high = min(100, low + more)
    assert value(bound, similarity=alike(rate, high), **common) <= (
        value(bound, similarity=alike(rate, low), **common) * ROUND
    )


@quick
@given(
    bound=BOUNDS,
    units=st.integers(1, 20),
    p=st.sampled_from([5, 10, 15, 25]),
    eps=st.sampled_from([5, 10, 20]),
    share=st.integers(0, 100),
    k=st.integers(1, 10**6),
)
def test_more_examples(bound: str, units: int, p: int, eps: int, share: int, k: int) -> None:
    # numbers of examples at which every boundary is whole; between them counts make the tails go up and down
    rate = Fraction(p, 100)
    common = {"k": k, "error": rate, "epsilon": Fraction(eps, 100), "similarity": alike(rate, share)}
    assert value(bound, n=20 * (units + 1), **common) <= value(bound, n=20 * units, **common) * ROUND


@quick
@given(units=st.integers(1, 20), p=st.integers(1, 9), eps=st.sampled_from([1, 2, 4]), k=st.integers(1, 10**6))
def test_an_error_rate_nearer_to_a_half(units: int, p: int, eps: int, k: int) -> None:
    common = {"k": k, "n": 20 * units, "epsilon": Fraction(eps, 20)}
    assert (
        value("union", error=Fraction(p, 20), **common) <= value("union", error=Fraction(p + 1, 20), **common) * ROUND
    )


@settings(max_examples=25, deadline=None)
@given(
    bound=BOUNDS,
    n=st.integers(20, 400),
    p=st.integers(5, 95),
    share=st.integers(0, 100),
    delta=st.integers(1, 90),
    more=st.integers(1, 9),
    k=st.integers(1, 10**4),
)
def test_a_larger_delta(bound: str, n: int, p: int, share: int, delta: int, more: int, k: int) -> None:
    rate = Fraction(p, 100)
    common: dict[str, Any] = {"bound": bound, "n": n, "error": rate, "similarity": alike(rate, share)}
    low, high = delta / 100, (delta + more) / 100
    assert max_models(epsilon=0.2, delta=low, **common) <= max_models(epsilon=0.2, delta=high, **common)
    assert tolerance(k=k, delta=high, **common) <= tolerance(k=k, delta=low, **common)


@quick
@given(
    n=st.integers(1, 300),
    p=st.integers(0, 100),
    share=st.integers(-20, 100),
    eps=st.integers(1, 60),
    k=st.integers(1, 10**9),
)
def test_best_and_similarity_and_naive_bayes_are_never_looser_than_union(
    n: int, p: int, share: int, eps: int, k: int
) -> None:
    rate = Fraction(p, 100)
    similarity = max(Fraction(0), alike(rate, share))
    common = {"k": k, "n": n, "error": rate, "epsilon": Fraction(eps, 100)}
    union = value("union", **common)
    assert 0.0 <= value("best", similarity=similarity, **common) <= union
    if share >= 0:
        assert value("similarity", similarity=similarity, **common) <= union
        assert value("naive-bayes", similarity=similarity, **common) <= union
