"""Shared by all tests."""

from __future__ import annotations

# Imported once here, in the outer process: pytester forgets modules that an in-process run has imported, and torch
# cannot be imported twice.
import torch  # noqa: F401

pytest_plugins = ["pytester"]
