"""Shared by all tests."""

from __future__ import annotations

# Imported once here, in the outer process: pytester forgets modules that an in-process run was the first to import, and
# the extension modules of numpy and torch cannot be loaded twice. Nor can joblib's processes: a second copy of their
# module waits for ever on the workers of the first.
import joblib  # type: ignore[import-untyped]
import numpy.fft
import psycopg
import pytest
import safetensors.torch
import scipy.stats
import sklearn.datasets  # type: ignore[import-untyped]
import sqlalchemy.dialects.postgresql.psycopg
import torch

import pytest_dscore.score.api
import pytest_dscore.score.augment
from tests.gates.holdout_project import CI_RUNS

pytest_plugins = ["pytester"]

# Everything that joblib's processes import while they work, by letting them work once.
joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(abs)(number) for number in range(2))
joblib.externals.loky.get_reusable_executor().shutdown(wait=True, kill_workers=True)

__all__ = ["joblib", "numpy", "psycopg", "pytest_dscore", "safetensors", "scipy", "sklearn", "sqlalchemy", "torch"]


@pytest.fixture(autouse=True)
def at_a_desk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs as on a person's own machine: reports say more in CI, where this very suite runs too."""
    for name in ("CI", *CI_RUNS):
        monkeypatch.delenv(name, raising=False)
