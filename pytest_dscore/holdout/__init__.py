"""Hold-out reuse budgets: how many models may be scored on one test set, and how far their scores can be trusted.

Everything here is plain functions on numbers and arrays, without pytest and without torch. Start with `max_models`,
`failure_probability`, `tolerance` and `required_examples` for planning, and with `analyse` for models already scored.
The bounds are those of Mania et al. 2019, "Model Similarity Mitigates Test Set Overuse"; docs/holdout-bounds.md
derives each.
"""

from __future__ import annotations

from pytest_dscore.holdout.analyse import Analysis, analyse
from pytest_dscore.holdout.growing import GrowingTree
from pytest_dscore.holdout.ladder import Ladder, LadderAnswer, suggested_step
from pytest_dscore.holdout.ledger import HoldoutIdentity, Ledger, Use, UseRefused, open_ledger
from pytest_dscore.holdout.planning import (
    CouplingWarning,
    Evaluation,
    evaluate,
    failure_probability,
    max_models,
    required_examples,
    tolerance,
)
from pytest_dscore.holdout.search import format_count
from pytest_dscore.holdout.similarity import (
    PackedOutcomes,
    disagreements,
    pack,
    similarity_cover,
    similarity_matrix,
    similarity_row,
)
from pytest_dscore.holdout.theorem2 import (
    corollary5_epsilon,
    corollary5_eta,
    theorem2_deviation,
    theorem2_epsilon,
    theorem2_largest_eta,
    theorem2_probability,
    theorem2_required_eta,
)

__all__ = [
    "Analysis",
    "CouplingWarning",
    "Evaluation",
    "GrowingTree",
    "HoldoutIdentity",
    "Ladder",
    "LadderAnswer",
    "Ledger",
    "PackedOutcomes",
    "Use",
    "UseRefused",
    "analyse",
    "corollary5_epsilon",
    "corollary5_eta",
    "disagreements",
    "evaluate",
    "failure_probability",
    "format_count",
    "max_models",
    "open_ledger",
    "pack",
    "required_examples",
    "similarity_cover",
    "similarity_matrix",
    "similarity_row",
    "suggested_step",
    "theorem2_deviation",
    "theorem2_epsilon",
    "theorem2_largest_eta",
    "theorem2_probability",
    "theorem2_required_eta",
    "tolerance",
]
