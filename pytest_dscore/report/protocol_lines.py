"""Protocols in the terminal: errors with their intervals, what the folds selected, leaks, and what it all rests on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_dscore.report.text import percent, table, wrapped
from pytest_dscore.verdict import Verdict

#: Which interval is which, and what it assumes.
INTERVAL_WORDS = {
    "naive": (
        "the standard error of the rows' losses (or of the folds' errors), as if they were independent; too short, as "
        "each row also trained the models of the other folds"
    ),
    "corrected": (
        "Nadeau and Bengio 2003: Student's t, with the variance of the fold errors times 1/J + n_test/n_train, as "
        "training parts overlap; assumes exchangeable rows (or groups), and is an approximation"
    ),
    "nested": (
        "Bates, Hastie and Tibshirani 2021: its width is how far cross-validation inside the other folds misses each "
        "fold's error; assumes exchangeable rows (or groups)"
    ),
}
#: What a reader who has not read the papers must know.
SELECTION = (
    "Hyper-parameters were chosen anew on each outer fold's training rows. An error measured on rows that helped to "
    "choose them is too low (Cawley and Talbot 2010): the winner's own cross-validation score does not estimate its "
    "error."
)
BIAS = (
    "Bias: how many percentage points lower the error looks when hyper-parameters are chosen once on all rows "
    "(external), or as the median of the first folds' choices (median). Folds are counted as independent, so its "
    "interval is too short."
)
PROBE = (
    "The probe runs the protocol on changed test rows, which must change no prediction for others; it assumes that the "
    "same seed gives the same predictions, and cannot see a leak that moves no prediction on the split that is probed."
)
_LABELS = {"pass": "pass", "fail": "FAIL", "inconclusive": "inconclusive", "error": "ERROR", "report": "-"}
_MOST_VALUES = 4
_MOST_NOTES = 3


def protocol_lines(verdicts: Iterable[Verdict]) -> list[str]:
    """Return a table of all that was judged, then what the folds selected and what was found, for each protocol.

    Parameters
    ----------
    verdicts
        Of protocols only, in the order of the tests.
    """
    verdicts = list(verdicts)
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(verdict.subject, []).append(verdict)
    rows = [row for name, group in groups.items() for row in _rows(name, group)]
    lines = table(("protocol", "figure", "value", "interval", "verdict"), list(dict.fromkeys(rows)), narrowest=12)
    for name, group in groups.items():
        found = dict.fromkeys(line for verdict in group for line in _details(verdict))
        lines += ["", *wrapped(f"{name}:"), *found] if found else []
    assumed = [line for sentence in _assumptions(verdicts) for line in wrapped(sentence)]
    return [*lines, "", *assumed] if assumed else lines


def failure_lines(verdict: Verdict) -> list[str]:
    """Return what stands below the first line of a failure."""
    facts = verdict.facts
    lines = _further(facts)
    if "interval_assumes" in facts:
        lines.append(f"interval: {facts['interval']}, {facts['interval_assumes']}")
        lines.append(f"errors of the outer folds: {', '.join(f'{error:.3f}' for error in facts['fold_errors'])}")
    return lines + _selections(facts)


def _rows(name: str, group: Sequence[Verdict]) -> list[tuple[str, str, str, str, str]]:
    rows = []
    for verdict in group:
        limit = "" if verdict.threshold is None else f" ({verdict.relation} {verdict.threshold:g})"
        outcome = f"{_LABELS[verdict.outcome]}{limit}"
        if verdict.outcome == "error" or not verdict.figures:
            what = {"max_error": "error", "max_bias": "bias", "": "error"}.get(verdict.gate, verdict.gate)
            rows.append((name, what, "-", "-", outcome))
            continue
        for figure in _shown(verdict):
            found = verdict.figures[figure]
            judged = outcome if figure == verdict.figure else "-"
            label = figure.replace("_", ", ")
            # One fold only has no spread to make an interval of.
            interval = "-" if math.isnan(found.lower) else f"[{found.lower:.3f}, {found.upper:.3f}]"
            rows.append((name, label, f"{found.value:.3f}", interval, judged))
    return rows


def _shown(verdict: Verdict) -> Iterable[str]:
    """The figures with rows of their own: the judged one, and what it is to be compared with."""
    if verdict.figure == "error":
        return ("error",)
    return [name for name in verdict.figures if name.startswith("bias_")]


def _details(verdict: Verdict) -> list[str]:
    facts = verdict.facts
    lines = [line for text in _selections(facts) for line in wrapped(text, "  ", "    ")]
    if verdict.gate in ("leaks", "manifest") or verdict.outcome == "error":
        # The subject stands above.
        text = verdict.reason.removeprefix(f"protocol '{verdict.subject}'").removeprefix(":").strip()
        lines += wrapped(text, "  ", "    ")
    lines += [line for text in _further(facts) for line in wrapped(text, "  ", "    ")]
    # A protocol may well refuse the impossible rows that it is given: that is in JUnit, and no news here.
    noted = [note for note in facts.get("notes", ()) if ": the protocol raised " not in note]
    for note in noted[:_MOST_NOTES]:
        lines += wrapped(f"noted: {note}", "  ", "    ")
    return lines


def _further(facts: Mapping[str, Any]) -> list[str]:
    """What is not in the reason, whose line JUnit cuts at 500 characters: the fix, and further leaks."""
    leaks = facts.get("leaks", ())
    lines = [f"Fix: {leak['fix']}" for leak in leaks[:1]]
    lines += [f"also moved: {part}" for part in facts.get("moved", ())[3:]]
    return lines + [f"also: {leak['line']}. Fix: {leak['fix']}" for leak in leaks[1:]]


def _selections(facts: Mapping[str, Any]) -> list[str]:
    """How often each value of each hyper-parameter won."""
    return [_selection(found, facts["outer_folds"]) for found in facts.get("instability", ())]


def _selection(found: Mapping[str, Any], folds: int) -> str:
    (first, often), *others = found["counts"]
    if found["agreement"] == 1:
        return f"{found['name']}: {_short(first)} in all {folds} folds"
    shown = [f"{_short(value)} in {count}" for value, count in others[: _MOST_VALUES - 1]]
    more = f" and {len(others) - len(shown)} other values" if len(others) > len(shown) else ""
    text = ", ".join([f"{_short(first)} in {often} of {folds} folds", *shown])
    wide = found["log2_range"]
    factor = f", over a factor of {2**wide:.3g}" if wide else ""
    return f"{found['name']}: {text}{more}: the folds disagree{factor}"


def _short(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _assumptions(verdicts: Sequence[Verdict]) -> list[str]:
    kinds: dict[tuple[str, float], list[str]] = {}
    for verdict in verdicts:
        if "interval" in verdict.facts:
            names = kinds.setdefault((verdict.facts["interval"], verdict.facts["confidence"]), [])
            names += [verdict.subject] * (verdict.subject not in names)
    found = []
    for (kind, confidence), names in kinds.items():
        whose = f" of {', '.join(names)}" if len(kinds) > 1 else ""
        found.append(f"{percent(confidence)} interval of the error{whose} ({kind}): {INTERVAL_WORDS[kind]}.")
    if any(verdict.threshold is not None and verdict.figures for verdict in verdicts):
        found.append("A threshold is judged by the whole interval; one that contains it is inconclusive.")
    if any(verdict.facts.get("instability") for verdict in verdicts):
        found.append(SELECTION)
    if any(verdict.gate == "max_bias" and verdict.figures for verdict in verdicts):
        found.append(BIAS)
    if any(verdict.facts.get("runs") for verdict in verdicts):
        found.append(PROBE)
    return found
