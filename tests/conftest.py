"""Shared by all tests."""

from __future__ import annotations

# Imported once here, in the outer process: pytester forgets modules that an in-process run was the first to import, and
# the extension modules of numpy and torch cannot be loaded twice. Nor can joblib's processes: a second copy of their
# module waits for ever on the workers of the first.
import joblib  # type: ignore[import-untyped]
import numpy.fft
import psycopg
import safetensors.torch
import scipy.stats
import sklearn.datasets  # type: ignore[import-untyped]
import sqlalchemy.dialects.postgresql.psycopg
import torch

import pytest_dscore.score.api
import pytest_dscore.score.augment

pytest_plugins = ["pytester"]

# Everything that joblib's processes import while they work, by letting them work once.
joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(abs)(number) for number in range(2))
joblib.externals.loky.get_reusable_executor().shutdown(wait=True, kill_workers=True)

__all__ = ["joblib", "numpy", "psycopg", "pytest_dscore", "safetensors", "scipy", "sklearn", "sqlalchemy", "torch"]
