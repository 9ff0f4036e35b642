"""``[tool.dscore]`` and ``[tool.dscore.models.NAME]``: how a model is scored, and what it must reach."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pytest_dscore.errors import SettingsError
from pytest_dscore.figure import MOST_RESAMPLES
from pytest_dscore.names import unknown_name
from pytest_dscore.settings.reading import CONFIDENCE, Confidence, Reference, Share, named_tables, validated

Tolerance = Annotated[float, Field(ge=0, lt=math.inf, allow_inf_nan=False)]

#: The figures whose drop (of v_robust: rise) against the baseline can be judged.
Drop = Literal["score", "v_fitness", "accuracy", "worst_region", "v_robust"]
DROPS: tuple[Drop, ...] = ("score", "v_fitness", "accuracy", "worst_region", "v_robust")

#: Gate -> the figure of the result that it judges. The order is that of the collected items.
GATES = {"min_score": "score", "max_v_robust": "v_robust", "min_v_fitness": "v_fitness", "min_accuracy": "accuracy"}


class ScoreSettings(BaseModel):
    """How a model is scored and what it must reach; every key may stand in [tool.dscore], a model or a marker."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    n: int = Field(3, ge=2)
    operator: str = "delete"
    form: Literal["mean", "bounded", "ratio"] = "mean"
    pad: Annotated[int, Field(ge=0)] | list[Annotated[int, Field(ge=0)]] | None = None
    fill: float | list[float] | None = None
    batch_size: int = Field(256, ge=1)
    device: str = "auto"
    bf16: bool = False
    bootstrap: int = Field(1000, ge=100, le=MOST_RESAMPLES)
    confidence: Confidence = 0.95
    seed: int = Field(0, ge=0)
    min_score: float | None = Field(None, gt=0)
    max_v_robust: float | None = Field(None, ge=0)
    min_v_fitness: Share | None = None
    min_accuracy: Share | None = None
    max_drop: (
        Tolerance | dict[Literal["score", "v_fitness", "accuracy", "worst_region", "v_robust"], Tolerance] | None
    ) = None
    strict: bool = False
    inconclusive: Literal["fail", "pass"] = "fail"

    @field_validator("pad", "fill", mode="before")
    @classmethod
    def _tuple_as_list(cls, value: Any) -> Any:
        return list(value) if isinstance(value, tuple) else value

    @field_validator("fill", "confidence", *GATES)
    @classmethod
    def _finite(cls, value: Any) -> Any:
        if any(isinstance(x, float) and not math.isfinite(x) for x in (value if isinstance(value, list) else [value])):
            raise ValueError("must be a finite number")
        return value

    @model_validator(mode="after")
    def _can_be_met(self) -> ScoreSettings:
        if isinstance(self.pad, list) and len(self.pad) != 2:
            raise ValueError(f"pad = {self.pad} must be one number of pixels or a pair [vertical, horizontal]")
        return self

    def thresholds(self) -> dict[str, float]:
        """The gates that are set, by name: thresholds in the order of `GATES`, then drops as ``max_drop.FIGURE``."""
        found = {gate: float(value) for gate in GATES if (value := getattr(self, gate)) is not None}
        if self.max_drop is None:
            return found
        drops: dict[Drop, float] = (
            self.max_drop if isinstance(self.max_drop, dict) else dict.fromkeys(DROPS, self.max_drop)
        )
        return found | {f"max_drop.{name}": float(drops[name]) for name in DROPS if name in drops}


class ModelSettings(ScoreSettings):
    """``[tool.dscore.models.NAME]``: where the model and its data come from, and its own score settings."""

    factory: Reference
    weights: str | None = None
    data: Reference


class MarkerSettings(ScoreSettings):
    """The keywords of ``@pytest.mark.dscore``."""

    model: str | None = None


def model_settings(
    tables: Any, common: Mapping[str, Any], also: tuple[str, ...], operators: Iterable[str]
) -> dict[str, ModelSettings]:
    """Check ``[tool.dscore.models]``.

    Parameters
    ----------
    tables
        What stands there, None where nothing does.
    common
        The score settings of ``[tool.dscore]`` itself, merged into every model's.
    also
        Other keys of ``[tool.dscore]``, for suggestions.
    operators
        Names of the mutation operators there are.

    Raises
    ------
    SettingsError
        Unknown key, or a value that cannot be used.
    """
    shared = validated(ScoreSettings, common, "[tool.dscore]", _EXPECTED, also)
    inherited = {key: getattr(shared, key) for key in shared.model_fields_set}
    found = named_tables(tables, "models", "factory, weights and data")
    return {name: _model(name, inherited, own, tuple(operators)) for name, own in found.items()}


def marker_settings(
    keywords: Mapping[str, Any], models: Mapping[str, ModelSettings], operators: Iterable[str]
) -> tuple[str, ModelSettings]:
    """The model and settings that a marker asks for: the declared model's, each key replaced by the marker's.

    Thresholds are not inherited: a marked test is gated by exactly what its marker names.

    Raises
    ------
    SettingsError
        Unknown key or model, or a value that cannot be used.
    """
    where = "@pytest.mark.dscore"
    own = validated(MarkerSettings, {key: _plain(value) for key, value in keywords.items()}, where, _EXPECTED)
    if unset := [gate for gate in (*GATES, "max_drop") if gate in keywords and keywords[gate] is None]:
        raise SettingsError(f"{where} {unset[0]} = None sets no threshold: give a number or leave it out")
    name = _model_named(own.model, models)
    declared = models[name]
    values = {key: getattr(declared, key) for key in declared.model_fields_set if key not in (*GATES, "max_drop")}
    values |= {key: getattr(own, key) for key in own.model_fields_set if key != "model"}
    merged = validated(ModelSettings, values, where, _EXPECTED)
    _check_can_be_met(merged, where)
    _check_operator(merged.operator, where, tuple(operators))
    return name, merged


def _model_named(name: str | None, models: Mapping[str, ModelSettings]) -> str:
    """The declared model of that name; the only one where `name` is None."""
    if not models:
        raise SettingsError("no model is declared in pyproject.toml: add a table [tool.dscore.models.NAME]")
    if name is None:
        if len(models) > 1:
            raise SettingsError(f"several models are declared ({', '.join(models)}): say which with model = ...")
        name = next(iter(models))
    if name not in models:
        raise SettingsError(unknown_name("model", name, models))
    return name


def _model(name: str, inherited: Mapping[str, Any], own: Any, operators: tuple[str, ...]) -> ModelSettings:
    where = f"[tool.dscore.models.{name}]"
    # Read alone first, so that an error points at the table it stands in.
    validated(ModelSettings, own, where, _EXPECTED)
    model = validated(ModelSettings, {**inherited, **own}, where, _EXPECTED)
    if not model.thresholds():
        raise SettingsError(
            f"{where} has no threshold, so it would always pass: set one of {', '.join(GATES)}, max_drop"
        )
    _check_operator(model.operator, where, operators)
    _check_can_be_met(model, where)
    return model


def _plain(value: Any) -> Any:
    """NumPy scalars as Python's own numbers."""
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else value


def _check_can_be_met(model: ModelSettings, where: str) -> None:
    if model.form != "ratio" and model.min_score is not None and model.min_score > 1:
        raise SettingsError(
            f"{where} min_score = {model.min_score:g} can never be met: this D-Score lies between 0 and 1"
        )


def _check_operator(operator: str, where: str, operators: tuple[str, ...]) -> None:
    if operator not in operators:
        raise SettingsError(f"{where} {unknown_name('operator', operator, operators)}")


_EXPECTED = {
    "factory": 'give "module:callable", a callable without arguments that returns the torch.nn.Module',
    "data": 'give "module:callable", a callable without arguments that returns a Dataset or (images, labels)',
    "weights": "give the path of a .safetensors, .pt or .pth file, relative to pyproject.toml",
    "n": "give a whole number >= 2",
    "pad": "give a number of pixels >= 0 or a pair [vertical, horizontal]",
    "fill": "give the value of black in the model's input space, one number or one per channel",
    "form": 'give "mean", "bounded" or "ratio"',
    "bootstrap": f"give a whole number from 100 to {MOST_RESAMPLES:,}, the resamples behind every interval",
    "confidence": CONFIDENCE,
    "min_score": "give a number > 0, as 0 would always pass",
    "max_v_robust": "give a number >= 0",
    "min_v_fitness": "give a number > 0 and <= 1, as others always pass or never",
    "max_drop": "give a number >= 0 for all figures, or a table of numbers for some: " + ", ".join(DROPS),
    "inconclusive": 'give "fail" or "pass"',
    "min_accuracy": "give a number > 0 and <= 1, as others always pass or never",
}
