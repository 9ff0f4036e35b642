"""``[tool.dscore.holdouts.NAME]``: a test set, and how far every accuracy measured on it must hold."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pytest_dscore.settings.reading import OpenShare, Reference, Share, named_tables, validated

#: Where a ledger is kept if the settings do not say.
LEDGER = ".dscore/ledger"
#: The bounds that a ledger of outcomes can be judged by.
BOUNDS = ("best", "union", "similarity", "naive-bayes", "theorem-2", "empirical", "bootstrap")
#: Those that know only the models that were scored, not those that could have been.
_SEEN_ONLY = ("empirical", "bootstrap")


class HoldoutSettings(BaseModel):
    """One hold-out as the project declares it.

    Parameters
    ----------
    data
        ``module:callable`` that returns (inputs, labels) or a map-style Dataset.
    epsilon, delta
        Every accuracy measured on it is within epsilon of the true one with probability 1 - delta, both in (0, 1).
    bound
        One of `BOUNDS`.
    mode, feedback
        As in `pytest_dscore.holdout.failure_probability`. The step of the Ladder is epsilon.
    max_uses
        Models that may be scored on it at most, besides the bound.
    warn_at
        Share of the budget, in (0, 1), from which on reports warn.
    ledger
        URL; it may hold a password, so it is in no repr.
    charge
        What a D-Score on these data is charged for: all its 2 n^2 + 1 outcome vectors, or the clean one only.
    min_accuracy
        What every model must reach on it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    data: Reference
    epsilon: OpenShare
    delta: OpenShare = 0.05
    bound: Literal["best", "union", "similarity", "naive-bayes", "theorem-2", "empirical", "bootstrap"] = "best"
    mode: Literal["non-adaptive", "adaptive"] = "non-adaptive"
    feedback: Literal["exact", "pass-fail", "ladder"] = "exact"
    max_uses: int | None = Field(None, ge=1)
    warn_at: OpenShare | None = None
    ledger: str = Field(LEDGER, repr=False, min_length=1)
    charge: Literal["all", "clean"] = "all"
    min_accuracy: Share | None = None

    @model_validator(mode="after")
    def _fit_together(self) -> HoldoutSettings:
        if self.mode == "adaptive" and self.bound in _SEEN_ONLY:
            raise ValueError(
                f"bound = '{self.bound}' knows only the models that were scored, not those that could have been: with "
                "mode = 'adaptive' use best, union, similarity, theorem-2 or naive-bayes"
            )
        if self.mode == "non-adaptive" and self.feedback != "exact":
            raise ValueError(
                f"feedback = '{self.feedback}' only counts with mode = 'adaptive': add it, or leave feedback out"
            )
        if self.feedback == "pass-fail" and self.min_accuracy is None:
            raise ValueError("feedback = 'pass-fail' needs min_accuracy, what a model must reach to pass")
        if self.feedback == "ladder" and self.min_accuracy is not None:
            raise ValueError(
                "min_accuracy does not go with feedback = 'ladder', as it would reveal more than the ladder's steps: "
                "leave it out"
            )
        return self


def holdout_settings(tables: Any) -> dict[str, HoldoutSettings]:
    """Check ``[tool.dscore.holdouts]``; none where `tables` is None.

    Raises
    ------
    SettingsError
        Unknown key, or a value that cannot be used.
    """
    return {
        name: validated(HoldoutSettings, own, f"[tool.dscore.holdouts.{name}]", _EXPECTED)
        for name, own in named_tables(tables, "holdouts", "data and epsilon").items()
    }


_EXPECTED = {
    "data": 'give "module:callable", a callable without arguments that returns (inputs, labels) or a Dataset',
    "epsilon": "give a number between 0 and 1, such as 0.02 for +-2 %",
    "delta": "give a number between 0 and 1, such as 0.05 for a guarantee with probability 95 %",
    "bound": f"give one of {', '.join(BOUNDS)}",
    "mode": 'give "non-adaptive" or "adaptive"',
    "feedback": 'give "exact", "pass-fail" or "ladder"',
    "max_uses": "give a whole number >= 1",
    "warn_at": "give a number between 0 and 1, such as 0.8 to be warned at 80 % of the budget",
    "ledger": 'give a directory, "git:REF" or the URL of a database',
    "charge": 'give "all" or "clean"',
    "min_accuracy": "give a number > 0 and <= 1, as others always pass or never",
}
