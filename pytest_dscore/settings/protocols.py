"""``[tool.dscore.protocols.NAME]`` and ``@pytest.mark.nested_cv``: how an error is estimated and judged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pytest_dscore.errors import SettingsError
from pytest_dscore.settings.reading import CONFIDENCE, Confidence, Reference, named_tables, validated

#: Thresholds of a declared protocol, in the order of its tests.
PROTOCOL_GATES = ("max_error", "max_bias")
#: Scorers between 0 and 1, or names that begin theirs: ``1 - score`` is then an error of at most 1.
_WITHIN_1 = ("accuracy", "average_precision", "f1", "jaccard", "precision", "recall", "roc_auc", "top_k_accuracy")
#: Where the manifest of a protocol lies if the settings name no file, for advice.
MANIFEST = "protocol.yaml"

Folds = Annotated[int, Field(ge=2)]


class Estimation(BaseModel):
    """What a marked test and a declared protocol have in common.

    Parameters
    ----------
    repeats, seed, interval, confidence, nested_repeats, n_jobs
        As in `pytest_dscore.protocol.nested_cv`.
    max_error
        What the error must not exceed.
    inconclusive
        What becomes of a threshold that the interval contains.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True)

    repeats: int = Field(1, ge=1)
    seed: int = Field(0, ge=0)
    interval: Literal["naive", "corrected", "nested"] = "corrected"
    confidence: Confidence = 0.95
    nested_repeats: int = Field(10, ge=1)
    n_jobs: int = Field(1)
    max_error: float | None = Field(None, ge=0)
    inconclusive: Literal["fail", "pass"] = "fail"

    @field_validator("n_jobs")
    @classmethod
    def _some_jobs(cls, value: int) -> int:
        if value == 0:
            raise ValueError("cannot be used: give the number of outer folds at a time, or -1 for one a core")
        return value

    @field_validator("max_error")
    @classmethod
    def _finite(cls, value: float | None) -> float | None:
        if value is not None and not math.isfinite(value):
            raise ValueError("must be a finite number")
        return value


class ProtocolMark(Estimation):
    """The keywords of ``@pytest.mark.nested_cv``; all but three are defaults of the fixture's call.

    Parameters
    ----------
    outer, inner
        Numbers of folds or splitters.
    scoring
        Name of a scorer, or a callable.
    name
        What reports call the protocol; the test's name if None.
    """

    outer: Any = 10
    inner: Any = 5
    scoring: Any = "accuracy"
    name: str | None = Field(None, min_length=1)

    @field_validator("outer", "inner")
    @classmethod
    def _folds(cls, value: Any) -> Any:
        if isinstance(value, (bool, float, str)) or value is None or (isinstance(value, int) and value < 2):
            raise ValueError("cannot be used: give a number of folds >= 2 or a splitter")
        return value

    @field_validator("scoring")
    @classmethod
    def _scorer(cls, value: Any) -> Any:
        if not isinstance(value, str) and not callable(value):
            raise ValueError('cannot be used: give the name of a scorer, such as "accuracy", or a callable')
        return value

    @model_validator(mode="after")
    def _can_fail(self) -> ProtocolMark:
        _check_can_fail(self.max_error, self.scoring)
        return self

    def arguments(self) -> dict[str, Any]:
        """Defaults of the fixture's call."""
        own = ("max_error", "inconclusive", "name")
        return {name: getattr(self, name) for name in type(self).model_fields if name not in own}


class ProtocolSettings(Estimation):
    """One protocol as the project declares it.

    Parameters
    ----------
    experiment
        ``module:callable``, called as ``(X, y, train, test, seed, **params) -> predictions on the test rows``.
    estimator
        In its place: ``module:callable``, called without arguments, that returns an estimator or a search object.
    data
        ``module:callable`` that returns (X, y) or (X, y, groups).
    splits
        Number of outer folds, or ``module:name`` of a splitter, of a list of (train rows, test rows), or of a callable
        without arguments that returns one of these.
    inner
        Number of inner folds.
    param_grid
        Lists of values by parameter, or ``module:name`` of such a mapping or of a callable that returns one.
    scoring
        Name of a scorer.
    max_bias
        By how many percentage points the external and median protocols may flatter the error.
    probe
        Whether the protocol is probed for leaks.
    manifest
        File that declares the protocol, relative to pyproject.toml.
    """

    experiment: Reference | None = None
    estimator: Reference | None = None
    data: Reference
    splits: Folds | Reference = 10
    inner: Folds = 5
    param_grid: Any = None
    scoring: str = Field("accuracy", min_length=1)
    max_bias: float | None = Field(None, ge=0)
    probe: bool = True
    manifest: str | None = Field(None, min_length=1)

    @field_validator("max_bias")
    @classmethod
    def _finite_bias(cls, value: float | None) -> float | None:
        return cls._finite(value)

    @field_validator("param_grid")
    @classmethod
    def _grid(cls, value: Any) -> Any:
        if isinstance(value, str):
            if ":" not in value:
                raise ValueError(f"cannot be used: {_GRID}")
            return value
        tables = value if isinstance(value, list) else [value]
        if not tables or not all(isinstance(table, dict) and table for table in tables):
            raise ValueError(f"cannot be used: {_GRID}")
        for table in tables:
            for name, values in table.items():
                if not isinstance(values, list) or not values:
                    raise ValueError(f"cannot be used: {name} must be a list of values, with one at least")
        return value

    @model_validator(mode="after")
    def _fit_together(self) -> ProtocolSettings:
        if (self.experiment is None) == (self.estimator is None):
            raise ValueError(
                'needs one of the two: experiment = "module:callable", called with (X, y, train, test, seed), or '
                'estimator = "module:callable", called without arguments, that returns an estimator or a search object'
            )
        _check_can_fail(self.max_error, self.scoring)
        if self.max_bias is not None and self.experiment is not None and self.param_grid is None:
            raise ValueError(
                "max_bias compares ways of choosing hyper-parameters, and nothing is chosen here: add param_grid, or "
                "leave max_bias out"
            )
        if not (self.thresholds() or self.probe or self.manifest):
            raise ValueError(f"has nothing to judge: set one of {', '.join(PROTOCOL_GATES)}, manifest, or probe = true")
        return self

    def thresholds(self) -> dict[str, float]:
        """The thresholds that are set, by name, in the order of `PROTOCOL_GATES`."""
        return {gate: float(value) for gate in PROTOCOL_GATES if (value := getattr(self, gate)) is not None}


def protocol_settings(tables: Any) -> dict[str, ProtocolSettings]:
    """Check ``[tool.dscore.protocols]``; none where `tables` is None.

    Raises
    ------
    SettingsError
        Unknown key, or a value that cannot be used.
    """
    return {
        name: validated(ProtocolSettings, own, f"[tool.dscore.protocols.{name}]", _EXPECTED)
        for name, own in named_tables(tables, "protocols", "data and experiment or estimator").items()
    }


def protocol_mark(keywords: Mapping[str, Any]) -> ProtocolMark:
    """Check the keywords of ``@pytest.mark.nested_cv``.

    Raises
    ------
    SettingsError
        Unknown keyword, or a value that cannot be used.
    """
    where = "@pytest.mark.nested_cv"
    if "max_error" in keywords and keywords["max_error"] is None:
        raise SettingsError(f"{where} max_error = None sets no threshold: give a number or leave it out")
    plain = {key: value.item() if _is_scalar(value) else value for key, value in keywords.items()}
    return validated(ProtocolMark, plain, where, _EXPECTED)


def _is_scalar(value: Any) -> bool:
    """Whether a value is a NumPy scalar."""
    return hasattr(value, "item") and getattr(value, "ndim", None) == 0


def _check_can_fail(max_error: float | None, scoring: Any) -> None:
    if max_error is not None and max_error >= 1 and isinstance(scoring, str) and scoring.startswith(_WITHIN_1):
        raise ValueError(
            f"max_error = {max_error:g} can never fail: with scoring = '{scoring}' an error is a share of at most 1, "
            "such as 0.20 for 20 %"
        )


_GRID = 'give {NAME = [values, ...]}, or "module:name" of such a mapping or of a callable that returns one'
_EXPECTED = {
    "experiment": 'give "module:callable", called with (X, y, train, test, seed), that returns predictions',
    "estimator": 'give "module:callable", called without arguments, that returns an estimator or a search object',
    "data": 'give "module:callable", a callable without arguments that returns (X, y) or (X, y, groups)',
    "splits": 'give a number of folds >= 2, or "module:name" of a splitter',
    "inner": "give a number of folds >= 2",
    "repeats": "give a whole number >= 1",
    "seed": "give a whole number >= 0",
    "scoring": 'give the name of a scorer, such as "accuracy"',
    "interval": 'give "naive", "corrected" or "nested"',
    "confidence": CONFIDENCE,
    "nested_repeats": "give a whole number >= 1",
    "n_jobs": "give the number of outer folds at a time, or -1 for one a core",
    "max_error": "give a number >= 0, such as 0.20 for 20 % of the rows",
    "max_bias": "give a number of percentage points >= 0, such as 1.0",
    "probe": "give true or false",
    "manifest": f'give the path of a file, such as "{MANIFEST}", relative to pyproject.toml',
    "name": "give a name",
}
