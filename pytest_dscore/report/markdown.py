"""A report as Markdown for a pull request's comment or a step summary, within GitHub's length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_dscore.figure import Figure
from pytest_dscore.report.contents import HoldoutState, Report, Score, Subject, known
from pytest_dscore.report.escaping import markdown as safe
from pytest_dscore.report.text import percent
from pytest_dscore.report.wording import (
    RECONSTRUCTION,
    assumptions,
    compared_figures,
    estimate,
    figure_of,
    flat,
    gate_title,
    label_of,
    left,
    name_in,
    number,
    outcome_word,
    place,
    reason,
    remarks,
    selected,
    signed,
    tolerance,
    trend,
)

#: By this a bot finds its comment again; it never changes.
MARKER = "<!-- dscore-report -->"
#: Characters that GitHub takes in a comment.
LARGEST = 65_536
_ROOM_FOR_NOTE = 400
_NAME = 200
_MOST_SELECTED = 12
_LARGEST_GRID = 13


@dataclass(frozen=True)
class _Part:
    """Lines that stay or go together.

    Parameters
    ----------
    what
        What is missing where they go, in the plural.
    lines
        As Markdown.
    rank
        Those with the highest are cut first.
    """

    what: str
    lines: tuple[str, ...]
    rank: int


def render(report: Report, largest: int = LARGEST) -> str:
    """Return the report; what does not fit is cut from the least important, and the end says what.

    Parameters
    ----------
    report
        With its comparisons.
    largest
        Characters at most.
    """
    parts = list(_parts(report))
    cut: dict[str, int] = {}
    size = sum(len(line) + 1 for part in parts for line in part.lines)
    kept = dict(enumerate(parts))
    for i in sorted(kept, key=lambda i: (-parts[i].rank, -i)):
        if size <= largest - (_ROOM_FOR_NOTE if cut else 0) or parts[i].rank == 0:
            break
        part = kept.pop(i)
        size -= sum(len(line) + 1 for line in part.lines)
        cut[part.what] = cut.get(part.what, 0) + 1
    lines = [line for part in kept.values() for line in part.lines]
    if cut:
        missing = ", ".join(f"{count} {what}" for what, count in cut.items())
        lines += [
            "",
            f"**Cut to {largest:,} characters; missing here: {missing}.** They are in the JUnit file and in the HTML "
            "report.",
        ]
    return "\n".join(lines) + "\n"


def _parts(report: Report) -> Iterator[_Part]:
    yield _Part("", (MARKER, f"### D-Score report: {report.verdict}"), 0)
    yield from _failures(report)
    yield from _table(
        "models",
        ("Model", "D now", "D before", "Change", "Verdict"),
        [_score_row(report, score) for score in report.scores],
    )
    if report.scores and any(score.before is not None for score in report.scores):
        yield _Part("notes", ("", _comparison_note(report)), 3)
    yield from _table(
        "hold-outs",
        ("Hold-out", "Models used", "Left", "All hold within", "Verdict"),
        [_holdout_row(report, state) for state in report.holdouts],
    )
    yield from _table(
        "protocols", ("Protocol", "Error", "Gates", "Verdict"), [_protocol_row(report, one) for one in report.protocols]
    )
    for note in report.notes:
        yield _Part("notes", ("", f"Note: {safe(note, 600)}"), 3)
    for subject in report.subjects():
        if remarks(report, subject):
            lines = [f"- {safe(name_in(report, subject), _NAME)}: {safe(one, 600)}" for one in remarks(report, subject)]
            yield _Part("remarks", ("", *lines), 4)
    for score in report.scores:
        if score.measured:
            yield _Part("models' details", ("", *_score_details(report, score)), 5)
    for subject in (*report.holdouts, *report.protocols):
        lines = list(_other_details(subject))
        if lines:
            what = "hold-outs' details" if isinstance(subject, HoldoutState) else "protocols' details"
            yield _Part(what, ("", *_folded(safe(name_in(report, subject), _NAME), lines)), 5)
    if report.scores:
        yield _Part("notes", ("", f"<sub>{safe(RECONSTRUCTION)}</sub>"), 2)


def _failures(report: Report) -> Iterator[_Part]:
    undecided = [
        (subject, gate) for subject, gate in report.gates if gate.outcome == "inconclusive" and not gate.failed
    ]
    if report.failures or undecided:
        yield _Part("", ("",), 0)
    for subject, gate in (*report.failures, *undecided):
        label = report.label(subject)
        where = f" ({', '.join(safe(text, _NAME) for text in (str(gate.place or ''), label) if text)})"
        what = safe(outcome_word(gate).upper() if gate.outcome != "inconclusive" else outcome_word(gate))
        line = f"- **{what}** {safe(reason(subject, gate))}{where if gate.place or label else ''}"
        yield _Part("failures" if gate.failed else "inconclusive gates", (line,), 1)


def _table(what: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[_Part]:
    rows = list(rows)
    if rows:
        yield _Part("", ("", _row(head), _row(["---"] * len(head))), 0)
    for row in rows:
        yield _Part(what, (_row(row),), 2)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _verdict(subject: Subject) -> str:
    """The worst verdict, and how many gates share it."""
    gates = subject.gates
    word = subject.outcome
    same = sum(gate.outcome == word for gate in gates)
    shown = word if word == "pass" else f"**{word}**"
    if word == "inconclusive" and not subject.failed:
        shown = "inconclusive, let pass"
    return shown if len(gates) == 1 or same == len(gates) else f"{shown} ({same} of {len(gates)} gates)"


def _score_row(report: Report, score: Score) -> list[str]:
    name = safe(name_in(report, score), _NAME)
    before = score.before
    if before is None or not known(before.figures.get("score")):
        return [name, estimate(score.figures.get("score")), "-", "-", _verdict(score)]
    change = _change(before.changes.get("score")) + ("" if before.paired else " (unpaired)")
    return [name, estimate(score.figures.get("score")), estimate(before.figures.get("score")), change, _verdict(score)]


def _change(figure: Figure | None) -> str:
    return f"{signed(figure)} {trend(figure)}".rstrip()


def _comparison_note(report: Report) -> str:
    befores = [score.before for score in report.scores if score.before is not None and score.before.changes]
    kinds = {before.paired for before in befores}
    whats = ", ".join(dict.fromkeys(safe(before.what, _NAME) for before in befores))
    said = f"Before: {whats}." if whats else "Before: nothing comparable."
    if True in kinds:
        said += " Changes were computed on the same examples, one by one."
    if False in kinds:
        said += " *Unpaired*: both scores are taken to be independent, so the interval is wider than it need be."
    return said


def _holdout_row(report: Report, state: HoldoutState) -> list[str]:
    used = state.facts["models_used"]
    name = safe(name_in(report, state), _NAME)
    shown = "-" if used is None else f"{used:,} ({percent(state.facts['share_used'])} of the budget)"
    return [name, shown, safe(left(state), 40), tolerance(state), _verdict(state)]


def _protocol_row(report: Report, one: Subject) -> list[str]:
    gates = ", ".join(dict.fromkeys(f"{gate_title(gate)}: {outcome_word(gate)}" for gate in one.gates))
    return [safe(name_in(report, one), _NAME), estimate(one.figures.get("error")), safe(gates, 400), _verdict(one)]


def _folded(title: str, lines: Iterable[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>"]


def _score_details(report: Report, score: Score) -> list[str]:
    facts, before = score.facts, score.before
    then = before.figures if before is not None else {}
    changes = before.changes if before is not None else {}
    lines = [_row(("Figure", "Now", "Before", "Change", "Gate")), _row(["---"] * 5)]
    for name, now in compared_figures(score).items():
        gates = [gate for gate in score.gates if figure_of(gate) in (name, f"drop.{name}")]
        judged = ", ".join(dict.fromkeys(f"{gate_title(gate)}: {outcome_word(gate)}" for gate in gates))
        figures = (estimate(now), estimate(then.get(name)), _change(changes.get(name)))
        lines.append(_row((safe(label_of(name)), *figures, safe(judged, 400))))
    lines += ["", *_grids(score)]
    pad = " x ".join(map(str, facts["pad"]))
    about = f"{facts['examples']:,} examples, {facts['classes']} classes, padded by {pad} pixels"
    prints = f"model {facts['model_fingerprint'][:12]}, data {facts['data_fingerprint'][:12]}"
    lines += ["", safe(f"{about}; {prints}.", 400)]
    if facts["helpful_regions"]:
        lines.append(safe(f"Mutating these regions raised the accuracy: {', '.join(facts['helpful_regions'])}.", 600))
    lines += [safe(charge, 600) for charge in facts["holdout_charges"]]
    return _folded(f"{safe(name_in(report, score), _NAME)}: figures and grids", lines)


def _grids(score: Score) -> list[str]:
    """The grids side by side, in a block of their own: numbers only, so that nothing needs escaping."""
    if score.n > _LARGEST_GRID:
        return [f"Grids of {score.n} x {score.n} are not shown here: see the JUnit file."]
    titles = {"f_tilde": "f~, where features lie", "a": "a, accuracy with the object there"}
    blocks = [[title, *_block(flat(score.grid(name)), score.n)] for name, title in titles.items() if score.grid(name)]
    if score.before is not None and score.before.a is not None:
        blocks.append(["a before", *_block(flat(score.before.a), score.n)])
    if not blocks:
        return []
    width = [max(map(len, block)) for block in blocks]
    rows = (
        "    ".join(f"{line:{w}}" for line, w in zip(lines, width, strict=True)).rstrip()
        for lines in zip(*blocks, strict=True)
    )
    worst = flat(score.grid("a"))
    return ["```text", *rows, "```", *([f"Worst: {place(worst.index(min(worst)), score.n)}."] if worst else [])]


def _block(values: Sequence[float], n: int) -> list[str]:
    return ["  ".join(number(value) for value in values[start : start + n]) for start in range(0, n * n, n)]


def _other_details(subject: Subject) -> Iterator[str]:
    facts = subject.facts
    if isinstance(subject, HoldoutState):
        if facts["sentence"]:
            yield safe(facts["sentence"], 600)
            yield ""
            yield safe(facts["assumption"], 600)
        return
    if subject.figures:
        yield from (_row(("Figure", "Now")), _row(["---"] * 2))
        for name, figure in subject.figures.items():
            yield _row((safe(label_of(name), 100), estimate(figure)))
        yield ""
    for leak in facts["leaks"]:
        yield f"- {safe(str(leak.get('line', '')), 600)}"
    for moved in facts["moved"]:
        yield f"- {safe(moved, 600)}"
    if chosen := selected(subject):
        yield from (_row(("Selected parameters", "Folds")), _row(["---"] * 2))
        yield from (_row((safe(text, 300), str(count))) for text, count in chosen[:_MOST_SELECTED])
    for line in assumptions(subject):
        yield from ("", safe(line, 600))
