"""The words that all formats of a report share: figures, changes, gates, what is left of a hold-out."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pytest_dscore.figure import Figure
from pytest_dscore.report.contents import Gate, Grid, HoldoutState, Report, Score, Subject
from pytest_dscore.report.text import percent
from pytest_dscore.score.regions import region_name
from pytest_dscore.settings.scores import GATES
from pytest_dscore.verdict import LABELS

_FIGURES = ("score", "v_robust", "v_fitness", "accuracy", "v_robust_relative")
RECONSTRUCTION = (
    "D, where no form is named, is the mean accuracy over all mutants and shifts, and ours; v_fitness and a~ are "
    "reconstructions of Zhang et al. 2023 (see the README of pytest-dscore): compare none of them with the paper's "
    "tables. Intervals say how far a figure could move with other test examples of the same kind, not with a retrained "
    "model."
)


def number(value: float) -> str:
    """Three decimals; a dash where there is none."""
    return "-" if math.isnan(value) else f"{value:.3f}"


def estimate(figure: Figure | None) -> str:
    """``0.869 [0.840, 0.900]``; a dash where there is none."""
    return "-" if figure is None or math.isnan(figure.value) else f"{figure}"


def signed(figure: Figure | None) -> str:
    """A change: ``-0.512 [-0.540, -0.480]``."""
    return "-" if figure is None or math.isnan(figure.value) else f"{figure:+.3f}"


def trend(figure: Figure | None) -> str:
    """``better`` or ``worse`` where a change's whole interval says so, else nothing."""
    if figure is None or not (figure.lower > 0 or figure.upper < 0):
        return ""
    return "better" if (figure.lower > 0) == figure.larger_is_better else "worse"


def figure_of(gate: Gate) -> str:
    """The name of the figure that a gate judges; empty where it is none of a score's."""
    name = gate.name.removeprefix("max_drop.")
    return GATES.get(name, f"drop.{name}" if name != gate.name else "")


def gate_title(gate: Gate) -> str:
    """``min_score >= 0.7``."""
    if not gate.name:
        return "the test itself"
    if gate.threshold is None:
        return gate.name
    relation = "<=" if gate.name.startswith("max_") else "" if gate.name == "budget" else ">="
    return f"{gate.name} {relation} {gate.threshold:g}" if relation else f"{gate.name} (epsilon {gate.threshold:g})"


def outcome_word(gate: Gate) -> str:
    """A gate's verdict in a word or two."""
    if gate.outcome == "inconclusive":
        return "inconclusive, fails" if gate.failed else "inconclusive, let pass"
    return gate.outcome


def reason(subject: Subject, gate: Gate) -> str:
    """One line on a gate that did not simply pass; one that was let pass has left no message, so it is made here."""
    if gate.reason or gate.outcome != "inconclusive":
        return gate.reason or f"{gate.name or 'the test'} of '{subject.name}': {outcome_word(gate)}"
    name = figure_of(gate)
    shown = f"{label_of(name)} {estimate(subject.figures.get(name))}"
    said = f"{shown} of '{subject.name}' is inconclusive against {gate_title(gate)}"
    more = subject.facts.get("more_examples", {}).get(gate.name)
    return f"{said}; about {more:,} more examples like these would settle it" if more else said


def vacuous(score: Score, gate: Gate) -> bool:
    """Whether a gate cannot fail: v_robust never exceeds g(n, c)."""
    limit = score.facts.get("g")
    return gate.name == "max_v_robust" and gate.threshold is not None and limit is not None and gate.threshold >= limit


def remarks(report: Report, subject: Subject) -> list[str]:
    """What a reader should know although it fails nothing."""
    found = [str(remark) for remark in subject.facts.get("remarks", ())]
    if isinstance(subject, Score):
        found += [
            f"max_v_robust = {gate.threshold:g} cannot fail: v_robust stays below g(n, c) = {subject.facts['g']:.3f}"
            for gate in subject.gates
            if vacuous(subject, gate)
        ]
        if subject.facts["no_deletion_hurts"]:
            found.append("no mutated region lost accuracy: f~ is uniform by definition")
        if subject.before is not None and subject.before.remark:
            found.append(subject.before.remark)
    return list(dict.fromkeys(found))


def name_in(report: Report, subject: Subject) -> str:
    """A subject's name, with its settings and its run where there are several."""
    title = subject.title if isinstance(subject, Score) else subject.name
    label = report.label(subject)
    return f"{title}, {label}" if label else title


def left(state: HoldoutState) -> str:
    """How many more models a hold-out takes."""
    rest = state.facts["models_remaining"]
    return f"{rest:,} more" if isinstance(rest, int) else f"{rest} more" if rest else "-"


def tolerance(state: HoldoutState) -> str:
    """``+-2 % with probability 95 %``; a dash where it is not known."""
    epsilon, delta = state.facts["epsilon"], state.facts["delta"]
    if epsilon is None:
        return "-"
    return f"+-{percent(epsilon)}" + (f" with probability {percent(1 - delta)}" if delta is not None else "")


def place(index: int, n: int) -> str:
    """The name of a region by its place in reading order."""
    return region_name(*divmod(index, n), n)


def selected(protocol: Subject) -> list[tuple[str, int]]:
    """The hyper-parameters that the folds selected, each with the number of folds, the most frequent first."""
    counts: dict[str, int] = {}
    for chosen in protocol.facts["selected"]:
        pairs = chosen.items() if isinstance(chosen, Mapping) else [("", chosen)]
        text = ", ".join(f"{name} = {value}".removeprefix(" = ") for name, value in pairs)
        if text:
            counts[text] = counts.get(text, 0) + 1
    return sorted(counts.items(), key=lambda pair: -pair[1])


def assumptions(protocol: Subject) -> list[str]:
    """What a protocol's intervals rest on."""
    words = {"interval_assumes": "Interval of the error", "bias_assumes": "Bias"}
    return [f"{what}: {protocol.facts[key]}." for key, what in words.items() if protocol.facts[key]]


def compared_figures(score: Score) -> dict[str, Figure]:
    """The figures of a score that are shown, in their order; the worst region where a change of it is known."""
    found = {name: score.figures[name] for name in _FIGURES if name in score.figures}
    grids = [flat(score.grid(name)) for name in ("a", "a_lower", "a_upper")]
    if grids[0] and score.before is not None and "worst_region" in score.before.changes:
        worst = grids[0].index(min(grids[0]))
        ends = [grid[worst] if grid else math.nan for grid in grids]
        found["worst_region"] = Figure(ends[0], ends[1], ends[2])
    return found


def flat(grid: Grid | None) -> list[float]:
    """A grid's values in reading order."""
    return [value for row in grid or () for value in row]


def label_of(figure: str) -> str:
    """What people call a figure."""
    return LABELS.get(figure, figure.replace("_", " "))
