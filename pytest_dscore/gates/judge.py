"""From a result and thresholds to verdicts, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_dscore.errors import DScoreError
from pytest_dscore.figure import Figure
from pytest_dscore.gates.store import Measured
from pytest_dscore.score.regions import place_name, region_name
from pytest_dscore.score.result import DScore
from pytest_dscore.settings import GATES
from pytest_dscore.verdict import LABELS, Verdict

FIGURES = ("score", "v_robust", "v_fitness", "accuracy", "v_robust_relative")
_GRIDS = ("f", "f_lower", "f_upper", "f_tilde", "a", "a_lower", "a_upper", "a_tilde")


def judge(
    subject: str,
    result: DScore,
    measured: Measured,
    thresholds: Mapping[str, float],
    versions: Mapping[str, str],
    charges: Sequence[str] = (),
) -> list[Verdict]:
    """One verdict per threshold; a single one without judgement where there are none.

    `charges` are sentences on what the score cost the hold-outs it was made on.
    """
    figures = {name: getattr(result, name) for name in FIGURES}
    facts = {**_facts(result, measured, versions), "holdout_charges": list(charges)}
    if not thresholds:
        reason = f"D-Score {result.score} of model '{subject}' (n={result.n}), no threshold"
        return [Verdict(subject, "", "report", reason, figures=figures, facts=facts)]
    verdicts = []
    for gate, threshold in thresholds.items():
        name = GATES[gate]
        passed = _holds(gate, figures[name].value, threshold) and not _uninformative(result)
        reason = _reason(subject, gate, figures[name], threshold, result, passed)
        verdicts.append(Verdict(subject, gate, "pass" if passed else "fail", reason, threshold, name, figures, facts))
    return verdicts


def cannot_judge(subject: str, gates: Mapping[str, float], error: DScoreError) -> list[Verdict]:
    """Verdicts of a model that could not be scored: each of its gates fails."""
    reason = f"model '{subject}' cannot be scored: {error}"
    return [
        Verdict(subject, gate, "error", reason, threshold, GATES.get(gate, ""))
        for gate, threshold in (gates.items() if gates else [("", None)])
    ]


def _holds(gate: str, value: float, threshold: float) -> bool:
    # An infinite ratio is a model that nothing moves, such as one that always answers alike: not a proof of anything.
    return math.isfinite(value) and (value <= threshold if gate.startswith("max_") else value >= threshold)


def _uninformative(result: DScore) -> str:
    """Why the model's robustness says nothing, if it does: it is no better than guessing (the paper's premise, 1/c)."""
    if result.predicted_classes == 1:
        return "the model predicts the same class for every image, so robustness says nothing"
    if result.accuracy.value <= 1 / result.classes:
        clean = f"the clean accuracy {result.accuracy.value:.2f} is no better than chance (1 in {result.classes})"
        return f"{clean}, so robustness says nothing: are the weights loaded?"
    return ""


def _reason(subject: str, gate: str, figure: Figure, threshold: float, result: DScore, passed: bool) -> str:
    upward = gate.startswith("max_")
    relation = ("<=" if figure.value <= threshold else ">") if upward else (">=" if figure.value >= threshold else "<")
    spec = f".{_digits(figure.value, threshold)}f"
    head = f"{LABELS[GATES[gate]]} {figure:{spec}} {relation} {threshold:{spec}} for model '{subject}' (n={result.n})"
    if passed:
        vacuous = gate == "max_v_robust" and threshold >= result.g
        return f"{head}; this gate cannot fail, v_robust stays below g(n, c) = {result.g:.3f}" if vacuous else head
    explanation = _explanation(gate, figure, threshold, result)
    return f"{head}: {explanation}" if explanation else head


def _explanation(gate: str, figure: Figure, threshold: float, result: DScore) -> str:
    clean = result.accuracy.value
    if reason := _uninformative(result):
        return reason
    if not math.isfinite(figure.value):
        return "v_robust is 0, so the ratio says nothing: use the bounded form, or more examples"
    if gate == "min_accuracy":
        return ""
    if gate == "min_v_fitness":
        accuracy_is_to_blame = threshold - clean > clean - figure.value
        return (
            f"the clean accuracy itself is only {clean:.3f}" if accuracy_is_to_blame else _fitness_explanation(result)
        )
    return _shift_explanation(result)


def _digits(value: float, threshold: float) -> int:
    """Decimals that show a value and a threshold apart: three, or more where they are close."""
    return next((d for d in range(3, 9) if f"{value:.{d}f}" != f"{threshold:.{d}f}"), 3)


def _shift_explanation(result: DScore) -> str:
    row, col = result.worst_region
    worst, clean = result.a[row, col], result.accuracy.value
    if worst >= clean:
        return f"the accuracy of {clean:.2f} holds under every shift, but it is low, or features are spread unevenly"
    return (
        f"accuracy falls most when the object is {place_name(row, col, result.n)} (a={worst:.2f} against {clean:.2f})"
    )


def _fitness_explanation(result: DScore) -> str:
    gap = abs(result.f_tilde - result.a_tilde)
    row, col = divmod(int(gap.argmax()), result.n)
    return (
        f"features and attention differ most in region {region_name(row, col, result.n)} "
        f"(f~={result.f_tilde[row, col]:.2f}, a~={result.a_tilde[row, col]:.2f})"
    )


def _facts(result: DScore, measured: Measured, versions: Mapping[str, str]) -> dict[str, Any]:
    """All settings and grids as built-in types: a NumPy scalar would kill a run under xdist."""
    return {
        "n": result.n,
        "operator": result.operator,
        "form": result.form,
        "pad": list(result.padding),
        "fill": list(result.fill),
        "bf16": result.bf16,
        "examples": result.examples,
        "classes": result.classes,
        "device": result.device,
        "bootstrap": result.replicates,
        "confidence": result.confidence,
        "seed": result.seed,
        "cached": measured.cached,
        "g": result.g,
        "augmentation_probability": result.augmentation_probability,
        "no_deletion_hurts": result.no_deletion_hurts,
        "helpful_regions": [region_name(row, col, result.n) for row, col in result.helpful_regions],
        "skipped_layers": list(result.skipped_layers),
        "layers": len(result.maps),
        "unused_layers": list(result.unused_layers),
        "predicted_classes": result.predicted_classes,
        "remarks": list(result.remarks),
        "model_fingerprint": measured.model_fingerprint,
        "data_fingerprint": measured.data_fingerprint,
        "versions": dict(versions),
        **{name: getattr(result, name).tolist() for name in _GRIDS},
    }
