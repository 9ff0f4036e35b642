"""From a use on record to what may be shown of it, and to verdicts, in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pytest_dscore.errors import DScoreError
from pytest_dscore.figure import Figure
from pytest_dscore.holdout.budget import Budget
from pytest_dscore.holdout.charging import Charged, feedback_of
from pytest_dscore.holdout.ladder import Ladder
from pytest_dscore.holdout.ledger import Overlap, Use
from pytest_dscore.holdout.provenance import in_a_directory, in_ci
from pytest_dscore.holdout.terms import Terms
from pytest_dscore.holdout.wording import refused_note, sentence
from pytest_dscore.report.text import percent, without_answers
from pytest_dscore.settings import HoldoutSettings
from pytest_dscore.verdict import Outcome, Verdict

_LADDER = re.compile(r"ladder; best error (\d+(?:/\d+)?), (not )?improved")


@dataclass(frozen=True)
class Answer:
    """What the hold-out's feedback lets be seen of a use.

    Parameters
    ----------
    figure
        Accuracy with its simultaneous interval; None where it is hidden.
    hidden
        Why it is hidden.
    passed
        Whether min_accuracy was reached; None where there is none.
    improved
        With a ladder, whether the best so far was beaten by a step.
    """

    figure: Figure | None = None
    hidden: str = ""
    passed: bool | None = None
    improved: bool | None = None


def shown_of(settings: HoldoutSettings) -> Callable[[Sequence[Use], Sequence[Use]], str]:
    """Return what writes down, as part of a record, what is shown of a new use."""
    feedback = settings.feedback if settings.mode == "adaptive" else "exact"

    def shown(existing: Sequence[Use], new: Sequence[Use]) -> str:
        use = new[0]
        if feedback == "exact":
            return "accuracy shown"
        if feedback == "pass-fail":
            return _pass_line(settings, passed(settings, use))
        best = min((Fraction(found[1]) for one in existing if (found := _LADDER.match(one.verdict))), default=None)
        ladder = Ladder(use.n, settings.epsilon, best)
        answer = ladder.submit_count(use.wrong)
        return f"best error {ladder.exact_best}, {'' if answer.improved else 'not '}improved"

    return shown


def passed(settings: HoldoutSettings, use: Use) -> bool:
    """Whether a use reaches min_accuracy, compared exactly."""
    assert settings.min_accuracy is not None
    return Fraction(use.n - use.wrong, use.n) >= Fraction(str(settings.min_accuracy))


def _pass_line(settings: HoldoutSettings, good: bool) -> str:
    return f"{'passed' if good else 'failed'} min_accuracy {settings.min_accuracy:g}"


def answer_of(settings: HoldoutSettings, use: Use) -> Answer:
    """Return what may be seen of a use on record.

    Raises
    ------
    DScoreError
        It was shown under other settings, and showing it under these would reveal more than was counted.
    """
    if settings.mode == "non-adaptive" or settings.feedback == "exact":
        if use.score_hidden:
            raise DScoreError(_other_terms(use))
        good = passed(settings, use) if settings.min_accuracy is not None else None
        return Answer(_figure((use.n - use.wrong) / use.n, settings.epsilon, settings.delta), passed=good)
    if settings.feedback == "pass-fail":
        return _pass_fail(settings, use)
    found = _LADDER.match(use.verdict)
    if found is None:
        raise DScoreError(_other_terms(use))
    if found[2]:
        best = float(1 - Fraction(found[1]))
        hidden = f"it did not beat the best so far ({best:.3f}) by a whole step, so its accuracy is not shown"
        return Answer(hidden=f"{hidden}: ask use.improved", improved=False)
    # The value shown is rounded to a multiple of the step, which moves it by half a step at most.
    half = settings.epsilon * 1.5
    return Answer(_figure(max(0.0, float(1 - Fraction(found[1]))), half, settings.delta), improved=True)


def _pass_fail(settings: HoldoutSettings, use: Use) -> Answer:
    good = use.verdict == f"pass-fail; {_pass_line(settings, True)}"
    if not good and use.verdict != f"pass-fail; {_pass_line(settings, False)}":
        raise DScoreError(_other_terms(use))
    return Answer(hidden="feedback = 'pass-fail' does not show accuracies", passed=good)


def _other_terms(use: Use) -> str:
    return (
        f"this model is on record with what was shown then ({use.verdict or 'nothing noted'}); showing it under the "
        "settings of now would be one more answer than was counted: put the settings back, or evaluate another model"
    )


def _figure(value: float, half: float, delta: float) -> Figure:
    return Figure(value, max(0.0, value - half), min(1.0, value + half), confidence=1 - delta)


def use_verdicts(
    name: str, settings: HoldoutSettings, charged: Charged, answer: Answer, differing: int, place: str
) -> list[Verdict]:
    """Return the verdict on the budget and, where there is a threshold, that on the accuracy.

    Parameters
    ----------
    name
        Of the hold-out.
    settings
        As declared.
    charged
        The use on record.
    answer
        What may be seen of it.
    differing
        Examples on which the answers now are not those on record.
    place
        Where the ledger is kept.
    """
    budget = charged.budget
    facts = budget_facts(budget, place) | {
        "new": charged.recorded[0].is_new,
        "model_fingerprint": model_known(charged.recorded[0].use, answer),
        "remarks": [*remarks(budget, charged.new, place), *_other_answers(differing)],
    }
    figures = {} if answer.figure is None else {"accuracy": answer.figure}
    verdicts = [_budget(name, budget, figures, facts)]
    if answer.passed is not None:
        verdicts.append(_accuracy(name, settings, answer, facts))
    return verdicts


def model_known(use: Use, answer: Answer) -> str:
    """What a report may call a model: without the digest of its answers, where these are hidden."""
    return without_answers(use.model) if answer.figure is None else use.model


def _budget(name: str, budget: Budget, figures: dict[str, Figure], facts: dict[str, Any]) -> Verdict:
    outcome: Outcome = "pass" if budget.holds and not budget.too_many else "fail"
    reason = facts["sentence"] if outcome == "pass" else _overspent(budget, facts["sentence"])
    return Verdict(name, "budget", outcome, reason, budget.epsilon, "accuracy", figures, facts, "holdout")


def _overspent(budget: Budget, text: str) -> str:
    if not budget.holds:
        return f"{text}: the settings are stricter than when the models were admitted, or branches were merged"
    return text  # which says that max_uses is exceeded


def _accuracy(name: str, settings: HoldoutSettings, answer: Answer, facts: dict[str, Any]) -> Verdict:
    relation = "reaches" if answer.passed else "is below"
    shown = f"accuracy {answer.figure}" if answer.figure is not None else "the accuracy (not shown: pass-fail)"
    reason = f"hold-out '{name}': {shown} {relation} min_accuracy = {settings.min_accuracy:g}"
    figures = {} if answer.figure is None else {"accuracy": answer.figure}
    outcome: Outcome = "pass" if answer.passed else "fail"
    return Verdict(name, "min_accuracy", outcome, reason, settings.min_accuracy, "accuracy", figures, facts, "holdout")


def _other_answers(differing: int) -> list[str]:
    if not differing:
        return []
    return [
        "the model answers otherwise than when it was recorded, with the same weights and code: what is on record is "
        "shown, as a second answer would be one more use"
    ]


def other_examples(n: int, related: Sequence[tuple[Overlap, int]]) -> str:
    """Return what is said of `n` examples that are not those on record, but for some.

    Parameters
    ----------
    n
        Examples now.
    related
        What they share with each hold-out on record, and how many examples that one has.
    """
    parts = []
    for found, size in related:
        count = f"{found.common:,}" if found.exact else f"about {found.common:,}"
        gone, added = size - found.common, n - found.common
        parts.append(
            f"{count} of the {size:,} examples of '{found.name}' are among them, {gone:,} gone, {added:,} added"
        )
    return (
        f"WARNING: these {n:,} examples are not those on record: {'; '.join(parts)}. That is allowed and charges the "
        "same budget, as no label of a known example changed; one whose values changed counts as gone and added. If "
        "that was by accident, put them back"
    )


def budget_verdict(name: str, budget: Budget | None, terms: Terms, place: str, changed: Sequence[str] = ()) -> Verdict:
    """Return the verdict on a declared hold-out as it stands, with no new use.

    `changed` are remarks on data that are not those on record.
    """
    if budget is None:
        reason = f"hold-out '{name}': begun in {place}, no model is on record yet"
        return Verdict(name, "budget", "pass", reason, terms.epsilon, facts={"remarks": []}, kind="holdout")
    facts = budget_facts(budget, place) | {"remarks": [*changed, *remarks(budget, 0, place)]}
    return _budget(name, budget, {}, facts)


def cannot_judge(name: str, gate: str, error: DScoreError) -> Verdict:
    """Return the verdict where nothing can be judged, or a use was refused."""
    text = str(error)
    reason = text if text.startswith("hold-out") else f"hold-out '{name}': {text}"
    return Verdict(name, gate, "error", reason, kind="holdout")


def budget_facts(budget: Budget, place: str) -> dict[str, Any]:
    """Return a budget as built-in types."""
    terms = budget.terms
    return {
        "sentence": sentence(budget, terms.name),
        "examples": budget.n,
        "models_used": budget.used,
        "models_of_related_holdouts": len(budget.elsewhere),
        "models_refused": len(budget.refused),
        "effective_models": budget.effective,
        "models_remaining": "unlimited" if budget.limit is None else budget.limit,
        "union_bound_ends_at": "never" if budget.union_end is None else budget.union_end,
        "share_used": budget.share_used,
        "failure_probability": budget.failure_probability,
        "epsilon": budget.epsilon,
        "delta": terms.delta,
        "bound": terms.bound,
        "method": budget.method,
        "note": budget.note,
        "mode": terms.mode,
        "feedback": feedback_of(terms),
        "max_uses": "none" if terms.max_uses is None else terms.max_uses,
        "assumption": budget.mode_statement,
        "ledger": place,
    }


def remarks(budget: Budget, new: int, place: str) -> list[str]:
    """Return what a reader should act on although the gate passes."""
    found = []
    warn_at = budget.terms.warn_at
    if warn_at is not None and budget.share_used >= warn_at:
        found.append(f"WARNING: {percent(budget.share_used)} of the budget is used (warn_at = {percent(warn_at)})")
    if budget.refused:
        found.append(refused_note(budget))
    if new and in_ci() and in_a_directory(place):
        found.append(
            f"WARNING: this use was recorded in {place} on a CI machine and is lost with it, unless the job commits "
            'that directory: keep the ledger in a git ref ("git:refs/dscore/ledger") or a database'
        )
    return found
