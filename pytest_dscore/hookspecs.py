"""Hooks by which other plugins and conftest.py files extend the gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_dscore.score.operators import Operator


@pytest.hookspec
def pytest_dscore_operators() -> Mapping[str, Operator]:  # type: ignore[empty-body]
    """Add mutation operators.

    Called once when pytest is configured with ``--dscore``.

    Returns
    -------
    mapping of str to Operator
        Name to function, see `pytest_dscore.score.operators.Operator`. The name can then be used as ``operator`` in
        ``[tool.dscore]`` and in markers. A built-in name cannot be replaced.
    """
