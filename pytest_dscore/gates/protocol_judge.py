"""From an estimated error, a comparison of protocols or a probe to verdicts, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from pytest_dscore.errors import DScoreError
from pytest_dscore.figure import Figure
from pytest_dscore.protocol.compare import Bias, Comparison
from pytest_dscore.protocol.leak import Leak, LeakVerdict
from pytest_dscore.protocol.nested import NestedResult
from pytest_dscore.protocol.stability import ParamSelection
from pytest_dscore.report.protocol_lines import INTERVAL_WORDS
from pytest_dscore.verdict import Outcome, Verdict, side

_LONGEST = 200


def error_verdict(
    name: str, result: NestedResult, interval: str, threshold: float | None, *, tolerated: bool = False
) -> Verdict:
    """Return the verdict on an error.

    Parameters
    ----------
    name
        Of the protocol.
    result
        From `nested_cv`.
    interval
        Which interval ``result.error`` carries.
    threshold
        What the error must not exceed; None to report only.
    tolerated
        Whether an interval that contains the threshold passes.
    """
    error = result.error
    figures = {"error": error} | _intervals(result, interval)
    facts = {
        "scoring": str(plain(result.scoring)),
        "outer_folds": len(result.fold_errors),
        "repeats": result.repeats,
        "seed": result.seed,
        "interval": interval,
        "confidence": error.confidence,
        "interval_assumes": INTERVAL_WORDS[interval],
        "intervals": {each: INTERVAL_WORDS[each] for each in _computed(interval)},
        "fold_errors": [float(one) for one in result.fold_errors],
        "selected": [plain(one) for one in result.selected],
        "instability": [_stability(one) for one in result.stability],
    }
    shown = f"protocol '{name}': error {error}"
    if threshold is None:
        return Verdict(name, "", "report", f"{shown}, no threshold", None, "error", figures, facts, "protocol")
    outcome: Outcome = side(error, threshold, upward=True) if math.isfinite(error.value) else "fail"
    if not math.isfinite(error.value):
        reason = f"{shown} is no number that max_error = {threshold:g} could judge"
    else:
        reason = f"{shown} {_against(error, outcome, f'max_error = {threshold:g}')}"
    return Verdict(
        name, "max_error", outcome, reason, threshold, "error", figures, facts, "protocol", tolerated=tolerated
    )


def _against(figure: Figure, outcome: Outcome, limit: str) -> str:
    """How a figure stands to a limit, in words."""
    if outcome != "inconclusive":
        return f"is within {limit}" if outcome == "pass" else f"exceeds {limit}"
    if math.isnan(figure.lower) or math.isnan(figure.upper):
        return f"is inconclusive: one fold has no spread, so there is no interval to hold against {limit}"
    return f"is inconclusive: its interval contains {limit} (more rows would narrow it)"


def _computed(interval: str) -> tuple[str, ...]:
    """The intervals at hand: the nested one costs many fits, and is there only where it was asked for."""
    return ("naive", "corrected", "nested") if interval == "nested" else ("naive", "corrected")


def _intervals(result: NestedResult, interval: str) -> dict[str, Figure]:
    return {f"error_{name}": result.intervals[name] for name in _computed(interval)}


def _stability(found: ParamSelection) -> dict[str, Any]:
    wide = found.log2_range
    return {
        "name": found.name,
        "counts": [[plain(value), count] for value, count in found.counts],
        "agreement": found.agreement,
        "log2_range": wide if math.isfinite(wide) else None,
    }


def bias_verdict(name: str, comparison: Comparison, threshold: float, *, tolerated: bool = False) -> Verdict:
    """Return the verdict on by how much the external and median protocols flatter the error.

    `tolerated` says whether an interval that contains the threshold passes.
    """
    folds = len(comparison.internal.fold_errors)
    figures = {f"bias_{shortcut}": _bias(found, folds) for shortcut, found in comparison.bias.items()}
    figures |= {f"error_{each}": getattr(comparison, each).error for each in ("internal", "external", "median")}
    worst = max(comparison.bias, key=lambda each: _or_infinite(comparison.bias[each].mean))
    facts = {
        "seed": comparison.seed,
        "outer_folds": folds,
        "bias_p_values": {each: found.p_value for each, found in comparison.bias.items()},
        "bias_standard_errors": {each: found.se for each, found in comparison.bias.items()},
        "bias_assumes": "folds counted as independent, as in the paper's tables, so that its interval is too short",
        "fold_errors": {
            each: [float(one) for one in getattr(comparison, each).fold_errors]
            for each in ("internal", "external", "median")
        },
        "selected": [plain(one) for one in comparison.internal.selected],
    }
    bias = figures[f"bias_{worst}"]
    outcome: Outcome = side(bias, threshold, upward=True) if math.isfinite(bias.value) else "fail"
    reason = (
        f"protocol '{name}': the {worst} protocol flatters the error by {bias:.2f} percentage points, which "
        f"{_against(bias, outcome, f'max_bias = {threshold:g}')}"
    )
    return Verdict(
        name, "max_bias", outcome, reason, threshold, f"bias_{worst}", figures, facts, "protocol", tolerated=tolerated
    )


def _bias(found: Bias, folds: int) -> Figure:
    half = float(stats.t.ppf(0.975, folds - 1)) * found.se
    return Figure(found.mean, found.mean - half, found.mean + half, larger_is_better=False)


def _or_infinite(value: float) -> float:
    """NaN counts as the worst."""
    return math.inf if math.isnan(value) else value


def leak_verdict(name: str, found: LeakVerdict) -> Verdict:
    """Return the verdict on a probed protocol."""
    runs = f"{found.runs} run{'' if found.runs == 1 else 's'} of the protocol"
    if found.leaks:
        more = f"; {len(found.leaks) - 1} more below" if len(found.leaks) > 1 else ""
        reason = f"protocol '{name}' leaks: {leak_line(found.leaks[0])} ({runs}{more})"
        outcome: Outcome = "fail"
    elif found.undecided:
        outcome, reason = "error", f"protocol '{name}': cannot tell whether it leaks: {found.reason} ({runs})"
    else:
        outcome, reason = "pass", f"protocol '{name}': no leak found ({runs})"
    facts = {"runs": found.runs, "undecided": found.undecided, "notes": [plain(note) for note in found.notes]}
    return Verdict(name, "leaks", outcome, reason, facts=facts | _leak_facts(found.leaks), kind="protocol")


def data_verdict(name: str, leaks: Sequence[Leak]) -> Verdict:
    """Return the verdict on two parts of data."""
    if not leaks:
        reason = f"protocol '{name}': no leak found in the data"
        return Verdict(name, "leaks", "pass", reason, facts={"runs": 0} | _leak_facts(leaks), kind="protocol")
    more = f" ({len(leaks) - 1} more below)" if len(leaks) > 1 else ""
    reason = f"protocol '{name}' leaks: {leak_line(leaks[0])}{more}"
    return Verdict(name, "leaks", "fail", reason, facts={"runs": 0} | _leak_facts(leaks), kind="protocol")


def leak_line(leak: Leak) -> str:
    """Return a leak as one line, which says how much it flatters, or that this was not measured."""
    unknown = "; how much it flatters the error was not measured" if math.isnan(leak.flattery) else ""
    return f"{leak.kind} leak in {leak.where}: {leak.evidence}{unknown}"


def _leak_facts(leaks: Sequence[Leak]) -> dict[str, Any]:
    measured = [leak.flattery for leak in leaks if not math.isnan(leak.flattery)]
    return {
        "flattery": float(max(measured)) if measured else "not measured",
        "leaks": [
            {
                "kind": leak.kind,
                "where": leak.where,
                "evidence": leak.evidence,
                "flattery": None if math.isnan(leak.flattery) else float(leak.flattery),
                "fix": leak.fix,
                "line": leak_line(leak),
            }
            for leak in leaks
        ],
    }


def manifest_verdict(name: str, path: str, moved: Sequence[str], leaks: Sequence[Leak]) -> Verdict:
    """Return the verdict on a manifest.

    Parameters
    ----------
    name
        Of the protocol.
    path
        Of the manifest, as the project writes it.
    moved
        What is not as declared.
    leaks
        Those that the manifest itself declares.
    """
    facts: dict[str, Any] = {"manifest": path, "moved": list(moved)} | _leak_facts(leaks)
    if moved:
        # Three, so that what to do about it stays within what JUnit shows; all of them stand below.
        shown = "; ".join(moved[:3]) + (f" and {len(moved) - 3} more" if len(moved) > 3 else "")
        reason = (
            f"protocol '{name}': since {path} was written there moved: {shown}. Put it back, or where the change is "
            f"meant, write it anew: dscore protocol manifest {name} --force"
        )
    elif leaks:
        reason = f"protocol '{name}' leaks as declared in {path}: {leak_line(leaks[0])}"
    else:
        reason = f"protocol '{name}': data, splits, seed, scoring and selection are as declared in {path}"
    outcome: Outcome = "fail" if moved or leaks else "pass"
    return Verdict(name, "manifest", outcome, reason, facts=facts, kind="protocol")


def cannot_judge(name: str, gate: str, error: DScoreError, threshold: float | None = None) -> Verdict:
    """Return the verdict where nothing can be judged."""
    return Verdict(name, gate, "error", f"protocol '{name}' cannot be judged: {error}", threshold, kind="protocol")


def plain(value: Any) -> Any:
    """Return a value as JSON knows it; what has no such form, as its text."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    text = getattr(value, "__name__", None) or repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
