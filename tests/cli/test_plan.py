"""``dscore holdout plan``."""

from __future__ import annotations

import json

import pytest

from pytest_dscore.holdout import failure_probability, format_count, max_models, required_examples, tolerance
from tests.cli.conftest import Run

IMAGENET = ("plan", "--n", "50000", "--epsilon", "0.01", "--error", "0.244", "--similarity", "0.85")
BOUNDS = ["union", "similarity", "theorem-2", "best", "naive-bayes", "empirical", "bootstrap"]


def row(out: str, bound: str) -> list[str]:
    """The cells of a bound's line."""
    return next(line.split() for line in out.splitlines() if line.startswith(f"{bound} "))


def test_how_many_models_by_every_bound(dscore: Run) -> None:
    result = dscore(*IMAGENET)
    assert result.code == 0
    for bound, count in [("union", "251,165"), ("similarity", "1,062,137"), ("naive-bayes", "128,963,384")]:
        assert row(result.out, bound)[1] == count
    assert [
        line.split()[0] for line in result.out.splitlines() if line[:9].strip("- ") and line.split()[0] in BOUNDS
    ] == BOUNDS
    assert "A1: models fail independently on hard examples" in result.flat
    assert "nothing about how alike the models are" in result.flat
    assert "Non-adaptive: this holds if all the models were fixed before" in result.flat


def test_the_json_is_what_the_library_says(dscore: Run) -> None:
    printed = json.loads(dscore(*IMAGENET, "--k", "1000", "--json").out)
    given = {"error": 0.244, "similarity": 0.85}
    for bound in BOUNDS[:5]:
        answer = printed["bounds"][bound]
        more = {**given, "bound": bound}
        assert answer["models"] == max_models(n=50_000, epsilon=0.01, delta=0.05, **more)  # type: ignore[arg-type]
        assert answer["examples"] == required_examples(k=1000, epsilon=0.01, delta=0.05, **more)  # type: ignore[arg-type]
        assert answer["epsilon"] == tolerance(n=50_000, k=1000, delta=0.05, **more)  # type: ignore[arg-type]
        exact = failure_probability(n=50_000, k=1000, epsilon=0.01, **more)  # type: ignore[arg-type]
        assert answer["failure_probability"] == exact
    assert printed["bounds"]["bootstrap"]["models"] is None
    assert printed["given"]["n"] == 50_000


def test_all_three_given_answers_everything(dscore: Run) -> None:
    result = dscore(*IMAGENET, "--k", "1000")
    assert row(result.out, "union") == ["union", "251,165", "30,390", "0.007801", "0.000199"]


def test_an_epsilon_is_shown_no_smaller_than_it_is(dscore: Run) -> None:
    result = dscore("plan", "--n", "2000", "--k", "20", "--error", "0.1", "--bound", "union")
    shown, exact = float(row(result.out, "union")[1]), tolerance(n=2000, k=20, error=0.1, delta=0.05, bound="union")
    assert exact <= shown <= exact + 1e-6


def test_adaptive_use(dscore: Run) -> None:
    result = dscore(
        "plan", "--n", "20000", "--epsilon", "0.02", "--error", "0.1", "--mode", "adaptive", "--feedback", "pass-fail"
    )
    expected = max_models(n=20_000, epsilon=0.02, delta=0.05, error=0.1, mode="adaptive", feedback="pass-fail")
    assert row(result.out, "best")[1] == format_count(expected)
    assert "only whether each model passed" in result.flat
    assert "needs --similarity" in result.flat


def test_the_ladder_without_an_epsilon_needs_a_step(dscore: Run) -> None:
    arguments = ("plan", "--n", "20000", "--k", "5", "--mode", "adaptive", "--feedback", "ladder", "--bound", "union")
    assert "ladder_step must" in dscore(*arguments).sentence
    assert dscore(*arguments, "--ladder-step", "0.02").code == 0


def test_a_similarity_below_independence_says_so(dscore: Run) -> None:
    result = dscore("plan", "--n", "1000", "--k", "4", "--similarity", "0.2", "--error", "0.4")
    assert row(result.out, "similarity")[1] == row(result.out, "union")[1]
    assert result.flat.count("the coupling does not exist: the union bound is used") == 2


def test_budgets_without_end_are_written_short(dscore: Run) -> None:
    result = dscore("plan", "--n", "50000", "--epsilon", "0.01", "--error", "0.1", "--similarity", "1")
    assert "1.00e+300 or more" in result.out
    huge = dscore("plan", "--n", "50000", "--k", "1e300", "--error", "0.1", "--bound", "union")
    assert huge.code == 0
    assert "1.00e+300" in huge.out


def test_more_examples_than_can_be_searched_leave_a_dash(dscore: Run) -> None:
    result = dscore("plan", "--k", "1e300", "--epsilon", "0.0001", "--bound", "union")
    assert result.code == 0
    assert row(result.out, "union")[1] == "-"


@pytest.mark.parametrize("written", ["50000", "50_000", "50,000", "5e4"])
def test_counts_may_be_written_as_people_do(dscore: Run, written: str) -> None:
    assert "50,000 examples" in dscore("plan", "--n", written, "--epsilon", "0.01", "--bound", "union").out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--n", "5"), "give at least two of --n, --k and --epsilon"),
        (("--n", "5", "--epsilon", "2"), "epsilon must lie strictly between 0 and 1, not 2.0"),
        (("--n", "5", "--epsilon", "nan"), "epsilon must lie strictly between 0 and 1, not nan"),
        (("--n", "0", "--epsilon", "0.1"), "n must be a whole number of at least 1, not 0"),
        (("--n", "5", "--k", "0"), "k must be a whole number of at least 1"),
        (("--n", "5.5", "--k", "1"), "'5.5' is not a whole number"),
        (("--n", "many", "--k", "1"), "'many' is not a whole number"),
        (("--n", "1/0", "--k", "1"), "'1/0' is not a whole number"),
        (("--n", "5", "--k", "1", "--delta", "1"), "delta must lie strictly between 0 and 1"),
        (("--n", "5", "--k", "1", "--error", "1.5"), "error must lie between 0 and 1"),
        (("--n", "5", "--k", "1", "--similarity", "-1"), "similarity must lie between 0 and 1"),
        (("--n", "5", "--k", "1", "--mode", "adaptve"), "mode must be one of non-adaptive, adaptive"),
        (("--n", "5", "--k", "1", "--feedback", "none"), "feedback must be one of exact, pass-fail, ladder"),
        (("--n", "5", "--k", "1", "--bound", "onion"), "invalid choice: 'onion'"),
        (("--n", "5", "--k", "1", "--bound", "bootstrap"), "needs the outcomes of real models"),
        (("--n", "5", "--k", "1", "--epsilo", "0.1"), "unrecognized arguments: --epsilo"),
        (("--n", "9" * 320, "--epsilon", "0.1"), "n must be at most 1e308"),
        (("--n", "1e999999999", "--epsilon", "0.1"), "'1e999999999' is too large: at most 1e308"),
        (("--n", "inf", "--epsilon", "0.1"), "'inf' is not a whole number"),
    ],
)
def test_bad_input_is_one_sentence(dscore: Run, arguments: tuple[str, ...], says: str) -> None:
    assert says in dscore("plan", *arguments).sentence
