"""A report as JSON with a version; docs/report.md describes it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from pytest_dscore.figure import Figure
from pytest_dscore.report.contents import HoldoutState, Report, Score, Subject
from pytest_dscore.report.wording import reason

#: Changes when a key changes its meaning or goes; new keys may come without.
SCHEMA = "dscore-report/1"


def render(report: Report) -> str:
    """Return the report as JSON; what is no finite number is null."""
    content = {
        "schema": SCHEMA,
        "failed": bool(report.failures),
        "verdict": report.verdict,
        "models": [_score(report, score) for score in report.scores],
        "holdouts": [_holdout(report, state) for state in report.holdouts],
        "protocols": [_subject(report, one) for one in report.protocols],
        "notes": list(report.notes),
    }
    return json.dumps(_finite(content), indent=2, allow_nan=False) + "\n"


def _subject(report: Report, subject: Subject) -> dict[str, Any]:
    origin = subject.origin
    gates = [
        {
            "name": gate.name,
            "outcome": gate.outcome,
            "failed": gate.failed,
            "threshold": gate.threshold,
            "reason": reason(subject, gate) if gate.outcome != "pass" else "",
            "test": gate.test,
            "file": None if gate.place is None else gate.place.file,
            "line": None if gate.place is None else gate.place.line,
        }
        for gate in subject.gates
    ]
    return {
        "name": subject.name,
        "run": {"file": origin.file, "suite": origin.suite, "hostname": origin.hostname, "timestamp": origin.timestamp},
        "outcome": subject.outcome,
        "failed": subject.failed,
        "gates": gates,
        "figures": _figures(subject.figures),
        "facts": {name: value for name, value in subject.facts.items() if name not in ("baseline", "change")},
    }


def _score(report: Report, score: Score) -> dict[str, Any]:
    before = score.before
    then = None
    if before is not None:
        then = {
            "what": before.what,
            "remark": before.remark,
            "figures": _figures(before.figures),
            "a": before.a,
            "change": _figures(before.changes),
            "paired": before.paired,
        }
    return {**_subject(report, score), "before": then}


def _holdout(report: Report, state: HoldoutState) -> dict[str, Any]:
    uses = [{"models_used": used, "share_used": share} for used, share in state.uses]
    return {**_subject(report, state), "uses": uses}


def _figures(figures: Mapping[str, Figure]) -> dict[str, Any]:
    return {name: {"value": one.value, "lower": one.lower, "upper": one.upper} for name, one in figures.items()}


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
