"""The whole table ``[tool.dscore]``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from pytest_dscore.errors import SettingsError
from pytest_dscore.settings.holdouts import HoldoutSettings, holdout_settings
from pytest_dscore.settings.protocols import ProtocolSettings, protocol_settings
from pytest_dscore.settings.reading import read_table
from pytest_dscore.settings.scores import ModelSettings, model_settings

#: Keys of ``[tool.dscore]`` that are no score settings.
_OTHERS = ("models", "holdouts", "protocols", "junit_properties")


class Settings(BaseModel):
    """The whole table, with the common score settings merged into every model."""

    model_config = ConfigDict(frozen=True)

    root: Path
    models: dict[str, ModelSettings]
    holdouts: dict[str, HoldoutSettings]
    protocols: dict[str, ProtocolSettings]
    junit_properties: bool = True


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
        The file or table is missing, not TOML, or has an unknown or unusable key.
    """
    table = read_table(root)
    apart = {key: table.pop(key) for key in _OTHERS if key in table}
    junit = apart.get("junit_properties", True)
    if not isinstance(junit, bool):
        raise SettingsError(f"[tool.dscore] junit_properties = {junit!r} must be true or false")
    models = model_settings(apart.get("models"), table, _OTHERS, operators)
    holdouts = holdout_settings(apart.get("holdouts"))
    protocols = protocol_settings(apart.get("protocols"))
    _refuse_namesakes({"model": models, "hold-out": holdouts, "protocol": protocols})
    return Settings(root=root, models=models, holdouts=holdouts, protocols=protocols, junit_properties=junit)


def _refuse_namesakes(kinds: Mapping[str, Mapping[str, object]]) -> None:
    """Refuse names that two kinds of subjects share."""
    for one, other in combinations(kinds, 2):
        if twice := sorted(kinds[one].keys() & kinds[other].keys()):
            raise SettingsError(
                f"[tool.dscore] a {one} and a {other} are both called '{twice[0]}': rename one, as their tests would "
                "be called alike"
            )
