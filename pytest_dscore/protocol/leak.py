"""What a leak is called, what a probe answers, and the usual fix for each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

FIXES: Mapping[str, str] = {
    "overlap": "split first, then resample or augment inside the training part only; no row may be on both sides",
    "preprocessing": "fit scalers, imputers, encoders and projections on the training rows only, e.g. in a Pipeline",
    "selection": "select features and hyper-parameters anew inside each training part, e.g. GridSearchCV in nested_cv",
    "labels": "compute everything that uses labels (target encoding, class statistics) from the training rows only",
    "duplicates": "drop the copies, or put all copies of a row into one group and split with GroupKFold",
    "groups": "split with a splitter that keeps groups together, such as GroupKFold or StratifiedGroupKFold",
    "time": "train on the past only, e.g. with TimeSeriesSplit on rows in time order",
    "early-stopping": "stop and choose the epoch on a validation part that is cut from the training rows",
}
KINDS = tuple(FIXES)


@dataclass(frozen=True)
class Leak:
    """One way in which test rows reach the fit.

    Parameters
    ----------
    kind
        One of ``KINDS``.
    where
        Split and step, as far as could be seen.
    evidence
        What was done and what changed, with counts and the first offenders' rows.
    fix
        What usually cures it.
    flattery
        How many percentage points better the error looks than it does when the leak carries nothing; ``nan`` where it
        was not measured (leaks found in the data alone).
    """

    kind: str
    where: str
    evidence: str
    fix: str
    flattery: float = float("nan")

    def __str__(self) -> str:
        return f"{self.kind} leak in {self.where}: {self.evidence}. Fix: {self.fix}."


@dataclass(frozen=True)
class LeakVerdict:
    """The probe's answer.

    Parameters
    ----------
    leaks
        What was found; empty does not mean a pass where `undecided` is set.
    undecided
        True where the probe cannot tell; never a pass.
    reason
        Why it cannot tell; empty otherwise.
    runs
        How many times the protocol was run.
    notes
        What else was seen: what the poison touched, perturbations that made the protocol raise.
    """

    leaks: tuple[Leak, ...]
    undecided: bool
    reason: str
    runs: int
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """True where nothing leaks and the probe could tell."""
        return not self.leaks and not self.undecided

    def __str__(self) -> str:
        if self.leaks:
            return "\n".join(str(leak) for leak in self.leaks) + f" ({self.runs} runs)"
        if self.undecided:
            return f"cannot tell: {self.reason} ({self.runs} runs)"
        return f"no leak found ({self.runs} runs)"


def make_leak(kind: str, where: str, evidence: str, flattery: float = float("nan")) -> Leak:
    """Build a leak with the usual fix of its kind."""
    return Leak(kind, where, evidence, FIXES[kind], flattery)
