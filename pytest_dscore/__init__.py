"""pytest-dscore: a quality gate for ML teams.

The public names are loaded on first use, so that importing the package (as pytest does in every run) imports no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_dscore.errors import DScoreError, SettingsError
    from pytest_dscore.figure import Figure
    from pytest_dscore.score import DScore, DScoreAugment, black_level, d_score

__version__ = "0.1.0"

_HOMES = {
    "DScore": "pytest_dscore.score",
    "DScoreAugment": "pytest_dscore.score",
    "DScoreError": "pytest_dscore.errors",
    "Figure": "pytest_dscore.figure",
    "SettingsError": "pytest_dscore.errors",
    "black_level": "pytest_dscore.score",
    "d_score": "pytest_dscore.score",
}

__all__ = ["DScore", "DScoreAugment", "DScoreError", "Figure", "SettingsError", "__version__", "black_level", "d_score"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
