"""What a gate found, in built-in types that survive JUnit, xdist and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pytest_dscore.figure import Figure

Outcome = Literal["pass", "fail", "inconclusive", "error", "report"]
Kind = Literal["model", "holdout", "protocol"]

#: Names of figures as a reader sees them.
LABELS = {
    "score": "D-Score",
    "v_robust": "v_robust",
    "v_fitness": "v_fitness",
    "accuracy": "accuracy",
    "v_robust_relative": "v_robust_relative",
    "worst_region": "worst region",
}
LABELS |= {f"drop.{name}": f"drop of {label}" for name, label in LABELS.items() if name != "v_robust"}
LABELS["drop.v_robust"] = "rise of v_robust"


@dataclass(frozen=True)
class Verdict:
    """One gate's judgement of one subject.

    Parameters
    ----------
    subject
        Name of the model, hold-out or protocol.
    gate
        Name of the threshold, such as ``min_score``; empty where a test only reports figures.
    outcome
        ``pass``, ``fail``, ``inconclusive`` (the interval contains the threshold), ``error`` (could not be judged, so
        the build fails) or ``report`` (no threshold).
    reason
        One line that says it all.
    threshold
        The limit; None where there is none.
    figure
        Name of the judged entry of `figures`.
    figures
        Every estimate with its interval.
    facts
        Settings, grids and fingerprints, as built-in types only: what pytest-xdist and JUnit can carry.
    kind
        What the subject is.
    tolerated
        Whether an inconclusive verdict passes.
    test
        Id of the test that it was made in, for the terminal; empty until that test is reported.
    """

    subject: str
    gate: str
    outcome: Outcome
    reason: str
    threshold: float | None = None
    figure: str = ""
    figures: Mapping[str, Figure] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    kind: Kind = "model"
    tolerated: bool = False
    test: str = ""

    @property
    def failed(self) -> bool:
        """Whether it fails the build."""
        return self.outcome in ("fail", "error") or (self.outcome == "inconclusive" and not self.tolerated)

    def to_json(self) -> str:
        """One string: it crosses process borders whatever its parts, where execnet refuses all but built-in types."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Verdict:
        """The inverse of `to_json`."""
        data = json.loads(text)
        figures = {name: Figure(**figure) for name, figure in data["figures"].items()}
        return cls(**{**data, "figures": figures})

    @property
    def relation(self) -> str:
        """How the figure must stand to the threshold: ``>=`` or ``<=``."""
        return "<=" if self.gate.startswith("max_") else ">="


def side(figure: Figure, limit: float, *, upward: bool) -> Outcome:
    """On which side of a limit a whole interval lies; `upward` where larger is worse."""
    if upward:
        good, bad = figure.upper <= limit, figure.lower > limit
    else:
        good, bad = figure.lower >= limit, figure.upper < limit
    return "pass" if good else "fail" if bad else "inconclusive"
