"""``[tool.dscore]`` of pyproject.toml as checked, typed values; every error names the key and how to mend it."""

from __future__ import annotations

from pytest_dscore.settings.holdouts import HoldoutSettings, holdout_settings
from pytest_dscore.settings.project import Settings, load_settings
from pytest_dscore.settings.protocols import ProtocolMark, ProtocolSettings, protocol_mark, protocol_settings
from pytest_dscore.settings.reading import key_line
from pytest_dscore.settings.scores import GATES, ModelSettings, ScoreSettings, marker_settings

__all__ = [
    "GATES",
    "HoldoutSettings",
    "ModelSettings",
    "ProtocolMark",
    "ProtocolSettings",
    "ScoreSettings",
    "Settings",
    "holdout_settings",
    "key_line",
    "load_settings",
    "marker_settings",
    "protocol_mark",
    "protocol_settings",
]
