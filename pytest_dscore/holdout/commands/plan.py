"""``dscore holdout plan``: how many models, how many examples, what epsilon, by every bound side by side."""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from pytest_dscore.errors import DScoreError, SettingsError
from pytest_dscore.holdout import planning
from pytest_dscore.holdout.bounds import NO_COUPLING
from pytest_dscore.holdout.queries import describe_mode
from pytest_dscore.holdout.search import format_count
from pytest_dscore.report.text import percent, table, wrapped
from pytest_dscore.settings.holdouts import BOUNDS

_MOST_DIGITS = 400
_NEEDS_OUTCOMES = ("empirical", "bootstrap")
#: What each bound takes for granted beyond independent examples and the error rate.
ASSUMES = {
    "union": "nothing about how alike the models are",
    "similarity": "that all models agree with one of them on that share of examples or more",
    "theorem-2": "that every model has a similar one among the cover; closed form, loose",
    "best": "nothing more: the smallest of union, similarity and theorem-2",
    "naive-bayes": "A1: models fail independently on hard examples, never on easy ones (real ones only nearly)",
    "empirical": "that rates seen are the true ones; needs the outcomes of real models, see `dscore holdout status`",
    "bootstrap": "many examples (asymptotic); needs the outcomes of real models, see `dscore holdout status`",
}
_TITLES = {"models": "models", "examples": "examples", "epsilon": "epsilon", "failure_probability": "P(failure)"}


def add_to(commands: Any) -> None:
    """Add the sub-command."""
    parser = commands.add_parser(
        "plan",
        help="how many models, how many examples, what epsilon",
        description="Give two of --n, --k and --epsilon for the third by every bound; give all three for everything.",
    )
    parser.add_argument("--n", type=number, metavar="N", help="test examples")
    parser.add_argument("--k", type=number, metavar="K", help="models to be scored (rounds, if adaptive)")
    parser.add_argument("--epsilon", type=float, metavar="E", help="how far a score may be off, such as 0.02")
    add_model_options(parser)
    parser.add_argument("--cover-size", type=int, default=1, metavar="N", help="models that cover the rest (theorem-2)")
    parser.add_argument("--mode", default="non-adaptive", help="non-adaptive (default) or adaptive")
    parser.add_argument("--feedback", default="exact", help="if adaptive: exact (default), pass-fail or ladder")
    parser.add_argument("--ladder-step", type=float, metavar="S", help="the Ladder's step; default: epsilon")
    parser.add_argument("--bound", choices=BOUNDS, metavar="NAME", help="this one only; default: all")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what the models are like."""
    parser.add_argument("--error", type=float, default=0.5, metavar="P", help="the models' error rate; default: 0.5")
    parser.add_argument("--similarity", type=float, metavar="S", help="least share of examples on which two agree")
    parser.add_argument("--delta", type=float, default=0.05, metavar="D", help="failure probability; default: 0.05")


def number(text: str) -> int:
    """Read a whole number, also written as 50_000, 50,000 or 1e6."""
    try:
        value = Decimal(text.replace(",", "").replace("_", ""))
    except InvalidOperation:
        value = Decimal("nan")
    if not value.is_finite():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    if value.adjusted() > _MOST_DIGITS:  # written out, 1e999999999 would fill the memory
        raise argparse.ArgumentTypeError(f"{text!r} is too large: at most 1e308")
    if value != value.to_integral_value():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(value)


def run(options: argparse.Namespace) -> int:
    """Print the table."""
    if sum(value is not None for value in (options.n, options.k, options.epsilon)) < 2:
        raise SettingsError("give at least two of --n, --k and --epsilon, and the third is computed")
    questions = _questions(options)
    names = [options.bound] if options.bound else list(ASSUMES)
    if options.bound in _NEEDS_OUTCOMES:
        raise SettingsError(f"bound '{options.bound}' needs the outcomes of real models: see `dscore holdout status`")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", planning.CouplingWarning)  # `_note` says it
        answers = {name: _answers(name, options, questions) for name in names}
    if options.json:
        print(json.dumps(_as_json(options, answers), indent=2))
        return 0
    head = ["bound", *(_TITLES[key] for key in questions), "assumes"]
    rows = [[name, *(_cell(key, answer[key]) for key in questions), answer["note"]] for name, answer in answers.items()]
    text = [*wrapped(_given(options)), "", *table(head, rows, right=range(1, len(head) - 1))]
    print("\n".join([*text, "", *wrapped(describe_mode(options.mode, options.feedback))]))
    return 0


def _questions(options: argparse.Namespace) -> dict[str, Callable[..., Any]]:
    """Return what is asked: the function that answers it, by the answer's name."""
    n, k, epsilon, delta = options.n, options.k, options.epsilon, options.delta
    questions: dict[str, Callable[..., Any]] = {}
    if n is not None and epsilon is not None:
        questions["models"] = lambda **more: planning.max_models(n=n, epsilon=epsilon, delta=delta, **more)
    if k is not None and epsilon is not None:
        questions["examples"] = lambda **more: planning.required_examples(k=k, epsilon=epsilon, delta=delta, **more)
    if n is not None and k is not None:
        questions["epsilon"] = lambda **more: planning.tolerance(n=n, k=k, delta=delta, **more)
        if epsilon is not None:
            questions["failure_probability"] = lambda **more: planning.failure_probability(
                n=n, k=k, epsilon=epsilon, **more
            )
    return questions


def _answers(name: str, options: argparse.Namespace, questions: dict[str, Callable[..., Any]]) -> dict[str, Any]:
    """Return one bound's answers and what it assumes."""
    note = ASSUMES[name]
    if name in ("similarity", "naive-bayes", "theorem-2") and options.similarity is None:
        return {**dict.fromkeys(questions), "note": f"{note}; needs --similarity"}
    if name in _NEEDS_OUTCOMES:
        return {**dict.fromkeys(questions), "note": note}
    given: dict[str, Any] = {
        "bound": name,
        "error": options.error,
        "similarity": options.similarity,
        "cover_size": options.cover_size,
        "mode": options.mode,
        "feedback": options.feedback,
        "ladder_step": options.ladder_step if options.ladder_step is not None else options.epsilon,
    }
    answers: dict[str, Any] = {}
    for key, question in questions.items():
        try:
            answers[key] = question(**given)
        except SettingsError:
            raise
        except DScoreError:  # more examples than the search goes to: the other answers and bounds still stand
            answers[key] = None
    return {**answers, "note": note + _fallback(given)}


def _fallback(given: dict[str, Any]) -> str:
    """Return what is to be added where the union bound stands in for the one asked for."""
    # Whether there is a coupling depends on the error and the similarity alone, so any n, k and epsilon will tell.
    note = (
        planning.evaluate(**{**given, "ladder_step": 0.5}, n=10, k=1, epsilon=0.5).note
        if given["bound"] != "best"
        else ""
    )
    return f". Here {note}" if note == NO_COUPLING else ""


def _cell(key: str, value: Any) -> str:
    if value is None:
        return "-"
    if key in ("models", "examples"):
        return format_count(value)
    if key == "epsilon":  # rounded up: it does not hold for less
        return f"{math.ceil(value * 1e6 - 1e-9) / 1e6:.6f}"
    return f"{value:.3g}"


def _given(options: argparse.Namespace) -> str:
    counts = {"examples": options.n, "models": options.k}
    parts = [f"{format_count(value)} {name}" for name, value in counts.items() if value is not None]
    parts.append(f"error rate {percent(options.error)}")
    if options.epsilon is not None:
        parts.append(f"epsilon +-{percent(options.epsilon)}")
    if options.similarity is not None:
        parts.append(f"similarity {percent(options.similarity)}")
    return f"{', '.join(parts)}, with probability {percent(1 - options.delta)}:"


def _as_json(options: argparse.Namespace, answers: dict[str, Any]) -> dict[str, Any]:
    names = ("n", "k", "epsilon", "delta", "error", "similarity", "cover_size", "mode", "feedback", "ladder_step")
    return {"given": {name: getattr(options, name) for name in names}, "bounds": answers}
