"""Opens the ledger that a URL stands for."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from pytest_dscore.errors import SettingsError
from pytest_dscore.holdout.ledger.backend import Backend
from pytest_dscore.holdout.ledger.base import Ledger
from pytest_dscore.holdout.ledger.faults import LedgerMissing
from pytest_dscore.holdout.ledger.record import utc_now
from pytest_dscore.holdout.ledger.urls import Location


def open_ledger(
    url: str | Path,
    *,
    root: str | Path | None = None,
    must_exist: bool = False,
    timeout: float = 30.0,
    clock: Callable[[], str] = utc_now,
) -> Ledger:
    """Open the ledger at a URL.

    Parameters
    ----------
    url
        A directory; ``"git:refs/dscore/ledger"`` (``?remote=NAME``, default origin; ``?remote=none`` for a repository
        that nobody else writes); or a SQLAlchemy URL of PostgreSQL or SQLite.
    root
        What a relative path starts from, and the git repository; the working directory by default.
    must_exist
        Settings or a baseline say that it was begun: one that is missing or empty is an error.
    timeout
        Seconds to wait for other writers, a server or a remote.
    clock
        Returns the time as records write it; for tests.

    Raises
    ------
    LedgerMissing
        `must_exist`, and there is no record.
    SettingsError
        A URL that cannot be used.
    """
    location = Location(str(url))
    del url  # a traceback with local variables must not show a password
    ledger = Ledger(_backend(location, Path(root) if root is not None else Path.cwd(), timeout), clock)
    if must_exist and not ledger.begun:
        raise LedgerMissing(
            f"{ledger.where} holds no record, though it is said to have been begun: restore it (a checkout without it, "
            "a wrong URL or a wiped database look like this); it is not begun anew"
        )
    return ledger


def _malformed(url: str) -> str:
    """Why a URL would be read otherwise than meant, and a password in it shown in places that nobody can foresee."""
    if "\0" in url:
        return "it holds a NUL character"
    if re.match(r"[a-z0-9+]+:/(?!/)", url):
        return "after the colon two slashes are needed, as in postgresql+psycopg://"
    scheme, _, rest = url.partition("://")
    authority = rest.partition("/")[0]
    if authority.count("@") > 1:
        return "an @ within the password must be written as %40"
    if scheme.startswith("sqlite") and "@" in authority:
        return "SQLite has neither user nor password: write sqlite:///path"
    return ""


def _backend(location: Location, root: Path, timeout: float) -> Backend:
    if not str(location).strip():
        raise SettingsError('the ledger\'s URL is empty: give a directory, "git:REF" or a database URL')
    if reason := _malformed(location.reveal()):
        raise SettingsError(f"the ledger's URL cannot be used: {reason}")
    if str(location).startswith("git:"):
        from pytest_dscore.holdout.ledger.git_ref import GitBackend

        return GitBackend(location, root, timeout)
    if "://" in str(location):
        from pytest_dscore.holdout.ledger.sql import SqlBackend

        return SqlBackend(location, root, timeout)
    from pytest_dscore.holdout.ledger.directory import DirectoryBackend

    return DirectoryBackend(root / location.reveal(), timeout)
