"""What a report holds, read back from JUnit files: scores, hold-outs and protocols with their gates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_dscore.figure import Figure

Word = Literal["pass", "fail", "inconclusive", "error"]
Grid = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Place:
    """Where a gate stands: a file as the run named it, and a line from 1, None where it is not known."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Origin:
    """Which run a test case comes from.

    Parameters
    ----------
    file
        The JUnit file.
    suite, hostname
        As the file says.
    position
        Of the suite in the file, from 1.
    timestamp
        When the suite began, as the file says; empty where it does not.
    """

    file: str
    suite: str = ""
    hostname: str = ""
    position: int = 1
    timestamp: str = field(default="", compare=False)


@dataclass(frozen=True)
class Gate:
    """One threshold that was judged, or a test that uses a score without any.

    Parameters
    ----------
    name
        Such as ``min_score``; empty where a test judges by its own body.
    outcome
        ``inconclusive`` where the interval contains the threshold.
    failed
        Whether it fails the build; an inconclusive one may or may not.
    reason
        One line; empty for most that passed.
    threshold
        The limit, None where there is none.
    test
        The test's name as JUnit has it.
    place
        Where the threshold or the test stands, None where the file does not say.
    """

    name: str
    outcome: Word
    failed: bool
    reason: str
    threshold: float | None
    test: str
    place: Place | None


@dataclass(frozen=True)
class Subject:
    """A model, a hold-out or a protocol in one run.

    Parameters
    ----------
    name
        As the project calls it.
    origin
        The run.
    gates
        All that judge it.
    figures
        Estimates with intervals.
    facts
        The rest, by the property's name.
    """

    name: str
    origin: Origin
    gates: tuple[Gate, ...]
    figures: Mapping[str, Figure]
    facts: Mapping[str, Any]

    @property
    def failed(self) -> bool:
        """Whether any of its gates fails the build."""
        return any(gate.failed for gate in self.gates)

    @property
    def outcome(self) -> Word:
        """The worst of its gates' outcomes."""
        ranked: tuple[Word, ...] = ("error", "fail", "inconclusive")
        failing = [gate.outcome for gate in self.gates if gate.failed] or [gate.outcome for gate in self.gates]
        return next((word for word in ranked if word in failing), "pass")


@dataclass(frozen=True)
class Picture:
    """A PNG and its size in pixels."""

    png: bytes
    width: int
    height: int


@dataclass(frozen=True)
class Sample:
    """A moved image that the model got wrong."""

    row: int
    label: int
    prediction: int
    picture: Picture


@dataclass(frozen=True)
class Exhibit:
    """Pictures of a score; `withheld` says why there are no samples, if there is a reason."""

    mean: Picture
    region: tuple[int, int]
    failing: int
    samples: tuple[Sample, ...]
    withheld: str = ""


@dataclass(frozen=True)
class Before:
    """An earlier score of the same model.

    Parameters
    ----------
    figures
        Then, with intervals where they are known (else NaN).
    a
        Accuracies by region then; None where they are not known.
    changes
        Now minus then, by figure.
    paired
        Whether the changes were computed example by example; else both scores are taken to be independent.
    what
        Where it comes from, for people.
    remark
        What stands in the way of a comparison, empty where nothing does.
    """

    figures: Mapping[str, Figure]
    a: Grid | None
    changes: Mapping[str, Figure]
    paired: bool
    what: str
    remark: str = ""


@dataclass(frozen=True)
class Score(Subject):
    """A model's D-Score.

    Parameters
    ----------
    exhibit
        Pictures, None where the file has none.
    before
        What it is compared with, None where there is nothing.
    history
        Earlier scores of the same kind, the oldest first.
    """

    exhibit: Exhibit | None = None
    before: Before | None = None
    history: tuple[Score, ...] = ()

    @property
    def n(self) -> int:
        """The grid; 0 where nothing was scored."""
        return int(self.facts.get("n", 0))

    @property
    def measured(self) -> bool:
        """Whether there are figures."""
        return "score" in self.figures

    @property
    def title(self) -> str:
        """Name and settings."""
        if not self.n:
            return self.name
        form = "" if self.facts.get("form", "bounded") == "mean" else f", {self.facts['form']}"
        return f"{self.name} (n={self.n}, {self.facts.get('operator', '?')}{form})"

    def grid(self, name: str) -> Grid | None:
        """An n x n grid such as ``a``, None where there is none."""
        found: Grid | None = self.facts.get(name)
        return found


@dataclass(frozen=True)
class HoldoutState(Subject):
    """A hold-out.

    Parameters
    ----------
    uses
        (models used, share of the budget used) at each state seen, in that order; the facts are those of the last.
    """

    uses: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Report:
    """All that was read.

    Parameters
    ----------
    scores, holdouts, protocols
        What was judged.
    labels
        What tells the runs apart, by run; empty strings where there is but one.
    notes
        Sentences on what looks odd in the files.
    """

    scores: tuple[Score, ...]
    holdouts: tuple[HoldoutState, ...]
    protocols: tuple[Subject, ...]
    labels: Mapping[Origin, str]
    notes: tuple[str, ...]

    def subjects(self) -> Iterator[Subject]:
        """Scores, then hold-outs, then protocols."""
        yield from (*self.scores, *self.holdouts, *self.protocols)

    @property
    def gates(self) -> tuple[tuple[Subject, Gate], ...]:
        """All gates, each with its subject."""
        return tuple((subject, gate) for subject in self.subjects() for gate in subject.gates)

    @property
    def failures(self) -> tuple[tuple[Subject, Gate], ...]:
        """The gates that fail the build."""
        return tuple((subject, gate) for subject, gate in self.gates if gate.failed)

    @property
    def verdict(self) -> str:
        """One sentence on all gates."""
        gates, failed = len(self.gates), len(self.failures)
        undecided = sum(gate.outcome == "inconclusive" and not gate.failed for _, gate in self.gates)
        more = f", {undecided} of them inconclusive" if undecided else ""
        if failed:
            let_pass = f", {undecided} let pass undecided" if undecided else ""
            return f"{failed} of {gates} gate{'' if gates == 1 else 's'} failed{let_pass}"
        return f"all {gates} gates passed{more}" if gates > 1 else f"the only gate passed{more and ', inconclusive'}"

    def label(self, subject: Subject) -> str:
        """What tells this subject's run from the others, empty where there is nothing to tell."""
        return self.labels.get(subject.origin, "")


def known(figure: Figure | None) -> bool:
    """Whether a figure has a value."""
    return figure is not None and not math.isnan(figure.value)
