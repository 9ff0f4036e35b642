"""The sub-commands of ``dscore holdout``, one module for each that computes; see docs/holdout-commands.md."""

from __future__ import annotations

from typing import Any

from pytest_dscore.holdout.commands import begin, history, plan, plot, status, upkeep

__all__ = ["add_commands"]


def add_commands(commands: Any) -> None:
    """Add every sub-command to the action that ``ArgumentParser.add_subparsers`` returned."""
    for module in (begin, plan, status, history, upkeep, plot):
        module.add_to(commands)
