"""The D-Score as a library: knows nothing of pytest, of the other domains or of reports.

Source: Zhang et al. 2023, arXiv 2304.00697. `formulas` says which formulas the paper gives and which are reconstructed.
"""

from __future__ import annotations

from pytest_dscore.figure import Figure
from pytest_dscore.score.api import d_score
from pytest_dscore.score.augment import DScoreAugment
from pytest_dscore.score.operators import OPERATORS, Operator
from pytest_dscore.score.result import DScore
from pytest_dscore.score.shifts import black_level

__all__ = ["OPERATORS", "DScore", "DScoreAugment", "Figure", "Operator", "black_level", "d_score"]
