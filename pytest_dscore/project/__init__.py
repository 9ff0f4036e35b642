"""``dscore init`` and ``dscore doctor``: a project's first settings, and what keeps its gates from running."""

from __future__ import annotations

from typing import Any

from pytest_dscore.project import doctor, init

__all__ = ["add_project_commands"]


def add_project_commands(groups: Any) -> None:
    """Add both commands to the action that ``ArgumentParser.add_subparsers`` returned."""
    for module in (init, doctor):
        module.add_to(groups)
