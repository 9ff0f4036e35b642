"""``[tool.dscore]`` of pyproject.toml as checked, typed values; every error names the key and how to mend it."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from pytest_dscore.errors import SettingsError
from pytest_dscore.names import unknown_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Share = Annotated[float, Field(gt=0, le=1)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")]
Reference = Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$")]

#: Gate -> the figure of the result that it judges. The order is that of the collected items.
GATES = {"min_score": "score", "max_v_robust": "v_robust", "min_v_fitness": "v_fitness", "min_accuracy": "accuracy"}


class ScoreSettings(BaseModel):
    """How a model is scored and what it must reach; every key may stand in [tool.dscore], a model or a marker."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    n: int = Field(3, ge=2)
    operator: str = "delete"
    form: Literal["bounded", "ratio"] = "bounded"
    pad: Annotated[int, Field(ge=0)] | list[Annotated[int, Field(ge=0)]] | None = None
    fill: float | list[float] | None = None
    batch_size: int = Field(256, ge=1)
    device: str = "auto"
    bf16: bool = False
    bootstrap: int = Field(1000, ge=100)
    confidence: float = Field(0.95, gt=0, lt=1)
    seed: int = Field(0, ge=0)
    min_score: float | None = Field(None, gt=0)
    max_v_robust: float | None = Field(None, ge=0)
    min_v_fitness: Share | None = None
    min_accuracy: Share | None = None

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
        """The gates that are set, by name, in the order of `GATES`."""
        return {gate: float(value) for gate in GATES if (value := getattr(self, gate)) is not None}


class ModelSettings(ScoreSettings):
    """``[tool.dscore.models.NAME]``: where the model and its data come from, and its own score settings."""

    factory: Reference
    weights: str | None = None
    data: Reference


class MarkerSettings(ScoreSettings):
    """The keywords of ``@pytest.mark.dscore``."""

    model: str | None = None


class Settings(BaseModel):
    """The whole table, with the common score settings merged into every model."""

    model_config = ConfigDict(frozen=True)

    root: Path
    models: dict[str, ModelSettings]
    junit_properties: bool = True

    def model(self, name: str | None) -> tuple[str, ModelSettings]:
        """The declared model of that name; the only one where `name` is None.

        Raises
        ------
        SettingsError
            No such model, or several to choose from.
        """
        if name is None:
            if len(self.models) != 1:
                raise SettingsError(
                    f"several models are declared ({', '.join(self.models)}): say which with model = ..."
                )
            name = next(iter(self.models))
        if name not in self.models:
            raise SettingsError(unknown_name("model", name, self.models))
        return name, self.models[name]


def load_settings(root: Path, operators: Iterable[str]) -> Settings:
    """Read and check ``[tool.dscore]`` of ``root / "pyproject.toml"``.

    Parameters
    ----------
    root
        pytest's rootdir.
    operators
        Names of the mutation operators there are.

    Raises
    ------
    SettingsError
        The file or table is missing, not TOML, has an unknown or unusable key, or declares nothing to gate.
    """
    table = _read_table(root / "pyproject.toml")
    if "holdouts" in table:
        raise SettingsError(
            "[tool.dscore.holdouts] is read by the dscore holdout commands only, pytest does not gate it yet: keep it "
            "in a pyproject.toml of its own (dscore holdout ... --root DIR), so that nobody takes it for guarded"
        )
    models, junit = table.pop("models", None), table.pop("junit_properties", True)
    common = _validate(ScoreSettings, table, "[tool.dscore]", ("models", "junit_properties"))
    if not isinstance(junit, bool):
        raise SettingsError(f"[tool.dscore] junit_properties = {junit!r} must be true or false")
    if not isinstance(models, dict) or not models:
        raise SettingsError(
            "[tool.dscore] declares no model, so there is nothing to gate: add a table [tool.dscore.models.NAME] "
            "with factory, "
            "weights and data"
        )
    inherited = {key: getattr(common, key) for key in common.model_fields_set}
    checked = {name: _model(name, inherited, own, tuple(operators)) for name, own in models.items()}
    return Settings(root=root, models=checked, junit_properties=junit)


def marker_settings(
    keywords: Mapping[str, Any], settings: Settings, operators: Iterable[str]
) -> tuple[str, ModelSettings]:
    """The model and settings that a marker asks for: the declared model's, each key replaced by the marker's.

    Thresholds are not inherited: a marked test is gated by exactly what its marker names.

    Raises
    ------
    SettingsError
        Unknown key or model, or a value that cannot be used.
    """
    where = "@pytest.mark.dscore"
    own = _validate(MarkerSettings, {key: _plain(value) for key, value in keywords.items()}, where, ())
    if unset := [gate for gate in GATES if gate in keywords and keywords[gate] is None]:
        raise SettingsError(f"{where} {unset[0]} = None sets no threshold: give a number or leave it out")
    name, declared = settings.model(own.model)
    values = {key: getattr(declared, key) for key in declared.model_fields_set if key not in GATES}
    values |= {key: getattr(own, key) for key in own.model_fields_set if key != "model"}
    merged = _validate(ModelSettings, values, where, ())
    _check_can_be_met(merged, where)
    _check_operator(merged.operator, where, tuple(operators))
    return name, merged


def key_line(root: Path, model: str, key: str) -> int | None:
    """Line (from 0) of a key in pyproject.toml, the model's own table before the common one; None where not found."""
    try:
        lines = (root / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(lines):
        if header := re.match(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?$", line):
            table = re.sub(r"[\s\"']", "", header[1])
            found.setdefault(table, number)
        elif entry := re.match(r"\s*([A-Za-z0-9_-]+)\s*=", line):
            found.setdefault(f"{table}:{entry[1]}", number)
    own, common = f"tool.dscore.models.{model}", "tool.dscore"
    return next((found[place] for place in (f"{own}:{key}", f"{common}:{key}", own, common) if place in found), None)


def _read_table(path: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingsError(
            f"--dscore reads [tool.dscore] of pyproject.toml in pytest's rootdir, and {path} does not exist: create "
            "it or pass "
            "--rootdir"
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error
    tool = document.get("tool", {})
    table = tool.get("dscore") if isinstance(tool, dict) else None
    if not isinstance(table, dict):
        raise SettingsError(f"{path} has no table [tool.dscore], so there is nothing to gate: add one (see the README)")
    return dict(table)


def _model(name: str, inherited: Mapping[str, Any], own: Any, operators: tuple[str, ...]) -> ModelSettings:
    where = f"[tool.dscore.models.{name}]"
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        raise SettingsError(
            f"{where} the name may hold letters, digits and . _ - only, as it becomes part of a test's name"
        )
    if not isinstance(own, dict):
        raise SettingsError(f"{where} must be a table with factory, weights and data")
    # Read alone first, so that an error points at the table it stands in.
    _validate(ModelSettings, own, where, ())
    model: ModelSettings = _validate(ModelSettings, {**inherited, **own}, where, ())
    if not model.thresholds():
        raise SettingsError(f"{where} has no threshold, so it would always pass: set one of {', '.join(GATES)}")
    _check_operator(model.operator, where, operators)
    _check_can_be_met(model, where)
    return model


def _plain(value: Any) -> Any:
    """NumPy scalars as Python's own numbers."""
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else value


def _check_can_be_met(model: ModelSettings, where: str) -> None:
    if model.form == "bounded" and model.min_score is not None and model.min_score > 1:
        raise SettingsError(
            f"{where} min_score = {model.min_score:g} can never be met: a bounded D-Score lies between 0 and 1"
        )


def _check_operator(operator: str, where: str, operators: tuple[str, ...]) -> None:
    if operator not in operators:
        raise SettingsError(f"{where} {unknown_name('operator', operator, operators)}")


def _validate(kind: type[BaseModel], values: dict[str, Any], where: str, also_valid: tuple[str, ...]) -> Any:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        names = (*kind.model_fields, *also_valid)
        raise SettingsError("; ".join(dict.fromkeys(_sentence(e, where, names) for e in error.errors()))) from None


def _sentence(error: ErrorDetails, where: str, names: Iterable[str]) -> str:
    key = str(error["loc"][0]) if error["loc"] else ""
    kind, given = error["type"], error["input"]
    if kind == "extra_forbidden":
        return f"{where} {unknown_name('key', key, names)}"
    if kind == "missing":
        return f"{where} {key} is missing: {_EXPECTED.get(key, 'set it')}"
    if kind == "value_error":
        reason = str(error["msg"]).removeprefix("Value error, ")
        return f"{where} {f'{key} = {given!r} ' if key else ''}{reason}"
    expected = _EXPECTED.get(key, str(error["msg"][:1]).lower() + str(error["msg"][1:]))
    return f"{where} {key} = {given!r} cannot be used: {expected}"


_EXPECTED = {
    "factory": 'give "module:callable", a callable without arguments that returns the torch.nn.Module',
    "data": 'give "module:callable", a callable without arguments that returns a Dataset or (images, labels)',
    "weights": "give the path of a .safetensors, .pt or .pth file, relative to pyproject.toml",
    "n": "give a whole number >= 2",
    "pad": "give a number of pixels >= 0 or a pair [vertical, horizontal]",
    "fill": "give the value of black in the model's input space, one number or one per channel",
    "form": 'give "bounded" or "ratio"',
    "bootstrap": "give a whole number >= 100, the resamples behind every interval",
    "min_score": "give a number > 0, as 0 would always pass",
    "max_v_robust": "give a number >= 0",
    "min_v_fitness": "give a number > 0 and <= 1, as others always pass or never",
    "min_accuracy": "give a number > 0 and <= 1, as others always pass or never",
}
