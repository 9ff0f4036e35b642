"""Shared by all tests."""

from __future__ import annotations

# Imported once here, in the outer process: pytester forgets modules that an in-process run was the first to import, and
# the extension modules of numpy and torch cannot be loaded twice. Nor can joblib's processes: a second copy of their
# module waits for ever on the workers of the first.
import joblib.executor  # type: ignore[import-untyped]
import joblib.externals.loky.reusable_executor  # type: ignore[import-untyped]
import numpy.fft
import safetensors.torch
import scipy.stats
import sklearn.datasets  # type: ignore[import-untyped]
import torch

import pytest_dscore.score.api
import pytest_dscore.score.augment

pytest_plugins = ["pytester"]

__all__ = ["joblib", "numpy", "pytest_dscore", "safetensors", "scipy", "sklearn", "torch"]
