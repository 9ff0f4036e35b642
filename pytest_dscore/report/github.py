"""A report as GitHub workflow commands: annotations at the file and line of each threshold."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_dscore.report.contents import Gate, Place, Report, Subject
from pytest_dscore.report.escaping import command_data, command_property, one_line
from pytest_dscore.report.wording import name_in, reason, remarks


def render(report: Report) -> str:
    """Return one command a line: errors for what fails the build, then warnings. GitHub shows the first ten of each."""
    lines = [_command("error", subject, gate, report) for subject, gate in report.failures]
    lines += [
        _command("warning", subject, gate, report)
        for subject, gate in report.gates
        if gate.outcome == "inconclusive" and not gate.failed
    ]
    lines += [line for subject in report.subjects() for line in _remarks(report, subject)]
    lines += [_line("warning", None, "dscore report", note) for note in report.notes]
    lines.append(_line("notice", None, "dscore report", report.verdict))
    return "\n".join(lines) + "\n"


def _command(word: str, subject: Subject, gate: Gate, report: Report) -> str:
    label = report.label(subject)
    message = reason(subject, gate) + (f" ({label})" if label else "")
    return _line(word, gate.place, f"{subject.name}: {gate.name or 'test'}", message)


def _remarks(report: Report, subject: Subject) -> Iterator[str]:
    place = next((gate.place for gate in subject.gates if gate.place is not None), None)
    for remark in remarks(report, subject):
        yield _line("warning", place, name_in(report, subject), remark)


def _line(word: str, place: Place | None, title: str, message: str) -> str:
    properties = {"title": one_line(title, 200)}
    if place is not None:
        line = {"line": str(place.line)} if place.line is not None else {}
        properties = {"file": place.file, **line, **properties}
    shown = ",".join(f"{name}={command_property(one_line(value))}" for name, value in properties.items())
    return f"::{word} {shown}::{command_data(one_line(message, 1000))}"
