"""The terminal's table and the body of a failure message, in plain ASCII that fits 80 columns."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from pytest_dscore.report.holdout_lines import holdout_lines
from pytest_dscore.report.protocol_lines import protocol_lines
from pytest_dscore.verdict import LABELS, Verdict

#: What a reader must know to read the figures right, whether or not they know the paper.
ASSUMPTIONS = (
    "A gate passes if the whole interval is on the right side of the threshold, fails",
    "if it is on the wrong side, and is inconclusive if it contains the threshold.",
    "Intervals say how far a figure could move with other test examples of the same",
    "kind, not with a retrained model.",
    "D, where no form is named, is the mean accuracy over all mutants and shifts, and",
    "ours; v_fitness and a~ are reconstructions of Zhang et al. 2023. Compare none of",
    "them with the paper's tables (README).",
)
RECONSTRUCTION = "(D, v_fitness and a~ are ours or reconstructions: README of pytest-dscore)"

_COLUMNS = 80
_LARGEST_GRID = 13

_FIGURES = ("score", "v_robust", "v_fitness", "accuracy")


def summary(verdicts: Iterable[Verdict], width: int = 80) -> list[str]:
    """The whole section: models, then hold-outs, then protocols.

    Parameters
    ----------
    verdicts
        In the order of the tests.
    width
        Columns of the terminal.
    """
    kinds: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        kinds.setdefault(verdict.kind, []).append(verdict)
    parts = []
    if "model" in kinds:
        parts.append(model_lines(kinds["model"], width))
    if "holdout" in kinds:
        parts.append(holdout_lines(kinds["holdout"]))
    if "protocol" in kinds:
        parts.append(protocol_lines(kinds["protocol"]))
    return [line for number, part in enumerate(parts) for line in ([""] if number else []) + part]


def model_lines(verdicts: Iterable[Verdict], width: int = 80) -> list[str]:
    """Return one table over all models, then the grids of each score that was made.

    Parameters
    ----------
    verdicts
        In the order of the tests; the gates of one score are brought together.
    width
        Columns of the terminal.
    """
    scores = _by_score(verdicts)
    lines = _table(scores, width)
    for group in scores:
        lines += ["", *grids(group[0])] if group[0].facts else []
    notes = [verdict.reason for group in scores for verdict in group if _is_noted(verdict)]
    noted = [line for note in dict.fromkeys(notes) for line in textwrap.wrap(note, width)]
    return [*lines, *([""] if noted else []), *noted, "", *ASSUMPTIONS]


def _is_noted(verdict: Verdict) -> bool:
    """What a reader might miss, as it passes."""
    noted = ("cannot fail", "recorded as the baseline")
    return any(words in verdict.reason for words in noted) or (verdict.outcome == "inconclusive" and not verdict.failed)


def details(verdict: Verdict) -> list[str]:
    """What stands below the first line of a failure: figures, then grids."""
    if not verdict.facts:
        return []
    figures = [f"  {LABELS[name]:21}{figure}" for name, figure in verdict.figures.items()]
    return [f"figures with {_percent(verdict)} intervals:", *figures, *grids(verdict), RECONSTRUCTION]


def grids(verdict: Verdict) -> list[str]:
    """The n x n blocks of f~ and a side by side, with what was computed; * marks the extreme of each."""
    facts = verdict.facts
    pad, n = facts["pad"], facts["n"]
    head = (
        f"{verdict.subject}: n={n}, {facts['operator']}, pad {pad[0]}x{pad[1]} px, {facts['examples']} examples, "
        f"{facts['classes']} classes, {'cached' if facts['cached'] else 'scored on ' + facts['device']}"
    )
    if n > _LARGEST_GRID:
        return [head, f"  grids of {n} x {n} are not shown here: see the JUnit properties", *_remarks(facts)]
    left = ["f~, where features lie (* most)", *_block(facts["f_tilde"], max)]
    right = ["a, accuracy with the object there (* least)", *_block(facts["a"], min)]
    gap = max(map(len, left)) + 4
    if gap + max(map(len, right)) > _COLUMNS - 2:
        blocks = [f"  {line}" for line in (*left, *right)]
    else:
        blocks = [f"  {one:{gap}}{other}" for one, other in zip(left, right, strict=True)]
    return [*textwrap.wrap(head, _COLUMNS, subsequent_indent="    "), *blocks, *_remarks(facts)]


def _remarks(facts: Any) -> list[str]:
    lines = [line for remark in facts["remarks"] for line in _wrapped(remark)]
    if facts["no_deletion_hurts"]:
        lines.append("  no mutated region lost accuracy: f~ is uniform by definition")
    if facts["helpful_regions"]:
        lines += _wrapped(f"mutating these regions raised the accuracy: {'; '.join(facts['helpful_regions'])}")
    for charge in facts.get("holdout_charges", ()):
        lines += _wrapped(charge)
    if facts["unused_layers"]:
        unused = ", ".join(f"'{name}'" for name in facts["unused_layers"][:3])
        count = len(facts["unused_layers"])
        lines += _wrapped(f"{count} conv layers never ran as modules and were not masked: {unused}")
    if facts["skipped_layers"]:
        names, layers = [f"'{name}'" for name in facts["skipped_layers"]], facts["layers"]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        lines += _wrapped(
            f"{len(names)} of {layers} conv layers left alone, map smaller than n x n: {', '.join(names[:3])}{more}"
        )
    return lines


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _COLUMNS, initial_indent="  ", subsequent_indent="    ", break_long_words=True)


def _block(grid: Sequence[Sequence[float]], extreme: Callable[[list[float]], float]) -> list[str]:
    values = [value for row in grid for value in row]
    marked = extreme(values) if min(values) < max(values) else math.nan
    # Larger grids give up a decimal, so that a row stays within the terminal.
    decimals = 3 if len(grid) <= 11 else 2
    rows = (" ".join(f"{value:.{decimals}f}{'*' if value == marked else ' '}" for value in row) for row in grid)
    return [row.rstrip() for row in rows]


def _table(scores: list[list[Verdict]], width: int) -> list[str]:
    # Cut to size by folding names, never figures.
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    table.add_column("model", overflow="fold")
    for name in ("figure", "value", "interval", "threshold", "verdict"):
        table.add_column(name, no_wrap=True)
    for group in scores:
        first = group[0]
        subject = _subject(first)
        for row in _rows(group):
            table.add_row(subject, *row)
            subject = ""
    text = io.StringIO()
    Console(file=text, width=width, color_system=None, legacy_windows=False).print(table, highlight=False, markup=False)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def _subject(verdict: Verdict) -> str:
    facts = verdict.facts
    if not facts:
        return verdict.subject
    form = "" if facts["form"] == "mean" else f", {facts['form']}"
    return f"{verdict.subject} (n={facts['n']}, {facts['operator']}{form})"


def _rows(group: list[Verdict]) -> Iterable[tuple[str, str, str, str, str]]:
    if not group[0].figures:
        for verdict in group:
            yield LABELS.get(verdict.figure, ""), "", "", _limit(verdict), "ERROR"
        return
    drops = [name for name in group[0].figures if name.startswith("drop.")]
    for name in (*_FIGURES, *drops):
        gates = [verdict for verdict in group if verdict.figure == name]
        figure = group[0].figures[name]
        estimate = (LABELS[name], f"{figure.value:.3f}", f"[{figure.lower:.3f}, {figure.upper:.3f}]")
        for verdict in gates:
            yield *estimate, _limit(verdict), _OUTCOMES[verdict.outcome]
            estimate = ("", "", "")
        if not gates and name not in drops:
            yield *estimate, "", ""
    for verdict in group:
        if verdict.gate and verdict.figure not in group[0].figures:
            yield (
                LABELS.get(f"drop.{verdict.gate.removeprefix('max_drop.')}", ""),
                "",
                "",
                _limit(verdict),
                _OUTCOMES[verdict.outcome],
            )


_OUTCOMES = {"pass": "pass", "fail": "FAIL", "inconclusive": "inconclusive", "error": "ERROR"}


def _limit(verdict: Verdict) -> str:
    return "" if verdict.threshold is None else f"{verdict.relation} {verdict.threshold:.3f}"


def _by_score(verdicts: Iterable[Verdict]) -> list[list[Verdict]]:
    """Verdicts of the same score together; the same gate at the same threshold, judged by two tests, once."""
    groups: dict[tuple[Any, ...], dict[tuple[str, float | None], Verdict]] = {}
    for verdict in verdicts:
        group = groups.setdefault((verdict.subject, *_setting(verdict)), {})
        group.setdefault((verdict.gate, verdict.threshold), verdict)
    return [list(group.values()) for group in groups.values()]


def _setting(verdict: Verdict) -> tuple[Any, ...]:
    names = ("n", "operator", "form", "pad", "fill", "seed", "confidence", "bootstrap", "bf16", "model_fingerprint")
    return tuple(str(verdict.facts.get(name)) for name in names)


def _percent(verdict: Verdict) -> str:
    return f"{verdict.facts['confidence'] * 100:g} %"
