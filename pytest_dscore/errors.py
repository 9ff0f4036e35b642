"""The one family of exceptions that this package raises for bad input."""

from __future__ import annotations


class DScoreError(Exception):
    """Something a user gave cannot be used.

    The message is one sentence that says what is wrong, where (the setting, file or row) and what to do. The pytest
    plugin shows it without a traceback; a library user catches this class.
    """


class SettingsError(DScoreError):
    """A setting in ``pyproject.toml``, a marker or an argument is misspelt, out of range or cannot be met."""
