"""From a result and thresholds to verdicts, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pytest_dscore.errors import DScoreError
from pytest_dscore.figure import Figure
from pytest_dscore.gates.baseline import Baseline, drop_of
from pytest_dscore.gates.store import Measured
from pytest_dscore.score.change import examples_to_settle
from pytest_dscore.score.regions import place_name, region_name
from pytest_dscore.score.result import DScore
from pytest_dscore.settings import GATES
from pytest_dscore.verdict import LABELS, Outcome, Verdict, side

FIGURES = ("score", "v_robust", "v_fitness", "accuracy", "v_robust_relative")
_DROP = "max_drop."

#: So many examples keep the interval of D (form ``mean``) within +-0.05 for 9 networks of 10, by docs/study.md.
FEW_EXAMPLES = 300
_GRIDS = ("f", "f_lower", "f_upper", "f_tilde", "a", "a_lower", "a_upper", "a_tilde")


@dataclass(frozen=True)
class Policy:
    """How intervals decide.

    Parameters
    ----------
    inconclusive
        What becomes of a threshold that the interval contains.
    strict
        Whether a drop is judged by its value alone.
    """

    inconclusive: Literal["fail", "pass"] = "fail"
    strict: bool = False


@dataclass(frozen=True)
class Comparison:
    """A score beside the baseline.

    Parameters
    ----------
    baseline
        What was recorded; None where there is nothing to compare with.
    changes
        Paired changes, now minus then, by figure.
    problem
        Why there is nothing to compare with, empty where there is.
    recorded
        Whether this run records the score as the new baseline.
    """

    baseline: Baseline | None = None
    changes: Mapping[str, Figure] = field(default_factory=dict)
    problem: str = ""
    recorded: bool = False


def judge(
    subject: str,
    result: DScore,
    measured: Measured,
    thresholds: Mapping[str, float],
    versions: Mapping[str, str],
    *,
    charges: Sequence[str] = (),
    comparison: Comparison | None = None,
    policy: Policy | None = None,
) -> list[Verdict]:
    """One verdict per threshold; a single one without judgement where there are none.

    Parameters
    ----------
    subject
        Name of the model.
    result, measured
        The score and its hits.
    thresholds
        By gate: a key of `GATES`, or ``max_drop.FIGURE``.
    versions
        Of what the score depends on.
    charges
        Sentences on what the score cost the hold-outs it was made on.
    comparison
        With the baseline, where a drop is judged.
    policy
        How intervals decide.
    """
    comparison, policy = comparison or Comparison(), policy or Policy()
    figures = {name: getattr(result, name) for name in FIGURES}
    figures |= {f"drop.{name}": drop_of(change) for name, change in comparison.changes.items()}
    facts = {**_facts(result, measured, versions), "holdout_charges": list(charges), **_compared(comparison)}
    found = comparison.baseline
    if found is not None and found.measured.model_fingerprint == measured.model_fingerprint:
        facts["remarks"] = [*facts["remarks"], "compared with a baseline of this very model (same weights and code)"]
    if not thresholds:
        reason = f"D-Score {result.score} of model '{subject}' (n={result.n}), no threshold"
        return [Verdict(subject, "", "report", reason, figures=figures, facts=facts)]
    judged = [
        _drop(subject, gate, limit, result, comparison, policy)
        if gate.startswith(_DROP)
        else _threshold(subject, gate, limit, result, policy)
        for gate, limit in thresholds.items()
    ]
    facts["more_examples"] = {
        verdict.gate: examples_to_settle(figures[verdict.figure], limit, result.examples)
        for verdict in judged
        if verdict.outcome == "inconclusive" and (limit := verdict.threshold) is not None
    }
    return [replace(verdict, figures=figures, facts=facts) for verdict in judged]


def _threshold(subject: str, gate: str, limit: float, result: DScore, policy: Policy) -> Verdict:
    name = GATES[gate]
    figure: Figure = getattr(result, name)
    if math.isfinite(figure.value) and not _uninformative(result):
        outcome = side(figure, limit, upward=gate.startswith("max_"))
    else:
        # An infinite ratio is a model that nothing moves, such as one that always answers alike: no proof of anything.
        outcome = "fail"
    reason = _reason(subject, gate, figure, limit, result, outcome)
    return Verdict(subject, gate, outcome, reason, limit, name, tolerated=policy.inconclusive == "pass")


def _drop(
    subject: str,
    gate: str,
    limit: float,
    result: DScore,
    comparison: Comparison,
    policy: Policy,
) -> Verdict:
    name = gate.removeprefix(_DROP)
    label = LABELS[f"drop.{name}"]
    if comparison.recorded:
        reason = f"recorded as the baseline of model '{subject}': nothing to compare"
        return Verdict(subject, gate, "pass", reason, limit, f"drop.{name}")
    if comparison.baseline is None:
        return Verdict(subject, gate, "error", comparison.problem, limit, "")
    drop = drop_of(comparison.changes[name])
    spec = f".{_digits(drop.value, limit)}f"
    relation = "<=" if drop.value <= limit else ">"
    head = f"{label} {drop:{spec}} {relation} {limit:{spec}} for model '{subject}' (n={result.n})"
    outcome = _drop_outcome(drop, limit, policy)
    if outcome == "inconclusive":
        head += f": inconclusive, {_settling(drop, limit, result.examples)}"
    elif outcome == "fail" and (fall := _fall(result, comparison.baseline.measured.hits.hits, name)):
        head += f": {fall}"
    return Verdict(subject, gate, outcome, head, limit, f"drop.{name}", tolerated=True)


def _fall(result: DScore, then: NDArray[np.bool_], name: str) -> str:
    """Where accuracy fell most since the baseline, of all mutants and shifts; of shifts alone for the worst region."""
    count = result.n**2
    before, now = then.mean(axis=1), result.hits.mean(axis=1)
    falls = before[1:] - now[1:]
    if name == "worst_region":
        falls[:count] = -1.0
    worst = int(falls.argmax())
    if name == "accuracy" or falls[worst] <= 0:
        return ""
    row, col = divmod(worst % count, result.n)
    was = f"{now[1 + worst]:.2f}, it was {before[1 + worst]:.2f}"
    if worst < count:
        return (
            f"accuracy fell most with {region_name(row, col, result.n)} of every conv layer's output mutated (f={was})"
        )
    return f"accuracy fell most where the object is {place_name(row, col, result.n)} (a={was})"


def _drop_outcome(drop: Figure, limit: float, policy: Policy) -> Outcome:
    if not all(map(math.isfinite, (drop.value, drop.lower, drop.upper))):
        return "fail"
    if policy.strict:
        return "pass" if drop.value <= limit else "fail"
    return side(drop, limit, upward=True)


def _settling(figure: Figure, limit: float, examples: int) -> str:
    more = examples_to_settle(figure, limit, examples)
    if more is None:
        return "its interval contains the limit, and so does its value: no number of examples would settle it"
    counted = f"{more:,} more example{'' if more == 1 else 's'}"
    return f"its interval contains the limit; about {counted} like these would settle it"


def _compared(comparison: Comparison) -> dict[str, Any]:
    found = comparison.baseline
    if found is None:
        return {}
    hits, count = found.measured.hits.hits, (len(found.measured.hits.hits) - 1) // 2
    side_length = math.isqrt(count)
    then = hits[count + 1 :].mean(axis=1).reshape(side_length, side_length)
    return {
        "baseline": {
            "commit": found.commit,
            "recorded": found.recorded,
            "figures": dict(found.figures),
            "a": then.tolist(),
            "model_fingerprint": found.measured.model_fingerprint,
        },
        "change": {
            name: {"value": change.value, "lower": change.lower, "upper": change.upper}
            for name, change in comparison.changes.items()
        },
    }


def cannot_judge(subject: str, gates: Mapping[str, float], error: DScoreError) -> list[Verdict]:
    """Verdicts of a model that could not be scored: each of its gates fails."""
    reason = f"model '{subject}' cannot be scored: {error}"
    return [
        Verdict(subject, gate, "error", reason, threshold, GATES.get(gate, ""))
        for gate, threshold in (gates.items() if gates else [("", None)])
    ]


def _uninformative(result: DScore) -> str:
    """Why the model's robustness says nothing, if it does: it is no better than guessing (the paper's premise, 1/c)."""
    if result.predicted_classes == 1:
        return "the model predicts the same class for every image, so robustness says nothing"
    if result.accuracy.value <= 1 / result.classes:
        clean = f"the clean accuracy {result.accuracy.value:.2f} is no better than chance (1 in {result.classes})"
        return f"{clean}, so robustness says nothing: are the weights loaded?"
    return ""


def _reason(subject: str, gate: str, figure: Figure, threshold: float, result: DScore, outcome: Outcome) -> str:
    upward = gate.startswith("max_")
    relation = ("<=" if figure.value <= threshold else ">") if upward else (">=" if figure.value >= threshold else "<")
    spec = f".{_digits(figure.value, threshold)}f"
    form = f", {result.form}" if gate == "min_score" and result.form != "mean" else ""
    setting = f"(n={result.n}{form})"
    head = f"{LABELS[GATES[gate]]} {figure:{spec}} {relation} {threshold:{spec}} for model '{subject}' {setting}"
    if outcome == "inconclusive":
        return f"{head}: inconclusive, {_settling(figure, threshold, result.examples)}"
    if outcome == "pass":
        vacuous = gate == "max_v_robust" and threshold >= result.g
        return f"{head}; this gate cannot fail, v_robust stays below g(n, c) = {result.g:.3f}" if vacuous else head
    explanation = _explanation(gate, figure, threshold, result)
    return f"{head}: {explanation}" if explanation else head


def _explanation(gate: str, figure: Figure, threshold: float, result: DScore) -> str:
    clean = result.accuracy.value
    if reason := _uninformative(result):
        return reason
    if not math.isfinite(figure.value):
        return "v_robust is 0, so the ratio says nothing: use another form, or more examples"
    if gate == "min_accuracy":
        return ""
    if gate == "min_v_fitness":
        accuracy_is_to_blame = threshold - clean > clean - figure.value
        return (
            f"the clean accuracy itself is only {clean:.3f}" if accuracy_is_to_blame else _fitness_explanation(result)
        )
    if gate == "min_score" and result.form == "mean":
        return _mean_explanation(result)
    return _shift_explanation(result)


def _mean_explanation(result: DScore) -> str:
    """Which mutant or shift costs most."""
    if result.f.min() >= result.a.min():
        return _shift_explanation(result)
    row, col = divmod(int(result.f.argmin()), result.n)
    return (
        f"accuracy falls most when {region_name(row, col, result.n)} of every conv layer's output is mutated "
        f"({result.operator}: f={result.f[row, col]:.2f} against {result.accuracy.value:.2f})"
    )


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


def _few_examples(examples: int) -> list[str]:
    if examples >= FEW_EXAMPLES:
        return []
    return [
        f"WARNING: {examples:,} test examples are few: below {FEW_EXAMPLES:,} the interval of D can be wider than "
        "+-0.05, so that only thresholds far from it are decided (docs/thresholds.md)"
    ]


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
        "remarks": [*result.remarks, *_few_examples(result.examples)],
        "model_fingerprint": measured.model_fingerprint,
        "data_fingerprint": measured.data_fingerprint,
        "versions": dict(versions),
        **{name: getattr(result, name).tolist() for name in _GRIDS},
    }
