"""Sub-commands of ``dscore protocol``: outside of ``protocol/``, as importing that loads scikit-learn."""

from __future__ import annotations

from typing import Any

from pytest_dscore.commands import manifest

__all__ = ["add_protocol_commands"]


def add_protocol_commands(commands: Any) -> None:
    """Add every sub-command to the action that ``ArgumentParser.add_subparsers`` returned."""
    manifest.add_to(commands)
