"""On what terms a hold-out is used: what the project declares of it, as the budget needs it."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_dscore.holdout.checks import Feedback, Mode
from pytest_dscore.settings.holdouts import LEDGER, HoldoutSettings


@dataclass(frozen=True)
class Terms:
    """The terms of one hold-out; all but the name as in `HoldoutSettings`.

    Parameters
    ----------
    epsilon
        None where the project does not say, as for a hold-out that is on record only.
    known
        Whether the project declares it.
    ledger
        URL; it may hold a password, so it is never in a repr.
    """

    name: str
    epsilon: float | None = None
    delta: float = 0.05
    bound: str = "best"
    mode: Mode = "non-adaptive"
    feedback: Feedback = "exact"
    data: str | None = None
    max_uses: int | None = None
    warn_at: float | None = None
    known: bool = False
    ledger: str = field(default=LEDGER, repr=False)

    @classmethod
    def of(cls, name: str, declared: HoldoutSettings) -> Terms:
        """Return the terms that the project declares."""
        return cls(name, known=True, **declared.model_dump(exclude={"charge", "min_accuracy"}))

    @property
    def scores_shown(self) -> bool:
        """Whether every exact score was shown when it was recorded, so that showing it again tells nothing new."""
        return self.known and (self.mode == "non-adaptive" or self.feedback == "exact")
