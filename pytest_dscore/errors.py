"""The one family of exceptions that this package raises for bad input."""

from __future__ import annotations


class DScoreError(Exception):
    """Something a user gave cannot be used.

    The message is one sentence that says what is wrong, where (the setting, file or row) and what to do. The pytest
    plugin shows it without a traceback; a library user catches this class.
    """


class SettingsError(DScoreError):
    """A setting in ``pyproject.toml``, a marker or an argument is misspelt, out of range or cannot be met."""


def first_line(error: BaseException) -> str:
    """What an exception of somebody else's code says, cut to one line of at most 300 characters."""
    try:
        text = str(error).strip()
    except Exception as broken:  # noqa: BLE001 - an exception may even fail to describe itself
        text = f"(its text raised {type(broken).__name__})"
    line = text.splitlines()[0] if text else "no message"
    return line if len(line) <= 300 else f"{line[:297]}..."
