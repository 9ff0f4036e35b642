"""A score beside an earlier one: the paired change that the gate computed, or a difference of independent scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from pytest_dscore.errors import DScoreError
from pytest_dscore.figure import Figure
from pytest_dscore.report.contents import Before, Grid, HoldoutState, Report, Score, Subject

COMPARED = ("score", "v_robust", "v_fitness", "accuracy")
#: What must be alike, for two scores to measure the same.
_ALIKE = ("n", "operator", "form", "pad", "fill")
_K = TypeVar("_K")
_GRID: TypeAdapter[Grid | None] = TypeAdapter(Grid | None)
_VALUES: TypeAdapter[dict[str, float]] = TypeAdapter(dict[str, float])


def compare(report: Report, baseline: Report | None) -> Report:
    """Return the report with what each score is compared with, and with its history.

    Parameters
    ----------
    report
        As gathered.
    baseline
        From another file, None where there is none.
    """
    earlier = baseline.scores if baseline is not None else ()
    beside, then, by_name = _by(_key, report.scores), _by(_key, earlier), _by(lambda score: score.name, earlier)
    scores = tuple(
        replace(
            score,
            before=_recorded(score) or _from_file(score, by_name.get(score.name, [])),
            history=_history(score, beside[_key(score)], then.get(_key(score), [])),
        )
        for score in report.scores
    )
    states = baseline.holdouts if baseline is not None else ()
    holdouts = tuple(_with_earlier_uses(state, states) for state in report.holdouts)
    notes = (*report.notes, *(f"baseline: {note}" for note in (baseline.notes if baseline is not None else ())))
    return replace(report, scores=scores, holdouts=holdouts, notes=notes)


def _by(key: Callable[[Score], _K], scores: Iterable[Score]) -> dict[_K, list[Score]]:
    found: dict[_K, list[Score]] = {}
    for score in scores:
        found.setdefault(key(score), []).append(score)
    return found


def _history(score: Score, beside: Iterable[Score], earlier: Iterable[Score]) -> tuple[Score, ...]:
    """Scores of the same kind from runs before this one, the oldest first."""
    past = [other for other in beside if other.measured and _before(other, score, False)]
    past += [other for other in earlier if other.measured and _before(other, score, True)]
    return tuple(sorted(past, key=lambda other: other.origin.timestamp))


def _before(other: Score, score: Score, is_baseline: bool) -> bool:
    """Whether one run came before another; a baseline without a time did."""
    times = other.origin.timestamp, score.origin.timestamp
    return is_baseline if not all(times) else times[0] < times[1]


def _key(score: Score) -> tuple[str, ...]:
    return (score.name, *(str(score.facts.get(name)) for name in _ALIKE))


def _recorded(score: Score) -> Before | None:
    """The comparison that the gate itself made, example by example."""
    found: dict[str, Any] = score.facts.get("baseline", {})
    if not found:
        return None
    try:
        values = _VALUES.validate_python(found.get("figures", {}))
        grid = _GRID.validate_python(found.get("a"))
        changes = {
            name: _figure(
                name, [math.nan if entry.get(end) is None else entry[end] for end in ("value", "lower", "upper")], score
            )
            for name, entry in score.facts.get("change", {}).items()
        }
    except (ValidationError, KeyError, TypeError):
        what = "the property dscore.baseline or dscore.change is not what pytest-dscore writes there"
        raise DScoreError(f"{score.origin.file}: of the model '{score.name}' {what}") from None
    if grid is not None and {len(grid), *map(len, grid)} != {score.n}:
        grid = None
    if grid is not None:
        values["worst_region"] = min(min(row) for row in grid)
    figures = {name: _figure(name, [value, math.nan, math.nan], score) for name, value in values.items()}
    commit = f" at commit {str(found['commit'])[:12]}" if found.get("commit") else ""
    what = f"recorded {str(found.get('recorded', ''))[:16].replace('T', ' ')}{commit}"
    return Before(figures, grid, changes, True, what)


def _figure(name: str, ends: Sequence[float], score: Score) -> Figure:
    confidence: float = score.facts["confidence"]
    return Figure(float(ends[0]), float(ends[1]), float(ends[2]), not name.startswith("v_robust"), confidence)


def _from_file(score: Score, named: Sequence[Score]) -> Before | None:
    same_name = [other for other in named if other.measured]
    if not same_name or not score.measured:
        return None
    alike = [other for other in same_name if _key(other) == _key(score)]
    found = [other for other in alike if _run(other) == _run(score)] or alike
    if len(found) != 1:
        why = (
            f"the baseline has {len(found)} scores of this model, and nothing says which is meant"
            if found
            else "the baseline was scored with other settings (n, operator, form, pad or fill), so it is no comparison"
        )
        return Before({}, None, {}, False, "", why)
    [other] = found
    remark = " and ".join(_differences(score, other))
    if score.facts["versions"].get("interpolation") != other.facts["versions"].get("interpolation"):
        return Before({}, None, {}, False, "", "the baseline's images were resized by another method: no comparison")
    changes = {
        name: difference(score.figures[name], other.figures[name])
        for name in COMPARED
        if name in score.figures and name in other.figures
    }
    what = " of ".join(part for part in (other.origin.file, moment(other)) if part)
    return Before(other.figures, other.grid("a"), changes, False, what, remark)


def moment(subject: Subject) -> str:
    """When a run began, to the minute; empty where its file does not say."""
    return subject.origin.timestamp[:16].replace("T", " ")


def _run(subject: Subject) -> tuple[str, str]:
    return subject.origin.suite, subject.origin.hostname


def _differences(score: Score, other: Score) -> list[str]:
    found = []
    if score.facts["data_fingerprint"] != other.facts["data_fingerprint"]:
        found.append("the data are others than then")
    if score.facts["model_fingerprint"] and score.facts["model_fingerprint"] == other.facts["model_fingerprint"]:
        found.append("the model is the very same as then")
    return found


def difference(now: Figure, then: Figure) -> Figure:
    """``now - then`` of two independent estimates, with an interval from theirs (MOVER; Zou and Donner 2008).

    Of scores on the same examples, whose errors go together, the interval is too wide rather than too short. It is NaN
    where the two have no interval, or differ in confidence.
    """
    value = now.value - then.value
    if now.confidence != then.confidence:
        return Figure(value, math.nan, math.nan, now.larger_is_better, now.confidence)
    down = math.hypot(now.value - now.lower, then.upper - then.value)
    up = math.hypot(now.upper - now.value, then.value - then.lower)
    return Figure(value, value - down, value + up, now.larger_is_better, now.confidence)


def _with_earlier_uses(state: HoldoutState, earlier: Sequence[HoldoutState]) -> HoldoutState:
    before = {use for other in earlier if other.name == state.name for use in other.uses}
    return replace(state, uses=tuple(sorted({*before, *state.uses})))
