"""The D-Score as a library: knows nothing of pytest, of the other domains or of reports.

Source: Zhang et al. 2023, arXiv 2304.00697. `formulas` says which formulas the paper gives and which are reconstructed.
The public names are loaded on first use, so that a report, which needs the names of regions only, imports no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_dscore.figure import Figure
    from pytest_dscore.score.api import d_score
    from pytest_dscore.score.augment import DScoreAugment
    from pytest_dscore.score.operators import OPERATORS, Operator
    from pytest_dscore.score.result import DScore
    from pytest_dscore.score.shifts import black_level

_HOMES = {
    "DScore": "pytest_dscore.score.result",
    "DScoreAugment": "pytest_dscore.score.augment",
    "Figure": "pytest_dscore.figure",
    "OPERATORS": "pytest_dscore.score.operators",
    "Operator": "pytest_dscore.score.operators",
    "black_level": "pytest_dscore.score.shifts",
    "d_score": "pytest_dscore.score.api",
}

__all__ = ["OPERATORS", "DScore", "DScoreAugment", "Figure", "Operator", "black_level", "d_score"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
